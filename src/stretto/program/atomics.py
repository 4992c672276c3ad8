"""Which atomic operations there are, and what each promises of memory around it."""

from __future__ import annotations

from stretto.kernel import Operation
from stretto.kernel.lowering.written import ATOMICS

ATOMIC = frozenset(ATOMICS.values())
ADDS, SWAPS = ATOMICS["tile.atomic_rmw"], ATOMICS["tile.atomic_cas"]
ORDERS = {
    "": "acq_rel", "acq_rel": "acq_rel", "acquire": "acquire", "release": "release",
    "relaxed": "relaxed",
}  # fmt: skip


def order_of(operation: Operation) -> str:
    """What an atomic operation says of memory around it; Triton's own word where it does not."""
    return ORDERS.get(operation.text("semantics"), "acq_rel")
