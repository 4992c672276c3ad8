"""Copies by threads into rings of a loop: their groups, and where the threads of an agent meet.

    a    ask for k + 2, a group            groups come in their order, so a wait says how many of
    b    wait until 1 group is left        the youngest may still be on their way
         fence, all threads meet           what others asked for is there, for products too
    c    product of k

A group is one tile. Before steps of a prologue whose iteration has not begun there are empty ones,
so that every step counts alike. A slot may be asked for again once all threads have met behind its
last reader: where no wait of the ring lies between the two, they meet once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stretto.kernel import Operation
from stretto.kernel.tree import kind_of
from stretto.materialization.program import Issue
from stretto.ops.opcodes import opcode
from stretto.program.builder.rings import Ring
from stretto.program.errors import EmitError
from stretto.program.instructions import (
    CommitGroup,
    Fence,
    Instruction,
    ThreadBarrier,
    WaitGroup,
)

Group = tuple[str, int]
"""The operation that copies, and steps since its group began."""
MET = "Others may still read the slot."


@dataclass(frozen=True)
class RingCopies:
    """One ring that threads of the agent copy to, and what reads it."""

    ring: Ring
    copies: Issue
    reads: tuple[Issue, ...]
    by_products: bool

    @property
    def first(self) -> Issue:
        """Whoever reads an iteration first waits for it."""
        return self.reads[0]


class ThreadCopies:
    """The copies by threads of one agent's loop."""

    def __init__(
        self,
        rings: Sequence[RingCopies],
        operations: Mapping[str, Operation],
        awaited: Callable[[Issue], str],
    ) -> None:
        self.rings = {one.copies.op: one for one in rings}
        self._operations = operations
        self._awaited = awaited
        self.groups: list[Group] = []
        self._met: list[int] = []
        """Places of the step at hand at which all threads have met so far."""

    def begin(self) -> None:
        """A way through the loop begins: nothing is on its way."""
        self.groups = []

    def commit(self, op: str) -> list[Instruction]:
        """What an operation asked for is a group; an empty one before its first iteration."""
        self.groups.append((op, 0))
        return [CommitGroup()]

    def later(self, most: int) -> None:
        """A step is over; groups that are older than so many steps are waited for."""
        self.groups = [(op, age + 1) for op, age in self.groups if age <= most]
        self._met = []

    def settled(self, before: Sequence[Group]) -> bool:
        """Whether as many groups are on their way as before a step."""
        return self.groups[len(self.groups) - len(before) :] == list(before)

    def wait(
        self, reader: Issue, stages: Mapping[str, int], order: Sequence[Issue]
    ) -> list[Instruction]:
        """What stands before the first reader of rings."""
        rings = [one for one in self.rings.values() if one.first.op == reader.op]
        if not rings:
            return []
        left = min(self._left(one, stages) for one in rings)
        self._met.append(_place(order, reader.op))
        fence = [Fence()] if any(one.by_products for one in rings) else []
        return [WaitGroup(left), *fence, ThreadBarrier()]

    def _left(self, one: RingCopies, stages: Mapping[str, int]) -> int:
        lag = stages[one.first.op] - stages[one.copies.op]
        if (one.copies.op, lag) not in self.groups:
            told = f"`{one.first.op}` reads what no copy of `{one.copies.op}` brings"
            raise EmitError(told, self._operations[one.first.op])
        return len(self.groups) - 1 - self.groups.index((one.copies.op, lag))

    def meet(
        self, copies: str, stages: Mapping[str, int], order: Sequence[Issue]
    ) -> list[Instruction]:
        """What stands before a copy, whose slot others may still read."""
        one, asks = self.rings[copies], _place(order, copies)
        done = [self._done(i, order) for i in one.reads]
        last = max(done, key=lambda i: (stages[i.op], _place(order, i.op)))
        reads, steps = _place(order, last.op), one.ring.depth + stages[copies] - stages[last.op]
        behind = steps > 1 or (steps == 1 and _place(order, one.first.op) > reads)
        if behind or any(steps > 0 or at > reads for at in self._met):
            return []
        self._met.append(asks)
        return [ThreadBarrier(reason=MET)]

    def _done(self, reader: Issue, order: Sequence[Issue]) -> Issue:
        """The operation behind which a reader is done: of a product, its wait."""
        if opcode(kind_of(self._operations[reader.op])).accumulator is None:
            return reader
        for i in order:
            waits = opcode(kind_of(self._operations[i.op])).awaits
            if waits and self._awaited(i) == reader.op:
                return i
        return reader


def _place(order: Sequence[Issue], op: str) -> int:
    return next(n for n, i in enumerate(order) if i.op == op)
