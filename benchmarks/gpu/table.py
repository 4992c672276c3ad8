"""The table of docs/measured.md from a file of results: `python benchmarks/gpu/table.py FILE`."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path


def rate(row: dict) -> float:
    """TFLOPS of the median round."""
    return row["flops"] / statistics.median(row["ms"]) / 1e9


def best(rows: list[dict], begins: tuple[str, ...]) -> str:
    """The best of some, by its rate."""
    found = [row for row in rows if row["name"].startswith(begins)]
    return f"{max(map(rate, found)):.0f}" if found else "–"


COLUMNS = {
    "emitted": ("forward", "gemm", "backward"),
    "decorator": ("decorator",),
    "from cuTile": ("cutile",),
    "cuDNN, cuBLAS": ("cuDNN", "cuBLAS"),
    "tileiras": ("tileiras",),
    "Triton": ("stock",),
    "its tutorial": ("tutorial",),
}
"""How the names of rows begin that a column has the best of."""


def main() -> None:
    """Print it."""
    whole = json.loads(Path(sys.argv[1]).read_text())
    problems: dict[str, list[dict]] = {}
    for row in whole["times"]:
        problems.setdefault(row["problem"], []).append(row)
    print(f"| TFLOPS | {' | '.join(COLUMNS)} |")
    print(f"|---|{'---|' * len(COLUMNS)}")
    for title, rows in problems.items():
        if rows[0]["flops"] is not None:
            cells = [best(rows, begins) for begins in COLUMNS.values()]
            print(f"| {title.removeprefix('tutorial ')} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
