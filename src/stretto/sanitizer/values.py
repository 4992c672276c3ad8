"""Numbers and tiles as a kernel computes with them: element types, rounding, tiles in registers.

    memory: raw bits (bfloat16 as 16, an 8-bit float as 8)  ──decode──►  Tile: float32, rounded
                                                            ◄──encode──

Integers wrap and divide towards zero, as on the machine.
"""

# What NumPy makes of a tile has no static type.
# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

_OF_TORCH = {"int1": "bool", "float8e4nv": "float8_e4m3fn", "float8e5": "float8_e5m2"}


class Dtype:
    """An element type; `raw` is how memory holds it, `wide` how registers do."""

    def __init__(self, name: str, bits: int, kind: str, raw: Any, wide: Any) -> None:
        self.name, self.kind = name, kind
        self.primitive_bitwidth = bits
        self.raw, self.wide = np.dtype(raw), np.dtype(wide)

    @property
    def bytes(self) -> int:
        """Of one element."""
        return self.raw.itemsize

    itemsize = bytes

    @property
    def packed(self) -> bool:
        """Whether memory holds it otherwise than registers."""
        return self.raw != self.wide

    @property
    def scalar(self) -> Dtype:
        """Itself."""
        return self

    element_ty = scalar

    def is_floating(self) -> bool:
        """Whether it is a float."""
        return self.kind == "f"

    def is_fp8(self) -> bool:
        """Whether it is a float of 8 bits."""
        return self.kind == "f" and self.primitive_bitwidth == 8

    def is_ptr(self) -> bool:
        """Never."""
        return False

    @property
    def is_floating_point(self) -> bool:
        """As torch asks it."""
        return self.kind == "f"

    def is_int(self) -> bool:
        """Whether it is an integer."""
        return self.kind in "iu"

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return f"torch.{_OF_TORCH.get(self.name, self.name)}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dtype) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def decode(self, raw: Any) -> Any:
        """What memory holds, as registers hold it."""
        if not self.packed:
            return raw
        if self.name == "bfloat16":
            return (raw.astype(np.uint32) << 16).view(np.float32)
        return _float8_values(self.name)[raw]

    def encode(self, value: Any) -> Any:
        """What registers hold, as memory holds it."""
        if not self.packed:
            return np.asarray(value).astype(self.raw, copy=False)
        if self.name == "bfloat16":
            return _bfloat_bits(value)
        return _float8_bits(self.name, np.asarray(value, dtype=np.float32))

    def cast(self, value: Any) -> Any:
        """A value of another type, rounded to this one."""
        if self.packed:
            return self.decode(self.encode(np.asarray(value, dtype=np.float32)))
        given = np.asarray(value)
        if self.kind in "iu" and given.dtype.kind == "f":
            given = np.nan_to_num(np.trunc(given))
        return given.astype(self.wide)


def _bfloat_bits(value: Any) -> Any:
    """To the nearest pattern, ties to even; what is no number stays none."""
    given = np.ascontiguousarray(value, dtype=np.float32)
    bits = given.view(np.uint32)
    made = ((bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16).astype(np.uint16)
    lost = np.isnan(given)
    if lost.any():
        made[lost] = 0x7FC0
    return made.reshape(np.shape(value))


@cache
def _float8_values(name: str) -> Any:
    """What each of the 256 patterns means."""
    mantissa = 3 if "e4" in name else 2
    exponent, bias = 7 - mantissa, 7 if "e4" in name else 15
    values = np.zeros(256, np.float32)
    for pattern in range(256):
        sign = -1.0 if pattern & 0x80 else 1.0
        power = (pattern >> mantissa) & ((1 << exponent) - 1)
        part = pattern & ((1 << mantissa) - 1)
        if power == 0:
            value = part / (1 << mantissa) * 2.0 ** (1 - bias)
        else:
            value = (1 + part / (1 << mantissa)) * 2.0 ** (power - bias)
        last = power == (1 << exponent) - 1
        if mantissa == 3 and last and part == 7:
            value = np.nan
        if mantissa == 2 and last:
            value = np.inf if part == 0 else np.nan
        values[pattern] = sign * value
    return values


def _float8_bits(name: str, value: Any) -> Any:
    """To the nearest pattern, ties to even; too large is the largest."""
    mantissa, bias, largest = (3, 7, 0x7E) if "e4" in name else (2, 15, 0x7B)
    given = np.ascontiguousarray(value, dtype=np.float32)
    size = given.view(np.uint32) & np.uint32(0x7FFFFFFF)
    left = np.uint32(23 - mantissa)
    half = np.uint32((1 << (22 - mantissa)) - 1)
    code = ((size + (half + ((size >> left) & 1))) >> left).astype(np.int32)
    code -= (127 - bias) << mantissa
    small = np.abs(given) < 2.0 ** (1 - bias)
    if small.any():
        code[small] = np.rint(np.abs(given[small]) * 2.0 ** (bias - 1 + mantissa))
    bits = np.clip(code, 0, largest).astype(np.uint8)
    lost = np.isnan(given)
    if lost.any():
        bits[lost] = 0x7F
    return (bits | (np.signbit(given).astype(np.uint8) << 7)).reshape(np.shape(value))


def _int(name: str, bits: int) -> Dtype:
    return Dtype(name, bits, "u" if name[0] == "u" else "i", name, name)


DTYPES: dict[str, Dtype] = {
    "int1": Dtype("int1", 1, "i", np.bool_, np.bool_),
    **{n: _int(n, int(n.lstrip("uint"))) for n in ("int8", "int16", "int32", "int64")},
    **{n: _int(n, int(n.lstrip("uint"))) for n in ("uint8", "uint16", "uint32", "uint64")},
    "float16": Dtype("float16", 16, "f", np.float16, np.float16),
    "float32": Dtype("float32", 32, "f", np.float32, np.float32),
    "float64": Dtype("float64", 64, "f", np.float64, np.float64),
    "bfloat16": Dtype("bfloat16", 16, "f", np.uint16, np.float32),
    "float8e4nv": Dtype("float8e4nv", 8, "f", np.uint8, np.float32),
    "float8e5": Dtype("float8e5", 8, "f", np.uint8, np.float32),
}
"""Every element type, by Triton's name."""

INT1, INT32, INT64 = DTYPES["int1"], DTYPES["int32"], DTYPES["int64"]
FLOAT16, FLOAT32, BFLOAT16 = DTYPES["float16"], DTYPES["float32"], DTYPES["bfloat16"]
_OF_NUMPY = {d.wide: d for d in DTYPES.values() if not d.packed}


def dtype_of(array: Any) -> Dtype:
    """The element type of a NumPy array."""
    return _OF_NUMPY[np.asarray(array).dtype]


def joined(a: Dtype, b: Dtype) -> Dtype:
    """What two types have in common, as Triton promotes them."""
    if a == b:
        return a
    if a.kind == "f" or b.kind == "f":
        if a.kind != "f" or b.kind != "f":
            return a if a.kind == "f" else b
        if a.primitive_bitwidth != b.primitive_bitwidth:
            return a if a.primitive_bitwidth > b.primitive_bitwidth else b
        return FLOAT32 if a.primitive_bitwidth == 16 else FLOAT16
    if a.primitive_bitwidth != b.primitive_bitwidth:
        return a if a.primitive_bitwidth > b.primitive_bitwidth else b
    return a if a.kind == "u" else b


class TileType:
    """What a kernel may ask of a tile's type."""

    def __init__(self, dtype: Dtype, shape: Any, layout: Any) -> None:
        self.element_ty = self.scalar = self.dtype = dtype
        self.shape, self.layout = list(shape), layout

    @property
    def nbytes(self) -> int:
        """Of the whole tile."""
        return int(np.prod(self.shape)) * self.element_ty.primitive_bitwidth // 8

    nbytes_per_cta = nbytes

    def is_block(self) -> bool:
        """Whether it has a shape."""
        return bool(self.shape)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TileType)
            and (self.element_ty, self.shape) == (other.element_ty, other.shape)
            and self.layout == other.layout
        )

    def __hash__(self) -> int:
        return hash((self.element_ty, tuple(self.shape)))


class Tile:
    """A tile or a number in registers; it never changes."""

    __array_ufunc__ = None
    __slots__ = ("dtype", "layout", "poison", "value")

    def __init__(self, value: Any, dtype: Dtype | None = None, layout: Any = None) -> None:
        self.value = value
        self.dtype = dtype or dtype_of(value)
        self.layout = layout
        self.poison: Callable[[], None] | None = None
        """Where it comes from memory that nothing wrote: tells so, when it is used."""

    def tainted(self, *sources: Tile) -> Tile:
        """Itself; poisoned where one of these is."""
        for source in sources:
            if source.poison is not None:
                self.poison = source.poison
        return self

    def used(self) -> Tile:
        """Itself: it matters what its value is."""
        if self.poison is not None:
            self.poison()
            self.poison = None
        return self

    @property
    def shape(self) -> list[int]:
        """As the machine has it."""
        return list(np.shape(self.value))

    @property
    def type(self) -> TileType:
        """Element type, shape, layout."""
        return TileType(self.dtype, self.shape, self.layout)

    @property
    def numel(self) -> int:
        """Elements."""
        return int(np.size(self.value))

    def __repr__(self) -> str:
        return f"Tile({self.value!r}, {self.dtype})"

    def to(self, dtype: Any, bitcast: bool = False, **_: Any) -> Any:
        """Cast, or the same bits otherwise."""
        if not isinstance(dtype, Dtype):
            from stretto.sanitizer.pointers import pointer_from  # noqa: PLC0415 - it knows tiles

            return pointer_from(self, dtype)
        if bitcast:
            raw = self.dtype.encode(self.value)
            bits = np.ascontiguousarray(raw).view(dtype.raw).reshape(np.shape(raw))
            return Tile(dtype.decode(bits), dtype, self.layout)
        if dtype == self.dtype:
            return self
        return Tile(dtype.cast(self.value), dtype, self.layout).tainted(self)

    cast = to

    # Numbers ------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(self.used().value)

    def __int__(self) -> int:
        return int(self.used().value)

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.value)

    def __hash__(self) -> int:
        return id(self)

    def __iter__(self) -> Any:
        raise TypeError("a tile is not iterated over in a kernel")

    # Arithmetic ---------------------------------------------------------------------------------

    def _with(self, other: Any, change: Any, mirrored: bool = False) -> Any:
        if not isinstance(other, Tile):
            if other is None or not isinstance(other, int | float | np.generic | np.ndarray):
                return NotImplemented
            other = self.constant(other)
        dtype = joined(self.dtype, other.dtype)
        a, b = self.value, other.value
        if self.dtype != dtype:
            a = dtype.cast(a)
        if other.dtype != dtype:
            b = dtype.cast(b)
        made = change(b, a) if mirrored else change(a, b)
        found = _rounded(made, dtype, self.layout or other.layout)
        if self.poison is not None or other.poison is not None:
            found.tainted(self, other)
        return found

    def constant(self, number: Any) -> Tile:
        """A Python number beside this tile."""
        if isinstance(number, bool | np.bool_):
            return Tile(np.bool_(number), INT1)
        if isinstance(number, float | np.floating):
            dtype = self.dtype if self.dtype.kind == "f" else FLOAT32
        elif self.dtype == INT1 or (
            self.dtype.primitive_bitwidth <= 32 and not -(1 << 31) <= number < (1 << 32)
        ):
            dtype = INT32 if -(1 << 31) <= number < (1 << 31) else INT64
        else:
            dtype = self.dtype
        return Tile(dtype.cast(number), dtype)

    def __add__(self, other: Any) -> Any:
        return self._with(other, np.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, np.subtract)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, np.subtract, True)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, np.multiply)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._as_float()._with(other, np.divide)

    def __rtruediv__(self, other: Any) -> Any:
        return self._as_float()._with(other, np.divide, True)

    def _as_float(self) -> Tile:
        return self if self.dtype.kind == "f" else self.to(FLOAT32)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, _quotient)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with(other, _quotient, True)

    def __mod__(self, other: Any) -> Any:
        return self._with(other, _remainder)

    def __rmod__(self, other: Any) -> Any:
        return self._with(other, _remainder, True)

    def __and__(self, other: Any) -> Any:
        return self._with(other, np.bitwise_and)

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return self._with(other, np.bitwise_or)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Any:
        return self._with(other, np.bitwise_xor)

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Any:
        return self._with(other, np.left_shift)

    def __rlshift__(self, other: Any) -> Any:
        return self._with(other, np.left_shift, True)

    def __rshift__(self, other: Any) -> Any:
        return self._with(other, np.right_shift)

    def __rrshift__(self, other: Any) -> Any:
        return self._with(other, np.right_shift, True)

    def __neg__(self) -> Tile:
        return Tile(np.negative(self.value), self.dtype, self.layout)

    def __pos__(self) -> Tile:
        return self

    def __invert__(self) -> Tile:
        return Tile(np.invert(self.value), self.dtype, self.layout)

    def __abs__(self) -> Tile:
        return Tile(np.abs(self.value), self.dtype, self.layout)

    def _compared(self, other: Any, how: Any) -> Any:
        made = self._with(other, how)
        return made if made is NotImplemented else Tile(made.value, INT1, made.layout).tainted(made)

    def __eq__(self, other: object) -> Any:
        return False if other is None else self._compared(other, np.equal)

    def __ne__(self, other: object) -> Any:
        return True if other is None else self._compared(other, np.not_equal)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, np.less)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, np.less_equal)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, np.greater)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, np.greater_equal)

    def logical_and(self, other: Any) -> Any:
        """Both."""
        return self.to(INT1) & other

    def logical_or(self, other: Any) -> Any:
        """Either."""
        return self.to(INT1) | other

    # Shapes -------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tile:
        if not isinstance(index, tuple):
            index = (index,)
        layout = self.layout
        for axis, one in enumerate(index):
            if one is None:
                parent = getattr(layout, "parent", None)
                layout = parent if getattr(layout, "dim", None) == axis else None
        return Tile(np.asarray(self.value)[index], self.dtype, layout).tainted(self)

    def expand_dims(self, axis: int) -> Tile:
        """One more axis, of one element."""
        index: list[Any] = [slice(None)] * len(self.shape)
        index.insert(axis if axis >= 0 else len(self.shape) + 1 + axis, None)
        return self[tuple(index)]

    def reshape(self, *shape: Any) -> Tile:
        """The same elements in another shape."""
        sizes = _sizes(shape)
        return Tile(np.reshape(self.value, sizes), self.dtype).tainted(self)

    def permute(self, *order: Any) -> Tile:
        """Axes in another order."""
        return Tile(np.transpose(self.value, _sizes(order)), self.dtype).tainted(self)

    def trans(self, *order: Any) -> Tile:
        """The last two axes exchanged, or any order."""
        axes = _sizes(order) if order else [*range(len(self.shape) - 2), -1, -2]
        return Tile(np.transpose(self.value, axes), self.dtype)

    @property
    def T(self) -> Tile:  # noqa: N802 - Triton's name
        """Transposed."""
        return self.trans()

    def broadcast_to(self, *shape: Any) -> Tile:
        """Repeated along axes of one element."""
        return Tile(np.broadcast_to(self.value, _sizes(shape)), self.dtype, self.layout)

    def split(self) -> tuple[Tile, Tile]:
        """Halves along the last axis."""
        whole = np.asarray(self.value)
        halves = Tile(whole[..., 0], self.dtype), Tile(whole[..., 1], self.dtype)
        return halves[0].tainted(self), halves[1].tainted(self)

    def sum(self, axis: Any = None, **_: Any) -> Tile:
        """Along an axis."""
        return reduced(np.sum, self, axis)

    def max(self, axis: Any = None, **_: Any) -> Tile:
        """Along an axis."""
        return reduced(np.max, self, axis)

    def min(self, axis: Any = None, **_: Any) -> Tile:
        """Along an axis."""
        return reduced(np.min, self, axis)


def reduced(how: Any, tile: Tile, axis: Any, keep_dims: bool = False) -> Tile:
    """A tile without one of its axes."""
    wide = tile.dtype
    made = how(np.asarray(tile.value), axis=axis, keepdims=keep_dims)
    if how is np.sum and wide.kind in "iu":
        wide = INT32 if wide.primitive_bitwidth < 32 else wide
    return _rounded(wide.cast(made), wide, sliced(tile.layout, axis)).tainted(tile)


def sliced(layout: Any, axis: Any) -> Any:
    """The layout of what is left when an axis goes."""
    if layout is None or axis is None:
        return None
    from stretto.sanitizer.layouts import SliceLayout  # noqa: PLC0415 - it knows no tiles

    rank = getattr(layout, "rank", None)
    return SliceLayout(axis if axis >= 0 or rank is None else axis + rank, layout)


def _rounded(value: Any, dtype: Dtype, layout: Any) -> Tile:
    if dtype.packed:
        value = dtype.cast(value)
    return Tile(value, dtype, layout)


def _sizes(given: Any) -> list[int]:
    if len(given) == 1 and isinstance(given[0], list | tuple):
        given = given[0]
    return [int(n) for n in given]


def _quotient(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.kind == "f":
        return np.floor(a / b)
    return (a - _remainder(a, b)) // np.where(b == 0, 1, b).astype(np.asarray(b).dtype)


def _remainder(a: Any, b: Any) -> Any:
    return np.fmod(a, b)


def tile(value: Any, like: Dtype | None = None) -> Tile:
    """Whatever it is, as a tile."""
    if isinstance(value, Tile):
        return value
    if isinstance(value, bool | np.bool_):
        return Tile(np.bool_(value), INT1)
    if isinstance(value, int | np.integer):
        dtype = like if like is not None else INT32 if -(1 << 31) <= value < (1 << 31) else INT64
        return Tile(dtype.cast(value), dtype)
    if isinstance(value, float | np.floating):
        dtype = like or FLOAT32
        return Tile(dtype.cast(value), dtype)
    return Tile(np.asarray(value))
