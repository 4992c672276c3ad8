"""The verdict on a schedule, loop by loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stretto.report.text import notes, wrapped
from stretto.solution import ScheduleAnalysis
from stretto.verify import Violation

SCHEMA = "stretto.verification/1"


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """What the verifier says of one loop's schedule."""

    loop: str
    machine: str
    analysis: ScheduleAnalysis
    violations: tuple[Violation, ...]
    warnings: tuple[str, ...]

    @property
    def legal(self) -> bool:
        """Whether nothing is violated."""
        return not self.violations

    def to_json(self) -> dict[str, Any]:
        """As an entry of `loops` in a verification document."""
        return {
            "name": self.loop,
            "machine": self.machine,
            "success": self.legal,
            "ii": self.analysis.ii,
            "legal": self.legal,
            "violations": [v.to_json() for v in self.violations],
            "warnings": list(self.warnings),
        }

    def to_text(self) -> list[str]:
        """For people."""
        head = f"{self.loop} on {self.machine}, II {self.analysis.ii}: "
        if self.legal:
            head += "legal"
        else:
            count = len(self.violations)
            head += f"not legal, {count} violation{'s' if count > 1 else ''}"
        lines = wrapped(head)
        for violation in self.violations:
            lines += wrapped(f"{violation.rule}: {violation.message}", "  ", "    ")
        return lines + notes(self.warnings)
