"""How fast at every size, and how good: Stretto beside iterative modulo scheduling.

    make bench-speed [SPEED="--quick"] [CORPUS=path/to/corpus]

Seeded loops (`speed_loops.py`) of 10 to 10,000 operations; on each, in one run: Stretto, a C++
iterative modulo scheduler with bitset tables (`ims/ims.cpp`) with a budget of 6 and of 60 seats an
operation, and its plain Python twin. For each kind and size: II/MII, loops where Stretto's II is
above that of IMS 60, stages, CPU time and its ratios; peak memory at the largest size. Results go
to benchmarks/results/speed.json; `speed_page.py` makes docs/performance.md of them. With a corpus,
`speed_graphs.py` runs over its dependence graphs as well.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from ims_process import NoCompilerError, build
from speed_loops import KINDS
from speed_measure import Limits, Row, measure, peak_memory, warm
from speed_summary import (
    QUALITY,
    RATIO,
    TIME,
    Cell,
    cells,
    goals,
    quality_row,
    ratio_row,
    text_table,
    time_row,
)

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "speed.json"
SEEDS = {10: 12, 30: 12, 100: 8, 200: 4, 201: 4, 300: 6, 1000: 4, 3000: 2, 10000: 2}
"""Sizes, and how many loops of each kind."""
QUICK = {10: 4, 30: 4, 100: 4, 300: 2}
SMALL = ("fusable", "scattered")
LARGEST_OF_SMALL = 1000
"""Kinds that try one thing each: half as many loops, and none above that size."""


def arguments_of(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Speed and quality at every size.")
    parser.add_argument("--sizes", type=int, nargs="+", help="operations (default: all)")
    parser.add_argument("--kinds", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--seeds", type=int, help="loops of each kind and size")
    parser.add_argument("--quick", action="store_true", help="few loops of at most 300 operations")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--limit", type=float, default=Limits.stretto, help="seconds for Stretto")
    parser.add_argument("--ims-limit", type=float, default=Limits.ims, help="seconds for an IMS")
    parser.add_argument("--json", type=Path, default=RESULT, help="where results go")
    parser.add_argument("--check", action="store_true", help="fail where a goal is missed")
    parser.add_argument("--peak", nargs=3, metavar=("KIND", "OPS", "SEED"), help=argparse.SUPPRESS)
    return parser.parse_args(words)


def tasks(arguments: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """(kind, operations, seed), kind by kind."""
    seeds = QUICK if arguments.quick else SEEDS
    for kind in arguments.kinds:
        for ops in arguments.sizes or seeds:
            if kind in SMALL and ops > LARGEST_OF_SMALL and not arguments.sizes:
                continue
            count = arguments.seeds or seeds.get(ops, 4) // (2 if kind in SMALL else 1)
            for seed in range(count):
                yield kind, ops, seed


def rows_of(arguments: argparse.Namespace) -> tuple[list[Row], bool]:
    """Every loop measured, on a few processes, the largest first; what there is on Ctrl-C."""
    asked = list(tasks(arguments))
    limits = Limits(arguments.limit, arguments.ims_limit)
    with ProcessPoolExecutor(arguments.jobs, initializer=warm) as pool:
        largest = sorted(asked, key=lambda task: -task[1])
        waiting = {task: pool.submit(measure, *task, limits) for task in largest}
        try:
            for done, task in enumerate(largest):
                waiting[task].result()
                print(f"\r{done + 1} of {len(asked)} loops", end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            ready = [waiting[task] for task in asked if waiting[task].done()]
            rows = [one.result() for one in ready if not one.cancelled() and not one.exception()]
            print(f"\nstopped: {len(rows)} of {len(asked)} loops were measured", file=sys.stderr)
            return rows, True
        print(file=sys.stderr)
    return [waiting[task].result() for task in asked], False


def peaks_of(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Peak MB at the largest size, each in a process of its own."""
    found: dict[str, dict[str, float]] = {}
    for kind in arguments.kinds:
        sizes = [ops for k, ops, _ in tasks(arguments) if k == kind]
        if sizes:
            command = [sys.executable, __file__, "--limit", str(arguments.limit)]
            command += ["--peak", kind, str(max(sizes)), "0"]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            before, after = map(float, told.split())
            found[f"{kind} {max(sizes):,}"] = {"before": before, "peak": after}
    return found


def show(found: list[Cell], peaks: dict[str, dict[str, float]]) -> None:
    """The tables."""
    for kind in dict.fromkeys(cell.kind for cell in found):
        mine = [cell for cell in found if cell.kind == kind]
        print(f"\n{kind}: II over MII, and stages (means)")
        print(text_table(QUALITY, [quality_row(cell) for cell in mine]))
        print(f"\n{kind}: CPU time, warm, in milliseconds")
        print(text_table(TIME, [time_row(cell) for cell in mine]))
        print(f"\n{kind}: CPU time over that of an IMS from the graph, and of one given the MII")
        print(text_table(RATIO, [ratio_row(cell) for cell in mine]))
        above = [name for cell in mine for name in cell.above]
        if above:
            print(f"above IMS 60: {', '.join(above)}")
    print()
    for at, mb in peaks.items():
        print(f"peak memory, {at} operations: {mb['peak']:.0f} MB ({mb['before']:.0f} MB before)")


def commit() -> str:
    """The version that was measured."""
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def processor() -> str:
    """What it ran on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor())


def main(words: Sequence[str] | None = None) -> int:
    """Run everything; the exit code."""
    arguments = arguments_of(words)
    if arguments.peak:
        kind, ops, seed = arguments.peak
        print(*peak_memory(kind, int(ops), int(seed), arguments.limit))
        return 0
    try:
        build()
    except NoCompilerError as error:
        print(f"bench-speed: {error}", file=sys.stderr)
        return 1
    began = perf_counter()
    rows, stopped = rows_of(arguments)
    if stopped:
        show(cells(rows), {})
        return 3
    peaks = peaks_of(arguments)
    found = cells(rows)
    show(found, peaks)
    asked = goals(found, {at: mb["peak"] for at, mb in peaks.items()})
    missed = [goal for goal in asked if not goal.met]
    print(f"\n{len(asked) - len(missed)} of {len(asked)} goals met")
    for goal in missed:
        print(f"missed: {goal.says}: {goal.value:,.2f}, asked for at most {goal.at_most:g}")
    document = {
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "processor": processor(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "minutes": round((perf_counter() - began) / 60, 1),
        "limits": {"stretto": arguments.limit, "ims": arguments.ims_limit},
        "peaks": peaks,
        "goals": [asdict(goal) | {"met": goal.met} for goal in asked],
        "rows": [asdict(row) for row in rows],
    }
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if missed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
