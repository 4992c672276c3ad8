"""What kernels see as `libdevice`: functions of CUDA's library that are written most, by NumPy.

libdevice.tanh(x)   ──►   np.tanh, rounded to the tile's type
"""

# Stand-ins have no types: a kernel calls them with anything.
# pyright: basic

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto.sanitizer.stand_ins.language import elementwise

_OF_ONE = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos,
    "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "fast_cosf": np.cos,
    "fast_expf": np.exp, "fast_log2f": np.log2, "fast_logf": np.log, "fast_sinf": np.sin,
    "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "rint": np.rint, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip
_OF_MORE = {
    "atan2": np.arctan2, "copysign": np.copysign, "div_rn": np.divide, "fast_dividef": np.divide,
    "fast_powf": np.power, "fmod": np.fmod, "hypot": np.hypot, "nextafter": np.nextafter,
    "pow": np.power, "fma": lambda a, b, c: a * b + c,
}  # fmt: skip


def _of_each(function: Any) -> Any:
    return np.vectorize(function, otypes=[np.float32])


def names() -> dict[str, Any]:
    """All that the module has."""
    own = {
        "erf": _of_each(math.erf),
        "erfc": _of_each(math.erfc),
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    }
    functions = {**_OF_ONE, **_OF_MORE, **own}
    return {name: elementwise(function, True) for name, function in functions.items()}
