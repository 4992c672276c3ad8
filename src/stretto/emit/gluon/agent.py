"""One agent's function: its part of the kernel, from the first operation to the last.

Numbers are computed by every agent that needs them, where it needs them first. Tiles in registers
belong to the agent that computes them, copies to the one that issues copies. A loop that runs by a
program is written by `LoopWriter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from stretto.emit.gluon.adding import SumWriter
from stretto.emit.gluon.atomics import ADDS, ATOMIC, atomic
from stretto.emit.gluon.exchange import Exchange
from stretto.emit.gluon.expressions import (
    ALONE,
    EmitError,
    everywhere,
    literal,
    unwritten,
    wrapped,
    zeros,
)
from stretto.emit.gluon.layouts import SPLIT, Layouts
from stretto.emit.gluon.plan import (
    SMEM_READ,
    SMEM_WRITE,
    Plan,
    SharedTile,
    Worker,
)
from stretto.emit.gluon.sums import SUM_READ, SUM_WRITE, on_its_own
from stretto.emit.gluon.text import RESERVED, Lines, Names
from stretto.emit.gluon.tracing import Tracer
from stretto.emit.gluon.values import Shown, computed, half, halves, in_layout, seen_through, whole
from stretto.emit.score import AgentScore, Around, Beat, BeatKind, Part
from stretto.kernel import Operation, Region, Value
from stretto.kernel.lowering.written import (
    COPY,
    LOAD,
    STORE,
    TMA_LOAD,
    TMA_STORE,
    WORK_TILE,
)
from stretto.kernel.partition import ONE_CONSUMER
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, Token, View
from stretto.ops.opcodes import opcode
from stretto.program.layouts import Layout, factor

_SILENT = frozenset(
    ("assume", "assert", "token", "scf.yield", "scf.condition", "tile.return", "alloc_tensor")
)
_UNSUPPORTED = frozenset((COPY, "barrier"))


class AgentWriter:
    """Writes the function of one agent."""

    def __init__(
        self, plan: Plan, worker: Worker, layouts: Layouts, tracer: Tracer | None = None
    ) -> None:
        self.plan = plan
        self.tracer = tracer
        self._score: list[Part] = []
        self.worker = worker
        self.lines = Lines()
        self.layouts = Exchange(layouts)
        self.used: dict[str, None] = {}
        """What the function takes from the kernel: parameters, descriptors, shared memory."""
        outside = {name for name, _ in plan.named.values()}
        outside |= {d.name for d in plan.descriptors.values()}
        shared = (*plan.shared_rings(), *plan.tiles.values(), *plan.sums.values())
        for one in (*shared, *plan.all_turns()):
            name = one.name
            outside |= {name, f"{name}_full", f"{name}_free", f"{name}_slot", f"{name}_phase"}
        outside |= {layout.name for layout in layouts.roots()}
        self.names = Names(RESERVED | outside)
        self.sums = SumWriter(self)
        """What it does with sums in tensor memory."""
        self._scopes: list[dict[Value, Shown]] = [{}]
        self._waited: list[set[str]] = [set()]
        self._read: dict[str, SharedTile] = {}
        self._parameters = {value: name for value, (name, _) in plan.named.items()}
        self._zeros: dict[tuple[tuple[int, ...], str], str] = {}
        self.stores = False
        self.holds = False

    @property
    def copies_only(self) -> bool:
        """Whether it has no tiles in registers."""
        return not self.worker.computes

    def write(self, looped: Callable[[AgentWriter, Operation], None]) -> None:
        """The whole body; `looped` writes loops that run by programs."""
        self._looped = looped
        self.clocks(Tracer.begin)
        for ring in self.plan.shared_rings():
            if self.worker.name in (ring.producer, *ring.consumers) and (ring.full or ring.free):
                self.say(f"{ring.name}_slot = 0")
                waits_for_free = self.worker.name == ring.producer and ring.free and not ring.own
                self.say(f"{ring.name}_phase = {1 if waits_for_free else 0}")
            elif self.worker.name in (ring.producer, *ring.consumers):
                self.say(f"{ring.name}_slot = 0")
                self.say(f"{ring.name}_phase = 0")
        self.sums.begin()
        for turn in self.plan.all_turns():
            for line in turn.begun(self.worker.name) if self.worker.name in turn.agents else ():
                self.say(line)
        for tile in self.plan.tiles.values():
            if tile.repeated and tile.loaded and not self.worker.multiplies:
                mine = self.copies_only or len(self.plan.workers) == 1
                self.say(f"{tile.name}_phase = {1 if mine and len(self.plan.workers) > 1 else 0}")
        self.region(self.plan.kernel.body)
        if self.stores:
            self.say("tma.store_wait(0)")
            self.beat("drain", None)
        self.clocks(Tracer.end)

    @property
    def score(self) -> AgentScore:
        """What was written, beat by beat."""
        return AgentScore(self.worker.name, self.worker.warps, tuple(self._score))

    def scored(self, part: Part) -> None:
        """Something that was just written."""
        self._score.append(part)

    def beat(
        self, kind: BeatKind, operation: Operation | None, thing: str = "", bytes: int = 0
    ) -> None:
        """What was just written, for whoever asks what the program does."""
        name = "" if operation is None else kind_of(operation)
        self._score.append(Beat(kind, name, thing, bytes=bytes, operation=operation))

    def clocks(self, lines: Callable[[Tracer], list[str]]) -> None:
        """Lines that read clocks, where they are asked for."""
        if self.tracer is not None:
            self.take("trace")
            for line in lines(self.tracer):
                self.say(line)

    def say(self, text: str = "") -> None:
        """A line."""
        self.lines.say(text)

    def take(self, name: str) -> str:
        """Something of the kernel's, which is handed to the function."""
        self.used[name] = None
        return name

    # Values ------------------------------------------------------------------------------------

    def bind(self, value: Value, shown: Shown) -> None:
        """What a value is from here to the end of the block."""
        self._scopes[-1][value] = shown

    def known(self, value: Value) -> Shown | None:
        """What a value is, if it was written already."""
        for scope in reversed(self._scopes):
            if value in scope:
                return scope[value]
        return None

    def value(self, value: Value) -> Shown:
        """What a value is; whatever makes it is written now, if it was not yet."""
        found = self.known(value)
        if found is None:
            found = self._make(value)
            self.bind(value, found)
        return found

    def _make(self, value: Value) -> Shown:  # noqa: PLR0912 - one case a kind
        if value in self._parameters:
            return Shown(self.take(self._parameters[value]))
        made = self.plan.maker.get(value)
        if made is None:
            raise EmitError(f"`{value.name}` cannot be emitted where it is used")
        kind = kind_of(made)
        row = opcode(kind)
        if kind == "arith.constant":
            return Shown(literal(made.attributes["value"], value.type))
        if row.awaits:
            return self.value(made.operands[0])
        if row.view and not isinstance(value.type, Buffer):
            return seen_through(made, self.value(made.operands[0]), self.layouts)
        if kind == SMEM_READ:
            layout = self.layouts.of(value)
            return self.assign(value, f"{self.buffer(made.operands[0])}.load({layout})", layout)
        if kind == WORK_TILE:
            return self._work_tile(made, value)
        if kind in ATOMIC:
            hint = f"{ALONE} has one group of warps do everything"
            raise EmitError("another agent has what it found there", made, hint)
        if made in self.plan.repeatable:
            self.beat("work", made)
            return self.assign(value, self.loaded(made, self.value).text)
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
        if kind == SPLIT:
            return self._split(made, value)
        shown = computed(made, [self.value(v) for v in made.operands], self.layouts)
        if isinstance(value.type, Tile):
            self.beat("work", made)
        return self.assign(value, shown.text, shown.layout)

    @property
    def _one_agent(self) -> str:
        """What helps where a branch or a loop would have to be another agent's as well."""
        shared = self.worker.computes and sum(one.computes for one in self.plan.workers) > 1
        ways = [ONE_CONSUMER, ALONE] if shared else [ALONE]
        return f"a branch or a loop is one agent's: {', or '.join(ways)}"

    def _split(self, operation: Operation, value: Value) -> Shown:
        """The two halves of a tile; one of them is wanted now."""
        text = halves(operation, self.value(operation.operands[0]), self.layouts)
        names = [self.names.give(result.name or "half") for result in operation.results]
        self.say(f"{', '.join(names)} = {text}")
        self.beat("work", operation)
        for result, name in zip(operation.results, names, strict=True):
            home = self.layouts.of(result)
            self.say(f"{name} = {half(operation, name, result, self.layouts)}")
            self.bind(result, Shown(name, home))
        return self._scopes[-1][value]

    def _work_tile(self, operation: Operation, value: Value) -> Shown:
        """Of tiles in a row: the number of one, and whether there is such."""
        index, *extents = operation.operands
        if operation.integers("tile") != (1,) or operation.integers("cluster") != (1,):
            raise EmitError("work tiles of several dimensions have no Gluon yet", operation)
        number = self.value(index)
        if value is operation.results[0]:
            return number
        (most,) = [self.value(v).text for v in extents] or map(str, operation.integers("problem"))
        return self.assign(value, f"{number.text} < {wrapped(most)}")

    def assign(self, value: Value, text: str, layout: Layout | None = None) -> Shown:
        """A variable of its own for a value."""
        name = self.names.give(value.name or "value")
        self.say(f"{name} = {text}")
        return Shown(name, layout)

    def tile(self, value: Value, layout: Layout) -> str:
        """A whole tile in a layout, for what must have one: a carried value, a store."""
        shown = self.value(value)
        assert isinstance(value.type, Tile)
        if shown.layout is None:
            return everywhere(shown.text, value.type, layout)
        if not shown.whole:
            zero = zeros(value.type, shown.layout)
            shown = Shown(f"({zero} + {shown.text})", shown.layout)
        return in_layout(shown, layout, value.type, self.layouts)

    def zeros(self, shape: Sequence[int], layout: Layout) -> str:
        """Where a product begins that adds to nothing."""
        key = (tuple(shape), str(layout))
        if key not in self._zeros:
            self._zeros[key] = self.names.give("zero")
            self.say(f"{self._zeros[key]} = gl.zeros({list(shape)}, gl.float32, {layout})")
        return self._zeros[key]

    def buffer(self, value: Value) -> str:
        """A tile in shared memory, outside of any ring; it is waited for if TMA brings it."""
        root = self.plan.root(value)
        tile = self.plan.tiles[root]
        if tile.loaded:
            self._await_tile(tile)
        self._read[tile.name] = tile
        return self.take(tile.name) + self.views(value)

    def _await_tile(self, tile: SharedTile) -> None:
        if not any(tile.name in waited for waited in self._waited):
            phase = f"{tile.name}_phase" if tile.repeated else "0"
            self.say(f"mbarrier.wait({self.take(f'{tile.name}_full')}, {phase})")
            self.beat("full", None, tile.name)
            self._waited[-1].add(tile.name)

    def views(self, value: Value) -> str:
        """How a tile in shared memory is seen: transposed, in another shape."""
        found = ""
        while value in self.plan.maker:
            made = self.plan.maker[value]
            kind = kind_of(made)
            if opcode(kind).allocates or not isinstance(value.type, Buffer):
                break
            if kind == "transpose":
                found = f".permute({list(made.integers('permutation'))})" + found
            elif kind == "view":
                found = f".reshape({list(value.type.shape)})" + found
            elif kind in (TMA_LOAD, SMEM_WRITE):
                break
            value = made.operands[0]
        return found

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
            self.say("gl.thread_barrier()")
        elif kind in _UNSUPPORTED:
            if self.plan.owner(operation) == self.worker.name:
                raise unwritten(operation)
        elif kind not in _SILENT and self.plan.owner(operation) == self.worker.name:
            self._plain(operation)

    def _plain(self, operation: Operation) -> None:
        """What has to happen where it stands; all else waits until somebody asks for it."""
        kind = kind_of(operation)
        if kind == TMA_LOAD:
            self._load(operation)
        elif kind == TMA_STORE:
            buffer, view, *coordinates = operation.operands
            self.say("fence_async_shared()")
            at = ", ".join(self.value(v).text for v in coordinates if not isinstance(v.type, Token))
            descriptor = self.descriptor(view, buffer)
            self.say(f"tma_store({descriptor}, [{at}], {self.buffer(buffer)})")
            self.beat("store", operation)
            self.stores = True
        elif kind == SMEM_WRITE:
            tile = self.plan.tiles[self.plan.root(operation.result)]
            if tile.repeated:
                self.say("tma.store_wait(0)")
                self.beat("drain", None)
            source, shaped = operation.operands[0], ""
            while (made := self.plan.maker.get(source)) and kind_of(made) == "view":
                source = made.operands[0]
                assert isinstance(source.type, Tile)
                shaped = f".reshape({list(source.type.shape)})"
            text = self.tile(source, self.layouts.of(source))
            self.say(f"{self.buffer(operation.result)}{shaped}.store({text})")
            self.beat("work", operation)
        elif kind == STORE:
            self.store(operation, self.value)
            self.beat("work", operation)
        elif kind == LOAD:
            shown = self.loaded(operation, self.value)
            self.beat("work", operation)
            self.bind(
                operation.results[0], self.assign(operation.results[0], shown.text, shown.layout)
            )
        elif kind in ATOMIC:
            self._combine(operation)
        elif kind in (SUM_WRITE, SUM_READ) or opcode(kind).accumulator is not None:
            self._multiply(operation)
        elif all(isinstance(result.type, Token) for result in operation.results):
            raise unwritten(operation)

    def _combine(self, operation: Operation) -> None:
        result, shown = operation.result, self.atomic(operation, self.value)
        self.beat("work", operation)
        if self.plan.is_read(result):
            self.bind(result, self.assign(result, shown.text, shown.layout))
        else:
            self.say(shown.text)

    def _multiply(self, operation: Operation) -> None:
        """A product outside of loops, or what a sum begins with, or the sum itself."""
        if kind_of(operation) == SUM_WRITE:
            self.sums.fill(operation)
        elif kind_of(operation) == SUM_READ:
            self.sums.read(operation)
        elif on_its_own(operation):
            with self.sums.products(operation):
                factors = [self.buffer(value) for value in operation.operands[:2]]
                self.sums.add(operation, factors, "0")
        else:
            self._product(operation)

    def descriptor(self, view: Value, buffer: Value) -> str:
        """The descriptor of a view by tiles of a buffer's shape."""
        assert isinstance(buffer.type, Buffer)
        return self.take(self.plan.descriptors[view, buffer.type.shape].name)

    def _load(self, operation: Operation) -> None:
        view, *coordinates, buffer = operation.operands
        tile = self.plan.tiles[self.plan.root(buffer)]
        full = self.take(f"{tile.name}_full")
        if tile.repeated and len(self.plan.workers) > 1:
            self.say(f"mbarrier.wait({self.take(f'{tile.name}_free')}, {tile.name}_phase)")
            self.beat("free", None, tile.name)
        at = ", ".join(self.value(v).text for v in coordinates)
        self.say(f"mbarrier.expect({full}, {tile.bytes})")
        self.say(
            f"tma_load({self.descriptor(view, buffer)}, [{at}], {full}, {self.take(tile.name)})"
        )
        self.beat("copy", operation, tile.name, tile.bytes)

    def store(self, operation: Operation, value: Callable[[Value], Shown]) -> None:
        """Registers to addresses."""
        address, data, *mask = operation.operands
        if not isinstance(data.type, Tile):
            texts = [value(v).text for v in (address, data, *mask)]
            self.say(f"gl.store({', '.join(texts)})")
            return
        layout = self.layouts.of(address)
        texts = self._all_in(layout, operation, value)
        self.say(f"gl.store({', '.join(texts)})")

    def atomic(self, operation: Operation, value: Callable[[Value], Shown]) -> Shown:
        """Registers combined with what is at addresses: what was there before."""
        result, operands = operation.result, operation.operands
        shown = [whole(value(v), operation, i) for i, v in enumerate(operands)]
        if len(shown) == 3 and shown[2] == Shown("True") and kind_of(operation) == ADDS:
            shown.pop()
        if self.plan.is_read(result):
            self.layouts.told(result.type)
        if not isinstance(result.type, Tile):
            return Shown(atomic(operation, [one.text for one in shown]))
        layout = self.layouts.of(operands[0])
        texts = [self._in(one, v, layout) for one, v in zip(shown, operands, strict=False)]
        found = Shown(atomic(operation, texts), layout)
        home = self.layouts.of(result)
        return Shown(in_layout(found, home, result.type, self.layouts), home)

    def _all_in(
        self, layout: Layout, operation: Operation, value: Callable[[Value], Shown]
    ) -> list[str]:
        """Operands, all of them in a layout."""
        return [
            in_layout(whole(value(v), operation, i), layout, v.type, self.layouts)
            for i, v in enumerate(operation.operands)
        ]

    def _in(self, shown: Shown, value: Value, layout: Layout) -> str:
        """A tile in a layout, also where it is a number everywhere."""
        if shown.layout is not None or not isinstance(value.type, Tile):
            return in_layout(shown, layout, value.type, self.layouts)
        return everywhere(shown.text, value.type, layout)

    def loaded(self, operation: Operation, value: Callable[[Value], Shown]) -> Shown:
        """Addresses to registers."""
        result = operation.results[0]
        if not isinstance(result.type, Tile):
            return Shown(f"gl.load({', '.join(value(v).text for v in operation.operands)})")
        layout = self.layouts.of(result)
        texts = self._all_in(layout, operation, value)
        return Shown(f"gl.load({', '.join(texts)})", layout)

    def _product(self, operation: Operation) -> None:
        """Outside of loops: at once."""
        groups = operation.integers("groups")
        a, b = operation.operands[:2]
        result = operation.results[0]
        layout = self.layouts.of(result)
        left = self.factor(a, layout, self.value)
        total = operation.operands[2] if len(groups) > 2 and groups[2] else None
        assert isinstance(result.type, Tile)
        if total is None:
            text = f"{self.zeros(result.type.shape, layout)}, use_acc=False"
        else:
            text = self.tile(total, layout)
        shown = self.assign(result, f"warpgroup_mma({left}, {self.buffer(b)}, {text})", layout)
        self.beat("product", operation)
        self.beat("settle", operation)
        self.bind(result, shown)

    def factor(self, value: Value, layout: Layout, shown: Callable[[Value], Shown]) -> str:
        """The left factor of a product: from shared memory, or from registers."""
        if isinstance(value.type, Buffer):
            return self.buffer(value)
        return in_layout(shown(value), factor(value.type, layout), value.type, self.layouts)

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
        bounds = [self.value(v).text for v in (lower, upper, step)]
        held = [v for v in self._outer(body) if self.known(v) is None]
        for value in held:
            self.value(value)
        carried = self._begin(begun, arguments)
        name = self.names.give(index.name or "i")
        read = self._read
        self._read = {}
        before, self._score = self._score, []
        with self.lines.block(f"for {name} in range({', '.join(bounds)}):"):
            self.enter()
            self.bind(index, Shown(name))
            for argument, called in carried.items():
                self.bind(argument, self._as(argument, called))
            self.region(body)
            self._move(carried, zip(arguments, body.terminator.operands, strict=True))
            self._hand_back(body)
            self.leave()
        self._score = [*before, Around(lower, upper, step, tuple(self._score))]
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
        score, self._score = self._score, []
        with self.lines.block(f"while {goes_on}:"):
            self.enter()
            for result, argument in zip(operation.results, after.arguments, strict=True):
                if result in handed:
                    self.bind(argument, self._as(argument, handed[result]))
            self.region(after)
            self._move(begun, zip(before.arguments, after.terminator.operands, strict=True))
            self._hand_back(after)
            self._condition(before, begun, operation.results, handed, goes_on)
            self.leave()
        self._score = [*score, Around(None, None, None, tuple(self._score))]
        self._read |= read
        for result, name in handed.items():
            self.bind(result, self._as(result, name))

    def _begin(self, first: Sequence[Value], arguments: Sequence[Value]) -> dict[Value, str]:
        """Variables of what a loop carries, with what they begin with."""
        found: dict[Value, str] = {}
        for argument, value in zip(arguments, first, strict=True):
            if self._mine(argument):
                found[argument] = self.names.give(argument.name or "carried")
                self.say(f"{found[argument]} = {self._carried(value, argument)}")
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
        self.say(f"{goes_on} = {self.value(condition).text}")
        self._move(handed, zip(results, values, strict=True))
        self.leave()

    def _move(self, names: Mapping[Value, str], ends: Iterable[tuple[Value, Value]]) -> None:
        """What variables are from here on, all at once."""
        moved = [(names[like], self._carried(value, like)) for like, value in ends if like in names]
        moved = [(name, text) for name, text in moved if name != text]
        if moved:
            self.say(f"{', '.join(n for n, _ in moved)} = {', '.join(t for _, t in moved)}")

    def _hand_back(self, region: Region) -> None:
        """At its end: tiles that are filled each time it runs may be filled again."""
        for alloc in region.operations:
            tile = self.plan.tiles.get(alloc.results[0]) if alloc.results else None
            if tile is None or not (tile.repeated and tile.loaded):
                continue
            if tile.name in self._read and len(self.plan.workers) > 1:
                self._await_tile(tile)  # some branch may have read it, and this one not
                self.say(f"mbarrier.arrive({self.take(f'{tile.name}_free')}, count=1)")
                self.beat("arrive", None, tile.name)
            if tile.name in self._read or self.worker.copies or len(self.plan.workers) == 1:
                self.say(f"{tile.name}_phase ^= 1")

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

    def _carried(self, value: Value, like: Value) -> str:
        if isinstance(like.type, Tile):
            return self.tile(value, self.layouts.of(like))
        return self.value(value).text

    def _as(self, value: Value, name: str) -> Shown:
        return Shown(name, self.layouts.of(value) if isinstance(value.type, Tile) else None)

    @property
    def inside(self) -> bool:
        """Whether what is written now stands in a block, which may run more than once."""
        return len(self._scopes) > 1

    def enter(self) -> None:
        """A block begins."""
        self._scopes.append({})
        self._waited.append(set())

    def leave(self) -> None:
        """It ends: what was written in it is not known behind it."""
        self._scopes.pop()
        self._waited.pop()

    def _if(self, operation: Operation) -> None:
        effects = any(self._has_effect(region) for region in operation.regions)
        wanted = [r for r in operation.results if self._mine(r)]
        if not effects and (self.copies_only or not wanted):
            return
        condition = self.value(operation.operands[0]).text
        names = {r: self.names.give(r.name or "chosen") for r in wanted}
        for number, region in enumerate(operation.regions):
            ends = region.terminator.operands
            if number and not wanted and not self._has_effect(region):
                continue
            with self.lines.block(f"if {condition}:" if not number else "else:"):
                self.enter()
                self.region(region)
                for result, end in zip(operation.results, ends, strict=True):
                    if result in names:
                        self.say(f"{names[result]} = {self._carried(end, result)}")
                self._hand_back(region)
                self.leave()
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
