"""Which buffer does an operation of a dump touch? Follow its operands to where they live.

    descriptor_load ─► local_alloc ─► memdesc_trans ─► mma      one buffer, rooted at the alloc
                                        ▲ a view: no access     ▲ reads it

The `ops` records of a dump carry types, operands and scopes; the graph's nodes refer to them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

from stretto.document import Cursor
from stretto.loop import Space, TileType
from stretto.ops.opcodes import Opcode, opcode
from stretto.ops.spaces import FOREIGN

FIRST_INIT = 3
"""Position of the first carried value among the operands of scf.for."""

_TYPE = re.compile(r"(?:tensor|!ttg\.memdesc)<((?:\d+x)*)([A-Za-z]\w*)")


@dataclass(frozen=True, slots=True)
class DumpBuffer:
    """A piece of shared or tensor memory."""

    space: Space
    type: TileType
    scope: str


@dataclass(slots=True)
class Accesses:
    """Buffers one operation reads and writes."""

    reads: set[str] = field(default_factory=set[str])
    writes: set[str] = field(default_factory=set[str])


@dataclass(frozen=True, slots=True)
class _Record:
    """One entry of `ops`."""

    kind: str
    scope: str
    operands: tuple[dict[str, Any], ...]
    types: tuple[str, ...]
    segments: tuple[int, ...]

    @property
    def row(self) -> Opcode:
        """What is true of its opcode."""
        return opcode(self.kind)


def parse_type(text: str) -> TileType | None:
    """The shape and element of a tensor or buffer type; None for tokens, pointers and the like."""
    match = _TYPE.match(text)
    try:
        return TileType.parse((match[1] + match[2]) if match else text)
    except ValueError:
        return None


def _space_of(record: _Record, row: Cursor) -> Space:
    """The space of the buffer that an operation makes: its opcode tells, or its type."""
    if record.row.lands is not None:
        return record.row.lands
    words = re.findall(r"#[\w.]+", record.types[0])
    named: list[Space] = [FOREIGN[word] for word in words if word in FOREIGN]
    if len(named) != 1:
        hint = "expected one of " + ", ".join(FOREIGN)
        raise row.fail(f"makes a buffer in no known memory space: {record.types[0]}", hint)
    return named[0]


class Buffers:
    """All buffers of a dump, and who touches them."""

    def __init__(self, top: Cursor) -> None:
        rows = dict(top.get("ops").entries())
        self._records = {key: _record(row) for key, row in rows.items()}
        self._fed = self._loads_that_feed_allocs()
        self._inner: dict[str, int] = self._loops_by_record()
        self.roots: dict[str, DumpBuffer] = {}
        """DumpBuffer by the name of its storage."""
        self._root_name: dict[str, str] = {}
        for key, record in self._records.items():
            self._add_root(key, record, rows[key])
        self.order = tuple(self.roots)

    def require(self, ref: Cursor) -> None:
        """Refuse a reference to an operation that the dump does not list."""
        if ref.value not in self._records:
            raise ref.fail(f"is {ref.value!r}", "expected a key of `ops`")

    def loop_of(self, ref: Cursor) -> int:
        """The loop that an scf.for record stands for."""
        if ref.value not in self._inner:
            raise ref.fail("is a super node", "expected an scf.for whose body is among `ops`")
        return self._inner[ref.text()]

    def result_type(self, ref: str) -> TileType | None:
        """Type of an operation's first result."""
        types = self._records[ref].types
        return parse_type(types[0]) if types else None

    def home(self, ref: str) -> str | None:
        """The buffer an operation's result lives in, through views."""
        return self._root({"op": ref})

    def accesses(self, ref: str, loop: int, inner: int | None) -> Accesses:
        """What one node of loop `loop` reads and writes; a super node, what its body does."""
        return self._direct(ref) if inner is None else self._inside(inner, loop)

    # How the records hang together --------------------------------------------------------

    def _loads_that_feed_allocs(self) -> dict[str, str]:
        """Load to the alloc it feeds: one storage, named by the alloc."""
        fed: dict[str, str] = {}
        for key, record in self._records.items():
            if record.row.allocates and record.operands:
                source = record.operands[0].get("op")
                if source in self._records and self._records[source].row.lands is not None:
                    fed.setdefault(cast("str", source), key)
        return fed

    def _loops_by_record(self) -> dict[str, int]:
        """scf.for record to its loop: its body's yield stands just before it."""
        inner: dict[str, int] = {}
        body_of_last_yield = ""
        for key, record in self._records.items():
            if record.kind == "scf.yield":
                body_of_last_yield = record.scope
            elif record.kind == "scf.for" and body_of_last_yield != record.scope:
                match = re.fullmatch(r"loop:(\d+)", body_of_last_yield)
                if match:
                    inner[key] = int(match[1])
        return inner

    def _add_root(self, key: str, record: _Record, row: Cursor) -> None:
        is_load = record.row.lands is not None and key not in self._fed
        if not (is_load or record.row.allocates) or not record.types:
            return
        type = parse_type(record.types[0])
        if type is None:
            return
        space = _space_of(record, row)
        name = f"{space}_{len(self.roots)}"
        self.roots[name] = DumpBuffer(space, type, record.scope)
        self._root_name[key] = name

    def _root(self, operand: dict[str, Any]) -> str | None:
        key = operand.get("op")
        while key in self._records:
            record = self._records[key]
            key = self._fed.get(key, key)
            if key in self._root_name:
                result = operand.get("result", 0)
                return self._root_name[key] if result == 0 else None
            if not record.row.renames_buffers or not record.operands:
                return None
            operand = record.operands[0]
            key = operand.get("op")
        return None

    # Who touches what ---------------------------------------------------------------------

    def _direct(self, ref: str) -> Accesses:
        record = self._records[ref]
        accesses = Accesses()
        row = record.row
        if row.renames_buffers or record.kind in ("scf.yield", "scf.for"):
            return accesses
        own = self._root({"op": ref})
        if row.allocates:
            filled_here = bool(record.operands) and not self._is_fed(ref)
            if own is not None and filled_here:
                accesses.writes.add(own)
        elif row.lands is not None and own is not None:
            accesses.writes.add(own)
        for position, operand in enumerate(record.operands):
            root = self._root(operand)
            if root is None or (row.allocates and root == own):
                continue
            if position == row.destination:
                accesses.writes.add(root)
            elif position == row.accumulator:
                accesses.writes.add(root)
                if self._accumulates(record) is not False:
                    accesses.reads.add(root)
            else:
                accesses.reads.add(root)
        return accesses

    def _is_fed(self, alloc: str) -> bool:
        return alloc in self._fed.values()

    def _inside(self, inner: int, outer: int) -> Accesses:
        """The accesses of a whole inner loop, seen from outside."""
        total = Accesses()
        overwritten: set[str] = set()
        for key, record in self._records.items():
            if not self._within(record.scope, inner, outer):
                continue
            mine = self._direct(key)
            place = record.row.accumulator
            if place is not None and self._accumulates(record, inner) is False:
                accumulator = self._root(record.operands[place])
                mine.reads.discard(cast("str", accumulator))
            total.reads |= mine.reads - overwritten
            total.writes |= mine.writes
            overwritten |= mine.writes - mine.reads
        # What is allocated inside is its own affair: filled and read in place.
        own = {r for r in total.writes if self._within(self.roots[r].scope, inner, outer)}
        total.reads |= own
        return total

    def _within(self, scope: str, inner: int, outer: int) -> bool:
        """Whether a scope is loop `inner` or nested in it."""
        while scope not in (f"loop:{inner}", f"loop:{outer}", "function"):
            owners = [key for key, loop in self._inner.items() if scope == f"loop:{loop}"]
            if not owners:
                return False
            scope = self._records[owners[0]].scope
        return scope == f"loop:{inner}"

    def _accumulates(self, record: _Record, entering: int | None = None) -> bool | None:
        """Whether a product adds to its accumulator; None: it cannot be told.

        With `entering`, whether it does in the first iteration of that loop.
        """
        place = record.row.accumulator
        if place is None or len(record.segments) < place + 2:
            return None
        position = sum(record.segments[: place + 2])  # a token stands between sum and flag
        if position >= len(record.operands):
            return None
        flag = record.operands[position]
        if "const" in flag:
            return bool(flag["const"])
        carried = flag.get("iter_arg")
        if entering is None or not isinstance(carried, dict):
            return None
        place = cast("dict[str, Any]", carried)
        if place.get("loop") != entering:
            return None
        owner = next((k for k, loop in self._inner.items() if loop == entering), None)
        inits = self._records[owner].operands[FIRST_INIT:] if owner else ()
        index = place.get("idx")
        if isinstance(index, int) and 0 <= index < len(inits) and "const" in inits[index]:
            return bool(inits[index]["const"])
        return None


def _record(row: Cursor) -> _Record:
    operands: list[dict[str, Any]] = []
    for operand in row.get("operands").items():
        operands.append(operand.table())
    segments: tuple[int, ...] = ()
    if row.has("attributes") and row.get("attributes").has("operandSegmentSizes"):
        sizes = row.get("attributes").get("operandSegmentSizes")
        segments = tuple(item.natural() for item in sizes.items())
    return _Record(
        kind=row.get("kind").text(),
        scope=row.get("scope").text(),
        operands=tuple(operands),
        types=tuple(item.text() for item in row.get("result_types").items()),
        segments=segments,
    )
