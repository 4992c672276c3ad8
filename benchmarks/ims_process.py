"""A loop as the flat problem of a modulo scheduler, and the C++ scheduler that reads it.

    Loop, Machine  ──►  Flat: capacities, uses, dependences, MII  ──►  ims  ──►  II, starts, time

Slots and pools are resources alike; what is unlimited, or held by nobody, is left out. Fusion,
groups, depth limits and budgets of memory are not part of it: a textbook scheduler knows none.

    python benchmarks/ims_process.py        builds benchmarks/ims/build/ims with $CXX (default g++)
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import stretto
from stretto import Loop, Machine

SOURCE = Path(__file__).resolve().parent / "ims"
PROGRAM = SOURCE / "build" / "ims"
FLAGS = ("-std=c++20", "-O2", "-Wall", "-Wextra")


class NoCompilerError(Exception):
    """There is no C++ compiler, so there is nothing to compare with."""


@dataclass(frozen=True)
class Flat:
    """What a modulo scheduler needs of a loop, in numbers."""

    operations: int
    capacities: tuple[int, ...]
    uses: tuple[tuple[int, int, int, int, int], ...]
    """(operation, resource, offset, duration, amount), by operation."""
    dependences: tuple[tuple[int, int, int, int], ...]
    """(source, target, latency, distance)."""
    mii: int
    """Where it begins; at least what recurrences ask for."""

    @property
    def last_ii(self) -> int:
        """An II at which one may follow the other: the search ends there at the latest."""
        held = sum(offset + duration for _, _, offset, duration, _ in self.uses)
        waited = sum(max(0, latency) for _, _, latency, _ in self.dependences)
        return self.mii + held + waited

    def text(self) -> str:
        """As the C++ scheduler reads it."""
        counts = (self.operations, len(self.capacities), len(self.uses), len(self.dependences))
        rows: list[Iterable[int]] = [(*counts, self.mii, self.last_ii), self.capacities]
        rows += [*self.uses, *self.dependences]
        return "\n".join(" ".join(map(str, row)) for row in rows) + "\n"


def flat(loop: Loop, machine: Machine | str | None, mii: int) -> Flat:
    """The flat problem of a loop."""
    ready = stretto.prepare(loop, machine)
    limits = {("slot", slot.name): slot.capacity for slot in ready.machine.slots}
    limits |= {("slot", name): 1 for name in ready.loop.slots}
    limits |= {("pool", pool.name): pool.cap for pool in ready.machine.pools}
    numbers: dict[tuple[str, str], int] = {}
    capacities: list[int] = []
    uses: list[tuple[int, int, int, int, int]] = []
    for i, op in enumerate(ready.loop.ops):
        vector = op.vector
        holds = [(("slot", u.slot), u.offset, u.duration, u.occupancy) for u in vector.uses]
        holds += [(("pool", d.pool), 0, vector.duration, d.units) for d in vector.demands]
        for key, offset, duration, amount in holds:
            limit = limits[key]
            if limit is not None and duration and amount:
                if key not in numbers:
                    numbers[key] = len(numbers)
                    capacities.append(limit)
                uses.append((i, numbers[key], offset, duration, amount))
    index = ready.loop.index
    dependences = tuple(
        (index[d.src], index[d.dst], d.latency, d.distance) for d in ready.loop.dependences
    )
    return Flat(len(ready.loop.ops), tuple(capacities), tuple(uses), dependences, mii)


@dataclass(frozen=True)
class ImsResult:
    """What an iterative modulo scheduler came to."""

    budget: int
    """Seats it may try at one II, for each operation."""
    finished: bool
    ii: int
    """The last it tried, where it did not finish."""
    stages: int
    seconds: float
    """CPU time of the scheduling alone, the MII given."""
    starts: tuple[int, ...]
    mii: int = 0
    """By its own reckoning; 0: it has none."""
    whole: float | None = None
    """CPU time with its own MII worked out and its schedule checked; None: it does neither."""


def build(compiler: str | None = None) -> Path:
    """The C++ scheduler, compiled if its source is newer; NoCompilerError with what to do."""
    sources = sorted(SOURCE.glob("*.?pp"))
    newest = max(path.stat().st_mtime for path in sources)
    if PROGRAM.exists() and PROGRAM.stat().st_mtime >= newest:
        return PROGRAM
    command = shlex.split(compiler or os.environ.get("CXX", "") or "g++")
    if shutil.which(command[0]) is None:
        raise NoCompilerError(
            f"no C++ compiler: `{command[0]}` is not there; install g++ or clang++ (C++20), "
            "or name one with CXX=..."
        )
    PROGRAM.parent.mkdir(exist_ok=True)
    fresh = PROGRAM.with_suffix(f".{os.getpid()}")
    subprocess.run([*command, *FLAGS, "-o", str(fresh), str(SOURCE / "ims.cpp")], check=True)
    fresh.replace(PROGRAM)
    return PROGRAM


def run_ims(problem: Flat, budgets: Sequence[int], seconds: float = 60.0) -> tuple[ImsResult, ...]:
    """The C++ scheduler on one problem, once for each budget, at most so long for each."""
    command = [str(build()), "--limit", str(seconds)]
    for budget in budgets:
        command += ["--budget", str(budget)]
    told = subprocess.run(
        command, input=problem.text(), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found: list[ImsResult] = []
    for head, starts in zip(told[::2], told[1::2], strict=True):
        budget, state, ii, stages, _, _, _, given, whole, mii = head.split()
        found.append(
            ImsResult(
                budget=int(budget),
                finished=state == "ii",
                ii=int(ii),
                stages=int(stages),
                seconds=1e-6 * float(given),
                starts=tuple(map(int, starts.split())),
                mii=int(mii),
                whole=1e-6 * float(whole),
            )
        )
    return tuple(found)


def check_ims(problem: Flat, ii: int, starts: Sequence[int]) -> bool:
    """Whether the C++ scheduler's own check, part of its `whole` time, passes a schedule."""
    given = problem.text() + " ".join(map(str, starts)) + "\n"
    command = [str(build()), "--check", str(ii)]
    told = subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
    return told == "legal\n"


if __name__ == "__main__":
    try:
        print(build())
    except NoCompilerError as error:
        sys.exit(str(error))
