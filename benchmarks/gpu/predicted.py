"""What was predicted beside what was measured, for every configuration of a sweep.

    python benchmarks/gpu/predicted.py [results/sweep-….jsonl] [--only TEXT]     (needs Triton)

Each kernel is emitted anew, the one of the II and the stages that were measured is predicted at the
clock that it ran at, and a line is printed: cycles an iteration of its first loop, and time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples" / "triton")]

from dump import ttir
from sweep import GEMM_SIZE, LENGTH, NORM, asked_of_triton

from stretto.api.emitting import Emitter
from stretto.errors import StrettoError
from stretto.machine import load_machine
from stretto.predict.running import Subject
from stretto.predict.whole import predict_whole

RESULTS = HERE / "results" / "sweep-h200-2026-11-16.jsonl"


def given(row):
    if row["kernel"] == "gemm":
        return dict.fromkeys("MNK", GEMM_SIZE)
    return {"columns": NORM[1]} if row["kernel"] == "norm" else {"length": LENGTH}


def predicted(row, machine):
    """The prediction of the kernel that was measured; None where it is not found again."""
    text, beside = ttir(**asked_of_triton(row))
    with tempfile.TemporaryDirectory() as scratch:
        dump = Path(scratch) / f"{row['name']}.ttir"
        dump.write_text(text)
        dump.with_suffix(".json").write_text(json.dumps(beside))
        emitter = Emitter(dump, machine, seed=row.get("seed", 0))
        stages = (row["stages"],) if "stages" in row else ()
        made = emitter.candidates(row.get("consumers"), row.get("depth"), None, stages)
    for one in made:
        if [a.ii for a in one.analyses] == row["ii"]:
            subject = Subject(one.kernel, one.emitted, one.programs, one.emitted.rings)
            return predict_whole(subject, machine, tuple(row["grid"]), given(row), row["mhz"])
    return None


def measured(row):
    """Cycles an iteration of the first loop, of the slowest agent that computes."""
    agents = {name: loops for name, loops in row["loops"].items() if loops and name != "copy"}
    return max((loops[0][0] for loops in agents.values()), default=None)


def main():
    """Print them all, then how far off each family is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--only", default="")
    parser.add_argument("--machine", default="h200")
    asked = parser.parse_args()
    machine = load_machine(asked.machine)
    families = {}
    for line in asked.results.read_text().splitlines():
        row = json.loads(line)
        name, cycles = row["name"], measured(row)
        if asked.only not in name or cycles is None:
            continue
        try:
            found = predicted(row, machine)
        except StrettoError as error:
            print(f"{name}: {error}", flush=True)
            continue
        if found is None:
            print(f"{name}: is scheduled otherwise now", flush=True)
            continue
        off = found.loops[0].cycles / cycles - 1
        ms = min(row["ms"])
        families.setdefault(row["kernel"], []).append(off)
        print(
            f"{name:36s} {cycles:7.0f} predicted {found.loops[0].cycles:7.0f} {off:+6.1%}   "
            f"{ms:.3f} ms predicted {found.seconds * 1e3:.3f}   {found.bound}",
            flush=True,
        )
    for name, all_of in families.items():
        mean = statistics.mean(map(abs, all_of))
        worst = max(all_of, key=abs)
        print(f"{name}: {len(all_of)}, {mean:.1%} off on average, at worst {worst:+.1%}")


if __name__ == "__main__":
    main()
