"""Makes a tree from its first operation to its last.

b = Builder()
row = b.op("arith.muli", (pid, size), i32, name="row")
with b.region((index, acc)) as body:
    ...
    b.add("scf.yield", (more,))
b.add("scf.for", (lower, upper, step, zero), (total_type,), regions=(body.region,))
"""

from __future__ import annotations

import re
import struct
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isnan

from stretto.kernel.tree import NO_ATTRIBUTES, Attribute, Location, Operation, Region, Value
from stretto.kernel.types import Scalar, Tile, Type


@dataclass
class OpenRegion:
    """A region that is being written; `region` once it is closed."""

    arguments: tuple[Value, ...] = ()
    operations: list[Operation] = field(default_factory=list[Operation])

    @property
    def region(self) -> Region:
        """What was written."""
        return Region(tuple(self.operations), self.arguments)


class Builder:
    """Writes operations into the innermost open region, all of them at its location."""

    def __init__(self, location: Location | None = None) -> None:
        self.location = location or Location("<unknown>")
        """Where the next operations stand."""
        self.said: Mapping[str, Attribute] = NO_ATTRIBUTES
        """What the next operations all say beside their own attributes."""
        self._open = [OpenRegion()]

    def add(
        self,
        name: str,
        operands: Sequence[Value] = (),
        types: Sequence[Type] = (),
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        regions: Sequence[Region] = (),
        names: Sequence[str] = (),
    ) -> Operation:
        """An operation, with results of these types."""
        given = [*names, *[""] * (len(types) - len(names))]
        results = tuple(Value(type, called) for type, called in zip(types, given, strict=True))
        said = {**self.said, **attributes} if self.said else attributes
        made = Operation(name, tuple(operands), results, said, tuple(regions), self.location)
        self._open[-1].operations.append(made)
        return made

    def op(
        self,
        kind: str,
        operands: Sequence[Value],
        type: Type,
        name: str = "",
        **attributes: Attribute,
    ) -> Value:
        """The only result of an operation without regions."""
        return self.add(kind, operands, (type,), attributes, names=(name,)).result

    def constant(self, value: Attribute, type: Scalar | Tile, name: str = "") -> Value:
        """A number, or a tile that has it everywhere."""
        return self.op("arith.constant", (), type, name, value=value)

    def append(self, operation: Operation) -> None:
        """An operation as it is."""
        self._open[-1].operations.append(operation)

    @contextmanager
    def region(self, arguments: Sequence[Value] = ()) -> Generator[OpenRegion]:
        """What is written inside goes into a region of its own."""
        opened = OpenRegion(tuple(arguments))
        self._open.append(opened)
        try:
            yield opened
        finally:
            self._open.pop()

    @property
    def depth(self) -> int:
        """How many regions are open around what is written next."""
        return len(self._open) - 1

    @contextmanager
    def outside(self, depth: int) -> Generator[None]:
        """What is written inside stands in an outer region, before what is being written now."""
        inner = self._open[depth + 1 :]
        del self._open[depth + 1 :]
        try:
            yield
        finally:
            self._open += inner

    def finish(self, arguments: Sequence[Value] = ()) -> Region:
        """All that was written outside of any region."""
        (outermost,) = self._open
        return Region(tuple(outermost.operations), tuple(arguments))


class LoweredBuilder(Builder):
    """Writes a lowered kernel: names as MLIR keeps them, numbers as their types hold them."""

    def add(
        self,
        name: str,
        operands: Sequence[Value] = (),
        types: Sequence[Type] = (),
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        regions: Sequence[Region] = (),
        names: Sequence[str] = (),
    ) -> Operation:
        """An operation, with results of these types."""
        if name == "arith.constant":
            attributes = {**attributes, "value": held_by(types[0], attributes["value"])}
        plain = [plain_name(one) for one in names]
        return super().add(name, operands, types, attributes, regions, plain)


def plain_name(name: str) -> str:
    """A name as MLIR keeps it: letters, digits and `_`, without the number that tells it from
    others of that name; "" where there is none."""
    cleaned = _NO_LETTERS.sub("_", name)
    return "" if cleaned[:1].isdigit() else _NUMBER.sub("", cleaned)


_NO_LETTERS = re.compile(r"\W")
_NUMBER = re.compile(r"_\d+$")


def held_by(type: Type, number: Attribute) -> Attribute:
    """A constant as its type holds it: the nearest number of its precision."""
    if isinstance(number, tuple):
        return tuple(held_by(type, one) for one in number)
    element = type.element if isinstance(type, Tile) else type
    if not isinstance(number, float) or not isinstance(element, Scalar):
        return number
    code = {"f16": "<e", "f32": "<f", "bf16": "<f"}.get(element.element)
    if code is None:
        return number
    packed = struct.pack(code, number)
    if element.element == "bf16":  # the upper half, rounded to even
        bits = int.from_bytes(packed, "little")
        bits += 0x7FFF + (bits >> 16 & 1) if not isnan(number) else 0
        packed = (bits >> 16 << 16).to_bytes(4, "little")
    (found,) = struct.unpack(code, packed)
    return found
