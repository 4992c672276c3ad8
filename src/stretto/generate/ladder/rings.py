"""When rings overflow: decide how deep each may be, and hold the schedule to it.

    a_tile 2 copies, b_tile 2 copies: too much     ──►  a_tile 1, b_tile 2
    reader of a_tile ─completion,+1─► writer of a_tile        a cap is a dependence like any other

Depths start from what dependences force at this II; what is left of the budget goes to the
storages that wanted more. The caps become arcs, and so the problem is one of the same kind again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stretto.bounds.recurrence import recurrence_bound
from stretto.generate.ladder.storage import ring_depth
from stretto.generate.problem import Problem
from stretto.problem import Edge, Room
from stretto.problem.paths import longest_from


def least_depths(problem: Problem, ii: int) -> list[int]:
    """The copies of each rotating storage that dependences alone force at this II."""
    return [max(1, -(-_least_life(problem, room, ii) // ii)) for room in problem.rotating]


def _least_life(problem: Problem, room: Room, ii: int) -> int:
    """From the first writer's issue to the last completion, as short as any schedule has it."""
    life = 0
    for writer in room.writers:
        reached = longest_from(problem.succs, writer, ii, problem.deadline)
        for op, distance in room.accessors:
            gap = reached[op]
            if gap is not None:
                life = max(life, gap + problem.completion[op] + ii * distance)
    return life


def least_bytes(problem: Problem, ii: int) -> dict[str, int]:
    """Bytes of each space that any schedule at this II needs."""
    needed = dict(problem.rooms.single_bytes)
    for room, depth in zip(problem.rotating, least_depths(problem, ii), strict=True):
        needed[room.space] = needed.get(room.space, 0) + room.bytes * depth
    return needed


def capped(problem: Problem, ii: int, starts: Sequence[int]) -> Iterator[Problem]:
    """The problem with its rings capped so that they fit, in a few ways."""
    wanted = [ring_depth(problem, room, ii, starts) for room in problem.rotating]
    least = least_depths(problem, ii)
    seen: set[tuple[int, ...]] = set()
    for favour in range(len(wanted) + 1):
        problem.deadline.check()
        depths = _share(problem, least, wanted, favour)
        if depths is None or depths in seen:
            continue
        seen.add(depths)
        variant = with_caps(problem, depths)
        if recurrence_bound(variant.graph, problem.deadline).bound <= ii:
            yield variant


def _share(
    problem: Problem, least: Sequence[int], wanted: Sequence[int], favour: int
) -> tuple[int, ...] | None:
    """Depths that fit: the least, then one more copy at a time, the favoured storage first."""
    depths = list(least)
    room_left = dict(problem.rooms.budgets)
    for space, size in problem.rooms.single_bytes.items():
        if space in room_left:
            room_left[space] -= size
    for room, depth in zip(problem.rotating, depths, strict=True):
        if room.space in room_left:
            room_left[room.space] -= room.bytes * depth
    if any(left < 0 for left in room_left.values()):
        return None
    order = sorted(range(len(depths)), key=lambda k: (k + 1 != favour, -problem.rotating[k].bytes))
    grown = True
    while grown:
        grown = False
        for k in order:
            room = problem.rotating[k]
            left = room_left.get(room.space)
            if depths[k] < wanted[k] and (left is None or left >= room.bytes):
                depths[k] += 1
                grown = True
                if left is not None:
                    room_left[room.space] = left - room.bytes
    return tuple(depths)


def with_caps(problem: Problem, depths: Sequence[int]) -> Problem:
    """The problem with each rotating storage held to so many copies."""
    caps = [
        Edge(op, writer, problem.completion[op], depth - distance)
        for room, depth in zip(problem.rotating, depths, strict=True)
        for writer in room.writers
        for op, distance in room.accessors
        if op != writer and depth > distance
    ]
    return replace(problem, graph=problem.graph.with_edges(caps))
