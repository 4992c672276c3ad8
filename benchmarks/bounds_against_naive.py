"""The four bounds of large loops, against naive twins in the same run.

    python benchmarks/bounds_against_naive.py     prints the ratio, writes results/bounds.json

The naive recurrence is the textbook one: binary search for the smallest II, each tried by
Bellman-Ford over the edges as they come. The naive others are plain sums. Both sides start from
the same loop with its dependences derived, and must agree on every bound.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from stretto.frontends.random_loops import random_loop
from stretto.loop import Loop, check
from stretto.lower_bounds import compute_bounds
from stretto.lower_bounds.distances import earliest_starts
from stretto.machine import Machine
from stretto.solution import BOUND_NAMES

SEED = 20
SIZE = 1000
MAX_STAGES = 12
GROWTH = (10, 30, 100, 300, 1000, 3000)
WANTED = 20.0
RESULTS = Path(__file__).parent / "results" / "bounds.json"

T = TypeVar("T")


def naive_bounds(loop: Loop, machine: Machine) -> tuple[int, int, int, int]:
    """Resource (without fusion), recurrence, fine and dependence bound, as defined."""
    return (
        max(_resource(loop, machine)),
        _recurrence(loop),
        max(_fine(loop, machine)),
        _dependence(loop),
    )


def _resource(loop: Loop, machine: Machine) -> list[int]:
    bounds = [1]
    for slot in machine.slots:
        total = sum(
            use.occupancy * use.duration
            for op in loop.ops
            for use in op.vector.uses
            if use.slot == slot.name
        )
        if slot.capacity is not None:
            bounds.append(-(-total // slot.capacity))
    return bounds


def _fine(loop: Loop, machine: Machine) -> list[int]:
    bounds = [1]
    for pool in machine.pools:
        total = sum(
            demand.units * op.vector.duration
            for op in loop.ops
            for demand in op.demands
            if demand.pool == pool.name
        )
        bounds.append(-(-total // pool.cap))
    return bounds


def _recurrence(loop: Loop) -> int:
    low, high = 1, max(1, sum(d.latency for d in loop.dependences))
    while low < high:
        middle = (low + high) // 2
        if _settles(loop, middle):
            high = middle
        else:
            low = middle + 1
    return low


def _settles(loop: Loop, ii: int) -> bool:
    start = {op.name: 0 for op in loop.ops}
    for _ in range(len(loop.ops) + 1):
        moved = False
        for d in loop.dependences:
            least = start[d.src] + d.latency - ii * d.distance
            if least > start[d.dst]:
                start[d.dst] = least
                moved = True
        if not moved:
            return True
    return False


def _dependence(loop: Loop) -> int:
    path = {op.name: 0 for op in loop.ops}
    moved = True
    while moved:
        moved = False
        for d in loop.dependences:
            if d.distance == 0 and path[d.src] + d.latency > path[d.dst]:
                path[d.dst] = path[d.src] + d.latency
                moved = True
    return max(-(-(longest + 1) // MAX_STAGES) for longest in path.values())


def timed(run: Callable[[], T], repeat: int) -> tuple[float, T]:
    """Median seconds of a few runs, and the result."""
    seconds: list[float] = []
    while True:
        begin = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - begin)
        if len(seconds) == repeat:
            return statistics.median(seconds), result


def compare(seed: int) -> dict[str, object]:
    """Both sides on one loop of SIZE operations; they must agree."""
    loop, machine = random_loop(seed, SIZE)
    assert check(loop, machine) == ()
    _ = loop.dependences
    ours, bounds = timed(
        lambda: compute_bounds(loop, machine, fuse=False, max_stages=MAX_STAGES), 5
    )
    naive, expected = timed(lambda: naive_bounds(loop, machine), 1)
    found = tuple(bounds[name].bound for name in BOUND_NAMES)
    if found != expected:
        sys.exit(f"seed {seed}: bounds {found}, naive twins {expected}")
    return {
        "seed": seed,
        "bounds": dict(zip(BOUND_NAMES, found, strict=True)),
        "seconds": ours,
        "naive_seconds": naive,
        "ratio": naive / ours,
    }


def growth(ops: int) -> dict[str, object]:
    """Times on one loop of a size: the bounds with fusion, earliest starts."""
    loop, machine = random_loop(SEED, ops)
    _ = loop.dependences
    seconds, bounds = timed(lambda: compute_bounds(loop, machine), 5)
    ii = bounds.recurrence.bound
    starts, _ = timed(lambda: earliest_starts(loop, ii), 5)
    return {
        "ops": ops,
        "dependences": len(loop.dependences),
        "bounds_seconds": seconds,
        "earliest_starts_seconds": starts,
    }


def main() -> None:
    """Measure, print, write, and fail when the ratio is too small."""
    rows = [compare(SEED + i) for i in range(3)]
    for row in rows:
        print(
            f"seed {row['seed']}: {SIZE} ops, {row['seconds']:.4f} s against "
            f"{row['naive_seconds']:.2f} s naive: {row['ratio']:.0f}x   {row['bounds']}"
        )
    sizes = [growth(ops) for ops in GROWTH]
    for size in sizes:
        print(
            f"{size['ops']:>5} ops: bounds {size['bounds_seconds']:.4f} s, earliest starts "
            f"{size['earliest_starts_seconds']:.4f} s"
        )
    ratio = min(float(str(row["ratio"])) for row in rows)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "seed": SEED,
        "ops": SIZE,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "ratio": ratio,
        "loops": rows,
        "growth": sizes,
    }
    RESULTS.write_text(json.dumps(document, indent=2) + "\n")
    print(f"smallest ratio {ratio:.0f}x, wanted {WANTED:.0f}x; written to {RESULTS}")
    if ratio < WANTED:
        sys.exit(f"the bounds are only {ratio:.1f} times as fast as their naive twins")


if __name__ == "__main__":
    main()
