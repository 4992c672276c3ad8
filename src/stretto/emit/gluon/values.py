"""Values as one function of the emitted source has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.emit.gluon.exchange import Exchange
from stretto.emit.gluon.expressions import everywhere, expression, unwritten, wrapped, zeros
from stretto.emit.gluon.layouts import JOIN
from stretto.kernel import Operation, Value
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Tile, Type
from stretto.program.layouts import Layout, Slice


@dataclass(frozen=True, slots=True)
class Shown:
    """An expression, and the layout of its tile; None: a number, or a number everywhere."""

    text: str
    layout: Layout | None = None
    part: Tile | None = None
    """What there is of it, where that is less than its shape: it is spread where it meets more."""

    @property
    def whole(self) -> bool:
        """Whether it has its full shape."""
        return self.part is None


def in_layout(shown: Shown, layout: Layout, type: Type, layouts: Exchange) -> str:
    """The expression, of some type, in a layout."""
    if shown.layout is None or shown.layout == layout:
        return shown.text
    return layouts.convert(shown.text, shown.layout, layout, shown.part or type)


def seen_through(operation: Operation, source: Shown, layouts: Exchange) -> Shown:
    """A tile in registers under another name: expanded, spread."""
    kind = kind_of(operation)
    result = operation.result
    if kind == "splat" or source.layout is None:
        return Shown(source.text)
    layout, type = layouts.of(result), operation.operands[0].type
    assert isinstance(type, Tile)
    assert isinstance(result.type, Tile)
    if kind == "expand_dims":
        axis = operation.integer("axis")
        index = ", ".join("None" if i == axis else ":" for i in range(len(result.type.shape)))
        text = wrapped(in_layout(source, Slice(axis, layout), type, layouts))
        shape = (source.part or type).shape
        part = Tile((*shape[:axis], 1, *shape[axis:]), type.element)
        return Shown(f"{text}[{index}]", layout, part)
    if kind == "broadcast":
        return Shown(source.text, source.layout, source.part or type)
    source = whole(source, operation, 0)
    assert source.layout is not None
    if kind == "transpose":
        order = operation.integers("permutation")
        return Shown(layouts.permute(source.text, source.layout, type, order, layout), layout)
    if kind == "view":
        text = layouts.reshape(source.text, source.layout, type, result.type, layout)
        return Shown(text, layout)
    raise unwritten(operation, " of registers")


def whole(shown: Shown, operation: Operation, number: int) -> Shown:
    """An operand in its full shape."""
    type = operation.operands[number].type
    if shown.whole or shown.layout is None or not isinstance(type, Tile):
        return shown
    return Shown(f"({zeros(type, shown.layout)} + {shown.text})", shown.layout)


def half(operation: Operation, text: str, result: Value, layouts: Exchange) -> str:
    """One of two tiles that a tile was split into, in its own layout."""
    type = operation.operands[0].type
    assert isinstance(type, Tile)
    split = Slice(len(type.shape) - 1, layouts.of(operation.operands[0]))
    return layouts.convert(text, split, layouts.of(result), result.type)


def halves(operation: Operation, source: Shown, layouts: Exchange) -> str:
    """The two tiles that a tile of pairs is split into, in layouts that follow from its own."""
    tile, layout = whole(source, operation, 0), layouts.of(operation.operands[0])
    type = operation.operands[0].type
    assert isinstance(type, Tile)
    if tile.layout is None:
        return f"gl.split({everywhere(tile.text, type, layout)})"
    return f"gl.split({in_layout(tile, layout, type, layouts)})"


def _in_full(
    shown: Shown, operation: Operation, number: int, layout: Layout, layouts: Exchange
) -> str:
    """A tile in the layout that a tile of pairs has of each half."""
    type = operation.operands[number].type
    assert isinstance(type, Tile)
    home = Slice(len(type.shape), layout)
    if shown.layout is None:
        return everywhere(shown.text, type, home)
    return in_layout(whole(shown, operation, number), home, type, layouts)


def computed(operation: Operation, operands: Sequence[Shown], layouts: Exchange) -> Shown:
    """What an operation without side effects makes."""
    if len(operation.results) != 1:
        raise unwritten(operation)
    result = operation.result
    if kind_of(operation).startswith("reduce.") and operands[0].layout is not None:
        axis = operation.integer("axis")
        layouts.reduced(operands[0].layout, operation.operands[0].type, axis)
    if not isinstance(result.type, Tile):
        if kind_of(operation).startswith("reduce."):
            return Shown(expression(operation, [whole(operands[0], operation, 0).text]))
        return Shown(expression(operation, [wrapped(o.text) for o in operands]))
    layout = layouts.of(result)
    kind = kind_of(operation)
    if kind == "range":
        start, end = operation.integer("start"), operation.integer("end")
        text = f"gl.arange(0, {end - start}, layout={layout})"
        return Shown(f"{text} + {start}" if start else text, layout)
    if kind.startswith("reduce."):
        source = whole(operands[0], operation, 0)
        text = expression(operation, [source.text])
        home = None if source.layout is None else Slice(operation.integer("axis"), source.layout)
        return Shown(in_layout(Shown(text, home), layout, result.type, layouts), layout)
    if kind == JOIN:
        pair = [_in_full(o, operation, n, layout, layouts) for n, o in enumerate(operands)]
        return Shown(f"gl.convert_layout(gl.join({', '.join(pair)}), {layout})", layout)
    types = [value.type for value in operation.operands]
    texts = [
        wrapped(in_layout(operand, layout, type, layouts))
        for operand, type in zip(operands, types, strict=True)
    ]
    text = expression(operation, texts)
    tiles = [operand for operand in operands if operand.layout is not None]
    if any(operand.whole for operand in tiles) or _spreads(operation, tiles):
        return Shown(text, layout)
    if not tiles:
        return Shown(everywhere(text, result.type, layout), layout)
    return Shown(f"{zeros(result.type, layout)} + {wrapped(text)}", layout)


def _spreads(operation: Operation, tiles: Sequence[Shown]) -> bool:
    """Whether two parts that meet make the whole: a column and a row."""
    return len({tile.text.rpartition("[")[2] for tile in tiles}) > 1 and bool(operation.operands)
