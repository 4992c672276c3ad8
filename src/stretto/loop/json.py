"""Loops as JSON (`stretto.loop/1`), exactly: what is written reads back equal.

    {"schema": "stretto.loop/1", "name": "gemm", "ops": [{"name": "load", "kind": ...}, ...]}

Fields at their default are left out. The published schema is `loop.schema.json` beside this
module; reading here says the same with the path of the fault.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, cast

from stretto.document import Cursor, each, one_of, reader, unknown_schema
from stretto.loop.loop import Loop
from stretto.loop.parts import (
    Dependence,
    Facts,
    Op,
    Storage,
    TileType,
    Value,
)
from stretto.ops.spaces import BUFFERS, SPACES

SCHEMA = "stretto.loop/1"


# Writing ----------------------------------------------------------------------------------


def loop_to_json(loop: Loop) -> dict[str, Any]:
    """The document of a loop."""
    document: dict[str, Any] = {"schema": SCHEMA, "name": loop.name}
    if loop.machine is not None:
        document["machine"] = loop.machine
    if loop.slots:
        document["slots"] = list(loop.slots)
    if loop.force_serial:
        document["force_serial"] = True
    for key, rows in (
        ("values", loop.values),
        ("storages", loop.storages),
        ("ops", loop.ops),
        ("dependences", loop.stated),
    ):
        if rows or key == "ops":
            document[key] = [part_to_json(row) for row in rows]
    return document


def dump_loop(loop: Loop) -> str:
    """The document as text, one value, storage, operation or dependence a line."""
    parts: list[str] = []
    for key, value in loop_to_json(loop).items():
        rows = cast("list[Any]", value) if isinstance(value, list) else []
        if rows and isinstance(rows[0], dict):
            lines = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in rows)
            parts.append(f"  {json.dumps(key)}: [\n{lines}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def part_to_json(row: Any) -> Any:
    """A part of a loop as JSON, or what an operation has: without fields at their default."""
    document: dict[str, Any] = {}
    for f in fields(row):
        if not f.compare:  # no part of what it is
            continue
        value = getattr(row, f.name)
        if value == (f.default if f.default_factory is MISSING else f.default_factory()):
            continue
        if isinstance(value, TileType):
            value = str(value)
        elif isinstance(value, tuple):
            items = cast("tuple[Any, ...]", value)
            value = [part_to_json(item) if is_dataclass(item) else item for item in items]
        elif is_dataclass(value):
            value = part_to_json(value)
        document[f.name] = value
    return document


# Reading ----------------------------------------------------------------------------------


def read_loop(top: Cursor) -> Loop:
    """The loop at a place in a document."""
    schema = top.get("schema")
    if schema.value != SCHEMA:
        raise unknown_schema(schema, f'expected "{SCHEMA}"')
    loop = Loop(
        name=top.get("name").text(),
        ops=each(read_op)(top.get("ops")),
        values=top.opt("values", each(_value), ()),
        storages=top.opt("storages", each(_storage), ()),
        stated=top.opt("dependences", each(_dependence), ()),
        machine=top.opt("machine", Cursor.text, None),
        slots=top.opt("slots", each(Cursor.text), ()),
        force_serial=top.opt("force_serial", Cursor.boolean, False),
    )
    top.done()
    return loop


def _tile(cursor: Cursor) -> TileType:
    try:
        return TileType.parse(cursor.text())
    except ValueError as error:
        raise cursor.fail(str(error)) from None


def _bounds(cursor: Cursor) -> tuple[int, int]:
    ends = [item.integer() for item in cursor.items()]
    if len(ends) != 2 or ends[0] > ends[1]:
        raise cursor.fail(f"is {ends}", "expected [least, greatest]")
    return ends[0], ends[1]


_facts = reader(
    Facts,
    contiguity=Cursor.positive,
    divisibility=Cursor.positive,
    constancy=Cursor.positive,
    bounds=_bounds,
    buffer=one_of(*BUFFERS),
    memory_range=_bounds,
)
_storage = reader(
    Storage,
    space=lambda cursor: SPACES[cursor.choice(tuple(SPACES))].name,
    bytes=Cursor.positive,
    depth=Cursor.positive,
)
_value = reader(Value, type=_tile)
_dependence = reader(Dependence)
read_op = reader(Op, facts=_facts)
"""Reads an operation."""
