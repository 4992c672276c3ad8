"""Loops from texts, as tests read them."""

from __future__ import annotations

from stretto.document import parse_json
from stretto.loop import Loop
from stretto.loop.json import read_loop


def parse_loop(file: str, text: str) -> Loop:
    """The loop a JSON text describes."""
    return read_loop(parse_json(file, text))
