"""The measured part of docs/performance.md, from benchmarks/results/speed.json.

    python benchmarks/speed_page.py [RESULTS.json]

Replaces what stands between the two markers, and writes docs/performance.svg. Whatever is said
around it is left alone.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from speed_plot import Line, Panel, Points, figure
from speed_summary import QUALITY, TIME, TITLES, Cell, Figures, quality_row, time_row

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "speed.json"
DOCS = HERE.parent / "docs"
PAGE, PLOT = DOCS / "performance.md", DOCS / "performance.svg"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

Json = dict[str, "object"]


def read_cells(document: Json) -> list[Cell]:
    """The cells that `speed.py` wrote."""
    found: list[Cell] = []
    for row in cast("list[Json]", document["cells"]):
        who = {
            name: Figures(**cast("dict[str, int]", figures))
            for name, figures in cast("dict[str, Json]", row["who"]).items()
        }
        found.append(Cell(**cast("dict[str, int]", row | {"who": who})))  # pyright: ignore[reportArgumentType]
    return found


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown, right-aligned."""
    lines = [head, ["---:"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def measured(document: Json) -> str:
    """What stands between the markers."""
    cells = read_cells(document)
    limits = cast("dict[str, float]", document["limits"])
    lines = [
        f"Measured on {document['date']} at commit `{document['commit']}`: {document['processor']}, "
        f"Python {document['python']}; {document['minutes']} minutes. At most "
        f"{limits['stretto']:g} s a loop for Stretto, {limits['ims']:g} s for each IMS.",
        "",
        f"![Growth of CPU time and II with size]({PLOT.name})",
    ]
    for kind in dict.fromkeys(cell.kind for cell in cells):
        mine = [cell for cell in cells if cell.kind == kind]
        lines += ["", f"### {kind}", "", *table(QUALITY, [quality_row(cell) for cell in mine])]
        lines += ["", *table(TIME, [time_row(cell) for cell in mine])]
    lines += ["", "### Memory", ""]
    peaks = cast("dict[str, dict[str, float]]", document["peaks"])
    lines += table(
        ("loop", "before, MB", "peak, MB"),
        [(at, f"{mb['before']:.0f}", f"{mb['peak']:.0f}") for at, mb in peaks.items()],
    )
    asked = cast("list[Json]", document["goals"])
    missed = [goal for goal in asked if not goal["met"]]
    lines += ["", "### Goals", "", f"{len(asked) - len(missed)} of {len(asked)} are met."]
    if missed:
        head = ("missed", "measured", "at most")
        rows = [
            (str(g["says"]), f"{cast('float', g['value']):,.2f}", f"{cast('float', g['at_most']):g}")
            for g in missed
        ]
        lines += ["", *table(head, rows)]
    return "\n".join(lines)


def plot(document: Json) -> str:
    """The growth plot."""
    cells = read_cells(document)
    kinds = tuple(dict.fromkeys(cell.kind for cell in cells))

    def panels(value: str) -> list[Panel]:
        return [
            Panel(
                kind if value == "median" else "",
                tuple(Line(who, _points(cells, kind, who, value)) for who in reversed(TITLES)),
            )
            for kind in kinds
        ]

    return figure(panels("median"), panels("gap_mean"), TITLES)


def _points(cells: Sequence[Cell], kind: str, who: str, value: str) -> Points:
    pairs = [(cell.ops, getattr(cell.who[who], value)) for cell in cells if cell.kind == kind]
    return [(x, y) for x, y in pairs if not math.isnan(y)]


def main() -> int:
    """Rewrite the page; the exit code."""
    parser = argparse.ArgumentParser(description="Write docs/performance.md from results.")
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    results = parser.parse_args().results
    if not results.exists():
        print(f"{results} is not there: run `make bench-speed` first", file=sys.stderr)
        return 1
    document = json.loads(results.read_text(encoding="utf-8"))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page = f"{before}{BEGIN}\n\n{measured(document)}\n\n{END}{after}"
    PAGE.write_text(page, encoding="utf-8")
    PLOT.write_text(plot(document), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
