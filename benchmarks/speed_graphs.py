"""Other people's dependence graphs: II against the best published, time, verified.

    python benchmarks/speed_graphs.py --hatschet DIR [--best FILE.json] --tiles DIR

`--hatschet` is a folder with GraphML files and their resource models (`hatschet.py`); `--best` says
the best II published for each, as {"ChStone/aes/graph12": 177}; where it says nothing, the better
of the two IMS counts. `--tiles` is a folder of ddg-0.1 files; there the time of `schedule` and of
`schedule(prove=True)` is taken. CPU time, warm; loading the solver is not counted. Results go to
benchmarks/results/speed_graphs.json. Fails where an II is above the best known, or a schedule is
not legal.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import stretto
from hatschet import graphs
from ims_process import NoCompilerError, build, flat, run_ims
from speed_loops import loop_of
from speed_measure import BUDGETS, Outcome, demand_legal, outcome, timed, warm
from speed_summary import milliseconds, text_table
from stretto import Loop, Machine

RESULT = Path(__file__).resolve().parent / "results" / "speed_graphs.json"


@dataclass(frozen=True)
class Graph:
    """One graph of the suite."""

    graph: str
    ops: int
    holders: int
    """Operations that hold anything."""
    mii: int
    ii: int | None
    published: int | None
    stages: int
    seconds: float
    legal: bool
    ims6: Outcome | None
    ims60: Outcome | None

    @property
    def best(self) -> int | None:
        """The best published, else the best of the others in this run."""
        if self.published is not None:
            return self.published
        return min((o.ii for o in (self.ims6, self.ims60) if o and o.ii is not None), default=None)

    @property
    def above(self) -> bool:
        """Whether Stretto's II is above the best known."""
        return self.best is not None and (self.ii is None or self.ii > self.best)


@dataclass(frozen=True)
class Tile:
    """One tile loop, found and proved."""

    loop: str
    ops: int
    mii: int
    ii: int | None
    seconds: float
    proved: bool
    """The II, and every objective up to the stages."""
    prove_s: float


def suite(folder: Path, best: dict[str, int], limit: float, compiled: bool) -> Iterator[Graph]:
    """Each graph, scheduled by everybody."""
    for name, loop, machine in graphs(folder):
        asked = partial(stretto.schedule, replace(loop), machine, "cost-based", time_limit=limit)
        found, took = timed(asked)
        mii = stretto.bounds(loop, machine).mii
        others = _ims(loop, machine, mii) if compiled else (None, None)
        yield Graph(
            graph=name,
            ops=len(loop.ops),
            holders=sum(bool(op.uses) for op in loop.ops),
            mii=mii,
            ii=found.ii,
            published=best.get(name),
            stages=found.stage_count,
            seconds=took,
            legal=stretto.verify(loop, found, machine).legal,
            ims6=others[0],
            ims60=others[1],
        )


def _ims(loop: Loop, machine: Machine, mii: int) -> tuple[Outcome, Outcome]:
    six, sixty = run_ims(flat(loop, machine, mii), BUDGETS)
    for result in (six, sixty):
        if result.finished:
            demand_legal(loop, machine, result)
    return outcome(six), outcome(sixty)


def tiles(folder: Path, limit: float) -> Iterator[Tile]:
    """Each loop of each file, found and proved."""
    stretto.schedule(*loop_of("tile", 10, 1), prove=True)  # loads the solver
    for path in sorted(folder.glob("*.ddg.json")):
        for loop in stretto.read(path).loops:
            found, took = timed(lambda: stretto.schedule(replace(loop), time_limit=limit))  # noqa: B023
            proof, prove_s = timed(
                lambda: stretto.schedule(replace(loop), prove=True, time_limit=limit)  # noqa: B023
            )
            mii = stretto.bounds(loop).mii
            yield Tile(loop.name, len(loop.ops), mii, found.ii, took, proof.proved, prove_s)


def show_graphs(rows: Sequence[Graph]) -> None:
    """A line a graph, and their sum."""
    head = ("graph", "ops", "hold", "MII", "II", "published", "IMS 6", "IMS 60", "stages")
    lines = [
        (
            *(row.graph, str(row.ops), str(row.holders), str(row.mii), _word(row.ii)),
            *(_word(row.published), *(_word(o and o.ii) for o in (row.ims6, row.ims60))),
            *(f"{row.stages}", milliseconds(row.seconds)),
            *(milliseconds(o.seconds) if o else "-" for o in (row.ims6, row.ims60)),
            "above" if row.above else "" if row.legal else "illegal",
        )
        for row in rows
    ]
    print(text_table((*head, "ms", "IMS 6 ms", "IMS 60 ms", ""), lines))
    print(f"{len(rows)} graphs: {sum(row.ii == row.mii for row in rows)} at the MII, ", end="")
    print(f"{sum(row.above for row in rows)} above the best known, ", end="")
    print(
        f"{sum(row.legal for row in rows)} verified, {sum(row.seconds for row in rows):.2f} s, ",
        end="",
    )
    print(f"slowest {max(row.seconds for row in rows):.2f} s")


def show_tiles(rows: Sequence[Tile]) -> None:
    """A line a loop, and their median."""
    head = ("loop", "ops", "MII", "II", "ms", "proved", "ms to prove")
    lines = [
        (
            *(row.loop, str(row.ops), str(row.mii), _word(row.ii), milliseconds(row.seconds)),
            *("yes" if row.proved else "no", milliseconds(row.prove_s)),
        )
        for row in rows
    ]
    print(text_table(head, lines))
    for title, times in (
        ("schedule", [row.seconds for row in rows]),
        ("schedule(prove=True)", [row.prove_s for row in rows]),
    ):
        middle, worst = milliseconds(statistics.median(times)), milliseconds(max(times))
        print(f"{title}: median {middle} ms, worst {worst} ms")


def _word(value: int | None) -> str:
    return "-" if value is None else str(value)


def _compiled() -> bool:
    try:
        build()
    except NoCompilerError as error:
        print(f"without IMS: {error}", file=sys.stderr)
        return False
    return True


def main(words: Sequence[str] | None = None) -> int:
    """Run over what is given; the exit code."""
    parser = argparse.ArgumentParser(description="Speed on other people's dependence graphs.")
    parser.add_argument("--hatschet", type=Path, metavar="DIR")
    parser.add_argument("--best", type=Path, metavar="FILE", help="published II of each graph")
    parser.add_argument("--tiles", type=Path, metavar="DIR")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a loop")
    parser.add_argument("--json", type=Path, default=RESULT)
    arguments = parser.parse_args(words)
    if not arguments.hatschet and not arguments.tiles:
        parser.error("give --hatschet DIR, --tiles DIR or both")
    warm()
    found: list[Graph] = []
    if arguments.hatschet:
        best: dict[str, int] = {}
        if arguments.best:
            best = json.loads(arguments.best.read_text(encoding="utf-8"))
        found = list(suite(arguments.hatschet, best, arguments.limit, _compiled()))
        show_graphs(found)
    proved: list[Tile] = []
    if arguments.tiles:
        proved = list(tiles(arguments.tiles, arguments.limit))
        show_tiles(proved)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    results = {
        "hatschet": [asdict(row) for row in found],
        "tiles": [asdict(row) for row in proved],
    }
    arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 1 if any(row.above or not row.legal for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
