"""Expressions, slots and barriers as Gluon writes them: one row a kind.

Arithmetic("-", Name("n"), number(2))        n - 2
Slot("k_tile", "k_tile_slot")                k_tile.index(k_tile_slot)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stretto.emission.gluon.expressions import (
    dtype,
    everywhere,
    expression,
    literal,
    wrapped,
    zeros,
)
from stretto.kernel import Operation, Scalar, Value
from stretto.kernel.tree import kind_of
from stretto.kernel.types import element_of
from stretto.ops.operations import combining_row
from stretto.ops.reductions import FOLDED
from stretto.program.expressions import (
    Arithmetic,
    Assembly,
    Barrier,
    Combined,
    Computed,
    Converted,
    Counter,
    Everywhere,
    Expanded,
    Expression,
    Given,
    Halves,
    Held,
    Histogram,
    Iteration,
    Joined,
    Literal,
    Name,
    Permuted,
    Range,
    Reshaped,
    RowScaled,
    Slot,
    Spread,
    Transposed,
    Trips,
    Zeros,
    is_number,
)

_BINDING = {"<": 0, ">=": 0, "^": 1, "+": 2, "-": 2, "*": 3, "//": 3, "%": 3}
"""How tightly a sign binds."""


def spelled(value: Expression) -> str:
    """An expression."""
    return SPELLED[type(value)](value)


def enclosed(value: Expression) -> str:
    """An expression in brackets, unless it is one thing already."""
    return wrapped(spelled(value))


def slot(value: Slot) -> str:
    """A tile in shared or tensor memory."""
    text = _indexed(value.memory, value.index)
    for view in value.views:
        if isinstance(view, Transposed):
            text += f".permute({list(view.order)})"
        else:
            text += f".reshape({list(view.shape)})"
    return text


def barrier(value: Barrier) -> str:
    """A barrier, or one of several."""
    return _indexed(value.name, value.index)


def _indexed(name: str, index: str | None) -> str:
    return name if index is None else f"{name}.index({index})"


def _computed(value: Computed) -> str:
    # A reduction has its tile as an argument; signs stand between others.
    alone = kind_of(value.operation).startswith("reduce.")
    spell = spelled if alone else enclosed
    return expression(value.operation, [spell(one) for one in value.operands])


def _combined(value: Combined) -> str:
    operation = value.operation
    tiles = [spelled(one) for one in value.operands]
    given = {
        "axis": operation.integer("axis"),
        "function": value.function,
        "reverse": bool(operation.attributes.get("reverse")),
    }
    together = tiles[0] if len(tiles) == 1 else f"({', '.join(tiles)})"
    return FOLDED[kind_of(operation)].format(together, **given)


def _assembly(value: Assembly) -> str:
    operation = value.operation
    types = [dtype(result.type) for result in operation.results]
    made = types[0] if len(types) == 1 else f"({', '.join(types)})"
    given = ", ".join(spelled(one) for one in value.operands)
    asm, constraints = repr(operation.text("asm")), repr(operation.text("constraints"))
    rest = f"{made}, is_pure=True, pack={operation.integer('pack')}"
    return f"gl.inline_asm_elementwise({asm}, {constraints}, [{given}], {rest})"


def _histogram(value: Histogram) -> str:
    mask = "" if value.mask is None else f", mask={spelled(value.mask)}"
    return f"gl.histogram({spelled(value.value)}, {value.bins}{mask}, layout={value.layout})"


def combining(operation: Operation) -> tuple[tuple[str, ...], list[str]]:
    """Parameters and lines of the function that puts two elements of a reduction together."""
    elements = [value.type for value in operation.operands]
    names = [f"{side}{n or ''}" for side in "ab" for n in range(len(elements))]
    if not operation.regions:
        element = element_of(elements[0])
        assert isinstance(element, Scalar)
        row = combining_row(kind_of(operation), floats=element.is_float)
        taken, made = (Value(element), Value(element)), (Value(element),)
        return tuple(names), [f"return {expression(Operation(row, taken, made), names)}"]
    (region,) = operation.regions
    texts = dict(zip(region.arguments, names, strict=True))
    lines: list[str] = []
    for inner in region.operations[:-1]:
        if kind_of(inner) == "arith.constant":
            texts[inner.result] = literal(inner.attributes["value"], inner.result.type)
            continue
        made_here = f"c{len(lines)}"
        given = [wrapped(texts[value]) for value in inner.operands]
        lines.append(f"{made_here} = {expression(inner, given)}")
        texts[inner.result] = made_here
    ends = [texts[value] for value in region.terminator.operands]
    return tuple(names), [*lines, f"return {', '.join(ends)}"]


def _expanded(value: Expanded) -> str:
    index = ", ".join("None" if i == value.axis else ":" for i in range(value.rank))
    return f"{enclosed(value.value)}[{index}]"


def _range(value: Range) -> str:
    text = f"gl.arange(0, {value.end - value.start}, layout={value.layout})"
    return f"{text} + {value.start}" if value.start else text


def _iteration(value: Iteration) -> str:
    if value.number is not None:
        return str(value.number)
    return counted(value) + (f" - {value.behind}" if value.behind else "")


def counted(value: Iteration) -> str:
    """What an iteration is counted from, whatever its stage."""
    return value.counter if value.ahead is None else f"{value.counter} + {value.ahead}"


def _counter(value: Counter) -> str:
    text = spelled(value.iteration)
    if not is_number(value.step, 1):
        text = f"{wrapped(text)} * {enclosed(value.step)}"
    return text if is_number(value.lower, 0) else f"{enclosed(value.lower)} + {text}"


def _trips(value: Trips) -> str:
    span = spelled(value.upper)
    if not is_number(value.lower, 0):
        span = f"{wrapped(span)} - {enclosed(value.lower)}"
    fewer = f" - {value.fewer}" if value.fewer else ""
    return f"gl.maximum(gl.cdiv({span}, {spelled(value.step)}){fewer}, 0)"


def _arithmetic(value: Arithmetic) -> str:
    binding = _BINDING[value.sign]
    left, right = _beside(value.left, binding), _beside(value.right, binding + 1)
    return f"{left} {value.sign} {right}"


def _beside(value: Expression, binding: int) -> str:
    """An operand of a sign that binds so tightly."""
    if isinstance(value, Arithmetic):
        text = spelled(value)
        return text if _BINDING[value.sign] >= binding else f"({text})"
    return enclosed(value)


def _given(value: Given) -> str:
    if not value.part:
        return value.parameter
    if value.part == "strides" and value.pointer:
        return f"{value.parameter}.stride({value.axis})"
    return f"{value.parameter}.{value.part}[{value.axis}]"


SPELLED: dict[type[Any], Callable[[Any], str]] = {
    Name: lambda v: v.name,
    Literal: lambda v: literal(v.value, v.type),
    Computed: _computed,
    Converted: lambda v: f"gl.convert_layout({spelled(v.value)}, {v.layout})",
    Reshaped: lambda v: f"gl.reshape({spelled(v.value)}, {list(v.shape)})",
    Permuted: lambda v: f"gl.permute({spelled(v.value)}, {list(v.order)})",
    Expanded: _expanded,
    Everywhere: lambda v: everywhere(spelled(v.value), v.type, v.layout),
    Zeros: lambda v: zeros(v.type, v.layout),
    Spread: lambda v: f"({zeros(v.type, v.layout)} + {spelled(v.value)})",
    Range: _range,
    Joined: lambda v: f"gl.join({spelled(v.first)}, {spelled(v.second)})",
    Halves: lambda v: f"gl.split({spelled(v.value)})",
    Combined: _combined,
    Assembly: _assembly,
    Histogram: _histogram,
    Held: lambda v: f"held({spelled(v.value)})",
    RowScaled: lambda v: f"row_scaled_{v.registers}({spelled(v.value)}, {spelled(v.factor)})",
    Iteration: _iteration,
    Counter: _counter,
    Trips: _trips,
    Arithmetic: _arithmetic,
    Given: _given,
}
"""How each kind is spelled."""
