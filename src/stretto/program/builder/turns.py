"""Orders between agents that no data carries: who waits for whose turn.

    total ──► total_1, in the same step      total_then_total_1    a barrier a turn, count 1
    total_1 ──► total, a step later          total_1_then_total    its answer

A barrier knows the parity of its turns, not their number: nobody may come round to one before the
other side has seen its last turn. An order the other way keeps that, if there is one; else one is
added, of so many turns that the schedule keeps it anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stretto.kernel import Operation
from stretto.kernel.lowering.written import TMA_LOAD, TMA_STORE
from stretto.kernel.tree import kind_of
from stretto.materialization import Program
from stretto.ops.opcodes import opcode
from stretto.program.builder.sums import on_its_own
from stretto.program.errors import EmitError
from stretto.program.expressions import Barrier, number
from stretto.program.instructions import Advance, Assign, Flip, Instruction


@dataclass(frozen=True)
class Turn:
    """An operation waits for another's, some iterations before, which another agent issues."""

    name: str
    holder: str
    waiter: str
    distance: int
    depth: int
    """Barriers, taken in turn."""
    agents: tuple[str, str]
    """Who issues the one, and the other."""
    committed: bool = False
    """Whether the holder says itself when it is done."""

    @property
    def barrier(self) -> Barrier:
        """The one whose turn it is."""
        return Barrier(self.name, f"{self.name}_slot" if self.depth > 1 else None)

    def begun(self, agent: str) -> list[Instruction]:
        """Where an agent begins: at which barrier and parity. The first waits are for nobody."""
        holds = agent == self.agents[0]
        slot = 0 if holds else -self.distance % self.depth
        phase = 0 if holds else int(self.distance > 0)
        several = self.depth > 1
        found: list[Instruction] = []
        if several:
            found.append(Assign((f"{self.name}_slot",), (number(slot),)))
        if several or not holds:
            found.append(Assign((f"{self.name}_phase",), (number(phase),)))
        return found

    def next(self, agent: str) -> list[Instruction]:
        """One turn further."""
        if self.depth > 1:
            return [Advance(f"{self.name}_slot", f"{self.name}_phase", self.depth)]
        return [] if agent == self.agents[0] else [Flip(f"{self.name}_phase")]


_Orders = dict[tuple[str, str, int], int]
"""Holder, waiter and distance, and after how many cycles the holder lets go."""


def find_turns(
    program: Program,
    operations: Mapping[str, Operation],
    agent_of: Mapping[str, str],
    name: Callable[[str], str],
) -> list[Turn]:
    """The turns of a loop's program; EmitError where a holder cannot say when it lets go."""
    stated: _Orders = {
        (mutex.holder, waiter.op, waiter.distance): mutex.latency
        for mutex in program.mutexes
        for waiter in mutex.waiters
    }
    orders: _Orders = dict(stated)
    for holder, waiter, _ in stated:
        if _answer(orders, holder, waiter) is None:
            later = (program.starts[waiter] - program.starts[holder]) // program.ii + 1
            orders[waiter, holder, max(1, later)] = 0
    found: list[Turn] = []
    for (holder, waiter, distance), latency in orders.items():
        operation = operations[holder]
        committed = on_its_own(operation) and latency > 0
        if latency and not committed:
            _require_done(holder, operation, latency)
        back = _answer(orders, holder, waiter)
        assert back is not None
        found.append(
            Turn(
                name(f"{holder}_then_{waiter}"),
                holder,
                waiter,
                distance,
                distance + back,
                (agent_of[holder], agent_of[waiter]),
                committed,
            )
        )
    return found


def _answer(orders: _Orders, holder: str, waiter: str) -> int | None:
    """How many iterations later the holder waits for the waiter, if it does."""
    return min((d for h, w, d in orders if (h, w) == (waiter, holder)), default=None)


def _require_done(name: str, operation: Operation, latency: int) -> None:
    kind = kind_of(operation)
    if kind in (TMA_LOAD, TMA_STORE) or opcode(kind).accumulator is not None:
        told = (
            f"`{name}` is ordered {latency} cycles after its issue, but it completes "
            "asynchronously: no thread of its agent is there then to arrive on the mutex"
        )
        hint = (
            "state latency 0, which is right behind its issue; or order what waits for its result"
        )
        raise EmitError(told, operation, hint)
