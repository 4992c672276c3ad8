"""The smallest II, then the best schedule at it, each step with what is proved of it.

    MII ✗ ✗ ✗ ✓            from the bound upward: refuted, refuted, ..., found
            │
            └─► stages ─► bytes ─► registers      each minimized with those before it held

A schedule from elsewhere ends the climb where it stands: below its II everything is to be refuted,
and it is the first solution of every step after. Where the solver can neither refute nor find, the
II is left undecided, the climb goes on, and the gap is part of the answer.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf

from stretto.deadline import OverdueError
from stretto.exact import II, Event, Limits, Progress
from stretto.exact.case import Case, Solution
from stretto.exact.conflict import find_conflict, still_refuted
from stretto.exact.goal import SHARE, Goal, Parts
from stretto.exact.instants import ask
from stretto.exact.model import Model
from stretto.exact.objectives import GOALS
from stretto.exact.ranges import exclusive, first_possible
from stretto.exact.reasons import Reason, brief
from stretto.exact.runs import first_legal
from stretto.exact.solving import Clock, Outcome, solve
from stretto.exact.windows import Windows
from stretto.solution import Objective, Refusal, Schedule

NEAR = 1000
"""`shorten` ends where what was found is within one part in so many of what was not."""
UNDECIDED = 4
"""IIs that it may leave undecided."""
SMALL = 64
"""Operations up to which a smaller II is looked for before each is asked about."""
TRIED = 0.5
"""Units of work for each of these."""
ALONE = 16
"""IIs that are so few that most of the work is kept to ask about each, by all rules."""
FEW = 24
"""Reasons that are few enough to make a model that is quicker than the whole."""
RUN = 0.75
"""Of the work that is left, what a run of IIs may take: each II alone takes longer."""
APART = 1.0
"""Units of work on slots that cannot be shared, where each II can also be asked about by starts."""
PART = 8
"""IIs of a run: one in so many of the first, since ever more are refuted ever harder."""
STREAK = 3
"""Refutations in a row after which their reasons are looked for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known in the end."""

    schedule: Schedule | None
    lower_bound: int
    """No schedule has a smaller II."""
    refused: tuple[Refusal, ...]
    objectives: tuple[Objective, ...]
    stopped: bool
    """Whether the user stopped it."""
    limited: bool
    """Whether a limit left something undecided."""


def optimize(
    case: Case,
    lower_bound: int,
    last: int,
    hint: Schedule | None = None,
    goals: tuple[Goal, ...] = GOALS,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Answer:
    """The best schedule with an II from `lower_bound` (proved elsewhere) to `last`."""
    clock = Clock(limits or Limits(), case.deadline)
    first = None if hint is None else case.solution(hint)
    search = _Search(case, clock, progress or (lambda _: None), first)
    try:
        search.climb(lower_bound, last)
        if search.best is not None:
            search.told.append(search.of_ii(search.best.ii))
            for goal in goals:
                if goal.name != II:
                    search.told.append(search.minimize(goal))
    except KeyboardInterrupt:  # between two runs of the solver
        search.clock.stopped = True
        if search.best is not None and not search.told:
            search.told.append(search.of_ii(search.best.ii))
    limited = not search.clock.stopped and (
        search.undecided or any(not row.optimal for row in search.told)
    )
    return Answer(
        None if search.best is None else case.schedule(search.best),
        search.lower,
        tuple(search.refused),
        tuple(search.told),
        search.clock.stopped,
        limited,
    )


def shorten(
    case: Case, lower: int, best: int, each: Limits, stages: int | None = None
) -> Schedule | None:
    """A schedule of a smaller II than the best, by halves; None: the solver was found to have none.

        MII 1425                                    1809, the best
         ├──────────────── 1617 ✗ ───────────────────┤
                            ├──────── 1713 ✓ ────────┤
                            ├─ 1665 ✗ ─┤

    `each` is what one II may cost, and UNDECIDED of them all; `stages` how many are enough. Nothing
    is claimed of IIs at which none was found.
    """
    found: Schedule | None = None
    ii = low = lower
    spent = 0.0
    while low < best and spent < UNDECIDED * each.work:
        clock = Clock(each, case.deadline)
        contracted = stages is None and case.contractible
        outcome = solve(Model(case, ii, stages=stages, contracted=contracted), clock)
        spent += clock.work
        if clock.stopped:
            raise KeyboardInterrupt
        if outcome.solution is not None:
            found, best = case.schedule(outcome.solution), ii
        else:
            low = ii + 1
        if best - low <= low // NEAR:
            break
        ii = (low + best) // 2
    return found


@dataclass(slots=True)
class _Search:
    case: Case
    clock: Clock
    progress: Progress
    best: Solution | None
    lower: int = 1
    undecided: bool = False
    likely: Solution | None = None
    """What may be a schedule of the first II that no run of them refuted."""
    streak: int = 0
    """How many IIs in a row the model of all rules refuted."""
    reasons: tuple[Reason, ...] | None = None
    """What refuted the last IIs; None: not looked for."""
    refused: list[Refusal] = field(default_factory=list[Refusal])
    told: list[Objective] = field(default_factory=list[Objective])
    held: list[tuple[Goal, int]] = field(default_factory=list[tuple[Goal, int]])
    """Objectives that were minimized, and what no later schedule may exceed."""

    # The II ---------------------------------------------------------------------------------------

    def climb(self, first: int, last: int) -> None:
        """Refute or find, from the bound upward."""
        self.lower = first
        end = last + 1 if self.best is None else min(last + 1, self.best.ii)
        with suppress(OverdueError):  # while a model was made
            if self.clock.limits.runs:
                self._raise(end)
            end = self._shortened(end)
        for ii in range(self.lower, end):
            try:
                over = self.clock.over
                if not over and self._found(ii):
                    return
            except OverdueError:  # while a model was made
                over = True
            if over:
                through = end - 1 if end - 1 > ii else None
                self.refused.append(
                    Refusal(ii, "not decided: a limit was reached before", through, limit="work")
                )
                self.undecided = True
                return

    def _shortened(self, end: int) -> int:
        """The best II, after a look for a smaller one: what is found need not be refuted."""
        known = self.best is None or self.likely is not None
        if known or self.lower >= end or self.case.size > SMALL:
            return end
        assert self.best is not None
        each = replace(self.clock.limits, work=min(TRIED, self.clock.left / (4 * UNDECIDED)))
        found = shorten(self.case, self.lower, end, each)
        self.clock.work += UNDECIDED * each.work
        if found is not None:
            self.best = self.case.solution(found)
        return min(end, self.best.ii)

    def _raise(self, end: int) -> None:
        """Refute whole runs of IIs, ever longer ones, by what recurrences and slots forbid."""
        low = self.lower
        while low < end and not self.clock.over:
            last = min(end - 1, 2 * low)
            self.progress(Event(II, low, low, None if self.best is None else self.best.ii))
            first = self._apart(low, last)
            if first > low:
                through = first - 1 if first - 1 > low else None
                why = "refuted by recurrences and holds that cannot share "
                why += ", ".join(exclusive(self.case)) or "anything"
                self.refused.append(Refusal(low, why, through, proved=True))
                low = self.lower = first
            if first <= last:
                first = self._run(low, last)
            if first <= last:
                return
            low = first

    def _apart(self, low: int, last: int) -> int:
        """Refute the first of a run by recurrences and slots: at length only if nobody else can."""
        by_starts = Windows(self.case, low).worth
        spare = self.clock.part(SHARE, APART if by_starts else inf)
        first = first_possible(self.case, low, last, spare, 1.0)
        self.clock = spare.renewed(self.clock.limits, self.clock.deadline)
        return first

    def _run(self, low: int, last: int) -> int:
        """Refute the first of a run by groups, rings and registers, where there are any."""
        problem = self.case.problem
        if not (problem.members or problem.registers.bound or self.case.bound_rings):
            return low
        if low == last:  # its own model says more
            return low
        spare = self.clock.part(RUN if last - low >= ALONE else SHARE)
        first, end = low, low - 1
        while end < first <= last and not spare.over:  # all so far is refuted
            end = min(last, first + first // PART)
            first, self.likely = first_legal(self.case, first, end, spare)
        self.clock = spare.renewed(self.clock.limits, self.clock.deadline)
        if first > low:
            through = first - 1 if first - 1 > low else None
            why = "refuted by dependences, holds, groups, rings and registers"
            self.refused.append(Refusal(low, why, through, proved=True))
            self.lower = first
        return first

    def _found(self, ii: int) -> bool:
        """Whether there is a schedule at this II, which then is the best; else what is known."""
        best = None if self.best is None else self.best.ii
        self.progress(Event(II, ii, self.lower, best))
        if self._refuted_again(ii):
            return False
        by_instants = ask(self.case, ii, self.clock, SHARE)
        if by_instants.refuted:
            self._refute(ii, "refuted by recurrences and holds, start by start")
            return False
        model = Model(self.case, ii, contracted=self.case.contractible)
        likely = by_instants.hint or self.likely
        if likely is not None and likely.ii == ii:
            model.hint(likely)
        outcome = solve(model, self.clock, SHARE)
        if outcome.solution is not None:
            self.best = outcome.solution
            return True
        if outcome.status == "refuted":
            self._refute(ii, "the solver refutes it")
            self.streak += 1
        else:
            self.streak = 0
            why = "the solver could not decide it in time"
            if outcome.knotted:
                why = "what the solver found has operations of one cycle that wait for each other"
            self.refused.append(Refusal(ii, why, limit="work"))
            self.undecided = True
        return False

    def _refute(self, ii: int, reason: str) -> None:
        self.refused.append(Refusal(ii, reason, proved=True))
        if ii == self.lower:
            self.lower = ii + 1

    def _refuted_again(self, ii: int) -> bool:
        """Whether what refuted the IIs before refutes this one too.

        After some refutations in a row it pays to know their reasons: a few of them make a model
        that is solved at once, and what a part of the rules forbids, all of them forbid.
        """
        left = ALONE if self.best is None else self.best.ii - ii
        if self.reasons is None and self.streak >= STREAK and left >= ALONE:
            spare = self.clock.part(SHARE)
            found = find_conflict(self.case, ii, spare).reasons
            self.reasons = found if len(found) <= FEW else ()
            self.clock = spare.renewed(self.clock.limits, self.clock.deadline)
        if not self.reasons or not still_refuted(self.case, ii, self.reasons, self.clock):
            return False
        self._refute(ii, f"refuted by {brief(self.case, self.reasons)}")
        return True

    def of_ii(self, ii: int) -> Objective:
        """What is known of the II."""
        return Objective(II, ii, self.lower, ii == self.lower)

    # What comes after -----------------------------------------------------------------------------

    def minimize(self, goal: Goal) -> Objective:
        """One objective, with those before it held."""
        assert self.best is not None
        value = goal.value(self.case, self.case.schedule(self.best))
        row = self._settled(goal, value)
        self.held.append((goal, row.value))
        return row

    def _settled(self, goal: Goal, value: int) -> Objective:
        """What is known of it, by its floor or by the solver; this value is met."""
        assert self.best is not None
        if self.case.deadline.over:
            return Objective(goal.name, value, 0, optimal=False)
        floor = min(value, goal.floor(self.case, self.best.ii))
        if value == floor:
            return Objective(goal.name, value, value, optimal=True)
        try:
            if goal.counts_stages and self._fewer(goal, value, floor):
                value = goal.value(self.case, self.case.schedule(self.best))
                return Objective(goal.name, value, value, optimal=True)
            value = goal.value(self.case, self.case.schedule(self.best))
            if goal.parts is not None:
                return self._parted(goal, goal.parts, value, floor)
            return self._minimized(goal, value, floor)
        except OverdueError:  # while a model was made
            value = goal.value(self.case, self.case.schedule(self.best))
            return Objective(goal.name, value, floor, optimal=False)

    def _fewer(self, goal: Goal, value: int, floor: int) -> bool:
        """Whether the best schedule, or a better one that is found, is proved to have the fewest.

        One stage less is mostly refuted, and sooner than a minimum is proved: its windows are
        narrow.
        """
        while value > floor:
            model = self._model(goal, value - 1, hint=False)  # what is at hand would only mislead
            outcome = solve(model, self.clock, goal.share)
            if outcome.solution is None:
                return outcome.status == "refuted"
            self.best = outcome.solution
            value = goal.value(self.case, self.case.schedule(self.best))
        return True

    def _minimized(self, goal: Goal, value: int, floor: int) -> Objective:
        """What the solver makes of it; this value is met, and none is below the floor."""
        assert self.best is not None
        best = self.best
        model = self._model(goal, value)
        expression = goal.expression(model, value)
        self.progress(Event(goal.name, value, floor, best.ii))
        outcome = solve(
            model,
            self.clock,
            goal.share,
            expression,
            lambda found, bound: self.progress(Event(goal.name, found, max(bound, floor), best.ii)),
        )
        return self._objective(goal, outcome, value, floor)

    def _parted(self, goal: Goal, parts: Parts, value: int, floor: int) -> Objective:
        """What is found and refuted by asking for less: first one less, then half of what is open.

        Where half stays undecided, more may be found; where one less does, only the floor is left
        to be raised.
        """
        assert self.best is not None
        asked: list[int] = []
        low, high = floor, value - 1
        most = high
        while low <= high and not self.clock.over:
            self.progress(Event(goal.name, value, floor, self.best.ii))
            outcome = self._at_most(goal, parts, most, asked)
            if outcome.solution is not None:
                self.best = outcome.solution
                value = goal.value(self.case, self.case.schedule(outcome.solution))
                high = value - 1
            elif outcome.status == "refuted":
                low = floor = most + 1
            elif most < high == value - 1:
                low = most + 1
            else:
                high = most - 1
            most = (low + high) // 2
        return Objective(goal.name, value, floor, optimal=value == floor)

    def _at_most(self, goal: Goal, parts: Parts, most: int, asked: list[int]) -> Outcome:
        """What the solver says to a value, part by part: what is too large is asked about next."""
        while True:
            model = self._model(goal, most, hint=False)
            parts.keep(model, most, asked)
            outcome = solve(model, self.clock, goal.share)
            if outcome.solution is None or self._keeps(outcome.solution, (goal, most)):
                return outcome
            worst = parts.worst(self.case, outcome.solution)
            if worst in asked:  # a knot was undone by another schedule, which keeps to less
                return Outcome("undecided")
            asked.append(worst)

    def _keeps(self, solution: Solution, *bounded: tuple[Goal, int]) -> bool:
        """Whether a schedule is no worse than what is held, and than this."""
        schedule = self.case.schedule(solution)
        return all(goal.value(self.case, schedule) <= most for goal, most in (*self.held, *bounded))

    def _model(self, goal: Goal, value: int, *, hint: bool = True) -> Model:
        """All that is legal and no worse than the best schedule in what is held."""
        assert self.best is not None
        bounded = [*self.held, (goal, value)]
        stages = min((most for one, most in bounded if one.counts_stages), default=None)
        late = any(one.late for one, _ in bounded)
        model = Model(self.case, self.best.ii, stages=stages, late=late)
        if hint:
            model.hint(self.best)
        for one, most in self.held:
            if not one.counts_stages:  # the model keeps to that
                model.cp.add(one.expression(model, most) <= most)
        return model

    def _objective(self, goal: Goal, outcome: Outcome, value: int, floor: int) -> Objective:
        if outcome.solution is not None:
            found = goal.value(self.case, self.case.schedule(outcome.solution))
            if found < value:
                self.best, value = outcome.solution, found
            floor = max(floor, min(outcome.bound, value))
        return Objective(goal.name, value, floor, optimal=value == floor)
