"""Operations as comma-separated values, one row each, for spreadsheets and data frames.

loop,machine,ii_cycles,op,kind,agent,start_cycles,stage,cycle,order,...
attention_forward,b200-pipes,1325,qk,async.tcgen05_mma,mma,849,0,849,4,...

A column's name says its unit. A loop without a schedule has no rows; the others stand. Names come
from files: one that a spreadsheet would take for a formula is written with an apostrophe before it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

from stretto.machine.machine import CYCLES

TIMES = ("ii", "start", "latency", "completion", "slots_held", "slack_earlier", "slack_later")
"""Columns that are in the unit of the machine."""
COLUMNS: tuple[str, ...] = (
    *("loop", "machine", "ii", "op", "kind", "agent", "start", "stage", "cycle", "order"),
    *("latency", "completion", "slots_held", "slack_earlier", "slack_later", "file", "line"),
)
MIXED = "units"
"""What stands in the place of a unit where loops of one table have different ones."""


def to_csv(document: dict[str, Any]) -> str:
    """All operations of all loops of a document."""
    rows = [
        _row(entry, op) for entry in document["loops"] if entry["success"] for op in entry["ops"]
    ]
    units = {entry["unit"] for entry in document["loops"] if entry["success"]}
    unit = units.pop() if len(units) == 1 else MIXED if units else CYCLES
    head = [f"{column}_{unit}" if column in TIMES else column for column in COLUMNS]
    lines = [record(head), *(record(row[column] for column in COLUMNS) for row in rows)]
    return "".join(lines)


def record(cells: Iterable[object]) -> str:
    """A line of comma-separated values, none of them a formula."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(
        f"'{cell}" if isinstance(cell, str) and _formula(cell) else cell for cell in cells
    )
    return line.getvalue()


def _formula(text: str) -> bool:
    """Whether a spreadsheet would work it out rather than show it."""
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def _row(entry: dict[str, Any], op: dict[str, Any]) -> dict[str, Any]:
    place = op["location"] or {"file": "", "line": ""}
    held = (f"{use['slot']}:{use['duration']}" for use in op["uses"] if use["duration"])
    return {
        "loop": entry["name"],
        "machine": entry["machine"],
        "ii": entry["ii"],
        "op": op["name"],
        "kind": op["kind"],
        "agent": op["agent"],
        "start": op["start"],
        "stage": op["stage"],
        "cycle": op["cycle"],
        "order": op["order"],
        "latency": op["latency"],
        "completion": op["completion"],
        "slots_held": " ".join(held),
        "slack_earlier": op["slack"]["earlier"],
        "slack_later": op["slack"]["later"],
        "file": place["file"],
        "line": place["line"],
    }
