"""Lines of Python, and names for what stands in them."""

from __future__ import annotations

import keyword
from collections.abc import Generator
from contextlib import contextmanager

TRACED = (
    "trace", "clock", "nanoseconds", "block", "trace_at", "trace_on", "trace_in", "trace_out",
    "trace_step",
)  # fmt: skip
"""What a kernel that reads clocks has beside its own names."""
RESERVED = frozenset(
    (
        *keyword.kwlist, *TRACED, "gl", "gluon", "mbarrier", "tma", "step", "range", "float",
        "held", "next_slot", "tma_load", "tma_store", "fence_async_shared", "warpgroup_mma",
        "warpgroup_mma_init", "warpgroup_mma_wait",
    )
)  # fmt: skip


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


class Lines:
    """Python source, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._deep = 0

    def say(self, text: str = "") -> None:
        """A line."""
        self.lines.append("    " * self._deep + text if text else "")

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """A line that ends in a colon, and what stands below it."""
        self.say(head)
        self._deep += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.say("pass")
        self._deep -= 1

    def __str__(self) -> str:
        return "\n".join(self.lines)
