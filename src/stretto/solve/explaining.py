"""`explain_prepared(ready)`: why no smaller II exists, and what would have to change.

schedule, proved ──► II 15 ──► why not 14? ──► a minimal conflict ──► changes, each verified
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from stretto.deadline import OverdueError
from stretto.errors import StrettoError
from stretto.exact import II, Limits, ProofOptions
from stretto.exact.case import Case, make_case
from stretto.exact.explanation import Explanation
from stretto.exact.interrupts import load_solver
from stretto.generate import EXACT
from stretto.generate.problem import Options
from stretto.loop import Loop
from stretto.resources.prepare import Prepared
from stretto.solution import Schedule, ScheduleAnalysis
from stretto.solution.views import analyse
from stretto.solve.job import IllegalScheduleError
from stretto.solve.scheduling import Progress, StoppedError, schedule_prepared
from stretto.verification import Violation, verify

STORAGE_KINDS = ("memory", "anti", "output")
"""Dependences that a storage asks for."""

ALREADY_LEAST = "an II is at least 1"


@dataclass(frozen=True, slots=True)
class Explained:
    """What is known of a loop's best II, and of the one that was asked about."""

    best: ScheduleAnalysis
    explanation: Explanation | None
    """None where there is nothing to explain: the best II is 1."""
    case: Case
    seconds: float


def explain_prepared(
    ready: Prepared,
    ii: int | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Explained:
    """Why there is no schedule at `ii` (default: one below the best); undecided, said so."""
    began = perf_counter()
    options, limits = options or Options(), limits or Limits()
    if ii is not None and ii < 1:
        raise StrettoError(f"ii is {ii}; {ALREADY_LEAST}")
    stopped = False
    try:
        proof = ProofOptions(II, limits)
        best = schedule_prepared(ready, EXACT, options, progress, proof)
    except StoppedError as stop:
        best, stopped = stop.analysis, True
    case = make_case(
        ready.loop, ready.machine, options.fuse, options.max_stages, deadline=options.deadline
    )
    asked = ii if ii is not None else _next_smaller(best)
    if asked < 1:
        return Explained(best, None, case, perf_counter() - began)
    if stopped:
        found = Explanation(asked, "undecided", stopped=True)
    elif best.ii is not None and asked == best.ii:
        found = Explanation(asked, "possible")
    elif best.overdue:
        found = Explanation(asked, "undecided")
    else:
        try:
            found = _explained(case, asked, best, limits)
        except KeyboardInterrupt:  # between two runs of the solver
            found = Explanation(asked, "undecided", stopped=True)
        except OverdueError:  # while a model was made
            found = Explanation(asked, "undecided")
    return Explained(best, found, case, perf_counter() - began)


def _next_smaller(best: ScheduleAnalysis) -> int:
    """One below the best; where there is none, the largest II that was refused."""
    if best.ii is not None:
        return best.ii - 1
    return max(r.last for r in best.refused)


def _explained(case: Case, ii: int, best: ScheduleAnalysis, limits: Limits) -> Explanation:
    load_solver()
    from stretto.exact.explain import explain as find  # noqa: PLC0415 - needs the solver

    assert best.bounds is not None
    return find(case, ii, best.bounds, limits, _check)


def _check(case: Case, schedule: Schedule) -> None:
    """A schedule that is claimed passes the verifier, on the changed problem."""
    loop, machine = case.loop, case.machine
    analysis = analyse(loop, machine, schedule)
    violations = verify(loop, machine, analysis, max_stages=case.max_stages)
    real = [v for v in violations if not _granted(case, v)]
    if real:
        raise IllegalScheduleError(loop.name, EXACT, real)


def _granted(case: Case, violation: Violation) -> bool:
    """Whether it is no more than the change allows.

    A changed latency is not part of the loop, so the verifier counts with the old one: that one
    inequality may be broken, by as many cycles as the latency fell, and no other. Where it is an
    order of storages that both touch, so may those that follow from it: whoever comes after the
    one that waits less for the source waits less for it too.
    """
    told = dict(violation.detail)
    if violation.rule != "dependence" or "kind" not in told:
        return False
    missing = int(told["allowed"]) - int(told["starts"])
    for k, latency in case.latencies:
        d = case.dependences[k]
        same = (told["kind"], told["via"], told["distance"]) == (d.kind, d.via, d.distance)
        itself = same and violation.ops == tuple(dict.fromkeys((d.src, d.dst)))
        shared = _touched(case.loop, d.src) & _touched(case.loop, d.dst)
        follows = told["via"] in shared and d.kind in STORAGE_KINDS and violation.ops[0] == d.src
        if (itself or follows) and missing <= d.latency - latency:
            return True
    return False


def _touched(loop: Loop, op: str) -> set[str]:
    return {*loop.op(op).writes, *(read.storage for read in loop.reads[op])}
