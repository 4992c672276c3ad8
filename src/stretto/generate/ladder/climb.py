"""The strategy ladder at one II: cheap rungs first, until one gives a placement whose rings fit.

    rau                  evicting search on an empty table; leaves what it seated
    deepest-depth        arms on an empty table, the depth horizon as wide as any limit
    initial              arms (permute, fuse, retry) on the largest placement so far
    cost-based           all four arms on it, no seat above the bank caps

A rung seats one operation (or fused set) after the other and never evicts, but for a group that
must move to a later stage. Which rung and which arm seated an operation stays with the placement.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from stretto.generate.ladder import Attempt, overflow_refusal, refusal_for
from stretto.generate.ladder.rings import overflow, tighten
from stretto.generate.problem import ARMS, RUNGS, Problem
from stretto.generate.seating.arms import Bench, propose
from stretto.generate.seating.cost import Scorer
from stretto.generate.seating.gates import (
    FIRST_HORIZON,
    Gate,
    deepest,
    gates,
    reorder,
    seat_window,
    seek,
    snapshot,
)
from stretto.generate.seating.partial import Partial
from stretto.problem.paths import heights
from stretto.solution import Refusal

Refine = Callable[[Problem, int], Attempt]

CHEAP_ARMS = ARMS[:3]
REORDERS = 8
"""Groups that one rung may move to a later stage."""


def climb(problem: Problem, ii: int, refine: Refine) -> Attempt:
    """The first placement that a rung gives, or the largest that any reached and why it stopped."""
    ladder = _Ladder(problem, ii, Partial(problem, ii))
    for rung in RUNGS:
        if not problem.wants(rung):
            continue
        if rung == "rau":
            attempt = refine(problem, ii)
            if attempt.placement is not None:
                return attempt
            stuck = attempt.stuck
            ladder.reached(attempt.partial, stuck.worked_out() if stuck else attempt.refusal)
        elif rung != "deepest-depth" or deepest(problem) > FIRST_HORIZON:
            placement = ladder.place(rung)
            if placement is not None:
                return Attempt(placement, placement, None)
    refusal = ladder.refusal or Refusal(ii, "no rung of the ladder was tried")
    return Attempt(None, ladder.resume, refusal)


@dataclass(slots=True)
class _Ladder:
    """What rungs leave for one another."""

    problem: Problem
    ii: int
    resume: Partial
    """The largest placement so far: rungs of arms go on from it, and the refusal is about it."""
    refusal: Refusal | None = None
    scorer: Scorer | None = None
    urgency: list[tuple[bool, int, int]] = field(default_factory=list[tuple[bool, int, int]])
    """Sorts operations: pending ones last, long ways to the end first."""

    def reached(self, partial: Partial, refusal: Refusal | None) -> None:
        """Keep what a rung came to."""
        larger = partial.count > self.resume.count
        if larger:
            self.resume = partial
        if refusal is not None and (self.refusal is None or larger):
            self.refusal = refusal

    def place(self, rung: str) -> Partial | None:
        """Run one rung of arms; None: refused, and kept for the next."""
        problem, ii = self.problem, self.ii
        if self.scorer is None:
            self.scorer = Scorer(problem, ii)
            height = heights(problem.between, problem.completion, ii, problem.deadline)
            keys = zip(problem.pending, height, problem.rank, strict=True)
            self.urgency = [(pending, -far, rank) for pending, far, rank in keys]
        wide = rung == "deepest-depth"
        partial = Partial(problem, ii) if wide else resumed(problem, self.resume)
        bench = Bench(partial, self.scorer, snapshot(partial))
        bench.veto = rung == "cost-based"
        if wide:
            bench.snap.horizon = deepest(problem)
        able = ARMS if wide or bench.veto else CHEAP_ARMS
        arms = tuple(arm for arm in able if problem.wants(f"arm:{arm}"))
        refusal = _fill(bench, rung, arms, self.urgency)
        if refusal is None:
            refusal = _overflowing(bench.partial, rung)
        if refusal is None:
            return bench.partial
        self.reached(bench.partial, refusal)
        return None


def resumed(problem: Problem, partial: Partial) -> Partial:
    """The same seats in a placement of their own, as far as they agree with each other.

    What is held depends on the cycle alone, so a seat that comes too early moves by whole IIs;
    one that has no stage left is given up.
    """
    ii, fresh = partial.ii, Partial(problem, partial.ii)
    followers = {i for members in partial.fused.values() for i in members[1:]}
    for i in problem.graph.order:
        seat = partial.starts[i]
        if seat is None or i in followers:
            continue
        members = partial.fused.get(i, (i,))
        windows = [fresh.window(m) for m in members]
        low, high = max(w[0] for w in windows), min(w[1] for w in windows)
        start = seat if low <= seat <= high else low + (seat - low) % ii
        if start <= high:
            fresh.seat(members, start, *partial.seated_by[i])
    return fresh


def _fill(
    bench: Bench, rung: str, arms: tuple[str, ...], urgency: list[tuple[bool, int, int]]
) -> Refusal | None:
    """Seat one proposal after the other; None: all are seated."""
    partial = bench.partial
    waiting = _rebuild(bench, urgency)
    reorders = REORDERS
    while not partial.complete:
        partial.problem.deadline.check()
        proposal = propose(bench, arms)
        if proposal is None:
            if reorders and _reordered(bench):
                reorders -= 1
                waiting = _rebuild(bench, urgency)
                continue
            return _why(bench, rung)
        for i in proposal.members:
            verdict = gates(partial, bench.snap, i, proposal.start, alone=i in bench.live)
            if not verdict.passed:
                raise RuntimeError(f"`{partial.problem.names[i]}` was proposed against {verdict}")
        partial.seat(proposal.members, proposal.start, rung, proposal.arm)
        for i in proposal.members:
            bench.snap.reach.seat(i, proposal.start)
        _advance(bench, waiting, proposal.members, urgency)
    return None


def _rebuild(bench: Bench, urgency: list[tuple[bool, int, int]]) -> list[int]:
    """Find the ready set anew; how many in its own iteration each operation still waits for."""
    problem, starts = bench.partial.problem, bench.partial.starts
    waiting = [
        sum(arc.distance == 0 and starts[arc.other] is None for arc in arcs)
        for arcs in problem.preds
    ]
    ready = [i for i in range(problem.size) if starts[i] is None and not waiting[i]]
    bench.ready[:] = sorted(ready, key=urgency.__getitem__)
    return waiting


def _advance(
    bench: Bench,
    waiting: list[int],
    members: tuple[int, ...],
    urgency: list[tuple[bool, int, int]],
) -> None:
    """Take the seated out of the ready set and let in what waited for them alone."""
    problem = bench.partial.problem
    for i in members:
        bench.ready.remove(i)
        for arc in problem.succs[i]:
            if arc.distance == 0:
                waiting[arc.other] -= 1
                if not waiting[arc.other] and bench.partial.starts[arc.other] is None:
                    insort(bench.ready, arc.other, key=urgency.__getitem__)


def _reordered(bench: Bench) -> bool:
    """Recover from G4, if it is what stops an operation."""
    if not bench.partial.problem.wants("gate:group"):
        return False
    for i in bench.live:
        verdict = seek(bench.partial, bench.snap, i)
        if verdict.gate is Gate.GROUP and not verdict.passed and verdict.start is not None:
            reorder(bench.partial, bench.snap, i, verdict.start)
            return True
    return False


def _why(bench: Bench, rung: str) -> Refusal:
    """Why no arm proposed anything, about the operation that is worst off."""
    partial, problem = bench.partial, bench.partial.problem
    for i in bench.live:
        if not seek(partial, bench.snap, i).passed:
            return refusal_for(partial, i, rung, seat_window(partial, bench.snap, i))
    unseated = [i for i in problem.graph.order if partial.starts[i] is None]
    blocked = bench.live or bench.ready or unseated
    refusal = refusal_for(partial, blocked[0], rung)
    limit = problem.loop.ops[blocked[0]].constraint.max_depth
    if blocked[0] in bench.snap.dead and limit is not None and limit > FIRST_HORIZON:
        far = f"its limit is stage {limit}, search begins with {FIRST_HORIZON}"
        reason = f"`{problem.names[blocked[0]]}` is left out: {far}, and no arm revived it"
        return replace(refusal, reason=reason)
    return refusal


def _overflowing(partial: Partial, rung: str) -> Refusal | None:
    """Why the rings of a complete placement do not fit, fillers moved as late as pays."""
    problem, ii = partial.problem, partial.ii
    reason = overflow(problem, ii, partial.whole())
    if reason and not partial.fused:
        by = dict(partial.seated_by)
        tighten(partial, rung)
        partial.seated_by.update(by)
        reason = overflow(problem, ii, partial.whole())
    return overflow_refusal(ii, reason, rung) if reason else None
