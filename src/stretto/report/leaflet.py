"""A page that stands alone: headings, tables and plots in one file that loads nothing.

leaflet("bench", [("suites", table(head, rows)), ("time", plot.to_svg())])  ──►  <!DOCTYPE html> …
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em;
       color: #111827; background: #fff }
table { border-collapse: collapse; margin: .5em 0 }
th, td { padding: .15em .7em; text-align: right; border-bottom: 1px solid #e5e7eb }
th:first-child, td:first-child { text-align: left }
tr.best td { background: #ecfdf5 } tr.bad td { background: #fef2f2 }
svg { max-width: 100%; height: auto; border: 1px solid #e5e7eb; margin: .5em .5em .5em 0 }
details { margin: .5em 0 } p.note { color: #4b5563 }
"""


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], marks: Sequence[str] | None = None
) -> str:
    """A table; a mark (`best`, `bad`) colours its row."""
    parts = ["<table><tr>", *(f"<th>{escape(cell)}</th>" for cell in head), "</tr>"]
    for i, row in enumerate(rows):
        mark = f' class="{marks[i]}"' if marks and marks[i] else ""
        parts.append(f"<tr{mark}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    return "".join([*parts, "</table>\n"])


def paragraphs(lines: Iterable[str]) -> str:
    """Sentences, one below the other."""
    return "".join(f'<p class="note">{escape(line)}</p>' for line in lines) + "\n"


def folded(summary: str, inside: str) -> str:
    """What is shown to whoever asks for it."""
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>\n"


def leaflet(title: str, sections: Iterable[tuple[str, str]]) -> str:
    """The whole page."""
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n",
        f"<h1>{escape(title)}</h1>\n",
    ]
    for heading, inside in sections:
        parts.append(f"<h2>{escape(heading)}</h2>\n{inside}")
    return "".join([*parts, "</body></html>\n"])
