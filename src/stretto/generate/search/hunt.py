"""The II search: quickly to an upper end, then again wherever a smaller II may be had.

    MII ✗ +1 ✗ +2 ✗ +4 ✓                 quick tries, ever wider apart, give an upper end
             +3 ✗                         those between halve what is left
    MII … ✗✗✗✗      ✗✗ below the best     thorough tries: up from the bound, down from the best
    MII ✗✗✗✗✗✗✗✗✗✗✗✗✗                     and every II not tried yet, in order, while work is left

Feasibility is not monotone in the II. The wide steps only find an upper end soon; whatever is left
out by them is tried afterwards, and IIs that the work allowed does not reach are said to be
untried. The one threshold that is monotone, the bytes that any schedule needs, refuses whole runs
of IIs with a proof. All limits are counts, so the same loop always gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stretto.deadline import OverdueError
from stretto.generate.ladder.attempt import Attempt
from stretto.generate.ladder.climb import climb
from stretto.generate.ladder.rau import never_fits, refine
from stretto.generate.problem import LARGE, Problem
from stretto.generate.search.memory import enough_memory, starved
from stretto.generate.seating.partial import Partial
from stretto.solution import Bounds, Refusal

AT_THE_BOUND, UP, DOWN = 24, 12, 4
"""Learned plans of a thorough try: at the bound itself, then up from it and down from the best."""
FROM_BELOW = 4
"""Thorough tries up from the lower bound."""
FROM_ABOVE = 5
"""Thorough tries down from the best II that may fail in a row."""
THOROUGH_WORK = 200_000
"""Thorough tries × operations squared that one loop is worth."""
QUICK_WORK = 3_000
"""Quick tries × operations that one loop is worth after the upper end is known."""
COARSE = 100
"""Large loops are searched in steps of this part of the bound."""

WORK_OVER = "not tried: the work allowed was spent elsewhere"
TIME_OVER = "not tried: the time limit came first"

Progress = Callable[[Refusal | int], None]
"""Told of every refusal, and of every II at which a schedule was found."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the search came to."""

    placement: Partial | None
    ii: int | None
    refused: tuple[Refusal, ...]
    """One for each II (or run of IIs) below the answer, in order; untried ones say so."""
    stopped: bool = False
    """Whether it was interrupted; this is then the best so far."""
    overdue: bool = False
    """Whether the time limit ended it; likewise."""


def search(
    problem: Problem, bounds: Bounds, serial_ii: int, progress: Progress | None = None
) -> Found:
    """The smallest II at which a placement is found, from the MII to the last that is allowed."""
    last = problem.options.max_ii if problem.options.max_ii is not None else serial_ii
    hunt = _Hunt(problem, progress or (lambda _: None))
    first = bounds.mii
    stopped = overdue = False
    try:
        enough = enough_memory(problem, first, last)
        if enough > first:
            hunt.refuse(starved(problem, first, min(enough - 1, last)))
        if enough <= last:
            hunt.gallop(enough, last)
            if not problem.options.quick:
                hunt.improve(enough, last)
                hunt.fill(enough, last)
    except KeyboardInterrupt:
        stopped = True
    except OverdueError:
        overdue = True
    below = last if hunt.ii is None else hunt.ii - 1
    untried = TIME_OVER if overdue else WORK_OVER
    return Found(hunt.best, hunt.ii, hunt.account(first, below, untried), stopped, overdue)


@dataclass(slots=True)
class _Hunt:
    """The best placement so far, and why each other II was refused."""

    problem: Problem
    progress: Progress
    best: Partial | None = None
    ii: int | None = None
    refused: dict[int, Refusal] = field(default_factory=dict[int, Refusal])

    def refuse(self, refusal: Refusal) -> None:
        self.refused[refusal.ii] = refusal
        self.progress(refusal)

    def attempt(self, ii: int, effort: int | None) -> bool:
        """Whether a placement is found at this II; it is then the best. No effort: a quick try."""
        alone = never_fits(self.problem, ii)
        if alone is not None:
            self.refuse(alone)
            return False
        attempt = _try(self.problem, ii, effort)
        if attempt.placement is not None:
            self.best, self.ii = attempt.placement, ii
            self.progress(ii)
            return True
        if attempt.refusal is not None:
            self.refuse(attempt.refusal)
        return False

    def gallop(self, first: int, last: int) -> None:
        """Quick tries: wider and wider to the first that succeeds, then halving back."""
        failed, gap = first - 1, 0
        least = 1 if self.problem.size <= LARGE else max(1, first // COARSE)
        while not self.attempt(min(first + gap, last), None):
            failed = min(first + gap, last)
            if failed == last:
                return
            gap = max(least, 2 * gap)
        best = self.ii or last
        while failed + least < best:
            middle = (failed + best) // 2
            if self.attempt(middle, None):
                best = middle
            else:
                failed = middle

    def improve(self, first: int, last: int) -> None:
        """Thorough tries: up from the bound, then down from the best, while they are worth it."""
        size = self.problem.size
        if size > LARGE:
            return
        best = last + 1 if self.ii is None else self.ii
        left = min(24, THOROUGH_WORK // size**2)
        for ii in range(first, min(first + FROM_BELOW, best, first + left)):
            left -= 1
            if self.attempt(ii, AT_THE_BOUND if ii == first else min(UP, 600 // size + 1)):
                return
        failures = 0
        ii = best - 1
        while ii >= first + FROM_BELOW and left > 0 and failures < FROM_ABOVE:
            failures = 0 if self.attempt(ii, min(DOWN, 600 // size + 1)) else failures + 1
            left -= 1
            ii -= 1

    def fill(self, first: int, last: int) -> None:
        """Quick tries of every II that nobody looked at, in order: the first found is the best."""
        if self.problem.size > LARGE:
            return
        left = QUICK_WORK // self.problem.size
        for ii in range(first, last + 1 if self.ii is None else self.ii):
            if left <= 0:
                return
            if ii not in self.refused:
                left -= 1
                if self.attempt(ii, None):
                    return

    def account(self, first: int, last: int, untried: str) -> tuple[Refusal, ...]:
        """A refusal for every II from the first to the last; those not tried say why."""
        told: list[Refusal] = []
        ii = first
        while ii <= last:
            refusal = self.refused.get(ii)
            if refusal is None:
                beyond = min((tried for tried in self.refused if tried > ii), default=last + 1)
                through = min(beyond, last + 1) - 1
                refusal = Refusal(ii, untried, through=through if through > ii else None)
            told.append(refusal)
            ii = (refusal.through or refusal.ii) + 1
        return tuple(told)


def _try(problem: Problem, ii: int, effort: int | None) -> Attempt:
    """The whole ladder; for a quick try of a loop that needs no arms, and if large, one rung."""
    plain = effort is None and (problem.size > LARGE or not _needs_arms(problem))
    if plain and problem.wants("rau"):
        return refine(problem, ii, 0)
    return climb(problem, ii, lambda p, i: refine(p, i, effort or 0))


def _needs_arms(problem: Problem) -> bool:
    """Whether the loop has what seating by cycle alone does not see."""
    fusable = any(len(members) > 1 for members in problem.fusion.alike.values())
    return fusable or bool(problem.members) or any(s is not None for s in problem.max_stage)
