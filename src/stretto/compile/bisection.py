"""A shorter schedule of a loop, by halves: the solver is asked for one II at a time.

    MII 1425                                    1809, of the generators
     ├──────────────── 1617 ✗ ───────────────────┤
                        ├──────── 1713 ✓ ────────┤     a few tenths of a second where there is one,
                        ├─ 1665 ✗ ─┤                   a second or two where there is none

What is found is verified as any schedule is. Nothing is claimed of what was not found.
"""

from __future__ import annotations

from dataclasses import replace

from stretto.compile.scheduled import ONCE, ScheduledLoop, for_problem, scheduled
from stretto.deadline import NEVER, Deadline
from stretto.exact import Limits
from stretto.generate import EXACT
from stretto.loop import Dependence, Loop
from stretto.machine import Machine
from stretto.resources.prepare import prepare

NEAR, CLOSE = 100, 60
"""It ends where what was found is within one part in so many of what was not: refuted, or of what
could not be decided."""


def shortened(
    loop: Loop,
    machine: Machine,
    low: int,
    high: int,
    *,
    max_stages: int,
    limits: Limits,
    deadline: Deadline = NEVER,
) -> ScheduledLoop | None:
    """The schedule of the smallest II between two that the solver was found to have one for.

    `low` is a bound, `high` an II that is known to do; `limits` are for each II that is asked for.
    """
    best: ScheduledLoop | None = None
    while high - low > max(1, low // NEAR) and not deadline.over:
        ii = (low + high) // 2
        found = scheduled(
            _no_shorter(loop, ii), machine, EXACT, max_ii=ii, max_stages=max_stages,
            limits=limits, deadline=deadline, effort="quick", without=ONCE,
        )  # fmt: skip
        if found.success and not found.spilled:
            best, high = found, ii
        elif high - ii <= ii // CLOSE and not all(refusal.proved for refusal in found.refused):
            break  # so near to what was found little is decided, and at length
        else:
            low = ii
    if best is None:
        return None
    return for_problem(best, prepare(loop, machine))


def _no_shorter(loop: Loop, ii: int) -> Loop:
    """The loop, with an operation that waits for itself for the whole II."""
    first = loop.ops[0].name
    asked = Dependence(first, first, ii, 1, "order")
    return replace(loop, stated=(*loop.stated, asked))
