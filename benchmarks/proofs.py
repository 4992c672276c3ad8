"""What is proved of loops of kernels and of other people's graphs, as published.

    python benchmarks/proofs.py h200 [--kernels DUMPS] [--only PART ...]
    python benchmarks/proofs.py hatschet --graphs DIR [--only PART ...]

`h200`: the loops of the kernels that ship, with agents, registers and waits, and those of a folder
of dumps (`benchmarks/tutorials.py` makes them of Triton's tutorials). `hatschet`: graphs below a
folder, each on the machine that its own resource model describes, with the default work. All in one
process; CPU time of the heuristics, the proof and the verification. Each loop is written to
benchmarks/proofs/NAME.json as soon as it is done, in place of what stood there of it; `--only` runs
those whose names have PART in them. Exit code 1 where fewer than 90 % of h200's loops are proved in
10 s of CPU time.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import stretto
from exact import EXAMPLES, HERE, Row, row
from hatschet import graphs
from stretto.exact import Limits
from stretto.solve import Prepared, prepare

PUBLISHED = HERE / "proofs"
WALL_S = {"h200": 100.0, "hatschet": 1000.0}
"""When the clock ends a loop, on a machine that is busy with other things as well."""
WORK = {"h200": 1e6, "hatschet": Limits().work}
"""Units of the solver's own count: as many as the clock allows, and what is the default."""
CPU_S, SHARE = 10.0, 0.9
"""CPU seconds of a proof on `h200`, and how many keep to them."""


def kernels(dumps: Path | None) -> Iterator[Prepared]:
    """The loops of the kernels that ship, then those of a folder of dumps."""
    paths = [*sorted(EXAMPLES.glob("triton/*.ttir")), *sorted(EXAMPLES.glob("cutile/*.tileirbc"))]
    paths += sorted(dumps.glob("*.ttir")) if dumps is not None else []
    for path in paths:
        whose = path.parent.name if path.is_relative_to(EXAMPLES) else "tutorials"
        for loop in stretto.read(path, "h200"):
            yield prepare(replace(loop, name=f"{whose}/{path.stem} {loop.name}"))


def others(folder: Path) -> Iterator[Prepared]:
    """Graphs of HatScheT."""
    for name, loop, machine in graphs(folder):
        yield prepare(replace(loop, name=name), machine)


def published(file: Path) -> dict[str, Row]:
    """What stands in a file, by name."""
    rows: list[dict[str, Any]] = json.loads(file.read_text("utf-8")) if file.exists() else []
    return {entry["loop"]: Row(**entry) for entry in rows}


def publish(file: Path, rows: dict[str, Row]) -> None:
    """One line a loop."""
    kept = {name: rows[name] for name in sorted(rows)}
    lines = [
        json.dumps({k: v for k, v in asdict(r).items() if v is not None}) for r in kept.values()
    ]
    file.parent.mkdir(exist_ok=True)
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def in_time(found: Row) -> bool:
    """Whether a loop was proved in the CPU time that it may take."""
    return found.proved and found.seconds <= CPU_S


def main() -> int:
    """Prove them; the exit code."""
    parser = argparse.ArgumentParser(description="Proofs of kernels' loops and others' graphs.")
    parser.add_argument("what", choices=list(WALL_S))
    parser.add_argument("--kernels", type=Path, help="a folder of .ttir dumps")
    parser.add_argument("--graphs", type=Path, help="HatScheT's benchmarks")
    parser.add_argument("--only", nargs="*", default=[], metavar="PART")
    asked = parser.parse_args()
    if asked.what == "hatschet" and asked.graphs is None:
        parser.error("hatschet takes --graphs DIR")
    import_module("stretto.exact.search")  # what loading the solver takes is nobody's
    loops = kernels(asked.kernels) if asked.what == "h200" else others(asked.graphs)
    file = PUBLISHED / f"{asked.what}.json"
    rows = published(file)
    for ready in loops:
        name = ready.loop.name
        if asked.only and not any(part in name for part in asked.only):
            continue
        found = row(ready, WALL_S[asked.what], work=WORK[asked.what])
        rows[name] = replace(found, seconds=round(found.seconds, 2))
        publish(file, rows)
        state = "proved" if found.proved else f"from {found.lower_bound}"
        print(f"{name}: II {found.ii}, {state}, {found.seconds:.1f} s", flush=True)
    proved = sum(map(in_time, rows.values()))
    print(f"{proved} of {len(rows)} proved in {CPU_S:g} s of CPU time")
    return 1 if asked.what == "h200" and proved < SHARE * len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
