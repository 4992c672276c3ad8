"""What one agent does with sums in tensor memory: it adds to them, or puts and reads them.

Wait total_free[slot]             the first product waits,
TensorProduct a x b               all but the first add to what is there,
Commit total_full[slot]           and behind the last the reader is told
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from stretto.kernel import Operation
from stretto.program.builder.sums import Sum, sum_roots, touched
from stretto.program.builder.trips import known_trips, trips
from stretto.program.expressions import Barrier, Iteration, Slot, number
from stretto.program.instructions import (
    Advance,
    Arrive,
    Assign,
    Commit,
    Put,
    TensorProduct,
    Wait,
)

if TYPE_CHECKING:
    from stretto.program.builder.values import ValueBuilder


class SumBuilder:
    """Has an agent do what it has to do with sums."""

    def __init__(self, agent: ValueBuilder) -> None:
        self._a = agent
        sums = agent.plan.sums
        self._of = {name: sums[root] for name, root in sum_roots(agent.plan.kernel).items()}
        self._mine = [one for one in sums.values() if one.adder == agent.worker.name]

    def begin(self) -> None:
        """Where the agent stands in sums that are begun again and again."""
        me = self._a.worker.name
        for one in self._a.plan.sums.values():
            if one.repeated and me in (one.adder, one.reader):
                phase = one.first_phase if me == one.adder else 0
                self._a.say(Assign((f"{one.name}_slot",), (number(0),)))
                self._a.say(Assign((f"{one.name}_phase",), (number(phase),)))

    @contextmanager
    def products(self, operation: Operation) -> Generator[None]:
        """Around a loop or a product that adds: the first waits, behind the last is told."""
        for one in self._mine:
            if one.writers[0] is operation and one.free:
                self._wait(one, "free")
        yield
        for one in self._mine:
            if one.writers[-1] is operation:
                self._a.say(Commit(self._barrier(one, "full")))
                if one.adder != one.reader:
                    self._next(one)

    def add(self, operation: Operation, factors: Sequence[Slot], iteration: Iteration) -> None:
        """A product in an iteration of its loop; outside of any, in one of number 0."""
        one = self._of[touched(operation)]
        adds: bool | Iteration = True
        if not operation.integers("groups")[2] or (one.zero and iteration.number == 0):
            adds = False
        elif one.zero and iteration.number is None:
            adds = iteration
        left, right = factors
        self._a.say(TensorProduct(left, right, self._slot(one), adds))

    def fill(self, operation: Operation) -> None:
        """What a sum begins with, where products do not begin it themselves."""
        one = self._of[touched(operation)]
        if one.filled is not operation:
            return
        value = self._a.tile(operation.operands[0], self._a.layouts.of(one.reads[0].result))
        self._a.say(Put(value, self._slot(one)))
        if one.free:
            self._arrive(one)

    def read(self, operation: Operation) -> None:
        """A sum in registers, once it is whole; zero where there was no product."""
        a, one = self._a, self._of[touched(operation)]
        if operation is one.reads[0]:
            self._wait(one, "full")
        result, source = operation.result, self._slot(one)
        first, added = one.writers[0], None
        if one.zero and first in a.plan.loops and not known_trips(first, a.plan.maker):
            lower, upper, step = (a.value(v).expression for v in first.operands[:3])
            added = trips(lower, upper, step, None)
        a.bind(result, a.read(result, source, a.layouts.of(result), added))
        if operation is one.reads[-1]:
            if one.free and one.filled is None:
                self._arrive(one)
            self._next(one)

    def _slot(self, one: Sum) -> Slot:
        return Slot(self._a.take(one.name), one.index)

    def _barrier(self, one: Sum, what: str) -> Barrier:
        return Barrier(self._a.take(f"{one.name}_{what}"), one.index)

    def _wait(self, one: Sum, what: Literal["full", "free"]) -> None:
        self._a.say(Wait(self._barrier(one, what), one.phase))

    def _arrive(self, one: Sum) -> None:
        self._a.say(Arrive(self._barrier(one, "free")))

    def _next(self, one: Sum) -> None:
        if one.repeated:
            self._a.say(Advance(f"{one.name}_slot", f"{one.name}_phase", one.depth))
