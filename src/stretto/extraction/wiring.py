"""Each loop of a kernel, wired to the operations of the text.

LoopInText, the kernel's tree   ──►   LoopWiring: where each operand of each operation comes from
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic

from stretto.extraction import LoopInText
from stretto.extraction.flow import Flow
from stretto.extraction.source import NESTED, BlockT, OpT, Source, UnreadableError, ValueT
from stretto.kernel import tree
from stretto.kernel.types import Buffer
from stretto.kernel.wiring import (
    Accumulated,
    Enclosed,
    Held,
    LoopWiring,
    Outer,
    Taken,
    Unread,
    Wire,
)
from stretto.loop import Operand
from stretto.ops.spaces import GLOBAL


def wired(
    source: Source[OpT, BlockT, ValueT],
    item: LoopInText[OpT, ValueT],
    operations: Mapping[OpT, tree.Operation],
    values: Mapping[ValueT, tree.Value],
) -> tuple[tree.Operation, LoopWiring]:
    """A loop of a kernel, and how it is wired; the last two say what the tree has of the text."""
    return operations[item.for_op], _Wirer(source, item, operations, values).wiring()


class _Wirer(Generic[OpT, BlockT, ValueT]):
    """How one loop is wired to the text."""

    def __init__(
        self,
        source: Source[OpT, BlockT, ValueT],
        item: LoopInText[OpT, ValueT],
        operations: Mapping[OpT, tree.Operation],
        values: Mapping[ValueT, tree.Value],
    ) -> None:
        self._source = source
        self._item = item
        self._operations = operations
        self._values = values
        self._block = source.body(item.for_op)
        self._flow = Flow(source, item.for_op)

    def wiring(self) -> LoopWiring:
        item, values, text = self._item, self._values, self._source
        names = {name: op for name, op in item.ops.items() if op in self._operations}
        made = {
            values[result]: (name, i)
            for name, op in names.items()
            for i, result in enumerate(text.results(op))
        }
        inside = {result for op in names.values() for result in text.results(op)}
        return LoopWiring(
            item.loop,
            {name: self._operations[op] for name, op in names.items()},
            {name: tuple(self._wires(name, op)) for name, op in names.items()},
            {
                name: values[value]
                for value, name in item.values.items()
                if value not in inside and value in values
            },
            dict(self._initial()),
            {name: values[root] for name, root in item.buffers.items() if root in values},
            made,
            {name: self._enclosed(name, op) for name, op in names.items() if self._is_control(op)},
        )

    # Control flow -----------------------------------------------------------------------------

    def _enclosed(self, name: str, op: OpT) -> Enclosed:
        """What control flow takes; UnreadableError where a buffer has two names in it."""
        taken = tuple(self._taken(op))
        storages = [self._storage(value) for value in taken]
        written = self._item.loop.op(name).writes
        for storage in dict.fromkeys(storages):
            if storage in written and storages.count(storage) > 1:
                told = f"`{name}` fills `{storage}`, which it knows by two names"
                raise UnreadableError(op, told)
        return Enclosed(tuple(self._values[value] for value in taken), tuple(storages))

    def _storage(self, value: ValueT) -> str | None:
        roots = {root: name for name, root in self._item.buffers.items()}
        homes = {v.name: v.storage for v in self._item.loop.values}
        flow = self._flow.source_of(value)
        called = None if flow is None else self._item.values.get(flow[0])
        return roots.get(value) or (None if called is None else homes.get(called))

    def _into(self, name: str, op: OpT) -> Iterator[Wire]:
        operands = self._item.loop.op(name).operands
        for value in self._taken(op):
            wire = self._wire(value, operands)
            if isinstance(wire, Outer) and isinstance(wire.value.type, Buffer):
                storage = self._storage(value)
                if storage is None:
                    told = f"`{name}` takes a view of a buffer from before the loop"
                    raise UnreadableError(op, told)
                wire = Held(storage)
            yield wire

    # All else ---------------------------------------------------------------------------------

    def _wires(self, name: str, op: OpT) -> Iterator[Wire]:
        text = self._source
        if self._is_control(op):
            yield from self._into(name, op)
            return
        special = text.special_operands(op)
        total = text.accumulator(op)
        operands = self._item.loop.op(name).operands
        for position, value in enumerate(text.operands(op)):
            flows = value is total and value in self._flow.read_by(op)
            if position in special and not flows:
                yield Accumulated() if value is total else Unread()
                continue
            yield self._wire(value, operands)

    def _wire(self, value: ValueT, operands: tuple[Operand, ...]) -> Wire:
        # What never changes needs no pipe; the loop may know it by the name of what it views.
        text, op = self._source, self._source.maker(value)
        within = text.defined_in(value, self._block)
        fixed = text.buffer(value) == GLOBAL or not within
        if fixed and within and op is not None:
            raise UnreadableError(op, "it makes a view anew in each step")
        flow = None if fixed else self._flow.source_of(value)
        called = None if flow is None else self._item.values.get(flow[0])
        if flow is None or called is None or Operand(called, flow[1]) not in operands:
            return Outer(self._values[value])
        return Taken(operands.index(Operand(called, flow[1])))

    def _initial(self) -> Iterator[tuple[tuple[str, int], tree.Value]]:
        """Carried values before the first step: the argument that each comes in by."""
        text, block = self._source, self._block
        last = text.last(block)
        assert last is not None
        handed = text.operands(last)
        for position, argument in enumerate(text.arguments(block)[1:]):
            at, depth = handed[position], 1
            seen = {argument}
            while text.entered(at) is block and text.index(at) and at not in seen:
                seen.add(at)
                at, depth = handed[text.index(at) - 1], depth + 1
            called = self._item.values.get(at)
            if called is not None:
                yield (called, -depth), self._values[argument]

    def _is_control(self, op: OpT) -> bool:
        return self._source.name(op) in NESTED

    def _taken(self, op: OpT) -> Iterator[ValueT]:
        """What control flow takes from outside of it, each value once."""
        text = self._source
        yield from dict.fromkeys(text.operands(user)[at] for user, at in text.uses_of_others(op))
