"""A file of Tile IR bytecode cut into its sections, and tables cut into their entries.

    7f "TileIR" 00 │ version │ functions │ globals │ constants │ debug │ types │ strings │ 00

Each section has an id, a length and, if the id's highest bit is set, an alignment. A table is a
count, the offset of each entry, and the entries.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.frontends import MAGIC
from stretto.frontends.tileir.cursor import Cursor

OLDEST, NEWEST = (13, 1), (13, 4)

STRINGS, FUNCTIONS, DEBUG, CONSTANTS, TYPES, GLOBALS, PRODUCER = range(1, 8)
NAMES = ("end", "strings", "functions", "debug", "constants", "types", "globals", "producer")
_ALIGNED = 0x80

Version = tuple[int, int]


def read_header(cursor: Cursor) -> Version:
    """The version of a file, of those that are read."""
    if cursor.bytes(len(MAGIC), "the header") != MAGIC:
        raise cursor.fail("is no Tile IR bytecode", "expected 7f 54 69 6c 65 49 52 00", 0)
    start = cursor.at
    version = cursor.byte("the version"), cursor.byte("the version")
    cursor.bytes(2, "the tag of the version")
    if not OLDEST <= version <= NEWEST:
        told = "versions {}.{} to {}.{} are read".format(*OLDEST, *NEWEST)
        raise cursor.fail("is Tile IR bytecode {}.{}".format(*version), told, start)
    return version


def read_sections(cursor: Cursor) -> dict[int, Cursor]:
    """The window of each section, by id."""
    found: dict[int, Cursor] = {}
    while True:
        start = cursor.at
        byte = cursor.byte("a section or the end of the file")
        kind = byte & ~_ALIGNED
        if byte == 0:
            if cursor.left:
                raise cursor.fail(f"{cursor.left:,} bytes stand after the end section")
            return found
        if not 1 <= kind < len(NAMES):
            raise cursor.fail(f"section {kind} is unknown", f"sections are 1 to {PRODUCER}", start)
        name = NAMES[kind]
        if kind in found:
            raise cursor.fail(f"a second section of {name}", at=start)
        length = cursor.varint(f"the length of the section of {name}")
        if byte & _ALIGNED:
            at = cursor.at
            alignment = cursor.varint(f"the alignment of the section of {name}")
            if alignment == 0 or alignment & (alignment - 1):
                raise cursor.fail(f"an alignment of {alignment}", "expected a power of two", at)
            cursor.align(0, alignment, f"the section of {name}")
        if length > cursor.left:
            told = f"the section of {name} takes {length:,} bytes; {cursor.left:,} are left"
            raise cursor.fail(told, at=start)
        found[kind] = cursor.part(cursor.at, cursor.at + length)
        cursor.at += length


@dataclass(frozen=True, slots=True)
class Table:
    """Entries of varying length."""

    what: str
    window: Cursor
    starts: tuple[int, ...]
    """Where each entry begins, and where the last one ends."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def entry(self, index: int) -> Cursor:
        """The window of an entry that is there."""
        return self.window.part(self.starts[index], self.starts[index + 1])

    def index(self, cursor: Cursor) -> int:
        """The index of an entry, as it stands at a cursor."""
        at = cursor.at
        index = cursor.varint(f"the index of a {self.what}")
        if index >= len(self):
            raise cursor.fail(f"{self.what} {index} of {len(self)}", at=at)
        return index


def read_table(section: Cursor | None, what: str, width: int, base: int | None = None) -> Table:
    """The table that fills a section, or the rest of one that begins at `base`.

    Its offsets have so many bytes.
    """
    if section is None:
        nothing = Cursor("", b"", 0, 0)
        return Table(what, nothing, (0,))
    base = section.at if base is None else base
    number = section.count(f"{what}s", width)
    if number == 0:
        return Table(what, section, (section.at,))
    section.align(base, width, f"the offsets of the {what}s")
    first = section.at
    offsets = section.offsets(number, width, f"the offsets of the {what}s")
    begin, end = section.at, section.end
    starts = (*(begin + offset for offset in offsets), end)
    for index in range(number):
        if not begin <= starts[index] <= starts[index + 1] <= end:
            told = f"{what} {index} is said to begin at byte {offsets[index]:,} of {end - begin:,}"
            at = first + index * width
            raise section.fail(told, "expected offsets in ascending order", at)
    return Table(what, section, starts)


class Strings:
    """The strings of a file, decoded when they are asked for."""

    __slots__ = ("_seen", "_table")

    def __init__(self, section: Cursor) -> None:
        self._table = read_table(section, "string", 4)
        self._seen: dict[int, str] = {}

    def read(self, cursor: Cursor) -> str:
        """The string whose index stands at a cursor."""
        index = self._table.index(cursor)
        if index not in self._seen:
            entry = self._table.entry(index)
            raw = entry.bytes(entry.left, "a string")
            self._seen[index] = raw.decode("utf-8", errors="backslashreplace")
        return self._seen[index]

    def name(self, cursor: Cursor, what: str) -> str:
        """A string that may not be empty."""
        at = cursor.at
        text = self.read(cursor)
        if not text:
            raise cursor.fail(f"{what} is empty", at=at)
        return text
