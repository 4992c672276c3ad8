"""Loops in JSON: recognized by what stands in the document, not by a name.

{"schema": "stretto.loop/1", ...}            a loop
{"schema_version": "ddg-0.1", ...}           a dependence-graph dump: several loops
"""

from __future__ import annotations

from stretto.document import parse_json, unknown_schema
from stretto.errors import DocumentError
from stretto.frontends import Source
from stretto.frontends.ddg import SCHEMA_VERSION, read_ddg
from stretto.loop.json import SCHEMA, read_loop

FORMATS = (
    f'expected MLIR, a kernel (.ttir, .tileirbc), a loop ("schema": "{SCHEMA}") '
    f'or a dump ("schema_version": "{SCHEMA_VERSION}")'
)


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
        return Source(file, (read_loop(top).in_file(file),))
    raise top.fail("is no loop that Stretto knows", FORMATS)
