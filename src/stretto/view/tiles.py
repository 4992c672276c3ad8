"""The extents of a loop's tiles: which sizes are one size, and the loop with another one.

    load_k   64x128xbf16      load_k[0] = k_transposed[1] = qk[1] = p[1] = load_v[0] = 64
    qk      128x 64xf32       one extent: the keys of a step; change it once and all of it follows

Sizes belong together where an operation makes them equal: those of a product as matrices have
them, those of a transpose reversed, those of all else in order, as far as they are alike. The
bytes of a storage follow the tiles that live in it, and costs that the machine works out follow
their operands. Costs that a loop states are left as stated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from stretto.errors import StrettoError
from stretto.loop import Loop, Op, Storage, TileType, Value
from stretto.ops.opcodes import opcode

Side = tuple[str, int]
"""A value, and which of its dimensions."""

LARGEST = 65536
"""No tile is longer along one side; more is a slip of the finger."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Sizes of tiles that are one size."""

    name: str
    """The first of them: `load_k[0]`."""
    size: int
    sides: tuple[Side, ...]

    @property
    def values(self) -> tuple[str, ...]:
        """The values that have it."""
        return tuple(dict.fromkeys(value for value, _ in self.sides))


def extents(loop: Loop) -> tuple[Extent, ...]:
    """Every extent above 1, in the order of the values."""
    types = {value.name: value.type for value in loop.values if value.type is not None}
    groups = _Groups()
    for value, shape in types.items():
        for i, size in enumerate(shape.shape):
            if size > 1:
                groups.find((value, i))
    for one, other in _equal(loop, types):
        groups.join(one, other)
    return tuple(
        Extent(f"{sides[0][0]}[{sides[0][1]}]", types[sides[0][0]].shape[sides[0][1]], sides)
        for sides in groups.all()
    )


def with_tiles(loop: Loop, sizes: Mapping[str, int]) -> Loop:
    """The loop with other extents, each by its name."""
    known = {extent.name: extent for extent in extents(loop)}
    shapes = {value.name: list(value.type.shape) for value in loop.values if value.type is not None}
    for name, size in sizes.items():
        if name not in known:
            raise StrettoError(f"there is no extent `{name}`", loop.name)
        if not 1 <= size <= LARGEST:
            raise StrettoError(f"`{name}` cannot be {size}; 1 to {LARGEST:,} can", loop.name)
        for value, side in known[name].sides:
            shapes[value][side] = size
    values = tuple(_resized(value, shapes) for value in loop.values)
    storages = tuple(_refilled(storage, loop.values, values) for storage in loop.storages)
    return replace(loop, values=values, storages=storages)


def _resized(value: Value, shapes: Mapping[str, list[int]]) -> Value:
    if value.type is None:
        return value
    return replace(value, type=TileType(tuple(shapes[value.name]), value.type.element))


def _refilled(storage: Storage, before: Iterable[Value], after: Iterable[Value]) -> Storage:
    """The storage grown as the largest tile that lives in it."""
    old, new = (
        max((v.type.bytes for v in values if v.storage == storage.name and v.type), default=0)
        for values in (before, after)
    )
    return storage if old in (0, new) else replace(storage, bytes=-(-storage.bytes * new // old))


# Which sizes are equal --------------------------------------------------------------------


def _equal(loop: Loop, types: Mapping[str, TileType]) -> Iterator[tuple[Side, Side]]:
    for op in loop.ops:
        inputs = [o.value for o in op.operands if o.value in types]
        outputs = [name for name in op.results if name in types]
        yield from _of_op(op, inputs, outputs, types)
    for value in loop.values:
        whole = value.view_of
        if whole is not None and whole in types and value.name in types:
            yield from _alike(whole, value.name, types)


def _of_op(
    op: Op, inputs: list[str], outputs: list[str], types: Mapping[str, TileType]
) -> Iterator[tuple[Side, Side]]:
    known = opcode(op.kind)
    rank = [len(types[name].shape) for name in (*inputs, *outputs)]
    if known.accumulator is not None and len(inputs) > 1 and rank[0] >= 2 and rank[1] >= 2:
        a, b, *sums = inputs
        yield _last(a, types), _last(b, types, 2)
        for total in (*sums, *outputs):
            if len(types[total].shape) >= 2:
                yield _last(a, types, 2), _last(total, types, 2)
                yield _last(b, types), _last(total, types)
    elif known.computes == "transpose" and inputs and outputs and rank[0] == rank[-1]:
        for i in range(rank[0]):
            yield (inputs[0], i), (outputs[0], rank[0] - 1 - i)
    else:
        names = [*inputs, *outputs]
        for one, other in pairwise(names):
            yield from _alike(one, other, types)
        for name in inputs[:-1]:
            for out in outputs:
                yield from _alike(name, out, types)


def _last(value: str, types: Mapping[str, TileType], back: int = 1) -> Side:
    return value, len(types[value].shape) - back


def _alike(one: str, other: str, types: Mapping[str, TileType]) -> Iterator[tuple[Side, Side]]:
    """The sides of two tiles that are one side.

    Of as many sides each, those in the same place, as far as they are equal: a broadcast has 1
    there. Otherwise, sides of 1 apart, in order from the first: a reduction leaves the last ones
    out, and a tile that gains a side gains one of 1.
    """
    mine, theirs = types[one].shape, types[other].shape
    if len(mine) == len(theirs):
        pairs = [((one, i), (other, i)) for i in range(len(mine))]
    else:
        left = [(one, i) for i, size in enumerate(mine) if size > 1]
        right = [(other, i) for i, size in enumerate(theirs) if size > 1]
        pairs = list(zip(left, right, strict=False))
    for (_, i), (_, k) in pairs:
        if mine[i] == theirs[k]:
            yield (one, i), (other, k)
        elif len(mine) != len(theirs):
            return


class _Groups:
    """Sides that are equal, as sets that have grown together."""

    def __init__(self) -> None:
        self._parent: dict[Side, Side] = {}

    def find(self, side: Side) -> Side:
        """The first of its group."""
        parent = self._parent.setdefault(side, side)
        while parent != self._parent[parent]:
            parent = self._parent[parent]
        return parent

    def join(self, one: Side, other: Side) -> None:
        """Make two groups one; sides of 1 are in none."""
        if one not in self._parent or other not in self._parent:
            return
        first, second = sorted((self.find(one), self.find(other)), key=list(self._parent).index)
        self._parent[second] = first

    def all(self) -> list[tuple[Side, ...]]:
        """Every group, its first side first."""
        found: dict[Side, list[Side]] = {}
        for side in self._parent:
            found.setdefault(self.find(side), []).append(side)
        return [tuple(sides) for sides in found.values()]
