"""What elementwise operations compute: the functions that their rows name, on NumPy's arrays.

    value_of("arith.remui")(a, b)   ──►   a row's `unsigned_remainder`: `remainder` without signs

A row names a function of this module, of `special_functions.py` or of NumPy. `unsigned` in front
takes the same bits without a sign. Truths are taken as integers of one bit: 0 and -1, or 0 and 1
without a sign. What comes out is fitted to the result's element by whoever asked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import erf as _erf
from math import erfc as _erfc
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.ops.operations import OPERATIONS
from stretto.simulation import special_functions
from stretto.simulation.exact_rounding import exact_fma

Array = NDArray[Any]
Function = Callable[..., Any]

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_PREFIX = "unsigned"


def value_of(name: str) -> Function:
    """The function of an operation that is computed element by element."""
    return function_named(OPERATIONS[name].numpy)


@cache
def function_named(name: str) -> Function:
    """A function that a row names."""
    if name == _PREFIX or name.startswith(f"{_PREFIX}_"):
        return _taking(without_sign, _named(name.removeprefix(_PREFIX).lstrip("_") or "same"))
    return _taking(with_sign, _named(name))


def _named(name: str) -> Function:
    found = _FUNCTIONS.get(name) or special_functions.FUNCTIONS.get(name)
    found = found or getattr(np, name, None)
    if found is None:
        raise StrettoError(f"no function `{name}` is known that computes a value")
    return found


def _taking(as_integers: Callable[[Array], Array], function: Function) -> Function:
    def applied(*operands: Any) -> Any:
        return function(*(as_integers(np.asarray(one)) for one in operands))

    return applied


def with_sign(array: Array) -> Array:
    """Truths as integers of one bit with a sign: 0 and -1."""
    return -array.astype(np.int8) if array.dtype == np.bool_ else array


def without_sign(array: Array) -> Array:
    """The same bits without a sign; truths are 0 and 1."""
    if array.dtype == np.bool_:
        return array.astype(np.uint8)
    return array.view(_UNSIGNED[array.dtype.itemsize]) if array.dtype.kind == "i" else array


# Integers -----------------------------------------------------------------------------------


def _same(a: Array) -> Array:
    return a


def _second(a: Array, b: Array) -> Array:
    del a
    return b


def _quotient(a: Array, b: Array) -> Array:
    """Towards zero, as hardware divides; nothing is promised of a division by zero."""
    down = np.floor_divide(a, b)
    up = (down * b != a) & ((a < 0) != (b < 0)) & (b != 0)
    return down + up.astype(down.dtype)


def _remainder(a: Array, b: Array) -> Array:
    return np.asarray(a - _quotient(a, b) * b)


def _quotient_up(a: Array, b: Array) -> Array:
    down = np.floor_divide(a, b)
    return down + ((down * b != a) & (b != 0)).astype(down.dtype)


def _high(a: Array, b: Array) -> Array:
    """The upper half of a product of twice the width."""
    width = a.dtype.itemsize * 8
    return np.asarray((a.astype(object) * b.astype(object)) >> width).astype(a.dtype)


def _count(a: Array, b: Array) -> tuple[Array, Array]:
    """By how much is shifted, as far as there are bits, and whether that is far enough."""
    far = without_sign(b) >= a.dtype.itemsize * 8
    return np.where(far, 0, b).astype(b.dtype), far


def _shift_up(a: Array, b: Array) -> Array:
    by, far = _count(a, b)
    return np.where(far, 0, np.left_shift(a, by)).astype(a.dtype)


def _shift_down(a: Array, b: Array) -> Array:
    by, far = _count(a, b)
    left = np.where(a < 0, -1, 0) if a.dtype.kind == "i" else 0
    return np.where(far, left, np.right_shift(a, by)).astype(a.dtype)


def _integer_power(a: Array, b: Array) -> Array:
    width = a.dtype.itemsize * 8

    def power(x: int, n: int) -> int:
        if n < 0:
            return {1: 1, -1: 1 - 2 * (n % 2)}.get(x, 0)
        return pow(x, n, 1 << width)

    found = np.frompyfunc(power, 2, 1)(a.astype(object), b.astype(object))
    return np.asarray(found % (1 << width)).astype(_UNSIGNED[a.dtype.itemsize]).view(a.dtype)


def _bits(a: Array, function: Callable[[int, int], int]) -> Array:
    """A function of the bits of each number, and of how many there are."""
    width = a.dtype.itemsize * 8
    found = np.frompyfunc(lambda x: function(int(x), width), 1, 1)(without_sign(a))
    return np.asarray(found).astype(np.uint64).view(np.int64)


def _lowest(x: int, width: int) -> int:
    return (x & -x).bit_length() - 1 if x else width


def _reversed(x: int, width: int) -> int:
    return int(f"{x:0{width}b}"[::-1], 2)


def _picked_bytes(a: Array, b: Array, selector: Array) -> Array:
    """Four bytes of eight, each by three bits of a selector; a fourth bit repeats the sign."""

    def picked(x: int, y: int, chosen: int) -> int:
        both = (y << 32) | x
        made = 0
        for n in range(4):
            at = (chosen >> (4 * n)) & 0xF
            byte = (both >> (8 * (at & 7))) & 0xFF
            made |= (0xFF * (byte >> 7) if at & 8 else byte) << (8 * n)
        return made

    found = np.frompyfunc(picked, 3, 1)(
        *(without_sign(one).astype(object) for one in (a, b, selector))
    )
    return np.asarray(found).astype(np.uint32).view(np.int32)


def _product_of_24(a: Array, b: Array) -> Array:
    """Of the lower 24 bits."""
    if a.dtype.kind == "u":
        return (a & 0xFFFFFF) * (b & 0xFFFFFF)
    return ((a << 8) >> 8) * ((b << 8) >> 8)


def _sum_of_difference(a: Array, b: Array, c: Array) -> Array:
    return np.where(a > b, a - b, b - a) + c


def _average(a: Array, b: Array) -> Array:
    return (a & b) + ((a ^ b) >> 1)


def _average_up(a: Array, b: Array) -> Array:
    return (a | b) - ((a ^ b) >> 1)


def _from_halves(high: Array, low: Array) -> Array:
    whole = (without_sign(high).astype(np.uint64) << np.uint64(32)) | without_sign(low)
    return whole.view(np.float64)


def _half(a: Array, shift: int) -> Array:
    bits = np.ascontiguousarray(a, np.float64).view(np.uint64) >> np.uint64(shift)
    return (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32)


def _inverse_upper_half(a: Array) -> Array:
    """The upper half of 1 / a; the lower is zero."""
    bits = np.asarray(1 / a).view(np.uint64) & np.uint64(0xFFFFFFFF00000000)
    return bits.view(np.float64)


# Floating point -------------------------------------------------------------------------------


def _wide(a: Array) -> Array:
    return np.asarray(a, np.float64)


def _fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once: to odd in 64 bits, so that rounding to fewer is right."""
    if np.result_type(a, b, c) == np.float64:
        return exact_fma(a, b, c)
    product, added = _wide(a) * b, _wide(c)
    total = product + added
    part = total - product
    error = (product - (total - part)) + (added - part)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact, (bits + toward).view(np.float64), total)


def _greater(a: Array, b: Array, pick: Callable[..., Any], negative: bool) -> Array:
    """Of two zeros the one with the sign that is wanted."""
    made = pick(a, b)
    if made.dtype.kind != "f":
        return made
    zeros = (a == 0) & (b == 0)
    sign = (np.signbit(a) | np.signbit(b)) if negative else (np.signbit(a) & np.signbit(b))
    return np.where(zeros, np.where(sign, -0.0, 0.0), made).astype(made.dtype)


def _round_half_away(a: Array) -> Array:
    whole = np.trunc(a)
    return np.copysign(np.abs(whole) + (np.abs(a - whole) >= 0.5), a)


def _saturated(a: Array) -> Array:
    return np.where(np.isnan(a), 0, np.clip(a, 0, 1)).astype(a.dtype) + np.zeros_like(a)


def _positive_difference(a: Array, b: Array) -> Array:
    return np.where(a > b, a - b, np.where(np.isnan(a) | np.isnan(b), np.nan, 0)).astype(a.dtype)


def _ieee_remainder(a: Array, b: Array) -> Array:
    return special_functions.each(special_functions.remainder, a, b).astype(a.dtype)


def _exponent(a: Array) -> Array:
    """Of the greatest power of 2 in it."""
    found = (np.frexp(a)[1] - 1).astype(np.int64)
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    found = np.where(a == 0, least, np.where(np.isinf(a), most, found))
    return np.where(np.isnan(a), least, found).astype(np.int32)


def _float_exponent(a: Array) -> Array:
    found = (np.frexp(a)[1] - 1).astype(a.dtype)
    found = np.where(a == 0, -np.inf, np.where(np.isinf(a), np.inf, found))
    return np.where(np.isnan(a), a, found).astype(a.dtype)


def _length(*sides: Array) -> Array:
    made = np.sqrt(sum(_wide(side) ** 2 for side in sides))
    infinite = np.any([np.isinf(side) for side in sides], axis=0)
    return np.where(infinite, np.inf, made)


def _inverse_length(*sides: Array) -> Array:
    return 1 / _length(*sides)


def _power(a: Array, b: Array) -> Array:
    return np.power(_wide(a), _wide(b))


_OF_ONE: dict[str, Callable[[Any], Any]] = {
    "set_bits": lambda a: _bits(a, lambda x, _: x.bit_count()),
    "leading_zeros": lambda a: _bits(a, lambda x, width: width - x.bit_length()),
    "trailing_zeros": lambda a: _bits(a, _lowest),
    "first_set_bit": lambda a: _bits(a, lambda x, _: (x & -x).bit_length()),
    "reversed_bits": lambda a: _bits(a, _reversed),
    "lower_half": lambda a: _half(a, 0),
    "upper_half": lambda a: _half(a, 32),
    "rsqrt": lambda a: 1 / np.sqrt(_wide(a)),
    "inverse_square_root": lambda a: 1 / np.sqrt(_wide(a)),
    "inverse": lambda a: 1 / _wide(a),
    "erf": lambda a: special_functions.each(_erf, a),
    "erfc": lambda a: special_functions.each(_erfc, a),
    "power_of_ten": lambda a: np.power(10.0, _wide(a)),
    "sine_of_turns": lambda a: np.sin(np.pi * np.fmod(_wide(a), 2)),
    "cosine_of_turns": lambda a: np.cos(np.pi * np.fmod(_wide(a), 2)),
    "inverse_cube_root": lambda a: 1 / np.cbrt(_wide(a)),
}
_OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": lambda a, b: _greater(a, b, np.maximum, negative=False),
    "minimum": lambda a, b: _greater(a, b, np.minimum, negative=True),
    "fmax": lambda a, b: _greater(a, b, np.fmax, negative=False),
    "fmin": lambda a, b: _greater(a, b, np.fmin, negative=True),
    "scaled": lambda a, n: np.ldexp(_wide(a), n),
    "never": lambda a, b: np.zeros(np.broadcast(a, b).shape, np.bool_),
    "always": lambda a, b: np.ones(np.broadcast(a, b).shape, np.bool_),
    "ordered": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "unordered": lambda a, b: np.isnan(a) | np.isnan(b),
    "ordered_not_equal": lambda a, b: (a < b) | (a > b),
    "unordered_equal": lambda a, b: ~((a < b) | (a > b)),
    "unordered_less": lambda a, b: ~(a >= b),
    "unordered_less_equal": lambda a, b: ~(a > b),
    "unordered_greater": lambda a, b: ~(a <= b),
    "unordered_greater_equal": lambda a, b: ~(a < b),
}
_FUNCTIONS: dict[str, Function] = {
    **_OF_ONE,
    **_OF_TWO,
    "same": _same,
    "second": _second,
    "number": _same,
    "quotient": _quotient,
    "remainder": _remainder,
    "quotient_down": np.floor_divide,
    "quotient_up": _quotient_up,
    "high": _high,
    "shift_up": _shift_up,
    "shift_down": _shift_down,
    "integer_power": _integer_power,
    "picked_bytes": _picked_bytes,
    "product_of_24": _product_of_24,
    "sum_of_difference": _sum_of_difference,
    "average": _average,
    "average_up": _average_up,
    "from_halves": _from_halves,
    "inverse_upper_half": _inverse_upper_half,
    "fma": _fma,
    "power": _power,
    "power_of_integer": _power,
    "round_half_away": _round_half_away,
    "length": _length,
    "inverse_length": _inverse_length,
    "saturated": _saturated,
    "positive_difference": _positive_difference,
    "next_after": np.nextafter,
    "ieee_remainder": _ieee_remainder,
    "exponent": _exponent,
    "float_exponent": _float_exponent,
}
"""What NumPy has under no name of its own, or computes otherwise."""
