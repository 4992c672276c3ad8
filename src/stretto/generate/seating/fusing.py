"""Which ready operations may share one hold.

read0 ┐ same kind, bank and slots, as many as the slots let fuse,
read1 ├─ one start that suits all of them,
read2 ┘ and none waits for another, not even by way of groups already fused
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stretto.generate.problem import Problem
from stretto.generate.seating.gates import Snapshot, seat_window
from stretto.generate.seating.partial import Partial
from stretto.problem import FusionClass, fused_vector
from stretto.problem.fusion import enclosing

SEEDS = 6
"""Operations of a class from which a set is grown."""


def alike_sets(
    partial: Partial, snap: Snapshot, live: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Sets that may fuse, each with its earliest start: one grown from each of some operations."""
    problem = partial.problem
    classes: dict[FusionClass, list[int]] = {}
    for i in live:
        key = problem.fusion.keys[i]
        if key is not None:
            classes.setdefault(key, []).append(i)
    seen: set[frozenset[int]] = set()
    for key, ops in classes.items():
        cap = problem.fusion.cap(key)
        for seed in ops[:SEEDS] if len(ops) > 1 else ():
            members, start = _grown(partial, snap, ops, seed, cap)
            if len(members) > 1 and frozenset(members) not in seen:
                seen.add(frozenset(members))
                yield members, start


def _grown(
    partial: Partial, snap: Snapshot, ops: Sequence[int], seed: int, cap: int
) -> tuple[tuple[int, ...], int]:
    """A set from one operation on, as large as the cap and the windows let it become."""
    members, start = (seed,), 0
    for i in ops:
        if len(members) == cap:
            break
        if i == seed:
            continue
        wider = tuple(sorted((*members, i)))
        found = _seat(partial, snap, wider) if may_fuse(partial, wider) else None
        if found is not None:
            members, start = wider, found
    return members, start


def _seat(partial: Partial, snap: Snapshot, members: Sequence[int]) -> int | None:
    """The earliest start in everybody's window at which the joint hold fits."""
    windows = [seat_window(partial, snap, i) for i in members]
    low, high = max(w[0] for w in windows), min(w[1] for w in windows)
    if high < low:
        return None
    return partial.table.earliest(fused_vector(partial.problem, members), low, high)


def may_fuse(partial: Partial, members: Sequence[int]) -> bool:
    """No nesting, no order between them at equal starts, and contracting all groups is acyclic."""
    problem, chosen = partial.problem, set(members)
    for i in members:
        if chosen & set(enclosing(problem.loop, i)):
            return False
        for arc in problem.succs[i]:
            if arc.other in chosen and arc.latency > partial.ii * arc.distance:
                return False
    return not closes_cycle(problem, {**partial.fused, members[0]: tuple(members)}, members)


def closes_cycle(
    problem: Problem, fused: Mapping[int, tuple[int, ...]], members: Sequence[int]
) -> bool:
    """Whether distance-0 dependences lead from a group back to it, other groups being one node."""
    together = {i: group for group in fused.values() for i in group}
    own, seen = set(members), set[int]()
    front = list(members)
    while front:
        for arc in problem.succs[front.pop()]:
            if arc.distance:
                continue
            if arc.other in own:
                return True
            for i in together.get(arc.other, (arc.other,)):
                if i not in seen:
                    seen.add(i)
                    front.append(i)
    return False
