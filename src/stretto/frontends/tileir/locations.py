"""Where in the user's source an operation comes from.

index 7 ──► call site ──► loc in `reshape`, _stub.py:666:15
               └───────► loc in `attention`, kernels.py:48:8    ──►  frames, innermost first
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.frontends.tileir.cursor import Cursor
from stretto.frontends.tileir.sections import Strings, Table, read_table
from stretto.limits import DEBUG_NESTED, FRAMES_KEPT

_COMPILE_UNIT, _FILE, _BLOCK, _LOC, _FUNCTION, _CALL = range(1, 7)
_SCOPES = (_COMPILE_UNIT, _FILE, _BLOCK, _FUNCTION)


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of a source file, and the function it stands in."""

    file: str
    line: int
    column: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


Location = tuple[Frame, ...]
"""Frames, innermost first; none: unknown."""


class Locations:
    """The debug section of a file."""

    __slots__ = ("_firsts", "_frames", "_functions", "_indices", "_strings", "_table")

    def __init__(self, section: Cursor | None, strings: Strings) -> None:
        self._strings = strings
        self._frames: dict[int, Location] = {}
        self._functions: dict[int, str] = {}
        self._firsts: tuple[int, ...] = ()
        self._indices: tuple[int, ...] = ()
        self._table: Table = read_table(None, "debug record", 4)
        if section is None:
            return
        base = section.at
        number = section.count("functions with debug records", 4)
        section.align(base, 4, "the debug records")
        self._firsts = section.offsets(number, 4, "the offsets of the debug records")
        number = section.count("debug records", 8)
        section.align(base, 8, "the debug records")
        self._indices = section.offsets(number, 8, "the indices of the debug records")
        self._table = read_table(section, "debug record", 4, base)

    def of_function(self, cursor: Cursor) -> _Lines:
        """The locations of a function and its operations, by the index at a cursor."""
        at = cursor.at
        index = cursor.varint("the debug index of a function")
        if index == 0 or not self._firsts:
            return _Lines(self, (), 0)
        if index > len(self._firsts):
            raise cursor.fail(f"debug index {index} of {len(self._firsts)}", at=at)
        return _Lines(self, self._indices, self._firsts[index - 1])

    def location(self, cursor: Cursor, index: int, depth: int = 0) -> Location:
        """The frames of a debug record; 0: unknown. Faults stand at the cursor."""
        if index == 0:
            return ()
        if index in self._frames:
            return self._frames[index]
        entry, tag = self._record(cursor, index, depth)
        if tag == _LOC:
            function = self._function(cursor, entry.varint("a scope"), depth + 1)
            file = self._strings.read(entry)
            line, column = entry.varint("a line"), entry.varint("a column")
            frames: Location = (Frame(file, line, column, function),)
        elif tag == _CALL:
            callee = self.location(cursor, entry.varint("a callee"), depth + 1)
            caller = self.location(cursor, entry.varint("a caller"), depth + 1)
            frames = (callee + caller)[:FRAMES_KEPT]
        elif tag in _SCOPES:
            raise cursor.fail(f"debug record {index} is no location", f"its tag is {tag}")
        else:
            frames = ()
        self._frames[index] = frames
        return frames

    def _function(self, cursor: Cursor, index: int, depth: int) -> str:
        """The name of the function that a scope belongs to."""
        if index == 0:
            return ""
        if index in self._functions:
            return self._functions[index]
        entry, tag = self._record(cursor, index, depth)
        if tag == _BLOCK:
            name = self._function(cursor, entry.varint("a scope"), depth + 1)
        elif tag == _FUNCTION:
            entry.varint("a file")
            entry.varint("a line")
            name = self._strings.read(entry)
        else:
            raise cursor.fail(f"debug record {index} is no scope", f"its tag is {tag}")
        self._functions[index] = name
        return name

    def _record(self, cursor: Cursor, index: int, depth: int) -> tuple[Cursor, int]:
        if index > len(self._table):
            raise cursor.fail(f"debug record {index} of {len(self._table)}")
        if depth > DEBUG_NESTED:
            raise cursor.fail(
                f"debug record {index} leads to itself, or over {DEBUG_NESTED} others"
            )
        entry = self._table.entry(index - 1)
        return entry, entry.varint("the tag of a debug record")


class _Lines:
    """Locations one after the other, in the order in which operations are written."""

    __slots__ = ("_at", "_indices", "_locations")

    def __init__(self, locations: Locations, indices: tuple[int, ...], first: int) -> None:
        self._locations = locations
        self._indices = indices
        self._at = first

    def next(self, cursor: Cursor) -> Location:
        """Of the next operation."""
        if not self._indices:
            return ()
        if self._at >= len(self._indices):
            raise cursor.fail(
                f"no debug record {self._at} for this operation of {len(self._indices)}"
            )
        index = self._indices[self._at]
        self._at += 1
        return self._locations.location(cursor, index)
