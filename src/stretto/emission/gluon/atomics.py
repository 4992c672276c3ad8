"""Atomics: an element is read, changed and written by one thread, and nobody comes between.

pointer.atomic_rmw kind = "fadd"      gl.atomic_add(at, total, mask, sem="relaxed", scope="gpu")
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.emission.gluon.expressions import dtype, wrapped
from stretto.kernel import Operation
from stretto.kernel.tree import kind_of
from stretto.ops.atomics import ATOMICS
from stretto.program.atomics import ORDERS, SWAPS, order_of
from stretto.program.errors import EmitError

_SCOPES = {"": "gpu", "gpu": "gpu", "device": "gpu", "cta": "cta", "tl_blk": "cta", "sys": "sys"}


def atomic(operation: Operation, texts: Sequence[str]) -> str:
    """An atomic operation as Gluon writes it, of its operands; EmitError where it has no such."""
    swaps = kind_of(operation) == SWAPS
    kind = "exch" if swaps else operation.text("kind")
    given = operation.text("semantics"), operation.text("scope")
    if kind not in ATOMICS or given[0] not in ORDERS or given[1] not in _SCOPES:
        told = ", ".join(part for part in (operation.text("kind"), *given) if part)
        raise EmitError(f"an atomic operation ({told}) that has no Gluon", operation)
    if ATOMICS[kind].unsigned:
        return _without_signs(operation, texts)
    if swaps and len(texts) > 3:
        raise EmitError("an atomic exchange under a mask has no Gluon", operation)
    name = "cas" if swaps else ATOMICS[kind].gluon
    said = f'sem="{order_of(operation)}", scope="{_SCOPES[given[1]]}"'
    return f"gl.atomic_{name}({', '.join(texts)}, {said})"


def _without_signs(operation: Operation, texts: Sequence[str]) -> str:
    """Of numbers without a sign: through an address of such."""
    type = dtype(operation.operands[1].type)
    if "gl.int" not in type:
        told = f"an atomic operation ({operation.text('kind')}) of unsigned numbers, of {type}"
        raise EmitError(told, operation, "it takes integers")
    unsigned = type.replace("gl.int", "gl.uint")
    at, value, *mask = texts
    address = f"{wrapped(at)}.to(gl.pointer_type({unsigned}), bitcast=True)"
    said = f'sem="{order_of(operation)}", scope="{_SCOPES[operation.text("scope")]}"'
    taken = ", ".join((address, f"{wrapped(value)}.to({unsigned})", *mask, said))
    return f"gl.atomic_{ATOMICS[operation.text('kind')].gluon}({taken}).to({type})"
