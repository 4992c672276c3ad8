"""A body of 1,000 operations through the whole of the MLIR side, each step timed against parsing.

    text ──► parse ──► read ──► schedule ──► publish ──► print        layernorm, unrolled 50 times

    python benchmarks/mlir_bodies.py        prints the table, writes results/mlir_bodies.json

The text is custom assembly: copies, shared memory, reductions, arithmetic on tiles. Every step is
run a few times and its best time counts. `parse` is xDSL's parser with our positions, `verify` what
is checked of a module before anything reads it; ratios are to the two together. Fails if any other
step takes longer than they do, or if the schedule does not survive printing.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from stretto.ir.loops import LoopInModule, read_loops
from stretto.ir.loops.writer import print_module
from stretto.ir.parsing import Parsed, parse_module, verify_module
from stretto.ir.passes.published import publish, published
from stretto.ir.telling import Speaker
from stretto.solution import ScheduleAnalysis
from stretto.solve import prepare, schedule_prepared
from stretto.verification import verify

T = TypeVar("T")

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "mlir_bodies.json"
REPEATS = 3
BLOCKS = (5, 50)
"""Copies of the block below: the second is the 1,000-operation body, the first shows growth."""
MACHINE = "b200-pipes"
GIVEN = ("parse", "verify")
"""What any tool has to do with a text before it can do anything else."""

HEAD = """\
!matrix = !nv_tileas.tensor<?x32xf16, global>
!staged = !nv_tileas.smem_ref<16x32xf16>
!tile = tensor<16x32xf32>
!half = tensor<16x32xf16>
!column = tensor<16xf32>

func.func @rows(%X: !matrix, %Y: !matrix, %tiles: i32, %inverse_n: !column, %epsilon: !column,
                %gamma: !tile, %beta: !tile) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %rows = arith.constant 16 : i32
  scf.for %index = %zero to %tiles step %one : i32 {
"""
BLOCK = """\
    %x_tile_N = nv_tileas.alloc_tensor : !staged
    %y_tile_N = nv_tileas.alloc_tensor : !staged
    %offset_N = arith.muli %index, %rows : i32
    %row_N = arith.addi %offset_N, %rows : i32
    %load_x_N = nv_tileas.async.tiled_tma_load %X[%row_N, %zero] into %x_tile_N : !matrix -> !staged
    %read_x_N = nv_tileas.async.smem_read %load_x_N : !staged -> !half
    %widen_N = arith.extf %read_x_N : !half to !tile
    %sum_N = nv_tileas.reduce.sum %widen_N axis 1 : !tile -> !column
    %mean_N = arith.mulf %sum_N, %inverse_n : !column
    %mean_wide_N = nv_tileas.broadcast %mean_N : !column -> !tile
    %centre_N = arith.subf %widen_N, %mean_wide_N : !tile
    %square_N = arith.mulf %centre_N, %centre_N : !tile
    %sum_squares_N = nv_tileas.reduce.sum %square_N axis 1 : !tile -> !column
    %variance_N = math.fma %sum_squares_N, %inverse_n, %epsilon : !column
    %inverse_sd_N = math.rsqrt %variance_N : !column
    %inverse_wide_N = nv_tileas.broadcast %inverse_sd_N : !column -> !tile
    %normalize_N = arith.mulf %centre_N, %inverse_wide_N : !tile
    %scaled_N = arith.mulf %normalize_N, %gamma : !tile
    %shifted_N = arith.addf %scaled_N, %beta : !tile
    %narrow_N = arith.truncf %shifted_N : !tile to !half
    %write_y_N = nv_tileas.async.smem_write %narrow_N into %y_tile_N : !half -> !staged
    %sent_N = nv_tileas.async.tiled_tma_store %write_y_N to %Y[%row_N, %zero] : !staged -> !matrix
"""
TAIL = "  }\n  func.return\n}\n"


@dataclass(frozen=True)
class Steps:
    """Seconds of every step on one body."""

    ops: int
    characters: int
    seconds: dict[str, float]
    ii: int

    @property
    def given(self) -> float:
        """Seconds to parse and verify."""
        return sum(self.seconds[step] for step in GIVEN)

    @property
    def total(self) -> float:
        """Seconds of all steps."""
        return sum(self.seconds.values())

    def ratio(self, step: str) -> float:
        """A step against parsing and verifying."""
        return self.seconds[step] / self.given


def body(blocks: int) -> str:
    """The text with so many blocks."""
    return HEAD + "".join(BLOCK.replace("_N", f"_{i}") for i in range(blocks)) + TAIL


def timed(repeats: int, work: Callable[[], T]) -> tuple[float, T]:
    """The best time of a few runs, and what the last one gave."""
    best, result = float("inf"), None
    for _ in range(repeats):
        began = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - began)
    assert result is not None
    return best, result


def measure(blocks: int) -> Steps:
    """Every step on a body of so many blocks; what is printed must read back as it was."""
    text = body(blocks)
    seconds: dict[str, float] = {}

    def parse() -> Parsed:
        return parse_module(text, "body.mlir", verify=False)

    seconds["parse"], parsed = timed(REPEATS, parse)
    seconds["verify"], faults = timed(REPEATS, lambda: verify_module(parsed))
    if faults:
        sys.exit(faults[0].render())

    def read() -> LoopInModule:
        (found,) = read_loops(parsed, MACHINE).loops
        return found

    seconds["read"], found = timed(REPEATS, read)
    seconds["prepare"], ready = timed(REPEATS, lambda: prepare(found.loop, found.machine))
    seconds["schedule"], analysis = timed(REPEATS, lambda: schedule_prepared(ready))

    def write() -> bool:
        publish(found.for_op, found.ops, analysis)
        return True

    seconds["publish"], _ = timed(REPEATS, write)
    seconds["print"], printed = timed(REPEATS, lambda: print_module(parsed.module))
    check(printed, analysis)
    assert analysis.ii is not None
    return Steps(len(found.loop.ops), len(text), seconds, analysis.ii)


def check(printed: str, analysis: ScheduleAnalysis) -> None:
    """The schedule from the printed text alone must be the same, and legal."""
    parsed = parse_module(printed, "printed.mlir")
    (found,) = read_loops(parsed, MACHINE).loops
    again = published(Speaker("bench", parsed, found))
    ready = prepare(found.loop, found.machine)
    if again.starts != analysis.starts or verify(ready.loop, ready.machine, again):
        sys.exit("the schedule does not survive printing")


def table(rows: list[Steps]) -> None:
    """Milliseconds and ratios, a row a step."""
    print(f"{'step':<10}" + "".join(f"{row.ops:>10} ops{'ratio':>9}" for row in rows))
    for step in rows[0].seconds:
        cells = "".join(
            f"{1e3 * row.seconds[step]:>11.1f} ms{row.ratio(step):>9.2f}" for row in rows
        )
        print(f"{step:<10}{cells}")
    totals = "".join(f"{1e3 * row.total:>11.1f} ms{row.total / row.given:>9.2f}" for row in rows)
    print(f"{'in all':<10}{totals}")


def main() -> int:
    """Measure, write the result, and judge it."""
    rows = [measure(blocks) for blocks in BLOCKS]
    table(rows)
    report = {
        "benchmark": "an MLIR body of 1,000 operations: every step against parsing",
        "machine": MACHINE,
        "repeats": REPEATS,
        "bodies": [
            {
                "operations": row.ops,
                "characters": row.characters,
                "ii": row.ii,
                "milliseconds": {s: round(1e3 * row.seconds[s], 2) for s in row.seconds},
                "ratios": {step: round(row.ratio(step), 2) for step in row.seconds},
                "total_ratio": round(row.total / row.given, 2),
            }
            for row in rows
        ],
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    slow = [s for s in rows[-1].seconds if s not in GIVEN and rows[-1].ratio(s) > 1]
    if slow:
        print(f"slower than parsing: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
