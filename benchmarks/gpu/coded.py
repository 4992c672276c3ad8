"""How well schedulers issue the machine code of microbenchmarks: predicted beside measured.

    PYTHONPATH=src python benchmarks/gpu/coded.py [RESULTS.jsonl] [--all]     (needs Triton, no GPU)

Each program is compiled, its loops are issued as `stretto predict --assembled` issues those of a
kernel, and cycles of a trip are set beside those that were measured. Of `arithmetic` and `turn` the
figures of a machine are made; `ahead` and `mixed` (a step of attention, work between products)
are held against them and go into none.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import mean

HERE = Path(__file__).resolve().parent
os.environ.setdefault("TRITON_CACHE_DIR", "build/gpu/triton-cache")
sys.path.insert(0, str(HERE))

RESULTS = HERE / "results" / "micro-h200-2026-11-16.jsonl"
KINDS = ("arithmetic", "turn", "mixed", "ahead")
TRIPS = 24
POINTERS = {"out": "*i64", "sink": "*fp32"}
SIGNATURE = {**POINTERS, "c": "fp32", "first_trips": "i32", "second_trips": "i32", "trips": "i32"}
UNROLLED = ("rows", 8)
"""An operation, and columns of tiles, so small that several trips are written out at once."""


class Always:
    """Tiles that have come."""

    def there(self, *_):
        return 0.0

    def handed(self, *_):
        pass


def listing(row):
    """The machine code of a row's program."""
    import micro
    from triton.backends.compiler import GPUTarget
    from triton.experimental.gluon._runtime import GluonASTSource

    import triton
    from stretto.launching.compiling import disassembled
    from stretto.prediction.code.listing import read_listing

    kernel, constants, options = micro.repeated({"tall": 1, **row})
    names = kernel.arg_names
    signature = {name: SIGNATURE.get(name, "constexpr") for name in names}
    given = {**constants, "num_warps": options["num_warps"]}
    fixed = {(names.index(name),): value for name, value in given.items() if name in names}
    even = {(names.index(name),): [["tt.divisibility", 16]] for name in POINTERS if name in names}
    source = GluonASTSource(kernel, signature, fixed, even)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    return read_listing(disassembled(made.asm["cubin"]))


def programs(row):
    """Loops of a program: those that multiply, and the others."""
    from stretto.prediction.code.costs import Kind
    from stretto.prediction.code.steps import issued

    loops = [issued(loop) for loop in listing(row).loops() if len(loop) > 8]
    multiply = [loop for loop in loops if any(one.kind is Kind.PRODUCT for one in loop)]
    return multiply, [loop for loop in loops if loop not in multiply]


def agents(row):
    """Groups of warps and code of each agent, the one that was measured first."""
    multiply, compute = programs(row)
    match row["kind"], row.get("beside"):
        case "arithmetic", "alone":
            return [(1, compute[0])]
        case "arithmetic", "wide":
            return [(2, compute[0])]
        case "arithmetic", "two":
            return [(1, compute[-1]), (1, compute[0])]
        case "arithmetic", _:
            return [(1, compute[0]), (1, multiply[0])]
        case "turn", _:
            return [(max(1, row["warps"] // 4), (multiply or compute)[-1])]
        case _:
            return [(1, code) for code in multiply[: row["agents"]]]


def cycles(row, costs):
    """Of a trip, as schedulers issue it."""
    from stretto.prediction.code.steps import AgentCode
    from stretto.prediction.code.warps import Scheduler

    made = [AgentCode(str(n), groups, 0, code, ()) for n, (groups, code) in enumerate(agents(row))]
    ends = Scheduler(made, Always(), costs, float(row.get("late") or 100)).run(TRIPS)["0"]
    half = TRIPS // 2
    return (ends[TRIPS - 1] - ends[half]) / (TRIPS - 1 - half)


def called(row):
    """What rows are told together by."""
    kind, beside = row["kind"], row.get("beside")
    if beside == "products":
        factor = "registers" if row["registers"] else "shared memory"
        return f"{kind} beside products 64 x {row['p']} x {row['k']}, left factor in {factor}"
    count = row.get("agents")
    return f"{kind} {beside}" if beside else f"{kind}, {count} agents" if count else kind


def wanted(row):
    """Rows whose loops are those of a trip."""
    small = row.get("op") == UNROLLED[0] or row.get("n") == UNROLLED[1]
    idle = row["kind"] == "turn" and not row["product"]
    return row["kind"] in KINDS and not small and not idle and not row.get("barriers")


def main():
    """Tell how far off each kind is."""
    from stretto.machine import load_machine
    from stretto.prediction.code.costs import code_costs

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("--machine", default="h200")
    parser.add_argument("--all", action="store_true", help="a line for each program")
    arguments = parser.parse_args()
    costs = code_costs(load_machine(arguments.machine))
    found = {}
    for line in arguments.results.read_text().splitlines():
        row = json.loads(line)
        if wanted(row):
            off = cycles(row, costs) / row["cycles"] - 1
            found.setdefault(called(row), []).append(off)
            if arguments.all:
                told = {k: v for k, v in row.items() if k not in ("low", "high", "mean", "mhz")}
                print(f"{off:+7.1%}  {told}", flush=True)
    for name, offs in found.items():
        worst = max(offs, key=abs)
        print(f"{name}: {len(offs)}, {mean(map(abs, offs)):.1%} off on average, {worst:+.1%}")


if __name__ == "__main__":
    main()
