"""Functions that NumPy has not: gamma, Bessel's, inverses of the error function.

    inverse_erf(0.5)   ──►   0.4769

They are for the few kernels that call them: right, one element after the other, and slow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import erf, erfc, exp, inf, isinf, isnan, lgamma, nan, pi, sqrt
from math import gamma as _gamma
from math import remainder as _remainder
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Number = Any


def each(function: Callable[..., float], *arrays: Number) -> Array:
    """A function of numbers, for each element."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays)).astype(np.float64)


def remainder(a: float, b: float) -> float:
    """What is left of a behind the nearest multiple of b."""
    if isinf(a) or b == 0 or isnan(a) or isnan(b):
        return nan
    return _remainder(float(a), float(b))


# Gamma and the error function ---------------------------------------------------------------


def gamma(a: Number) -> Array:
    """The gamma function; no number at whole numbers below zero."""

    def one(x: float) -> float:
        if isnan(x) or x == -inf or (x < 0 and x == int(x)):
            return nan
        if x == 0:
            return float(np.copysign(inf, x))
        try:
            return _gamma(x)
        except OverflowError:
            return inf

    return each(one, a)


def log_gamma(a: Number) -> Array:
    """The logarithm of the gamma function's magnitude."""

    def one(x: float) -> float:
        if isinf(x) or (x <= 0 and x == int(x)):
            return inf
        return lgamma(x)

    return each(one, a)


def inverse_erf(a: Number) -> Array:
    """What the error function makes a of."""

    def one(y: float) -> float:
        if isnan(y) or abs(y) > 1:
            return nan
        if abs(y) == 1:
            return float(np.copysign(inf, y))
        if y == 0:
            return y
        x = NormalDist().inv_cdf((1 + y) / 2) / sqrt(2) if abs(y) > 1e-3 else y * sqrt(pi) / 2
        for _ in range(3):
            x -= (erf(x) - y) / (2 / sqrt(pi) * exp(-x * x))
        return x

    return each(one, a)


def inverse_erfc(a: Number) -> Array:
    """What one less the error function makes a of."""

    def one(y: float) -> float:
        if isnan(y) or not 0 <= y <= 2:
            return nan
        return _quantile(y / 2) / -sqrt(2)

    return each(one, a)


def inverse_normal(a: Number) -> Array:
    """Below what a normal variable is with a probability."""

    def one(y: float) -> float:
        return nan if isnan(y) or not 0 <= y <= 1 else _quantile(y)

    return each(one, a)


def _quantile(y: float) -> float:
    return {0.0: -inf, 1.0: inf}.get(y) or (0.0 if y == 0.5 else NormalDist().inv_cdf(y))


def normal(a: Number) -> Array:
    """With which probability a normal variable is below."""

    def one(x: float) -> float:
        return erfc(-x / sqrt(2)) / 2

    return each(one, a)


def scaled_erfc(a: Number) -> Array:
    """One less the error function, times e to the square."""

    def one(x: float) -> float:
        if x < 25:
            return inf if x < -26.7 else exp(x * x) * erfc(x)
        return 0.0 if isinf(x) else (1 - 1 / (2 * x * x) + 3 / (4 * x**4)) / (x * sqrt(pi))

    return each(one, a)


# Bessel's functions ---------------------------------------------------------------------------


@cache
def _nodes() -> tuple[Array, Array]:
    """Where and how much, for an integral from -1 to 1."""
    return np.polynomial.legendre.leggauss(400)


def _integral(function: Callable[[Array], Array], low: float, high: float) -> float:
    at, weight = _nodes()
    half = (high - low) / 2
    return float(half * np.sum(weight * function(low + half * (at + 1))))


def bessel_j(n: Number, a: Number) -> Array:
    """Of the first kind."""

    def one(order: int, x: float) -> float:
        if isinf(x):
            return 0.0
        return _integral(lambda t: np.cos(order * t - x * np.sin(t)), 0, pi) / pi

    return each(one, n, a)


def bessel_y(n: Number, a: Number) -> Array:
    """Of the second kind; minus infinity at zero, no number below."""

    def one(order: int, x: float) -> float:
        if isnan(x) or x <= 0 or isinf(x):
            return -inf if x == 0 else 0.0 if x == inf else nan
        sign = -1 if order % 2 else 1

        def tail(t: Array) -> Array:
            return (np.exp(order * t) + sign * np.exp(-order * t)) * np.exp(-x * np.sinh(t))

        end = float(np.arcsinh(750 / x))
        rest = sum(_integral(tail, end * k / 8, end * (k + 1) / 8) for k in range(8))
        return _integral(lambda t: np.sin(x * np.sin(t) - order * t), 0, pi) / pi - rest / pi

    return each(one, n, a)


def _bessel_i(n: int, a: Number) -> Array:
    def one(x: float) -> float:
        if isinf(x):
            return inf if x > 0 or n % 2 == 0 else -inf
        return _integral(lambda t: np.exp(x * np.cos(t)) * np.cos(n * t), 0, pi) / pi

    return each(one, a)


def bessel_j0(a: Number) -> Array:
    """Of the first kind, of order 0."""
    return bessel_j(0, a)


def bessel_j1(a: Number) -> Array:
    """Of the first kind, of order 1."""
    return bessel_j(1, a)


def bessel_y0(a: Number) -> Array:
    """Of the second kind, of order 0."""
    return bessel_y(0, a)


def bessel_y1(a: Number) -> Array:
    """Of the second kind, of order 1."""
    return bessel_y(1, a)


def bessel_i0(a: Number) -> Array:
    """Modified, of the first kind, of order 0."""
    return _bessel_i(0, a)


def bessel_i1(a: Number) -> Array:
    """Modified, of the first kind, of order 1."""
    return _bessel_i(1, a)


FUNCTIONS: dict[str, Callable[..., Array]] = {
    made.__name__: made
    for made in (
        bessel_i0,
        bessel_i1,
        bessel_j,
        bessel_j0,
        bessel_j1,
        bessel_y,
        bessel_y0,
        bessel_y1,
        gamma,
        inverse_erf,
        inverse_erfc,
        inverse_normal,
        log_gamma,
        normal,
        scaled_erfc,
    )
}
"""What rows of operations name."""
