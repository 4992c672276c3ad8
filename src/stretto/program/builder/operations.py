"""What one agent does with memory and products where no schedule says when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stretto.kernel import Operation, Value
from stretto.kernel.lowering.written import LOAD, STORE, TMA_LOAD, TMA_STORE
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Tile, Token
from stretto.ops.opcodes import opcode
from stretto.program.atomics import ADDS, ATOMIC
from stretto.program.builder.layouts import Layouts
from stretto.program.builder.operands import Operand, full_shape, in_layout
from stretto.program.builder.plan import SMEM_WRITE, Plan, Worker
from stretto.program.builder.sum_agent import SumBuilder
from stretto.program.builder.sums import SUM_READ, SUM_WRITE, on_its_own
from stretto.program.builder.tracer import Tracer
from stretto.program.builder.values import ValueBuilder
from stretto.program.errors import unwritten
from stretto.program.expressions import (
    Everywhere,
    Expression,
    InShape,
    Iteration,
    Name,
    Slot,
    Spread,
    is_true,
)
from stretto.program.instructions import (
    Atomic,
    CopyIn,
    CopyOut,
    Expect,
    Fence,
    Load,
    Print,
    Product,
    Put,
    Store,
    StoreWait,
    Wait,
)
from stretto.program.layouts import Layout, factor


class OperationBuilder(ValueBuilder):
    """Builds operations of one agent that stand outside of pipelined loops."""

    def __init__(
        self, plan: Plan, worker: Worker, layouts: Layouts, tracer: Tracer | None = None
    ) -> None:
        super().__init__(plan, worker, layouts, tracer)
        self.sums = SumBuilder(self)
        """What it does with sums in tensor memory."""
        self.stores = False
        """Whether TMA copies out of its shared memory."""

    def operation(self, operation: Operation) -> None:
        """What has to happen where it stands; all else waits until somebody asks for it."""
        kind = kind_of(operation)
        if kind == TMA_LOAD:
            self._load(operation)
        elif kind == TMA_STORE:
            buffer, view, *coordinates = operation.operands
            self.say(Fence())
            at = [self.value(v).expression for v in coordinates if not isinstance(v.type, Token)]
            descriptor = self.descriptor(view, buffer)
            self.say(CopyOut(descriptor, tuple(at), self.buffer(buffer)))
            self.stores = True
        elif kind == SMEM_WRITE:
            self._put(operation)
        elif kind == STORE:
            self.store(operation, self.value)
        elif kind == "print":
            self.say(self.shown(operation, self.value))
        elif kind == LOAD:
            result = operation.results[0]
            operands, layout = self.loaded(operation, self.value)
            name = self.names.give(result.name or "value")
            self.say(Load(name, operands, layout))
            self.bind(result, Operand(Name(name), layout))
        elif kind in ATOMIC:
            self._combine(operation)
        elif kind in (SUM_WRITE, SUM_READ) or opcode(kind).accumulator is not None:
            self._multiply(operation)
        elif all(isinstance(result.type, Token) for result in operation.results):
            raise unwritten(operation)

    # Memory --------------------------------------------------------------------------------------

    def descriptor(self, view: Value, buffer: Value) -> str:
        """The descriptor of a view by tiles of a buffer's shape."""
        assert isinstance(buffer.type, Buffer)
        return self.take(self.plan.descriptors[view, buffer.type.shape].name)

    def _load(self, operation: Operation) -> None:
        view, *coordinates, buffer = operation.operands
        tile = self.plan.tiles[self.plan.root(buffer)]
        self.take(f"{tile.name}_full")
        full = tile.barrier("full")
        if tile.repeated and len(self.plan.workers) > 1:
            self.take(f"{tile.name}_free")
            self.say(Wait(tile.barrier("free"), Name(f"{tile.name}_phase")))
        at = tuple(self.value(v).expression for v in coordinates)
        self.say(Expect(full, tile.bytes))
        descriptor = self.descriptor(view, buffer)
        slot = Slot(self.take(tile.name), tile.slot)
        self.say(CopyIn(descriptor, at, full, slot, tile.bytes))

    def _put(self, operation: Operation) -> None:
        """Registers to a tile in shared memory."""
        tile = self.plan.tiles[self.plan.root(operation.result)]
        if tile.repeated:
            self.say(StoreWait(0))
        source, shaped = operation.operands[0], ()
        while (made := self.plan.maker.get(source)) and kind_of(made) == "view":
            source = made.operands[0]
            assert isinstance(source.type, Tile)
            shaped = (InShape(source.type.shape),)
        value = self.tile(source, self.layouts.of(source))
        target = self.buffer(operation.result)
        self.say(Put(value, replace(target, views=(*target.views, *shaped))))
        if self.plan.is_factor(tile.buffer):
            self.say(Fence())

    def store(self, operation: Operation, value: Callable[[Value], Operand]) -> None:
        """Registers to addresses."""
        address, data, *mask = operation.operands
        if not isinstance(data.type, Tile):
            self.say(Store(tuple(value(v).expression for v in (address, data, *mask))))
            return
        layout = self.layouts.of(address)
        self.say(Store(self._all_in(layout, operation, value), layout))

    def _combine(self, operation: Operation) -> None:
        result = operation.result
        if not self.plan.is_read(result):
            self.say(self.atomic(operation, self.value, None))
            return
        made = self.atomic(operation, self.value, "")
        name = self.names.give(result.name or "value")
        self.say(replace(made, target=name))
        layout = self.layouts.of(result) if isinstance(result.type, Tile) else None
        self.bind(result, Operand(Name(name), layout))

    def atomic(
        self, operation: Operation, value: Callable[[Value], Operand], target: str | None
    ) -> Atomic:
        """Registers combined with what is at addresses; `target` is what was there before."""
        result, operands = operation.result, operation.operands
        taken = [full_shape(value(v), operation, i) for i, v in enumerate(operands)]
        if len(taken) == 3 and is_true(taken[2].expression) and kind_of(operation) == ADDS:
            taken.pop()
        if target is not None:
            self.layouts.broadcast(result.type)
        if not isinstance(result.type, Tile):
            return Atomic(target, operation, tuple(one.expression for one in taken))
        layout = self.layouts.of(operands[0])
        made = tuple(self.in_full(one, v, layout) for one, v in zip(taken, operands, strict=False))
        home = self.layouts.of(result)
        if home == layout:
            return Atomic(target, operation, made, layout)
        self.layouts.convert(layout, home, result.type)
        return Atomic(target, operation, made, layout, home)

    def shown(self, operation: Operation, value: Callable[[Value], Operand]) -> Print:
        """A print of whole tiles and numbers."""
        shown: list[Expression] = []
        for one in operation.operands:
            operand = value(one)
            if isinstance(one.type, Tile) and operand.layout is None:
                everywhere = Everywhere(operand.expression, one.type, self.layouts.of(one))
                operand = Operand(everywhere, self.layouts.of(one))
            elif isinstance(one.type, Tile) and not operand.full:
                assert operand.layout is not None
                operand = Operand(Spread(operand.expression, one.type, operand.layout))
            shown.append(operand.expression)
        return Print(operation.text("prefix"), tuple(shown))

    # Products ------------------------------------------------------------------------------------

    def _multiply(self, operation: Operation) -> None:
        """A product outside of loops, or what a sum begins with, or the sum itself."""
        if kind_of(operation) == SUM_WRITE:
            self.sums.fill(operation)
        elif kind_of(operation) == SUM_READ:
            self.sums.read(operation)
        elif on_its_own(operation):
            with self.sums.products(operation):
                factors = [self.buffer(value) for value in operation.operands[:2]]
                self.sums.add(operation, factors, Iteration(""))
        else:
            self._product(operation)

    def _product(self, operation: Operation) -> None:
        """Outside of loops: at once."""
        groups = operation.integers("groups")
        a, b = operation.operands[:2]
        result = operation.results[0]
        layout = self.layouts.of(result)
        left = self.factor(a, layout, self.value)
        adds = len(groups) > 2 and bool(groups[2])
        assert isinstance(result.type, Tile)
        total: Expression
        if adds:
            total = self.tile(operation.operands[2], layout)
        else:
            total = self.zeros(result.type, layout)
        name = self.names.give(result.name or "value")
        right = self.buffer(b)
        self.say(Product(name, left, right, total, adds, asynchronous=False))
        self.bind(result, Operand(Name(name), layout))

    def factor(
        self, value: Value, layout: Layout, operand: Callable[[Value], Operand]
    ) -> Expression | Slot:
        """The left factor of a product: from shared memory, or from registers."""
        if isinstance(value.type, Buffer):
            return self.buffer(value)
        return in_layout(operand(value), factor(value.type, layout), value.type, self.layouts)
