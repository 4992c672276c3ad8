"""Clocks in emitted source: what a kernel writes down of itself while it runs.

    trace[block, agent] ── begin, end          of the agent, in cycles of its SM
                        ├─ from, to            the same in nanoseconds
                        └─ cycles, steps       of the steady part of each loop

With `marks`, the first steps of a loop's steady part are written down too, one clock a mark: before
each wait, behind it, behind each product and copy that is issued.

    trace[block, agent, RECORD + (step * marks + mark)]

The host's `write_trace(trace, "trace.json")` leaves them in a file that names the source it is of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tracing = Literal["loops", "marks"]
"""Cycles of loops alone, which disturbs little; or a clock at each mark."""

RECORD = 16
"""Numbers of an agent before its marks."""
LOOPS = 4
"""Loops of a kernel that have room in a record."""
STEPS = 24
"""Steps of each loop that are written down, mark by mark."""
MARKS = 128
"""Marks of a step that there is room for."""
BLOCKS = 8
"""Blocks that write marks."""


def size(tracing: Tracing | None) -> int:
    """Numbers that each agent of a block writes."""
    return RECORD + (STEPS * MARKS if tracing == "marks" else 0)


@dataclass(frozen=True)
class Mark:
    """A place in a step at which a clock is read."""

    what: Literal["before", "behind"]
    op: str
    """The operation that waits or is issued."""
    thing: str
    """`full RING`, `free RING`, `products`, `product`, `copy`, `work`."""
