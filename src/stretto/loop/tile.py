"""Tile types: a shape and an element type, written as people write them.

"128x64xf16"  ◄──►  TileType((128, 64), "f16")    8,192 elements, 16,384 bytes
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from stretto.limits import NUMBER_DIGITS

_SHAPE = re.compile(r"(?:[0-9]{1,12}x)*")
_BITS = re.compile(r"(?:bf|tf|f|i|si|ui|e\d+m)(\d+)")
_SPECIAL_BITS = {
    "index": 64,
    "token": 0,
    "ptr": 64,
    "tf32": 32,
    "f8E4M3FN": 8,
    "f8E5M2": 8,
    "f6E3M2FN": 6,
    "f6E2M3FN": 6,
    "f4E2M1FN": 4,
    "f8E8M0FNU": 8,
}


def element_bits(element: str) -> int | None:
    """The width of an element type, or None if it is not one."""
    if element in _SPECIAL_BITS:
        return _SPECIAL_BITS[element]
    match = _BITS.fullmatch(element)
    return int(match[1]) if match and 0 < int(match[1]) <= 128 else None


@dataclass(frozen=True, slots=True)
class TileType:
    """A tile of elements; an empty shape is a scalar."""

    shape: tuple[int, ...]
    element: str

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def bits(self) -> int:
        """The width of one element."""
        bits = element_bits(self.element)
        if bits is None:
            raise ValueError(f"`{self.element}` is not an element type")
        return bits

    @property
    def bytes(self) -> int:
        """Its size, packed."""
        return -(-self.elements * self.bits // 8)

    def __str__(self) -> str:
        return "x".join([*map(str, self.shape), self.element])

    @staticmethod
    def parse(text: str) -> TileType:
        """The type a text such as ``128x64xf16`` writes; ValueError if it is none."""
        match = _SHAPE.match(text)
        end = match.end() if match else 0
        shape, element = text[:end].split("x")[:-1], text[end:]
        dimensions = [int(size) for size in shape]
        if element_bits(element) is None or 0 in dimensions:
            told = text if len(text) <= 60 else text[:57] + "..."
            raise ValueError(f"`{told}` is not a tile type such as 128x64xf16")
        if sum(map(len, shape)) > NUMBER_DIGITS:
            raise ValueError(f"the sizes of a tile have at most {NUMBER_DIGITS:,} digits together")
        return TileType(tuple(dimensions), element)
