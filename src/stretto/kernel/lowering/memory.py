"""Loads, stores and views of a kernel, lowered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stretto.kernel.accesses import told
from stretto.kernel.lowering.placement import Placement
from stretto.kernel.lowering.views import ANY
from stretto.kernel.lowering.written import (
    ATOMICS,
    COPY,
    DESCRIPTOR,
    GATHER,
    LOAD,
    NARROW,
    OURS,
    PART,
    SCATTER,
    SELECT,
    SPREAD,
    STORE,
    TMA_LOAD,
    TMA_STORE,
    TRANSPOSE,
    VIEW,
)
from stretto.kernel.tree import Attribute, Operation, Value
from stretto.kernel.types import Buffer, Scalar, Tile, Token, View, like
from stretto.ops.spaces import REGISTERS, STAGING


class MemoryLowering(Placement):
    """Lowers what reads and writes global memory, and other names of tiles."""

    def _view(self, operation: Operation) -> None:
        """Another name of a tile, wherever it is; tensor memory has none but its own."""
        (source,), result = operation.operands, operation.result
        kind = TRANSPOSE if operation.name == "tile.transpose" else VIEW
        order = operation.integers("order")
        said: dict[str, Attribute] = {"permutation": order} if kind == TRANSPOSE and order else {}
        home = self._homes.of(source)
        shared = home.get(STAGING)
        if shared is not None and isinstance(result.type, Tile):
            assert isinstance(shared.type, Buffer)
            type = Buffer(result.type.shape, shared.type.element, STAGING)
            seen = self._ours(kind, (shared,), type, result.name, **said)
            self._homes.remember(seen, shared)
            self._homes.put(result, STAGING, seen)
            if REGISTERS not in home:
                return
        registers = self._registers(source)
        if not isinstance(result.type, Tile):
            kind = PART
        elif not isinstance(registers.type, Tile):
            kind = SPREAD
        seen = self._ours(kind, (registers,), result.type, result.name, **said)
        self._homes.in_registers(result, seen)

    def _descriptor(self, operation: Operation) -> None:
        """A view of a tensor; sizes and strides that are constants stand in its type, unless it is
        handed on: others may come the same way."""
        type = operation.result.type
        assert isinstance(type, View)
        base, *numbers = operation.operands
        rank = len(type.tile)
        handed_on = any(op.name.startswith("scf.") for op in self._uses.of(operation.result))
        if len(numbers) == 2 * rank and not handed_on:
            known = [self._constant(value) for value in numbers]
            known = [None if number == ANY else number for number in known]
            type = replace(type, shape=tuple(known[:rank]), strides=tuple(known[rank:]))
        made = self._ours(
            DESCRIPTOR,
            [self._registers(value) for value in (base, *numbers)],
            type,
            operation.result.name,
            groups=(1, len(numbers) - len(numbers) // 2, len(numbers) // 2),
            padding=operation.attributes.get("padding", type.padding),
        )
        self._homes.in_registers(operation.result, made)

    def _coordinates(self, values: Sequence[Value]) -> list[Value]:
        """As TMA wants them: 32 bits each."""
        found: list[Value] = []
        for value in values:
            number = self._registers(value)
            wanted = like(number.type, Scalar("i32"))
            if number.type != wanted:
                number = self._out.op(NARROW, (number,), wanted, number.name)
            found.append(number)
        return found

    def _through(self, view: Value, coordinates: Sequence[Value]) -> Attribute:
        """What is known of a tile that a descriptor is gone by for."""
        assert isinstance(view.type, View)
        return told(self._accesses.through_view(view, coordinates, view.type.tile, descriptor=True))

    # Through views --------------------------------------------------------------------------

    def _view_load(self, operation: Operation) -> None:
        view, *coordinates = operation.operands
        type, result = view.type, operation.results[0]
        if not isinstance(type, View) or not isinstance(result.type, Tile):
            raise self._refuse(operation, f"a load of {result.type} through {type}")
        buffer = self._alloc(Tile(type.tile, type.element), STAGING, result.name)
        facts = self._through(view, coordinates)
        loaded = self._ours(
            TMA_LOAD,
            (self._registers(view), *self._coordinates(coordinates), buffer),
            buffer.type,
            result.name,
            groups=(1, len(coordinates), 1, 0),
            facts=facts,
        )
        self._homes.remember(loaded, buffer)
        if type.tile != result.type.shape:
            wanted = Buffer(result.type.shape, type.element, STAGING)
            narrowed = self._ours(VIEW, (loaded,), wanted, result.name)
            self._homes.remember(narrowed, loaded)
            loaded = narrowed
        self._homes.put(result, STAGING, loaded)
        self._token(operation)

    def _view_store(self, operation: Operation) -> None:
        view, tile, *coordinates = operation.operands
        type = view.type
        if not isinstance(type, View) or not isinstance(tile.type, Tile):
            raise self._refuse(operation, f"a store of {tile.type} through {type}")
        staged = self._in(tile, (STAGING,))
        if type.tile != tile.type.shape:
            staged = self._ours(VIEW, (staged,), Buffer(type.tile, type.element, STAGING))
        said: dict[str, Attribute] = {
            "groups": (1, 1, len(coordinates), 0),
            "facts": self._through(view, coordinates),
        }
        if "kind" in operation.attributes:  # combined with what is there
            said["kind"] = operation.attributes["kind"]
        operands = (staged, self._registers(view), *self._coordinates(coordinates))
        self._out.add(OURS + TMA_STORE, operands, (Token(),), said)
        self._token(operation)

    def _view_gather(self, operation: Operation) -> None:
        """Rows that are picked by index, into shared memory."""
        view, rows, column = operation.operands
        result = operation.results[0]
        buffer = self._alloc(result.type, STAGING, result.name)
        loaded = self._ours(
            GATHER,
            (self._registers(view), *self._coordinates((rows, column)), buffer),
            buffer.type,
            result.name,
            groups=(1, 1, 1, 1, 0),
            facts=self._through(view, (column,)),
        )
        self._homes.remember(loaded, buffer)
        self._homes.put(result, STAGING, loaded)
        self._token(operation)

    def _view_scatter(self, operation: Operation) -> None:
        """Rows of shared memory, each to where its index says."""
        view, tile, rows, column = operation.operands
        staged = self._in(tile, (STAGING,))
        self._ours(
            SCATTER,
            (staged, self._registers(view), *self._coordinates((rows, column))),
            Token(),
            groups=(1, 1, 1, 1, 0),
            facts=self._through(view, (column,)),
        )
        self._token(operation)

    # Through pointers -----------------------------------------------------------------------

    def _load(self, operation: Operation) -> None:
        """Through pointers: copied into shared memory while others compute, or by the threads."""
        result = operation.results[0]
        groups = [1, int(len(operation.operands) > 1), int(len(operation.operands) > 2)]
        how = self._copies.how(operation, bool(self._loops))
        facts = told(self._accesses.through_pointers(operation.operands[0]))
        if how.reason:
            self._note(operation, f"loaded by threads, into registers: {how.reason}")
        operands = [self._registers(value) for value in operation.operands]
        if not how.copied:
            loaded = self._ours(
                LOAD,
                operands,
                result.type,
                result.name,
                groups=(*groups,),
                facts=facts,
            )
            self._homes.in_registers(result, loaded)
        else:
            buffer = self._alloc(result.type, STAGING, result.name)
            loaded = self._ours(
                COPY,
                (*operands[:2], buffer),
                buffer.type,
                result.name,
                groups=(1, groups[1], 1, 0),
                facts=facts,
            )
            self._homes.remember(loaded, buffer)
            self._homes.put(result, STAGING, loaded)
            if self._copies.fills(operation):
                choice = (operands[1], self._registers(result), operands[2])
                filled = self._ours(SELECT, choice, result.type, result.name)
                self._homes.drop(result, STAGING)
                self._homes.in_registers(result, filled)
        self._token(operation)

    def _store(self, operation: Operation) -> None:
        operands = [self._registers(value) for value in operation.operands]
        masked = int(len(operands) > 2)
        self._out.add(OURS + STORE, operands, (), {"groups": (1, 1, masked)})
        self._token(operation)

    def _atomic(self, operation: Operation) -> None:
        """Reads, combines, writes; the mask is a group of its own."""
        taken = 2 if operation.name == "tile.atomic_rmw" else 3
        groups = (*(1,) * taken, len(operation.operands) - taken)
        result = operation.results[0]
        made = self._out.add(
            OURS + ATOMICS[operation.name],
            [self._registers(value) for value in operation.operands],
            (result.type,),
            {**operation.attributes, "groups": groups},
            names=(result.name,),
        )
        self._homes.in_registers(result, made.result)
        self._token(operation)
