"""A simulation for people and for programs.

gemm on b200-pipes, specialized, 9 iterations: equal to sequential execution
  II 256: 256 cycles an iteration; prologue 512 cycles, epilogue 956
  schedule: a new one by the cost-based generator
  op      agent  cycle 0, a column is 42 cycles
  load_a  tma    0·····1·····2·····3·····      the digit is the iteration that issues, modulo 10
  mma     mma    ···············0·····1··      # two or more iterations in one column
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from stretto.report.text import WIDTH, columns, notes, printable, wrapped
from stretto.simulate import Simulation
from stretto.solution.words import counted

SCHEMA = "stretto.simulation/1"

NAME_WIDTH = 24
"""Longer names are cut beside the timeline."""
SHOWN = 12
"""Violations that the text shows; JSON has all."""
INTERVALS = 6
"""Whole intervals that the timeline shows beyond the prologue."""


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """What one loop's program did."""

    simulation: Simulation
    warnings: tuple[str, ...] = ()
    origin: str = ""
    """Where its schedule comes from, where that is known."""

    @property
    def success(self) -> bool:
        """Whether everything is as it should be."""
        return self.simulation.success

    def to_json(self) -> dict[str, Any]:
        """As an entry of `loops` in a simulation document."""
        s = self.simulation
        return {
            "name": s.loop,
            "machine": s.machine,
            "success": s.success,
            "mode": s.mode,
            "iterations": s.iterations,
            "equal": s.equal,
            "deadlock": s.deadlock,
            "waiting": [
                asdict(blocked) | {"agents": list(blocked.agents)} for blocked in s.blocked
            ],
            "ii": s.ii,
            "schedule": self.origin,
            "stage_count": s.stage_count,
            "cycles_per_iteration": s.cycles_per_iteration,
            "prologue_cycles": s.prologue_cycles,
            "epilogue_cycles": s.epilogue_cycles,
            "violations": [asdict(v) | {"ops": list(v.ops)} for v in s.violations],
            "timeline": [asdict(issued) for issued in s.issued],
            "warnings": list(self.warnings),
        }

    def to_text(self) -> list[str]:
        """For people."""
        s = self.simulation
        times = counted(s.iterations, "iteration")
        verdict = "equal to" if s.equal else "not equal to"
        head = f"{s.loop} on {s.machine}, {s.mode}, {times}: {verdict} sequential execution"
        lines = wrapped(head)
        pace = "no steady state"
        if s.cycles_per_iteration is not None:
            pace = f"{s.cycles_per_iteration} cycles an iteration"
        prologue = "never full" if s.prologue_cycles is None else f"{s.prologue_cycles} cycles"
        shape = f"II {s.ii}: {pace}; prologue {prologue}, epilogue {s.epilogue_cycles}"
        lines += wrapped(shape + ("; deadlock" if s.deadlock else ""), "  ", "  ")
        if self.origin:
            lines += wrapped(f"schedule: {self.origin}", "  ", "    ")
        for violation in s.violations[:SHOWN]:
            often = f" ({violation.times} times)" if violation.times > 1 else ""
            lines += wrapped(f"{violation.name}: {violation.message}{often}", "  ", "    ")
        if len(s.violations) > SHOWN:
            lines.append(f"  and {len(s.violations) - SHOWN} violations more")
        return lines + self._timeline() + notes(self.warnings)

    def _timeline(self) -> list[str]:
        """Who issues what, and when: one row an operation, agents together."""
        s = self.simulation
        if not s.issued:
            return []
        end = min(s.issued[-1].cycle + 1, s.ii * (s.stage_count - 1 + INTERVALS))
        agents = list(dict.fromkeys(issued.agent for issued in s.issued))
        order = sorted({(agents.index(i.agent), i.op): None for i in s.issued})
        first = {i.op: i.cycle for i in reversed(s.issued)}
        order.sort(key=lambda row: (row[0], first[row[1]]))
        names = {op: _cut(op) for _, op in order}
        room = WIDTH - 6 - max(map(len, names.values())) - max(len(a) for a in (*agents, "agent"))
        scale = max(1, -(-end // room))
        rows = [["op", "agent", f"from cycle 0, a column is {scale} cycle{'s' * (scale > 1)}"]]
        for number, op in order:
            row = ["·"] * (-(-end // scale))
            for issued in s.issued:
                if issued.op == op and issued.cycle < end:
                    at = issued.cycle // scale
                    row[at] = str(issued.iteration % 10) if row[at] == "·" else "#"
            rows.append([names[op], agents[number], "".join(row)])
        return columns(rows, "  ")


def _cut(name: str) -> str:
    name = printable(name)
    return name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 1] + "…"
