"""A shorter schedule of a loop, by halves: the solver is asked for one II at a time.

    MII 1425                                    1809, of the generators
     ├──────────────── 1617 ✗ ───────────────────┤
                        ├──────── 1713 ✓ ────────┤     a few tenths of a second where there is one,
                        ├─ 1665 ✗ ─┤                   a second or two where there is none

What is found is verified as any schedule is. Nothing is claimed of what was not found.
"""

from __future__ import annotations

from dataclasses import replace

from stretto.api import fields_of
from stretto.api.checking import legal
from stretto.api.solving import ScheduleResult, schedule
from stretto.deadline import NEVER, Deadline
from stretto.generate.problem import RETRIES, TIES
from stretto.loop import Dependence, Loop
from stretto.machine import Machine
from stretto.resources.prepare import prepare

NEAR = 100
"""It ends where what was found is within one part in so many of what was not."""


def shortened(
    loop: Loop,
    machine: Machine,
    low: int,
    high: int,
    *,
    max_stages: int,
    work: float,
    seed: int,
    deadline: Deadline = NEVER,
) -> ScheduleResult | None:
    """The schedule of the smallest II between two that the solver was found to have one for.

    `low` is a bound, `high` an II that is known to do; `work` is for each II that is asked for.
    """
    best: ScheduleResult | None = None
    while high - low > max(1, low // NEAR) and not deadline.over:
        ii = (low + high) // 2
        found = schedule(
            _no_shorter(loop, ii), machine, "exact", max_ii=ii, max_stages=max_stages,
            objective="ii", work_limit=work, seed=seed, time_limit=deadline, effort="quick",
            without=(RETRIES, TIES),
        )  # fmt: skip
        if found.success and not found.spilled:
            best, high = found, ii
        else:
            low = ii
    if best is None:
        return None
    ready = prepare(loop, machine)
    return ScheduleResult(**fields_of(legal(ready, best)), problem=ready)


def _no_shorter(loop: Loop, ii: int) -> Loop:
    """The loop, with an operation that waits for itself for the whole II."""
    first = loop.ops[0].name
    asked = Dependence(first, first, ii, 1, "order")
    return replace(loop, stated=(*loop.stated, asked))
