"""The forms in which a document of schedules is written, besides text and JSON.

document ──► csv    a row an operation        svg    a picture
             html   a page to look through    trace  for Perfetto
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from stretto.forms import Form

_VIEWS: dict[Form, tuple[str, str]] = {
    "csv": ("sheet", "to_csv"),
    "html": ("html", "page"),
    "svg": ("svg", "to_svg"),
    "trace": ("trace", "to_trace"),
}
"""Module of this package and its function, from a document to what is written."""

SOURCE_BYTES = 1_000_000
"""A source that is larger is not shown beside its schedule."""


def rendered(document: dict[str, Any], format: Form, text: str = "") -> str | bytes:
    """A document in one of these forms; `text`: what it was made from, for those that show it."""
    module, function = _VIEWS[format]
    if format == "html":
        document = with_source(document, text)
    return getattr(import_module(f"stretto.report.{module}"), function)(document)


def with_source(document: dict[str, Any], text: str) -> dict[str, Any]:
    """The document with the text that its operations come from.

    That is what was read, or the user's own file that it was made from, where that lies beside it.
    """
    file = document.get("source", {}).get("file", "")
    named = [
        op["location"]["file"]
        for entry in document["loops"]
        for op in entry.get("ops", ())
        if op.get("location")
    ]
    if named and file not in named:
        own = Path(os.path.dirname(file)) / named[0]
        try:
            if own.stat().st_size <= SOURCE_BYTES:
                source = {"file": named[0], "text": own.read_text("utf-8", "replace")}
                return {**document, "source": source}
        except OSError:
            pass
    if not text or len(text) > SOURCE_BYTES:
        return document
    return {**document, "source": {"file": file, "text": text}}
