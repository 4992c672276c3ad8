"""The search for the choice of agents whose schedule is shortest, with what proves it.

    bound    the MII on the machine whose warpgroups are `merged`: it holds for every choice
    quick    choices are scheduled, least handed over first, until one is at the bound
    prove    where none is, the solver raises the bound, then refutes the choices that are left

A schedule at the bound is optimal among all choices; so is one when no choice is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter

from stretto.agents.choices import Choice, Choices
from stretto.agents.groups import MOST, arithmetic, merged, with_groups
from stretto.agents.handover import Flows
from stretto.deadline import NEVER, Deadline, OverdueError
from stretto.errors import StrettoError
from stretto.exact import Limits, ProofOptions
from stretto.generate.problem import Options
from stretto.loop import Loop
from stretto.lower_bounds import compute_bounds
from stretto.machine import Machine
from stretto.resources.prepare import Prepared, prepare
from stretto.solution import ScheduleAnalysis, spilling
from stretto.solve import Progress, schedule_prepared

QUICKLY = 16
"""Choices in a row that are scheduled quickly without a gain, for one number of warpgroups."""
THOROUGHLY = 4
"""The best of these, which are scheduled with more work."""
PROVED = 64
"""Choices that are proved or refuted one by one, for one number of warpgroups."""
BOUND_WORK, PROOF_WORK = 8.0, 4.0
"""Units of the solver's work for the bound of all choices, and for one choice."""


@dataclass(frozen=True, slots=True)
class Search:
    """What was done for one number of warpgroups."""

    groups: int
    registers: int | None
    """Of each thread."""
    lower: int
    """No choice of agents has a smaller II."""
    ii: int | None
    """The best that was found, if any was better than that of fewer warpgroups."""
    scheduled: int
    """Choices that were scheduled."""
    complete: bool
    """Whether it is proved that no choice is better than the best of all numbers."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best choice, its schedule, and what is proved of it."""

    choice: Choice
    analysis: ScheduleAnalysis
    searches: tuple[Search, ...]
    stopped: bool
    """Whether the deadline or Ctrl-C ended the search."""
    seconds: float

    @property
    def lower(self) -> int:
        """No choice of agents has a smaller II."""
        return min(search.lower for search in self.searches)

    @property
    def optimal(self) -> bool:
        """Whether no choice of agents among those allowed has a shorter schedule."""
        return all(search.complete for search in self.searches)


def chosen(
    loop: Loop,
    machine: Machine,
    *,
    groups: int = MOST,
    deadline: Deadline = NEVER,
    progress: Progress | None = None,
) -> Found:
    """The best choice of agents for a loop, for at most so many warpgroups.

    OverdueError where the deadline comes before there is any schedule, KeyboardInterrupt where
    Ctrl-C does.
    """
    began = perf_counter()
    best = _Best(deadline, progress)
    searches: list[_Count] = []
    for count in range(1, groups + 1):
        flows = Flows(loop, with_groups(machine, count))
        if count > max(1, len(flows.free)):
            break
        searches.append(_Count(flows, count, prepare(loop, merged(machine, count))))
    stopped = True
    try:
        for search in searches:
            search.quickly(best)
            if search.tried and search.count > 1:
                _bound(searches, best)
                search.thoroughly(best)
        searches[0].thoroughly(best)
        for search in searches:
            search.proved(best)
        stopped = False
    except (OverdueError, KeyboardInterrupt):
        if best.found is None:
            raise
    if best.found is None or best.ii is None:
        told = f"no choice of agents on {machine.name} was found that keeps to the registers"
        raise StrettoError(f"{told} of a thread; smaller tiles take fewer", loop.name)
    told = tuple(search.told(best.ii) for search in searches)
    return Found(*best.found, told, stopped, perf_counter() - began)


def _bound(searches: list[_Count], best: _Best) -> None:
    """Raise the bounds: what bounds many warpgroups bounds fewer."""
    searches[-1].bounded(best)
    for search in searches:
        search.lower = max(search.lower, searches[-1].lower)


@dataclass(eq=False)
class _Best:
    """The best so far, of all numbers of warpgroups."""

    deadline: Deadline
    progress: Progress | None
    found: tuple[Choice, ScheduleAnalysis] | None = None
    ii: int | None = None

    def take(self, choice: Choice, found: ScheduleAnalysis) -> bool:
        """A schedule of a choice, if it is better, keeping to the registers; whether it is."""
        if not found.success or found.ii is None or spilling(found):
            return False
        if self.ii is not None and found.ii >= self.ii:
            return False
        self.found, self.ii = (choice, found), found.ii
        if self.progress is not None:
            self.progress(found.ii)
        return True

    def tried(
        self, ready: Prepared, effort: str, work: float = 0, most: int | None = None
    ) -> ScheduleAnalysis:
        """A schedule that beats the best, or has an II; with work for the solver, proved."""
        self.deadline.check()
        if most is None and self.ii is not None:
            most = self.ii - 1
        proof = ProofOptions("ii", Limits(work=work)) if work else None
        options = Options(max_ii=most, effort=effort, deadline=self.deadline)
        return schedule_prepared(ready, "auto", options, None, proof)


@dataclass(eq=False)
class _Count:
    """One number of warpgroups."""

    flows: Flows
    count: int
    merged: Prepared
    """The loop on the machine whose warpgroups are one."""
    lower: int = field(init=False)
    choices: Choices = field(init=False)
    left: Iterator[Choice] = field(init=False)
    """Choices that were not yet looked at."""
    tried: list[tuple[int, Choice]] = field(default_factory=list[tuple[int, Choice]])
    """Choices that were scheduled quickly, with the II that was found."""
    ii: int | None = None
    scheduled: int = 0
    bound_sought: int | None = None
    """The II for which the solver was asked for a bound of all choices."""
    refuted: bool = False
    """Whether every choice that may be better was refuted."""

    def __post_init__(self) -> None:
        self.lower = compute_bounds(self.merged.loop, self.merged.machine).mii
        serial = 1 + sum(op.completion for op in self.flows.costs.ops)
        self.choices = Choices(self.flows, self.count, serial)
        self.left = iter(self.choices)

    def quickly(self, best: _Best) -> None:
        """Schedule choices that may be better than the best."""
        if best.ii is not None:
            self.choices.limit = best.ii
        since = 0
        while since < QUICKLY and self.lower < self.choices.limit:
            choice = next(self.left, None)
            if choice is None:
                return
            found = best.tried(choice.ready, "quick")
            since = 0 if self._taken(best, choice, found) else since + 1
            self.tried.append((found.ii or self.choices.limit, choice))

    def bounded(self, best: _Best) -> None:
        """Raise the bound of all choices, as far as the solver can."""
        if best.ii is None or self.lower >= best.ii or self.bound_sought == best.ii:
            return
        self.bound_sought = best.ii
        found = best.tried(self.merged, "quick", BOUND_WORK)
        if _refuted(found):
            self.lower = best.ii
        elif found.proof is not None:
            self.lower = max(self.lower, found.proof.lower_bound)

    def thoroughly(self, best: _Best) -> None:
        """Schedule the most promising at the bound, then with more work."""
        promising = [choice for _, choice in sorted(self.tried, key=lambda row: row[0])]
        for effort, most in (("quick", self.lower), ("normal", None)):
            for choice in promising[:THOROUGHLY]:
                if best.ii is None or max(self.lower, choice.mii) < best.ii:
                    self._taken(best, choice, best.tried(choice.ready, effort, most=most))

    def proved(self, best: _Best) -> None:
        """Refute every choice that may still be better, or find what it has."""
        if best.ii is None or self.lower >= best.ii:
            return
        self.choices.limit = min(self.choices.limit, best.ii)
        settled, number = not self.choices.cut, 0
        for choice in chain((choice for _, choice in self.tried), self.left):
            if choice.mii >= best.ii:
                continue
            number += 1
            if number > PROVED:
                return
            found = best.tried(choice.ready, "normal", PROOF_WORK)
            settled &= _refuted(found) or (found.proof is not None and found.proof.optimal)
            self._taken(best, choice, found)
            if best.ii <= self.lower:
                return
        self.refuted = settled and not self.choices.cut

    def _taken(self, best: _Best, choice: Choice, found: ScheduleAnalysis) -> bool:
        self.scheduled += 1
        better = best.take(choice, found)
        if better and best.ii is not None:
            self.ii = self.choices.limit = best.ii
        return better

    def told(self, ii: int) -> Search:
        """What was done, where the best II of all is known."""
        registers = arithmetic(self.flows.machine).registers
        complete = self.lower >= ii or self.refuted
        return Search(self.count, registers, self.lower, self.ii, self.scheduled, complete)


def _refuted(found: ScheduleAnalysis) -> bool:
    """Whether it is proved that there is no schedule."""
    return not found.success and all(refusal.proved for refusal in found.refused)
