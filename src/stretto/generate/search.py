"""The II search: quickly to an upper end, then thoroughly wherever a smaller II may be had.

    MII ✗ +1 ✗ +2 ✗ +4 ✓                 quick tries, ever wider apart, give an upper end
             +3 ✗                         those between halve what is left
    MII … ✗✗✗✗      ✗✗ below the best     thorough tries: up from the bound, down from the best

Feasibility is not monotone in the II, so a failure proves nothing about the IIs around it: the wide
steps only find an upper end soon, and close to the bound and to the best every II is tried by
itself. The one threshold that is monotone, the bytes that any schedule needs, refuses whole runs
of IIs with a proof. All limits are counts, so the same loop always gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stretto.generate.attempt import Attempt
from stretto.generate.ladder import climb
from stretto.generate.partial import Partial
from stretto.generate.problem import Problem
from stretto.generate.rau import LARGE, refine
from stretto.generate.rings import least_bytes
from stretto.schedule import Bounds, Refusal

FROM_BELOW_EFFORT, FROM_ABOVE_EFFORT = 12, 4
"""Learned plans of a thorough try."""
FROM_BELOW = 4
"""Thorough tries up from the lower bound."""
FROM_ABOVE = 5
"""Thorough tries down from the best II that may fail in a row."""
WORK = 3000
"""Operations × thorough tries that one loop is worth; large loops get none."""
COARSE = 100
"""Large loops are searched in steps of this part of the bound."""

Progress = Callable[[Refusal | int], None]
"""Told of every refusal, and of every II at which a schedule was found."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the search came to."""

    placement: Partial | None
    ii: int | None
    refused: tuple[Refusal, ...]
    """One for each II (or run of IIs) below the answer, in order."""


def search(
    problem: Problem, bounds: Bounds, serial_ii: int, progress: Progress | None = None
) -> Found:
    """The smallest II at which a placement is found, from the MII to the last that is allowed."""
    last = problem.options.max_ii if problem.options.max_ii is not None else serial_ii
    hunt = _Hunt(problem, progress or (lambda _: None))
    first = bounds.mii
    enough = _enough_memory(problem, first, last)
    if enough > first:
        hunt.refuse(_starved(problem, first, min(enough - 1, last)))
    if enough <= last:
        hunt.gallop(enough, last)
    if hunt.ii is not None:
        hunt.improve(enough, hunt.ii)
    below = last + 1 if hunt.ii is None else hunt.ii
    refused = tuple(r for ii, r in sorted(hunt.refused.items()) if ii < below)
    return Found(hunt.best, hunt.ii, refused)


@dataclass(slots=True)
class _Hunt:
    """The best placement so far, and why each other II was refused."""

    problem: Problem
    progress: Progress
    best: Partial | None
    ii: int | None
    refused: dict[int, Refusal]

    def __init__(self, problem: Problem, progress: Progress) -> None:
        self.problem = problem
        self.progress = progress
        self.best = None
        self.ii = None
        self.refused = {}

    def refuse(self, refusal: Refusal) -> None:
        self.refused[refusal.ii] = refusal
        self.progress(refusal)

    def attempt(self, ii: int, tries: Callable[[Problem, int], Attempt]) -> bool:
        """Whether a placement is found at this II; it is then the best."""
        attempt = tries(self.problem, ii)
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
        while not self.attempt(min(first + gap, last), _quick):
            failed = min(first + gap, last)
            if failed == last:
                return
            gap = max(least, 2 * gap)
        best = self.ii or last
        while failed + least < best:
            middle = (failed + best) // 2
            if self.attempt(middle, _quick):
                best = middle
            else:
                failed = middle

    def improve(self, first: int, best: int) -> None:
        """Thorough tries: up from the bound, then down from the best, while they are worth it."""
        left = WORK // self.problem.size if self.problem.size <= LARGE else 0
        for ii in range(first, min(first + FROM_BELOW, best, first + left)):
            left -= 1
            if self.attempt(ii, _up):
                return
        failures = 0
        ii = best - 1
        while ii >= first + FROM_BELOW and left and failures < FROM_ABOVE:
            failures = 0 if self.attempt(ii, _down) else failures + 1
            left -= 1
            ii -= 1


def _quick(problem: Problem, ii: int) -> Attempt:
    """The ladder for loops with fusion, groups or depth limits; for others its first rung."""
    if (problem.size <= LARGE and _needs_arms(problem)) or not problem.wants("rau"):
        return climb(problem, ii, lambda p, i: refine(p, i, 0))
    return refine(problem, ii, 0)


def _up(problem: Problem, ii: int) -> Attempt:
    return climb(problem, ii, lambda p, i: refine(p, i, FROM_BELOW_EFFORT))


def _down(problem: Problem, ii: int) -> Attempt:
    return climb(problem, ii, lambda p, i: refine(p, i, FROM_ABOVE_EFFORT))


def _needs_arms(problem: Problem) -> bool:
    """Whether the loop has what seating by cycle alone does not see."""
    classes = [c for c in problem.fusion if c is not None]
    fusable = len(set(classes)) < len(classes)
    return fusable or bool(problem.members) or any(s is not None for s in problem.max_stage)


def _fits(problem: Problem, ii: int) -> bool:
    needed = least_bytes(problem, ii)
    return all(needed.get(space, 0) <= budget for space, budget in problem.budgets)


def _enough_memory(problem: Problem, first: int, last: int) -> int:
    """The first II at which the bytes that any schedule needs fit.

    A path of latency l over distance d to a reader at distance r makes a life of (r - d) × II + l
    plus its completion, so r - d + ceil((l + completion) / II) copies: a number that only falls as
    the II grows, as does the largest of them. So this threshold may be bisected.
    """
    if not problem.rotating or _fits(problem, first):
        return first
    if not _fits(problem, last):
        return last + 1
    low, high = first, last
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(problem, middle) else (middle, high)
    return high


def _starved(problem: Problem, first: int, through: int) -> Refusal:
    needed = least_bytes(problem, first)
    space, budget = next((s, b) for s, b in problem.budgets if needed.get(s, 0) > b)
    reason = (
        f"any schedule at II {first} needs {needed[space]:,} bytes of {space}; "
        f"the budget is {budget:,}"
    )
    return Refusal(first, reason, through=through, proved=True, limit=space)
