"""The tables of docs/hardware.md from a file of results: `python benchmarks/gpu/table.py FILE`."""

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


def main() -> None:
    """Print them."""
    whole = json.loads(Path(sys.argv[1]).read_text())
    problems: dict[str, list[dict]] = {}
    for row in whole["times"]:
        problems.setdefault(row["problem"], []).append(row)
    print(
        "| problem, TFLOPS | Stretto | of which from cuTile | cuDNN, cuBLAS | tileiras | Triton |"
    )
    print("|---|---|---|---|---|---|")
    for title, rows in problems.items():
        if rows[0]["flops"] is None:
            continue
        ours = best(rows, ("forward", "gemm", "backward"))
        columns = [
            ours,
            best(rows, ("cutile",)),
            best(rows, ("cuDNN", "cuBLAS")),
            best(rows, ("tileiras",)),
            best(rows, ("stock",)),
        ]
        print(f"| {title} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
