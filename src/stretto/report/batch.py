"""A batch: a row for every loop, and what all of them come to.

{"id": "5b0e…", "source": "loops.jsonl:12", "loop": "tiny12", "success": true, "ii": 15, ...}

1,000 loops in 12.3 s (81 a second)
  scheduled  997, every schedule verified; 990 proved optimal, 985 at the MII
  failed       3
    tests/bad.json: error: is empty
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any

from stretto.report import columns, machines_assumed, wrapped
from stretto.solution import ScheduleAnalysis

if TYPE_CHECKING:
    from stretto.schemas.many import BatchDocument

ROW = "stretto.batch-row/1"
SCHEMA = "stretto.batch/1"

TOLD = 10
"""Failures that a summary tells; the rows have them all."""
COLUMNS = (
    *(
        "number",
        "source",
        "index",
        "loop",
        "success",
        "machine",
        "machine_why",
        "unit",
        "generator",
        "ops",
        "ii",
        "mii",
    ),
    *("limiter", "lower_bound", "optimal", "stages", "pipeline_depth", "smem", "tmem"),
    *("registers", "overdue", "kept", "seconds", "error"),
)
"""Of the table: what a row says in one word."""


def scheduled(
    found: ScheduleAnalysis, on: Mapping[str, object], kept: bool, told: list[str]
) -> dict[str, Any]:
    """What a row says of a loop that was scheduled, or for which no schedule was found."""
    bounds, proof, pressure = found.bounds, found.proof, found.pressure
    memory = {row.space: row.used for row in found.memory}
    return {
        "loop": found.loop,
        "success": found.success,
        **on,
        "generator": found.generator,
        "rule": found.rule,
        "ii": found.ii,
        "mii": None if bounds is None else bounds.mii,
        "limiter": None if bounds is None else bounds.limiter,
        "lower_bound": None if proof is None else proof.lower_bound,
        "optimal": proof is not None and proof.optimal,
        "stages": found.stage_count,
        "pipeline_depth": found.pipeline_depth,
        "memory": memory,
        "registers": None if pressure is None else pressure.peak,
        "starts": found.starts,
        "fused": [list(group) for group in found.fused],
        "overdue": found.overdue,
        "kept": kept,
        "errors": [] if found.success else [refused(found)],
        "warnings": told,
    }


def refused(found: ScheduleAnalysis) -> str:
    """Why there is no schedule, in a line."""
    why = found.refused[-1].reason if found.refused else "no reason is known"
    return f"error: {found.loop}: no schedule was found: {why}"


def failed(loop: str | None, errors: list[str]) -> dict[str, Any]:
    """What a row says of an input or a loop that came to nothing."""
    return {"loop": loop, "success": False, "errors": errors}


def cells(row: dict[str, Any]) -> list[str]:
    """A row as the table has it."""
    memory: dict[str, int] = row.get("memory", {})
    more = {
        "ops": len(row.get("starts", {})) or "",
        "smem": memory.get("smem", ""),
        "tmem": memory.get("tmem", ""),
        "error": row["errors"][0] if row["errors"] else "",
    }
    found = {**row, **more}
    return [_cell(found.get(name)) for name in COLUMNS]


def _cell(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(slots=True)
class BatchSummary:
    """What the rows come to, counted as they come."""

    loops: int = 0
    scheduled: int = 0
    optimal: int = 0
    at_the_mii: int = 0
    overdue: int = 0
    kept: int = 0
    found_before: int = 0
    """Rows that an earlier run wrote."""
    seconds: float = 0.0
    """Of this run."""
    failures: list[str] = field(default_factory=list[str])
    """The first of them."""
    notes: list[str] = field(default_factory=list[str])
    machines: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Loops, by their machine and why it is theirs."""

    @property
    def failed(self) -> int:
        """Loops and inputs that came to nothing."""
        return self.loops - self.scheduled

    @property
    def success(self) -> bool:
        """Whether every loop has a schedule."""
        return not self.failed

    @property
    def rate(self) -> float:
        """Loops a second of this run."""
        return (self.loops - self.found_before) / self.seconds if self.seconds > 0 else 0.0

    def add(self, row: dict[str, Any], before: bool = False) -> None:
        """Count a row."""
        self.loops += 1
        self.found_before += before
        if "machine" in row:
            self.machines[row["machine"], row.get("machine_why", "")] += 1
        if row["success"]:
            self.scheduled += 1
            self.optimal += row["optimal"]
            self.at_the_mii += row["ii"] == row["mii"]
            self.overdue += row["overdue"]
            self.kept += row["kept"] and not before
        elif len(self.failures) < TOLD:
            source, error = row["source"], row["errors"][0]
            self.failures.append(error if error.startswith(source) else f"{source}: {error}")

    def to_json(self) -> BatchDocument:
        """The document of `stretto batch --json`."""
        return {
            "schema": SCHEMA,
            "success": self.success,
            "loops": self.loops,
            "scheduled": self.scheduled,
            "failed": self.failed,
            "optimal": self.optimal,
            "at_the_mii": self.at_the_mii,
            "overdue": self.overdue,
            "kept": self.kept,
            "found_before": self.found_before,
            "seconds": self.seconds,
            "failures": self.failures,
            "notes": self.notes,
        }

    def to_text(self) -> list[str]:
        """For people."""
        fresh = self.loops - self.found_before
        rate = f" ({self.rate:,.0f} a second)" if fresh and self.rate >= 1 else ""
        head = f"{fresh:,} {'loop' if fresh == 1 else 'loops'} in {self.seconds:.1f} s{rate}"
        if self.found_before:
            head += f"; {self.found_before:,} were there already"
        told = f"every schedule verified; {self.optimal:,} proved optimal"
        rows = [("scheduled", f"{self.scheduled:,}", f"{told}, {self.at_the_mii:,} at the MII")]
        if self.kept:
            rows.append(("kept", f"{self.kept:,}", "of them from the store, verified again"))
        if self.overdue:
            rows.append(("overdue", f"{self.overdue:,}", "of them cut off by the time limit"))
        if self.failed:
            rows.append(("failed", f"{self.failed:,}", ""))
        lines = [
            head,
            *columns(rows, "  ", right=(1,)),
            *machines_assumed(self.machines.elements()),
        ]
        for text in self.failures:
            lines += wrapped(text, "    ", "  ")
        if self.failed > len(self.failures):
            lines.append(f"    and {self.failed - len(self.failures):,} more")
        return [*lines, *(line for note in self.notes for line in wrapped(f"note: {note}", "  "))]


def time_left(share: float, seconds: float) -> str:
    """An estimate, after this share of the input in so many seconds; "": too early to tell."""
    if not 0 < share <= 1 or seconds < 1:
        return ""
    left = ceil(seconds * (1 - share) / share)
    if left < 100:
        return f"{left} s left"
    return f"{ceil(left / 60)} min left" if left < 6000 else f"{left / 3600:.1f} h left"
