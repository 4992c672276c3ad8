"""Operations as comma-separated values, one row each, for spreadsheets and data frames.

loop,machine,ii_cycles,op,kind,agent,start_cycles,stage,cycle,order,...
attention_forward,b200-pipes,1325,qk,async.tcgen05_mma,mma,849,0,849,4,...

A column's name says its unit. A loop without a schedule has no rows; the others stand.
"""

from __future__ import annotations

import csv
import io
from typing import Any

COLUMNS: tuple[str, ...] = (
    "loop",
    "machine",
    "ii_cycles",
    "op",
    "kind",
    "agent",
    "start_cycles",
    "stage",
    "cycle",
    "order",
    "latency_cycles",
    "completion_cycles",
    "slots_held_cycles",
    "slack_earlier_cycles",
    "slack_later_cycles",
    "file",
    "line",
)


def to_csv(document: dict[str, Any]) -> str:
    """All operations of all loops of a document."""
    out = io.StringIO()
    sheet = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    sheet.writeheader()
    for entry in document["loops"]:
        if entry["success"]:
            sheet.writerows(_row(entry, op) for op in entry["ops"])
    return out.getvalue()


def _row(entry: dict[str, Any], op: dict[str, Any]) -> dict[str, Any]:
    place = op["location"] or {"file": "", "line": ""}
    held = (f"{use['slot']}:{use['duration']}" for use in op["uses"] if use["duration"])
    return {
        "loop": entry["name"],
        "machine": entry["machine"],
        "ii_cycles": entry["ii"],
        "op": op["name"],
        "kind": op["kind"],
        "agent": op["agent"],
        "start_cycles": op["start"],
        "stage": op["stage"],
        "cycle": op["cycle"],
        "order": op["order"],
        "latency_cycles": op["latency"],
        "completion_cycles": op["completion"],
        "slots_held_cycles": " ".join(held),
        "slack_earlier_cycles": op["slack"]["earlier"],
        "slack_later_cycles": op["slack"]["later"],
        "file": place["file"],
        "line": place["line"],
    }
