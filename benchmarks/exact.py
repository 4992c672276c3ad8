"""Proofs: how many, how soon, and how much sooner than the textbook formulation.

    make bench-exact CORPUS=path/to/corpus [RANDOM_LOOPS=500] [AGAINST=20]

1. The shipped examples and, with a corpus, its `tile-ddg/*.ddg.json`: the II proved, then the stage
   count (found and proved in 10 ms of CPU time at the median, 200 ms at worst).
2. The four-op body: 15 proved, 14 refuted with slot 16 as the only reason.
3. Random loops of 10 to 60 operations, 10 s each: at least 98.5 % proved; the gap of the heuristic.
4. Side by side, the textbook formulation with a boolean for every operation and cycle: the same
   questions (a schedule at the optimum, a refutation one below), without bounds or hints on either
   side, and the ratio of times. Fusion is off, which the textbook formulation does not know.

Loading the solver is timed once, apart. Results go to benchmarks/results/exact.json; fails where a
figure above is missed. Loops of kernels on `h200` are in `benchmarks/proofs.py`.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time

from stretto import Loop, Machine
from stretto.deadline import deadline_after
from stretto.exact import Limits, ProofOptions
from stretto.exact.case import make_case
from stretto.frontends.documents import read_source
from stretto.frontends.random_loops import random_loop
from stretto.generate.problem import Options
from stretto.solution import ScheduleAnalysis
from stretto.solve import Prepared, prepare, schedule_prepared
from stretto.solve.explaining import explain_prepared

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
sys.path.insert(0, str(HERE.parent / "tests"))

MEDIAN_S, WORST_S, STAGES_S, RANDOM_S, RANDOM_SHARE = 0.01, 0.2, 10.0, 10.0, 0.985
TEXTBOOK_S = 10.0
"""What one question to the textbook formulation may take to solve."""
TEXTBOOK_TERMS = 3_000_000
"""Terms of its rows beyond which it is not even built."""


@dataclass(frozen=True)
class Row:
    """What was proved of one loop."""

    loop: str
    ops: int
    mii: int
    ii: int | None
    proved: bool
    method: str
    lower_bound: int
    seconds: float
    """Heuristic, proof and verification, from a prepared loop."""
    heuristic_ii: int | None = None
    stages: int | None = None
    stages_proved: bool | None = None
    stages_seconds: float | None = None


@dataclass(frozen=True)
class Against:
    """One loop asked of both formulations."""

    loop: str
    ops: int
    ii: int
    ours_s: float
    textbook_s: float
    textbook: tuple[str, str]
    """What it said at the optimum and one below."""

    @property
    def ratio(self) -> float:
        """How much longer it took; at least, where it was undecided."""
        return self.textbook_s / self.ours_s


def timed(
    ready: Prepared, objective: str, seconds: float, fuse: bool = True, work: float = 1e6
) -> tuple[ScheduleAnalysis, float]:
    """A proof, and the CPU time that it took."""
    began = process_time()
    proof = ProofOptions(objective, Limits(work=work))
    options = Options(fuse=fuse, deadline=deadline_after(seconds))
    analysis = schedule_prepared(ready, "exact", options, proof=proof)
    return analysis, process_time() - began


def row(ready: Prepared, seconds: float, heuristic: int | None = None, work: float = 1e6) -> Row:
    """The II of one loop, proved or not."""
    analysis, took = timed(ready, "ii", seconds, work=work)
    assert analysis.bounds is not None
    proof = analysis.proof
    return Row(
        loop=ready.loop.name,
        ops=len(ready.loop.ops),
        mii=analysis.bounds.mii,
        ii=analysis.ii,
        proved=proof is not None and proof.optimal,
        method="none" if proof is None else proof.method,
        lower_bound=0 if proof is None else proof.lower_bound,
        seconds=took,
        heuristic_ii=heuristic,
    )


def with_stages(ready: Prepared) -> Row:
    """The II of one loop, then its stage count."""
    found = row(ready, STAGES_S)
    analysis, took = timed(ready, "stages", STAGES_S)
    assert analysis.proof is not None
    stages = analysis.proof.objectives[-1]
    return replace(found, stages=stages.value, stages_proved=stages.optimal, stages_seconds=took)


def kernels(corpus: Path | None) -> Iterator[Prepared]:
    """The shipped loops, then those of a corpus."""
    paths = [path for path in sorted(EXAMPLES.glob("*.json")) if len(path.suffixes) == 1]
    if corpus is not None:
        paths += sorted((corpus / "tile-ddg").glob("*.ddg.json"))
    for path in paths:
        for loop in read_source(path.name, path.read_text(encoding="utf-8")).loops:
            yield prepare(loop)


def random_kernels(count: int) -> Iterator[tuple[Loop, Machine]]:
    """Seeded loops of 10 to 60 operations."""
    sizes = random.Random(2026)
    for seed in range(count):
        yield random_loop(seed, sizes.randint(10, 60))


def four_op() -> str:
    """What is wrong with the proof of the four-op body; empty: nothing."""
    path = EXAMPLES / "four_op.json"
    ready = prepare(read_source(path.name, path.read_text(encoding="utf-8")).loops[0])
    explained = explain_prepared(ready)
    told = explained.explanation
    best = explained.best
    if best.ii != 15 or best.proof is None or not best.proof.optimal:
        return f"II {best.ii}, not 15 proved"
    if told is None or told.ii != 14 or told.verdict != "impossible" or not told.minimal:
        return "14 is not refuted with a minimal conflict"
    slots = [ready.machine.slot(r.name).id for r in told.reasons if r.kind == "slot"]
    return "" if len(told.reasons) == 1 and slots == [16] else f"reasons: {told.reasons}"


def against(ready: Prepared) -> Against | None:
    """Both formulations on the same two questions."""
    from stretto.exact.model import Model  # noqa: PLC0415 - loading the solver is timed apart
    from stretto.exact.solving import Clock, solve  # noqa: PLC0415
    from time_indexed import time_indexed  # noqa: PLC0415

    best, _ = timed(ready, "ii", RANDOM_S, fuse=False)
    if best.ii is None or best.proof is None or not best.proof.optimal:
        return None
    terms = best.ii * sum(u.duration for op in ready.loop.ops for u in op.vector.uses)
    if terms > TEXTBOOK_TERMS:
        print(f"  {ready.loop.name:40} not built: its rows would have {terms:,} terms")
        return None
    asked = (best.ii, best.ii - 1)
    case = make_case(ready.loop, ready.machine, fuse=False)
    began = perf_counter()
    for ii in asked:
        solve(Model(case, ii), Clock(Limits(), deadline_after(TEXTBOOK_S)))
    ours = perf_counter() - began
    began = perf_counter()
    said = tuple(time_indexed(ready.loop, ready.machine, ii, seconds=TEXTBOOK_S) for ii in asked)
    other = perf_counter() - began
    if said[0] == "refuted" or said[1] == "found":
        raise AssertionError(f"{ready.loop.name}: the formulations disagree: {said} at {asked}")
    return Against(ready.loop.name, len(ready.loop.ops), best.ii, ours, other, (said[0], said[1]))


def show(title: str, rows: list[Row]) -> None:
    """A line a loop."""
    print(f"\n{title}")
    for r in rows:
        state = f"{r.method} proof" if r.proved else f"open from {r.lower_bound}"
        tail = ""
        if r.stages_seconds is not None:
            fewest = "fewest" if r.stages_proved else "not proved"
            tail = f"  {r.stages:3} stages {fewest} {r.stages_seconds:6.3f} s"
        if r.heuristic_ii is not None and r.ii is not None:
            tail += f"  heuristic {r.heuristic_ii} (+{r.heuristic_ii - r.ii})"
        print(
            f"  {r.loop:40} {r.ops:3} ops  MII {r.mii:6}  II {r.ii or 0:6}  {state:14}"
            f"  {r.seconds:6.3f} s{tail}"
        )


def main() -> int:
    """Run everything; the exit code."""
    parser = argparse.ArgumentParser(description="Proofs of the exact solver.")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--random", type=int, default=500)
    parser.add_argument("--against", type=int, default=20, help="random loops for the textbook")
    arguments = parser.parse_args()
    began = perf_counter()
    import_module("stretto.exact.search")
    startup = perf_counter() - began
    print(f"loading the solver: {startup:.2f} s")

    shipped = [with_stages(ready) for ready in kernels(arguments.corpus)]
    show("examples and corpus", shipped)
    times = [r.seconds for r in shipped]
    stages = [r.stages_seconds or 0.0 for r in shipped]
    print(
        f"  II: median {statistics.median(times):.3f} s, worst {max(times):.3f} s; "
        f"stage count: median {statistics.median(stages):.3f} s, worst {max(stages):.3f} s"
    )
    wrong = four_op()
    print(f"\nfour_op: {wrong or '15 proved, 14 refuted, slot 16 the only reason'}")

    loops = random_rows(arguments.random)
    gaps = [r for r in loops if r.ii is not None and (r.heuristic_ii or r.ii) > r.ii]
    show(
        "random loops that are open, or where the heuristic missed the optimum",
        [r for r in loops if not r.proved or r in gaps],
    )
    figures = summary(loops, gaps) if loops else {}
    print(f"random loops: {json.dumps(figures)}")

    pairs = comparisons(arguments.corpus, arguments.against)
    results = {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "loading_s": round(startup, 3),
        "kernels": [asdict(r) for r in shipped],
        "random": {"summary": figures, "loops": [asdict(r) for r in loops]},
        "textbook": [asdict(pair) | {"ratio": round(pair.ratio, 1)} for pair in pairs],
    }
    (HERE / "results").mkdir(exist_ok=True)
    text = json.dumps(results, indent=1) + "\n"
    (HERE / "results" / "exact.json").write_text(text, encoding="utf-8")
    return judge(shipped, wrong, figures)


def random_rows(count: int) -> list[Row]:
    """Every random loop: the heuristic alone, then the proof."""
    rows: list[Row] = []
    for loop, machine in random_kernels(count):
        ready = prepare(loop, machine)
        rows.append(row(ready, RANDOM_S, schedule_prepared(ready).ii))
    return rows


def summary(loops: list[Row], gaps: list[Row]) -> dict[str, float]:
    """The figures of many loops."""
    times = sorted(r.seconds for r in loops)
    worst = max((100 * ((r.heuristic_ii or 0) / (r.ii or 1) - 1) for r in gaps), default=0.0)
    return {
        "loops": len(loops),
        "proved": sum(r.proved for r in loops),
        "above_the_mii": sum(r.proved and r.ii != r.mii for r in loops),
        "heuristic_missed": len(gaps),
        "worst_gap_percent": round(worst, 2),
        "median_s": round(statistics.median(times), 4),
        "p95_s": round(times[int(0.95 * (len(times) - 1))], 3),
        "worst_s": round(times[-1], 3),
    }


def comparisons(corpus: Path | None, count: int) -> list[Against]:
    """The textbook formulation on the kernels and on some random loops."""
    print("\nthe textbook formulation, same questions, no fusion")
    readies = [*kernels(corpus), *(prepare(*pair) for pair in random_kernels(count))]
    found: list[Against] = []
    for ready in readies:
        pair = against(ready)
        if pair is not None:
            found.append(pair)
            least = ">= " if "undecided" in pair.textbook else ""
            print(
                f"  {pair.loop:40} {pair.ops:3} ops  II {pair.ii:6}  ours {pair.ours_s:7.3f} s"
                f"  textbook {pair.textbook_s:7.2f} s  ratio {least}{pair.ratio:,.0f}",
                flush=True,
            )
    ratios = [pair.ratio for pair in found]
    if ratios:
        print(f"  median ratio {statistics.median(ratios):,.0f} over {len(ratios)} loops")
    return found


def judge(shipped: list[Row], wrong: str, figures: dict[str, float]) -> int:
    """Say what was missed; the exit code."""
    times = [r.stages_seconds or 0.0 for r in shipped]
    misses = [f"{r.loop}: II not proved" for r in shipped if not r.proved]
    misses += [f"{r.loop}: stage count not proved" for r in shipped if not r.stages_proved]
    if statistics.median(times) > MEDIAN_S or max(times) > WORST_S:
        misses.append("proofs of the kernels took too long")
    if wrong:
        misses.append(f"four_op: {wrong}")
    if figures and figures["proved"] < RANDOM_SHARE * figures["loops"]:
        misses.append("too few random loops proved")
    for miss in misses:
        print(f"missed: {miss}", file=sys.stderr)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
