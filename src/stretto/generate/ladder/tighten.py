"""Shorter lives for buffers: a load that is early for no reason holds its tile for no reason.

    load ████░░░░░░░░░░░░ mma          load as late as its reader allows: one copy less
    ░░░░░░░░░░░░ load ████ mma

Operations that fill rotating storages, and views, which hold nothing and would keep them early, are
moved later, each only if the bytes needed do not grow.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.generate.ladder.storage import ring_depth
from stretto.generate.problem import Problem
from stretto.generate.seating.partial import Partial
from stretto.problem import Room


def tighten(partial: Partial, rung: str) -> None:
    """Move the fillers and views of a complete placement as late as pays, last ones first."""
    problem, ii = partial.problem, partial.ii
    if not problem.rotating:
        return
    touched = _touched(problem)
    movable = {w for room in problem.rotating for w in room.writers}
    movable |= {i for i, vector in enumerate(problem.vectors) if not vector.uses}
    for op in sorted(movable, key=problem.rank.__getitem__, reverse=True):
        start = partial.starts[op]
        if start is None or not problem.succs[op]:
            continue
        if problem.deadline.over:  # the placement is complete as it stands
            return
        low, high = partial.window(op)
        if high <= start:
            continue
        before = _bytes(problem, touched[op], ii, partial.starts)
        partial.unseat(op)
        later = partial.table.latest(problem.vectors[op], max(low, start), high)
        seat = start if later is None else later
        partial.seat((op,), seat, rung)
        if _bytes(problem, touched[op], ii, partial.starts) > before:
            partial.unseat(op)
            partial.seat((op,), start, rung)


def _touched(problem: Problem) -> list[list[Room]]:
    touched: list[list[Room]] = [[] for _ in problem.names]
    for room in problem.rotating:
        for op in {accessor for accessor, _ in room.accessors}:
            touched[op].append(room)
    return touched


def _bytes(problem: Problem, rooms: Sequence[Room], ii: int, starts: Sequence[int | None]) -> int:
    known = [start or 0 for start in starts]
    return sum(room.bytes * ring_depth(problem, room, ii, known) for room in rooms)
