"""A schedule for people: how fast, what limits it, where everything stands and what it takes.

four_op on blackwell: II 15 is the MII, limited by slot tp_smem_wr: optimal
  1 stage, pipeline depth 2; cost-based (worth pipelining: it holds tma, tc_and_mma)
  op     stage  cycle  start  slots held
  load       0      0      0  tma 8, tp_smem_wr 8          held for 8 cycles from its start
  read       0      8      8  tp_smem_rd 7 from +1         from one cycle after its start
  storage  space  bytes × ring    lifetime
  a_tile   smem   8,192 × 2 = 16,384    17                  two iterations keep a copy at once
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stretto.loop import Loop, Op, Use, texts
from stretto.machine import Machine
from stretto.report import NO_BREAK, columns, cut, notes, wrapped
from stretto.resources.prepare import resolve
from stretto.solution import (
    Objective,
    Placement,
    Refusal,
    ScheduleAnalysis,
    at_the_mii,
    counted,
    limited,
    no_schedule,
    sought,
    spilling,
    the_mii,
)
from stretto.verify import Violation

VERIFICATION = "stretto.verification/1"

SHOWN = 5
"""Refusals that a failure shows unless asked for all."""


@dataclass(frozen=True, slots=True)
class Report:
    """The schedule of one loop on one machine, or why there is none; all views are made of it."""

    analysis: ScheduleAnalysis
    loop: Loop
    """As it was scheduled, or not yet classified: what its operations hold is then looked up."""
    machine: Machine
    notes: Sequence[str] = ()
    """What the front end noted of the loop."""
    verbose: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What was asked for, by the names that `stretto.schedule` has for it."""

    @property
    def success(self) -> bool:
        """Whether there is a schedule."""
        return self.analysis.success

    def to_json(self) -> dict[str, Any]:
        """As an entry of `loops` in a schedule document."""
        from stretto.report.whole import entry  # noqa: PLC0415 - text needs none

        return entry(self)

    def to_text(self) -> list[str]:
        """For people."""
        analysis = self.analysis
        head = f"{analysis.loop} on {analysis.machine}: "
        if analysis.success:
            lines = wrapped(head + self._verdict() + self._spills(), "", "  ")
            lines += [*self._shape(), *self._ops(), *self._storages(), *self._memory()]
            lines += self._refused() if self.verbose else []
        else:
            lines = wrapped(head + self.failure(), "", "  ")
            lines += wrapped(f"{analysis.generator} ({analysis.rule})", "  ", "  ")
            lines += self._refused()
        return lines + notes((*texts(analysis.warnings), *self.notes))

    # A schedule -------------------------------------------------------------------------------

    def _verdict(self) -> str:
        ii, bounds, proof = self.analysis.ii, self.analysis.bounds, self.analysis.proof
        assert ii is not None
        if bounds is None:
            return f"II {ii}"
        if ii == bounds.mii:
            return f"{at_the_mii(bounds)}: optimal"
        gap = f"II {ii}, {ii - bounds.mii} above the MII {bounds.mii}{limited(bounds)}"
        if proof is not None and proof.method == "memory":
            return f"II {ii}: optimal, no smaller II has the memory (MII {bounds.mii})"
        if proof is not None and proof.optimal:
            return f"II {ii}: optimal, every smaller II is proved impossible (MII {bounds.mii})"
        if proof is not None and proof.lower_bound > bounds.mii:
            return f"{gap}: not proved optimal; no II below {proof.lower_bound} is possible"
        return f"{gap}: not proved optimal"

    def _spills(self) -> str:
        """That it spills, and what would help: to look longer, or to let less be alive at once."""
        told, a = spilling(self.analysis), self.analysis
        if not told:
            return ""
        asked = {row.name for row in a.proof.objectives} if a.proof is not None else set[str]()
        if "registers" in asked:
            return f"; {told} (a larger II keeps fewer alive: --ii {a.ii} and up)"
        return f"; {told} (--effort thorough looks longer for one that does not)"

    def _shape(self) -> list[str]:
        a = self.analysis
        stages = counted(a.stage_count, "stage")
        text = f"{stages}, pipeline depth {a.pipeline_depth}; {a.generator} ({a.rule})"
        rows = a.proof.objectives if a.proof is not None else ()
        lines = wrapped(text, "  ", "  ")
        if len(rows) > 1:
            told = ", ".join(_objective(row) for row in rows[1:])
            lines += wrapped(f"at this II: {told}", "  ", "  ")
        return lines

    def _ops(self) -> list[str]:
        names = ["op", "stage", "cycle", "start"] + (["rung", "arm"] if self.verbose else [])
        rows = [[*names, "slots held"]]
        loop = self.resolved()
        rows += [self._op(placed, loop.op(placed.op)) for placed in self.analysis.placements]
        return columns(rows, "  ", right=(1, 2, 3))

    def resolved(self) -> Loop:
        """The loop with its costs; LoopError where the machine does not know an operation."""
        return self.loop if self.loop.resolved else resolve(self.loop, self.machine).loop

    def _op(self, placed: Placement, op: Op) -> list[str]:
        row = [cut(placed.op), str(placed.stage), str(placed.cycle), str(placed.start)]
        if self.verbose:
            row += [placed.rung, placed.arm]
        held = [_hold(use) for use in op.vector.uses if use.duration]
        group = next((g for g in self.analysis.fused if placed.op in g), ())
        others = [cut(name) for name in group if name != placed.op]
        fused = f"; fused with {', '.join(others)}" if others else ""
        return [*row, (", ".join(held) or "none") + fused]

    def _storages(self) -> list[str]:
        if not self.analysis.storages:
            return []
        rows = [["storage", "space", "bytes", "ring", "in all", "lifetime"]]
        for s in self.analysis.storages:
            total = f"{s.bytes * s.ring_depth:,}"
            cells = [f"{s.bytes:,}", f"× {s.ring_depth}", total, str(s.lifetime)]
            rows.append([cut(s.name), s.space, *cells])
        return columns(rows, "  ", right=(2, 3, 4))

    def _memory(self) -> list[str]:
        """Bytes of every space against its budget, and registers."""
        told: list[str] = []
        for space in self.analysis.memory:
            if space.budget is not None:
                told.append(f"{space.space} {space.used:,} of {space.budget:,} bytes")
            elif space.used:
                told.append(f"{space.space} {space.used:,} bytes, no limit")
        pressure = self.analysis.pressure
        if pressure is not None:
            of = f" of {pressure.budget}" if pressure.budget is not None else ""
            spills = ", which spills" if spilling(self.analysis) else ""
            told.append(f"register pressure {pressure.peak}{of} at cycle {pressure.cycle}{spills}")
        return wrapped("; ".join(told), "  ", "  ") if told else []

    # None -------------------------------------------------------------------------------------

    def failure(self) -> str:
        """Why there is no schedule."""
        bounds, refused = self.analysis.bounds, self.analysis.refused
        text = no_schedule(refused, "found")
        if self.analysis.generator == "serial" and refused:
            text = f"no serial schedule: {refused[-1].reason}"
        return text if bounds is None else f"{text}; {the_mii(bounds)}"

    def _refused(self) -> list[str]:
        refused = self.analysis.refused
        shown = refused if self.verbose else refused[-SHOWN:]
        left = len(refused) - len(shown)
        rows: list[tuple[str, str]] = []
        for refusal in shown:
            rows.append((f"II {_tried(refusal)}", _why(refusal)))
            if refusal.op:
                rows.append(("", _sought(refusal)))
        lines = columns(rows, "  ")
        return [f"  {left} more before these (-v shows all)", *lines] if left else lines


def _objective(row: Objective) -> str:
    """A value and what is known of it."""
    from stretto.exact.objectives import goal_of  # noqa: PLC0415 - where something is proved

    count = goal_of(row.name).count(row.value)
    if row.optimal:
        return f"{count} proved fewest"
    return f"{count}, no fewer than {row.lower_bound:,}"


def tried(what: Refusal | int) -> str:
    """One line about an II that was tried: why it was refused, or that a schedule was found."""
    if isinstance(what, int):
        return f"II {what}: a schedule"
    return f"II {_tried(what)}: {_why(what)}"


def _tried(refusal: Refusal) -> str:
    if refusal.through is None or refusal.through == refusal.ii:
        return str(refusal.ii)
    return f"{refusal.ii} to {refusal.through}"


def _why(refusal: Refusal) -> str:
    proved = "proved impossible: " if refusal.proved else ""
    rung = f"{refusal.rung}: " if refusal.rung else ""
    return proved + rung + refusal.reason


def _sought(refusal: Refusal) -> str:
    """Where the operation was sought, and what stood there; which it is, the reason says."""
    told = [f"{name} {text}" for name, text in sought(refusal) if name != "operation"]
    return "; ".join(told)


def _hold(use: Use) -> str:
    """A slot, how long, and where it differs from the common case how much and when."""
    text = f"{use.slot} {use.duration}"
    if use.occupancy != 1:
        text += f" × {use.occupancy}"
    if use.offset:
        text += f" from +{use.offset}"
    return text.replace(" ", NO_BREAK)


# The verdict on a schedule ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """What the verifier says of one loop's schedule."""

    loop: str
    machine: str
    analysis: ScheduleAnalysis
    violations: tuple[Violation, ...]
    warnings: tuple[str, ...]

    @property
    def success(self) -> bool:
        """Whether nothing is violated."""
        return not self.violations

    def to_json(self) -> dict[str, Any]:
        """As an entry of `loops` in a verification document."""
        return {
            "name": self.loop,
            "machine": self.machine,
            "success": self.success,
            "ii": self.analysis.ii,
            "legal": self.success,
            "violations": [v.to_json() for v in self.violations],
            "warnings": list(self.warnings),
        }

    def to_text(self) -> list[str]:
        """For people."""
        head = f"{self.loop} on {self.machine}, II {self.analysis.ii}: "
        wrong = f"not legal, {counted(len(self.violations), 'violation')}"
        lines = wrapped(head + ("legal" if self.success else wrong))
        for violation in self.violations:
            lines += wrapped(f"{violation.rule}: {violation.message}", "  ", "    ")
        return lines + notes(self.warnings)
