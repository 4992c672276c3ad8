"""Attributes of operations: enumerations, numbers, hints, assumptions, constants.

    08 10 00           ──►  DivBy(16)                  "assume div_by<16>"
    constant 3, f32    ──►  Dense(tile<128x1xf32>, 0000 80ff): -inf everywhere

Most are read by what the operation's row asks for; some carry a tag and say for themselves what
they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stretto.frontends.tileir.cursor import Cursor
from stretto.frontends.tileir.numbers import number_of
from stretto.frontends.tileir.sections import Strings, Table, read_table
from stretto.frontends.tileir.types import Number, Tile, Type, Types, choice
from stretto.limits import ATTRIBUTES_NESTED
from stretto.ops.atomics import ATOMICS

ENUMERATIONS: dict[str, tuple[str, ...]] = {
    "atomic": tuple(row.tileir for row in ATOMICS.values()),
    "ordering": ("unordered", "ordered"),
    "predicate": (
        "equal",
        "not_equal",
        "less_than",
        "less_than_or_equal",
        "greater_than",
        "greater_than_or_equal",
    ),
    "overflow": ("none", "no_signed_wrap", "no_unsigned_wrap", "no_wrap"),
    "semantics": ("weak", "relaxed", "acquire", "release", "acq_rel"),
    "scope": ("tl_blk", "device", "sys"),
    "rounding": (
        "nearest_even",
        "zero",
        "negative_inf",
        "positive_inf",
        "approx",
        "full",
        "nearest_int_to_zero",
        "nearest_away",
    ),
    "signedness": ("unsigned", "signed"),
    "visibility": ("public", "private"),
}
"""The kinds of enumeration, and their names in the order of their numbers."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number with its type."""

    type: Number
    bits: int

    @property
    def value(self) -> int | float | bool:
        """As a Python number."""
        return number_of(self.bits, self.type)


@dataclass(frozen=True, slots=True)
class DivBy:
    """An assumption: a multiple of `divisor`, at every `every`-th element along a dimension."""

    divisor: int
    every: int | None = None
    along: int | None = None


@dataclass(frozen=True, slots=True)
class Bounded:
    """An assumption: from `low` to `high`, both inclusive."""

    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class SameElements:
    """An assumption: runs of so many equal elements along each dimension."""

    runs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dense:
    """A constant tile: one number for all elements, or one each in row-major order."""

    type: Tile
    data: bytes

    @property
    def is_splat(self) -> bool:
        """Whether one number stands for all elements."""
        if self._packed:
            return len(self.data) == 1 and self.data[0] in (0x00, 0xFF)
        return len(self.data) == self._number.bytes

    def values(self) -> Iterator[int | float | bool]:
        """The numbers as they are stored: one if it is a splat."""
        kind, size = self._number, self._number.bytes
        if self.is_splat:
            yield number_of(int.from_bytes(self.data, "little"), kind)
        elif self._packed:
            for index in range(self.type.elements):
                yield bool(self.data[index >> 3] >> (index & 7) & 1)
        else:
            for at in range(0, len(self.data), size):
                yield number_of(int.from_bytes(self.data[at : at + size], "little"), kind)

    @property
    def _number(self) -> Number:
        assert isinstance(self.type.element, Number)
        return self.type.element

    @property
    def _packed(self) -> bool:
        return self._number.bits == 1

    @property
    def fits(self) -> bool:
        """Whether there are as many bytes as the type asks for."""
        if not isinstance(self.type.element, Number):
            return False
        if self._packed:
            return self.is_splat or len(self.data) == (self.type.elements + 7) // 8
        return self.is_splat or len(self.data) == self.type.elements * self._number.bytes


Attribute = (
    bool
    | int
    | str
    | tuple["Attribute", ...]
    | Mapping[str, "Attribute"]
    | Scalar
    | Dense
    | DivBy
    | Bounded
    | SameElements
    | Type
)


class Attributes:
    """Reads attributes with the tables of a file."""

    __slots__ = ("_constants", "_dense", "strings", "types")

    def __init__(self, strings: Strings, types: Types, constants: Cursor | None) -> None:
        self.strings = strings
        self.types = types
        self._constants: Table = read_table(constants, "constant", 8)
        self._dense: dict[tuple[int, Tile], Dense] = {}

    def read(self, cursor: Cursor, kind: str, result: Type | None, what: str) -> Attribute:
        """An attribute of the kind that a row names."""
        names = ENUMERATIONS.get(kind)
        if names is not None:
            return choice(cursor, names, what)
        match kind:
            case "int":
                return cursor.varint(what)
            case "bool":
                return cursor.byte(what) != 0
            case "string":
                return self.strings.read(cursor)
            case "symbol":
                return self.strings.name(cursor, what)
            case "int32s":
                return cursor.integers(4, what)
            case "bools":
                return tuple(value != 0 for value in cursor.integers(1, what))
            case "dense":
                return self.dense(cursor, result)
            case "array":
                return self._array(cursor, 0)
            case "hints":
                return self._dictionary(cursor, 0)
            case _:
                return self.tagged(cursor)

    def dense(self, cursor: Cursor, type: Type | None) -> Dense:
        """A constant of a tile type, by its index."""
        at = cursor.at
        index = self._constants.index(cursor)
        if not isinstance(type, Tile):
            raise cursor.fail(f"a constant of type {type}", "expected a tile", at)
        found = self._dense.get((index, type))
        if found is None:
            entry = self._constants.entry(index)
            length = entry.count("bytes of a constant")
            found = Dense(type, entry.bytes(length, "a constant"))
            if not found.fits:
                raise cursor.fail(
                    f"constant {index} has {length:,} bytes, not those of {type}", at=at
                )
            self._dense[index, type] = found
        return found

    def tagged(self, cursor: Cursor, depth: int = 0) -> Attribute:
        """An attribute that says what it is."""
        at = cursor.at
        if depth > ATTRIBUTES_NESTED:
            raise cursor.fail(f"attributes nested more than {ATTRIBUTES_NESTED} deep")
        tag = cursor.varint("the tag of an attribute")
        match tag:
            case 1 | 2:
                return self._scalar(cursor, integer=tag == 1)
            case 3:
                return cursor.byte("a boolean") != 0
            case 4:
                return self.types.read(cursor)
            case 5:
                return self.strings.read(cursor)
            case 6:
                return self._array(cursor, depth)
            case 7:
                return self.dense(cursor, self.types.read(cursor, (Tile,), "tile"))
            case 8:
                divisor = cursor.varint("a divisor")
                every, along = self._two(cursor, "a step")
                return DivBy(divisor, every, along)
            case 9:
                return SameElements(cursor.integers(8, "runs"))
            case 10 | 11:
                return self._dictionary(cursor, depth)
            case 12:
                return Bounded(*self._two(cursor, "a bound"))
            case _:
                raise cursor.fail(f"tag {tag} is no attribute", "tags are 1 to 12", at)

    def _two(self, cursor: Cursor, what: str) -> tuple[int | None, int | None]:
        flags = cursor.byte("flags")
        first = cursor.signed(what) if flags & 1 else None
        return first, cursor.signed(what) if flags & 2 else None

    def _scalar(self, cursor: Cursor, *, integer: bool) -> Scalar:
        at = cursor.at
        kind = self.types.number(cursor)
        if kind.is_integer != integer:
            wanted = "an integer" if integer else "a float"
            raise cursor.fail(f"{kind} where {wanted} is expected", at=at)
        if kind.bits == 1 or (kind.bits <= 8 and not integer):
            bits = cursor.byte("a number")
        elif integer:
            bits = cursor.varint("a number")
        else:
            # cuTile writes the bits of a negative f64 as an unsigned number, which takes 65.
            bits = cursor.signed("a number", 65) & ((1 << 64) - 1)
        if bits >> kind.bits and kind.bits != 1:
            raise cursor.fail(f"{bits} has more than the {kind.bits} bits of {kind}", at=at)
        return Scalar(kind, bits)

    def _array(self, cursor: Cursor, depth: int) -> tuple[Attribute, ...]:
        number = cursor.count("attributes")
        return tuple(self.tagged(cursor, depth + 1) for _ in range(number))

    def _dictionary(self, cursor: Cursor, depth: int) -> Mapping[str, Attribute]:
        found: dict[str, Attribute] = {}
        for _ in range(cursor.count("attributes", 2)):
            at = cursor.at
            key = self.strings.name(cursor, "the name of an attribute")
            if key in found:
                raise cursor.fail(f'a second attribute "{key}"', at=at)
            found[key] = self.tagged(cursor, depth + 1)
        return found
