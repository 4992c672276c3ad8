"""Views whose base depends on the block: of the whole array, with a dimension more.

    view(q + h * (N * D), [N, D])          view(q, [any, N, D], strides [N * D, D, 1])
    load view, [row, 0]                    load view, [h, row, 0], as a tile of two dimensions

A host makes descriptors before any block runs, so what they are made of must be known to it: the
parameters, and what follows from them. The offset of a base is taken apart into such strides, and
numbers that belong to a block, which become coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from stretto.kernel.axes import Axis, analyse
from stretto.kernel.building import Builder
from stretto.kernel.tree import Kernel, Operation, Region, Value
from stretto.kernel.types import Pointer, Scalar, Tile, View
from stretto.ops.operations import SAME_NUMBER

MOST_DIMENSIONS = 5
"""Of a descriptor."""
ALIGNED = 16
"""Bytes that a stride is a multiple of."""
ANY = (1 << 31) - 1
"""The size of a dimension of which only places that there are, are asked for."""
_INDEX = Scalar("i32")
_KNOWN = ("arith.addi", "arith.subi", "arith.muli", *SAME_NUMBER)
"""Of numbers that a host knows, it knows these too."""


def with_whole_views(kernel: Kernel) -> Kernel:
    """The kernel with views whose bases are parameters, where their offsets can be taken apart."""
    views = [op for op in kernel.walk() if op.name == "tile.view"]
    maker = {value: op for op in kernel.walk() for value in op.results}
    if not any(view.operands[0] in maker for view in views):
        return kernel
    steps_of = steps_of_views(kernel, maker)
    found = {view: steps for view in views if (steps := steps_of(view))}
    if not found:
        return kernel
    writer = _Writer(found, Builder(kernel.location))
    for operation in kernel.body.operations:
        writer.operation(operation)
    return replace(kernel, body=writer.out.finish())


def steps_of_views(
    kernel: Kernel, maker: Mapping[Value, Operation]
) -> Callable[[Operation], _Steps | None]:
    """How the base of a view is found in the whole array; None: at once, or it cannot be told."""
    return _Reader(kernel, maker).steps


@dataclass(frozen=True)
class _Step:
    """A part of an offset: a number of the block's times a stride that the host knows."""

    index: tuple[Value, ...]
    stride: tuple[Value, ...]


@dataclass(frozen=True)
class _Steps:
    base: Value
    parts: tuple[_Step, ...]


@dataclass
class _Reader:
    kernel: Kernel
    maker: Mapping[Value, Operation]

    @cached_property
    def axes(self) -> Mapping[Value, Axis]:
        """What is known of its numbers."""
        return analyse(self.kernel)

    def steps(self, view: Operation) -> _Steps | None:
        base, parts = view.operands[0], list[_Step]()
        while (made := self.maker.get(base)) is not None and made.name == "tile.offset":
            base = made.operands[0]
            parts += self._parts(made.operands[1])
        type = view.result.type
        if not parts or base in self.maker or not isinstance(base.type, Pointer):
            return None
        assert isinstance(type, View)
        bytes = base.type.pointee.bits // 8
        whole = all(part.index and self._aligned(part, bytes) for part in parts)
        few = len(parts) + len(type.tile) <= MOST_DIMENSIONS
        return _Steps(base, tuple(parts)) if whole and few and self._plain(view.result) else None

    def _plain(self, view: Value) -> bool:
        """Whether tiles are loaded from a view and stored to it, and nothing else."""
        uses = [op for op in self.kernel.walk() if view in op.operands]
        return all(op.name in ("tile.view_load", "tile.view_store") for op in uses)

    def _aligned(self, part: _Step, bytes: int) -> bool:
        by = bytes
        for value in part.stride:
            axis = self.axes.get(value)
            by *= 1 if axis is None else axis.divisibility[0]
        return by % ALIGNED == 0

    def _parts(self, offset: Value) -> list[_Step]:
        """The terms of an offset."""
        made = self.maker.get(offset)
        if made is not None and made.name in SAME_NUMBER:
            return self._parts(made.operands[0])
        if made is not None and made.name == "arith.addi" and not self._host(offset):
            return [part for value in made.operands for part in self._parts(value)]
        factors = self._factors(offset)
        hosts = tuple(value for value in factors if self._host(value))
        return [_Step(tuple(value for value in factors if value not in hosts), hosts)]

    def _factors(self, value: Value) -> list[Value]:
        made = self.maker.get(value)
        if made is not None and made.name in SAME_NUMBER:
            return self._factors(made.operands[0])
        if made is not None and made.name == "arith.muli" and not self._host(value):
            return [factor for operand in made.operands for factor in self._factors(operand)]
        return [value]

    def _host(self, value: Value) -> bool:
        """Whether a number follows from the parameters alone."""
        made = self.maker.get(value)
        if made is None:
            return any(parameter.value is value for parameter in self.kernel.parameters)
        if made.name == "arith.constant":
            return True
        return made.name in _KNOWN and all(self._host(operand) for operand in made.operands)


@dataclass
class _Writer:
    views: Mapping[Operation, _Steps]
    out: Builder
    _whole: dict[Value, tuple[Value, tuple[Value, ...]]] = field(
        default_factory=dict[Value, tuple[Value, tuple[Value, ...]]]
    )
    """Of a view: that of the whole array, and where the block is in it."""

    def operation(self, operation: Operation) -> None:
        """An operation, or what does the same with whole views."""
        self.out.location = operation.location
        if operation in self.views:
            self._view(operation, self.views[operation])
        elif operation.name == "tile.view_load" and operation.operands[0] in self._whole:
            self._load(operation)
        elif operation.name == "tile.view_store" and operation.operands[0] in self._whole:
            self._store(operation)
        else:
            regions = tuple(self._region(region) for region in operation.regions)
            self.out.append(replace(operation, regions=regions))

    def _region(self, region: Region) -> Region:
        with self.out.region(region.arguments) as opened:
            for operation in region.operations:
                self.operation(operation)
        return opened.region

    def _view(self, operation: Operation, steps: _Steps) -> None:
        view = operation.result
        assert isinstance(view.type, View)
        numbers = operation.operands[1:]
        sizes, strides = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
        index = tuple(self._product(part.index, _INDEX) for part in steps.parts)
        more = [self._product(part.stride, Scalar("i64")) for part in steps.parts]
        any = [self.out.constant(ANY, _INDEX) for _ in steps.parts]
        type = replace(view.type, tile=(*[1] * len(index), *view.type.tile))
        made = self.out.add(
            "tile.view",
            (steps.base, *any, *sizes, *more, *strides),
            (type,),
            operation.attributes,
            names=(view.name,),
        )
        self._whole[view] = made.result, index

    def _product(self, factors: Sequence[Value], type: Scalar) -> Value:
        if not factors:
            return self.out.constant(1, type)
        first, *rest = [self._as(value, type) for value in factors]
        for value in rest:
            first = self.out.op("arith.muli", (first, value), type)
        return first

    def _as(self, value: Value, type: Scalar) -> Value:
        assert isinstance(value.type, Scalar)
        if value.type == type:
            return value
        kind = "arith.extsi" if value.type.bits < type.bits else "arith.trunci"
        return self.out.op(kind, (value,), type)

    def _load(self, operation: Operation) -> None:
        whole, index = self._whole[operation.operands[0]]
        tile, *rest = operation.results
        assert isinstance(tile.type, Tile)
        assert isinstance(whole.type, View)
        raw = Value(Tile(whole.type.tile, tile.type.element), tile.name)
        at = [self._as(value, _INDEX) for value in operation.operands[1:]]
        self.out.append(replace(operation, operands=(whole, *index, *at), results=(raw, *rest)))
        self.out.append(Operation("tile.reshape", (raw,), (tile,), location=operation.location))

    def _store(self, operation: Operation) -> None:
        view, tile, *at = operation.operands
        whole, index = self._whole[view]
        assert isinstance(tile.type, Tile)
        assert isinstance(whole.type, View)
        shaped = Tile(whole.type.tile, tile.type.element)
        raw = self.out.op("tile.reshape", (tile,), shaped, tile.name)
        at = [self._as(value, _INDEX) for value in at]
        self.out.append(replace(operation, operands=(whole, raw, *index, *at)))
