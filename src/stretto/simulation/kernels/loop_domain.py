"""One loop of a kernel as a domain: the simulator runs its program, on the kernel's values.

Operands come through the pipes and rings of the program, never past them: only what does not change
in the loop is taken from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from stretto.kernel import Operation, Value
from stretto.kernel.types import Buffer, Scalar
from stretto.kernel.wiring import Accumulated, Held, LoopWiring, Outer, Taken
from stretto.loop import Op
from stretto.simulation.domains import BEFORE, Datum, Trace
from stretto.simulation.kernels.arrays import fitted
from stretto.simulation.kernels.evaluator import Evaluator
from stretto.simulation.kernels.memory import BufferRef, Cell

Enclosing = Callable[[Operation, Mapping[Value, Any]], Sequence[Any]]
"""Runs control flow on the values that it takes; what it makes."""


class LoopDomain:
    """Arrays, addresses and numbers of one run of a loop."""

    def __init__(
        self,
        wiring: LoopWiring,
        operation: Operation,
        evaluator: Evaluator,
        outside: Mapping[Value, Any],
        steps: range,
        carried: Sequence[Any],
        enclosed: Enclosing,
    ) -> None:
        self._wiring = wiring
        self._operation = operation
        self._evaluator = evaluator
        self._outside = outside
        self._steps = steps
        self._enclosed = enclosed
        self._body = operation.regions[0]
        self._begun = dict(zip(self._body.arguments[1:], carried, strict=True))
        self._constants: dict[Value, Any] = {}
        for inner in self._body.operations:
            if inner.name == "arith.constant":
                self._constants[inner.result] = evaluator.apply(inner, ())[0]

    # What comes from outside ----------------------------------------------------------------

    def _outer(self, value: Value) -> Any:
        if value in self._constants:
            return self._constants[value]
        found = self._begun[value] if value in self._begun else self._outside[value]
        return found.read() if isinstance(found, BufferRef) else found

    def live_in(self, value: str, iteration: int) -> Datum:
        """As it is outside; the counter of this step."""
        found = self._wiring.live_ins[value]
        if found is self._body.arguments[0]:
            assert isinstance(found.type, Scalar)
            return fitted(self._steps[iteration], found.type)
        return self._outer(found)

    def initial(self, value: str, iteration: int) -> Datum:
        """What is carried in."""
        found = self._wiring.initial.get((value, iteration))
        if found is None:  # nobody will look: it belongs to a step before the first
            return np.float32(np.nan)
        datum = self._begun[found]
        return datum.read() if isinstance(datum, BufferRef) else datum

    def content(self, storage: str, iteration: int) -> Datum:
        """What a buffer holds before the loop."""
        buffer = self._wiring.buffers.get(storage)
        if buffer is None or iteration < BEFORE:
            return np.float32(np.nan)
        found = self._found(buffer)
        content = found.cell.content if isinstance(found, BufferRef) else found
        return np.float32(np.nan) if content is None else content

    def _found(self, buffer: Value) -> Any:
        """A buffer; or a sum in registers, which a product adds to where it is."""
        return self._begun.get(buffer, self._outside.get(buffer))

    def _reference(self, buffer: Value) -> BufferRef | None:
        found = self._found(buffer)
        return found if isinstance(found, BufferRef) else None

    # What operations do -----------------------------------------------------------------------

    def apply(
        self, op: Op, iteration: int, operands: Sequence[Datum], reads: Sequence[Datum]
    ) -> tuple[Datum, ...]:
        """The operation of the text, on what the program brought it."""
        operation = self._wiring.operations[op.name]
        del iteration
        taken: list[Any] = []
        for wire in self._wiring.wires[op.name]:
            match wire:
                case Taken(position):
                    taken.append(operands[position])
                case Outer(value):
                    taken.append(self._outer(value))
                case Accumulated():
                    held = [
                        content
                        for access, content in zip(
                            self._wiring.loop.reads[op.name], reads, strict=bool(reads)
                        )
                        if access.storage in op.writes
                    ]
                    taken.append(held[0])
                case Held(storage):
                    taken.append(self._content(op, storage, reads))
                case _:
                    taken.append(None)
        if op.name in self._wiring.enclosed:
            return self._control(op, operation, taken)
        return self._evaluator.apply(operation, taken)

    def _content(self, op: Op, storage: str, reads: Sequence[Datum]) -> Datum:
        accesses = self._wiring.loop.reads[op.name]
        held = [one for a, one in zip(accesses, reads, strict=bool(reads)) if a.storage == storage]
        return held[0] if held else None

    def _control(self, op: Op, operation: Operation, taken: Sequence[Any]) -> tuple[Datum, ...]:
        """What a region makes; behind it what it leaves in each storage it fills."""
        of = self._wiring.enclosed[op.name]
        cells = [Cell(datum) for datum in taken]
        bound = {
            value: BufferRef(cell) if isinstance(value.type, Buffer) else cell.content
            for value, cell in zip(of.values, cells, strict=True)
        }
        made = self._enclosed(operation, bound)
        results = [one.read() if isinstance(one, BufferRef) else one for one in made]
        results += [None] * (max(1, len(op.results)) - len(results))
        left = dict(zip(of.storages, cells, strict=True))
        return (*results, *(left[s].content if s in left else None for s in op.writes))

    def alias(self, op: Op, iteration: int) -> Datum:
        """A name has no value of its own."""
        del op, iteration
        return None

    def stored(self, op: Op, storage: str, made: tuple[Datum, ...], before: Datum | None) -> Datum:
        """Operations fill their buffers, or hand on what they added up."""
        del before
        if op.name in self._wiring.enclosed:
            return made[max(1, len(op.results)) + op.writes.index(storage)]
        return made[0]

    def same(self, a: Datum, b: Datum) -> bool:
        """The same numbers."""
        return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))

    # What the loop leaves behind --------------------------------------------------------------

    def results(self, trace: Trace) -> list[Any]:
        """The carried values after the last step; buffers have their last content."""
        for storage, buffer in self._wiring.buffers.items():
            ref = self._reference(buffer)
            if ref is not None and storage in trace.final:
                ref.cell.content = trace.final[storage]
        last = len(self._steps) - 1
        return [
            self._at_end(argument, value, last, trace)
            for argument, value in zip(
                self._body.arguments[1:], self._body.terminator.operands, strict=True
            )
        ]

    def _at_end(self, argument: Value, value: Value, iteration: int, trace: Trace) -> Any:
        begun = self._begun[argument]
        if iteration < 0 or isinstance(begun, BufferRef):
            return begun
        while value in self._begun:  # handed on from the argument of another
            position = self._body.arguments.index(value) - 1
            iteration -= 1
            if iteration < 0:
                return self._begun[value]
            value = self._body.terminator.operands[position]
        if value is self._body.arguments[0]:
            assert isinstance(value.type, Scalar)
            return fitted(self._steps[iteration], value.type)
        made = self._wiring.made.get(value)
        if made is None:
            return self._outer(value)
        return trace.results[made[0], iteration][made[1]]
