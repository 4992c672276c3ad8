"""Values as one function of the emitted source has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.emit.gluon.expressions import EmitError, dtype, expression, wrapped
from stretto.emit.gluon.layouts import Layout, Layouts, Slice
from stretto.kernel import Operation
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Tile


@dataclass(frozen=True, slots=True)
class Shown:
    """An expression, and the layout of its tile; None: a number, or a number everywhere."""

    text: str
    layout: Layout | None = None
    whole: bool = True
    """Whether it has its full shape; else it is spread where it meets one that has."""


def in_layout(shown: Shown, layout: Layout) -> str:
    """The expression in a layout."""
    if shown.layout is None or shown.layout == layout:
        return shown.text
    return f"gl.convert_layout({shown.text}, {layout})"


def seen_through(operation: Operation, source: Shown, layouts: Layouts) -> Shown:
    """A tile in registers under another name: expanded, spread."""
    kind = kind_of(operation)
    result = operation.result
    if kind == "splat" or source.layout is None:
        return Shown(source.text)
    layout = layouts.of(result)
    if kind == "expand_dims":
        axis = operation.integer("axis")
        assert isinstance(result.type, Tile)
        index = ", ".join("None" if i == axis else ":" for i in range(len(result.type.shape)))
        text = wrapped(in_layout(source, Slice(axis, layout)))
        return Shown(f"{text}[{index}]", layout, False)
    if kind == "broadcast":
        return Shown(source.text, source.layout, False)
    if kind == "transpose":
        order = list(operation.integers("permutation"))
        return Shown(f"gl.convert_layout(gl.permute({source.text}, {order}), {layout})", layout)
    if kind == "view":
        assert isinstance(result.type, Tile)
        shape = list(result.type.shape)
        return Shown(f"gl.convert_layout(gl.reshape({source.text}, {shape}), {layout})", layout)
    raise EmitError(f"a view `{kind}` of registers has no Gluon yet", operation)


def whole(shown: Shown, operation: Operation, number: int) -> Shown:
    """An operand in its full shape."""
    type = operation.operands[number].type
    if shown.whole or shown.layout is None or not isinstance(type, Tile):
        return shown
    zero = f"gl.zeros({list(type.shape)}, {dtype(type)}, {shown.layout})"
    return Shown(f"({zero} + {shown.text})", shown.layout)


def computed(operation: Operation, operands: Sequence[Shown], layouts: Layouts) -> Shown:
    """What an operation without side effects makes."""
    result = operation.result
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
        return Shown(in_layout(Shown(text, home), layout), layout)
    texts = [wrapped(in_layout(operand, layout)) for operand in operands]
    text = expression(operation, texts)
    tiles = [operand for operand in operands if operand.layout is not None]
    if any(operand.whole for operand in tiles) or _spreads(operation, tiles):
        return Shown(text, layout)
    if not tiles:
        return Shown(
            f"gl.full({list(result.type.shape)}, {text}, {dtype(result.type)}, {layout})", layout
        )
    zero = f"gl.zeros({list(result.type.shape)}, {dtype(result.type)}, {layout})"
    return Shown(f"{zero} + {wrapped(text)}", layout)


def _spreads(operation: Operation, tiles: Sequence[Shown]) -> bool:
    """Whether two parts that meet make the whole: a column and a row."""
    return len({tile.text.rpartition("[")[2] for tile in tiles}) > 1 and bool(operation.operands)
