"""Why an II was refused, worked out from the placement that an attempt was left with.

    left with     load @0   mma @9   write?           the work was spent while seats changed hands
    completed     load @0   mma @9   write: 3 to 10   all that is left is seated, nobody pushed out,
                                     held by `load`   until one finds no seat: the refusal is its

What is left is seated in order, the one that failed last first. So a refusal names an operation,
the window that seats which agree with each other leave it, and who holds every start of it. Where
all find seats, the attempt was no failure: it is a placement, as good as any.

This is worked out once an II stays refused, not with every attempt.
"""

from __future__ import annotations

from stretto.generate.ladder import Attempt, overflow_refusal, refusal_for
from stretto.generate.ladder.climb import resumed
from stretto.generate.ladder.rings import overflow, tighten
from stretto.generate.seating.partial import Partial
from stretto.solution import Refusal

TIME, WORK, ARMS = "time limit", "work", "arms"
"""What ended an attempt that is not looked into: `Refusal.limit` says it."""
_ENDED = {
    TIME: "had no seat when the time limit came",
    WORK: "had no seat when the work allowed was spent",
    ARMS: "had no seat that an arm would propose",
}


def worked_out(attempt: Attempt) -> Partial | Refusal:
    """Why an attempt was stuck, or the placement that it may be completed to."""
    assert attempt.stuck is not None
    left, rung = attempt.partial, attempt.rung
    problem, ii = left.problem, left.ii
    whole = resumed(problem, left)
    for i in (attempt.stuck, *problem.graph.order):
        if whole.starts[i] is not None:
            continue
        low, high = whole.window(i)
        seat = None
        if low <= high:
            seat = whole.table.earliest(problem.vectors[i], low, min(high, low + ii - 1))
        if seat is None:
            return refusal_for(whole, i, rung)
        whole.seat((i,), seat, rung)
    too_much = overflow(problem, ii, whole.whole())
    if too_much and not whole.fused:
        tighten(whole, rung)
        too_much = overflow(problem, ii, whole.whole())
    return overflow_refusal(ii, too_much, rung) if too_much else whole


def cut_short(attempt: Attempt, limit: str) -> Refusal:
    """Who had no seat when something ended an attempt; nothing more was looked into."""
    assert attempt.stuck is not None
    problem, i = attempt.partial.problem, attempt.stuck
    name, ii = problem.names[i], attempt.partial.ii
    low, high = attempt.partial.window(i)
    return Refusal(
        ii,
        f"`{name}` {_ENDED[limit]}",
        rung=attempt.rung,
        op=name,
        uses=problem.vectors[i].uses,
        window=(low, min(high, low + ii - 1)),
        limit=limit,
    )


def told(attempt: Attempt) -> Refusal | None:
    """Why an attempt came to nothing, where it did."""
    if attempt.stuck is None:
        return attempt.refusal
    found = worked_out(attempt)
    return found if isinstance(found, Refusal) else cut_short(attempt, WORK)
