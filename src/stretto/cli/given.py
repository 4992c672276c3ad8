"""Schedules that somebody made before: entries of a document, or attributes of a module.

stretto verify INPUT SCHEDULE      each loop of INPUT by its entry in SCHEDULE
stretto simulate kernel.mlir       each loop by what stands on it, where something does
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.errors import DocumentError, listed
from stretto.files import read_text

if TYPE_CHECKING:
    from stretto.document import Cursor
    from stretto.frontends import Source
    from stretto.loop import Loop
    from stretto.solution import ScheduleAnalysis


@dataclass(frozen=True, slots=True)
class Document:
    """The schedules of one document, each read when it is asked for."""

    file: str
    entries: dict[str, Cursor]
    """Loop name to its entry."""

    def of(self, loop: Loop) -> ScheduleAnalysis:
        """The schedule of a loop; DocumentError where there is none."""
        from stretto.solution.reading import read_schedule

        if loop.name not in self.entries:
            message, names = f"no schedule of `{loop.name}`", listed(self.entries)
            raise DocumentError(self.file, "$.loops", message, f"has: {names}")
        return read_schedule(self.entries[loop.name], {loop.name: loop})


def read_document(name: str, source: Source) -> Document:
    """The schedules that a file has for the loops of a source."""
    file, text = read_text(name)
    return Document(file, _entries(file, text, source))


def _entries(file: str, text: str, source: Source) -> dict[str, Cursor]:
    """Loop name to the entry of that loop in the schedule document.

    Each is read for itself, when its loop is. An entry of no loop, or a second one, is an error.
    """
    from stretto.document import parse_json
    from stretto.solution.json import SCHEMA
    from stretto.solution.reading import parse_schedules

    expected = f'expected schedules ("schema": "{SCHEMA}")'
    if not text.strip():
        raise DocumentError(file, "", "is empty", expected)
    top = parse_json(file, text)
    if not isinstance(top.value, dict):
        raise top.fail("is no schedule", expected)
    rows = list(top.get("loops").items()) if top.has("loops") else []
    parse_schedules(file, json.dumps({**top.table(), "loops": []}) if rows else text)
    known = dict.fromkeys(loop.name for loop in source.loops)
    entries: dict[str, Cursor] = {}
    for row in rows:
        name = row.get("name").text()
        if name not in known:
            hint = f"the loops of {source.file}: {listed(known)}"
            raise row.fail(f"is of `{name}`, which is no loop of the input", hint)
        if name in entries:
            raise row.fail(f"is a second schedule of `{name}`", f"{entries[name].path} is one")
        entries[name] = row
    return entries
