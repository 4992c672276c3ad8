"""Atomics: an element is read, changed and written by one thread, and nobody comes between.

pointer.atomic_rmw kind = "fadd"      gl.atomic_add(at, total, mask, sem="relaxed", scope="gpu")
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.emit.gluon.expressions import EmitError
from stretto.kernel import Operation
from stretto.kernel.lowering.written import ATOMICS
from stretto.kernel.tree import kind_of

ATOMIC = frozenset(ATOMICS.values())
ADDS, _SWAP = ATOMICS["tile.atomic_rmw"], ATOMICS["tile.atomic_cas"]
_NAMES = {
    "add": "add", "fadd": "add", "max": "max", "min": "min", "and": "and", "or": "or",
    "xor": "xor", "exch": "xchg",
}  # fmt: skip
"""Kinds as Gluon calls them."""
_UNSIGNED = ("umax", "umin")
"""Kinds that Triton tells from the others by types of its own, which Gluon's languages lack."""
COMMUTING = frozenset(("add", "fadd", "max", "min", "umax", "umin", "and", "or", "xor"))
"""Kinds whose order among themselves does not matter, as long as nobody looks at what was there."""
_SCOPES = {"": "gpu", "gpu": "gpu", "device": "gpu", "cta": "cta", "tl_blk": "cta", "sys": "sys"}
_ORDERS = {
    "": "acq_rel", "acq_rel": "acq_rel", "acquire": "acquire", "release": "release",
    "relaxed": "relaxed",
}  # fmt: skip


def order_of(operation: Operation) -> str:
    """What an atomic operation says of memory around it; Triton's own word where it does not."""
    return _ORDERS.get(operation.text("semantics"), "acq_rel")


def atomic(operation: Operation, texts: Sequence[str]) -> str:
    """An atomic operation as Gluon writes it, of its operands; EmitError where it has no such."""
    swaps = kind_of(operation) == _SWAP
    kind = "exch" if swaps else operation.text("kind")
    given = operation.text("semantics"), operation.text("scope")
    if kind in _UNSIGNED:
        told = f"an atomic operation ({kind}) of unsigned numbers, which Gluon does not have"
        hint = f"numbers below 2**31 of 32 bits have the same {kind[1:]} as signed ones"
        raise EmitError(told, operation, hint)
    if kind not in _NAMES or given[0] not in _ORDERS or given[1] not in _SCOPES:
        told = ", ".join(part for part in (operation.text("kind"), *given) if part)
        raise EmitError(f"an atomic operation ({told}) that has no Gluon", operation)
    if swaps and len(texts) > 3:
        raise EmitError("an atomic exchange under a mask has no Gluon", operation)
    name = "cas" if swaps else _NAMES[kind]
    said = f'sem="{order_of(operation)}", scope="{_SCOPES[given[1]]}"'
    return f"gl.atomic_{name}({', '.join(texts)}, {said})"
