"""The II search: quickly to an upper end, then again wherever a smaller II may be had.

    MII ✗                                 first at the bound itself: most loops end here
    MII ✗ +1 ✗ +2 ✗ +4 ✓                 quick tries, ever wider apart, give an upper end
             +3 ✗                         those between halve what is left
    MII ✗ thorough                        at the bound again, with more work
    MII ✗✗✗✗✗✗✗✗✗✗✓                      every II below the best by Rau's own method, upward: what
                                          a textbook's scheduler finds, is found
                  ✗✗ below the best       what work is left: down from the best
    MII ✗✗✗✗✗✗✗✗                          and every II not tried yet, in order

Feasibility is not monotone in the II. The wide steps only find an upper end soon; whatever is left
out by them is tried afterwards, and IIs that the work allowed does not reach are said to be
untried. The one threshold that is monotone, the bytes that any schedule needs, refuses whole runs
of IIs with a proof. All limits are counts, so the same loop always gets the same answer; the work
that a loop is worth grows with its size, ever more slowly, and with `--effort`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stretto.deadline import OverdueError
from stretto.generate.improve import eased, honoured, improve
from stretto.generate.ladder import Attempt
from stretto.generate.ladder.rau import Refiner, Work, never_fits
from stretto.generate.ladder.refusals import TIME, WORK, Stuck
from stretto.generate.ladder.rings import bytes_needed, least_bytes
from stretto.generate.problem import IMPROVE, TIES, Problem
from stretto.generate.seating.partial import Partial
from stretto.problem.paths import earliest
from stretto.problem.registers import RULE
from stretto.solution import Bounds, Refusal, Schedule

AT_THE_BOUND, QUICK, MIDDLE = 40, 16, 40
"""Steps for each operation of a try: at the bound, to find an upper end, between the two."""
LEAN = 120
"""Steps for each operation of a small loop to save stages at the II found."""
THOROUGH, PRESS = 4, 8
"""The part of what is left after that that goes to the bound, and then to halving again."""
FROM_ABOVE = 5
"""Tries down from the best II that may fail in a row; placements of the textbook's that may break
a rule that it does not know."""
ARMS = 10
"""What the arms take, in steps of refinement: so many for each operation squared."""

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
    stuck: Mapping[Refusal, Stuck] = field(default_factory=dict[Refusal, Stuck])
    """What refusals are about of which the reason is yet to be worked out."""


def search(
    problem: Problem,
    bounds: Bounds,
    serial_ii: Callable[[], int],
    progress: Progress | None = None,
) -> Found:
    """The smallest II at which a placement is found, from the MII to the last that is allowed.

    That is the serial II, unless another is given; it is asked for where the bound does not do.
    """
    first = bounds.mii if problem.wants(TIES) else bounds.ungrouped
    limit = problem.options.max_ii
    last = serial_ii if limit is None else lambda: limit
    refiner, work = Refiner(problem, first), Work(problem.work)
    hunt = _Hunt(problem, progress or (lambda _: None), last, refiner, work)
    stopped = overdue = False
    try:
        enough = enough_memory(problem, first, last)
        if enough > first:
            hunt.refuse(starved(problem, first, min(enough - 1, last())))
        if enough == first or enough <= last():
            hunt.gallop(enough)
            hunt.improve(enough)
            hunt.fill(enough)
            hunt.lean()
    except KeyboardInterrupt:
        stopped = True
    except OverdueError:
        overdue = True
    untried = TIME_OVER if overdue else WORK_OVER
    stuck = {one.refusal(TIME if overdue else WORK): one for one in hunt.left_stuck()}
    refused = hunt.account(first, hunt.end - 1, untried)
    return Found(hunt.best, hunt.ii, refused, stopped, overdue, stuck)


def leaned(problem: Problem, schedule: Schedule) -> Schedule:
    """A schedule from elsewhere, with fewer stages, bytes and registers where moves find that."""
    starts = [schedule.starts[name] for name in problem.names]
    fused = [[problem.index[name] for name in group] for group in schedule.fused]
    hunt = _Hunt(
        problem, lambda _: None, lambda: schedule.ii, Refiner(problem, schedule.ii), Work(0)
    )
    hunt.best = Partial.of(problem, schedule.ii, starts, fused, IMPROVE)
    hunt.lean()
    return hunt.best.schedule


@dataclass(slots=True)
class _Hunt:
    """The best placement so far, and why each other II was refused."""

    problem: Problem
    progress: Progress
    last: Callable[[], int]
    """The last II that is allowed."""
    refiner: Refiner
    work: Work
    best: Partial | None = None
    ii: int | None = None
    refused: dict[int, Refusal] = field(default_factory=dict[int, Refusal])
    stuck: dict[int, Stuck] = field(default_factory=dict[int, Stuck])
    """Likewise, where it is yet to be worked out."""
    swept: set[int] = field(default_factory=set[int])
    """Of those, the ones that only Rau's own method looked at."""

    @property
    def end(self) -> int:
        """The first II that nobody needs to try: the best so far, or one beyond the last."""
        return self.last() + 1 if self.ii is None else self.ii

    def refuse(self, refusal: Refusal) -> None:
        self.refused[refusal.ii] = refusal
        self.stuck.pop(refusal.ii, None)
        self.progress(refusal)

    def postpone(self, ii: int, stuck: Stuck) -> None:
        """Why an attempt was stuck is worked out if the II stays refused in the end."""
        self.stuck[ii] = stuck
        self.swept.discard(ii)
        self.refused.pop(ii, None)
        self.progress(stuck.refusal(WORK))

    def attempt(self, ii: int, steps: int, *, arms: bool = False) -> bool:
        """Whether so many steps find a placement at this II; it is then the best."""
        alone = never_fits(self.problem, ii)
        if alone is not None:
            self.refuse(alone)
            return False
        attempt = self._try(ii, steps, arms)
        if self._take(ii, attempt.placement or self._eased(attempt)):
            return True
        if attempt.refusal is not None:
            self.refuse(attempt.refusal)
        elif attempt.stuck is not None:
            self.postpone(ii, attempt.stuck)
        elif attempt.placement is not None:
            pinned = [self.problem.names[i] for i in self.problem.pinned]
            why = f"no placement was found with {', '.join(f'`{p}`' for p in pinned)} as pinned"
            self.refuse(Refusal(ii, why, rung=IMPROVE, op=pinned[0], limit="pin"))
        return False

    def _eased(self, attempt: Attempt) -> Partial | None:
        """A placement for which registers do, from a complete one for which they do not."""
        if attempt.refusal is None or attempt.refusal.limit != RULE:
            return None
        return eased(self.problem, attempt.partial) if attempt.partial.complete else None

    def _try(self, ii: int, steps: int, arms: bool) -> Attempt:
        """Refinement; and where the arms may see what it does not, the whole ladder."""

        def refine(_: Problem, at: int) -> Attempt:
            most = max(steps, self.problem.size)
            work = Work(most)
            attempt = self.refiner.refine(at, work)
            self.work.spend(most - work.left)
            return attempt

        if self.problem.wants("rau") and not arms:
            return refine(self.problem, ii)
        from stretto.generate.ladder.climb import climb  # noqa: PLC0415 - few loops need the arms

        self.work.spend(ARMS * self.problem.size**2)
        return climb(self.problem, ii, refine)

    def gallop(self, first: int) -> None:
        """Quick tries: wider and wider to the first that succeeds, then halving back."""
        size = self.problem.size
        failed, gap = first - 1, 1
        found = self.attempt(first, AT_THE_BOUND * size)
        while not found:
            failed = max(first, failed)
            if failed == self.last():
                return
            tried = min(first + gap, self.last())
            found = self.attempt(tried, QUICK * size)
            failed, gap = failed if found else tried, 2 * gap
        best = self.end
        while failed + 1 < best and self.work.left > 0:
            middle = (failed + best) // 2
            if self.attempt(middle, MIDDLE * size):
                best = middle
            else:
                failed = middle

    def improve(self, first: int) -> None:
        """What is left of the work: at the bound, up from it, then down from the best."""
        if self.end <= first:
            return
        if self.attempt(first, self.work.left // THOROUGH, arms=self.affords_arms):
            return
        self.press(first)
        self.sweep(first)
        failures, ii = 0, self.end - 1
        each = self.work.left // 2 // FROM_ABOVE
        while ii > first and self.work.left > 0 and failures < FROM_ABOVE:
            found = self.attempt(ii, each, arms=self.affords_arms and failures == 0)
            failures = 0 if found else failures + 1
            ii -= 1

    def press(self, first: int) -> None:
        """Halving again between the bound and the best, each time by one long plan by start."""
        failed = first
        most = self.work.left // PRESS
        work = Work(most)
        while work.left > 0 and self.problem.wants("rau"):
            if failed + 1 >= self.end:
                break
            middle = (failed + self.end) // 2
            if not self._take(middle, self.refiner.by_start(middle, work)):
                failed = middle
        self.work.spend(most - max(0, work.left))

    def _take(self, ii: int, found: Partial | None) -> bool:
        """Whether something was found at an II; it is then the best."""
        if found is not None and self.problem.pinned:
            found = honoured(self.problem, found)
        if found is not None:
            self.best, self.ii = found, ii
            self.progress(ii)
        return found is not None

    def sweep(self, first: int) -> None:
        """Rau's own method at every II below the best, upward: where it ends first, so do we.

        It knows neither budgets of memory nor pins; where what it finds is refused again and
        again, it has nothing to say.
        """
        if not self.problem.wants("rau"):
            return
        refused = 0
        for ii in range(max(first, self.end - self.problem.swept), self.end):
            known = self.refused.get(ii)
            if known is not None and known.proved:
                continue
            found = self.refiner.textbook(ii)
            if found is None:
                continue
            if isinstance(found, Stuck):
                if not self._looked_at(ii):
                    self.stuck[ii] = found
                    self.swept.add(ii)
                continue
            if not isinstance(found, Refusal) and self._take(ii, found):
                return
            refused += 1
            if refused == FROM_ABOVE:
                return

    @property
    def affords_arms(self) -> bool:
        """Whether the arms may see what refinement does not, and the work left suffices."""
        return _needs_arms(self.problem) and ARMS * self.problem.size**2 < self.work.left

    def fill(self, first: int) -> None:
        """Tries of every II that nobody looked at, in order: the first found is the best."""
        for ii in range(first, self.end):
            if self.work.left <= 0:
                return
            if not self._looked_at(ii) and self.attempt(ii, MIDDLE * self.problem.size):
                return

    def left_stuck(self) -> list[Stuck]:
        """What is yet to be worked out below the best II."""
        return [one for ii, one in self.stuck.items() if ii < self.end]

    def _looked_at(self, ii: int) -> bool:
        """Whether more than Rau's own method looked at an II."""
        return ii in self.refused or (ii in self.stuck and ii not in self.swept)

    def lean(self) -> None:
        """The best placement at the II found that a little work comes to."""
        if self.best is None:
            return
        plans = self.problem.wants("rau") and not self.problem.pinned
        if self.problem.wants(IMPROVE):
            heart = self.refiner.heart(self.best)
            self.best = improve(self.problem, self.best, heart, self.shorter if plans else None)
        elif plans:
            self.best = self.shorter(self.best)

    def shorter(self, placement: Partial) -> Partial:
        """What plans of fewer stages make of a placement, with buffers that live no longer."""
        found = self.refiner.leaner(placement, Work(LEAN * self.problem.worth))
        return self.refiner.tightened(found)

    def account(self, first: int, last: int, untried: str) -> tuple[Refusal, ...]:
        """A refusal for every II from the first to the last; those not tried say why."""
        limit = WORK if untried == WORK_OVER else TIME
        self.refused |= {one.ii: one.refusal(limit) for one in self.left_stuck()}
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


def _needs_arms(problem: Problem) -> bool:
    """Whether the loop has what seating by cycle alone does not see."""
    fusable = any(len(members) > 1 for members in problem.fusion.alike.values())
    return fusable or problem.staged or any(problem.pending)


# Memory: the one threshold that is monotone in the II ------------------------------------
#
# II    256   512   768   1,024     copies that dependences force only fall as the II grows,
# smem   ✗     ✗     ✓      ✓       so the first II that fits may be bisected


def _fits(problem: Problem, ii: int) -> bool:
    """Whether the bytes that any schedule needs fit.

    Earliest starts are as far apart as the longest path between them, or farther: what they need
    is at least that, and takes one sweep to know where the paths take one for each storage.
    """
    budgets = problem.rooms.budgets.items()
    needed = bytes_needed(problem, ii, earliest(problem.between, ii, problem.deadline))
    if any(needed.get(space, 0) > budget for space, budget in budgets):
        needed = least_bytes(problem, ii)
    return all(needed.get(space, 0) <= budget for space, budget in budgets)


def enough_memory(problem: Problem, first: int, last_allowed: Callable[[], int]) -> int:
    """The first II at which the bytes that any schedule needs fit.

    A path of latency l over distance d to a reader at distance r makes a life of (r - d) × II + l
    plus its completion, so r - d + ceil((l + completion) / II) copies: a number that only falls as
    the II grows, as does the largest of them. So this threshold may be bisected.
    """
    if not problem.rotating or _fits(problem, first):
        return first
    last = last_allowed()
    if not _fits(problem, last):
        return last + 1
    low, high = first, last
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(problem, middle) else (middle, high)
    return high


def starved(problem: Problem, first: int, through: int) -> Refusal:
    """Why every II from the first through the last of a run is refused."""
    needed = least_bytes(problem, first)
    space, budget = next((s, b) for s, b in problem.rooms.budgets.items() if needed.get(s, 0) > b)
    reason = (
        f"any schedule at II {first} needs {needed[space]:,} bytes of {space}; "
        f"the budget is {budget:,}"
    )
    return Refusal(first, reason, through=through, proved=True, limit=space)
