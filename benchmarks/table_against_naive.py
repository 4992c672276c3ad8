"""The bit-parallel reservation table against its naive twin, on the same random sequence.

    probe (earliest in a window of II)  ──►  commit  ──►  release        II 1000, holds of 1 to 300

    python benchmarks/table_against_naive.py        prints the ratio, writes results/table.json

Each step probes a new operation, releases the oldest ones until it fits, and commits it. Two loads:
`full` releases only when nothing else helps, as a scheduler near the smallest II does; `sparse` has
at most four operations seated, so that the first start tried often fits, the best case of the naive
table. Both tables see the same operations and every answer is compared. The ratio at full load must
be at least 20; below that the exit status is 1.
"""

from __future__ import annotations

import json
import platform
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from stretto.loop import Demand, ResourceVector, Use
from stretto.machine import Machine, Pool, Slot
from stretto.resources.table import ReservationTable

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from naive_table import NaiveTable  # noqa: E402

II = 1000
LONGEST = 300
STEPS = 300
LOADS = {"full": STEPS, "sparse": 4}
"""How many operations may be seated at once."""
SEED = 15
REPEATS = 3
LEAST_RATIO = 20.0
RESULT = HERE / "results" / "table.json"

MACHINE = Machine(
    "bench",
    "exclusive and shared slots, and a pool",
    (
        Slot(1, "copy", 1),
        Slot(2, "matrix", 1),
        Slot(3, "port", 1),
        Slot(4, "alu", 4),
        Slot(5, "simt", None),
    ),
    (Pool("bank", 2048),),
)


@dataclass(frozen=True)
class Outcome:
    """What a run answered, and what it cost."""

    seconds: float
    answers: tuple[int | None, ...]
    """Of every probe, in order."""

    @property
    def seats(self) -> int:
        """Probes that found a start."""
        return sum(answer is not None for answer in self.answers)


def workload() -> list[tuple[str, ResourceVector, int]]:
    """Name, vector and window start of every operation: the same in every run."""
    rng = random.Random(SEED)
    operations: list[tuple[str, ResourceVector, int]] = []
    for i in range(STEPS):
        slots = rng.sample(MACHINE.slots, rng.randint(1, 2))
        uses = tuple(
            Use(
                slot.name,
                rng.randint(1, LONGEST),
                rng.choice((0, 0, rng.randint(1, 40))),
                rng.randint(1, 2) if slot.capacity != 1 else 1,
            )
            for slot in slots
        )
        demands = (Demand("bank", rng.randint(1, 512)),) if rng.random() < 0.3 else ()
        operations.append((f"op{i}", ResourceVector(uses, demands), rng.randrange(4 * II)))
    return operations


def run(
    table: ReservationTable | NaiveTable,
    operations: list[tuple[str, ResourceVector, int]],
    most: int,
) -> Outcome:
    """Probe, commit and release through the whole sequence."""
    answers: list[int | None] = []
    seated: list[str] = []
    # The twin's own probe inside `commit` is spared: its cost is not what is compared.
    commit = table.seat if isinstance(table, NaiveTable) else table.commit
    began = time.perf_counter()
    for name, vector, low in operations:
        if len(seated) == most:
            table.release(seated.pop(0))
        start = table.earliest(vector, low, low + II - 1)
        answers.append(start)
        while start is None:
            table.release(seated.pop(0))
            start = table.earliest(vector, low, low + II - 1)
            answers.append(start)
        commit(name, vector, start)
        seated.append(name)
    for name in seated:
        table.release(name)
    return Outcome(time.perf_counter() - began, tuple(answers))


def best(kind: type[ReservationTable] | type[NaiveTable], most: int) -> Outcome:
    """The fastest of a few runs, each on a fresh table; all must answer alike."""
    operations = workload()
    outcomes = [run(kind(MACHINE, II), operations, most) for _ in range(REPEATS)]
    if len({outcome.answers for outcome in outcomes}) != 1:
        sys.exit(f"{kind.__name__} answers differently from run to run")
    return min(outcomes, key=lambda outcome: outcome.seconds)


def measure(load: str) -> dict[str, float]:
    """Both tables at one load, answers compared."""
    fast, naive = best(ReservationTable, LOADS[load]), best(NaiveTable, LOADS[load])
    for i, (answer, expected) in enumerate(zip(fast.answers, naive.answers, strict=False)):
        if answer != expected:
            sys.exit(f"{load}, probe {i}: {answer}; the naive table says {expected}")
    each, naive_each = (1e6 * outcome.seconds / STEPS for outcome in (fast, naive))
    ratio = naive.seconds / fast.seconds
    print(
        f"{load:>6}: {len(fast.answers)} probes, {each:.1f} µs against {naive_each:.1f} µs a "
        f"probe-commit-release: {ratio:.1f} times faster"
    )
    return {
        "probes": len(fast.answers),
        "probes_without_a_start": len(fast.answers) - fast.seats,
        "microseconds": round(each, 2),
        "naive_microseconds": round(naive_each, 2),
        "ratio": round(ratio, 1),
    }


def main() -> int:
    """Measure, write the result, and judge it."""
    print(f"II {II}, holds of 1 to {LONGEST} cycles, {STEPS} operations, best of {REPEATS} runs")
    loads = {load: measure(load) for load in LOADS}
    ratio = loads["full"]["ratio"]
    report = {
        "benchmark": "reservation table against its naive twin: one probe-commit-release",
        "ii": II,
        "holds": [1, LONGEST],
        "operations": STEPS,
        "seed": SEED,
        "repeats": REPEATS,
        "loads": loads,
        "ratio": ratio,
        "least_ratio": LEAST_RATIO,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if ratio < LEAST_RATIO:
        print(f"the ratio at full load is {ratio}; at least {LEAST_RATIO:.0f} is required")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
