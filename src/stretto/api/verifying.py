"""`stretto.verify`: is this schedule legal?

stretto.verify(loop, schedule)  ──►  .legal, .violations with their numbers, .report()
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import ClassVar

from stretto.api.given import given, target_of
from stretto.api.problem import made_ready
from stretto.api.results import Result
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.report.schedule import VERIFICATION, VerificationReport
from stretto.resources.prepare import Prepared
from stretto.solution import ScheduleAnalysis
from stretto.solution.words import counted
from stretto.verify import Violation
from stretto.verify import verify as violations_of


@dataclass(frozen=True, repr=False)
class VerifyResult(Result):
    """The verdict on a schedule."""

    SCHEMA: ClassVar[str] = VERIFICATION

    analysis: ScheduleAnalysis
    violations: tuple[Violation, ...]
    """Every one, rule by rule; none: the schedule is legal."""
    problem: Prepared
    notes: tuple[str, ...] = ()
    """What the front end noted of the loop."""

    @property
    def legal(self) -> bool:
        """Whether nothing is violated."""
        return not self.violations

    def view(self) -> VerificationReport:
        """What text and JSON are made by."""
        loop, machine = self.problem.loop.name, self.problem.machine.name
        warnings = self.problem.notes + self.notes
        return VerificationReport(loop, machine, self.analysis, self.violations, warnings)

    def line(self) -> str:
        """Legal or not."""
        on = f"{self.problem.loop.name} on {self.problem.machine.name}"
        verdict = "legal" if self.legal else counted(len(self.violations), "violation")
        return f"Verification {on}: II {self.analysis.ii}, {verdict}"


def verify(
    loop: Loop | Prepared,
    schedule: ScheduleAnalysis | str | PathLike[str],
    machine: Machine | str | None = None,
    *,
    max_stages: int | None = None,
) -> VerifyResult:
    """Every violation of the rules of legality by a schedule, counted out in absolute time.

    The schedule is what `schedule` returned, or the path of a document (stretto.schedule/1) with
    an entry for the loop. The machine is the one given, else that of the schedule where `schedule`
    made it, else the one the loop names, else `blackwell`.
    """
    ready = made_ready(loop, machine or target_of(schedule, loop))
    analysis = given(schedule, ready.loop)
    found = violations_of(ready.loop, ready.machine, analysis, max_stages=max_stages)
    return VerifyResult(analysis, found, ready)
