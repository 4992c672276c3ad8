"""Padding that copies do not have, written out: outside of a tensor TMA reads zeros.

part = load x, -inf outside        part = load x, zeros outside
                                   part = where(row < rows and column < columns, part, -inf)

A view that is a parameter keeps its padding: its sizes are not the kernel's to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, nan

from stretto.kernel.building import Builder
from stretto.kernel.tree import Kernel, Operation, Region, Value
from stretto.kernel.types import Scalar, Tile, View

ZEROS = ("zero", "undefined")
"""Paddings for which zeros do."""
PADDINGS = {"neg_inf": -inf, "pos_inf": inf, "nan": nan, "neg_zero": -0.0}


def with_zeros_outside(kernel: Kernel) -> Kernel:
    """The kernel with loads that pad with zeros, and choose what is asked for behind them."""
    makers = {value: op for op in kernel.walk() for value in op.results}
    views = {
        op.result: op
        for op in kernel.walk()
        if op.name == "tile.view" and _padding(op.result) not in ZEROS
    }
    if not any(op.name == "tile.view_load" and op.operands[0] in views for op in kernel.walk()):
        return kernel
    writer = _Writer(views, makers)
    return replace(kernel, body=writer.region(kernel.body))


def _padding(view: Value) -> str:
    return view.type.padding if isinstance(view.type, View) else ZEROS[0]


@dataclass
class _Writer:
    views: dict[Value, Operation]
    makers: dict[Value, Operation]
    _new: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def region(self, region: Region) -> Region:
        found: list[Operation] = []
        for operation in region.operations:
            found += self._operation(operation)
        return Region(tuple(found), region.arguments)

    def _operation(self, operation: Operation) -> Sequence[Operation]:
        operands = tuple(self._new.get(value, value) for value in operation.operands)
        made = replace(
            operation,
            operands=operands,
            regions=tuple(self.region(region) for region in operation.regions),
        )
        if operation.name == "tile.view" and operation.result in self.views:
            view = operation.result
            assert isinstance(view.type, View)
            plain = Value(replace(view.type, padding=ZEROS[0]), view.name)
            self._new[view] = plain
            said = {name: v for name, v in operation.attributes.items() if name != "padding"}
            return (replace(made, results=(plain,), attributes=said),)
        if operation.name == "tile.view_load" and operation.operands[0] in self.views:
            return self._load(operation, made)
        return (made,)

    def _load(self, asked: Operation, made: Operation) -> Sequence[Operation]:
        """The load, and behind it the choice between it and the padding."""
        view, *coordinates = asked.operands
        result, *rest = asked.results
        assert isinstance(view.type, View)
        assert isinstance(result.type, Tile)
        raw = Value(result.type, result.name)
        out = Builder(asked.location)
        out.append(replace(made, results=(raw, *rest)))
        sizes = self.views[view].operands[1 : 1 + len(view.type.tile)]
        inside = _inside(out, view.type.tile, coordinates, sizes)
        if view.type.tile != result.type.shape:
            shaped = Tile(result.type.shape, Scalar("i1"))
            inside = out.op("tile.reshape", (inside,), shaped)
        padding = out.constant(PADDINGS[view.type.padding], result.type)
        chosen = (inside, raw, padding)
        out.append(
            Operation("arith.select", chosen, (result,), {}, location=asked.location),
        )
        return out.finish().operations


def _inside(
    out: Builder, tile: Sequence[int], coordinates: Sequence[Value], sizes: Sequence[Value]
) -> Value:
    """Where a tile is inside of its tensor."""
    found: Value | None = None
    for axis, (length, first, size) in enumerate(zip(tile, coordinates, sizes, strict=True)):
        assert isinstance(first.type, Scalar)
        row = Tile((length,), first.type)
        at = out.op("tile.range", (), row, start=0, end=length)
        at = out.op("arith.addi", (at, out.op("tile.splat", (first,), row)), row)
        last = size
        if size.type != first.type:
            last = out.op("arith.extsi", (size,), first.type)
        edge = out.op("tile.splat", (last,), row)
        below = out.op("arith.cmpi", (at, edge), Tile((length,), Scalar("i1")), predicate="slt")
        shape: tuple[int, ...] = (length,)
        for other in range(len(tile)):
            if other != axis:
                place = other if other < axis else len(shape)
                shape = (*shape[:place], 1, *shape[place:])
                below = out.op("tile.expand_dims", (below,), Tile(shape, Scalar("i1")), axis=place)
        whole = Tile(tuple(tile), Scalar("i1"))
        if shape != whole.shape:
            below = out.op("tile.broadcast", (below,), whole)
        found = below if found is None else out.op("arith.andi", (found, below), whole)
    assert found is not None
    return found
