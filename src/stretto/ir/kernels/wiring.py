"""Each loop of a kernel, wired to the operations of the text.

LoopInModule, KernelInModule   ──►   LoopWiring: where each operand of each operation comes from
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from stretto.ir.dialect.types import buffer_of
from stretto.ir.kernels.functions import KernelInModule
from stretto.ir.loops import LoopInModule
from stretto.ir.loops.flow import (
    NESTED,
    Flow,
    UnreadableError,
    accumulator_of,
    inside,
    special_operands,
    uses_of_others,
)
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


def wired(kernel: KernelInModule, item: LoopInModule) -> tuple[tree.Operation, LoopWiring]:
    """A loop of the kernel, and how it is wired."""
    return kernel.operations[item.for_op], _Wirer(kernel, item).wiring()


class _Wirer:
    """How one loop is wired to the text."""

    def __init__(self, kernel: KernelInModule, item: LoopInModule) -> None:
        self._kernel = kernel
        self._item = item
        self._flow = Flow(item.for_op)

    def wiring(self) -> LoopWiring:
        item, values = self._item, self._kernel.values
        names = {name: op for name, op in item.ops.items() if op in self._kernel.operations}
        made = {
            values[result]: (name, i)
            for name, op in names.items()
            for i, result in enumerate(op.results)
        }
        inside = {result for op in names.values() for result in op.results}
        return LoopWiring(
            item.loop,
            {name: self._kernel.operations[op] for name, op in names.items()},
            {name: tuple(self._wires(name, op)) for name, op in names.items()},
            {
                name: values[value]
                for value, name in item.values.items()
                if value not in inside and value in values
            },
            dict(self._initial()),
            {name: values[root] for name, root in item.buffers.items() if root in values},
            made,
            {name: self._enclosed(name, op) for name, op in names.items() if _is_control(op)},
        )

    # Control flow -----------------------------------------------------------------------------

    def _enclosed(self, name: str, op: Operation) -> Enclosed:
        """What control flow takes; UnreadableError where a buffer has two names in it."""
        taken = tuple(_taken(op))
        storages = [self._storage(value) for value in taken]
        written = self._item.loop.op(name).writes
        for storage in dict.fromkeys(storages):
            if storage in written and storages.count(storage) > 1:
                told = f"`{name}` fills `{storage}`, which it knows by two names"
                raise UnreadableError(op, told)
        return Enclosed(tuple(self._kernel.values[value] for value in taken), tuple(storages))

    def _storage(self, value: SSAValue) -> str | None:
        roots = {root: name for name, root in self._item.buffers.items()}
        homes = {v.name: v.storage for v in self._item.loop.values}
        flow = self._flow.source_of(value)
        called = None if flow is None else self._item.values.get(flow[0])
        return roots.get(value) or (None if called is None else homes.get(called))

    def _into(self, name: str, op: Operation) -> Iterator[Wire]:
        operands = self._item.loop.op(name).operands
        for value in _taken(op):
            wire = self._wire(value, operands)
            if isinstance(wire, Outer) and isinstance(wire.value.type, Buffer):
                storage = self._storage(value)
                if storage is None:
                    told = f"`{name}` takes a view of a buffer from before the loop"
                    raise UnreadableError(op, told)
                wire = Held(storage)
            yield wire

    # All else ---------------------------------------------------------------------------------

    def _wires(self, name: str, op: Operation) -> Iterator[Wire]:
        if _is_control(op):
            yield from self._into(name, op)
            return
        special = special_operands(op)
        total = accumulator_of(op)
        operands = self._item.loop.op(name).operands
        for position, value in enumerate(op.operands):
            flows = value is total and value in self._flow.read_by(op)
            if position in special and not flows:
                yield Accumulated() if value is total else Unread()
                continue
            yield self._wire(value, operands)

    def _wire(self, value: SSAValue, operands: tuple[Operand, ...]) -> Wire:
        # What never changes needs no pipe; the loop may know it by the name of what it views.
        within = inside(value, self._item.for_op.body.block)
        fixed = buffer_of(value.type) == GLOBAL or not within
        if fixed and within and isinstance(value, OpResult):
            raise UnreadableError(value.op, "it makes a view anew in each step")
        flow = None if fixed else self._flow.source_of(value)
        called = None if flow is None else self._item.values.get(flow[0])
        if flow is None or called is None or Operand(called, flow[1]) not in operands:
            return Outer(self._kernel.values[value])
        return Taken(operands.index(Operand(called, flow[1])))

    def _initial(self) -> Iterator[tuple[tuple[str, int], tree.Value]]:
        """Carried values before the first step: the argument that each comes in by."""
        block = self._item.for_op.body.block
        last = block.last_op
        assert isinstance(last, scf.YieldOp)
        for argument in block.args[1:]:
            at, depth = last.operands[argument.index - 1], 1
            seen: set[SSAValue] = {argument}
            while (
                isinstance(at, BlockArgument) and at.block is block and at.index and at not in seen
            ):
                seen.add(at)
                at, depth = last.operands[at.index - 1], depth + 1
            called = self._item.values.get(at)
            if called is not None:
                yield (called, -depth), self._kernel.values[argument]


def _is_control(op: Operation) -> bool:
    return isinstance(op, NESTED)


def _taken(op: Operation) -> Iterator[SSAValue]:
    """What control flow takes from outside of it, each value once."""
    yield from dict.fromkeys(user.operands[at] for user, at in uses_of_others(op))
