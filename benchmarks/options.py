"""Do options make a schedule worse? Examples, shipped kernels on `h200`, and real graphs.

    .venv/bin/python benchmarks/options.py [--corpus path/to/corpus] [--minutes 10] [--workers 2]

For each loop: the II of the default, and of runs whose options its own schedule satisfies
(`--max-stages` at its stage count and one more, `--max-ii` at its II, `--prove` in bounded time);
and of series with ever larger limits (stages, effort). Prints a row for each loop; exit code 1
where a run of the first kind has a larger II than the default, or a larger limit a larger II than
a smaller one. Loops that the minutes do not suffice for are counted, never dropped silently.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

import stretto
from stretto.generate.problem import EFFORTS

EXAMPLES = Path(__file__).parent.parent / "examples"
SECONDS = 10
"""Limit of a proof."""


@dataclass(frozen=True)
class Row:
    """The IIs of one loop; None: no schedule that keeps to the registers."""

    name: str
    default: int | None
    satisfied: tuple[tuple[str, int | None], ...]
    series: tuple[tuple[str, tuple[int | None, ...]], ...]

    @property
    def worse(self) -> tuple[str, ...]:
        """The options that made it worse."""
        told = [what for what, ii in self.satisfied if larger(ii, self.default)]
        told += [what for what, iis in self.series if any(larger(b, a) for a, b in pairwise(iis))]
        return tuple(told)

    def __str__(self) -> str:
        shown = "  ".join(f"{what} {ii}" for what, ii in self.satisfied)
        rising = "  ".join(f"{what} {list(iis)}" for what, iis in self.series)
        worse = f"   WORSE: {', '.join(self.worse)}" if self.worse else ""
        return f"{self.name}: default {self.default}  {shown}  {rising}{worse}"


def larger(ii: int | None, than: int | None) -> bool:
    """Whether an II is worse than another; no schedule is worse than any."""
    return than is not None and (ii is None or ii > than)


def files(corpus: Path | None) -> Iterator[tuple[Path, str | None]]:
    """Every file with loops, and the machine that it is lowered for."""
    for suffix in ("json", "mlir"):
        for file in sorted(EXAMPLES.glob(f"*.{suffix}")):
            if ".schedule" not in file.name and ".too_fast" not in file.name:
                yield file, None
    for pattern in ("triton/*.ttir", "cutile/*.tileirbc"):
        yield from ((file, "h200") for file in sorted(EXAMPLES.glob(pattern)))
    if corpus is not None:
        yield from ((file, None) for file in sorted(corpus.glob("tile-ddg/*.ddg.json")))
        yield from ((file, None) for file in sorted(corpus.glob("hatschet/**/*.graphml")))


def rows_of(file: Path, machine: str | None) -> list[Row]:
    """A row for each loop of a file."""
    return [_row(f"{file.parent.name}/{file.name}", loop) for loop in stretto.read(file, machine)]


def _row(name: str, loop: stretto.Loop) -> Row:
    best = stretto.schedule(loop)

    def ii(**options: Any) -> int | None:
        found = stretto.schedule(loop, **options)
        return found.ii if found.success and found.spilled <= best.spilled else None

    satisfied: tuple[tuple[str, int | None], ...] = ()
    if best.success:
        stages = best.stage_count
        satisfied = (
            ("stages", ii(max_stages=stages)),
            ("stages+1", ii(max_stages=stages + 1)),
            ("max-ii", ii(max_ii=best.ii)),
            ("prove", ii(prove=True, objective="ii", time_limit=SECONDS)),
        )
    limits = tuple(ii(max_stages=n) for n in (1, 2, 3, 5))
    efforts = tuple(ii(effort=effort) for effort in EFFORTS)
    return Row(
        f"{name} {loop.name}",
        best.ii if best.success else None,
        satisfied,
        (("stages 1, 2, 3, 5", limits), ("efforts", efforts)),
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    until = monotonic() + 60 * arguments.minutes
    counts = dict.fromkeys(("loops", "worse", "files not reached"), 0)
    with ProcessPoolExecutor(arguments.workers) as pool:
        waiting = [pool.submit(rows_of, *each) for each in files(arguments.corpus)]
        for future in waiting:
            if monotonic() > until and future.cancel():
                counts["files not reached"] += 1
                continue
            for row in future.result():
                print(row, flush=True)
                counts["loops"] += 1
                counts["worse"] += bool(row.worse)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return int(counts["worse"] > 0)


if __name__ == "__main__":
    sys.exit(main())
