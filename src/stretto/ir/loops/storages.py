"""Which buffers an operation reads and writes, and what storages they make.

alloc_tensor inside the loop          rotating: a fresh copy each iteration
alloc_tensor outside, written inside  fixed: one copy, updated in place
outside, only read                    a live-in
a pipeline's slot                     rotating, capped at the pipeline's stages
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from stretto.ir.attributes import StatedLoop
from stretto.ir.dialect import row_of
from stretto.ir.dialect.compute import GenericOp
from stretto.ir.dialect.pipeline import BODIES
from stretto.ir.dialect.transfers import AllocTensorOp
from stretto.ir.dialect.types import PipelineType, buffer_of, tile_of
from stretto.ir.loops.flow import (
    NESTED,
    BufferHome,
    BufferHomes,
    accumulator_of,
    around,
    enclosed_by,
    inside,
    space_and_ring,
    special_operands,
    through_bodies,
    through_views,
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


_TOUCHING_NOTHING: frozenset[type[Operation]] = frozenset((*BODIES, *NESTED))


@dataclass(slots=True)
class Touched:
    """Homes one operation reads and writes, in order, each once."""

    reads: dict[BufferHome, None] = field(default_factory=dict[BufferHome, None])
    writes: dict[BufferHome, None] = field(default_factory=dict[BufferHome, None])


class Storages:
    """The storages of one loop, found as its operations touch them."""

    def __init__(
        self,
        owner: Operation,
        block: Block,
        homes: BufferHomes,
        place: dict[Operation, int],
        stated: StatedLoop,
        sums: Mapping[SSAValue, SSAValue],
    ) -> None:
        self._owner = owner
        self._block = block
        self._homes = homes
        self._place = place
        self._stated = stated.loop.storages
        self.stated_names = frozenset(storage.name for storage in self._stated)
        self._found: dict[SSAValue, Storage] = {}
        self._sums = sums

    # What an operation touches ------------------------------------------------------------

    def accesses(self, op: Operation, given: frozenset[str]) -> Touched:
        """The homes an operation reads and writes, unless it states them itself.

        An inner loop touches what its body does.
        """
        found = Touched()
        if {"reads", "writes"} <= given:
            return found
        if isinstance(op, NESTED):
            for nested in op.walk():
                self._touch(nested, found)
            if not isinstance(op, ForOp):  # what it fills for itself, it reads for itself
                for home in [home for home in found.reads if enclosed_by(home.root, op)]:
                    del found.reads[home]
        else:
            self._touch(op, found)
        if "reads" in given:
            found.reads.clear()
        if "writes" in given:
            found.writes.clear()
        return found

    def _touch(self, op: Operation, found: Touched) -> None:
        row = row_of(op)
        if row.view or type(op) in _TOUCHING_NOTHING:
            return
        special, total = special_operands(op), accumulator_of(op)
        unknown = isinstance(op, UnregisteredOp)
        for i, operand in enumerate(op.operands):
            home = self._home(operand)
            if home is None or i in special:
                continue
            found.reads[home] = None
            if unknown and buffer_of(operand.type) != REGISTERS:
                found.writes[home] = None
        if total is not None:
            home = self._home(total)
            if home is not None:
                found.reads.pop(home, None)
                found.reads[home] = None
        for result in op.results:
            home = self._home(result)
            writes = row.destination is not None or type(op) is GenericOp or unknown
            filled = isinstance(op, AllocTensorOp) and op.init is not None
            if home is not None and (writes or filled):
                found.writes[home] = None

    def _home(self, value: SSAValue) -> BufferHome | None:
        """The buffer of a tile, or the registers of a sum that stays in place."""
        home = self._homes.of(value)
        if home is None and self._sums:
            root = self._sums.get(through_views(through_bodies(value)))
            home = None if root is None else BufferHome(root)
        return home

    # What storages that makes -------------------------------------------------------------

    def settle(self, touched: list[Touched]) -> None:
        """Name and size every storage, now that all accesses are known."""
        written = {home.root for a in touched for home in a.writes}
        roots = dict.fromkeys(home.root for a in touched for home in (*a.reads, *a.writes))
        names = Names(self.stated_names)
        order = sorted(roots, key=lambda root: self._order(root, root in written))
        for root in order:
            storage = self._storage(root, root in written, names)
            if storage is not None:
                self._found[root] = storage

    def _order(self, root: SSAValue, written: bool) -> tuple[int, int, int]:
        """Live-ins, then what rotates, then what is fixed; each as the text has it."""
        group = 0 if not written else 2 if self._fixed(root, written) else 1
        if isinstance(root, OpResult):
            return group, self._place[root.op], root.index
        above = root.block.parent_op() if isinstance(root, BlockArgument) else None
        index = root.index if isinstance(root, BlockArgument) else 0
        return group, -1 if above is None else self._place[above], index

    def _fixed(self, root: SSAValue, written: bool) -> bool:
        if space_and_ring(root)[1] is not None:
            return False
        if root in self._sums:
            return True
        own = inside(root, self._block) and not self._in_inner_loop(root)
        return written and not own

    def _in_inner_loop(self, root: SSAValue) -> bool:
        """A buffer of an inner loop: one copy of it is all the outer loop knows."""
        owner = root.owner if isinstance(root.owner, Operation) else root.owner.parent_op()
        above = () if owner is None else around(owner)
        nearest = next((at for at in above if isinstance(at, ForOp)), self._owner)
        return nearest is not self._owner

    def _storage(self, root: SSAValue, written: bool, names: Names) -> Storage | None:
        sized, depth = space_and_ring(root)
        type = sized.type.slot if isinstance(sized.type, PipelineType) else sized.type
        tile, buffer = tile_of(type), buffer_of(type)
        if tile is None or buffer is None:
            return None
        space = SPACES[buffer].name
        return Storage(
            names.give(root.name_hint or f"{space}_{len(self._found)}"),
            space,
            tile.bytes,
            fixed=self._fixed(root, written),
            depth=depth if written and not self._in_inner_loop(root) else None,
        )

    # As the loop has them -----------------------------------------------------------------

    def reads(self, touched: Touched) -> tuple[Access, ...]:
        """The reads of an operation; of a fixed storage there is only one copy."""
        found: dict[Access, None] = {}
        for home in touched.reads:
            storage = self._found.get(home.root)
            if storage is not None:
                found[Access(storage.name, 0 if storage.fixed else home.distance)] = None
        return tuple(found)

    def writes(self, touched: Touched) -> tuple[str, ...]:
        """The writes of an operation."""
        roots = dict.fromkeys(home.root for home in touched.writes)
        return tuple(self._found[root].name for root in roots if root in self._found)

    def home_of(self, value: SSAValue) -> str | None:
        """The storage a value lives in."""
        home = self._home(value)
        storage = self._found.get(home.root) if home is not None else None
        return storage.name if storage is not None else None

    def roots(self) -> dict[str, SSAValue]:
        """The buffers that were found, by the names of their storages."""
        return {storage.name: root for root, storage in self._found.items()}

    def all(self) -> tuple[Storage, ...]:
        """Every storage: those that are stated, then those that were found."""
        return (*self._stated, *self._found.values())
