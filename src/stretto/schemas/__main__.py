"""`python -m stretto.schemas`: writes the published JSON Schema of each document anew."""

from __future__ import annotations

import json
from pathlib import Path

from stretto.schemas import DOCUMENTS, json_schema

ROOT = Path(__file__).parents[1]
BESIDE = {"loop": "loop", "schedule": "solution", "remarks": "ir"}
"""The packages that read or write a document; reports have theirs in one folder."""


def path_of(name: str) -> Path:
    """Where the schema of a document stands."""
    return ROOT / BESIDE.get(name, "report/schemas") / f"{name}.schema.json"


def text_of(name: str) -> str:
    """The schema as a text."""
    return json.dumps(json_schema(name), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for document in DOCUMENTS:
        path_of(document).write_text(text_of(document), encoding="utf-8")
