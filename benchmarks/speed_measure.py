"""One loop, scheduled by everybody: II, stages and CPU time, side by side.

    loop ──►  stretto.schedule   from the raw loop to the verified schedule
         ──►  IMS 6, IMS 60      C++: given the MII, from arrays to starts; or from the graph,
                                 with the MII worked out and the schedule checked
         ──►  twin               the same scheduler in plain Python

CPU time is that of the process, after a first call. What is short is run several times, on a loop
of which nothing is remembered, and the median counts. Every IMS schedule of up to 3,000 operations
is verified by `stretto.verify`: what Stretto is compared with are legal schedules.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time
from typing import Any, TypeVar

import stretto
from ims_process import Flat, ImsResult, flat, run_ims
from ims_twin import run_twin
from speed_loops import loop_of
from stretto import Loop, Machine
from stretto.generate.improve import improve
from stretto.generate.ladder.rau import Refiner, Work
from stretto.generate.problem import Options, make_problem
from stretto.generate.search import AT_THE_BOUND, LEAN
from stretto.solution.views import analyse
from stretto.verification import verify

T = TypeVar("T")

BUDGETS = (6, 60)
VERIFIED = 3000
"""Operations up to which every schedule of an IMS is verified."""
TWIN_OPS, TWIN_SEEDS, TWIN_SECONDS = 1000, 2, 2.0
"""The twin takes long: up to so many operations, the first seeds of each size, and so long each."""
THERE = range(201, 1001)
"""Operations of loops for which stages are compared at one II as well."""
RUNS, ENOUGH = 5, 1.0
"""Runs of one loop, and the CPU seconds after which no further one is begun."""


@dataclass(frozen=True)
class Limits:
    """CPU or wall-clock seconds that one scheduler may take for one loop."""

    stretto: float = 60.0
    ims: float = 60.0


@dataclass(frozen=True)
class Outcome:
    """What one scheduler made of one loop."""

    ii: int | None
    """None: no schedule within its limit."""
    stages: int
    seconds: float
    finished: bool
    """False: stopped by the limit; `ii` is then the best so far, if there is one."""
    reached: int
    """The last II that was tried: where an IMS was stopped, it would not have ended below."""
    whole: float | None = None
    """Seconds of an IMS that works out its MII and checks its schedule as well."""


@dataclass(frozen=True)
class Row:
    """One loop and all that was measured of it."""

    kind: str
    ops: int
    seed: int
    mii: int
    stretto: Outcome
    verify_s: float
    """What of Stretto's time is verification: the same again, measured alone."""
    ims6: Outcome
    ims60: Outcome
    twin: Outcome | None
    there: int | None = None
    """Stretto's stages at the II of IMS 60; None: not asked, or not found."""

    @property
    def name(self) -> str:
        """As the loop is called."""
        return f"{self.kind}{self.ops}_{self.seed}"


def warm() -> None:
    """A first call, so that nothing is loaded later."""
    loop, machine = loop_of("random", 10, 1)
    stretto.verify(loop, stretto.schedule(loop, machine), machine)


def measure(kind: str, ops: int, seed: int, limits: Limits) -> Row:
    """Everybody on one loop."""
    loop, machine = loop_of(kind, ops, seed)
    mii = stretto.bounds(loop, machine).mii
    without_fusion = stretto.bounds(loop, machine, fuse=False).mii
    found, verify_s = _stretto(loop, machine, limits.stretto)
    problem = flat(loop, machine, without_fusion)
    six, sixty = run_ims(problem, BUDGETS, limits.ims)
    for result in (six, sixty):
        demand_same_mii(loop, problem, result)
        if result.finished and ops <= VERIFIED:
            demand_legal(loop, machine, result)
    return Row(
        kind=kind,
        ops=ops,
        seed=seed,
        mii=mii,
        stretto=found,
        verify_s=verify_s,
        ims6=outcome(six),
        ims60=outcome(sixty),
        twin=_twin(problem, seed),
        there=_stages_at(loop, machine, sixty.ii) if sixty.finished and ops in THERE else None,
    )


def read_row(entry: dict[str, Any]) -> Row:
    """A row as a result file has it."""
    made: dict[str, Any] = dict(entry)
    for name in ("stretto", "ims6", "ims60", "twin"):
        made[name] = entry[name] and Outcome(**entry[name])
    return Row(**made)


def outcome(result: ImsResult) -> Outcome:
    """An IMS result, as a row has it."""
    ii = result.ii if result.finished else None
    return Outcome(ii, result.stages, result.seconds, result.finished, result.ii, result.whole)


def _twin(problem: Flat, seed: int) -> Outcome | None:
    if problem.operations > TWIN_OPS or seed >= TWIN_SEEDS:
        return None
    return outcome(run_twin(problem, BUDGETS[0], TWIN_SECONDS))


def _stages_at(loop: Loop, machine: Machine, ii: int) -> int | None:
    """The stages of what Stretto's search, told an II, finds there; it is verified."""
    ready = stretto.prepare(loop, machine)
    problem = make_problem(ready.loop, ready.machine, Options())
    refiner = Refiner(problem, ii)
    found = refiner.refine(ii, Work(AT_THE_BOUND * problem.size)).placement
    if found is None:
        return None
    found = improve(problem, refiner.leaner(found, Work(LEAN * problem.worth)))
    violations = verify(
        ready.loop, ready.machine, analyse(ready.loop, ready.machine, found.schedule)
    )
    if violations:
        raise AssertionError(f"{loop.name}: not legal at II {ii}: {violations[0].message}")
    return found.stage_count


def _stretto(loop: Loop, machine: Machine, seconds: float) -> tuple[Outcome, float]:
    try:
        found, took = timed(lambda: stretto.schedule(replace(loop), machine, time_limit=seconds))
    except stretto.OverdueError:
        return Outcome(None, 0, seconds, False, 0), 0.0
    bare = replace(found, table=())  # which is made, and verified, when somebody looks at it
    _, verify_s = timed(lambda: stretto.verify(replace(loop), bare, machine))
    ii = found.ii or 0
    return Outcome(found.ii, found.stage_count, took, not found.overdue, ii), verify_s


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and the median of its CPU times."""
    times: list[float] = []
    while True:
        began = process_time()
        result = call()
        times.append(process_time() - began)
        if len(times) == RUNS or sum(times) > ENOUGH:
            return result, statistics.median(times)


def demand_same_mii(loop: Loop, problem: Flat, result: ImsResult) -> None:
    """AssertionError where an IMS bounds the loop otherwise than Stretto does."""
    if result.mii != problem.mii:
        raise AssertionError(f"{loop.name}: MII {problem.mii}, by the IMS {result.mii}")


def demand_legal(loop: Loop, machine: Machine, result: ImsResult) -> None:
    """AssertionError where an IMS schedule breaks a rule."""
    ops = [{"name": op.name, "start": s} for op, s in zip(loop.ops, result.starts, strict=True)]
    entry = {"name": loop.name, "ii": result.ii, "ops": ops}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ims.schedule.json"
        document = {"schema": "stretto.schedule/1", "loops": [entry]}
        path.write_text(json.dumps(document), encoding="utf-8")
        violations = stretto.verify(loop, path, machine).violations
    if violations:
        raise AssertionError(f"{loop.name}: IMS is not legal: {violations[0].message}")


def peak_memory(kind: str, ops: int, seed: int, seconds: float) -> tuple[float, float]:
    """Peak MB of this process before and after it schedules a loop; for a process of its own."""
    warm()
    loop, machine = loop_of(kind, ops, seed)
    before = _peak()
    stretto.schedule(loop, machine, time_limit=seconds)
    return before, _peak()


def _peak() -> float:
    """Peak resident MB, as Linux counts it; NaN elsewhere."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return next((int(s.split()[1]) / 1024 for s in lines if s.startswith("VmHWM:")), math.nan)
