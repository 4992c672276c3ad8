"""What every part of the search is worth: its loop with all parts, and without that one.

    .venv/bin/python benchmarks/ablation.py            prints the table
    .venv/bin/python benchmarks/ablation.py --write    puts it into docs/ladder.md

The loops are those of tests/loops, where a test holds each part to it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import stretto
from stretto import ScheduleAnalysis
from stretto.solution import spilling
from stretto.solve import PARTS

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
PAGE = ROOT / "docs" / "ladder.md"
BEGIN, END = "<!-- ablation -->\n", "<!-- /ablation -->\n"


def told(analysis: ScheduleAnalysis | None) -> str:
    """What a schedule takes."""
    if analysis is None or not analysis.success or analysis.pressure is None:
        return "none found"
    used = sum(space.used for space in analysis.memory)
    spills = ", spills" if spilling(analysis) else ""
    return (
        f"II {analysis.ii}, {analysis.stage_count} stages, {used:,} bytes, "
        f"{analysis.pressure.peak} registers{spills}"
    )


def table() -> str:
    """One row a part."""
    from test_loops import beside, lacking_part, load, strictly  # noqa: PLC0415 - beside the loops, not on the path

    lines = ["| part | its loop, with all parts | without it | among |", "|---|---|---|---|"]
    for part in PARTS:
        loop, others = load(part), beside(part)
        strict = strictly(loop)
        whole = told(stretto.schedule(loop, without=others, strict=strict))
        lacking = told(lacking_part(loop, part))
        among = (
            "the arms, strictly" if strict else "the arms alone" if "rau" in others else "all parts"
        )
        lines.append(f"| `{part}` | {whole} | {lacking} | {among} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the table, or put it where it belongs."""
    parser = argparse.ArgumentParser(description="What every part of the search is worth.")
    parser.add_argument("--write", action="store_true", help="into docs/ladder.md")
    write = parser.parse_args().write
    made = table()
    if not write:
        print(made, end="")
        return 0
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + BEGIN + made + END + rest.split(END)[1], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
