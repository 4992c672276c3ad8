"""Numbers of a kernel as NumPy has them.

f32, f16, bf16, f8    float32, rounded to what the element can hold        f64   float64
i1                    bool        i8 to i64, index   integers that go round as the hardware's do
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.kernel.types import Scalar, Type, element_of, shape_of
from stretto.simulation.real import rounded

Array = NDArray[Any]

_INTEGERS = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}
_SMALL = {"f8E4M3FN": (4, 448.0), "f8E5M2": (5, 57344.0)}
"""Bits of the exponent, and the greatest number."""


def dtype_of(element: Scalar) -> Any:
    """The NumPy type that an element's numbers are kept in."""
    if element.element in _INTEGERS:
        return _INTEGERS[element.element]
    return np.float64 if element.element == "f64" else np.float32


def fitted(array: Any, element: Scalar) -> Array:
    """Numbers as the element holds them: rounded, or gone round."""
    wanted = dtype_of(element)
    if element.is_integer:
        whole = np.asarray(array)
        if wanted is np.bool_ and whole.dtype.kind in "iu":
            whole = whole & 1
        return whole.astype(wanted)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = np.asarray(array).astype(wanted)
        if element.element in ("f16", "bf16"):
            return np.asarray(rounded(narrow, element.element))
    if element.element in _SMALL:
        return _small(narrow, *_SMALL[element.element])
    if element.element == "tf32":
        return _mantissa(narrow, 10)
    return narrow


def _mantissa(array: Array, bits: int) -> Array:
    mantissa, exponent = np.frexp(array)
    scale = np.float32(1 << (bits + 1))
    return np.ldexp(np.rint(mantissa * scale) / scale, exponent).astype(np.float32)


def _small(array: Array, exponent_bits: int, greatest: float) -> Array:
    bits = 7 - exponent_bits
    bias = (1 << (exponent_bits - 1)) - 1
    _, exponent = np.frexp(array)
    step = np.ldexp(np.float32(1), np.maximum(exponent - 1, 1 - bias) - bits)
    found = np.rint(array / step) * step
    return np.where(np.isfinite(array), np.clip(found, -greatest, greatest), array).astype(
        np.float32
    )


def constant(value: Any, type: Type) -> Array:
    """A number, or a tile of numbers."""
    element = element_of(type)
    assert isinstance(element, Scalar)
    shape = shape_of(type)
    numbers = np.asarray(value)
    if element.is_integer and element.element != "i1":
        whole = numbers.astype(object) if numbers.dtype == object else numbers
        numbers = np.asarray(whole).astype(np.int64)
    made = fitted(numbers, element)
    return made.reshape(shape) if made.size > 1 or not shape else np.broadcast_to(made, shape)
