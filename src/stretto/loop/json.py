"""Loops as JSON (`stretto.loop/1`), exactly: what is written reads back equal.

    {"schema": "stretto.loop/1", "name": "gemm", "ops": [{"name": "load", "kind": ...}, ...]}

Fields at their default are left out. The published schema is `loop.schema.json` beside this
module; reading here says the same with the path of the fault.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, cast

from stretto.document import Cursor, each, one_of, unknown_schema
from stretto.loop.loop import Loop
from stretto.loop.parts import (
    DEPENDENCE_KINDS,
    Access,
    Constraint,
    Demand,
    Dependence,
    Facts,
    Op,
    Operand,
    Storage,
    TileType,
    Use,
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
        slots=top.opt("slots", _names, ()),
        force_serial=top.opt("force_serial", Cursor.boolean, False),
    )
    top.done()
    return loop


_names = each(Cursor.text)


def _value(row: Cursor) -> Value:
    text = Cursor.text
    return row.record(Value, "name", name=text, type=_tile, storage=text, view_of=text)


def _tile(cursor: Cursor) -> TileType:
    try:
        return TileType.parse(cursor.text())
    except ValueError as error:
        raise cursor.fail(str(error)) from None


def _storage(row: Cursor) -> Storage:
    return row.record(
        Storage,
        "name space bytes",
        name=Cursor.text,
        space=lambda c: SPACES[c.choice(tuple(SPACES))].name,
        bytes=Cursor.positive,
        fixed=Cursor.boolean,
        depth=Cursor.positive,
    )


def read_op(row: Cursor) -> Op:
    """An operation."""
    return row.record(
        Op,
        "name kind",
        name=Cursor.text,
        kind=Cursor.text,
        operands=each(_operand),
        results=_names,
        reads=each(_access),
        writes=_names,
        uses=each(read_use),
        demands=each(_demand),
        latency=Cursor.natural,
        encoding=Cursor.text,
        facts=_facts,
        constraint=_constraint,
        agent=Cursor.text,
        parent=Cursor.text,
    )


def _operand(row: Cursor) -> Operand:
    natural = Cursor.natural
    return row.record(Operand, "value", value=Cursor.text, distance=natural, latency=natural)


def _access(row: Cursor) -> Access:
    return row.record(Access, "storage", storage=Cursor.text, distance=Cursor.natural)


def read_use(row: Cursor) -> Use:
    """A use, in a loop or in a schedule of it."""
    return row.record(
        Use,
        "slot duration",
        slot=Cursor.text,
        duration=Cursor.natural,
        offset=Cursor.natural,
        occupancy=Cursor.natural,
    )


def _demand(row: Cursor) -> Demand:
    return row.record(Demand, "pool units", pool=Cursor.text, units=Cursor.natural)


def _facts(row: Cursor) -> Facts:
    return row.record(
        Facts,
        "",
        contiguity=Cursor.positive,
        divisibility=Cursor.positive,
        constancy=Cursor.positive,
        bounds=_bounds,
        buffer=one_of(*BUFFERS),
        bank=Cursor.natural,
        bank_width=Cursor.natural,
        bank_pairs=Cursor.natural,
        bytes=Cursor.natural,
        accumulates=Cursor.boolean,
        scratch=Cursor.natural,
        memory_range=_bounds,
        cluster=Cursor.boolean,
        tag=Cursor.natural,
    )


def _bounds(cursor: Cursor) -> tuple[int, int]:
    ends = [item.integer() for item in cursor.items()]
    if len(ends) != 2 or ends[0] > ends[1]:
        raise cursor.fail(f"is {ends}", "expected [least, greatest]")
    return ends[0], ends[1]


def _constraint(row: Cursor) -> Constraint:
    natural = Cursor.natural
    return row.record(
        Constraint,
        "",
        gid=natural,
        leader_gid=natural,
        stage_offset=natural,
        max_depth=natural,
        pending=Cursor.boolean,
        same_depth=natural,
        structural=natural,
        start=natural,
        stage=natural,
        cycle=natural,
        before=lambda names: tuple(item.text() for item in names.items()),
    )


def _dependence(row: Cursor) -> Dependence:
    return row.record(
        Dependence,
        "src dst latency",
        src=Cursor.text,
        dst=Cursor.text,
        latency=Cursor.natural,
        distance=Cursor.natural,
        kind=one_of(*DEPENDENCE_KINDS),
        via=Cursor.text,
    )
