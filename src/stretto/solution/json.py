"""Schedules as JSON (`stretto.schedule/1`), written. `reading.py` is the way back.

    {"schema": "stretto.schedule/1", "success": true, "loops": [
       {"name": "gemm", "ii": 15, "ops": [{"name": "load", "start": 0}, ...]}]}

The published schema is `schedule.schema.json` beside this module.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from stretto.loop import Loop, Use
from stretto.loop.places import texts
from stretto.machine import Machine
from stretto.solution.types import (
    BOUND_NAMES,
    Bounds,
    Placement,
    Proof,
    Refusal,
    ScheduleAnalysis,
    Witness,
)

T = TypeVar("T")

_USE = tuple(f.name for f in fields(Use))

SCHEMA = "stretto.schedule/1"


# Writing ----------------------------------------------------------------------------------


def document(
    entries: Iterable[tuple[ScheduleAnalysis, Loop, Machine]], *, error: str = ""
) -> dict[str, Any]:
    """The whole document; `error` says why there are no analyses, or not all."""
    rows = list(entries)
    top: dict[str, Any] = {
        "schema": SCHEMA,
        "success": not error and all(analysis.success for analysis, _, _ in rows),
        "loops": [analysis_to_json(*row) for row in rows],
    }
    if error:
        top["error"] = error
    return top


def dump_document(top: Mapping[str, Any]) -> str:
    """The document as text."""
    return json.dumps(top, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


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
        "refused": [_refusal_to_json(row) for row in analysis.refused],
        "warnings": texts(analysis.warnings),
        "seconds": analysis.seconds,
    }


def bounds_to_json(bounds: Bounds) -> dict[str, Any]:
    """The four bounds, the largest of them, and why each holds."""
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
