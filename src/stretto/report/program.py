"""A program for people: who issues what, and what they hand over.

gemm on b200-pipes, specialized: II 256, 3 stages, 2 agents, 2 pipes, 0 mutexes
  agent  role  issues
  tma    tma   offset, load_a, load_b
  pipe   ring    depth  from    to
  pipe0  a_tile      4  load_a  mma
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from stretto.materialize import Consumer, Program, Waiter
from stretto.report.text import columns, cut, wrapped


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """What one program is made of."""

    program: Program

    def to_json(self) -> dict[str, Any]:
        """The declarations; the streams are in the text that `stretto.write` makes."""
        p = self.program
        return {
            "name": p.loop.name,
            "machine": p.machine,
            "success": True,
            "mode": p.mode,
            "ii": p.ii,
            "stage_count": p.stage_count,
            "agents": [
                {"name": agent.name, "role": agent.role, "ops": list(agent.ops)}
                for agent in p.agents
            ],
            "pipes": [
                asdict(pipe)
                | {
                    "producers": list(pipe.producers),
                    "consumers": [asdict(consumer) for consumer in pipe.consumers],
                    "aliases": list(pipe.aliases),
                    "payload": str(pipe.payload),
                }
                for pipe in p.pipes
            ],
            "mutexes": [
                asdict(mutex)
                | {
                    "waiters": [asdict(waiter) for waiter in mutex.waiters],
                    "excludes": list(mutex.excludes),
                }
                for mutex in p.mutexes
            ],
            "fused": [list(group) for group in p.fused],
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
                producers = ", ".join(map(cut, pipe.producers)) or "nobody"
                rows.append(
                    [
                        cut(pipe.name),
                        cut(pipe.ring),
                        str(pipe.depth),
                        producers,
                        _to(pipe.consumers),
                    ]
                )
            lines += columns(rows, "  ", right=(2,))
        if p.mutexes:
            rows = [["mutex", "held by", "awaited by"]]
            rows += [[cut(m.name), cut(m.holder), _to(m.waiters)] for m in p.mutexes]
            lines += columns(rows, "  ")
        return lines


def summary(program: Program) -> str:
    """What a program has, in a line."""
    parts = (
        (program.stage_count, "stage", "stages"),
        (len(program.agents), "agent", "agents"),
        (len(program.pipes), "pipe", "pipes"),
        (len(program.mutexes), "mutex", "mutexes"),
    )
    told = ", ".join(f"{n} {one if n == 1 else several}" for n, one, several in parts)
    head = f"{program.loop.name} on {program.machine}, {program.mode}"
    return f"{head}: II {program.ii}, {told}"


def _to(ends: tuple[Consumer, ...] | tuple[Waiter, ...]) -> str:
    """Who takes, and what was put there how many iterations before."""
    told = (cut(end.op) + (f" (+{end.distance})" if end.distance else "") for end in ends)
    return ", ".join(told)
