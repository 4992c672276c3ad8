"""Kernels of public libraries through every step: `python run.py FOLDER [NAME ...]`.

    launches/*.jsonl ──► TTIR ──► steps ──► table.json, table.md ──► compared with what is committed

A kernel that comes less far than the committed table says fails. `--update` rewrites the table.
`--part` takes the kernels that `.ci/run` looks at; their first blocks are run on values as well.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from dump import ABORTED, apart, dumped, named, prepare
from outcomes import LEVELS, Outcome, compared, page, summary
from steps import plain, through

HERE = Path(__file__).parent
TABLE = HERE / "table.json"


def measured(name: str, launch: Any, folder: Path, simulated: bool) -> Outcome:
    """What became of one kernel; it is dumped where it lies in the folder not yet."""
    known = folder / f"{name}.own.json"
    if not known.exists():
        known.write_text(json.dumps(apart(partial(dumped, name, launch, folder)) or ABORTED))
    own = json.loads(known.read_text("utf-8"))
    if "error" in own:
        return Outcome(name, triton=plain(own["error"]))
    file, cache = folder / f"{name}.ttir", folder / "cache"
    found = apart(partial(through, name, file, own, cache, launch, simulated))
    if isinstance(found, Outcome):
        return found
    return Outcome(
        name, reason="internal error: the process ended" if found is None else found["error"]
    )


def main() -> int:
    """How many kernels are lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where dumps, sources and the cache lie")
    parser.add_argument("names", nargs="*", help="kernels, or what their names begin with")
    parser.add_argument("--part", action="store_true", help="those of part.txt")
    parser.add_argument("--simulate", action="store_true", help="run what is printed on values")
    parser.add_argument("--update", action="store_true", help="rewrite the committed table")
    asked = parser.parse_intermixed_args()
    begun = time.monotonic()
    names = list(asked.names)
    if asked.part:
        names += (HERE / "part.txt").read_text("utf-8").split()
    prepare(torch=False)
    (asked.folder / "cache").mkdir(parents=True, exist_ok=True)
    known = (
        {one["name"]: one for one in json.loads(TABLE.read_text("utf-8"))} if TABLE.exists() else {}
    )
    found: list[Outcome] = []
    for name, launch in named(names).items():
        if asked.part and name not in names:
            continue
        started = time.monotonic()
        one = measured(name, launch, asked.folder, asked.part or asked.simulate)
        found.append(one)
        seconds = time.monotonic() - started
        print(f"{seconds:6.1f} s  {name}: {one.triton or one.level} {one.reason}", flush=True)
        if asked.update:
            write({**known, **{one.name: one.to_json() for one in found}})
    lost = compared(found, known)
    print("\n".join(summary(found)))
    for line in lost:
        print(f"lost: {line}")
    better = sum(
        one.name in known and not one.triton and one.rank > LEVELS.index(known[one.name]["level"])
        for one in found
    )
    print(
        f"{len(found)} kernels, {len(lost)} lost, {better} come farther; "
        f"{time.monotonic() - begun:.0f} s"
    )
    return 0 if asked.update else len(lost)


def write(every: dict[str, Any]) -> None:
    """The committed table and its page."""
    kept = [every[name] for name in sorted(every)]
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in kept)
    TABLE.write_text(f"[\n{lines}\n]\n", "utf-8")
    (HERE / "table.md").write_text(page([Outcome(**one) for one in kept]), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
