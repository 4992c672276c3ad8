"""The measured part of docs/performance.md, from benchmarks/results/speed.json.

    python benchmarks/speed_page.py [RESULTS.json ...]

Replaces what stands between the two markers, and writes docs/performance.svg. Whatever is said
around it is left alone. Several results of one commit, of different sizes say, make one page.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from speed_measure import read_row
from speed_plot import Line, Panel, Points, figure
from speed_summary import (
    QUALITY,
    RATIO,
    TIME,
    TITLES,
    Cell,
    cells,
    goals,
    quality_row,
    ratio_row,
    time_row,
)

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "speed.json"
DOCS = HERE.parent / "docs"
PAGE, PLOT = DOCS / "performance.md", DOCS / "performance.svg"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown, right-aligned."""
    lines = [head, ["---:"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def joined(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One document of several; a loop that was measured twice counts once, as measured last."""
    rows = {(row["kind"], row["ops"], row["seed"]): row for d in documents for row in d["rows"]}
    kinds = tuple(dict.fromkeys(kind for kind, _, _ in rows))
    order = sorted(rows, key=lambda key: (kinds.index(key[0]), *key[1:]))
    return documents[-1] | {
        "rows": [rows[key] for key in order],
        "peaks": {at: mb for d in documents for at, mb in d["peaks"].items()},
        "minutes": round(sum(d["minutes"] for d in documents), 1),
    }


def measured(document: dict[str, Any], found: Sequence[Cell]) -> str:
    """What stands between the markers."""
    limits = document["limits"]
    made = (
        f"Commit `{document['commit']}`, {document['date']}, {document['processor']}, "
        f"Python {document['python']}; {document['minutes']} minutes, at most "
        f"{limits['stretto']:g} s a loop for Stretto and {limits['ims']:g} s for each IMS."
    )
    lines = [
        made,
        "",
        f"![Growth of CPU time and of II over MII with the number of operations]({PLOT.name})",
    ]
    for kind in dict.fromkeys(cell.kind for cell in found):
        mine = [cell for cell in found if cell.kind == kind]
        lines += ["", f"### {kind}", "", *table(QUALITY, [quality_row(cell) for cell in mine])]
        lines += ["", *table(TIME, [time_row(cell) for cell in mine])]
        lines += ["", *table(RATIO, [ratio_row(cell) for cell in mine])]
    peaks = document["peaks"].items()
    memory = [(at, f"{mb['before']:.0f}", f"{mb['peak']:.0f}") for at, mb in peaks]
    lines += ["", "### Memory", "", *table(("operations", "MB before", "peak MB"), memory)]
    asked = goals(found, {at: mb["peak"] for at, mb in peaks})
    missed = [goal for goal in asked if not goal.met]
    lines += ["", "### Goals", "", f"{len(asked) - len(missed)} of {len(asked)} are met."]
    if missed:
        rows = [(goal.says, f"{goal.value:,.2f}", f"{goal.at_most:g}") for goal in missed]
        lines += ["", *table(("missed", "measured", "at most"), rows)]
    return "\n".join(lines)


def plot(found: Sequence[Cell]) -> str:
    """The growth plot."""
    kinds = tuple(dict.fromkeys(cell.kind for cell in found))

    def panels(value: str) -> list[Panel]:
        return [
            Panel(
                kind if value == "median" else "",
                tuple(Line(who, _points(found, kind, who, value)) for who in reversed(TITLES)),
            )
            for kind in kinds
        ]

    return figure(panels("median"), panels("gap_mean"), TITLES)


def _points(found: Sequence[Cell], kind: str, who: str, value: str) -> Points:
    pairs = [(cell.ops, getattr(cell.who[who], value)) for cell in found if cell.kind == kind]
    return [(x, y) for x, y in pairs if not math.isnan(y)]


def main() -> int:
    """Rewrite the page; the exit code."""
    parser = argparse.ArgumentParser(description="Write docs/performance.md from results.")
    parser.add_argument("results", type=Path, nargs="*", default=[RESULTS])
    paths = parser.parse_args().results
    for path in paths:
        if not path.exists():
            print(f"{path} is not there: run `make bench-speed` first", file=sys.stderr)
            return 1
    document = joined([json.loads(path.read_text(encoding="utf-8")) for path in paths])
    found = cells([read_row(entry) for entry in document["rows"]])
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page = f"{before}{BEGIN}\n\n{measured(document, found)}\n\n{END}{after}"
    PAGE.write_text(page, encoding="utf-8")
    PLOT.write_text(plot(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
