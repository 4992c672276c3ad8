"""Shared memory in which threads exchange elements, where a tile changes its layout or is reduced.

    p, 64x128xf32 in mma_128  ──► rows_64_128      other warps hold its rows: 32,768 bytes
                              ──► Factor(mma_128)   the same threads hold them: none
    sum over axis 0 of rows_64_128                  every warp has a part: 4 x 128 x 4 bytes

Triton takes such memory beside what a kernel allocates. The exchanges of an agent come one after
the other and share it; agents run at the same time, so each has its own (Triton 3.6 lays memory out
when loops and branches are jumps already: `make_llir` of its `backends/nvidia/compiler.py`).

Which thread holds which element is told bit by bit, for all sizes are powers of two: element 0b1011
of a tile is in the register, the lane and the warp that its bits 0, 1 and 3 say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from stretto.kernel import Value
from stretto.kernel.types import Pointer, Tile, Type
from stretto.program.builder.layouts import VECTOR_BITS, Layouts
from stretto.program.expressions import Converted, Expression, Permuted, Reshaped
from stretto.program.layouts import (
    WARP_COLUMNS,
    Blocked,
    Factor,
    Layout,
    Product,
    Rows,
    Slice,
    WarpProduct,
)

POINTER_BITS = 64
TURNED_BITS = 16
"""Of elements that `ldmatrix` and `stmatrix` turn on their way, one register more at a time."""
ALIGNED = 128
"""Bytes of which what an exchange takes is a multiple."""

_Bits = tuple[int | None, ...]
"""Bits of an element's number; None: what differs there holds the same element."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Which bits of an element's number tell its register, its lane and its warp."""

    registers: _Bits
    lanes: _Bits
    warps: _Bits

    def turned(self, shape: Sequence[int], permutation: Sequence[int]) -> Holders:
        """Of a tile of some shape, with its axes in another order."""
        turned = [shape[axis] for axis in permutation]
        where = {
            first + bit: _first(turned, n) + bit
            for n, axis in enumerate(permutation)
            for first in (_first(shape, axis),)
            for bit in range(_log2(shape[axis]))
        }

        def moved(bits: _Bits) -> _Bits:
            return tuple(None if bit is None else where[bit] for bit in bits)

        return Holders(moved(self.registers), moved(self.lanes), moved(self.warps))


def holders(layout: Layout, shape: Sequence[int]) -> Holders:
    """Who holds the elements of a tile of some shape."""
    if isinstance(layout, Slice):
        larger = (*shape[: layout.dimension], 1, *shape[layout.dimension :])
        return holders(layout.parent, larger)  # an axis of one element has no bit
    if isinstance(layout, Product):
        return _spread(shape, _multiplied(2, layout.columns, layout.warps))
    if isinstance(layout, WarpProduct):
        return _spread(shape, _warps_multiplied(layout.warps))
    if isinstance(layout, Factor):
        return _factor(layout, shape)
    return _spread(shape, _blocked(layout.blocked))


_Parts = list[tuple[int, int | None, int]]
"""Which of registers, lanes and warps (0, 1, 2) comes next, along which axis, how often; along
none: they hold the same."""


def _factor(layout: Factor, shape: Sequence[int]) -> Holders:
    """Who holds a factor: all of K is with each thread or warp that needs any of it."""
    made, width, wide = layout.product, layout.width, 8 * layout.width
    if isinstance(made, Product):
        return _spread(shape, _multiplied(width, wide, made.warps))
    parts: _Parts
    if isinstance(made, Rows):
        depth = 1 - layout.side
        blocked = _blocked(made.blocked)
        return _spread(shape, [(which, None if at == depth else at, n) for which, at, n in blocked])
    *batch, rows, columns = made.warps
    row, column = len(batch), len(batch) + 1
    apart = [(2, axis, count) for axis, count in reversed(tuple(enumerate(batch)))]
    if layout.side == 0:
        parts = [*_instruction(width, wide, row), (2, None, columns), (2, row, rows)]
    else:
        parts = [(0, row, width), (1, row, 4), (1, column, 8), (0, row, 2)]
        parts += [(2, column, columns), (2, None, rows)]
    return _spread(shape, [*parts, *apart])


def _warps_multiplied(warps: Sequence[int]) -> _Parts:
    """As single warps hold a sum: those along columns are counted first."""
    parts = _instruction(2, WARP_COLUMNS, len(warps) - 2)
    return [*parts, *((2, axis, warps[axis]) for axis in reversed(range(len(warps))))]


def _instruction(width: int, wide: int, row: int) -> _Parts:
    """As a warp holds the rows and columns of one instruction; `row` is the axis of rows."""
    return [
        (0, row + 1, width), (1, row + 1, 4), (1, row, 8), (0, row, 2),
        (0, row + 1, wide // (4 * width)),
    ]  # fmt: skip


def _multiplied(width: int, columns: int, warps: int) -> _Parts:
    """As the tensor cores hold a tile of rows and columns."""
    return [
        (0, 1, width), (1, 1, 4), (1, 0, 8), (0, 0, 2), (0, 1, columns // (4 * width)),
        (2, 0, warps),
    ]  # fmt: skip


def _blocked(layout: Blocked) -> _Parts:
    return [
        (which, axis, part[axis])
        for which, part in enumerate((layout.size, layout.threads, layout.warps))
        for axis in layout.order
    ]


def _spread(shape: Sequence[int], parts: _Parts) -> Holders:
    """Bits as parts take them, one after the other; those that are left tell the register."""
    taken = [0] * len(shape)
    found: tuple[list[int | None], ...] = ([], [], [])

    def take(which: int, axis: int | None) -> None:
        if axis is None:
            found[which].append(None)
            return
        inside = taken[axis] < _log2(shape[axis])
        found[which].append(_first(shape, axis) + taken[axis] if inside else None)
        taken[axis] += 1

    for which, axis, count in parts:
        for _ in range(_log2(count)):
            take(which, axis)
    for axis, size in enumerate(shape):
        while taken[axis] < _log2(size):
            take(0, axis)
    registers, lanes, warps = found
    return Holders(tuple(bit for bit in registers if bit is not None), tuple(lanes), tuple(warps))


def _log2(size: int) -> int:
    return max(0, size - 1).bit_length()


def _first(shape: Sequence[int], axis: int) -> int:
    """The lowest bit of an axis: the last one is the fastest."""
    return sum(map(_log2, shape[axis + 1 :]))


def exchanged(source: Holders, target: Holders, type: Tile) -> int:
    """Bytes through which a tile goes from its holders to others.

    None where elements stay in their warp, and at most one bit of their number goes from registers
    to lanes: shuffles do that. Registers that stay in their thread go one after the other through
    the same bytes, but for those that one instruction moves.
    """
    if source.warps == target.warps:
        if source.lanes == target.lanes:
            return 0
        known = None not in (*source.lanes, *target.lanes)
        if known and len(set(target.lanes) - set(source.lanes)) < 2:
            return 0
    bits = 8 * _bytes(type)
    together = _log2(VECTOR_BITS // bits) + (bits == TURNED_BITS)
    together += max(source.lanes.count(None), target.lanes.count(None))
    kept = len(set(source.registers) & set(target.registers))
    return prod(type.shape) * _bytes(type) >> max(0, kept - together)


def _bytes(type: Tile) -> int:
    bits = POINTER_BITS if isinstance(type.element, Pointer) else type.element.bits
    return max(8, bits) // 8


class Exchange:
    """The layouts of one agent's tiles, and what is exchanged as its function is written."""

    def __init__(self, layouts: Layouts) -> None:
        self._layouts = layouts
        self.bytes = 0
        """Of shared memory, for the largest of them."""

    def of(self, value: Value) -> Layout:
        """The layout of a tile in registers."""
        return self._layouts.of(value)

    def rows(self, type: Tile) -> Layout:
        """Rows of neighbouring threads, for what takes no other layout."""
        return self._layouts.rows(type)

    def convert(self, source: Layout, target: Layout, type: Type) -> None:
        """A tile changes its layout."""
        assert isinstance(type, Tile)
        self._take(exchanged(holders(source, type.shape), holders(target, type.shape), type))

    def reshaped(
        self, value: Expression, source: Layout, type: Tile, shape: Tile, target: Layout
    ) -> Expression:
        """An expression with its elements in another shape: each keeps its number."""
        self._take(exchanged(holders(source, type.shape), holders(target, shape.shape), shape))
        return Converted(Reshaped(value, shape.shape), target)

    def permuted(
        self, value: Expression, source: Layout, type: Tile, order: Sequence[int], target: Layout
    ) -> Expression:
        """An expression with its axes in another order."""
        turned = holders(source, type.shape).turned(type.shape, order)
        shape = [type.shape[axis] for axis in order]
        self._take(exchanged(turned, holders(target, shape), type))
        return Converted(Permuted(value, tuple(order)), target)

    def reduced(self, source: Layout, axis: int, *types: Type) -> None:
        """Tiles are reduced together along an axis: each warp hands over what it has of each."""
        taken = 0
        for type in types:
            assert isinstance(type, Tile)
            first = _first(type.shape, axis)
            along = range(first, first + _log2(type.shape[axis]))
            parts = sum(bit in along for bit in holders(source, type.shape).warps)
            if parts:
                taken += (prod(type.shape) // type.shape[axis] << parts) * _bytes(type)
        if taken:
            self._take(taken)

    def counted(self, bins: int) -> None:
        """A histogram is put together in memory: a number of 32 bits for each."""
        self._take(max(bins, 32) * 4)

    def broadcast(self, type: Type) -> None:
        """All threads get what one of them found out: an atomic operation's result."""
        elements = prod(type.shape) if isinstance(type, Tile) else 1
        self._take(elements * (POINTER_BITS // 8))

    def _take(self, bytes: int) -> None:
        self.bytes = max(self.bytes, -(-bytes // ALIGNED) * ALIGNED)
