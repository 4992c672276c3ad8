"""One agent's part of the kernel, from the first instruction to the last.

Numbers are computed by every agent that needs them, where it needs them first. Tiles in registers
belong to the agent that computes them, copies to the one that issues copies. A loop that runs by a
schedule is built by `LoopBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from stretto.kernel import Operation, Region, Value
from stretto.kernel.lowering.written import (
    COPY,
    LOAD,
    STORE,
    TILE_COUNT,
    TMA_LOAD,
    TMA_STORE,
    WORK_TILE,
)
from stretto.kernel.partition import ONE_CONSUMER
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, Token, View
from stretto.ops.opcodes import opcode
from stretto.program.atomics import ADDS, ATOMIC
from stretto.program.builder.exchange import Exchange
from stretto.program.builder.layouts import SPLIT, Layouts
from stretto.program.builder.names import RESERVED, Names, combiners
from stretto.program.builder.operands import (
    Operand,
    computed,
    in_layout,
    is_together,
    seen_through,
    settled,
    together,
    whole,
)
from stretto.program.builder.plan import SMEM_READ, SMEM_WRITE, Plan, SharedTile, Worker
from stretto.program.builder.sum_agent import SumBuilder
from stretto.program.builder.sums import SUM_READ, SUM_WRITE, on_its_own
from stretto.program.builder.tracer import Tracer
from stretto.program.errors import ALONE, EmitError, unwritten
from stretto.program.expressions import (
    Arithmetic,
    Barrier,
    Everywhere,
    Expression,
    InShape,
    Iteration,
    Literal,
    Name,
    Slot,
    SlotView,
    Spread,
    Transposed,
    Zeros,
    is_true,
    number,
)
from stretto.program.instructions import (
    NOWHERE,
    Arrive,
    Assign,
    Atomic,
    CopyIn,
    CopyOut,
    Expect,
    Fence,
    Flip,
    For,
    If,
    Instruction,
    Load,
    Origin,
    Print,
    Product,
    Put,
    Read,
    Store,
    StoreWait,
    ThreadBarrier,
    ThreadCopy,
    Wait,
    While,
)
from stretto.program.kernel_program import WorkTiles
from stretto.program.layouts import Layout, factor
from stretto.program.traces import Mark
from stretto.program.walk import slots_in

_SILENT = frozenset(
    ("assume", "assert", "token", "scf.yield", "scf.condition", "tile.return", "alloc_tensor")
)
_UNSUPPORTED = frozenset((COPY, "barrier"))


class AgentBuilder:
    """Builds the body of one agent."""

    def __init__(
        self, plan: Plan, worker: Worker, layouts: Layouts, tracer: Tracer | None = None
    ) -> None:
        self.plan = plan
        self.tracer = tracer
        self.worker = worker
        self._bodies: list[list[Instruction]] = [[]]
        self._origin = NOWHERE
        self.layouts = Exchange(layouts)
        self.used: dict[str, None] = {}
        """What the function takes from the kernel: parameters, descriptors, shared memory."""
        outside = {name for name, _ in plan.named.values()}
        outside |= {d.name for d in plan.descriptors.values()}
        shared = (*plan.shared_rings(), *plan.tiles.values(), *plan.sums.values())
        for one in (*shared, *plan.all_turns()):
            name = one.name
            outside |= {name, f"{name}_full", f"{name}_free", f"{name}_slot", f"{name}_phase"}
        outside |= {layout.name for layout in layouts.roots()} | set(WorkTiles.NAMES)
        self.combiners = combiners(plan.kernel)
        self.names = Names(RESERVED | outside | set(self.combiners.values()))
        self.sums = SumBuilder(self)
        """What it does with sums in tensor memory."""
        self._scopes: list[dict[Value, Operand]] = [{}]
        self._waited: list[set[str]] = [set()]
        self._read: dict[str, SharedTile] = {}
        self._by_threads: set[str] = set()
        """Tiles of those that threads read, not products or copies."""
        self._parameters = {value: name for value, (name, _) in plan.named.items()}
        self._zeros: dict[tuple[Tile, str], str] = {}
        self.stores = False

    @property
    def copies_only(self) -> bool:
        """Whether it has no tiles in registers."""
        return not self.worker.computes

    def build(self, looped: Callable[[AgentBuilder, Operation], None]) -> None:
        """The whole body; `looped` builds loops that run by schedules."""
        self._looped = looped
        self.clocks(Tracer.begin)
        for ring in self.plan.shared_rings():
            if self.worker.name in (ring.producer, *ring.consumers):
                waits_for_free = self.worker.name == ring.producer and ring.free and not ring.own
                self.say(Assign((f"{ring.name}_slot",), (number(0),)))
                self.say(Assign((f"{ring.name}_phase",), (number(int(waits_for_free)),)))
        self.sums.begin()
        for turn in self.plan.all_turns():
            for begun in turn.begun(self.worker.name) if self.worker.name in turn.agents else ():
                self.say(begun)
        for tile in self.plan.tiles.values():
            if tile.repeated and tile.loaded and not self.worker.multiplies:
                mine = self.copies_only or len(self.plan.workers) == 1
                phase = int(mine and len(self.plan.workers) > 1)
                self.say(Assign((f"{tile.name}_phase",), (number(phase),)))
        self.region(self.plan.kernel.body)
        if self.stores:
            self.say(StoreWait(0))
        self.clocks(Tracer.end)

    @property
    def body(self) -> tuple[Instruction, ...]:
        """What was built."""
        (body,) = self._bodies
        return tuple(body)

    @property
    def marks(self) -> Mapping[str, Sequence[Mark]]:
        """Where it reads clocks, of each loop."""
        return {} if self.tracer is None else self.tracer.marks

    def clocks(self, read: Callable[[Tracer], list[Instruction]]) -> None:
        """Instructions that read clocks, where they are asked for."""
        if self.tracer is not None:
            self.take("trace")
            for instruction in read(self.tracer):
                self.say(instruction)

    def say(self, instruction: Instruction) -> None:
        """One instruction more; it is of the operation at hand, if it does not say otherwise."""
        if instruction.origin is NOWHERE and self._origin is not NOWHERE:
            instruction = replace(instruction, origin=self._origin)
        self._bodies[-1].append(instruction)

    @contextmanager
    def block(self) -> Generator[list[Instruction]]:
        """What is said inside goes to a body of its own."""
        body: list[Instruction] = []
        self._bodies.append(body)
        yield body
        self._bodies.pop()

    @contextmanager
    def of(self, origin: Origin) -> Generator[None]:
        """What is said inside is of an operation."""
        before, self._origin = self._origin, origin
        yield
        self._origin = before

    @property
    def length(self) -> int:
        """Instructions of the body at hand."""
        return len(self._bodies[-1])

    def open_at(self, place: int) -> None:
        """The instruction at a place of the body at hand is the first of its operation in a step,
        or the next one that is there for more than to be counted."""
        body = self._bodies[-1]
        for n in range(place, len(body)):
            if not body[n].silent:
                body[n] = replace(body[n], opens=True)
                return

    def take(self, name: str) -> str:
        """Something of the kernel's, which is handed to the function."""
        self.used[name] = None
        return name

    # Values ------------------------------------------------------------------------------------

    def bind(self, value: Value, operand: Operand) -> None:
        """What a value is from here to the end of the block."""
        self._scopes[-1][value] = operand

    def known(self, value: Value) -> Operand | None:
        """What a value is, if it was written already."""
        for scope in reversed(self._scopes):
            if value in scope:
                return scope[value]
        return None

    def value(self, value: Value) -> Operand:
        """What a value is; whatever makes it is written now, if it was not yet."""
        found = self.known(value)
        if found is None:
            found = self._make(value)
            self.bind(value, found)
        return found

    def _make(self, value: Value) -> Operand:
        if value in self._parameters:
            return Operand(Name(self.take(self._parameters[value])))
        made = self.plan.maker.get(value)
        if made is None:
            raise EmitError(f"`{value.name}` cannot be emitted where it is used")
        row = opcode(kind_of(made))
        if kind_of(made) == "arith.constant":
            return Operand(Literal(made.attributes["value"], value.type))
        if row.awaits:
            return self.value(made.operands[0])
        if row.view and not isinstance(value.type, Buffer):
            return seen_through(made, self.value(made.operands[0]), self.layouts)
        with self.of(Origin(operation=made)):
            return self._compute(made, value)

    def _compute(self, made: Operation, value: Value) -> Operand:
        kind = kind_of(made)
        if kind == SMEM_READ:
            layout, source = self.layouts.of(value), self.buffer(made.operands[0])
            self._by_threads.add(source.memory)
            return self.read(value, source, layout)
        if kind == WORK_TILE:
            return self._work_tile(made, value)
        if kind == TILE_COUNT:
            return Operand(Name(self.take(WorkTiles.NAMES[made.integer("axis")])))
        if kind in ATOMIC:
            hint = f"{ALONE} has one group of warps do everything"
            raise EmitError("another agent has what it found there", made, hint)
        if made in self.plan.repeatable:
            operands, _ = self.loaded(made, self.value)
            name = self.names.give(value.name or "value")
            self.say(Load(name, operands, None))
            return Operand(Name(name))
        if kind == LOAD:
            owner, name = self.plan.owner(made), value.name or "what is loaded here"
            told = f"`{name}` is loaded by {owner} into its registers, and {self.worker.name}"
            hint = f"hand the number to the kernel as an argument; or {ALONE}"
            raise EmitError(f"{told} needs it too, for its loops or addresses", made, hint)
        if kind.startswith("scf."):
            told = f"{self.worker.name} takes `{value.name or kind}`, which another agent has"
            raise EmitError(f"{told} in its registers", made, self._one_agent)
        if kind in _UNSUPPORTED:
            raise unwritten(made)
        if is_together(made):
            return self._together(made, value)
        operand = computed(made, [self.value(v) for v in made.operands], self.layouts)
        return self.assign(value, operand.expression, operand.layout)

    @property
    def _one_agent(self) -> str:
        """What helps where a branch or a loop would have to be another agent's as well."""
        shared = self.worker.computes and sum(one.computes for one in self.plan.workers) > 1
        ways = [ONE_CONSUMER, ALONE] if shared else [ALONE]
        return f"a branch or a loop is one agent's: {', or '.join(ways)}"

    def _together(self, operation: Operation, value: Value) -> Operand:
        """All results of an operation at once; one of them is wanted now."""
        operands = [self.value(one) for one in operation.operands]
        function = self.combiners.get(operation, "")
        made, home = together(operation, operands, self.layouts, function)
        part = "half" if kind_of(operation) == SPLIT else "combined"
        names = [self.names.give(result.name or part) for result in operation.results]
        self.say(Assign(tuple(names), (made,)))
        for result, name in zip(operation.results, names, strict=True):
            self.settle(name, home, result)
            layout = self.layouts.of(result) if isinstance(result.type, Tile) else None
            self.bind(result, Operand(Name(name), layout))
        return self._scopes[-1][value]

    def settle(self, name: str, home: Layout | None, result: Value) -> None:
        """A result that was made with others gets its own layout."""
        source = Name(name)
        target = settled(source, home, result, self.layouts)
        if target is not source:
            self.say(Assign((name,), (target,)))

    def _work_tile(self, operation: Operation, value: Value) -> Operand:
        """Of tiles in a row: the number of one, and whether there is such."""
        index, *extents = operation.operands
        if operation.integers("tile") != (1,) or operation.integers("cluster") != (1,):
            raise EmitError("work tiles of several dimensions have no Gluon yet", operation)
        at = self.value(index)
        if value is operation.results[0]:
            return at
        given = [self.value(v).expression for v in extents]
        (most,) = given or map(number, operation.integers("problem"))
        return self.assign(value, Arithmetic("<", at.expression, most))

    def assign(self, value: Value, made: Expression, layout: Layout | None = None) -> Operand:
        """A variable of its own for a value."""
        name = self.names.give(value.name or "value")
        self.say(Assign((name,), (made,)))
        return Operand(Name(name), layout)

    def read(
        self, value: Value, source: Slot, layout: Layout, added: Expression | None = None
    ) -> Operand:
        """A variable of its own for what is read from shared or tensor memory."""
        name = self.names.give(value.name or "value")
        self.say(Read(name, source, layout, added))
        return Operand(Name(name), layout)

    def tile(self, value: Value, layout: Layout) -> Expression:
        """A whole tile in a layout, for what must have one: a carried value, a store."""
        operand = self.value(value)
        assert isinstance(value.type, Tile)
        if operand.layout is None:
            return Everywhere(operand.expression, value.type, layout)
        if not operand.whole:
            full = Spread(operand.expression, value.type, operand.layout)
            operand = Operand(full, operand.layout)
        return in_layout(operand, layout, value.type, self.layouts)

    def zeros(self, type: Tile, layout: Layout) -> Name:
        """Where a product begins that adds to nothing."""
        key = (type, str(layout))
        if key not in self._zeros:
            self._zeros[key] = self.names.give("zero")
            zeros = Zeros(type, layout)
            self.say(Assign((self._zeros[key],), (zeros,)))
        return Name(self._zeros[key])

    def buffer(self, value: Value) -> Slot:
        """A tile in shared memory, outside of any ring; it is waited for if TMA brings it."""
        root = self.plan.root(value)
        tile = self.plan.tiles[root]
        if tile.loaded:
            self._await_tile(tile)
        self._read[tile.name] = tile
        return Slot(self.take(tile.name), None, self.views(value))

    def _await_tile(self, tile: SharedTile) -> None:
        if not any(tile.name in waited for waited in self._waited):
            phase = Name(f"{tile.name}_phase") if tile.repeated else number(0)
            self.say(Wait(Barrier(self.take(f"{tile.name}_full")), phase))
            self._waited[-1].add(tile.name)

    def views(self, value: Value) -> tuple[SlotView, ...]:
        """How a tile in shared memory is seen: transposed, in another shape."""
        found: list[SlotView] = []
        while value in self.plan.maker:
            made = self.plan.maker[value]
            kind = kind_of(made)
            if opcode(kind).allocates or not isinstance(value.type, Buffer):
                break
            if kind == "transpose":
                found.append(Transposed(made.integers("permutation")))
            elif kind == "view":
                found.append(InShape(value.type.shape))
            elif kind in (TMA_LOAD, COPY, SMEM_WRITE):
                break
            value = made.operands[0]
        return tuple(reversed(found))

    # Operations --------------------------------------------------------------------------------

    def region(self, region: Region) -> None:
        """The operations of a region that are this agent's."""
        for operation in region.operations:
            self._operation(operation)

    def _operation(self, operation: Operation) -> None:
        kind = kind_of(operation)
        if kind == "scf.for":
            if operation in self.plan.loops:
                with self.sums.products(operation):
                    self._looped(self, operation)
            else:
                self._for(operation)
        elif kind == "scf.if":
            self._if(operation)
        elif kind == "scf.while":
            self._while(operation)
        elif kind == "barrier" and len(self.plan.workers) == 1:
            self.say(ThreadBarrier())
        elif kind in _UNSUPPORTED:
            if self.plan.owner(operation) == self.worker.name:
                raise unwritten(operation)
        elif kind not in _SILENT and self.plan.owner(operation) == self.worker.name:
            with self.of(Origin(operation=operation)):
                self._plain(operation)

    def _plain(self, operation: Operation) -> None:
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

    def shown(self, operation: Operation, value: Callable[[Value], Operand]) -> Print:
        """A print of whole tiles and numbers."""
        shown: list[Expression] = []
        for one in operation.operands:
            operand = value(one)
            if isinstance(one.type, Tile) and operand.layout is None:
                everywhere = Everywhere(operand.expression, one.type, self.layouts.of(one))
                operand = Operand(everywhere, self.layouts.of(one))
            elif isinstance(one.type, Tile) and not operand.whole:
                assert operand.layout is not None
                operand = Operand(Spread(operand.expression, one.type, operand.layout))
            shown.append(operand.expression)
        return Print(operation.text("prefix"), tuple(shown))

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

    def descriptor(self, view: Value, buffer: Value) -> str:
        """The descriptor of a view by tiles of a buffer's shape."""
        assert isinstance(buffer.type, Buffer)
        return self.take(self.plan.descriptors[view, buffer.type.shape].name)

    def _load(self, operation: Operation) -> None:
        view, *coordinates, buffer = operation.operands
        tile = self.plan.tiles[self.plan.root(buffer)]
        full = Barrier(self.take(f"{tile.name}_full"))
        if tile.repeated and len(self.plan.workers) > 1:
            free = Barrier(self.take(f"{tile.name}_free"))
            self.say(Wait(free, Name(f"{tile.name}_phase")))
        at = tuple(self.value(v).expression for v in coordinates)
        self.say(Expect(full, tile.bytes))
        descriptor = self.descriptor(view, buffer)
        self.say(CopyIn(descriptor, at, full, Slot(self.take(tile.name)), tile.bytes))

    def store(self, operation: Operation, value: Callable[[Value], Operand]) -> None:
        """Registers to addresses."""
        address, data, *mask = operation.operands
        if not isinstance(data.type, Tile):
            self.say(Store(tuple(value(v).expression for v in (address, data, *mask))))
            return
        layout = self.layouts.of(address)
        self.say(Store(self._all_in(layout, operation, value), layout))

    def atomic(
        self, operation: Operation, value: Callable[[Value], Operand], target: str | None
    ) -> Atomic:
        """Registers combined with what is at addresses; `target` is what was there before."""
        result, operands = operation.result, operation.operands
        taken = [whole(value(v), operation, i) for i, v in enumerate(operands)]
        if len(taken) == 3 and is_true(taken[2].expression) and kind_of(operation) == ADDS:
            taken.pop()
        if target is not None:
            self.layouts.told(result.type)
        if not isinstance(result.type, Tile):
            return Atomic(target, operation, tuple(one.expression for one in taken))
        layout = self.layouts.of(operands[0])
        made = tuple(self._in(one, v, layout) for one, v in zip(taken, operands, strict=False))
        home = self.layouts.of(result)
        if home == layout:
            return Atomic(target, operation, made, layout)
        self.layouts.convert(layout, home, result.type)
        return Atomic(target, operation, made, layout, home)

    def _all_in(
        self,
        layout: Layout,
        operation: Operation,
        value: Callable[[Value], Operand],
        many: int | None = None,
    ) -> tuple[Expression, ...]:
        """Operands, the first so many or all of them, in a layout."""
        return tuple(
            in_layout(whole(value(v), operation, i), layout, v.type, self.layouts)
            for i, v in enumerate(operation.operands[:many])
        )

    def _in(self, operand: Operand, value: Value, layout: Layout) -> Expression:
        """A tile in a layout, also where it is a number everywhere."""
        if operand.layout is not None or not isinstance(value.type, Tile):
            return in_layout(operand, layout, value.type, self.layouts)
        return Everywhere(operand.expression, value.type, layout)

    def loaded(
        self, operation: Operation, value: Callable[[Value], Operand]
    ) -> tuple[tuple[Expression, ...], Layout | None]:
        """What a load takes, and the layout of what it brings."""
        result = operation.results[0]
        if not isinstance(result.type, Tile):
            return tuple(value(v).expression for v in operation.operands), None
        layout = self.layouts.of(result)
        return self._all_in(layout, operation, value), layout

    def copied(
        self, operation: Operation, value: Callable[[Value], Operand], target: Slot
    ) -> ThreadCopy:
        """A copy by threads."""
        layout = self.layouts.of(operation.operands[0])
        taken = operation.operands[:-1]
        return ThreadCopy(self._all_in(layout, operation, value, len(taken)), target, layout)

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

    # Control flow ------------------------------------------------------------------------------

    def _mine(self, value: Value) -> bool:
        """Whether a carried value is of any use here."""
        if isinstance(value.type, Buffer | View | Token):
            return False
        return not (self.copies_only and isinstance(value.type, Tile | Pointer))

    def _for(self, operation: Operation) -> None:
        lower, upper, step, *begun = operation.operands
        (body,) = operation.regions
        if self.copies_only and not any(self._has_work(op) for op in body.walk()):
            return
        index, *arguments = body.arguments
        bounds = [self.value(v).expression for v in (lower, upper, step)]
        held = [v for v in self._outer(body) if self.known(v) is None]
        for value in held:
            self.value(value)
        carried = self._begin(begun, arguments)
        name = self.names.give(index.name or "i")
        read = self._read
        self._read = {}
        with self.block() as inner:
            self.enter()
            self.bind(index, Operand(Name(name)))
            for argument, called in carried.items():
                self.bind(argument, self._as(argument, called))
            self.region(body)
            self._move(carried, zip(arguments, body.terminator.operands, strict=True))
            self._hand_back(body)
            self.leave()
        first, last, by = bounds
        self.say(For(name, first, last, by, tuple(inner), operation))
        self._read |= read
        for argument, result in zip(arguments, operation.results, strict=True):
            if argument in carried:
                self.bind(result, self._as(argument, carried[argument]))

    def _while(self, operation: Operation) -> None:
        """As long as a condition holds, which is worked out before it and behind each turn."""
        before, after = operation.regions
        if self.copies_only and not any(self._has_work(op) for op in operation.walk()):
            return
        for value in self._outer(before) + self._outer(after):
            self.value(value)
        begun = self._begin(operation.operands, before.arguments)
        handed = {
            result: self.names.give(result.name or argument.name or "carried")
            for result, argument in zip(operation.results, after.arguments, strict=True)
            if self._mine(argument)
        }
        goes_on = self.names.give("goes_on")
        self._condition(before, begun, operation.results, handed, goes_on)
        read, self._read = self._read, {}
        with self.block() as inner:
            self.enter()
            for result, argument in zip(operation.results, after.arguments, strict=True):
                if result in handed:
                    self.bind(argument, self._as(argument, handed[result]))
            self.region(after)
            self._move(begun, zip(before.arguments, after.terminator.operands, strict=True))
            self._hand_back(after)
            self._condition(before, begun, operation.results, handed, goes_on)
            self.leave()
        self.say(While(goes_on, tuple(inner), operation))
        self._read |= read
        for result, name in handed.items():
            self.bind(result, self._as(result, name))

    def _begin(self, first: Sequence[Value], arguments: Sequence[Value]) -> dict[Value, str]:
        """Variables of what a loop carries, with what they begin with."""
        found: dict[Value, str] = {}
        for argument, value in zip(arguments, first, strict=True):
            if self._mine(argument):
                found[argument] = self.names.give(argument.name or "carried")
                self.say(Assign((found[argument],), (self._carried(value, argument),)))
        return found

    def _condition(
        self,
        before: Region,
        begun: Mapping[Value, str],
        results: Sequence[Value],
        handed: Mapping[Value, str],
        goes_on: str,
    ) -> None:
        """Whether a `while` goes round once more, and with what."""
        self.enter()
        for argument, name in begun.items():
            self.bind(argument, self._as(argument, name))
        self.region(before)
        condition, *values = before.terminator.operands
        self.say(Assign((goes_on,), (self.value(condition).expression,)))
        self._move(handed, zip(results, values, strict=True))
        self.leave()

    def _move(self, names: Mapping[Value, str], ends: Iterable[tuple[Value, Value]]) -> None:
        """What variables are from here on, all at once."""
        moved = [(names[like], self._carried(value, like)) for like, value in ends if like in names]
        moved = [(name, value) for name, value in moved if value != Name(name)]
        if moved:
            self.say(Assign(tuple(n for n, _ in moved), tuple(v for _, v in moved)))

    def _hand_back(self, region: Region) -> None:
        """Tiles that are filled each time it runs may be filled again: behind the last reader,
        where they were waited for, else at the end."""
        for alloc in region.operations:
            tile = self.plan.tiles.get(alloc.results[0]) if alloc.results else None
            if tile is None or not (tile.repeated and tile.loaded):
                continue
            if tile.name in self._read and len(self.plan.workers) > 1:
                known = tile.name in self._waited[-1]
                self._await_tile(tile)  # some branch may have read it, and this one not
                if tile.name in self._by_threads:
                    self.say(Fence())
                self.say(Arrive(Barrier(self.take(f"{tile.name}_free"))))
                if known:
                    self._move_behind(tile.name, 1 + (tile.name in self._by_threads))
            if tile.name in self._read or self.worker.copies or len(self.plan.workers) == 1:
                self.say(Flip(f"{tile.name}_phase"))

    def _move_behind(self, tile: str, count: int) -> None:
        """The last instructions of the body at hand go behind the last one that reads a tile."""
        before, last = self._bodies[-1][:-count], self._bodies[-1][-count:]
        readers = [n for n, one in enumerate(before) if tile in slots_in((one,))]
        place = readers[-1] + 1 if readers else len(before)
        self._bodies[-1][:] = [*before[:place], *last, *before[place:]]

    def _outer(self, body: Region) -> list[Value]:
        """Numbers from outside that a loop needs: computed once, before it."""
        inside = {v for op in body.walk() for v in op.results} | set(body.arguments)
        for op in body.walk():
            for region in op.regions:
                inside |= set(region.arguments)
        found: dict[Value, None] = {}
        for op in body.walk():
            for value in op.operands:
                if value not in inside and isinstance(value.type, Scalar):
                    found[value] = None
        return [v for v in found if self._wanted(v, body)]

    def _wanted(self, value: Value, body: Region) -> bool:
        if not self.copies_only:
            return True
        return any(value in op.operands for op in body.walk() if self._has_work(op))

    def _has_work(self, operation: Operation) -> bool:
        """Whether it is what an agent without tiles in registers is there for."""
        if self.worker.multiplies:
            return on_its_own(operation)
        return kind_of(operation) == TMA_LOAD

    def _carried(self, value: Value, like: Value) -> Expression:
        if isinstance(like.type, Tile):
            return self.tile(value, self.layouts.of(like))
        return self.value(value).expression

    def _as(self, value: Value, name: str) -> Operand:
        layout = self.layouts.of(value) if isinstance(value.type, Tile) else None
        return Operand(Name(name), layout)

    @property
    def inside(self) -> bool:
        """Whether what is built now stands in a block, which may run more than once."""
        return len(self._scopes) > 1

    def enter(self) -> None:
        """A block begins."""
        self._scopes.append({})
        self._waited.append(set())

    def leave(self) -> None:
        """It ends: what was computed in it is not known behind it."""
        self._scopes.pop()
        self._waited.pop()

    def _if(self, operation: Operation) -> None:
        effects = any(self._has_effect(region) for region in operation.regions)
        wanted = [r for r in operation.results if self._mine(r)]
        if not effects and (self.copies_only or not wanted):
            return
        condition = self.value(operation.operands[0]).expression
        names = {r: self.names.give(r.name or "chosen") for r in wanted}
        bodies: list[tuple[Instruction, ...]] = []
        for place, region in enumerate(operation.regions):
            ends = region.terminator.operands
            if place and not wanted and not self._has_effect(region):
                continue
            with self.block() as inner:
                self.enter()
                self.region(region)
                for result, end in zip(operation.results, ends, strict=True):
                    if result in names:
                        self.say(Assign((names[result],), (self._carried(end, result),)))
                self._hand_back(region)
                self.leave()
            bodies.append(tuple(inner))
        self.say(If(condition, bodies[0], bodies[1] if bodies[1:] else None, operation))
        for result, name in names.items():
            self.bind(result, self._as(result, name))

    def _has_effect(self, region: Region) -> bool:
        """Whether an agent has anything to do in a region."""
        effects = (TMA_LOAD, TMA_STORE, STORE, *ATOMIC)
        return any(
            op.name in ("scf.for", "scf.while")
            or on_its_own(op)
            or (kind_of(op) in effects and self.plan.owner(op) == self.worker.name)
            for op in region.walk()
        )
