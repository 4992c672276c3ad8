"""Values as one agent has them: an expression, and the layout of its tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.kernel import Operation, Value
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Tile, Type, shape_of
from stretto.ops.opcodes import opcode
from stretto.ops.reductions import FOLDED
from stretto.program.builder.exchange import Exchange
from stretto.program.builder.layouts import ASSEMBLY, HISTOGRAM, JOIN, SCAN, SPLIT
from stretto.program.errors import unwritten
from stretto.program.expressions import (
    Arithmetic,
    Assembly,
    Combined,
    Computed,
    Converted,
    Everywhere,
    Expanded,
    Expression,
    Halves,
    Histogram,
    Joined,
    Range,
    Spread,
    Zeros,
)
from stretto.program.layouts import Layout, Rows, Slice, factor


@dataclass(frozen=True, slots=True)
class Operand:
    """An expression, and the layout of its tile; None: a number, or a number everywhere."""

    expression: Expression
    layout: Layout | None = None
    part: Tile | None = None
    """What there is of it, where that is less than its shape: it is spread where it meets more."""

    @property
    def full(self) -> bool:
        """Whether it has its full shape."""
        return self.part is None


def in_layout(operand: Operand, layout: Layout, type: Type, layouts: Exchange) -> Expression:
    """The expression, of some type, in a layout."""
    if operand.layout is None or operand.layout == layout:
        return operand.expression
    layouts.convert(operand.layout, layout, operand.part or type)
    return Converted(operand.expression, layout)


def seen_through(operation: Operation, source: Operand, layouts: Exchange) -> Operand:
    """A tile in registers under another name: expanded, spread."""
    kind = kind_of(operation)
    result = operation.result
    if kind == "splat" or source.layout is None:
        return Operand(source.expression)
    layout, type = layouts.of(result), operation.operands[0].type
    assert isinstance(type, Tile)
    assert isinstance(result.type, Tile)
    if kind == "expand_dims":
        axis = operation.integer("axis")
        inner = in_layout(source, Slice(axis, layout), type, layouts)
        shape = (source.part or type).shape
        part = Tile((*shape[:axis], 1, *shape[axis:]), type.element)
        return Operand(Expanded(inner, axis, len(result.type.shape)), layout, part)
    if kind == "broadcast":
        return Operand(source.expression, source.layout, source.part or type)
    source = full_shape(source, operation, 0)
    assert source.layout is not None
    if kind == "transpose":
        order = operation.integers("permutation")
        permuted = layouts.permuted(source.expression, source.layout, type, order, layout)
        return Operand(permuted, layout)
    if kind == "view":
        reshaped = layouts.reshaped(source.expression, source.layout, type, result.type, layout)
        return Operand(reshaped, layout)
    raise unwritten(operation, " of registers")


def full_shape(operand: Operand, operation: Operation, number: int) -> Operand:
    """An operand in its full shape."""
    type = operation.operands[number].type
    if operand.full or operand.layout is None or not isinstance(type, Tile):
        return operand
    return Operand(Spread(operand.expression, type, operand.layout), operand.layout)


def is_together(operation: Operation) -> bool:
    """Whether an operation's results are made at once, in layouts that follow from its operands."""
    kind = kind_of(operation)
    assembly = kind == ASSEMBLY and isinstance(operation.results[0].type, Tile)
    return kind == SPLIT or kind in FOLDED or assembly


def together(
    operation: Operation, operands: Sequence[Operand], layouts: Exchange, function: str
) -> tuple[Expression, Layout | None]:
    """What makes all results of an operation, and the layout that they come in."""
    kind = kind_of(operation)
    assembly = kind == ASSEMBLY
    home = layouts.of(operation.results[0] if assembly else operation.operands[0])
    first = operation.operands[0].type if operation.operands else None
    if kind == SCAN and not isinstance(home, Rows) and isinstance(first, Tile):
        home = layouts.rows(first)  # Triton scans no other layout
    tiles = [_in_home(one, operation, n, layouts, home) for n, one in enumerate(operands)]
    if assembly:
        return Assembly(operation, tuple(tiles)), home
    rank = len(shape_of(operation.operands[0].type))
    if kind == SPLIT:
        return Halves(tiles[0]), Slice(rank - 1, home)
    axis = operation.integer("axis")
    layouts.reduced(home, axis, *(value.type for value in operation.operands))
    made = Combined(operation, tuple(tiles), function)
    if kind == SCAN:
        return made, home
    return made, Slice(axis, home) if rank > 1 else None


def _in_home(
    operand: Operand, operation: Operation, number: int, layouts: Exchange, home: Layout
) -> Expression:
    """An operand in its full shape, in a layout; a number as it is."""
    type = operation.operands[number].type
    if not isinstance(type, Tile):
        return operand.expression
    tile = full_shape(operand, operation, number)
    if tile.layout is None:
        return Everywhere(tile.expression, type, home)
    return in_layout(tile, home, type, layouts)


def settled(
    source: Expression, home: Layout | None, result: Value, layouts: Exchange
) -> Expression:
    """One of the results of an operation, in its own layout."""
    if home is None or not isinstance(result.type, Tile):
        return source
    wanted = layouts.of(result)
    if wanted == home and not isinstance(home, Slice):
        return source
    layouts.convert(home, wanted, result.type)
    return Converted(source, wanted)


def _in_full(
    operand: Operand, operation: Operation, number: int, layout: Layout, layouts: Exchange
) -> Expression:
    """A tile in the layout that a tile of pairs has of each half."""
    type = operation.operands[number].type
    assert isinstance(type, Tile)
    home = Slice(len(type.shape), layout)
    if operand.layout is None:
        return Everywhere(operand.expression, type, home)
    return in_layout(full_shape(operand, operation, number), home, type, layouts)


def computed(operation: Operation, operands: Sequence[Operand], layouts: Exchange) -> Operand:
    """What an operation without side effects makes."""
    if len(operation.results) != 1:
        raise unwritten(operation)
    result, kind = operation.result, kind_of(operation)
    if kind.startswith("reduce."):
        return _reduced(operation, operands[0], layouts)
    if not isinstance(result.type, Tile):
        return Operand(Computed(operation, tuple(one.expression for one in operands)))
    layout = layouts.of(result)
    if kind == "range":
        start, end = operation.integer("start"), operation.integer("end")
        return Operand(Range(start, end, layout), layout)
    if kind == HISTOGRAM:
        return _histogram(operation, operands, layouts)
    if kind == JOIN:
        first, second = (
            _in_full(one, operation, n, layout, layouts) for n, one in enumerate(operands)
        )
        return Operand(Converted(Joined(first, second), layout), layout)
    if opcode(kind).multiplies:
        return _multiplied(operation, operands, layout, layouts)
    types = [value.type for value in operation.operands]
    laid_out = [
        in_layout(operand, layout, type, layouts)
        for operand, type in zip(operands, types, strict=True)
    ]
    made = Computed(operation, tuple(laid_out))
    tiles = [operand for operand in operands if operand.layout is not None]
    if any(operand.full for operand in tiles) or _spreads(tiles, result.type):
        return Operand(made, layout)
    if not tiles:
        return Operand(Everywhere(made, result.type, layout), layout)
    return Operand(Arithmetic("+", Zeros(result.type, layout), made), layout)


def _multiplied(
    operation: Operation, operands: Sequence[Operand], layout: Layout, layouts: Exchange
) -> Operand:
    """A product that threads make: factors as they take them, and what they add to."""
    type = operation.result.type
    assert isinstance(type, Tile)
    factors = [
        _in_home(one, operation, side, layouts, factor(operation.operands[side].type, layout, side))
        for side, one in enumerate(operands[:2])
    ]
    total: Expression = Zeros(type, layout)
    if len(operands) > 2:
        total = _in_home(operands[2], operation, 2, layouts, layout)
    return Operand(Computed(operation, (*factors, total)), layout)


def _histogram(operation: Operation, operands: Sequence[Operand], layouts: Exchange) -> Operand:
    """How often each number of a row is there."""
    home, layout = layouts.of(operation.operands[0]), layouts.of(operation.result)
    tiles = [_in_home(one, operation, n, layouts, home) for n, one in enumerate(operands)]
    (bins,) = shape_of(operation.result.type)
    layouts.counted(bins)
    mask = tiles[1] if len(tiles) > 1 else None
    return Operand(Histogram(tiles[0], mask, bins, layout), layout)


def _reduced(operation: Operation, operand: Operand, layouts: Exchange) -> Operand:
    """A tile with an axis less, or the number that is left of its last one."""
    result, axis = operation.result, operation.integer("axis")
    source, type = full_shape(operand, operation, 0), operation.operands[0].type
    if source.layout is None and isinstance(type, Tile):  # Gluon reduces no number
        home = layouts.of(operation.operands[0])
        source = Operand(Everywhere(source.expression, type, home), home)
    if source.layout is not None:
        layouts.reduced(source.layout, axis, type)
    made = Computed(operation, (source.expression,))
    if not isinstance(result.type, Tile):
        return Operand(made)
    layout = layouts.of(result)
    home = None if source.layout is None else Slice(axis, source.layout)
    return Operand(in_layout(Operand(made, home), layout, result.type, layouts), layout)


def _spreads(parts: Sequence[Operand], type: Tile) -> bool:
    """Whether parts that meet make the whole: a column and a row."""
    shapes = {operand.part.shape for operand in parts if operand.part is not None}
    return len(shapes) > 1 and tuple(map(max, zip(*shapes, strict=True))) == type.shape
