"""Names of variables, each given once."""

from __future__ import annotations

import keyword

from stretto.kernel import Kernel, Operation
from stretto.kernel.tree import kind_of
from stretto.ops.reductions import FOLDED

TRACED = (
    "trace", "clock", "nanoseconds", "block", "trace_at", "trace_on", "trace_in", "trace_out",
    "trace_step",
)  # fmt: skip
"""What a kernel that reads clocks has beside its own names."""
RESERVED = frozenset(
    (
        *keyword.kwlist, *TRACED, "gl", "gluon", "mbarrier", "tma", "step", "range", "float",
        "held", "libdevice", "next_slot", "tl",
        "tma_load", "tma_store", "fence_async_shared", "warpgroup_mma",
        "warpgroup_mma_init", "warpgroup_mma_wait",
    )
)  # fmt: skip


def combiners(kernel: Kernel) -> dict[Operation, str]:
    """What the functions are called that put two elements of a reduction or a scan together."""
    folding = [op for op in kernel.walk() if kind_of(op) in FOLDED]
    return {op: f"combine_{n}" if n else "combine" for n, op in enumerate(folding)}


class Names:
    """Names of one function, each given once."""

    def __init__(self, taken: frozenset[str] = RESERVED) -> None:
        self._taken = set(taken)

    def give(self, wanted: str) -> str:
        """The name that is wanted, or one close to it."""
        clean = "".join(c if c.isalnum() or c == "_" else "_" for c in wanted) or "value"
        if clean[0].isdigit():
            clean = f"v{clean}"
        name, count = clean, 1
        while name in self._taken:
            count += 1
            name = f"{clean}_{count}"
        self._taken.add(name)
        return name
