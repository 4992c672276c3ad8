"""Block-scaled products, unpacked: no machine here multiplies scaled blocks itself.

    dot_scaled a: 64x64 bytes of two e2m1 each, scales 64x4, b, scales, total
        low, high = a & 15, a >> 4              two 4-bit floats of each byte, along K
        a = join(low, high)                     64x128, as bf16
        scale = 2 ** (scales - 127)             one for 32 elements of K
        total = dot a * scale, b * scale, total

Triton does the same where there is no such instruction, in the same types: what has two bytes an
element stays as it is, all else becomes bf16, or f16 beside a factor of f16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import nan

from stretto.kernel.building import Builder
from stretto.kernel.tree import Value
from stretto.kernel.types import Scalar, Tile, element_of, shape_of

NARROW = ("e2m1",)
"""Formats of which a byte has two."""
FORMATS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "e2m1": "i8", "bf16": "bf16", "fp16": "f16"}
"""What elements of a format lie in."""
_RANK = 2
_I32, _F32 = Scalar("i32"), Scalar("f32")
_DOUBLED = 0xC8643210
"""Twice the values of a 4-bit float without its sign, a digit each: 0, 1, 2, 3, 4, 6, 8, 12."""
_EXPONENT, _NO_SCALE = 23, 255
"""Bits below the exponent of an f32; the power of two that stands for NaN."""


@dataclass(frozen=True)
class Factor:
    """One factor of a block-scaled product."""

    value: Value
    scale: Value | None
    format: str
    """One of `FORMATS`."""
    packed_along: int
    """The dimension along which bytes hold two elements."""
    summed: int
    """The dimension over which the product sums: 1 of the left factor, 0 of the right."""


def unfit(left: Factor, right: Factor, total: Value) -> tuple[str, str] | None:
    """Why there is no such product, and what may be done; None where there is."""
    for factor in (left, right):
        if factor.format not in FORMATS:
            known = ", ".join(FORMATS)
            return f"a block-scaled product of {factor.format or 'no format'}", f"known: {known}"
        for value in (factor.value, factor.scale, total):
            if value is not None and len(shape_of(value.type)) != _RANK:
                told = f"a block-scaled product of {value.type}"
                return told, "tiles of two dimensions are multiplied; reshape a batch away"
        element = element_of(factor.value.type)
        if str(element) != FORMATS[factor.format]:
            return f"a block-scaled product of {factor.format} in {element}", ""
    wrong = [*_misfits(left, shape_of(total.type)[0]), *_misfits(right, shape_of(total.type)[1])]
    return wrong[0] if wrong else None


def _misfits(factor: Factor, rows: int) -> Iterator[tuple[str, str]]:
    """Shapes of a factor that do not go together."""
    shape = list(shape_of(factor.value.type))
    if factor.format in NARROW:
        shape[factor.packed_along] *= 2
    length = shape[factor.summed]
    if shape[1 - factor.summed] != rows:
        yield f"a block-scaled product of {factor.value.type} into {rows} rows or columns", ""
    if factor.scale is not None:
        scaled, blocks = shape_of(factor.scale.type)
        if scaled != rows or not blocks or length % blocks:
            yield f"scales of {factor.scale.type} for {rows} by {length} elements", ""


def scaled_product(
    out: Builder, left: Factor, right: Factor, total: Value, name: str = "", *, nans: bool = True
) -> Value:
    """The product of two factors, scaled, added to `total`; `nans`: whether a scale may be NaN."""
    both = {left.format, right.format}
    element = Scalar("f16" if "fp16" in both else "bf16")
    factors = [_unpacked(out, factor, element, nans) for factor in (left, right)]
    operands = (*factors, total)
    return out.op("tile.dot", operands, total.type, name, precision="ieee", imprecise=0)


def _tile(value: Value) -> Tile:
    assert isinstance(value.type, Tile)
    return value.type


def _unpacked(out: Builder, factor: Factor, element: Scalar, nans: bool) -> Value:
    value = factor.value
    if factor.format in NARROW:
        value = _of_four_bits(out, value, factor.packed_along, element)
    elif _tile(value).element != element:
        value = _as(out, value, element)
    if factor.scale is None:
        return value
    scale = _spread(out, factor.scale, factor.summed, _tile(value), element, nans)
    return out.op("arith.mulf", (value, scale), value.type)


def _as(out: Builder, value: Value, element: Scalar) -> Value:
    """Floats of another width; between two of 16 bits by way of f32."""
    before = _tile(value).element
    assert isinstance(before, Scalar)
    if before.bits == element.bits:
        value, before = _as(out, value, _F32), _F32
    kind = "arith.extf" if before.bits < element.bits else "arith.truncf"
    return out.op(kind, (value,), Tile(_tile(value).shape, element))


def _of_four_bits(out: Builder, bytes: Value, axis: int, element: Scalar) -> Value:
    """Two 4-bit floats of each byte, the low one first."""
    shape = _tile(bytes).shape
    whole, bits = Tile(shape, _I32), Tile(shape, Scalar("i1"))

    def number(value: int) -> Value:
        return out.constant(value - (1 << 32) if value >= 1 << 31 else value, whole)

    wide = out.op("arith.extui", (bytes,), whole)
    halves: list[Value] = []
    for at in (wide, out.op("arith.shrui", (wide, number(4)), whole)):
        magnitude = out.op("arith.andi", (at, number(7)), whole)
        digit = out.op("arith.muli", (magnitude, number(4)), whole)
        doubled = out.op("arith.shrui", (number(_DOUBLED), digit), whole)
        doubled = out.op("arith.andi", (doubled, number(15)), whole)
        real = out.op("arith.sitofp", (doubled,), Tile(shape, _F32))
        half = out.constant(0.5, Tile(shape, _F32))
        real = out.op("arith.mulf", (real, half), real.type)
        minus = out.op("arith.andi", (at, number(8)), whole)
        minus = out.op("arith.cmpi", (minus, number(0)), bits, predicate="ne")
        negative = out.op("arith.negf", (real,), real.type)
        real = out.op("arith.select", (minus, negative, real), real.type)
        halves.append(out.op("arith.truncf", (real,), Tile(shape, element)))
    pairs = out.op("tile.join", halves, Tile((*shape, 2), element))
    if axis == 0:
        turned = Tile((shape[0], 2, shape[1]), element)
        pairs = out.op("tile.transpose", (pairs,), turned, order=(0, 2, 1))
    doubled_shape = tuple(2 * n if i == axis else n for i, n in enumerate(shape))
    return out.op("tile.reshape", (pairs,), Tile(doubled_shape, element))


def _spread(
    out: Builder, scale: Value, summed: int, factor: Tile, element: Scalar, nans: bool
) -> Value:
    """A factor's scales, each for all the elements that it scales."""
    made = _power(out, scale, element, nans)
    rows, blocks = _tile(made).shape
    length = factor.shape[summed] // blocks
    if summed == 0:
        made = out.op("tile.transpose", (made,), Tile((blocks, rows), element), order=(1, 0))
        few, many = (blocks, 1, rows), (blocks, length, rows)
    else:
        few, many = (rows, blocks, 1), (rows, blocks, length)
    axis = 1 if summed == 0 else 2
    made = out.op("tile.expand_dims", (made,), Tile(few, element), axis=axis)
    made = out.op("tile.broadcast", (made,), Tile(many, element))
    return out.op("tile.reshape", (made,), Tile(factor.shape, element))


def _power(out: Builder, scale: Value, element: Scalar, nans: bool) -> Value:
    """Scales as floats; those in bytes are exponents of two."""
    held = _tile(scale)
    if isinstance(held.element, Scalar) and held.element.is_float:
        return _as(out, scale, element)
    whole, real = Tile(held.shape, _I32), Tile(held.shape, _F32)
    wide = out.op("arith.extui", (scale,), whole)
    moved = out.op("arith.shli", (wide, out.constant(_EXPONENT, whole)), whole)
    power = out.op("arith.bitcast", (moved,), real)
    if nans:
        none = out.constant(_NO_SCALE, whole)
        none = out.op("arith.cmpi", (wide, none), Tile(whole.shape, Scalar("i1")), predicate="eq")
        power = out.op("arith.select", (none, out.constant(nan, real), power), real)
    return out.op("arith.truncf", (power,), Tile(real.shape, element))
