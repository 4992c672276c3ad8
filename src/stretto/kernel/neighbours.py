"""Neighbouring blocks that share what they load: each consumer of one block does another of them.

    block x, y: rows of tile x, all keys of y         blocks 3b, 3b + 1, 3b + 2 of the same y
        q = load(x, y)                                    q_0, q_1, q_2 = load(3b + 0, 1, 2, y)
        for keys: k = load(y, keys) ...                   for keys: k = load(y, keys), once
        store(x, y)                                       store where 3b + 1 < blocks along x

So three groups of 64 rows share a loop, which a tile whose size is a power of two cannot say. A
block goes over several such tiles in any case (`persistence.py`), which has the loop around it and
counts them. Loops have to go round as often in all blocks along the axis: where they do not, or
where a loop loads nothing that is the same for all, blocks stay by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stretto.kernel.block_order import NUMBER, independent
from stretto.kernel.errors import KernelError
from stretto.kernel.partition import ReplicaWriter, SplitAxes
from stretto.kernel.tree import Kernel, Operation, Region, Value
from stretto.kernel.types import Scalar, Tile

GROUP_ROWS = 64
"""Rows of a product that a warpgroup multiplies at once."""
TOGETHER = "together"
"""Of a number of tiles: how many neighbours make up one for a block."""
_EFFECTS = ("tile.store", "tile.view_store")
_LOADS = ("tile.view_load",)


def rows_of_products(kernel: Kernel) -> int | None:
    """Rows of the smallest product; None where there is none."""
    found = [op.result.type for op in kernel.walk() if op.name == "tile.dot"]
    return min((type.shape[0] for type in found if isinstance(type, Tile)), default=None)


def with_neighbours(kernel: Kernel, agents: Sequence[str], blocks: int) -> Kernel:
    """The kernel of a block that does as many neighbours as there are agents, along the first axis
    along which they share what loops load; KernelError where there is none."""
    refused: KernelError | None = None
    axes = sorted({op.integer("axis") for op in kernel.walk() if op.name == "tile.block_index"})
    for axis in axes if independent(kernel) else ():
        try:
            return _Neighbours(kernel, agents, axis, blocks).kernel()
        except KernelError as error:
            refused = refused or error
    told = "its blocks do not share what they load, so consumers cannot have one each"
    raise refused or KernelError(kernel.location, told, "larger tiles, or fewer consumers")


class _Neighbours(ReplicaWriter):
    """Writes the kernel anew."""

    def __init__(self, kernel: Kernel, agents: Sequence[str], axis: int, blocks: int) -> None:
        super().__init__(kernel, SplitAxes(kernel), agents)
        self._axis, self._blocks = axis, blocks
        self._own = _following(kernel, axis)
        """What differs from neighbour to neighbour."""
        self._index: list[Value] = []

    def kernel(self) -> Kernel:
        """The whole kernel; KernelError where neighbours share nothing."""
        loops = [op for op in self._kernel.walk() if op.name == "scf.for"]
        shared = [
            op
            for loop in loops
            for op in loop.regions[0].walk()
            if op.name in _LOADS and op.results[0] not in self._own
        ]
        if not shared:
            raise self._refuse(self._kernel.body.operations[0], "loops load what is each one's own")
        said = {"axis": self._axis, "blocks": self._blocks, TOGETHER: len(self._agents)}
        self._count = self._out.op("tile.tile_count", (), NUMBER, "tiles", **said)
        return super().kernel()

    def _refuse(self, operation: Operation, why: str) -> KernelError:
        told = f"neighbouring blocks cannot share a loop: {why}"
        return KernelError(operation.location, told, "larger tiles, or fewer consumers")

    def _operation(self, operation: Operation) -> None:
        self._out.location = operation.location
        both = (*operation.operands, *operation.results)
        own = any(value in self._own for value in both)
        match operation.name:
            case "tile.block_index" if operation.integer("axis") == self._axis:
                self._number(operation)
            case "scf.for":
                inside = zip(operation.regions[0].arguments[1:], operation.results, strict=True)
                numbers = [v for pair in inside for v in pair if not isinstance(v.type, Tile)]
                if any(v in self._own for v in (*operation.operands[:3], *numbers)):
                    raise self._refuse(operation, "it goes round differently often")
                self._for(operation)
            case "scf.if" | "scf.while":
                raise self._refuse(operation, f"`{operation.name}` may go another way in each")
            case _ if operation.name in _EFFECTS:
                self._store(operation)
            case _ if operation.name in _LOADS:
                self._apart(operation) if own else self._shared(operation)
            case _ if self._has_tiles(operation):
                self._each(operation)
            case _:
                self._apart(operation) if own else self._shared(operation)

    def _number(self, operation: Operation) -> None:
        """Which block each is."""
        out, type = self._out, operation.result.type
        assert isinstance(type, Scalar)
        first = out.op("tile.block_index", (), type, "block", **operation.attributes)
        many = out.constant(len(self._agents), type)
        first = out.op("arith.muli", (first, many), type)
        for number in range(len(self._agents)):
            at = out.op("arith.addi", (first, out.constant(number, type)), type, "block")
            self._new[number][operation.result] = at
            self._index.append(at)

    def _apart(self, operation: Operation) -> None:
        """Once for each, whoever asks for it."""
        for number in range(len(self._agents)):
            new = self._new[number]
            made = self._out.add(
                operation.name,
                [new[value] for value in operation.operands],
                [value.type for value in operation.results],
                operation.attributes,
                (),
                [f"{v.name}_{number}" if v.name else "" for v in operation.results],
            )
            new.update(zip(operation.results, made.results, strict=True))

    def _store(self, operation: Operation) -> None:
        """Where there is such a block: the last of a row may have fewer neighbours."""
        if not self._index:
            raise self._refuse(operation, "it stores before it knows which block it is")
        for number, agent in enumerate(self._agents):
            said = {**operation.attributes, "agent": agent}
            operands = [self._new[number][value] for value in operation.operands]
            if not number:
                self._out.add(operation.name, operands, (), said)
                continue
            both = (self._index[number], self._count)
            exists = self._out.op("arith.cmpi", both, Scalar("i1"), "exists", predicate="slt")
            with self._out.region() as opened:
                self._out.add(operation.name, operands, (), said)
                self._out.add("scf.yield")
            self._out.add("scf.if", (exists,), (), {}, (opened.region, _nothing()))


def _nothing() -> Region:
    return Region((Operation("scf.yield", (), ()),))


def _following(kernel: Kernel, axis: int) -> set[Value]:
    """What follows from a block's index along an axis."""
    found: set[Value] = set()

    def region(inner: Region) -> None:
        for op in inner.operations:
            if op.name == "tile.block_index" and op.integer("axis") == axis:
                found.update(op.results)
            if op.name == "scf.for":
                body = op.regions[0]
                while True:
                    before = len(found)
                    ends = body.terminator.operands
                    rows = zip(op.operands[3:], body.arguments[1:], ends, op.results, strict=True)
                    for begun, argument, end, result in rows:
                        if begun in found or end in found:
                            found.update((argument, result))
                    region(body)
                    if len(found) == before:
                        break
            elif any(value in found for value in op.operands):
                found.update(op.results)

    region(kernel.body)
    return found


def counted_together(kernel: Kernel) -> dict[int, tuple[Operation, int]]:
    """By axis: the number of tiles that a launch asks for, and how many make up one for a block."""
    return {
        op.integer("axis"): (op, op.integer(TOGETHER))
        for op in kernel.body.operations
        if op.name == "tile.tile_count" and TOGETHER in op.attributes
    }


def without_mark(operation: Operation) -> Operation:
    """A number of tiles as any other."""
    said = {name: value for name, value in operation.attributes.items() if name != TOGETHER}
    return replace(operation, attributes=said)
