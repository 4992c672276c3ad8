"""What was predicted beside what was measured, for every configuration of a sweep.

    python benchmarks/gpu/predicted.py [results/sweep-….jsonl] [-o ROWS.jsonl]    (needs Triton)
    python benchmarks/gpu/predicted.py --rows ROWS.jsonl --plot predicted.svg     (does not)
    python benchmarks/gpu/predicted.py --rows ROWS.jsonl --tables     (those of docs/measured.md)

Each kernel is emitted anew, the very one that was measured is predicted at the clock that it ran
at, and a line is printed: cycles an iteration of its first loop, and time. Then how far off each
family is, and how far the one that is ranked first is from the best that was measured; for that,
all are predicted at the machine's own clock, as whoever has not run them would. What spills
registers is told, but not ranked: whoever has Triton has it compiled before, and so knows how many
registers a thread has.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples" / "triton")]

import predicted_plot
import predicted_tables
import shipped

RESULTS = HERE / "results" / "sweep-h200-2026-11-17.jsonl"


def given(row):
    """The numbers that a kernel of the sweep was launched with."""
    from sweep import GEMM_SIZE, LENGTH, NORM

    if row["kernel"] == "shipped":
        return shipped.numbers_of(row["file"])
    if row["kernel"] == "gemm":
        return dict.fromkeys("MNK", GEMM_SIZE)
    return {"columns": NORM[1]} if row["kernel"] == "norm" else {"length": LENGTH}


def predicted(row, machine):
    """The kernel that was measured, at its clock, what it is ranked by, and the same kernel without
    its machine code; or None: not found."""
    from dump import ttir
    from sweep import asked_of_triton, configurations, digest

    from stretto.compile.candidates import Emitter
    from stretto.launching.compiling import compile_emitted
    from stretto.prediction.kernel_time import predict_kernel

    # A row's own `block` is what was measured of one.
    c = configurations()[row["name"]]
    with tempfile.TemporaryDirectory() as scratch:
        dump = Path(scratch) / f"{row['name']}.ttir"
        if "file" in c:
            dump = shipped.files()[c["file"]]
        else:
            text, beside = ttir(**asked_of_triton(c))
            dump.write_text(text)
            dump.with_suffix(".json").write_text(json.dumps(beside))
        emitter = Emitter(dump, machine, tracing=row.get("tracing", "loops"))
        stages = (row["stages"],) if "stages" in row else ()
        made = emitter.candidates(row.get("consumers"), row.get("depth"), None, stages)
    for one in made:
        if digest(one.source) == row["source"]:
            known = replace(one, registers=row.get("registers"))
            grid, numbers = tuple(row["grid"]), given(row)
            tiles = predict_kernel(known.subject, machine, grid, numbers, row["mhz"])
            subject = replace(known, assembled=compile_emitted(one.emitted)).subject
            found = predict_kernel(subject, machine, grid, numbers, row["mhz"])
            alike = predict_kernel(subject, machine, grid, numbers)
            return found, alike.seconds, tiles
    return None


def measured(row):
    """Cycles an iteration of the first loop, of the slowest agent that computes."""
    agents = {name: loops for name, loops in row["loops"].items() if loops and name != "copy"}
    return max((loops[0][0] for loops in agents.values()), default=None)


def family(row):
    """Kernels whose configurations do the same."""
    return f"attention_d{row['d']}" if row["kernel"] == "attention" else row["kernel"]


def compared(results, only, machine_name):
    """A row for each configuration that is found again, told as it comes."""
    from stretto.errors import StrettoError
    from stretto.machine import load_machine

    machine = load_machine(machine_name)
    for line in results.read_text().splitlines():
        row = json.loads(line)
        name, cycles = row["name"], measured(row)
        # Of layer norm, time is what is ranked: too few trips for a steady part, and none is timed.
        if only not in name or (cycles is None and row["kernel"] != "norm"):
            continue
        try:
            both = predicted(row, machine)
        except StrettoError as error:
            print(f"{name}: {error}", flush=True)
            continue
        if both is None:
            print(f"{name}: is scheduled otherwise now", flush=True)
            continue
        found, worth, tiles = both
        yield {
            "name": name,
            "family": family(row),
            "cycles": cycles,
            "predicted_cycles": round(found.loops[0].cycles, 1),
            "by_machine_code": found.loops[0].coded,
            "by_tiles_cycles": round(tiles.loops[0].cycles, 1),
            "ms": min(row["ms"]),
            "predicted_ms": round(found.seconds * 1e3, 4),
            "ranked_by_ms": round(worth * 1e3, 4),
            "bound": found.bound,
            "spilled": row["spilled"],
        }


def told(row):
    """One configuration, in a line."""
    steps = f"{'no step was timed':33s}"
    if row["cycles"] is not None:
        off = row["predicted_cycles"] / row["cycles"] - 1
        steps = f"{row['cycles']:7.0f} predicted {row['predicted_cycles']:7.0f} {off:+6.1%}"
    return (
        f"{row['name']:36s} {steps}   {row['ms']:.3f} ms predicted {row['predicted_ms']:.3f}   "
        + (f"spills {row['spilled']} bytes" if row.get("spilled", 0) else row["bound"])
    )


def families_of(rows):
    """Rows by their families."""
    found = {}
    for row in rows:
        found.setdefault(row["family"], []).append(row)
    return found


def by_cycles(rows):
    """How far off cycles an iteration are, where a steady part ran and was timed."""
    return [row["predicted_cycles"] / row["cycles"] - 1 for row in rows if row["cycles"]]


def by_times(rows):
    """How far off times are."""
    return [row["predicted_ms"] / row["ms"] - 1 for row in rows]


def summary(rows):
    """Of each family: how far off, and how good the one is that is ranked first."""
    for name, some in families_of(rows).items():
        kept = [row for row in some if not row.get("spilled", 0)]
        spills = f", {len(some) - len(kept)} spill" if len(kept) < len(some) else ""
        if not kept:
            yield f"{name}: {len(some)}{spills}"
            continue
        for what, all_of in (("cycles", by_cycles(kept)), ("times", by_times(kept))):
            mean, worst = statistics.mean(map(abs, all_of)), max(all_of, key=abs)
            within = [sum(abs(off) <= most for off in all_of) for most in (0.05, 0.10)]
            yield (
                f"{name}: {what} of {len(all_of)}{spills}, {mean:.1%} off on average, at worst "
                f"{worst:+.1%}, {within[0]} within 5 %, {within[1]} within 10 %"
            )
        if len(kept) < 3 or name == "shipped":
            continue
        first, best = ranked_first(kept)
        lost = first["ms"] / best["ms"] - 1
        yield f"  ranked first {first['name']}, {first['ms']:.3f} ms: {lost:.1%} behind the best"
        yield f"  best measured {best['name']}, {best['ms']:.3f} ms"


def chosen(rows):
    """Of each family that is ranked: its name, its size, the row ranked first, and the fastest."""
    for name, some in families_of(rows).items():
        kept = [row for row in some if not row.get("spilled", 0)]
        if len(kept) >= 3 and name != "shipped":
            yield name, len(kept), *ranked_first(kept)


def ranked_first(rows):
    """The one that the model takes, and the fastest that was measured."""
    return min(rows, key=lambda row: row["ranked_by_ms"]), min(rows, key=lambda row: row["ms"])


def main():
    """Print them all, then how far off each family is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--only", default="")
    parser.add_argument("--machine", default="h200")
    parser.add_argument("--rows", type=Path, help="rows that were compared before; asks nothing")
    parser.add_argument("-o", "--output", type=Path, help="where rows go, a JSON line each")
    parser.add_argument("--plot", type=Path, help="where an SVG of them goes")
    parser.add_argument("--tables", action="store_true", help="only the tables of the page")
    asked = parser.parse_args()
    if asked.rows:
        coming = map(json.loads, asked.rows.read_text().splitlines())
    else:
        coming = compared(asked.results, asked.only, asked.machine)
    rows = []
    for row in coming:
        if not asked.tables:
            print(told(row), flush=True)
        rows.append(row)
    if asked.tables:
        print(*predicted_tables.tables(rows, chosen(rows)), sep="\n")
    else:
        print(*summary(rows), sep="\n")
    if asked.output:
        asked.output.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if asked.plot:
        timed = [row for row in rows if row["cycles"] is not None]
        asked.plot.write_text(predicted_plot.figure(families_of(timed)))


if __name__ == "__main__":
    main()
