"""How good are the schedules, and how soon: examples, real dependence graphs, random loops.

    make bench-quality CORPUS=path/to/corpus [RANDOM_LOOPS=500]

For each loop: MII, II, whether the II is known to be optimal (bound or memory met), and the time
to bound, to schedule and to verify. With a corpus, its `tile-ddg/*.ddg.json` are read and compared
with the IIs in `tile-ddg/peer_ii.json`. For examples and corpus, what the schedule takes (stages,
bytes, registers) stands beside what the solver ends with. Results go to
benchmarks/results/quality.json. Fails if a shipped example or a loop of the corpus is not known to
be optimal, ends above the peer, or spills where the solver finds a schedule that does not.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from stretto import Loop, Machine, prepare
from stretto.exact import Limits, ProofOptions
from stretto.frontends.documents import read_source
from stretto.frontends.random_loops import random_loop
from stretto.generate.problem import Options, make_problem
from stretto.generate.search import search
from stretto.lower_bounds import compute_bounds
from stretto.solution import ScheduleAnalysis, spilling
from stretto.solve import schedule_prepared
from stretto.verification import verify

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
PROOF = ProofOptions("registers", Limits(work=20))
"""The solver minimizes all there is, in bounded work."""
GROWTH = (10, 30, 100, 300, 1000, 3000)


@dataclass(frozen=True)
class Taken:
    """What a kernel loses by, beside its II."""

    stages: int
    bytes: int
    registers: int
    spills: bool
    optimal: tuple[bool, ...] = ()
    """Of a proof: whether stages, bytes and registers are proved."""

    def __str__(self) -> str:
        told = f"{self.stages} stages {self.bytes:7} bytes {self.registers:4} registers"
        return told + (" (spills)" if self.spills else "")


def taken(analysis: ScheduleAnalysis) -> Taken:
    """What a schedule takes."""
    assert analysis.pressure is not None
    rows = analysis.proof.objectives[1:] if analysis.proof is not None else ()
    return Taken(
        analysis.stage_count,
        sum(space.used for space in analysis.memory),
        analysis.pressure.peak,
        bool(spilling(analysis)),
        tuple(row.optimal for row in rows),
    )


@dataclass(frozen=True)
class Row:
    """What one loop came to."""

    loop: str
    ops: int
    mii: int
    ii: int | None
    optimal: bool
    stages: int
    rungs: tuple[str, ...]
    bound_ms: float
    place_ms: float
    """The search alone."""
    verify_ms: float
    schedule_ms: float
    """All of `stretto.schedule` on a prepared loop: bound, serial schedule, place, verify."""
    peer_ii: int | None = None
    taken: Taken | None = None
    """What the schedule takes."""
    proved: Taken | None = None
    """What the one that the solver ends with takes: stages, then bytes, then registers fewest."""


def measure(
    loop: Loop,
    machine: Machine | None = None,
    peer: int | None = None,
    *,
    prove: bool = False,
) -> Row:
    """Schedule one loop and take the times; `prove`: have the solver say what would be best."""
    ready = prepare(loop, machine)
    began = perf_counter()
    bounds = compute_bounds(ready.loop, ready.machine)
    bounded = perf_counter()
    analysis = schedule_prepared(ready)
    scheduled = perf_counter()
    verify(ready.loop, ready.machine, analysis)
    verified = perf_counter()
    problem = make_problem(ready.loop, ready.machine, Options())
    search(problem, bounds, lambda: analysis.ii or bounds.mii)
    placed = perf_counter()
    return Row(
        loop=loop.name,
        ops=len(loop.ops),
        mii=bounds.mii,
        ii=analysis.ii,
        optimal=bool(analysis.proof and analysis.proof.optimal),
        stages=analysis.stage_count,
        rungs=tuple(dict.fromkeys(p.rung or "serial" for p in analysis.placements)),
        bound_ms=1e3 * (bounded - began),
        place_ms=1e3 * (placed - verified),
        verify_ms=1e3 * (verified - scheduled),
        schedule_ms=1e3 * (scheduled - bounded),
        peer_ii=peer,
        taken=taken(analysis) if analysis.success else None,
        proved=taken(schedule_prepared(ready, proof=PROOF)) if prove else None,
    )


def examples() -> Iterator[Row]:
    """The shipped loops."""
    for path in sorted(EXAMPLES.glob("*.json")):
        if len(path.suffixes) == 1:
            for loop in read_source(path.name, path.read_text(encoding="utf-8")).loops:
                yield measure(loop, prove=True)


def corpus(folder: Path) -> Iterator[Row]:
    """The dependence graphs of a corpus, with their peer's figures."""
    graphs = folder / "tile-ddg"
    peers = {
        (row["file"], row["loop_id"]): row["peer_ii"]
        for row in json.loads((graphs / "peer_ii.json").read_text(encoding="utf-8"))
    }
    for path in sorted(graphs.glob("*.ddg.json")):
        for loop in read_source(path.name, path.read_text(encoding="utf-8")).loops:
            peer = peers[path.name, int(loop.name.rsplit(".", 1)[1])]
            yield measure(loop, peer=peer, prove=True)


def random_rows(count: int) -> Iterator[Row]:
    """Seeded random loops of 10 to 100 operations."""
    sizes = random.Random(2026)
    for seed in range(count):
        yield measure(*random_loop(seed, sizes.randint(10, 100)))


def show(title: str, rows: list[Row]) -> None:
    """A line a loop."""
    print(f"\n{title}")
    for row in rows:
        peer = "" if row.peer_ii is None else f"  peer {row.peer_ii}"
        print(
            f"  {row.loop:40} {row.ops:5} ops  MII {row.mii:6}  II {row.ii or 0:6}"
            f"{'  optimal' if row.optimal else '         '}  {row.stages:3} stages"
            f"  bound {row.bound_ms:7.2f}  place {row.place_ms:8.2f}"
            f"  verify {row.verify_ms:7.2f}  all {row.schedule_ms:8.2f} ms{peer}"
        )
        if row.proved is not None:
            print(f"    as it is  {row.taken}\n    proved    {row.proved}")


def summary(rows: list[Row]) -> dict[str, float]:
    """The figures of many loops."""
    gaps = [100 * ((row.ii or 2 * row.mii) / row.mii - 1) for row in rows]
    times = sorted(row.place_ms for row in rows)
    return {
        "loops": len(rows),
        "at_the_bound": sum(row.ii == row.mii for row in rows),
        "known_optimal": sum(row.optimal for row in rows),
        "mean_gap_to_mii_percent": round(statistics.mean(gaps), 3),
        "worst_gap_to_mii_percent": round(max(gaps), 3),
        "median_place_ms": round(statistics.median(times), 3),
        "p95_place_ms": round(times[int(0.95 * (len(times) - 1))], 3),
        "worst_place_ms": round(times[-1], 3),
    }


def main() -> int:
    """Run everything; the exit code."""
    parser = argparse.ArgumentParser(description="Quality and speed of the generators.")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--random", type=int, default=500)
    arguments = parser.parse_args()
    shipped = list(examples())
    show("shipped examples", shipped)
    graphs = list(corpus(arguments.corpus)) if arguments.corpus else []
    show("corpus", graphs)
    grown = [measure(*random_loop(1, ops)) for ops in GROWTH]
    show("growth", grown)
    loops = list(random_rows(arguments.random))
    figures = summary(loops) if loops else {}
    print(f"\nrandom loops, 10 to 100 operations: {json.dumps(figures)}")
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    document = {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "examples": [asdict(row) for row in shipped],
        "corpus": [asdict(row) for row in graphs],
        "growth": [asdict(row) for row in grown],
        "random": {"summary": figures, "loops": [asdict(row) for row in loops]},
    }
    (results / "quality.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    missed = [row.loop for row in (*shipped, *graphs) if not row.optimal]
    above = [row.loop for row in graphs if row.peer_ii is not None and (row.ii or 0) > row.peer_ii]
    spilt = [
        row.loop
        for row in (*shipped, *graphs)
        if row.taken is not None
        and row.taken.spills
        and row.proved is not None
        and not row.proved.spills
    ]
    told_of = (
        ("not known to be optimal", missed),
        ("above the peer", above),
        ("spills though the proof finds a schedule that does not", spilt),
    )
    for told, names in told_of:
        if names:
            print(f"{told}: {', '.join(names)}", file=sys.stderr)
    return 1 if missed or above or spilt else 0


if __name__ == "__main__":
    sys.exit(main())
