"""A module of Tile IR as it was written, nothing added and nothing left out.

Module(version, globals, functions)
  Function("matmul", (%0, %1, …), operations, hints)
    Operation("mmaf", operands by name, results, attributes, blocks, location, offset)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stretto.frontends.tileir.attributes import Attribute, Dense
from stretto.frontends.tileir.locations import Location
from stretto.frontends.tileir.sections import Version
from stretto.frontends.tileir.types import ValueType


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A parameter, a block's argument or a result; compared by identity."""

    number: int
    """Its place in the function, no two the same."""
    type: ValueType

    def __repr__(self) -> str:
        return f"%{self.number}: {self.type}"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The one block of a region."""

    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]

    def walk(self) -> Iterator[Operation]:
        """All operations inside, in the order of the file."""
        for operation in self.operations:
            yield operation
            for block in operation.blocks:
                yield from block.walk()


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One operation."""

    name: str
    operands: Mapping[str, tuple[Value, ...]]
    """By the name of the operand: one value, several of a variadic one, none of an absent one."""
    results: tuple[Value, ...]
    attributes: Mapping[str, Attribute]
    """By name; an optional one that is not there is missing."""
    blocks: tuple[Block, ...]
    location: Location
    offset: int
    """Where it stands in the file."""

    def __getitem__(self, name: str) -> Value:
        """An operand that is there."""
        (one,) = self.operands[name]
        return one

    @property
    def values(self) -> tuple[Value, ...]:
        """All operands in order."""
        return tuple(value for values in self.operands.values() for value in values)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A kernel."""

    name: str
    body: Block
    """Its arguments are the parameters."""
    hints: Mapping[str, Attribute]
    """By architecture."""
    location: Location
    offset: int


@dataclass(frozen=True, slots=True)
class Global:
    """A constant or a variable in global memory."""

    name: str
    value: Dense
    alignment: int
    visibility: str
    constant: bool


@dataclass(frozen=True, slots=True)
class Module:
    """What a file of bytecode holds."""

    file: str
    version: Version
    globals: tuple[Global, ...]
    functions: tuple[Function, ...]
    producer: str
