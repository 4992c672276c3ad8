"""Loops from texts, and schedules to texts, as tests read and write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from stretto.document import parse_json
from stretto.loop import Loop
from stretto.loop.json import read_loop
from stretto.machine import Machine
from stretto.solution import SCHEMA, ScheduleAnalysis
from stretto.solution.json import analysis_to_json


def parse_loop(file: str, text: str) -> Loop:
    """The loop a JSON text describes."""
    return read_loop(parse_json(file, text))


def document(entries: Iterable[tuple[ScheduleAnalysis, Loop, Machine]]) -> dict[str, Any]:
    """A whole document of schedules."""
    rows = list(entries)
    success = all(analysis.success for analysis, _, _ in rows)
    return {"schema": SCHEMA, "success": success, "loops": [analysis_to_json(*r) for r in rows]}


def dump_document(top: Mapping[str, Any]) -> str:
    """The document as text."""
    return json.dumps(top, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
