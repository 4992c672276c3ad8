"""Views that no host can make, gone by addresses: what they are made of, only a block knows.

    a = load(list + g)                   x = load a + row * stride + column,
    view(a, [rows, columns], ...)            row >= 0 and row < rows and column ...
    x = load view, [r, c]

Descriptors are made before any block runs. A view of an array whose address is read from memory, or
whose sizes are, becomes addresses and masks: outside of it loads read the padding, stores write
nothing. What a descriptor promises of its address and its strides, the addresses keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stretto.kernel.building import Builder
from stretto.kernel.lowering.views import steps_of_views
from stretto.kernel.padding import PADDINGS
from stretto.kernel.tree import Kernel, Operation, Region, Value
from stretto.kernel.types import Pointer, Scalar, Tile, View
from stretto.ops.operations import SAME_NUMBER

ALIGNED = 16
"""Bytes that a descriptor's address and its strides are multiples of."""
_INDEX, _BIT = Scalar("i64"), Scalar("i1")
_THROUGH = ("tile.view_load", "tile.view_store")


def with_addresses_of_views(kernel: Kernel) -> Kernel:
    """The kernel with loads and stores by addresses, where a view belongs to a block."""
    makers = {value: op for op in kernel.walk() for value in op.results}
    steps = steps_of_views(kernel, makers)
    views = {
        op.result: op
        for op in kernel.walk()
        if op.name == "tile.view" and not _at_launch(op, makers, steps)
    }
    for op in kernel.walk():
        if op.name not in _THROUGH:
            for value in op.operands:
                views.pop(value, None)  # handed on, or gathered by: that is told later
    if not views:
        return kernel
    writer = _Writer(views, Builder(kernel.location))
    for operation in kernel.body.operations:
        writer.operation(operation)
    return replace(kernel, body=writer.out.finish())


def _at_launch(
    view: Operation, makers: Mapping[Value, Operation], steps: Callable[[Operation], object]
) -> bool:
    """Whether a host can make a view."""
    base, *numbers = view.operands
    type = view.result.type
    if not isinstance(type, View) or len(numbers) != 2 * len(type.tile):
        return True
    if not all(_host_knows(value, makers) for value in numbers):
        return False
    return base not in makers or steps(view) is not None


def _host_knows(value: Value, makers: Mapping[Value, Operation]) -> bool:
    made = makers.get(value)
    if made is None:
        return isinstance(value.type, Scalar) and bool(value.name)
    plain = made.name.startswith("arith.") or made.name in SAME_NUMBER
    return plain and all(_host_knows(operand, makers) for operand in made.operands)


@dataclass
class _Writer:
    views: Mapping[Value, Operation]
    out: Builder
    _numbers: dict[Value, tuple[Value, ...]] = field(default_factory=dict[Value, tuple[Value, ...]])
    """Of a view: its address, sizes and strides."""

    def operation(self, operation: Operation) -> None:
        """An operation, or what does the same by addresses."""
        self.out.location = operation.location
        view = operation.operands[0] if operation.operands else None
        if operation.results and operation.results[0] in self.views:
            self._numbers[operation.result] = self._promised(operation)
        elif operation.name == "tile.view_load" and view in self.views:
            self._load(operation)
        elif operation.name == "tile.view_store" and view in self.views:
            self._store(operation)
        else:
            regions = tuple(self._region(region) for region in operation.regions)
            self.out.append(replace(operation, regions=regions))

    def _region(self, region: Region) -> Region:
        with self.out.region(region.arguments) as opened:
            for operation in region.operations:
                self.operation(operation)
        return opened.region

    def _promised(self, view: Operation) -> tuple[Value, ...]:
        """Its operands, the numbers 64 bits wide, with what is promised of them."""
        base, *numbers = view.operands
        assert isinstance(base.type, Pointer)
        by = max(1, ALIGNED * 8 // base.type.pointee.bits)
        wide = [self._wide(value) for value in numbers]
        rank = len(wide) // 2
        strides = [self._hint(value, by) for value in wide[rank:-1]]
        return (self._hint(base, ALIGNED), *wide[:rank], *strides, wide[-1])

    def _hint(self, value: Value, divisor: int) -> Value:
        return self.out.op("tile.hint", (value,), value.type, value.name, divisibility=(divisor,))

    def _wide(self, value: Value) -> Value:
        if value.type == _INDEX:
            return value
        return self.out.op("arith.extsi", (value,), _INDEX, value.name)

    def _tile(self, view: Value, coordinates: Sequence[Value]) -> tuple[Value, Value]:
        """Addresses of a tile, and which of them lie in the tensor."""
        base, *numbers = self._numbers[view]
        assert isinstance(view.type, View)
        assert isinstance(base.type, Pointer)
        shape, rank = view.type.tile, len(view.type.tile)
        at = self.out.op("tile.splat", (base,), Tile(shape, base.type))
        inside: Value | None = None
        zero = self.out.constant(0, _INDEX)
        for axis, first in enumerate(coordinates):
            row = Tile((shape[axis],), _INDEX)
            narrow = Tile((shape[axis],), Scalar("i32"))
            index = self.out.op("tile.range", (), narrow, start=0, end=shape[axis])
            index = self.out.op("arith.extsi", (index,), row)
            begin = self.out.op("tile.splat", (self._wide(first),), row)
            index = self.out.op("arith.addi", (begin, index), row)
            bits = Tile(row.shape, _BIT)
            for bound, told in ((zero, "sge"), (numbers[axis], "slt")):
                edge = self.out.op("tile.splat", (bound,), row)
                kept = self.out.op("arith.cmpi", (index, edge), bits, predicate=told)
                kept = self._spread(kept, axis, shape)
                both = Tile(shape, _BIT)
                inside = kept if inside is None else self.out.op("arith.andi", (inside, kept), both)
            stride = self.out.op("tile.splat", (numbers[rank + axis],), row)
            far = self.out.op("arith.muli", (index, stride), row)
            far = self._spread(far, axis, shape)
            at = self.out.op("tile.offset", (at, far), at.type)
        assert inside is not None
        return at, inside

    def _spread(self, value: Value, axis: int, whole: tuple[int, ...]) -> Value:
        """What belongs to one dimension, for all elements of a tile."""
        type = value.type
        assert isinstance(type, Tile)
        shape = type.shape
        for other in range(len(whole)):
            if other != axis:
                shape = (*shape[:other], 1, *shape[other:])
                value = self.out.op(
                    "tile.expand_dims", (value,), replace(type, shape=shape), axis=other
                )
        if shape == whole:
            return value
        return self.out.op("tile.broadcast", (value,), replace(type, shape=whole))

    def _load(self, operation: Operation) -> None:
        view, *coordinates = operation.operands
        tile, *rest = operation.results
        assert isinstance(view.type, View)
        assert isinstance(tile.type, Tile)
        at, inside = self._tile(view, coordinates)
        shaped = Tile(view.type.tile, tile.type.element)
        other = self.out.constant(PADDINGS.get(view.type.padding, 0), shaped)
        raw = tile if shaped == tile.type else Value(shaped, tile.name)
        load = (at, inside, other)
        self.out.append(Operation("tile.load", load, (raw, *rest), location=operation.location))
        if raw is not tile:
            self.out.append(Operation("tile.reshape", (raw,), (tile,), location=operation.location))

    def _store(self, operation: Operation) -> None:
        view, tile, *coordinates = operation.operands
        assert isinstance(view.type, View)
        assert isinstance(tile.type, Tile)
        at, inside = self._tile(view, coordinates)
        shaped = Tile(view.type.tile, tile.type.element)
        if shaped != tile.type:
            tile = self.out.op("tile.reshape", (tile,), shaped, tile.name)
        told = (at, tile, inside)
        place = operation.location
        self.out.append(Operation("tile.store", told, operation.results, location=place))
