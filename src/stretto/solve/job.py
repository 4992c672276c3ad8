"""A loop to be scheduled, and the answers that are made of starts from anywhere.

starts  ──►  Job.verified  ──►  ScheduleAnalysis, or IllegalScheduleError: a bug found in time
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from stretto.deadline import Deadline
from stretto.errors import StrettoError
from stretto.generate import COST_BASED, EXACT, GENERATORS, SERIAL, Selection
from stretto.generate.problem import Problem
from stretto.loop import Note, Place
from stretto.machine import SPACES
from stretto.problem import apply
from stretto.solution import (
    Bounds,
    LateTable,
    Proof,
    Refusal,
    Schedule,
    ScheduleAnalysis,
    TableRow,
)
from stretto.solution.views import analyse
from stretto.verification import Violation, verify, verify_table

if TYPE_CHECKING:
    from stretto.generate.ladder.refusals import Stuck
    from stretto.generate.ladder.serial import SerialResult
    from stretto.generate.search import Found


class IllegalScheduleError(StrettoError):
    """A generator made a schedule that the verifier refuses: a bug of that generator."""

    def __init__(self, loop: str, generator: str, violations: Sequence[Violation]) -> None:
        self.generator = generator
        self.violations = tuple(violations)
        ours = generator in GENERATORS
        whose = "; this is a bug of Stretto, please report it with the loop" if ours else ""
        told = "".join(f"\n  {v.rule}: {v.message}" for v in self.violations)
        super().__init__(
            f"the {generator} generator made a schedule that is not legal{whose}{told}", loop
        )

    def __reduce__(
        self,
    ) -> tuple[type[IllegalScheduleError], tuple[str, str, tuple[Violation, ...]]]:
        return IllegalScheduleError, (self.loop, self.generator, self.violations)


@dataclass(frozen=True, slots=True)
class Job:
    """What every answer about one loop is made from."""

    problem: Problem
    bounds: Bounds
    chosen: Selection
    notes: tuple[Note, ...]
    finishing: float = 0.0
    """Seconds to leave for analysing and verifying what a search finds."""
    bugs: list[str] = field(default_factory=list[str])
    """What is to be told of schedules that the verifier refused."""
    stuck: dict[Refusal, Stuck] = field(default_factory=dict["Refusal", "Stuck"])
    """What refusals are about of which the reason is yet to be worked out."""

    @property
    def searches(self) -> bool:
        """Whether our search answers, which finds more where it is given more."""
        return self.chosen.generator != SERIAL and self.chosen.generator in GENERATORS

    def searching(self) -> Job:
        """The same, searched where the serial generator was chosen and has no answer."""
        if self.chosen.generator != SERIAL:
            return self
        rule = f"{self.chosen.rule}; there is no serial schedule"
        return replace(self, chosen=replace(self.chosen, generator=COST_BASED, rule=rule))

    def leaving_out(self, parts: AbstractSet[str]) -> Job:
        """The same without some parts of the search."""
        options = self.problem.options
        options = replace(options, without=options.without | parts)
        return replace(self, problem=replace(self.problem, options=options))

    @property
    def search_until(self) -> Deadline:
        """When a search is to end, so that there is time to verify what it found."""
        return self.problem.deadline.later(-self.finishing)

    def serially(
        self, result: SerialResult, refused: tuple[Refusal, ...] = (), told: str = ""
    ) -> ScheduleAnalysis:
        """The serial schedule; `told`: why, where another generator was chosen."""
        rule = self.chosen.rule + ("; fell back on the serial schedule" if told else "")
        said = (*result.warnings, told) if told else result.warnings
        return self.verified(
            replace(self.chosen, generator=SERIAL, rule=rule),
            self.problem.schedule(result.ii, result.starts),
            refused=refused,
            warnings=said,
        )

    def found(self, found: Found) -> ScheduleAnalysis:
        """What the search found."""
        placement = found.placement
        assert placement is not None
        names = self.problem.names
        return self.verified(
            self.chosen,
            placement.schedule,
            seated_by={names[i]: by for i, by in placement.seated_by.items()},
            refused=found.refused,
        )

    def _not_last(self, analysis: ScheduleAnalysis) -> tuple[Note, ...]:
        """That what is pending was not seated last; an error where that is asked for strictly.

        The arms of the ladder keep to it, and the serial generator tells of it by itself.
        """
        if analysis.generator == SERIAL:
            return ()
        told = tuple(
            f"`pending` of `{placed.op}` is not honoured: {placed.rung or EXACT} seats in no order"
            for placed, pending in zip(analysis.placements, self.problem.pending, strict=True)
            if pending and not placed.arm
        )
        if told and self.problem.options.strict:
            raise StrettoError(f"{'; '.join(told)} (strict)", analysis.loop)
        return tuple(Note(Place(analysis.loop), text) for text in told)

    def failure(self, refused: tuple[Refusal, ...]) -> ScheduleAnalysis:
        """No schedule, and why."""
        return ScheduleAnalysis(
            loop=self.problem.loop.name,
            machine=self.problem.machine.name,
            success=False,
            bounds=self.bounds,
            generator=self.chosen.generator,
            rule=self.chosen.rule,
            refused=refused,
            warnings=self.notes,
        )

    def verified(
        self,
        chosen: Selection,
        schedule: Schedule,
        *,
        seated_by: Mapping[str, tuple[str, str]] | None = None,
        refused: tuple[Refusal, ...] = (),
        warnings: tuple[str, ...] = (),
        proof: Proof | None = None,
        spilled: int = 0,
    ) -> ScheduleAnalysis:
        """The analysis of a schedule; IllegalScheduleError where the verifier refuses it.

        `spilled`: registers of a thread that are too many; such a schedule is not called optimal.
        """
        loop, machine, mii = self.problem.loop, self.problem.machine, self.bounds.mii
        analysis = analyse(
            loop,
            machine,
            schedule,
            seated_by=seated_by,
            bounds=self.bounds,
            proof=proof or known(schedule.ii, mii, refused),
            generator=chosen.generator,
            rule=chosen.rule,
            refused=refused,
            warnings=(*self.notes, *(Note(loop.at(), text) for text in warnings)),
        )
        if spilled:
            unproved = Proof(optimal=False, lower_bound=mii, method="none")
            analysis = replace(analysis, spilled=spilled, proof=unproved)
        violations = verify(loop, machine, analysis, max_stages=self.problem.options.max_stages)
        if violations:
            raise IllegalScheduleError(loop.name, chosen.generator, violations)
        return replace(
            analysis,
            warnings=(*analysis.warnings, *self._not_last(analysis)),
            table=LateTable(partial(self._table, analysis)),
        )

    def _table(self, analysis: ScheduleAnalysis) -> tuple[TableRow, ...]:
        """The reservation table that a schedule populates, verified."""
        problem, schedule = self.problem, analysis.schedule
        starts = [schedule.starts[name] for name in problem.names]
        fused = [[problem.index[name] for name in group] for group in schedule.fused]
        rows = apply(problem, schedule.ii, starts, fused).steps()
        violations = verify_table(problem.loop, problem.machine, replace(analysis, table=rows))
        if violations:
            raise IllegalScheduleError(problem.loop.name, analysis.generator, violations)
        return rows


def known(ii: int, mii: int, refused: tuple[Refusal, ...]) -> Proof:
    """What bound and proved refusals say of an II: optimal where nothing smaller is left."""
    lower, method = lower_bound(mii, refused)
    return Proof(True, lower, method) if ii <= lower else Proof(False, lower, "none")


def lower_bound(mii: int, refused: tuple[Refusal, ...]) -> tuple[int, str]:
    """The MII, raised by the refusals that are proofs and leave nothing between; and by what."""
    lower, method = mii, "bound"
    for refusal in refused:
        if refusal.proved and refusal.ii <= lower:
            lower = max(lower, refusal.last + 1)
            method = "memory" if refusal.limit in SPACES else "conflict"
    return lower, method
