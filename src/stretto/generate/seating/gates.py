"""Four gates before every seat, in fixed order, each with its own way to recover.

    G1  pending and others are ready        ──►  hold it over: it is seated last
    G2  deeper than the depth horizon       ──►  dead in the snapshot, for this attempt
    G3  the table has no room at the cycle  ──►  bump the seat to the next cycle that has
    G4  another stage than its group's      ──►  reorder the group: all of it goes to a later stage

A verdict is data; whoever asked recovers. What an attempt learns stands in its snapshot, an
overlay: neither the problem nor the placement knows of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from stretto.generate.problem import Problem
from stretto.generate.seating.partial import Partial
from stretto.generate.seating.reach import Reach


class Gate(Enum):
    """The gates, in the order in which they are asked."""

    PENDING = "G1"
    DEPTH = "G2"
    TABLE = "G3"
    GROUP = "G4"


class Recovery(Enum):
    """What to do about an operation that a gate stopped."""

    NONE = "none"
    HOLD_OVER = "hold over"
    DEAD = "dead in the snapshot"
    BUMP = "bump the seat"
    REORDER = "reorder the group"


RECOVERY = {
    Gate.PENDING: Recovery.HOLD_OVER,
    Gate.DEPTH: Recovery.DEAD,
    Gate.TABLE: Recovery.BUMP,
    Gate.GROUP: Recovery.REORDER,
}

FIRST_HORIZON = 1
"""The depth horizon that search begins with. Source: schedule generators, second gate."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gates say: the first that stopped it, or the last when all let it pass."""

    gate: Gate
    passed: bool
    recovery: Recovery
    start: int | None = None
    """The seat found, or for G4 the one it would have but for its group."""


@dataclass(slots=True)
class Snapshot:
    """What one attempt believes beside the placement."""

    reach: Reach
    """What longest paths leave everybody beside the seats taken so far."""
    horizon: int = FIRST_HORIZON
    """Stages an operation's own limit may reach before G2 stops it."""
    dead: set[int] = field(default_factory=set[int])
    floors: dict[int, int] = field(default_factory=dict[int, int])
    """Group to the first stage its last member may stand in, once it was reordered."""


def snapshot(partial: Partial) -> Snapshot:
    """The snapshot of a fresh attempt: what lies beyond the first horizon is dead."""
    problem = partial.problem
    fresh = Snapshot(Reach(problem, partial.ii))
    fresh.reach.take(partial)
    fresh.dead.update(i for i in range(problem.size) if not within_horizon(problem, i, fresh))
    return fresh


def deepest(problem: Problem) -> int:
    """The largest depth that an operation may have of its own; 0: none says."""
    return max((op.constraint.max_depth or 0 for op in problem.loop.ops), default=0)


def within_horizon(problem: Problem, i: int, snap: Snapshot) -> bool:
    """G2: an operation's own depth limit, if it has one, lies within the horizon."""
    limit = problem.loop.ops[i].constraint.max_depth
    return limit is None or limit <= snap.horizon or not problem.wants("gate:depth")


def gates(partial: Partial, snap: Snapshot, i: int, start: int, *, alone: bool) -> Verdict:
    """Ask all gates about one seat; `alone`: no operation that is not pending is ready."""
    early = _before_table(partial.problem, snap, i, alone)
    if early is not None:
        return early
    if not partial.table.fits(partial.problem.vectors[i], start):
        return _stopped(Gate.TABLE)
    stage = partial.group_stage(i)
    if stage is not None and start // partial.ii != stage:
        return _stopped(Gate.GROUP, start)
    return Verdict(Gate.GROUP, True, Recovery.NONE, start)


def seek(partial: Partial, snap: Snapshot, i: int, *, alone: bool = True) -> Verdict:
    """The earliest seat that passes all gates, or the gate that leaves none.

    Bumping goes straight to the next cycle the table admits, and G4's part of the window is
    searched before the rest, so that it stops only what no seat in its group's stage can help.
    """
    early = _before_table(partial.problem, snap, i, alone)
    if early is not None:
        return early
    start = _earliest(partial, i, *seat_window(partial, snap, i))
    if start is not None:
        return Verdict(Gate.GROUP, True, Recovery.NONE, start)
    if partial.group_stage(i) is not None:
        start = _earliest(partial, i, *partial.window(i, grouped=False))
        if start is not None:
            return _stopped(Gate.GROUP, start)
    return _stopped(Gate.TABLE)


def seat_window(partial: Partial, snap: Snapshot, i: int) -> tuple[int, int]:
    """The window ``[E, min(L, E + II - 1)]`` of an operation, beside neighbours and by paths."""
    low, high = partial.window(i)
    low = max(low, snap.reach.low[i])
    return low, min(high, snap.reach.high[i], low + partial.ii - 1)


def reorder(partial: Partial, snap: Snapshot, i: int, start: int) -> tuple[int, ...]:
    """Recover from G4: the group of an operation is to stand where that one can; those unseated.

    The floor rises to the stage of the seat the operation would have had. Its group and what
    waits for it in the same iteration are taken out of the placement, to be seated anew.
    """
    problem = partial.problem
    group = problem.group[i]
    assert group is not None
    stage = start // partial.ii + problem.ahead[i]
    snap.floors[group] = max(stage, snap.floors.get(group, 0) + 1)
    out: set[int] = set()
    front = list(problem.members[group])
    while front:
        op = front.pop()
        if op in out:
            continue
        out.add(op)
        front += [arc.other for arc in problem.succs[op] if arc.distance == 0]
    moved: list[int] = []
    for op in sorted(out):
        if partial.starts[op] is not None:
            moved += partial.unseat(op)
    snap.reach = Reach(problem, partial.ii)
    for floored, first in snap.floors.items():
        snap.reach.floor(problem.members[floored], first)
    snap.reach.take(partial)
    return tuple(moved)


def _before_table(problem: Problem, snap: Snapshot, i: int, alone: bool) -> Verdict | None:
    """G1 and G2, which need no seat; None: both let it pass."""
    if problem.pending[i] and not alone:
        return _stopped(Gate.PENDING)
    return None if within_horizon(problem, i, snap) else _stopped(Gate.DEPTH)


def _earliest(partial: Partial, i: int, low: int, high: int) -> int | None:
    if not partial.problem.wants("gate:table"):
        high = min(low, high)
    return partial.table.earliest(partial.problem.vectors[i], low, high) if low <= high else None


def _stopped(gate: Gate, start: int | None = None) -> Verdict:
    return Verdict(gate, False, RECOVERY[gate], start)
