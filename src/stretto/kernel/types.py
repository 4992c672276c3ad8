"""Types of a kernel's values.

i32, f32                        Scalar("i32")
tensor<128x64xf16>              Tile((128, 64), Scalar("f16"))
!tt.ptr<f16>                    Pointer(Scalar("f16"))
tensor<128x!tt.ptr<f16>>        Tile((128,), Pointer(Scalar("f16")))
!tt.tensordesc<128x64xf16>      View((128, 64), Scalar("f16"))
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from stretto.loop.parts import element_bits


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number in a register: i1 to i64 without a sign, index, or floating point."""

    element: str
    """As MLIR spells it: i32, f16, bf16, f8E4M3FN, tf32, index."""

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point number."""
        return not self.is_integer

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer or an index."""
        return self.element == "index" or self.element[:1] == "i"

    @property
    def bits(self) -> int:
        """Its width; an index has 64."""
        return element_bits(self.element) or 64

    def __str__(self) -> str:
        return self.element


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address in global memory."""

    pointee: Scalar

    @property
    def bits(self) -> int:
        """The width of an address."""
        return 64

    def __str__(self) -> str:
        return f"ptr<{self.pointee}>"


@dataclass(frozen=True, slots=True)
class Tile:
    """Numbers or addresses in rows and columns; the shape is known when it is compiled."""

    shape: tuple[int, ...]
    element: Scalar | Pointer

    @property
    def elements(self) -> int:
        """How many."""
        return prod(self.shape)

    def __str__(self) -> str:
        return f"tile<{'x'.join([*map(str, self.shape), str(self.element)])}>"


@dataclass(frozen=True, slots=True)
class View:
    """A tensor in global memory, taken tile by tile: a descriptor, or a partition view."""

    tile: tuple[int, ...]
    """The shape of one tile of it."""
    element: Scalar
    shape: tuple[int | None, ...] = ()
    """Of the whole tensor, where the type says it; None where it is known at run time only."""
    strides: tuple[int | None, ...] = ()
    """In elements, likewise."""
    padding: str = "zero"
    """What is read outside of the tensor: zero, nan, neg_inf, pos_inf, neg_zero, undefined."""

    def __str__(self) -> str:
        return f"view<{'x'.join([*map(str, self.tile), str(self.element)])}>"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tile in memory of the chip; only lowered kernels have such."""

    shape: tuple[int, ...]
    element: Scalar
    space: str

    def __str__(self) -> str:
        return f"{self.space}<{'x'.join([*map(str, self.shape), str(self.element)])}>"


@dataclass(frozen=True, slots=True)
class Token:
    """Order between memory operations, and nothing else."""

    def __str__(self) -> str:
        return "token"


Type = Scalar | Pointer | Tile | View | Buffer | Token


def element_of(type: Type) -> Scalar | Pointer | None:
    """The element of a scalar, an address or a tile; None of others."""
    if isinstance(type, Tile):
        return type.element
    return type if isinstance(type, Scalar | Pointer) else None


def shape_of(type: Type) -> tuple[int, ...]:
    """The shape of a tile; () of all else."""
    return type.shape if isinstance(type, Tile) else ()


def like(type: Type, element: Scalar | Pointer) -> Scalar | Pointer | Tile:
    """A scalar or a tile of the same shape with another element."""
    return Tile(type.shape, element) if isinstance(type, Tile) else element
