"""A machine as the text of a machine file: for loops that bring theirs along.

written_machine("model", "", {"mult": 2, "wire": None})

[machine]
name = "model"
pipelining = ["mult", "wire"]
[slots."mult"]
capacity = 2
[slots."wire"]
capacity = "unlimited"
"""

from __future__ import annotations

import json
from collections.abc import Mapping


def written_machine(name: str, title: str, slots: Mapping[str, int | None]) -> str:
    """A machine of slots with their capacities (None: unlimited), all of them worth pipelining."""
    lines = ["[machine]", f"name = {_quoted(name)}"]
    lines += [f"title = {_quoted(title)}"] if title else []
    lines.append(f"pipelining = [{', '.join(map(_quoted, slots))}]")
    for slot, capacity in slots.items():
        told = '"unlimited"' if capacity is None else str(capacity)
        lines += [f"[slots.{_quoted(slot)}]", f"capacity = {told}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML, which is one of JSON but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
