"""One agent's part of the kernel, from the first instruction to the last.

Numbers are computed by every agent that needs them, where it needs them first (`values.py`). Tiles
in registers belong to the agent that computes them, copies to the one that issues copies
(`operations.py`). A loop that runs by a schedule is built by `LoopBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from stretto.kernel import Operation, Region, Value
from stretto.kernel.lowering.written import STORE, TMA_LOAD, TMA_STORE
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, Token, View
from stretto.program.atomics import ATOMIC
from stretto.program.builder.operands import Operand
from stretto.program.builder.operations import OperationBuilder
from stretto.program.builder.sums import on_its_own
from stretto.program.builder.tracer import Tracer
from stretto.program.builder.values import UNSUPPORTED
from stretto.program.errors import unwritten
from stretto.program.expressions import Expression, Name, number
from stretto.program.instructions import (
    Arrive,
    Assign,
    Fence,
    For,
    If,
    Instruction,
    Origin,
    StoreWait,
    ThreadBarrier,
    While,
)

_SILENT = frozenset(
    ("assume", "assert", "token", "scf.yield", "scf.condition", "tile.return", "alloc_tensor")
)


class AgentBuilder(OperationBuilder):
    """Builds the body of one agent."""

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
                if tile.slot is not None:
                    self.say(Assign((tile.slot,), (number(0),)))
        self.region(self.plan.kernel.body)
        for tile in self._read.values():
            always = self.plan.maker[tile.buffer] in self.plan.kernel.body.operations
            if tile.loaded and always and tile.name not in self._waited[0]:
                self._await_tile(tile)  # what a branch or a loop waits for may never be reached
        if self.stores:
            self.say(StoreWait(0))
        self.clocks(Tracer.end)

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
        elif kind in UNSUPPORTED:
            if self.plan.owner(operation) == self.worker.name:
                raise unwritten(operation)
        elif kind not in _SILENT and self.plan.owner(operation) == self.worker.name:
            with self.of(Origin(operation=operation)):
                self.operation(operation)

    # Loops ---------------------------------------------------------------------------------------

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

    def _carried(self, value: Value, like: Value) -> Expression:
        if isinstance(like.type, Tile):
            return self.tile(value, self.layouts.of(like))
        return self.value(value).expression

    def _as(self, value: Value, name: str) -> Operand:
        layout = self.layouts.of(value) if isinstance(value.type, Tile) else None
        return Operand(Name(name), layout)

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

    def _mine(self, value: Value) -> bool:
        """Whether a carried value is of any use here."""
        if isinstance(value.type, Buffer | View | Token):
            return False
        return not (self.copies_only and isinstance(value.type, Tile | Pointer))

    # Branches ------------------------------------------------------------------------------------

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

    def _hand_back(self, region: Region) -> None:
        """Tiles that are filled each time it runs may be filled again: behind the last reader,
        where they were waited for, else at the end. Those of a branch are waited for in it."""
        for alloc in region.operations:
            tile = self.plan.tiles.get(alloc.results[0]) if alloc.results else None
            if tile is None or not tile.loaded:
                continue
            if not tile.repeated:  # it is filled here alone, in a branch
                if tile.name in self._read:
                    self._await_tile(tile)
                continue
            if tile.name in self._read and len(self.plan.workers) > 1:
                known = tile.name in self._waited[-1]
                self._await_tile(tile)  # some branch may have read it, and this one not
                if tile.name in self._by_threads:
                    self.say(Fence())
                self.take(f"{tile.name}_free")
                self.say(Arrive(tile.barrier("free")))
                if known:
                    self.move_behind(tile.name, 1 + (tile.name in self._by_threads))
            if tile.name in self._read or self.worker.copies or len(self.plan.workers) == 1:
                self.say(tile.next)
