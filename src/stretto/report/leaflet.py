"""A page that stands alone: headings, tables and plots in one file that loads nothing.

leaflet("bench", [("suites", table(head, rows)), ("time", plot.to_svg())])  ──►  <!DOCTYPE html> …
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #111827; --soft: #4b5563; --line: #e5e7eb;
        --good: #ecfdf5; --bad: #fef2f2 }
@media (prefers-color-scheme: dark) { :root { --paper: #16191d; --ink: #eceff2; --soft: #a9b2bc;
        --line: #31373e; --good: #12352a; --bad: #43201f } }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em;
       color: var(--ink); background: var(--paper); overflow-wrap: anywhere }
h1 { font-size: 1.5em } h2 { font-size: 1.15em }
.wide { overflow-x: auto } .plots { display: flex; flex-wrap: wrap; gap: 1em }
table { border-collapse: collapse; margin: .5em 0; overflow-wrap: normal }
th, td { padding: .15em .7em; text-align: right; border-bottom: 1px solid var(--line);
         white-space: nowrap }
th:first-child, td:first-child, td.text, th.text { text-align: left }
tr.best td { background: var(--good) } tr.bad td { background: var(--bad) }
svg { width: 100%; max-width: 640px; height: auto; border: 1px solid var(--line); flex: 1 1 340px }
pre { margin: .5em 0 } mark { color: inherit; background: var(--bad) }
details { margin: .5em 0 } p.note { color: var(--soft) }
"""


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], marks: Sequence[str] | None = None
) -> str:
    """A table; a mark (`best`, `bad`) colours its row."""
    cells = [list(row) for row in rows]
    words = [any(_is_text(row[i]) for row in cells if i < len(row)) for i in range(len(head))]

    def line(tag: str, of: Sequence[str]) -> str:
        kinds = [' class="text"' if word else "" for word in words]
        told = zip(kinds, of, strict=False)
        return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in told)

    parts = [f'<div class="wide" tabindex="0"><table><tr>{line("th", head)}</tr>']
    for i, row in enumerate(cells):
        mark = f' class="{marks[i]}"' if marks and marks[i] else ""
        parts.append(f"<tr{mark}>{line('td', row)}</tr>")
    return "".join([*parts, "</table></div>\n"])


def _is_text(cell: str) -> bool:
    """Whether a cell holds words, not a figure with its unit."""
    return bool(cell) and cell[0].isalpha()


def paragraphs(lines: Iterable[str]) -> str:
    """Sentences, one below the other; what stands between backticks is code."""
    return "".join(f'<p class="note">{_coded(line)}</p>' for line in lines) + "\n"


def _coded(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def pictures(plots: Iterable[str]) -> str:
    """Plots beside each other, as many as there is room for."""
    return f'<div class="plots">{"".join(plots)}</div>\n'


def folded(summary: str, inside: str) -> str:
    """What is shown to whoever asks for it."""
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>\n"


def leaflet(title: str, sections: Iterable[tuple[str, str]]) -> str:
    """The whole page."""
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>\n",
        f"<h1>{escape(title)}</h1>\n",
    ]
    for heading, inside in sections:
        parts.append(f"<h2>{escape(heading)}</h2>\n{inside}")
    return "".join([*parts, "</main></body></html>\n"])
