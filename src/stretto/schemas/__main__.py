"""`python -m stretto.schemas`: writes the published JSON Schema of each document anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from stretto.schemas import DOCUMENTS, json_schema

WIDTH = 100
"""Columns of a line, more or less."""
ROOT = Path(__file__).parents[1]
BESIDE = {"loop": "loop", "schedule": "solution", "remarks": "ir"}
"""The packages that read or write a document; reports have theirs in one folder."""


def path_of(name: str) -> Path:
    """Where the schema of a document stands."""
    return ROOT / BESIDE.get(name, "report/schemas") / f"{name}.schema.json"


def text_of(name: str) -> str:
    """The schema as a text."""
    return _laid_out(json_schema(name), 0) + "\n"


def _laid_out(value: Any, indent: int) -> str:
    """JSON in which what fits a line stands on one."""
    plain = json.dumps(value, ensure_ascii=False)
    if len(plain) <= WIDTH - indent or not isinstance(value, dict | list):
        return plain
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        rows = [f"{json.dumps(key)}: {_laid_out(one, indent + 1)}" for key, one in table.items()]
    else:
        rows = [_laid_out(one, indent + 1) for one in cast("list[Any]", value)]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    inner = (",\n" + " " * (indent + 1)).join(rows)
    return f"{opened}\n{' ' * (indent + 1)}{inner}\n{' ' * indent}{closed}"


if __name__ == "__main__":
    for document in DOCUMENTS:
        path_of(document).write_text(text_of(document), encoding="utf-8")
