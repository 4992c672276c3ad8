"""Numbers and tiles as one agent has them: whatever makes a value is written where it is asked for
first, and known from there to the end of its block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stretto.kernel import Operation, Value
from stretto.kernel.lowering.written import COPY, LOAD, TILE_COUNT, TMA_LOAD, WORK_TILE
from stretto.kernel.partition import ONE_CONSUMER
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Tile
from stretto.ops.opcodes import opcode
from stretto.program.atomics import ATOMIC
from stretto.program.builder.bodies import BodyBuilder
from stretto.program.builder.exchange import Exchange
from stretto.program.builder.layouts import SPLIT, Layouts
from stretto.program.builder.names import RESERVED, Names, combiners
from stretto.program.builder.operands import (
    Operand,
    computed,
    full_shape,
    in_layout,
    is_together,
    seen_through,
    settled,
    together,
)
from stretto.program.builder.plan import SMEM_READ, SMEM_WRITE, Plan, SharedTile, Worker
from stretto.program.builder.tracer import Tracer
from stretto.program.errors import ALONE, EmitError, unwritten
from stretto.program.expressions import (
    Arithmetic,
    Everywhere,
    Expression,
    InShape,
    Literal,
    Name,
    Slot,
    SlotView,
    Spread,
    Transposed,
    Zeros,
    number,
)
from stretto.program.instructions import Assign, Load, Origin, Read, ThreadCopy, Wait
from stretto.program.kernel_program import WorkTiles
from stretto.program.layouts import Layout

UNSUPPORTED = frozenset((COPY, "barrier"))


class ValueBuilder(BodyBuilder):
    """Builds values of one agent."""

    def __init__(
        self, plan: Plan, worker: Worker, layouts: Layouts, tracer: Tracer | None = None
    ) -> None:
        super().__init__(tracer)
        self.plan = plan
        self.worker = worker
        self.layouts = Exchange(layouts)
        outside = {name for name, _ in plan.named.values()}
        outside |= {d.name for d in plan.descriptors.values()}
        shared = (*plan.shared_rings(), *plan.tiles.values(), *plan.sums.values())
        for one in (*shared, *plan.all_turns()):
            name = one.name
            outside |= {name, f"{name}_full", f"{name}_free", f"{name}_slot", f"{name}_phase"}
        outside |= {layout.name for layout in layouts.roots()} | set(WorkTiles.NAMES)
        self.combiners = combiners(plan.kernel)
        self.names = Names(RESERVED | outside | set(self.combiners.values()))
        self._scopes: list[dict[Value, Operand]] = [{}]
        self._waited: list[set[str]] = [set()]
        self._read: dict[str, SharedTile] = {}
        self._by_threads: set[str] = set()
        """Tiles of those that threads read, not products or copies."""
        self._parameters = {value: name for value, (name, _) in plan.named.items()}
        self._zeros: list[dict[tuple[Tile, str], str]] = [{}]

    @property
    def copies_only(self) -> bool:
        """Whether it has no tiles in registers."""
        return not self.worker.computes

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
            for one in self._before(value):
                if self.known(one) is None:
                    self.bind(one, self._make(one))
            found = self._make(value)
            self.bind(value, found)
        return found

    def _before(self, value: Value) -> list[Value]:
        """What a value is computed of, and that in turn, in the order in which it is written:
        unrolled loops make chains of thousands."""
        found: list[Value] = []
        seen = {value}
        ahead = [iter(self._computed_of(value))]
        path = [value]
        while ahead:
            following = next((one for one in ahead[-1] if one not in seen), None)
            if following is not None:
                seen.add(following)
                path.append(following)
                ahead.append(iter(self._computed_of(following)))
            else:
                ahead.pop()
                found.append(path.pop())
        return found[:-1]

    def _computed_of(self, value: Value) -> Sequence[Value]:
        """The operands of plain arithmetic, of which a value is made."""
        made = self.plan.maker.get(value)
        if made is None or self.known(value) is not None or not kind_of(made).startswith("arith."):
            return ()
        return made.operands

    @property
    def inside(self) -> bool:
        """Whether what is built now stands in a block, which may run more than once."""
        return len(self._scopes) > 1

    def enter(self) -> None:
        """A block begins."""
        self._scopes.append({})
        self._zeros.append({})
        self._waited.append(set())

    def leave(self) -> None:
        """It ends: what was computed in it is not known behind it."""
        self._scopes.pop()
        self._zeros.pop()
        self._waited.pop()

    # What makes a value --------------------------------------------------------------------------

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
            hint = f"{ALONE} has one warpgroup do everything"
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
        if kind in UNSUPPORTED:
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
        layout, buffer = self.layouts.of(operation.operands[0]), operation.operands[-1]
        return ThreadCopy(self._all_in(layout, operation, value, but=buffer), target, layout)

    def _all_in(
        self,
        layout: Layout,
        operation: Operation,
        value: Callable[[Value], Operand],
        but: Value | None = None,
    ) -> tuple[Expression, ...]:
        """Operands, all of them `but` one, in a layout; addresses in full, also where all of them
        are the same."""
        taken = [v for v in operation.operands if v is not but]
        address, *others = (full_shape(value(v), operation, i) for i, v in enumerate(taken))
        types = [v.type for v in taken[1:]]
        rest = [
            in_layout(one, layout, type, self.layouts)
            for one, type in zip(others, types, strict=True)
        ]
        return self.in_full(address, operation.operands[0], layout), *rest

    def in_full(self, operand: Operand, value: Value, layout: Layout) -> Expression:
        """A tile in a layout, also where it is a number everywhere."""
        if operand.layout is not None or not isinstance(value.type, Tile):
            return in_layout(operand, layout, value.type, self.layouts)
        return Everywhere(operand.expression, value.type, layout)

    # Tiles ---------------------------------------------------------------------------------------

    def tile(self, value: Value, layout: Layout) -> Expression:
        """A whole tile in a layout, for what must have one: a carried value, a store."""
        operand = self.value(value)
        assert isinstance(value.type, Tile)
        if operand.layout is None:
            return Everywhere(operand.expression, value.type, layout)
        if not operand.full:
            full = Spread(operand.expression, value.type, operand.layout)
            operand = Operand(full, operand.layout)
        return in_layout(operand, layout, value.type, self.layouts)

    def zeros(self, type: Tile, layout: Layout) -> Name:
        """Where a product begins that adds to nothing."""
        key = (type, str(layout))
        for known in self._zeros:
            if key in known:
                return Name(known[key])
        name = self._zeros[-1][key] = self.names.give("zero")
        self.say(Assign((name,), (Zeros(type, layout),)))
        return Name(name)

    def buffer(self, value: Value) -> Slot:
        """A tile in shared memory, outside of any ring; it is waited for if TMA brings it."""
        root = self.plan.root(value)
        tile = self.plan.tiles[root]
        if tile.loaded:
            self._await_tile(tile)
        self._read[tile.name] = tile
        return Slot(self.take(tile.name), tile.slot, self.views(value))

    def _await_tile(self, tile: SharedTile) -> None:
        if not any(tile.name in waited for waited in self._waited):
            phase = Name(f"{tile.name}_phase") if tile.repeated else number(0)
            self.take(f"{tile.name}_full")
            self.say(Wait(tile.barrier("full"), phase))
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
