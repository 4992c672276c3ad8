"""Where the steps of one agent begin.

    II   0        1024      2113     3137           what the agent issues, over and over
    ─────┬─────────┬─────────┬─────────┬────
     exp │ sum     │ qk pv   │ max exp │ sum        steps of the schedule: cut between max and exp
                   ╰──── a step ───────╯            steps of the agent: from one qk to the next

A schedule has one cycle 0 for all agents. Each agent issues the same operations in the same order
wherever its loop is cut; but compilers see one step at a time, and numbers that are carried from
one to the next stay in registers of their own. So a step begins with the first product that adds
to nothing, if no more products are in flight there than at cycle 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stretto.materialization.program import Issue


@dataclass(frozen=True)
class Steps:
    """One agent's operations of a step, in order, and the iterations that they work on."""

    order: tuple[Issue, ...]
    stages: Mapping[str, int]
    """In step k an operation of stage s works on iteration k - s."""
    written: frozenset[str]
    """Those of which something is written: views stand where they are read."""

    @property
    def first(self) -> int:
        """The smallest stage."""
        return min(self.stages[op] for op in self.written)

    @property
    def last(self) -> int:
        """The largest."""
        return max(self.stages[op] for op in self.written)

    def prologue(self, step: int) -> list[Issue]:
        """Of a step before the kernel: those whose iteration has begun."""
        return [i for i in self.order if self.stages[i.op] <= step]

    def epilogue(self, step: int) -> list[Issue]:
        """Of the step so many behind the trip count: those whose iteration is still open."""
        return [i for i in self.order if self.stages[i.op] > step]


def steps_of(
    issues: Sequence[Issue],
    written: frozenset[str],
    begins: str | None,
    awaited: Callable[[Issue], str | None],
) -> Steps:
    """The steps of an agent whose kernel issues these.

    `begins` is the product that a step is to begin with, `awaited` the product that an operation
    waits for.
    """
    stages = {i.op: i.at.stage for i in issues}
    places = {i.op: n for n, i in enumerate(issues)}
    flights: list[tuple[int, int]] = []
    for n, i in enumerate(issues):
        product = awaited(i)
        if product in places:
            lag = stages[i.op] - stages[product]
            flights.append((places[product], n + lag * len(issues)))
    cut = places.get(begins or "", 0)
    if _flying(flights, cut, len(issues)) > _flying(flights, 0, len(issues)):
        cut = 0
    for i in issues[:cut]:
        stages[i.op] -= 1
    if min(stages[op] for op in written) < 0:
        stages = {op: stage + 1 for op, stage in stages.items()}
    return Steps((*issues[cut:], *issues[:cut]), stages, written)


def _flying(flights: Sequence[tuple[int, int]], cut: int, length: int) -> int:
    """Products in flight where steps of so many operations are cut before the one at `cut`."""
    return sum((awaited - cut) // length - (issued - cut) // length for issued, awaited in flights)
