"""A program and its simulation, for people and for programs.

gemm on b200-pipes, specialized: II 256, 3 stages, 2 agents, 2 pipes, 0 mutexes
  agent  role  issues
  tma    tma   offset, load_a, load_b
  pipe   ring    depth  from    to
  pipe0  a_tile      4  load_a  mma

gemm on b200-pipes, specialized, 9 iterations: equal to sequential execution
  II 256: 256 cycles an iteration; prologue 512 cycles, epilogue 956
  schedule: a new one by the cost-based generator
  op      agent  cycle 0, a column is 42 cycles
  load_a  tma    0·····1·····2·····3·····      the digit is the iteration that issues, modulo 10
  mma     mma    ···············0·····1··      # two or more iterations in one column
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stretto.machine import Machine
from stretto.materialization import Consumer, Program, Waiter
from stretto.report import (
    Told,
    as_json,
    assumed_line,
    columns,
    cut,
    notes,
    on_machine,
    printable,
    width,
    wrapped,
)
from stretto.solution import counted

if TYPE_CHECKING:
    from stretto.simulation import Simulation

SCHEMA = "stretto.simulation/1"

NAME_WIDTH = 24
"""Longer names are cut beside the timeline."""
SHOWN = 12
"""Violations that the text shows; JSON has all."""
INTERVALS = 6
"""Whole intervals that the timeline shows beyond the prologue."""


@dataclass(frozen=True, slots=True)
class ProgramReport(Told):
    """What one program is made of."""

    program: Program

    def to_json(self) -> dict[str, Any]:
        """The declarations; the streams are in the text that `stretto.write` makes."""
        p = self.program
        return {
            "name": p.loop.name,
            "machine": p.machine,
            "success": self.success,
            "mode": p.mode,
            "ii": p.ii,
            "stage_count": p.stage_count,
            "agents": [
                {"name": agent.name, "role": agent.role, "ops": list(agent.ops)}
                for agent in p.agents
            ],
            "pipes": [as_json(pipe) | {"payload": str(pipe.payload)} for pipe in p.pipes],
            "mutexes": as_json(p.mutexes),
            "fused": as_json(p.fused),
        }

    def to_text(self) -> list[str]:
        """For people."""
        p = self.program
        lines = wrapped(summary(p), "", "  ")
        rows = [["agent", "role", "issues"]]
        rows += [[a.name, a.role, ", ".join(map(cut, a.ops)) or "nothing"] for a in p.agents]
        lines += columns(rows, "  ")
        if p.pipes:
            rows = [["pipe", "ring", "depth", "from", "to"]]
            for pipe in p.pipes:
                names = [cut(pipe.name), cut(pipe.ring), str(pipe.depth)]
                producers = ", ".join(map(cut, pipe.producers)) or "nobody"
                rows.append([*names, producers, _to(pipe.consumers)])
            lines += columns(rows, "  ", right=(2,))
        if p.mutexes:
            rows = [["mutex", "held by", "awaited by"]]
            rows += [[cut(m.name), cut(m.holder), _to(m.waiters)] for m in p.mutexes]
            lines += columns(rows, "  ")
        return lines


def summary(program: Program) -> str:
    """What a program has, in a line."""
    parts = (
        counted(program.stage_count, "stage"),
        counted(len(program.agents), "agent"),
        counted(len(program.pipes), "pipe"),
        counted(len(program.mutexes), "mutex", "mutexes"),
    )
    head = f"{program.loop.name} on {program.machine}, {program.mode}"
    return f"{head}: II {program.ii}, {', '.join(parts)}"


def _to(ends: tuple[Consumer, ...] | tuple[Waiter, ...]) -> str:
    """Who takes, and what was put there how many iterations before."""
    told = (cut(end.op) + (f" (+{end.distance})" if end.distance else "") for end in ends)
    return ", ".join(told)


# What it does when it runs ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """What one loop's program did."""

    simulation: Simulation
    machine: Machine
    machine_why: str
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
            **on_machine(self.machine, self.machine_why),
            "success": s.success,
            "mode": s.mode,
            "iterations": s.iterations,
            "equal": s.equal,
            "deadlock": s.deadlock,
            "waiting": as_json(s.blocked),
            "ii": s.ii,
            "schedule": self.origin,
            "stage_count": s.stage_count,
            "cycles_per_iteration": s.cycles_per_iteration,
            "prologue_cycles": s.prologue_cycles,
            "epilogue_cycles": s.epilogue_cycles,
            "memory": as_json(s.memory),
            "violations": as_json(s.violations),
            "timeline": as_json(s.issued),
            "warnings": list(self.warnings),
        }

    def to_text(self) -> list[str]:
        """For people."""
        s = self.simulation
        times = counted(s.iterations, "iteration")
        verdict = "equal to" if s.equal else "not equal to"
        head = f"{s.loop} on {s.machine}, {s.mode}, {times}: {verdict} sequential execution"
        lines = wrapped(head) + assumed_line(self.machine, self.machine_why)
        unit = self.machine.unit
        pace = "no steady state"
        if s.cycles_per_iteration is not None:
            pace = f"{s.cycles_per_iteration} {unit} an iteration"
        prologue = "never full" if s.prologue_cycles is None else f"{s.prologue_cycles} {unit}"
        shape = f"II {s.ii}: {pace}; prologue {prologue}, epilogue {s.epilogue_cycles}"
        lines += wrapped(shape + ("; deadlock" if s.deadlock else ""), "  ", "  ")
        if self.origin:
            lines += wrapped(f"schedule: {self.origin}", "  ", "    ")
        taken = [str(space) for space in s.memory if space.used]
        if taken:
            lines += wrapped("; ".join(taken), "  ", "    ")
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
        names = {op: cut(printable(op), NAME_WIDTH) for _, op in order}
        room = width() - 6 - max(map(len, names.values())) - max(len(a) for a in (*agents, "agent"))
        scale, unit = max(1, -(-end // room)), self.machine.unit.removesuffix("s")
        rows = [["op", "agent", f"from {unit} 0, a column is {counted(scale, unit)}"]]
        for number, op in order:
            row = ["·"] * (-(-end // scale))
            for issued in s.issued:
                if issued.op == op and issued.cycle < end:
                    at = issued.cycle // scale
                    row[at] = str(issued.iteration % 10) if row[at] == "·" else "#"
            rows.append([names[op], agents[number], "".join(row)])
        return columns(rows, "  ")
