"""One loop being scheduled: what every answer about it is made from, and verified by.

starts from anywhere  ──►  Job.verified  ──►  ScheduleAnalysis, or a bug of ours found in time
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stretto.deadline import Deadline
from stretto.errors import StrettoError
from stretto.generate.ladder.serial import SerialResult
from stretto.generate.problem import LARGE, Problem
from stretto.generate.select import SERIAL, Selection
from stretto.loop import Note
from stretto.machine import SPACES
from stretto.solution import Bounds, Proof, Refusal, Schedule, ScheduleAnalysis
from stretto.solution.views import analyse
from stretto.verify import Violation, verify

if TYPE_CHECKING:
    from stretto.generate.search import Found


class IllegalScheduleError(StrettoError):
    """A generator made a schedule that the verifier refuses: a bug of Stretto, not of its user."""

    def __init__(self, loop: str, generator: str, violations: Sequence[Violation]) -> None:
        self.generator = generator
        self.violations = tuple(violations)
        told = "".join(f"\n  {v.rule}: {v.message}" for v in self.violations)
        super().__init__(
            f"the {generator} generator made a schedule that is not legal; this is a bug of "
            f"Stretto, please report it with the loop{told}",
            loop,
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
        coarse = len(names) > LARGE
        told = f"more than {LARGE} operations: searched in coarse steps, without the arms"
        return self.verified(
            self.chosen,
            placement.schedule,
            warnings=(told,) if coarse and placement.ii > self.bounds.mii else (),
            seated_by={names[i]: by for i, by in placement.seated_by.items()},
            refused=found.refused,
        )

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
    ) -> ScheduleAnalysis:
        """The analysis of a schedule; IllegalScheduleError where the verifier refuses it."""
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
        violations = verify(loop, machine, analysis, max_stages=self.problem.options.max_stages)
        if violations:
            raise IllegalScheduleError(loop.name, chosen.generator, violations)
        return analysis


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
