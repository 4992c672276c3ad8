"""Types of Tile IR: numbers, pointers, tiles, views of tensors, tokens, functions.

    0d 05 02 80 00 … 40 00 …    ──►    tile<128x64xf16>

Printed as the assembly of the dialect has them. A type names others by their index in the table,
but each kind takes only simpler kinds, so nothing here can refer to itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from stretto.frontends.tileir.cursor import Cursor
from stretto.frontends.tileir.sections import Version, read_table

TILE_ELEMENTS = 1 << 24
"""A tile has no more, as the dialect defines it."""
_DYNAMIC = -(1 << 63)
PADDINGS = ("zero", "neg_zero", "nan", "pos_inf", "neg_inf")
_POINTER_ATTRIBUTES = ("default",)

Extent = int | None
"""A size or a stride; None: known at run time."""


@dataclass(frozen=True, slots=True)
class Number:
    """An integer or a floating-point type: `i32`, `bf16`, `f8E4M3FN`."""

    name: str
    bits: int

    @property
    def is_integer(self) -> bool:
        """Whether it is one; integers have no sign of their own."""
        return self.name[0] == "i"

    @property
    def bytes(self) -> int:
        """How many bytes a constant of it takes."""
        return (self.bits + 7) // 8

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address of numbers in global memory."""

    pointee: Number

    def __str__(self) -> str:
        return f"ptr<{self.pointee}>"


@dataclass(frozen=True, slots=True)
class Tile:
    """Numbers or pointers in a shape; a scalar is a tile without dimensions."""

    shape: tuple[int, ...]
    element: Number | Pointer

    @property
    def elements(self) -> int:
        """How many."""
        return prod(self.shape)

    def __str__(self) -> str:
        return f"tile<{_dims(self.shape, self.element)}>"


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor in global memory: base, sizes, strides."""

    element: Number
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...]

    def __str__(self) -> str:
        if not self.shape:
            return f"tensor_view<{self.element}>"
        strides = ",".join("?" if s is None else str(s) for s in self.strides)
        return f"tensor_view<{_dims(self.shape, self.element)}, strides=[{strides}]>"


@dataclass(frozen=True, slots=True)
class TileView:
    """A tensor seen as tiles, which an index chooses.

    `partition_view`: tiles side by side. `strided_view`: tiles at steps of their own.
    `gather_scatter_view`: the indices of one dimension are a tile themselves.
    """

    kind: str
    shape: tuple[int, ...]
    """Of a tile."""
    tensor: TensorView
    dim_map: tuple[int, ...]
    """The dimension of the tensor that each dimension of the tile runs along."""
    padding: str | None
    """What is read beyond the tensor; None: anything."""
    steps: tuple[int, ...] | None = None
    """Of a strided view: elements between tiles."""
    sparse_dim: int | None = None
    """Of a gather or scatter view: the dimension whose indices are a tile."""

    @property
    def tile(self) -> Tile:
        """What is loaded or stored at one index."""
        return Tile(self.shape, self.tensor.element)

    def __str__(self) -> str:
        parts = [f"tile=({'x'.join(map(str, self.shape))})"]
        if self.steps is not None:
            parts.append(f"traversal_strides=[{','.join(map(str, self.steps))}]")
        if self.padding is not None:
            parts.append(f"padding_value = {self.padding}")
        parts.append(str(self.tensor))
        if self.sparse_dim is not None:
            parts.append(f"sparse_dim={self.sparse_dim}")
        elif self.dim_map != tuple(range(len(self.dim_map))):
            parts.append(f"dim_map=[{', '.join(map(str, self.dim_map))}]")
        return f"{self.kind}<{', '.join(parts)}>"


@dataclass(frozen=True, slots=True)
class Token:
    """An order among memory operations, without a value."""

    def __str__(self) -> str:
        return "token"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives."""

    inputs: tuple[ValueType, ...]
    results: tuple[ValueType, ...]

    def __str__(self) -> str:
        inputs, results = (", ".join(map(str, side)) for side in (self.inputs, self.results))
        return f"({inputs}) -> ({results})"


ValueType = Tile | TensorView | TileView | Token
Type = Number | Pointer | ValueType | Signature


def _dims(shape: tuple[Extent, ...], element: Number | Pointer) -> str:
    return "".join("?x" if size is None else f"{size}x" for size in shape) + str(element)


NUMBERS: dict[int, tuple[Number, Version]] = {
    0: (Number("i1", 1), (13, 1)),
    1: (Number("i8", 8), (13, 1)),
    2: (Number("i16", 16), (13, 1)),
    3: (Number("i32", 32), (13, 1)),
    4: (Number("i64", 64), (13, 1)),
    5: (Number("f16", 16), (13, 1)),
    6: (Number("bf16", 16), (13, 1)),
    7: (Number("f32", 32), (13, 1)),
    8: (Number("tf32", 19), (13, 1)),
    9: (Number("f64", 64), (13, 1)),
    10: (Number("f8E4M3FN", 8), (13, 1)),
    11: (Number("f8E5M2", 8), (13, 1)),
    18: (Number("f8E8M0FNU", 8), (13, 2)),
    19: (Number("f4E2M1FN", 4), (13, 3)),
    22: (Number("i4", 4), (13, 3)),
    130: (Number("fnv8E5M3FNU", 8), (13, 4)),
}
"""By tag, with the version each came with."""
_POINTER, _TILE, _TENSOR, _PARTITION, _FUNCTION, _TOKEN, _GATHER, _STRIDED = (
    12, 13, 14, 15, 16, 17, 20, 21,
)  # fmt: skip
_SINCE = {_GATHER: (13, 3), _STRIDED: (13, 3)}


class Types:
    """The type table of a file; a type is read when it is first asked for."""

    __slots__ = ("_seen", "_table", "_version")

    def __init__(self, section: Cursor | None, version: Version) -> None:
        self._table = read_table(section, "type", 4)
        self._version = version
        self._seen: dict[int, Type] = {}

    def read(self, cursor: Cursor, kinds: tuple[type, ...] = (), what: str = "type") -> Type:
        """The type whose index stands at a cursor; it must be of one of the kinds, if any."""
        at = cursor.at
        index = self._table.index(cursor)
        found = self._seen.get(index)
        if found is None:
            entry = self._table.entry(index)
            tag_at = entry.at
            tag = entry.varint("the tag of a type")
            # A type that may not stand here is not even looked into: that ends every cycle.
            if kinds and _kind(tag) not in kinds:
                raise cursor.fail(f"type {index} is no {what}", f"its tag is {tag}", at)
            found = self._parse(tag, entry, tag_at)
            if entry.left:
                raise entry.fail(f"{entry.left} bytes stand after the type {found}")
            self._seen[index] = found
        if kinds and not isinstance(found, kinds):
            raise cursor.fail(f"type {index}, {found}, is no {what}", at=at)
        return found

    def value(self, cursor: Cursor) -> ValueType:
        """The type of a value of a body."""
        found = self.read(cursor, _VALUES, "type of a value")
        assert isinstance(found, _VALUES)
        return found

    def number(self, cursor: Cursor) -> Number:
        """An element type."""
        found = self.read(cursor, (Number,), "number")
        assert isinstance(found, Number)
        return found

    def _parse(self, tag: int, entry: Cursor, at: int) -> Type:
        since = NUMBERS[tag][1] if tag in NUMBERS else _SINCE.get(tag, (13, 1))
        if _kind(tag) is type(None):
            raise entry.fail(f"tag {tag} is no type", at=at)
        if since > self._version:
            told = "a type of version {}.{} in a file of {}.{}".format(*since, *self._version)
            raise entry.fail(told, at=at)
        if tag in NUMBERS:
            return NUMBERS[tag][0]
        if tag == _TILE:
            return self._tile(entry)
        if tag == _POINTER:
            has = self._pointer_flags(entry)
            pointee = self.number(entry)
            self._pointer_attribute(entry, has)
            return Pointer(pointee)
        if tag == _TENSOR:
            return self._tensor(entry)
        if tag == _FUNCTION:
            inputs = tuple(self.value(entry) for _ in range(entry.count("parameters")))
            results = tuple(self.value(entry) for _ in range(entry.count("results")))
            return Signature(inputs, results)
        return Token() if tag == _TOKEN else self._view(tag, entry)

    def _pointer_flags(self, entry: Cursor) -> bool:
        if self._version < (13, 4):
            return False
        return bool(entry.varint("the flags of a type") & 1)

    def _pointer_attribute(self, entry: Cursor, has: bool) -> None:
        if has:
            at = entry.at
            kind = entry.varint("the attribute of a pointer")
            if kind >= len(_POINTER_ATTRIBUTES):
                raise entry.fail(f"{kind} is no attribute of a pointer", at=at)

    def _tile(self, entry: Cursor) -> Tile:
        element = self.read(entry, (Number, Pointer), "element of a tile")
        assert isinstance(element, (Number, Pointer))
        at = entry.at
        shape = entry.integers(8, "sizes")
        _check_tile(entry, shape, at)
        return Tile(shape, element)

    def _tensor(self, entry: Cursor) -> TensorView:
        has = self._pointer_flags(entry)
        element = self.number(entry)
        at = entry.at
        shape = _extents(entry.integers(8, "sizes"))
        strides = _extents(entry.integers(8, "strides"))
        if len(shape) != len(strides):
            raise entry.fail(f"{len(shape)} sizes and {len(strides)} strides", at=at)
        if any(size is not None and size <= 0 for size in (*shape, *strides)):
            raise entry.fail("a size or a stride below 1", at=at)
        self._pointer_attribute(entry, has)
        return TensorView(element, shape, strides)

    def _view(self, tag: int, entry: Cursor) -> TileView:
        unified = self._version >= (13, 3)
        padded = bool(entry.varint("the flags of a type") & 1) if unified else False
        at = entry.at
        shape = entry.integers(4, "sizes")
        _check_tile(entry, shape, at)
        steps = entry.integers(4, "steps") if tag == _STRIDED else None
        tensor = self.read(entry, (TensorView,), "tensor view")
        assert isinstance(tensor, TensorView)
        rank = len(tensor.shape)
        sparse: int | None = None
        dim_map = tuple(range(rank))
        if tag == _GATHER:
            sparse = entry.varint("the sparse dimension")
        else:
            dim_map = entry.integers(4, "mapped dimensions")
        if not unified:
            padded = bool(entry.varint("whether there is a padding"))
        padding = choice(entry, PADDINGS, "padding") if padded else None
        whole = len(shape) == rank and sorted(dim_map) == list(range(rank))
        stepped = steps is None or (len(steps) == rank and all(step > 0 for step in steps))
        if not whole or not stepped or (sparse is not None and sparse >= rank):
            raise entry.fail(f"the view does not fit the {rank} dimensions of {tensor}", at=at)
        kind = {_PARTITION: "partition_view", _GATHER: "gather_scatter_view"}
        named = kind.get(tag, "strided_view")
        return TileView(named, shape, tensor, dim_map, padding, steps, sparse)


_VALUES = (Tile, TensorView, TileView, Token)
_KINDS: dict[int, type] = {
    _POINTER: Pointer,
    _TILE: Tile,
    _TENSOR: TensorView,
    _PARTITION: TileView,
    _FUNCTION: Signature,
    _TOKEN: Token,
    _GATHER: TileView,
    _STRIDED: TileView,
}


def _kind(tag: int) -> type:
    return Number if tag in NUMBERS else _KINDS.get(tag, type(None))


def _extents(values: tuple[int, ...]) -> tuple[Extent, ...]:
    return tuple(None if value == _DYNAMIC else value for value in values)


def choice(cursor: Cursor, names: tuple[str, ...], what: str) -> str:
    """The name of the number that stands at a cursor."""
    at = cursor.at
    index = cursor.varint(what)
    if index >= len(names):
        raise cursor.fail(f"{index} is no {what}", f"there are {len(names)}", at)
    return names[index]


def _check_tile(cursor: Cursor, shape: tuple[int, ...], at: int) -> None:
    """The rule of the dialect: powers of two, and not too many elements."""
    if any(size <= 0 or size & (size - 1) for size in shape):
        told = "x".join(map(str, shape))
        raise cursor.fail(f"a tile of {told}", "expected powers of two", at)
    if prod(shape) > TILE_ELEMENTS:
        told = f"a tile of {prod(shape):,} elements"
        raise cursor.fail(told, f"expected at most {TILE_ELEMENTS:,}", at)
