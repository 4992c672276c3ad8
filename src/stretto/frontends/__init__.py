"""The Python builder, and other people's formats: recognized by their content, not by a name.

{"schema": "stretto.loop/1", ...}            a loop
{"schema_version": "ddg-0.1", ...}           a dependence-graph dump: several loops
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stretto.document import parse_json, unknown_schema
from stretto.errors import DocumentError, listed
from stretto.frontends.builder import LoopBuilder, Ref, build
from stretto.frontends.ddg import SCHEMA_VERSION, read_ddg
from stretto.loop import Loop, Note
from stretto.loop.json import SCHEMA, loop_of_file, read_loop

__all__ = ["LoopBuilder", "Ref", "Source", "build", "read_source"]

FORMATS = (
    f'expected MLIR, a loop ("schema": "{SCHEMA}") or a dump ("schema_version": "{SCHEMA_VERSION}")'
)


@dataclass(frozen=True, slots=True)
class Source:
    """The loops of one input."""

    file: str
    loops: tuple[Loop, ...]
    notes: tuple[Note, ...] = ()
    """What was noted while it was read, of its loops and of those that were not read."""

    def __iter__(self) -> Iterator[Loop]:
        return iter(self.loops)

    def __len__(self) -> int:
        return len(self.loops)

    def __getitem__(self, which: int | str) -> Loop:
        """A loop by its place or its name."""
        if isinstance(which, int):
            return self.loops[which]
        for loop in self.loops:
            if loop.name == which:
                return loop
        raise KeyError(which)

    def __repr__(self) -> str:
        return f"<Source {self.file}: {listed(loop.name for loop in self.loops)}>"


def read_source(file: str, text: str) -> Source:
    """The loops a text holds; the path of a machine is relative to the folder of `file`."""
    if not text.strip():
        raise DocumentError(file, "", "is empty", FORMATS)
    top = parse_json(file, text)
    if not isinstance(top.value, dict):
        raise top.fail("is no loop", FORMATS)
    if top.has("schema_version"):
        version = top.get("schema_version")
        if version.value != SCHEMA_VERSION:
            raise unknown_schema(version, f'expected "{SCHEMA_VERSION}"')
        loops, notes = read_ddg(top)
        return Source(file, loops, notes)
    if top.has("schema"):
        return Source(file, (loop_of_file(file, read_loop(top)),))
    raise top.fail("is no loop that Stretto knows", FORMATS)
