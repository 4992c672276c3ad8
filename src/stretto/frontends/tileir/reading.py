"""Bytes to a module: header, tables, globals, then each function operation by operation.

    29 01 0c 00 04 …   ──►   %for = for %i in (%lower to %upper, step %one), %acc from %zero

Values are numbered as they are made; those of a block are forgotten where it ends. Every fault is
an error at the byte where it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stretto.frontends.tileir.attributes import ENUMERATIONS, Attribute, Attributes
from stretto.frontends.tileir.cursor import Cursor
from stretto.frontends.tileir.locations import Location, Locations
from stretto.frontends.tileir.rows import ROWS, Field, Row
from stretto.frontends.tileir.sections import (
    CONSTANTS,
    DEBUG,
    FUNCTIONS,
    GLOBALS,
    PRODUCER,
    STRINGS,
    TYPES,
    Strings,
    Version,
    read_header,
    read_sections,
)
from stretto.frontends.tileir.tree import Block, Function, Global, Module, Operation, Value
from stretto.frontends.tileir.types import Signature, Types, ValueType, choice
from stretto.limits import BLOCKS_NESTED

NO_HINTS: Mapping[str, Attribute] = {}
_IS_KERNEL, _HAS_HINTS = 0x02, 0x04


def read_bytecode(file: str, data: bytes) -> Module:
    """The module in these bytes; `file` is what errors call it."""
    cursor = Cursor(file, data, 0, len(data))
    version = read_header(cursor)
    found = read_sections(cursor)
    for kind, name in ((STRINGS, "strings"), (FUNCTIONS, "functions")):
        if kind not in found:
            raise cursor.fail(f"has no section of {name}")
    strings = Strings(found[STRINGS])
    types = Types(found.get(TYPES), version)
    attributes = Attributes(strings, types, found.get(CONSTANTS))
    locations = Locations(found.get(DEBUG), strings)
    producer = strings.read(found[PRODUCER]) if PRODUCER in found else ""
    reader = _Reader(version, attributes, locations)
    return Module(
        file=file,
        version=version,
        globals=reader.globals(found[GLOBALS]) if GLOBALS in found else (),
        functions=reader.functions(found[FUNCTIONS]),
        producer=producer,
    )


@dataclass(slots=True)
class _Reader:
    """The tables of a file."""

    version: Version
    attributes: Attributes
    locations: Locations

    def globals(self, cursor: Cursor) -> tuple[Global, ...]:
        """The section of globals."""
        number = cursor.count("globals", 4)
        found = tuple(self._global(cursor) for _ in range(number))
        if cursor.left:
            raise cursor.fail(f"{cursor.left} bytes stand after the globals")
        return found

    def _global(self, cursor: Cursor) -> Global:
        tables = self.attributes
        name = tables.strings.name(cursor, "the name of a global")
        value = tables.dense(cursor, tables.types.read(cursor))
        alignment = cursor.varint("an alignment")
        visibility, constant = "public", False
        if self.version >= (13, 3):
            visibility = choice(cursor, ENUMERATIONS["visibility"], "visibility")
            constant = cursor.varint("whether a global is constant") != 0
        return Global(name, value, alignment, visibility, constant)

    def functions(self, cursor: Cursor) -> tuple[Function, ...]:
        """The section of functions."""
        number = cursor.count("functions", 5)
        found = tuple(self._function(cursor) for _ in range(number))
        if cursor.left:
            raise cursor.fail(f"{cursor.left} bytes stand after the functions")
        return found

    def _function(self, cursor: Cursor) -> Function:
        tables = self.attributes
        offset = cursor.at
        name = tables.strings.name(cursor, "the name of a function")
        signature = tables.types.read(cursor, (Signature,), "signature")
        assert isinstance(signature, Signature)
        flags = cursor.byte("the flags of a function")
        if not flags & _IS_KERNEL:
            raise cursor.fail(f"{name} is no kernel", "only kernels are read", offset)
        lines = self.locations.of_function(cursor)
        at = cursor.at
        hints: Attribute = tables.tagged(cursor) if flags & _HAS_HINTS else NO_HINTS
        if not isinstance(hints, Mapping):
            raise cursor.fail("the hints of a kernel are no dictionary", at=at)
        length = cursor.count("bytes of a body")
        window = cursor.part(cursor.at, cursor.at + length)
        cursor.at += length
        location = lines.next(window)
        body = _Body(self, window, lines.next)
        parameters = tuple(body.value(type) for type in signature.inputs)
        operations = body.operations(None)
        return Function(name, Block(parameters, operations), hints, location, offset)


class _Body:
    """A function's operations, and the values they have made so far."""

    __slots__ = ("_attributes", "_cursor", "_line", "_made", "_seen", "_types", "_version")

    def __init__(self, reader: _Reader, cursor: Cursor, line: Callable[[Cursor], Location]) -> None:
        self._version = reader.version
        self._attributes = reader.attributes
        self._types: Types = reader.attributes.types
        self._cursor = cursor
        self._line = line
        self._seen: list[Value] = []
        self._made = 0

    def value(self, type: ValueType) -> Value:
        """A new value, the last of those that can be seen."""
        made = Value(self._made, type)
        self._made += 1
        self._seen.append(made)
        return made

    def operations(self, number: int | None, depth: int = 0) -> tuple[Operation, ...]:
        """So many operations, or all that are left; the last one, and no other, ends the block."""
        cursor = self._cursor
        found: list[Operation] = []
        ended = False
        while cursor.left if number is None else len(found) < number:
            if ended:
                raise cursor.fail(f"an operation after `{found[-1].name}`")
            row = self._row()
            found.append(self._operation(row, depth))
            ended = row.is_terminator
        if not ended:
            last = f"ends in `{found[-1].name}`" if found else "is empty"
            raise cursor.fail(f"a block {last}", "expected return, yield, continue or break")
        return tuple(found)

    def _row(self) -> Row:
        cursor = self._cursor
        at = cursor.at
        opcode = cursor.varint("an opcode")
        row = ROWS.get(opcode)
        if row is None:
            raise cursor.fail(f"opcode {opcode} is no operation of a body", at=at)
        if row.since > self._version:
            told = "`{}` is of version {}.{}".format(row.name, *row.since)
            raise cursor.fail(told, "the file is of {}.{}".format(*self._version), at)
        return row

    def _operation(self, row: Row, depth: int) -> Operation:
        cursor, types = self._cursor, self._types
        offset = cursor.at
        location = self._line(cursor)
        number = cursor.count("results") if row.results is None else row.results
        results = [types.value(cursor) for _ in range(number)]
        flags = self._flags(row)
        attributes: dict[str, Attribute] = {}
        for field in row.units:
            attributes[field.name] = bool(flags >> (field.bit or 0) & 1)
        for field in row.attributes:
            self._attribute(row, field, flags, results[0] if results else None, attributes)
        operands = self._operands(row, flags)
        blocks = self._blocks(row, depth) if row.regions else ()
        made = tuple(self.value(type) for type in results)
        return Operation(row.name, operands, made, attributes, blocks, location, offset)

    def _flags(self, row: Row) -> int:
        if row.flags is None or row.flags > self._version:
            return 0
        at = self._cursor.at
        flags = self._cursor.varint("flags")
        if flags & ~row.bits:
            told = f"flags {flags:#x} of `{row.name}`"
            raise self._cursor.fail(told, f"expected some of {row.bits:#x}", at)
        return flags

    def _attribute(
        self,
        row: Row,
        field: Field,
        flags: int,
        result: ValueType | None,
        attributes: dict[str, Attribute],
    ) -> None:
        if field.bit is not None and not flags >> field.bit & 1:
            return
        if field.since > self._version:
            attributes[field.name] = field.default or ()
            return
        what = f"`{field.name}` of `{row.name}`"
        attributes[field.name] = self._attributes.read(self._cursor, field.kind, result, what)

    def _operands(self, row: Row, flags: int) -> dict[str, tuple[Value, ...]]:
        cursor = self._cursor
        found: dict[str, tuple[Value, ...]] = {}
        left = -1
        if row.counted:
            at = cursor.at
            left = cursor.count("operands")
            fixed = sum(field.kind == "" for field in row.operands)
            if left < fixed or (left > fixed and row.operands[-1].kind == ""):
                raise cursor.fail(f"{left} operands of `{row.name}`", f"expected {fixed}", at)
        for field in row.operands:
            if field.kind == "":
                number = 1
            elif row.counted:
                number = left
                if field.kind == "?" and number > 1:
                    raise cursor.fail(f"{number} operands `{field.name}` of `{row.name}`")
            elif field.kind == "?":
                number = flags >> (field.bit or 0) & 1
            else:
                number = cursor.count(f"operands `{field.name}`")
            found[field.name] = tuple(self._operand(row, field) for _ in range(number))
            left -= number
        return found

    def _operand(self, row: Row, field: Field) -> Value:
        cursor = self._cursor
        at = cursor.at
        index = cursor.varint("an operand")
        if index >= len(self._seen):
            told = f"operand `{field.name}` of `{row.name}` is value {index} of {len(self._seen)}"
            raise cursor.fail(told, at=at)
        return self._seen[index]

    def _blocks(self, row: Row, depth: int) -> tuple[Block, ...]:
        cursor = self._cursor
        at = cursor.at
        if depth >= BLOCKS_NESTED:
            raise cursor.fail(f"blocks nested more than {BLOCKS_NESTED} deep")
        number = cursor.varint("the number of regions")
        if number != row.regions:
            raise cursor.fail(f"{number} regions of `{row.name}`", f"expected {row.regions}", at)
        return tuple(self._block(row, depth) for _ in range(number))

    def _block(self, row: Row, depth: int) -> Block:
        cursor = self._cursor
        at = cursor.at
        if cursor.varint("the number of blocks") != 1:
            raise cursor.fail(f"a region of `{row.name}`", "expected one block", at)
        outside = len(self._seen)
        number = cursor.count("arguments")
        arguments = tuple(self.value(self._types.value(cursor)) for _ in range(number))
        operations = self.operations(cursor.count("operations"), depth + 1)
        del self._seen[outside:]
        return Block(arguments, operations)
