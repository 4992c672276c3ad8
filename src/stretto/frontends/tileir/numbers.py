"""What the bits of a number mean.

f32 0xff800000  ──►  -inf        f8E4M3FN 0x7e  ──►  448.0        i8 0xff  ──►  -1
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from stretto.frontends.tileir.types import Number


@dataclass(frozen=True, slots=True)
class _Format:
    """Sign, exponent, mantissa; what the largest exponent stands for."""

    exponent: int
    mantissa: int
    bias: int
    signed: bool = True
    special: str = "ieee"
    """`ieee`: infinities and NaNs; `nan`: only all ones is NaN; `none`: all are finite."""
    subnormal: bool = True


_FORMATS = {
    "f16": _Format(5, 10, 15),
    "bf16": _Format(8, 7, 127),
    "f32": _Format(8, 23, 127),
    "tf32": _Format(8, 10, 127),
    "f8E4M3FN": _Format(4, 3, 7, special="nan"),
    "f8E5M2": _Format(5, 2, 15),
    "f8E8M0FNU": _Format(8, 0, 127, signed=False, special="nan", subnormal=False),
    "f4E2M1FN": _Format(2, 1, 1, special="none"),
    "fnv8E5M3FNU": _Format(5, 3, 15, signed=False, special="nan"),
}


def number_of(bits: int, kind: Number) -> int | float | bool:
    """The value of so many bits: integers as signed ones, `i1` as a bool."""
    if kind.is_integer:
        if kind.bits == 1:
            return bool(bits & 1)
        bits &= (1 << kind.bits) - 1
        return bits - (1 << kind.bits) if bits >> (kind.bits - 1) else bits
    if kind.name == "f64":
        return struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return _float(bits, _FORMATS[kind.name])


def _float(bits: int, form: _Format) -> float:
    low = bits & ((1 << form.mantissa) - 1)
    exponent = (bits >> form.mantissa) & ((1 << form.exponent) - 1)
    sign = -1.0 if form.signed and bits >> (form.mantissa + form.exponent) & 1 else 1.0
    if exponent == (1 << form.exponent) - 1:
        if form.special == "ieee":
            return math.nan if low else sign * math.inf
        if form.special == "nan" and low == (1 << form.mantissa) - 1:
            return math.nan
    if exponent == 0 and form.subnormal:
        return sign * math.ldexp(low, 1 - form.bias - form.mantissa)
    return sign * math.ldexp(low + (1 << form.mantissa), exponent - form.bias - form.mantissa)
