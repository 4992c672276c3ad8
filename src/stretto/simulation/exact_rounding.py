"""Rounding that is exact: one way, to integers, and once for several steps.

    directed("add", "down", np.float32, near, a, b)   ──►   the greatest float up to a + b

Numbers are taken as fractions, one element after the other: right, and slow.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf, isfinite, isinf, isnan
from typing import Any

import numpy as np

from stretto.simulation.special_functions import Array, Number, each

_INTEGERS: dict[str, Callable[[Any], Any]] = {
    "nearest": np.rint,
    "towards_zero": np.trunc,
    "down": np.floor,
    "up": np.ceil,
}


def exact_fma(a: Number, b: Number, c: Number) -> Array:
    """a * b + c of 64 bits, rounded once."""

    def one(x: float, y: float, z: float) -> float:
        if not all(map(isfinite, (x, y, z))) or x == 0 or y == 0:
            return x * y + z
        whole = Fraction(x) * Fraction(y) + Fraction(z)
        return _nearest(whole) if whole else x * y + z

    return each(one, *(np.asarray(v, np.float64).astype(object) for v in (a, b, c)))


def _nearest(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def directed(name: str, way: str, element: Any, plain: Array, *operands: Array) -> Array:
    """A function whose result is rounded one way; `plain` is what it makes rounded to nearest."""

    def one(found: float, *numbers: Number) -> float:
        if not all(isfinite(n) for n in numbers) or isnan(found):
            return found
        exact = [Fraction(n if isinstance(n, int) else float(n)) for n in numbers]
        if name == "sqrt":
            return _walked(found, lambda x: _compared(Fraction(x) ** 2, exact[0]), way, element)
        if (name == "divide" and exact[1] == 0) or (name == "inverse" and exact[0] == 0):
            return found
        whole = _exactly(name, *exact)
        if whole == 0:
            return (
                -0.0
                if way == "down"
                and name in ("add", "subtract")
                and found == 0
                and not all(n == 0 for n in numbers)
                else found
            )
        return _walked(found, lambda x: _compared(Fraction(x), whole), way, element)

    numbers = (array.astype(object) for array in operands)
    made = np.frompyfunc(one, 1 + len(operands), 1)(plain, *numbers)
    return np.asarray(made).astype(element)


def _exactly(name: str, *numbers: Fraction) -> Fraction:
    """A function of a few numbers, not rounded."""
    match name, numbers:
        case "add", (a, b):
            return a + b
        case "subtract", (a, b):
            return a - b
        case "multiply", (a, b):
            return a * b
        case "divide", (a, b):
            return a / b
        case "fma", (a, b, c):
            return a * b + c
        case "inverse", (a,):
            return 1 / a
        case _:
            return numbers[0]


def _compared(a: Fraction, b: Fraction) -> int:
    return (a > b) - (a < b)


def _walked(start: float, against: Callable[[float], int], way: str, element: Any) -> float:
    """From a number that is near, to the one that is right: at most a step or two."""
    at = element(start)
    down, up = element(-inf), element(inf)
    if way == "towards_zero":
        way = "down" if start > 0 else "up"

    def side(x: Any) -> int:
        return (1 if x > 0 else -1) if isinf(x) else against(float(x))

    toward, back = (down, up) if way == "down" else (up, down)
    wrong = 1 if way == "down" else -1
    while side(at) == wrong:
        at = np.nextafter(at, toward)
    while side(at) == -wrong and side(np.nextafter(at, back)) != wrong:
        at = np.nextafter(at, back)
    return float(at)


def to_integers(way: str, a: Array, bits: int, *, signed: bool) -> Array:
    """Floating-point numbers as integers, as hardware converts them: the nearest that there is."""
    least = -(1 << (bits - 1)) if signed else 0
    most = (1 << (bits - int(signed))) - 1
    whole = _INTEGERS[way](np.asarray(a))
    wide = np.asarray(whole, np.float64)
    inside = np.where((wide > least) & (wide < float(most)), wide, 0)
    unsigned_type = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[max(bits, 8)]
    signed_type = np.dtype(f"i{max(bits, 8) // 8}")
    made = inside.astype(np.int64 if signed else np.uint64).astype(unsigned_type)
    made = np.where(wide >= float(most), unsigned_type(most), made)
    made = np.where(wide <= least, unsigned_type(least & ((1 << max(bits, 8)) - 1)), made)
    none = 1 << (bits - 1) if bits == 64 or a.dtype == np.float64 else 0
    return (
        np.where(np.isnan(wide), unsigned_type(none), made).astype(unsigned_type).view(signed_type)
    )
