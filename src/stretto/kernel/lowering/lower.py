"""The walk over a kernel that lowers it: one method a kind of operation.

A value that somebody computes with is brought into registers, one that is multiplied into the
memory that the product takes it from, and a sum that is carried round a loop stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stretto.kernel.building import plain_name
from stretto.kernel.lowering.combiners import combined_by
from stretto.kernel.lowering.conflicts import alias_sets, conflicts
from stretto.kernel.lowering.products import ProductLowering
from stretto.kernel.lowering.work_tiles import goes_over_work_tiles, has_loop_inside
from stretto.kernel.lowering.written import (
    ATOMICS,
    BY_TILES,
    COMBINED,
    OURS,
    PENDING,
    REDUCE,
    RENAMED,
    SCAN,
    TRANSPOSE,
    VIEW,
    WORK_TILE,
)
from stretto.kernel.tree import ALIAS_SET, Attribute, Kernel, Lowered, Operation, Region, Value
from stretto.kernel.types import Scalar, Tile
from stretto.machine import Machine
from stretto.ops.spaces import REGISTERS, SPACES


def in_nv_tileas(kernel: Kernel, machine: Machine, *, copies: bool = True) -> Lowered:
    """A kernel in nv_tileas; KernelError, at the user's place, where something has no lowering.

    `copies`: whether threads may copy tiles into shared memory.
    """
    return _Lowering(kernel, machine, copies=copies).lower()


class _Lowering(ProductLowering):
    def lower(self) -> Lowered:
        parameters = tuple(
            replace(p, value=Value(p.value.type, p.value.name)) for p in self._kernel.parameters
        )
        for old, new in zip(self._kernel.parameters, parameters, strict=True):
            self._homes.in_registers(old.value, new.value)
        for operation in self._kernel.body.operations:
            self._operation(operation)
        body = _without_idle_constants(self._out.finish())
        kernel = replace(self._kernel, parameters=parameters, body=body)
        return Lowered(kernel, tuple(self._notes))

    def _operation(self, operation: Operation) -> None:  # noqa: PLR0912 - one case a kind
        self._out.location = operation.location
        agent = operation.attributes.get("agent")
        self._out.said = {} if agent is None else {"agent": agent}
        if operation in self._alias_sets:
            self._out.said[ALIAS_SET] = self._alias_sets[operation]
        for result in operation.results:
            self._born[result] = len(self._loops)
        match operation.name:
            case "scf.for":
                self._for(operation)
            case "scf.if":
                self._if(operation)
            case "scf.while":
                self._while(operation)
            case "tile.return":
                self._out.add("tile.return")
            case "tile.hint":
                self._homes_as(operation.result, operation.operands[0])
            case "tile.transpose" | "tile.reshape":
                self._view(operation)
            case "tile.view":
                self._descriptor(operation)
            case "tile.view_load":
                self._view_load(operation)
            case "tile.view_store" | "tile.view_reduce":
                self._view_store(operation)
            case "tile.view_gather":
                self._view_gather(operation)
            case "tile.view_scatter":
                self._view_scatter(operation)
            case "tile.load":
                self._load(operation)
            case "tile.store":
                self._store(operation)
            case _ if operation.name in ATOMICS:
                self._atomic(operation)
            case "tile.dot":
                self._dot(operation)
            case "tile.cat" if len({value.type for value in operation.operands}) == 1:
                self._cat(operation)
            case "tile.reduce" | "tile.scan":
                self._reduce(operation)
            case _:
                self._plain(operation)
        self._out.said = {}

    # Registers in, registers out ------------------------------------------------------------

    def _plain(self, operation: Operation) -> None:
        """Registers in, registers out."""
        name = RENAMED.get(operation.name)
        if operation.name in BY_TILES and isinstance(operation.result.type, Tile):
            name = operation.name
        said = operation.attributes
        if self._is_summed(operation):
            said = {**said, "facts": (("accumulates", True),)}
        made = self._out.add(
            operation.name if name is None else OURS + name,
            [self._registers(value) for value in operation.operands],
            [result.type for result in operation.results],
            said,
            names=[result.name for result in operation.results],
        )
        for result, lowered in zip(operation.results, made.results, strict=True):
            self._homes.in_registers(result, lowered)

    def _cat(self, operation: Operation) -> None:
        """Two tiles of one shape, one after the other: pairs, of which the first come first."""
        first, result = operation.operands[0].type, operation.result
        assert isinstance(first, Tile)
        axis, rank = operation.integer("axis"), len(first.shape)
        both = [self._registers(value) for value in operation.operands]
        pairs = self._ours(RENAMED["tile.join"], both, replace(first, shape=(*first.shape, 2)))
        order = (*range(axis), rank, *range(axis, rank))
        turned = (*first.shape[:axis], 2, *first.shape[axis:])
        rows = self._ours(TRANSPOSE, (pairs,), replace(first, shape=turned), permutation=order)
        made = self._ours(VIEW, (rows,), result.type, result.name)
        self._homes.in_registers(result, made)

    def _reduce(self, operation: Operation) -> None:
        kind = combined_by(operation) if operation.name == "tile.reduce" else None
        if kind is None:
            self._combine(operation)
            return
        (source,), result = operation.operands, operation.result
        axis = operation.integer("axis")
        reduced = self._ours(kind, (self._registers(source),), result.type, result.name, axis=axis)
        self._homes.in_registers(result, reduced)

    def _combine(self, operation: Operation) -> None:
        """A reduction or a scan whose region says how two elements go together."""
        (region,) = operation.regions
        inside = {v for op in region.operations for v in op.results} | set(region.arguments)
        taken = {v for op in region.operations for v in op.operands if v not in inside}
        makers = [self._uses.maker.get(value) for value in taken]
        if any(made is None or made.name != "arith.constant" for made in makers):
            hint = "its combination takes two elements and constants, nothing else"
            raise self._refuse(operation, "a reduction that takes a value from outside", hint)
        arguments = [_again(value) for value in region.arguments]
        sources = [self._registers(value) for value in operation.operands]
        self._homes.enter()
        for old, new in zip(region.arguments, arguments, strict=True):
            self._homes.in_registers(old, new)
        with self._out.region(arguments) as opened:
            for made in makers:
                if made is not None:
                    self._plain(made)
            for inner in region.operations[:-1]:
                self._operation(inner)
            ends = [self._registers(value) for value in region.terminator.operands]
            self._out.add(OURS + COMBINED, ends)
        self._homes.leave()
        self._out.location = operation.location
        said: dict[str, Attribute] = {"axis": operation.integer("axis")}
        if operation.attributes.get("reverse"):
            said["reverse"] = 1
        kind = SCAN if operation.name == "tile.scan" else REDUCE
        types = [result.type for result in operation.results]
        names = [result.name for result in operation.results]
        made = self._out.add(OURS + kind, sources, types, said, (opened.region,), names)
        for old, new in zip(operation.results, made.results, strict=True):
            self._homes.in_registers(old, new)

    # Control flow ---------------------------------------------------------------------------

    def _for(self, operation: Operation) -> None:
        lower, upper, step, *initial = operation.operands
        (body,) = operation.regions
        serial = self._keep_in_order(operation)
        space = self._machine.products[0].accumulator if self._machine.products else REGISTERS
        kept = self._uses.in_place(operation) if space in SPACES and space != REGISTERS else ()
        if self._waits:
            space, kept = PENDING, self._chains(operation)
        self._hold(body)
        bounds = [self._registers(value) for value in (lower, upper, step)]
        begun = [
            self._begin(operation, value, space)
            if i in kept and space != PENDING
            else self._registers(value)
            for i, value in enumerate(initial)
        ]
        arguments = [_again(body.arguments[0])]
        arguments += [
            Value(first.type, plain_name(old.name or "sum"))
            for first, old in zip(begun, body.arguments[1:], strict=True)
        ]
        self._homes.enter()
        self._loops.append(operation)
        for i, (old, new) in enumerate(zip(body.arguments, arguments, strict=True)):
            self._homes.put(old, space if i - 1 in kept else REGISTERS, new)
            self._born[old] = len(self._loops)
            if i - 1 in kept and space != PENDING:
                self._places[body.terminator.operands[i - 1]] = new
        with self._out.region(arguments) as opened:
            if goes_over_work_tiles(operation, self._uses.maker, self._axes):
                self._work_tile(body.arguments[0], arguments[0], bounds[1])
            for inner in body.operations[:-1]:
                self._operation(inner)
            self._out.location = body.terminator.location
            self._out.add("scf.yield", self._ends(body, kept, space, arguments))
        self._loops.pop()
        self._homes.leave()
        self._out.location = operation.location
        said: dict[str, Attribute] = {**operation.attributes, "machine": self._machine.name}
        if serial:
            said["serial"] = True
        made = self._out.add(
            "scf.for",
            (*bounds, *begun),
            [value.type for value in begun],
            said,
            (opened.region,),
            [result.name for result in operation.results],
        )
        for i, (old, new) in enumerate(zip(operation.results, made.results, strict=True)):
            self._homes.put(old, space if i in kept else REGISTERS, new)
            if i in kept and space != PENDING:
                self._homes.remember(new, begun[i])

    def _keep_in_order(self, loop: Operation) -> bool:
        """Have what may touch the same element in different steps stay in order; whether the steps
        must not overlap at all: who issues what is not told, or there is a loop inside."""
        pairs = list(conflicts(loop, self._uses.maker, self._accesses.touched, self._addresses))
        if not pairs:
            return False
        serial = has_loop_inside(loop) or not self._machine.agents
        if not serial:
            self._alias_sets |= alias_sets(pairs)
        if not has_loop_inside(loop):
            (first, second), what = pairs[0], "steps of its loop do not overlap"
            what = what if serial else "it stays in order, step after step"
            told = f"{what}: {second.location} may touch the same element"
            self._notes.append((first.location, told))
        return serial

    def _work_tile(self, index: Value, lowered: Value, tiles: Value) -> None:
        """Which tile a persistent block is at: the kernel numbers its tiles along one axis."""
        made = self._out.add(
            OURS + WORK_TILE,
            (lowered, tiles),
            (lowered.type, Scalar("i1")),
            {"tile": (1,), "cluster": (1,)},
            names=(index.name, "valid"),
        )
        self._homes.in_registers(index, made.results[0])

    def _begin(self, loop: Operation, value: Value, space: str) -> Value:
        """The buffer that a carried sum begins in: that of what it begins with, if nobody else
        wants it, or a fresh one."""
        home = self._homes.of(value)
        place = home.get(space)
        if place is not None and self._may_go(value, loop):
            self._homes.drop(value, space)
            return place
        buffer = next((b for v, b in self._places.items() if v in loop.results), None)
        return self._fill(self._registers(value), space, value.name or "sum", buffer)

    def _ends(
        self,
        body: Region,
        kept: Sequence[int] | frozenset[int],
        space: str,
        arguments: Sequence[Value],
    ) -> list[Value]:
        found: list[Value] = []
        for i, value in enumerate(body.terminator.operands):
            if i not in kept:
                found.append(self._registers(value))
                continue
            place = self._homes.of(value).get(space)
            if place is not None and space == PENDING:
                found.append(place)
                continue
            if place is None or self._homes.root(place) is not self._homes.root(arguments[i + 1]):
                place = self._fill(self._registers(value), space, value.name, arguments[i + 1])
            found.append(place)
        return found

    def _region(self, region: Region, ends: str) -> Region:
        arguments = [_again(value) for value in region.arguments]
        self._homes.enter()
        for old, new in zip(region.arguments, arguments, strict=True):
            self._homes.in_registers(old, new)
        with self._out.region(arguments) as opened:
            for inner in region.operations[:-1]:
                self._operation(inner)
            self._out.location = region.terminator.location
            held = [self._registers(value) for value in region.terminator.operands]
            self._out.add(ends, held)
        self._homes.leave()
        return opened.region

    def _if(self, operation: Operation) -> None:
        condition = self._registers(operation.operands[0])
        regions = [self._region(region, "scf.yield") for region in operation.regions]
        self._finish(operation, (condition,), regions)

    def _while(self, operation: Operation) -> None:
        initial = [self._registers(value) for value in operation.operands]
        before, after = operation.regions
        regions = [self._region(before, "scf.condition"), self._region(after, "scf.yield")]
        self._finish(operation, initial, regions)

    def _finish(
        self, operation: Operation, operands: Sequence[Value], regions: Sequence[Region]
    ) -> None:
        self._out.location = operation.location
        made = self._out.add(
            operation.name,
            operands,
            [result.type for result in operation.results],
            operation.attributes,
            regions,
            [result.name for result in operation.results],
        )
        for old, new in zip(operation.results, made.results, strict=True):
            self._homes.in_registers(old, new)


def _again(value: Value) -> Value:
    """An argument of a region that is written anew."""
    return Value(value.type, plain_name(value.name))


def _without_idle_constants(region: Region) -> Region:
    """Zeros that only said where a sum begins are not wanted any more."""
    used = {value for operation in region.walk() for value in operation.operands}

    def kept(operation: Operation) -> bool:
        return operation.name != "arith.constant" or operation.result in used

    return replace(region, operations=tuple(op for op in region.operations if kept(op)))
