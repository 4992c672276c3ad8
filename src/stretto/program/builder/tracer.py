"""Has one agent write down its clocks, where that is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from stretto.program.expressions import Expression
from stretto.program.instructions import (
    Instruction,
    ReadClock,
    TraceBegin,
    TraceEnd,
    TraceMark,
    TraceSteps,
)
from stretto.program.traces import LOOPS, MARKS, Mark, Tracing


@dataclass
class Tracer:
    """The clocks of one agent."""

    tracing: Tracing
    agent: int
    agents: int
    loops: list[str] = field(default_factory=list[str])
    """Names of the loops, in the order of their numbers in a record."""
    marks: dict[str, list[Mark]] = field(default_factory=dict[str, list[Mark]])
    """Of each loop: the marks of a step, in order."""

    def begin(self) -> list[Instruction]:
        """At the top of the agent's function."""
        return [TraceBegin(self.agent, self.agents, self.tracing == "marks")]

    def enter(self, loop: str) -> list[Instruction]:
        """Before the steady part of a loop."""
        if loop not in self.loops:
            self.loops.append(loop)
        return [ReadClock("trace_in")]

    def leave(self) -> list[Instruction]:
        """Behind it."""
        return [ReadClock("trace_out")]

    def settle(self, loop: str, steps: Expression, *, once: bool = False) -> list[Instruction]:
        """When no product is in flight any more: what was read is added to what is there.

        Where the loop runs `once`, nothing is there, and nobody waits for a load of it.
        """
        return [TraceSteps(min(self.loops.index(loop), LOOPS - 1), steps, once)]

    def mark(
        self, loop: str, what: Literal["before", "behind"], op: str, thing: str
    ) -> list[Instruction]:
        """One clock in a step, where marks are asked for."""
        if self.tracing != "marks" or loop not in self.loops[:1]:
            return []
        known = self.marks.setdefault(loop, [])
        number = len(known)
        if number >= MARKS:
            return []
        known.append(Mark(what, op, thing))
        return [TraceMark(number)]

    def end(self) -> list[Instruction]:
        """At the bottom of the agent's function."""
        return [TraceEnd()]
