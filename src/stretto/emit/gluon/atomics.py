"""Atomics: an element is read, changed and written by one thread, and nobody comes between.

pointer.atomic_rmw kind = "fadd"      gl.atomic_add(at, total, mask, sem="relaxed", scope="gpu")
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.kernel import Operation
from stretto.kernel.tree import kind_of
from stretto.program.atomics import ORDERS, SWAPS, order_of
from stretto.program.errors import EmitError

_NAMES = {
    "add": "add", "fadd": "add", "max": "max", "min": "min", "and": "and", "or": "or",
    "xor": "xor", "exch": "xchg",
}  # fmt: skip
"""Kinds as Gluon calls them."""
_UNSIGNED = ("umax", "umin")
"""Kinds that Triton tells from the others by types of its own, which Gluon's languages lack."""
_SCOPES = {"": "gpu", "gpu": "gpu", "device": "gpu", "cta": "cta", "tl_blk": "cta", "sys": "sys"}


def atomic(operation: Operation, texts: Sequence[str]) -> str:
    """An atomic operation as Gluon writes it, of its operands; EmitError where it has no such."""
    swaps = kind_of(operation) == SWAPS
    kind = "exch" if swaps else operation.text("kind")
    given = operation.text("semantics"), operation.text("scope")
    if kind in _UNSIGNED:
        told = f"an atomic operation ({kind}) of unsigned numbers, which Gluon does not have"
        hint = f"numbers below 2**31 of 32 bits have the same {kind[1:]} as signed ones"
        raise EmitError(told, operation, hint)
    if kind not in _NAMES or given[0] not in ORDERS or given[1] not in _SCOPES:
        told = ", ".join(part for part in (operation.text("kind"), *given) if part)
        raise EmitError(f"an atomic operation ({told}) that has no Gluon", operation)
    if swaps and len(texts) > 3:
        raise EmitError("an atomic exchange under a mask has no Gluon", operation)
    name = "cas" if swaps else _NAMES[kind]
    said = f'sem="{order_of(operation)}", scope="{_SCOPES[given[1]]}"'
    return f"gl.atomic_{name}({', '.join(texts)}, {said})"
