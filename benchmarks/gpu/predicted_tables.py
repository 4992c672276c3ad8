"""The tables of docs/measured.md that set predictions beside what was measured, from rows.

python benchmarks/gpu/predicted.py --rows ROWS.jsonl --tables
"""

from __future__ import annotations

import re

SWEPT = re.compile(r"(gemm|attention_d\d+)_([\dx]+)_c(\d)_d(\d)$")
OTHER = re.compile(r"((?:causal|backward)\w*)_c(\d)$")
NONE = "–"


def cell(row):
    """Cycles an iteration: measured, predicted."""
    return f"{row['cycles']:.0f} / {row['predicted_cycles']:.0f}" if row else NONE


def table(head, lines):
    """Lines of Markdown; a line is its name and its cells."""
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for name, cells in lines:
        yield f"| {name} | " + " | ".join(cells) + " |"


def swept(rows, kernel, title):
    """A line for tiles and consumers, a column for each depth of rings."""
    found = {}
    for row in rows:
        match = SWEPT.match(row["name"])
        if match and match[1].startswith(kernel):
            family = match[1].removeprefix(kernel).removeprefix("_d")
            tile = f"D {family}, {match[2]}" if family else match[2]
            found.setdefault(f"{tile}, {match[3]}", {})[int(match[4])] = row
    last = max((depth for by in found.values() for depth in by), default=0)
    depths = range(1, last + 1)
    head = [title, *("rings of 1" if depth == 1 else str(depth) for depth in depths)]
    lines = [(name, [cell(by.get(depth)) for depth in depths]) for name, by in found.items()]
    return table(head, lines) if found else ()


def others(rows):
    """A line for a kernel, a column for each number of consumers."""
    found = {}
    for row in rows:
        match = OTHER.match(row["name"])
        if match:
            found.setdefault(match[1].replace("_", " "), {})[int(match[2])] = row
    head = ["other kernels", "1 consumer", "2 consumers"]
    lines = [(name, [cell(by.get(count)) for count in (1, 2)]) for name, by in found.items()]
    return table(head, lines) if found else ()


def shipped(rows):
    """A line for each kernel that ships."""
    head = ["kernel that ships", "cycles an iteration", "µs"]
    lines = []
    for row in rows:
        if row["family"] == "shipped":
            name = row["name"].removeprefix("shipped_").replace("_", ": ", 1).replace("_", " ")
            spills = f" (spills {row['spilled']} bytes)" if row["spilled"] else ""
            times = f"{row['ms'] * 1e3:.0f} / {row['predicted_ms'] * 1e3:.0f}"
            lines.append((f"{name}{spills}", [cell(row), times]))
    return table(head, lines) if lines else ()


def timed(row):
    """A configuration, and how long it took."""
    return row["name"], f"{row['ms']:.3f} ms"


def lost(first, best):
    """Hundredths by which one took longer than another, to a tenth."""
    return round((first["ms"] / best["ms"] - 1) * 100, 1)


def ranked(chosen):
    """A line for a family: its name, its size, the row ranked first, and the fastest."""
    head = ["kernel, configurations", "ranked first", "measured", "fastest", "measured", "behind"]
    lines = [
        (f"{name}, {count}", [*timed(first), *timed(best), f"{lost(first, best):.3g} %"])
        for name, count, first, best in chosen
    ]
    return table(head, lines)


def tables(rows, chosen):
    """All of them, with an empty line between two."""
    yield from swept(rows, "gemm", "8192³, tile and consumers")
    yield ""
    yield from swept(rows, "attention", "attention forward, tile and consumers")
    yield ""
    yield from others(rows)
    if own := list(shipped(rows)):
        yield from ("", *own)
    yield ""
    yield from ranked(chosen)
