"""A finished schedule, checked, with the numbers that materialization asks for.

start = stage × II + cycle        flow from `a` to `b`, distance d:
                                  d + stage(b) - stage(a) steps of the kernel apart
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from stretto.loop import Dependence, Loop, Op
from stretto.machine import Machine
from stretto.materialize.errors import MaterializeError
from stretto.solution import Schedule, ScheduleAnalysis
from stretto.verify import verify


@dataclass(frozen=True)
class Plan:
    """A legal schedule of a resolved loop."""

    loop: Loop
    machine: Machine
    schedule: Schedule
    order: dict[str, int]
    """Rank inside the stage."""

    @property
    def ii(self) -> int:
        """The initiation interval."""
        return self.schedule.ii

    @property
    def starts(self) -> Mapping[str, int]:
        """Start of each operation."""
        return self.schedule.starts

    @property
    def fused(self) -> tuple[tuple[str, ...], ...]:
        """Groups that share one hold."""
        return self.schedule.fused

    @cached_property
    def stage(self) -> dict[str, int]:
        """Stage of each operation."""
        return {name: start // self.ii for name, start in self.starts.items()}

    @cached_property
    def cycle(self) -> dict[str, int]:
        """Cycle of each operation inside its stage."""
        return {name: start % self.ii for name, start in self.starts.items()}

    @cached_property
    def stage_count(self) -> int:
        """Stages in all."""
        return max(self.stage.values()) + 1

    @cached_property
    def ops(self) -> dict[str, Op]:
        """Operations by name."""
        return {op.name: op for op in self.loop.ops}

    @cached_property
    def program_index(self) -> dict[str, int]:
        """Program position of each operation."""
        return self.loop.index

    @cached_property
    def between(self) -> dict[tuple[str, str], tuple[Dependence, ...]]:
        """Dependences from one operation to another."""
        found: dict[tuple[str, str], tuple[Dependence, ...]] = {}
        for d in self.loop.dependences:
            found[d.src, d.dst] = (*found.get((d.src, d.dst), ()), d)
        return found

    def completion(self, op: str) -> int:
        """Cycles after its start when an operation is wholly done."""
        return self.ops[op].completion

    def steps(self, src: str, dst: str, distance: int) -> int:
        """Steps of the kernel from an operation to another, `distance` iterations later."""
        return distance + self.stage[dst] - self.stage[src]

    def slack(self, src: str, dst: str, distance: int) -> int:
        """Cycles from the start of one to the start of the other, `distance` iterations later."""
        return self.starts[dst] + self.ii * distance - self.starts[src]

    def rank(self, op: str) -> tuple[int, int]:
        """(stage, order): the key by which producers are sorted."""
        return self.stage[op], self.order[op]


def make_plan(loop: Loop, machine: Machine, analysis: ScheduleAnalysis) -> Plan:
    """The plan of an analysis; MaterializeError where it is not finished or not legal."""
    if not analysis.success or analysis.ii is None:
        raise MaterializeError("there is no schedule to materialize", loop.name)
    if not loop.resolved:
        raise MaterializeError("the loop has operations without costs", loop.name)
    violations = verify(loop, machine, analysis)
    if violations:
        told = "".join(f"\n  {v.rule}: {v.message}" for v in violations)
        raise MaterializeError(f"the schedule is not legal{told}", loop.name)
    order = {p.op: p.order for p in analysis.placements}
    return Plan(loop, machine, analysis.schedule, order)
