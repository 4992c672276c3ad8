"""What is known of an access to global memory, as the facts that machines decide by.

    a tile of 64x64 halves out of 4096x4099, by the TMA         contiguity 64, divisibility 2
    the same by threads                                         contiguity 1, divisibility 2
    addresses in runs of 8 halves, each at 16 bytes × n         contiguity 8, divisibility 16

A descriptor is made of an address and strides: those have to be aligned, and its coordinates need
not. Threads go by the addresses themselves, and a run that may cross the edge of the array is none.
What whoever makes a descriptor promises is believed where nothing that is known contradicts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import gcd, prod

from stretto.kernel.axes import Axis, nothing_known, power_of_two
from stretto.kernel.tree import Attribute, Kernel, Operation, Value
from stretto.kernel.types import Buffer, Pointer, Tile, View
from stretto.loop import Facts

DESCRIPTOR = 16
"""Bytes: what a descriptor's address and strides are multiples of, as whoever makes it promises."""
_MOST = 128
"""Bytes: an alignment beyond this is worth no more to anybody."""
_BYTE = 8
_MAKERS = ("tile.view", "nv_tileas.tensor_view")
_SAME_ADDRESS = ("splat", "broadcast", "expand_dims", "transpose", "reshape", "hint")


@dataclass(frozen=True, slots=True)
class _Through:
    """Where an operation that goes through a view has what."""

    view: int
    """The operand that is the view; the tile is its result, or the operand before."""
    coordinates: int
    """The group of operands that are coordinates."""
    descriptor: bool
    """Whether a descriptor is gone by, not threads."""


_VIEWS = {
    "nv_tileas.async.tiled_tma_load": _Through(0, 1, descriptor=True),
    "nv_tileas.async.tma_gather": _Through(0, 2, descriptor=True),
    "nv_tileas.async.tiled_tma_store": _Through(1, 2, descriptor=True),
    "nv_tileas.async.tma_scatter": _Through(1, 3, descriptor=True),
    "nv_tileas.async.cp_async": _Through(0, 1, descriptor=False),
    "nv_tileas.load": _Through(0, 1, descriptor=False),
    "nv_tileas.store": _Through(1, 2, descriptor=False),
    "nv_tileas.async.gnic_read": _Through(0, 1, descriptor=False),
    "nv_tileas.async.gnic_write": _Through(1, 2, descriptor=False),
}
_POINTERS = (
    "nv_tileas.pointer.load",
    "nv_tileas.async.pointer_copy",
    "nv_tileas.pointer.store",
    "nv_tileas.pointer.atomic_rmw",
    "nv_tileas.pointer.atomic_cas",
)
ACCESSES = frozenset((*_VIEWS, *_POINTERS))
"""Operations of a lowered kernel that touch global memory."""
_SHARED = ("nv_tileas.async.tiled_tma_load", "nv_tileas.async.tma_gather")
"""What a cluster loads once for several of its blocks, where they want the same tile."""


@dataclass(frozen=True, slots=True)
class _Dimension:
    """One of a view: what its stride in bytes is a multiple of; numbers are in elements."""

    aligned: int
    stride: int | None
    size: int | None


class Accesses:
    """The accesses of one kernel, by what the axis analysis knows of its values."""

    def __init__(self, kernel: Kernel, axes: Mapping[Value, Axis]) -> None:
        self._axes = axes
        self._promised = {p.value: p.divisibility for p in kernel.parameters if p.divisibility > 1}
        operations = tuple(kernel.walk())
        self._maker = {value: op for op in operations for value in op.results}

    def facts(self, operation: Operation) -> Facts:
        """Of an operation of a lowered kernel; nothing of one that touches no global memory."""
        how = _VIEWS.get(operation.name)
        if how is None:
            pointers = operation.name in _POINTERS
            return self.through_pointers(operation.operands[0]) if pointers else Facts()
        tile = operation.operands[0] if how.view else operation.results[0]
        view = operation.operands[how.view]
        groups = operation.integers("groups")
        first = sum(groups[: how.coordinates])
        coordinates = operation.operands[first : first + groups[how.coordinates]]
        if not isinstance(view.type, View) or not isinstance(tile.type, Tile | Buffer):
            return Facts()
        return self.through_view(view, coordinates, tile.type.shape, descriptor=how.descriptor)

    def _axis(self, value: Value) -> Axis:
        return self._axes.get(value) or nothing_known(value.type)

    # Through pointers ---------------------------------------------------------------------

    def through_pointers(self, addresses: Value) -> Facts:
        """What is known of elements at addresses."""
        type = addresses.type
        element = type.element if isinstance(type, Tile) else type
        if not isinstance(element, Pointer):
            return Facts()
        axis = self._axis(addresses)
        best = fastest(axis, type.shape if isinstance(type, Tile) else (1,))
        reached = self._reached(addresses)
        bytes = max(1, element.pointee.bits // _BYTE)
        return Facts(
            contiguity=axis.contiguity[best],
            divisibility=axis.divisibility[best],
            constancy=max(axis.constancy),
            memory_range=reached and (reached[0] * bytes, (reached[1] + 1) * bytes - 1),
        )

    def touched(self, operation: Operation) -> tuple[int, int] | None:
        """The first and the last byte of its array that an operation by addresses may touch."""
        return self.through_pointers(operation.operands[0]).memory_range

    def _reached(self, addresses: Value) -> tuple[int, int] | None:
        """The least and the greatest element from the parameter on that addresses go back to."""
        low = high = 0
        while (made := self._maker.get(addresses)) is not None:
            kind = made.name.rpartition(".")[2]
            if kind == "offset":
                offset = self._axis(made.operands[1])
                if offset.lower is None or offset.upper is None:
                    return None
                low, high = low + offset.lower, high + offset.upper
            elif kind not in _SAME_ADDRESS:
                return None
            addresses = made.operands[0]
        return (low, high) if isinstance(addresses.type, Pointer) else None

    # Through views ------------------------------------------------------------------------

    def through_view(
        self, view: Value, coordinates: Sequence[Value], tile: Sequence[int], *, descriptor: bool
    ) -> Facts:
        """What is known of a tile that is read or written through a view."""
        type = view.type
        assert isinstance(type, View)
        bits = type.element.bits
        dimensions = self._dimensions(view, type, bits)
        known = [self._axis(value) for value in coordinates]
        run = _running(dimensions)
        aligned = [self._address(view)]
        aligned += [d.aligned for d in dimensions if run is None or d is not dimensions[run]]
        contiguity = 1 if run is None or not tile else tile[-1]
        placed = len(known) == len(dimensions) == len(tile)
        if run is not None and placed:
            contiguity = tile[run]
        if not descriptor and placed:
            steps = zip(known, dimensions, strict=True)
            aligned += [max(1, axis.divisibility[0] * d.aligned) for axis, d in steps]
            if run is not None:
                contiguity = _whole(contiguity, known[run], dimensions[run], bits)
        last = dimensions[-1].stride if dimensions else None
        return Facts(
            contiguity=contiguity,
            divisibility=gcd(*aligned, _MOST),
            constancy=prod(tile) if last == 0 else 1,
            bounds=_bounds(known),
            memory_range=_touched(known, dimensions, tile, bits) if placed else None,
        )

    def _address(self, view: Value) -> int:
        """What the address of a view is a multiple of; at least the promise, if none is stated."""
        made = self._maker.get(view)
        base = made.operands[0] if made is not None and made.name in _MAKERS else view
        if base in self._promised:
            return power_of_two(self._promised[base])
        return max(DESCRIPTOR, self._axis(base).divisibility[0] if base is not view else 1)

    def _dimensions(self, view: Value, type: View, bits: int) -> tuple[_Dimension, ...]:
        made = self._maker.get(view)
        if made is not None and made.name in _MAKERS:
            numbers = [self._axis(value) for value in made.operands[1:]]
            sizes, strides = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
            both = zip(sizes, strides, strict=True)
            return tuple(_dimension(s.constant, n.constant, bits, n) for n, s in both)
        unknown = (None,) * (len(type.tile) or len(type.shape))
        found: list[_Dimension] = []
        stride: int | None = 1 if type.shape else None
        both = zip(type.shape or unknown, type.strides or unknown, strict=True)
        for size, own in reversed(tuple(both)):
            found.append(_dimension(own if type.strides else stride, size, bits))
            stride = None if stride is None or size is None else stride * size
        return tuple(reversed(found))


def told(facts: Facts) -> Attribute:
    """Facts as an attribute of an operation: each that is known, with its name."""
    named = ((field.name, getattr(facts, field.name)) for field in fields(facts))
    return tuple((name, value) for name, value in named if value is not None)


def fastest(axis: Axis, shape: Sequence[int]) -> int:
    """The dimension along which most elements follow one another."""
    return max(range(len(shape)), key=lambda d: min(axis.contiguity[d], shape[d]))


def _dimension(
    stride: int | None, size: int | None, bits: int, known: Axis | None = None
) -> _Dimension:
    if stride is not None:
        return _Dimension(max(1, power_of_two(stride * bits) // _BYTE), stride, size)
    divisor = 1 if known is None else known.divisibility[0]
    return _Dimension(max(DESCRIPTOR, divisor * bits // _BYTE), None, size)


def _running(dimensions: Sequence[_Dimension]) -> int | None:
    """The dimension whose elements follow one another: the last that does, or may."""
    ones = [i for i, d in enumerate(dimensions) if d.stride == 1]
    if ones:
        return ones[-1]
    return len(dimensions) - 1 if dimensions and dimensions[-1].stride is None else None


def _whole(run: int, axis: Axis, along: _Dimension, bits: int) -> int:
    """How much of a run of elements is surely on one side of the array's edge."""
    size = along.size
    inside = size is not None and axis.upper is not None and axis.upper + run <= size
    if inside and axis.lower is not None and axis.lower >= 0:
        return run
    edge = max(1, DESCRIPTOR * _BYTE // bits) if size is None else size
    return gcd(run, edge, axis.divisibility[0])


def _bounds(known: Sequence[Axis]) -> tuple[int, int] | None:
    lowest = [axis.lower for axis in known if axis.lower is not None]
    highest = [axis.upper for axis in known if axis.upper is not None]
    if len(lowest) == len(highest) == len(known) > 0:
        return min(lowest), max(highest)
    return None


def _touched(
    known: Sequence[Axis], dimensions: Sequence[_Dimension], tile: Sequence[int], bits: int
) -> tuple[int, int] | None:
    """The first and the last byte of the array: what lies outside of it is not touched."""
    first = last = 0
    for axis, along, extent in zip(known, dimensions, tile, strict=True):
        if along.stride is None or along.size is None or along.stride < 0:
            return None
        low = max(0, axis.lower or 0)
        high = along.size - 1
        if axis.upper is not None:
            high = min(high, axis.upper + extent - 1)
        if low > high:
            return None
        first, last = first + low * along.stride, last + high * along.stride
    return first * bits // _BYTE, ((last + 1) * bits - 1) // _BYTE


# Clusters -----------------------------------------------------------------------------------


def shared_loads(kernel: Kernel) -> dict[Operation, bool]:
    """For each load in a cluster: whether it is one tile for several blocks of the cluster.

    So it is where its place does not follow from a coordinate along which the cluster has several.
    """
    return _Clusters(kernel).found


class _Clusters:
    def __init__(self, kernel: Kernel) -> None:
        operations = tuple(kernel.walk())
        self._maker = {value: op for op in operations for value in op.results}
        self._inside = {a: op for op in operations for r in op.regions for a in r.arguments}
        self.found: dict[Operation, bool] = {}
        self._region(kernel.body.operations, None)

    def _region(self, operations: Sequence[Operation], tile: Operation | None) -> None:
        for op in operations:
            if op.name == "nv_tileas.work_tile_info" and prod(op.integers("cluster")) > 1:
                tile = op
            if tile is not None and op.name in _SHARED:
                self.found[op] = self._same_for_several(op, tile)
            for region in op.regions:
                self._region(region.operations, tile)

    def _same_for_several(self, load: Operation, tile: Operation) -> bool:
        groups = load.integers("groups")
        place = self._behind(load.operands[: sum(groups[: _VIEWS[load.name].coordinates + 1])])
        number = {v for v in self._behind(tile.operands[:1]) if not self._constant(v)}
        if place & number or any(self._of_block(value) for value in place):
            return False
        axes = zip(tile.results, tile.integers("cluster"), strict=False)
        return any(blocks > 1 and value not in place for value, blocks in axes)

    def _constant(self, value: Value) -> bool:
        made = self._maker.get(value)
        return made is not None and made.name == "arith.constant"

    def _of_block(self, value: Value) -> bool:
        made = self._maker.get(value)
        return made is not None and made.name.endswith("block_index")

    def _behind(self, values: Sequence[Value]) -> set[Value]:
        """All values that some follow from, but for what a work tile follows from."""
        found, todo = set[Value](), list(values)
        while todo:
            value = todo.pop()
            if value not in found:
                found.add(value)
                todo += self._one_back(value)
        return found

    def _one_back(self, value: Value) -> Iterator[Value]:
        made = self._maker.get(value) or self._inside.get(value)
        if made is None or made.name == "nv_tileas.work_tile_info":
            return
        if made.name != "scf.for":
            yield from made.operands
            for region in made.regions:
                yield from (v for op in region.walk() for v in op.operands)
            return
        (body,) = made.regions
        names = made.results if value in made.results else body.arguments[1:]
        if value in names:
            at = names.index(value)
            yield made.operands[3 + at]
            yield body.terminator.operands[at]
        # The number of turns says which value the last one is.
        yield from made.operands[:3]
