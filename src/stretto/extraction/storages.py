"""Which buffers an operation reads and writes, and what storages they make.

alloc_tensor inside the loop          rotating: a fresh copy each iteration
alloc_tensor outside, written inside  fixed: one copy, updated in place
outside, only read                    a live-in
a pipeline's slot                     rotating, capped at the pipeline's stages
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic

from stretto.extraction.flow import BufferHome, BufferHomes
from stretto.extraction.source import (
    ALLOCATION,
    BODIES,
    FOR,
    NESTED,
    BlockT,
    OpT,
    Source,
    StatedLoop,
    ValueT,
)
from stretto.loop import Access, Storage
from stretto.ops.spaces import REGISTERS, SPACES


class Names:
    """Names in use, each given once: %x, %x_1, which xDSL keeps as two hints `x`, are x and x_1.

    Those reserved are never given.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)
        self._counts: dict[str, int] = {}

    def give(self, wanted: str) -> str:
        """The name that is wanted, or one close to it."""
        name, count = wanted, self._counts.get(wanted, 0)
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._counts[wanted] = count
        self._taken.add(name)
        return name


def owner_of(source: Source[OpT, BlockT, ValueT], value: ValueT) -> OpT | None:
    """The operation that makes a value, or that has the block which the value enters."""
    maker, block = source.maker(value), source.entered(value)
    return maker if block is None else source.above(block)


def standing(source: Source[OpT, BlockT, ValueT], value: ValueT) -> tuple[int, int]:
    """Where a value stands in the text: at which operation, and which of its values it is."""
    owner = owner_of(source, value)
    known = source.maker(value) is not None or source.entered(value) is not None
    return -1 if owner is None else source.place(owner), source.index(value) if known else 0


_TOUCHING_NOTHING = frozenset((*BODIES, *NESTED))


@dataclass(slots=True)
class Touched(Generic[ValueT]):
    """Homes one operation reads and writes, in order, each once."""

    reads: dict[BufferHome[ValueT], None] = field(default_factory=dict["BufferHome[ValueT]", None])
    writes: dict[BufferHome[ValueT], None] = field(default_factory=dict["BufferHome[ValueT]", None])


class Storages(Generic[OpT, BlockT, ValueT]):
    """The storages of one loop, found as its operations touch them."""

    def __init__(
        self,
        source: Source[OpT, BlockT, ValueT],
        owner: OpT,
        block: BlockT,
        homes: BufferHomes[OpT, BlockT, ValueT],
        stated: StatedLoop,
        sums: Mapping[ValueT, ValueT],
    ) -> None:
        self._source = source
        self._owner = owner
        self._block = block
        self._homes = homes
        self._stated = stated.loop.storages
        self.stated_names = frozenset(storage.name for storage in self._stated)
        self._found: dict[ValueT, Storage] = {}
        self._sums = sums

    # What an operation touches ------------------------------------------------------------

    def accesses(self, op: OpT, given: frozenset[str]) -> Touched[ValueT]:
        """The homes an operation reads and writes, unless it states them itself.

        An inner loop touches what its body does.
        """
        found = Touched[ValueT]()
        text = self._source
        if {"reads", "writes"} <= given:
            return found
        if text.name(op) in NESTED:
            for nested in text.walk(op):
                self._touch(nested, found)
            if text.name(op) != FOR:  # what it fills for itself, it reads for itself
                for home in [home for home in found.reads if text.enclosed_by(home.root, op)]:
                    del found.reads[home]
        else:
            self._touch(op, found)
        if "reads" in given:
            found.reads.clear()
        if "writes" in given:
            found.writes.clear()
        return found

    def _touch(self, op: OpT, found: Touched[ValueT]) -> None:
        text = self._source
        row = text.row(op)
        if row.view or text.name(op) in _TOUCHING_NOTHING:
            return
        special, total = text.special_operands(op), text.accumulator(op)
        unknown = text.unknown(op)
        for i, operand in enumerate(text.operands(op)):
            home = self._home(operand)
            if home is None or i in special:
                continue
            found.reads[home] = None
            if unknown and text.buffer(operand) != REGISTERS:
                found.writes[home] = None
        if total is not None:
            home = self._home(total)
            if home is not None:
                found.reads.pop(home, None)
                found.reads[home] = None
        for result in text.results(op):
            home = self._home(result)
            writes = row.destination is not None or text.generic(op) or unknown
            filled = text.name(op) == ALLOCATION and bool(text.operands(op))
            if home is not None and (writes or filled):
                found.writes[home] = None

    def _home(self, value: ValueT) -> BufferHome[ValueT] | None:
        """The buffer of a tile, or the registers of a sum that stays in place."""
        home = self._homes.of(value)
        if home is None and self._sums:
            text = self._source
            root = self._sums.get(text.through_views(text.through_bodies(value)))
            home = None if root is None else BufferHome(root)
        return home

    # What storages that makes -------------------------------------------------------------

    def settle(self, touched: list[Touched[ValueT]]) -> None:
        """Name and size every storage, now that all accesses are known."""
        written = {home.root for a in touched for home in a.writes}
        roots = dict.fromkeys(home.root for a in touched for home in (*a.reads, *a.writes))
        names = Names(self.stated_names)
        order = sorted(roots, key=lambda root: self._order(root, root in written))
        for root in order:
            storage = self._storage(root, root in written, names)
            if storage is not None:
                self._found[root] = storage

    def _order(self, root: ValueT, written: bool) -> tuple[int, int, int]:
        """Live-ins, then what rotates, then what is fixed; each as the text has it."""
        group = 0 if not written else 2 if self._fixed(root, written) else 1
        return group, *standing(self._source, root)

    def _fixed(self, root: ValueT, written: bool) -> bool:
        if self._source.room(root)[2] is not None:
            return False
        if root in self._sums:
            return True
        own = self._source.defined_in(root, self._block) and not self._in_inner_loop(root)
        return written and not own

    def _in_inner_loop(self, root: ValueT) -> bool:
        """A buffer of an inner loop: one copy of it is all the outer loop knows."""
        text = self._source
        owner = owner_of(text, root)
        above = () if owner is None else text.around(owner)
        nearest = next((at for at in above if text.name(at) == FOR), self._owner)
        return nearest is not self._owner

    def _storage(self, root: ValueT, written: bool, names: Names) -> Storage | None:
        tile, buffer, depth = self._source.room(root)
        if tile is None or buffer is None:
            return None
        space = SPACES[buffer].name
        return Storage(
            names.give(self._source.hint(root) or f"{space}_{len(self._found)}"),
            space,
            tile.bytes,
            fixed=self._fixed(root, written),
            depth=depth if written and not self._in_inner_loop(root) else None,
        )

    # As the loop has them -----------------------------------------------------------------

    def reads(self, touched: Touched[ValueT]) -> tuple[Access, ...]:
        """The reads of an operation; of a fixed storage there is only one copy."""
        found: dict[Access, None] = {}
        for home in touched.reads:
            storage = self._found.get(home.root)
            if storage is not None:
                found[Access(storage.name, 0 if storage.fixed else home.distance)] = None
        return tuple(found)

    def writes(self, touched: Touched[ValueT]) -> tuple[str, ...]:
        """The writes of an operation."""
        roots = dict.fromkeys(home.root for home in touched.writes)
        return tuple(self._found[root].name for root in roots if root in self._found)

    def home_of(self, value: ValueT) -> str | None:
        """The storage a value lives in."""
        home = self._home(value)
        storage = self._found.get(home.root) if home is not None else None
        return storage.name if storage is not None else None

    def roots(self) -> dict[str, ValueT]:
        """The buffers that were found, by the names of their storages."""
        return {storage.name: root for root, storage in self._found.items()}

    def all(self) -> tuple[Storage, ...]:
        """Every storage: those that are stated, then those that were found."""
        return (*self._stated, *self._found.values())
