"""Loops as JSON (`stretto.loop/1`), exactly: what is written reads back equal.

    {"schema": "stretto.loop/1", "name": "gemm", "ops": [{"name": "load", "kind": ...}, ...]}

Fields at their default are left out. The published schema is `loop.schema.json` beside this
module; reading here says the same with the path of the fault.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any, cast

from stretto.document import Cursor, parse_json, unknown_schema
from stretto.loop.loop import Loop
from stretto.loop.parts import (
    DEPENDENCE_KINDS,
    Access,
    Constraint,
    Demand,
    Dependence,
    DependenceKind,
    Facts,
    Op,
    Operand,
    Storage,
    TileType,
    Use,
    Value,
)
from stretto.machine import machine_beside
from stretto.vocabulary.spaces import BUFFERS, SPACES

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
            document[key] = [_plain(row) for row in rows]
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


def _plain(row: Any) -> Any:
    """A part of a loop as JSON: its fields without those at their default."""
    document: dict[str, Any] = {}
    blank = _BLANKS[type(row)]
    for f in fields(row):
        value = getattr(row, f.name)
        if f.name not in _REQUIRED[type(row)] and value == getattr(blank, f.name):
            continue
        if isinstance(value, TileType):
            value = str(value)
        elif isinstance(value, tuple):
            items = cast("tuple[Any, ...]", value)
            value = [_plain(item) if type(item) in _BLANKS else item for item in items]
        elif type(value) in _BLANKS:
            value = _plain(value)
        document[f.name] = value
    return document


_BLANKS: dict[type, Any] = {
    Value: Value(""),
    Storage: Storage("", "smem", 0),
    Op: Op("", ""),
    Operand: Operand(""),
    Access: Access(""),
    Use: Use("", 0),
    Demand: Demand("", 0),
    Facts: Facts(),
    Constraint: Constraint(),
    Dependence: Dependence("", "", 0),
}
_REQUIRED: dict[type, tuple[str, ...]] = {
    Value: ("name",),
    Storage: ("name", "space", "bytes"),
    Op: ("name", "kind"),
    Operand: ("value",),
    Access: ("storage",),
    Use: ("slot", "duration"),
    Demand: ("pool", "units"),
    Facts: (),
    Constraint: (),
    Dependence: ("src", "dst", "latency"),
}


# Reading ----------------------------------------------------------------------------------


def parse_loop(file: str, text: str) -> Loop:
    """The loop a JSON text describes."""
    return read_loop(parse_json(file, text))


def loop_of_file(file: str, loop: Loop) -> Loop:
    """A loop as it stands in a file: the path of its machine is relative to that file's folder."""
    if loop.machine is None:
        return loop
    return replace(loop, machine=machine_beside(file, loop.machine))


def read_loop(top: Cursor) -> Loop:
    """The loop at a place in a document."""
    schema = top.get("schema")
    if schema.value != SCHEMA:
        raise unknown_schema(schema, f'expected "{SCHEMA}"')
    loop = Loop(
        name=top.get("name").text(),
        ops=tuple(read_op(c) for c in top.get("ops").items()),
        values=_rows(top, "values", _value),
        storages=_rows(top, "storages", _storage),
        stated=_rows(top, "dependences", _dependence),
        machine=top.opt("machine", Cursor.text, None),
        slots=top.opt("slots", _names, ()),
        force_serial=top.opt("force_serial", Cursor.boolean, False),
    )
    top.done()
    return loop


def _rows(top: Cursor, key: str, read: Any) -> tuple[Any, ...]:
    return top.opt(key, lambda c: tuple(read(item) for item in c.items()), ())


def _names(cursor: Cursor) -> tuple[str, ...]:
    return tuple(item.text() for item in cursor.items())


def _value(row: Cursor) -> Value:
    value = Value(
        name=row.get("name").text(),
        type=row.opt("type", _tile, None),
        storage=row.opt("storage", Cursor.text, None),
        view_of=row.opt("view_of", Cursor.text, None),
    )
    row.done()
    return value


def _tile(cursor: Cursor) -> TileType:
    try:
        return TileType.parse(cursor.text())
    except ValueError as error:
        raise cursor.fail(str(error)) from None


def _storage(row: Cursor) -> Storage:
    storage = Storage(
        name=row.get("name").text(),
        space=SPACES[row.get("space").choice(tuple(SPACES))].name,
        bytes=row.get("bytes").positive(),
        fixed=row.opt("fixed", Cursor.boolean, False),
        depth=row.opt("depth", Cursor.positive, None),
    )
    row.done()
    return storage


def read_op(row: Cursor) -> Op:
    """An operation."""
    op = Op(
        name=row.get("name").text(),
        kind=row.get("kind").text(),
        operands=_rows(row, "operands", _operand),
        results=row.opt("results", _names, ()),
        reads=_rows(row, "reads", _access),
        writes=row.opt("writes", _names, ()),
        uses=row.opt("uses", lambda c: tuple(read_use(item) for item in c.items()), None),
        demands=_rows(row, "demands", _demand),
        latency=row.opt("latency", Cursor.natural, None),
        encoding=row.opt("encoding", Cursor.text, None),
        facts=row.opt("facts", _facts, Facts()),
        constraint=row.opt("constraint", _constraint, Constraint()),
        parent=row.opt("parent", Cursor.text, None),
    )
    row.done()
    return op


def _operand(row: Cursor) -> Operand:
    operand = Operand(
        value=row.get("value").text(),
        distance=row.opt("distance", Cursor.natural, 0),
        latency=row.opt("latency", Cursor.natural, None),
    )
    row.done()
    return operand


def _access(row: Cursor) -> Access:
    access = Access(row.get("storage").text(), row.opt("distance", Cursor.natural, 0))
    row.done()
    return access


def read_use(row: Cursor) -> Use:
    """A use, in a loop or in a schedule of it."""
    use = Use(
        slot=row.get("slot").text(),
        duration=row.get("duration").natural(),
        offset=row.opt("offset", Cursor.natural, 0),
        occupancy=row.opt("occupancy", Cursor.natural, 1),
    )
    row.done()
    return use


def _demand(row: Cursor) -> Demand:
    demand = Demand(row.get("pool").text(), row.get("units").natural())
    row.done()
    return demand


def _facts(row: Cursor) -> Facts:
    facts = Facts(
        contiguity=row.opt("contiguity", Cursor.positive, None),
        divisibility=row.opt("divisibility", Cursor.positive, None),
        constancy=row.opt("constancy", Cursor.positive, None),
        bounds=row.opt("bounds", _bounds, None),
        buffer=row.opt("buffer", lambda c: c.choice(BUFFERS), None),
        bank=row.opt("bank", Cursor.natural, None),
        bank_width=row.opt("bank_width", Cursor.natural, None),
        bank_pairs=row.opt("bank_pairs", Cursor.natural, None),
        bytes=row.opt("bytes", Cursor.natural, None),
        cluster=row.opt("cluster", Cursor.boolean, None),
        tag=row.opt("tag", Cursor.natural, None),
    )
    row.done()
    return facts


def _bounds(cursor: Cursor) -> tuple[int, int]:
    ends = [item.integer() for item in cursor.items()]
    if len(ends) != 2 or ends[0] > ends[1]:
        raise cursor.fail(f"is {ends}", "expected [least, greatest]")
    return ends[0], ends[1]


def _constraint(row: Cursor) -> Constraint:
    constraint = Constraint(
        gid=row.opt("gid", Cursor.natural, None),
        leader_gid=row.opt("leader_gid", Cursor.natural, None),
        max_depth=row.opt("max_depth", Cursor.natural, None),
        pending=row.opt("pending", Cursor.boolean, False),
    )
    row.done()
    return constraint


def _dependence(row: Cursor) -> Dependence:
    dependence = Dependence(
        src=row.get("src").text(),
        dst=row.get("dst").text(),
        latency=row.get("latency").natural(),
        distance=row.opt("distance", Cursor.natural, 0),
        kind=cast("DependenceKind", row.opt("kind", lambda c: c.choice(DEPENDENCE_KINDS), "flow")),
        via=row.opt("via", Cursor.text, ""),
    )
    row.done()
    return dependence
