"""A schedule to look at: one page, offline, with the whole document in it.

    viewer.html  ──►  page(document)  ──►  one file that any browser opens
    built from viewer/ and shipped         nothing is fetched, nothing is sent

The page shows what the document says and works nothing out. Names come from files, so the document
is written in such a way that no name can end its place in the page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

PLACE = "@report@"
"""Where the document stands in the page."""

_UNSAFE = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
"""What HTML might read inside a script; JSON has another way to write it."""


def page(document: Mapping[str, Any]) -> str:
    """The page of a schedule document (`stretto.schedule/1`), its source's text with it."""
    before, after = template().split(PLACE)
    return before + json.dumps(document, separators=(",", ":")).translate(_UNSAFE) + after


def template() -> str:
    """The page without a document, as it is built from viewer/."""
    return files("stretto.report").joinpath("viewer.html").read_text(encoding="utf-8")
