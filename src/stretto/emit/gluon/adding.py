"""What one agent does with sums in tensor memory: it adds to them, or puts and reads them.

mbarrier.wait(total_free.index(total_slot), total_phase)     the first product waits, the last
tcgen05_mma(a, b, total.index(total_slot), use_acc=step > 2)  has the reader told
tcgen05_commit(total_full.index(total_slot))
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from stretto.emit.gluon.sums import Sum, sum_roots, touched
from stretto.emit.gluon.trips import known_trips, trips
from stretto.kernel import Operation

if TYPE_CHECKING:
    from stretto.emit.gluon.agent import AgentWriter


class SumWriter:
    """Writes what an agent has to do with sums."""

    def __init__(self, agent: AgentWriter) -> None:
        self._a = agent
        sums = agent.plan.sums
        self._of = {name: sums[root] for name, root in sum_roots(agent.plan.kernel).items()}
        self._mine = [one for one in sums.values() if one.adder == agent.worker.name]

    def begin(self) -> None:
        """Where the agent stands in sums that are begun again and again."""
        me = self._a.worker.name
        for one in self._a.plan.sums.values():
            if one.repeated and me in (one.adder, one.reader):
                self._a.say(f"{one.name}_slot = 0")
                self._a.say(f"{one.name}_phase = {one.first_phase if me == one.adder else 0}")

    @contextmanager
    def products(self, operation: Operation) -> Generator[None]:
        """Around a loop or a product that adds: the first waits, behind the last is told."""
        for one in self._mine:
            if one.writers[0] is operation and one.free:
                self._wait(one, "free")
        yield
        for one in self._mine:
            if one.writers[-1] is operation:
                self._a.say(f"tcgen05_commit({self._barrier(one, 'full')})")
                if one.adder != one.reader:
                    self._next(one)

    def add(self, operation: Operation, factors: Sequence[str], iteration: str) -> None:
        """A product in an iteration of its loop; outside of any, in one of number 0."""
        one = self._of[touched(operation)]
        said = ""
        if not operation.integers("groups")[2] or (one.zero and iteration == "0"):
            said = ", use_acc=False"
        elif one.zero and not iteration.isdigit():
            step, _, stage = iteration.partition(" - ")
            said = f", use_acc={step} > {stage or 0}"
        self._a.say(f"tcgen05_mma({', '.join(factors)}, {self._a.take(one.name)}{one.slot}{said})")

    def fill(self, operation: Operation) -> None:
        """What a sum begins with, where products do not begin it themselves."""
        one = self._of[touched(operation)]
        if one.filled is not operation:
            return
        text = self._a.tile(operation.operands[0], self._a.layouts.of(one.reads[0].result))
        self._a.say(f"{self._a.take(one.name)}{one.slot}.store({text})")
        self._a.beat("work", operation)
        if one.free:
            self._arrive(one)

    def read(self, operation: Operation) -> None:
        """A sum in registers, once it is whole; zero where there was no product."""
        a, one = self._a, self._of[touched(operation)]
        if operation is one.reads[0]:
            self._wait(one, "full")
        layout = a.layouts.of(operation.result)
        text = f"{a.take(one.name)}{one.slot}.load({layout})"
        first = one.writers[0]
        if one.zero and first in a.plan.loops and not known_trips(first, a.plan.maker):
            lower, upper, step = (a.value(v).text for v in first.operands[:3])
            text = f"gl.where({trips(lower, upper, step, None)} > 0, {text}, 0.0)"
        a.bind(operation.result, a.assign(operation.result, text, layout))
        a.beat("work", operation)
        if operation is one.reads[-1]:
            if one.free and one.filled is None:
                self._arrive(one)
            self._next(one)

    def _barrier(self, one: Sum, what: str) -> str:
        return self._a.take(f"{one.name}_{what}") + one.slot

    def _wait(self, one: Sum, what: Literal["full", "free"]) -> None:
        self._a.say(f"mbarrier.wait({self._barrier(one, what)}, {one.phase})")
        self._a.beat(what, None, one.name)

    def _arrive(self, one: Sum) -> None:
        self._a.say(f"mbarrier.arrive({self._barrier(one, 'free')}, count=1)")
        self._a.beat("arrive", None, one.name)

    def _next(self, one: Sum) -> None:
        if one.repeated:
            at = f"{one.name}_slot, {one.name}_phase"
            self._a.say(f"{at} = next_slot({at}, {one.depth})")
