"""A minimal set of reasons why an II is impossible.

    all ✗ ──► the solver's core ✗ ──► without half of it ✗ ──► ... ──► {slot tma, load -> mma}
                                                                        each of them needed

Every reason has a literal that switches its constraints. The solver, asked under the assumption of
all of them, names a subset that is enough; deletion then switches off some at a time (halves, then
smaller parts, at last one by one): what can go without the II becoming possible goes for good. A
reason whose absence alone lets a schedule in is needed, and stays so as others go, since fewer
constraints never make a schedule impossible. So the set that is left is minimal: drop any one of
it and a schedule exists.

J. Chinneck and E. Dravnieks, "Locating minimal infeasible constraint sets in linear programs"
(1991); deletion in parts after A. Zeller's delta debugging.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from stretto.exact.case import Case, Solution
from stretto.exact.explanation import Possibility
from stretto.exact.model import Model
from stretto.exact.reasons import Reason, all_reasons, of_edge
from stretto.exact.solving import Clock, run
from stretto.problem import strong_components

CORE_SHARE = 0.005
"""Of the work, what asking for a core may take: it is quick or of no use."""
SUSPECT_SHARE = 0.02
"""Likewise, what one likely set may take."""
SHARE = 0.2
"""Of the work that is left, what one test may take."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether an II is possible, and if not, why."""

    status: Possibility
    reasons: tuple[Reason, ...] = ()
    minimal: bool = False
    """Whether dropping any one is proved to make a schedule possible."""
    solution: Solution | None = None


def find_conflict(
    case: Case, ii: int, clock: Clock, suspects: Sequence[Collection[Reason]] = ()
) -> Judgement:
    """Why this II is impossible; `suspects` are sets that may be enough, likely ones first."""
    question = _Question(case, ii, clock)
    everything = all_reasons(case)
    enough: list[Reason] | None = None
    for suspected in (*suspects, *_likely(case)):
        if question.refuted(suspected, SUSPECT_SHARE):
            enough = [r for r in everything if r in suspected]
            break
    if enough is None:
        answer = question.refuted(everything)
        if answer is None:
            return Judgement("undecided")
        if not answer:
            found = question.solution
            if found is not None and case.knotted(found):
                return Judgement("undecided")
            return Judgement("possible", solution=found)
        enough = question.core(everything)
    return _reduce(question, enough)


def _likely(case: Case) -> Iterator[Collection[Reason]]:
    """Small sets that often are enough: a slot alone; a recurrence with the slots on its way."""
    for slot in case.slots:
        yield [Reason("slot", slot)]
    after: list[list[int]] = [[] for _ in range(case.size)]
    for src, dst, _ in case.edges:
        after[src].append(dst)
    for part in strong_components(after):
        inside = set(part)
        steps = [k for k, (src, dst, _) in enumerate(case.edges) if {src, dst} <= inside]
        if steps:
            held = {use.slot for i in part for use in case.loop.ops[i].vector.uses}
            slots = [Reason("slot", slot) for slot in case.slots if slot in held]
            yield slots + [of_edge(case, k) for k in steps]


def still_refuted(case: Case, ii: int, reasons: Collection[Reason], clock: Clock) -> bool:
    """Whether reasons that forbid one II are known to forbid another as well."""
    return bool(_Question(case, ii, clock).refuted(reasons))


def _reduce(question: _Question, enough: list[Reason]) -> Judgement:
    """Drop what is not needed, in parts that halve."""
    needed: set[Reason] = set()
    minimal = True
    size = max(1, len(enough) // 2)
    while True:
        at = 0
        while at < len(enough):
            part = [r for r in enough[at : at + size] if r not in needed]
            rest = [r for r in enough if r not in part]
            answer = question.refuted(rest) if part else False
            if answer:
                enough = rest
                continue
            if answer is None and size == 1:
                minimal = False
            elif len(part) == 1 and answer is False:
                needed.add(part[0])
            at += size
        if size == 1:
            return Judgement("impossible", tuple(enough), minimal)
        size //= 2


@dataclass(slots=True)
class _Question:
    """One model, asked again and again with other literals on."""

    case: Case
    ii: int
    clock: Clock
    solution: Solution | None = None
    """The last schedule that an answer found."""
    model: Model = field(init=False)

    def __post_init__(self) -> None:
        self.model = Model(self.case, self.ii, conditional=True)

    def refuted(self, active: Collection[Reason], share: float = SHARE) -> bool | None:
        """Whether these reasons alone make the II impossible; None: not decided in time."""
        if self.clock.over:
            return None
        fixed = self.model.cp.clone()
        for reason, literal in self.model.literals.items():
            fixed.add_bool_and([literal if reason in active else ~literal])
        solver, status = run(fixed, self.clock, share)
        if status == cp_model.INFEASIBLE:
            return True
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            self.solution = self.model.read(solver.value)
            return False
        return None

    def core(self, active: Sequence[Reason]) -> list[Reason]:
        """A part of the reasons that the solver finds enough; all of them where it finds none."""
        assumed = self.model.cp.clone()
        literals = {r: self.model.literals[r] for r in active if r in self.model.literals}
        assumed.add_assumptions(list(literals.values()))
        solver, status = run(assumed, self.clock, CORE_SHARE)
        if status != cp_model.INFEASIBLE:
            return list(active)
        named = set(solver.sufficient_assumptions_for_infeasibility())
        found = [r for r in active if r in literals and literals[r].index in named]
        return found if self.refuted(found) else list(active)
