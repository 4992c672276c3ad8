"""What a descriptor takes, which only a launch knows: by one text for kernels and for simulation.

UNDESCRIBED ──┬──►  printed into the file of a kernel, which asks it before it is launched
              └──►  undescribed(...), by which a simulation refuses what a launch would
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

UNDESCRIBED = '''

def undescribed(name, array, sizes, strides, width):
    """Why no descriptor can be made of an array; empty where one can."""
    if array.data_ptr() % 16:
        return f"`{name}` does not begin at a multiple of 16 bytes"
    for size in sizes:
        if not 0 < size < 1 << 31:
            told = f"`{name}` has {size} elements along a dimension"
            return f"{told}: a descriptor takes 1 to 2^31 - 1"
    for stride in strides[:-1]:
        if not 0 < stride * width < 1 << 40 or stride * width % 16:
            told = f"`{name}` has a stride of {stride * width} bytes"
            return f"{told}: a descriptor takes multiples of 16 above 0"
    return ""
'''
"""A function for Python without annotations or imports."""

_MADE: dict[str, Any] = {}
exec(UNDESCRIBED, _MADE)
_asked: Callable[..., str] = _MADE["undescribed"]


@dataclass(frozen=True, slots=True)
class _Placed:
    """An array, as far as a launch asks it."""

    address: int

    def data_ptr(self) -> int:
        """Its address, as a tensor tells it."""
        return self.address


def undescribed(
    name: str, address: int, sizes: Sequence[int], strides: Sequence[int], width: int
) -> str:
    """Why no descriptor can be made of an array at an address; empty where one can.

    Strides are in elements of `width` bytes.
    """
    return _asked(name, _Placed(address), sizes, strides, width)
