"""The verdict on a schedule, for people and for programs.

four_op on blackwell, II 14: not legal, 2 violations
  slot: cycle 0 holds 2 of tp_smem_wr, capacity 1 ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.machine import Machine
from stretto.report import assumption, notes, on_machine, wrapped
from stretto.solution import ScheduleAnalysis, counted
from stretto.verification import Violation

if TYPE_CHECKING:
    from stretto.schemas.verification import VerifiedLoop

VERIFICATION = "stretto.verification/1"


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """What the verifier says of one loop's schedule."""

    loop: str
    machine: Machine
    machine_why: str
    analysis: ScheduleAnalysis
    violations: tuple[Violation, ...]
    warnings: tuple[str, ...]

    @property
    def success(self) -> bool:
        """Whether nothing is violated."""
        return not self.violations

    def to_json(self) -> VerifiedLoop:
        """As an entry of `loops` in a verification document."""
        return {
            "name": self.loop,
            **on_machine(self.machine, self.machine_why),
            "success": self.success,
            "ii": self.analysis.ii,
            "legal": self.success,
            "violations": [v.to_json() for v in self.violations],
            "warnings": list(self.warnings),
        }

    def to_text(self) -> list[str]:
        """For people."""
        head = f"{self.loop} on {self.machine.name}, II {self.analysis.ii}: "
        wrong = f"not legal, {counted(len(self.violations), 'violation')}"
        lines = wrapped(head + ("legal" if self.success else wrong))
        told = assumption(self.machine.name, self.machine_why)
        lines += wrapped(told, "  ", "  ") if told else []
        for violation in self.violations:
            lines += wrapped(f"{violation.rule}: {violation.message}", "  ", "    ")
        return lines + notes(self.warnings)
