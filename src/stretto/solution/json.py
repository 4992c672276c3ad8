"""Schedules as JSON (`stretto.schedule/1`), written and read: what is written reads back equal.

    {"schema": "stretto.schedule/1", "success": true, "loops": [
       {"name": "gemm", "ii": 15, "ops": [{"name": "load", "start": 0}, ...]}]}

The published schema is `schedule.schema.json` beside this module. Only names, starts and the II are
required, so that a schedule may be written by hand. Stage and order then follow from the starts,
for which the loop must be at hand. What a schedule says of its bounds and of the loop's operations
must agree with itself and with the loop; whether the schedule is legal is the verifier's to say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import partial
from typing import Any, TypeVar, cast

from stretto.document import Cursor, each, nullable, one_of, parse_json, reader, unknown_schema
from stretto.loop import SPACES, Loop, Note, Op, Place, Use, texts
from stretto.machine import Machine
from stretto.solution import (
    BOUND_NAMES,
    SCHEMA,
    WITNESS_KINDS,
    Bounds,
    Objective,
    Part,
    Placement,
    Pressure,
    Proof,
    Refusal,
    ScheduleAnalysis,
    SpaceUse,
    StorageUse,
    TableRow,
    Witness,
    WitnessKind,
    views,
)

_USE = tuple(f.name for f in fields(Use))

DERIVED = (
    "machine_digest",
    "machine_why",
    "unit",
    "options",
    "spills",
    "prediction",
    "slots",
    "pools",
    "dependences",
    "occupancy",
    "program",
    "remedies",
    "ties",
    "measured",
)
"""What a whole report says besides; it follows from the rest, so nobody reads it."""
DERIVED_OF_OPS = ("latency", "completion", "agent", "slack", "bound_by", "location")
DERIVED_OF_STORAGES = ("fixed", "begin", "writers", "readers")


# Writing ----------------------------------------------------------------------------------


def analysis_to_json(analysis: ScheduleAnalysis, loop: Loop, machine: Machine) -> dict[str, Any]:
    """One entry of `loops`."""
    return {
        "name": analysis.loop,
        "machine": analysis.machine or machine.name,
        "generator": analysis.generator,
        "rule": analysis.rule,
        "success": analysis.success,
        "ii": analysis.ii,
        "bounds": None if analysis.bounds is None else bounds_to_json(analysis.bounds),
        "stage_count": analysis.stage_count,
        "pipeline_depth": analysis.pipeline_depth,
        "proof": None if analysis.proof is None else _proof_to_json(analysis.proof),
        "ops": [_placed_to_json(p, analysis, loop) for p in analysis.placements],
        "storages": [asdict(row) for row in analysis.storages],
        "memory": {row.space: {"used": row.used, "budget": row.budget} for row in analysis.memory},
        "pressure": None if analysis.pressure is None else asdict(analysis.pressure),
        "spilled": analysis.spilled,
        "table": [row_to_json(row) for row in analysis.table],
        "refused": [_refusal_to_json(row) for row in analysis.refused],
        "warnings": texts(analysis.warnings),
        "seconds": analysis.seconds,
    }


def bounds_to_json(bounds: Bounds) -> dict[str, Any]:
    """The five bounds, the largest of them, and why each holds."""
    return {
        **{name: bounds[name].bound for name in BOUND_NAMES},
        "mii": bounds.mii,
        "limiter": bounds.limiter,
        "witness": _witness_to_json(bounds.witness),
        "witnesses": {name: _witness_to_json(bounds[name]) for name in BOUND_NAMES},
    }


def _witness_to_json(witness: Witness) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": witness.kind, "limit": witness.limit}
    if witness.slot_id is not None:
        row["slot_id"] = witness.slot_id
    row |= {"total": witness.total, "capacity": witness.capacity, "bound": witness.bound}
    row["parts"] = [asdict(part) | {"ops": list(part.ops)} for part in witness.parts]
    return row


def _proof_to_json(proof: Proof) -> dict[str, Any]:
    return asdict(proof) | {"objectives": [asdict(row) for row in proof.objectives]}


def row_to_json(row: TableRow) -> dict[str, Any]:
    """Cycles of the reservation table; words in hexadecimal, since 64 bits are no JSON number."""
    return {
        "cycle": row.cycle,
        "cycles": row.cycles,
        **({} if row.word is None else {"word": f"{row.word:#x}"}),
        "held": dict(row.held),
        "drawn": dict(row.drawn),
    }


def _refusal_to_json(refusal: Refusal) -> dict[str, Any]:
    """The II and why; of the rest, what is known."""
    row: dict[str, Any] = {
        field.name: value
        for field in fields(refusal)
        if (value := getattr(refusal, field.name)) != field.default
    }
    if refusal.uses:
        row["uses"] = [asdict(use) for use in refusal.uses]
    if refusal.rows:
        row["rows"] = [list(pair) for pair in refusal.rows]
    for key in ("window", "group"):
        if key in row:
            row[key] = list(row[key])
    return row


def _placed_to_json(placed: Placement, analysis: ScheduleAnalysis, loop: Loop) -> dict[str, Any]:
    row: dict[str, Any] = {"name": placed.op}
    op = loop.op(placed.op) if placed.op in loop.index else None
    if op is not None:
        row["kind"] = op.kind
    row |= {"start": placed.start, "stage": placed.stage}
    if placed.cycle is not None:
        row["cycle"] = placed.cycle
    row["order"] = placed.order
    if op is not None and op.uses is not None:
        row["uses"] = [{name: getattr(use, name) for name in _USE} for use in op.uses]
    group = next((members for members in analysis.fused if placed.op in members), ())
    row |= {"rung": placed.rung, "arm": placed.arm}
    row["fused_with"] = [name for name in group if name != placed.op]
    return row


T = TypeVar("T")


def parse_schedules(
    file: str, text: str, loops: Mapping[str, Loop] | None = None
) -> tuple[ScheduleAnalysis, ...]:
    """The analyses a JSON text holds; `loops` by name, to fill in orders it leaves out."""
    top = parse_json(file, text)
    schema = top.get("schema")
    if schema.value != SCHEMA:
        raise unknown_schema(schema, f'expected "{SCHEMA}"')
    top.opt("success", Cursor.boolean, True)
    top.opt("error", Cursor.text, "")
    top.pass_over("version", "source")
    found = tuple(read_schedule(row, loops or {}) for row in top.get("loops").items())
    top.done()
    return found


def read_schedule(row: Cursor, loops: Mapping[str, Loop]) -> ScheduleAnalysis:
    """The analysis at a place in a document; `loops` by name, to fill in what it leaves out."""
    name = row.get("name").text()
    success = row.opt("success", Cursor.boolean, True)
    ops = list(row.get("ops").items()) if success or row.has("ops") else []
    if success or ops:
        ii: int | None = row.get("ii").positive()
    else:
        ii = row.opt("ii", nullable(Cursor.positive), None)
    if row.has("errors"):
        _errors(row.get("errors"), success)
    placements: tuple[Placement, ...] = ()
    fused: tuple[tuple[str, ...], ...] = ()
    if ii is not None:
        loop = loops.get(name)
        placements = _placements(ops, name, ii, loop)
        fused = _fused(ops)
    analysis = ScheduleAnalysis(
        loop=name,
        machine=row.opt("machine", _string, ""),
        success=success,
        ii=ii,
        placements=placements,
        fused=fused,
        stage_count=row.opt("stage_count", Cursor.natural, 0),
        pipeline_depth=row.opt("pipeline_depth", Cursor.natural, 0),
        storages=row.opt("storages", each(_storage), ()),
        memory=row.opt("memory", _memory, ()),
        pressure=row.opt("pressure", nullable(_pressure), None),
        table=row.opt("table", each(table_row), ()),
        bounds=row.opt("bounds", nullable(_bounds), None),
        proof=row.opt("proof", nullable(_proof), None),
        generator=row.opt("generator", _string, ""),
        rule=row.opt("rule", _string, ""),
        refused=row.opt("refused", each(_refusal), ()),
        warnings=tuple(Note(Place(name), text) for text in row.opt("warnings", each(_string), ())),
        spilled=row.opt("spilled", Cursor.natural, 0),
        seconds=row.opt("seconds", Cursor.number, 0.0),
    )
    row.pass_over(*DERIVED)
    row.done()
    return analysis


def _errors(cursor: Cursor, success: bool) -> None:
    """Why there is no schedule, for people; nothing of it is kept."""
    if success:
        raise cursor.fail("stands beside a schedule", "only a loop that failed has errors")
    if not each(Cursor.text)(cursor):
        raise cursor.fail("is empty", "say why there is no schedule, or leave it out")


def _pair(read: Callable[[Cursor], T]) -> Callable[[Cursor], tuple[T, T]]:
    def both(cursor: Cursor) -> tuple[T, T]:
        found = each(read)(cursor)
        if len(found) != 2:
            raise cursor.fail(f"has {len(found)} elements", "expected two")
        return found[0], found[1]

    return both


def _string(cursor: Cursor) -> str:
    """A string, which may be empty."""
    if not isinstance(cursor.value, str):
        raise cursor.fail(f"is {json.dumps(cursor.value)}", "expected a string")
    return cursor.value


def _agree(cursor: Cursor, value: object, why: str) -> None:
    """A field that follows from others says what they say."""
    if type(cursor.value) is not type(value) or cursor.value != value:
        raise cursor.fail(f"is {json.dumps(cursor.value)}", f"{why} {json.dumps(value)}")


# Operations -------------------------------------------------------------------------------


def _placements(rows: list[Cursor], name: str, ii: int, loop: Loop | None) -> tuple[Placement, ...]:
    starts = {row.get("name").text(): row.get("start").integer() for row in rows}
    derived: dict[str, int] = {}
    if not all(row.has("order") for row in rows):
        derived = _orders(rows, name, ii, starts, loop)
    found = [_placement(row, ii, derived, loop) for row in rows]
    if loop is not None:
        last = len(loop.ops)
        found.sort(key=lambda placed: loop.index.get(placed.op, last))
    return tuple(found)


def _orders(
    rows: list[Cursor], name: str, ii: int, starts: dict[str, int], loop: Loop | None
) -> dict[str, int]:
    """Orders, derived as for any schedule; for a schedule of other operations, as they come."""
    if loop is None or not loop.resolved:
        first = next(row for row in rows if not row.has("order"))
        state = "not given" if loop is None else "not classified"
        missing = Cursor(first.file, f"{first.path}.order", None)
        raise missing.fail("is missing", f"it follows from the loop, but `{name}` is {state}")
    if starts.keys() == loop.index.keys():
        return {placed.op: placed.order for placed in views.placements(loop, ii, starts)}
    return {op: rank for rank, op in enumerate(sorted(starts, key=lambda op: starts[op]))}


def _placement(row: Cursor, ii: int, derived: dict[str, int], loop: Loop | None) -> Placement:
    name = row.get("name").text()
    start = row.get("start").integer()
    kind = row.opt("kind", Cursor.text, None)
    uses = row.opt("uses", each(reader(Use)), None)
    if loop is not None and name in loop.index:
        _same_op(row, loop.op(name), kind, uses)
    placement = Placement(
        op=name,
        start=start,
        stage=row.opt("stage", Cursor.integer, start // ii),
        order=row.get("order").natural() if row.has("order") else derived[name],
        rung=row.opt("rung", _string, ""),
        arm=row.opt("arm", _string, ""),
        cycle=row.opt("cycle", Cursor.natural, start % ii),
    )
    row.opt("fused_with", each(Cursor.text), ())
    row.pass_over(*DERIVED_OF_OPS)
    row.done()
    return placement


def _same_op(row: Cursor, op: Op, kind: str | None, uses: tuple[Use, ...] | None) -> None:
    """What a schedule says of an operation is what the loop says: else it is another's."""
    if kind is not None:
        _agree(row.get("kind"), op.kind, "the loop has")
    if uses is not None and op.uses is not None and uses != op.uses:
        holds = ", ".join(f"{use.slot} {use.duration}" for use in op.uses) or "nothing"
        raise row.get("uses").fail("differs from the loop", f"`{op.name}` holds {holds} there")


def _fused(rows: list[Cursor]) -> tuple[tuple[str, ...], ...]:
    """Groups, members and groups in the order of the operations; all members agree on theirs."""
    others: dict[str, tuple[str, ...]] = {}
    for row in rows:
        others[row.get("name").text()] = row.opt("fused_with", each(Cursor.text), ())
    for row in rows:
        name = row.get("name").text()
        group = {name, *others[name]}
        for other in others[name]:
            if other == name or {other, *others.get(other, ())} != group:
                hint = "every member of a fused group lists all the others"
                raise row.get("fused_with").fail(f"names `{other}`, which does not agree", hint)
    groups = {name: tuple(n for n in others if n in {name, *others[name]}) for name in others}
    return tuple(dict.fromkeys(group for group in groups.values() if len(group) > 1))


# The rest of an entry ---------------------------------------------------------------------


_read_storage = reader(StorageUse, space=one_of(*SPACES))


def _storage(row: Cursor) -> StorageUse:
    row.pass_over(*DERIVED_OF_STORAGES)
    return _read_storage(row)


def _memory(table: Cursor) -> tuple[SpaceUse, ...]:
    rows: list[SpaceUse] = []
    for space, row in table.entries():
        if space not in SPACES:
            raise row.fail("unknown memory space", "expected one of " + ", ".join(SPACES))
        unlimited = partial(SpaceUse, space, budget=None)
        natural = Cursor.natural
        rows.append(row.record(unlimited, "used", budget=nullable(natural), used=natural))
    return tuple(rows)


def _pressure(row: Cursor) -> Pressure:
    natural = Cursor.natural
    unlimited = partial(Pressure, budget=None)
    budget = nullable(natural)
    return row.record(unlimited, "peak cycle", peak=natural, budget=budget, cycle=natural)


def table_row(row: Cursor) -> TableRow:
    """A row of a published reservation table."""
    natural = Cursor.natural
    return row.record(
        partial(TableRow, word=None),
        "cycle cycles",
        cycle=natural,
        cycles=Cursor.positive,
        word=_word,
        held=_amounts,
        drawn=_amounts,
    )


def _amounts(table: Cursor) -> tuple[tuple[str, int], ...]:
    return tuple((name, amount.natural()) for name, amount in table.entries())


def _word(cursor: Cursor) -> int:
    text = cursor.text()
    digits = text.removeprefix("0x")
    if digits == text or not digits or len(digits) > 16 or digits.strip("0123456789abcdef"):
        raise cursor.fail(f"is {json.dumps(text)}", 'expected up to 64 bits, such as "0x8800"')
    return int(digits, 16)


_objective = reader(Objective, value=Cursor.integer, lower_bound=Cursor.integer)
_proof = reader(Proof, lower_bound=Cursor.integer, objectives=each(_objective))
_refusal = reader(
    Refusal,
    ii=Cursor.integer,
    through=Cursor.integer,
    rung=_string,
    op=_string,
    window=_pair(Cursor.integer),
    rows=each(_pair(Cursor.natural)),
    limit=_string,
)
_part = reader(Part, distance=Cursor.integer)


def _bounds(row: Cursor) -> Bounds:
    table = row.get("witnesses")
    known = [name for name in BOUND_NAMES if name != "group" or table.has(name)]  # older lack it
    bounds = Bounds(**{name: _witness(table.get(name)) for name in known})
    table.done()
    derived = {name: bounds[name].bound for name in BOUND_NAMES}
    for name, value in (*derived.items(), ("mii", bounds.mii), ("limiter", bounds.limiter)):
        if row.has(name):
            _agree(row.get(name), value, "its witnesses say")
    if row.has("witness") and _witness(row.get("witness")) != bounds.witness:
        raise row.get("witness").fail("is not the witness of the limiter", bounds.limiter)
    row.done()
    return bounds


def _witness(row: Cursor) -> Witness:
    witness = Witness(
        kind=cast("WitnessKind", row.get("kind").choice(WITNESS_KINDS)),
        limit=row.opt("limit", _string, ""),
        total=row.get("total").natural(),
        capacity=row.get("capacity").positive(),
        parts=row.opt("parts", each(_part), ()),
        slot_id=row.opt("slot_id", Cursor.positive, None),
    )
    if row.has("bound"):
        _agree(row.get("bound"), witness.bound, "total over capacity is")
    row.done()
    return witness
