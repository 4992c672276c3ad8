"""Rings of a placement: do they fit, and if not, hold them to fewer copies or shorten their lives.

    a_tile  lives 2,892 cycles at II 2,048  ──►  2 copies × 65,536 bytes

    a_tile 2 copies, b_tile 2 copies: too much     ──►  a_tile 1, b_tile 2
    reader of a_tile ─completion,+1─► writer of a_tile        a cap is a dependence like any other

    load ████░░░░░░░░░░░░ mma          load as late as its reader allows: one copy less
    ░░░░░░░░░░░░ load ████ mma

Capped depths start from what dependences force at this II; what is left of the budget goes to the
storages that wanted more. The caps become arcs, and so the problem is one of the same kind again.
Operations that fill rotating storages, and views, which hold nothing and would keep them early, are
moved later, each only if the bytes needed do not grow: a load that is early for no reason holds its
tile for no reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from stretto.generate.problem import Problem
from stretto.lower_bounds.recurrence import recurrence_bound
from stretto.problem import Edge, Room
from stretto.problem.paths import longest_from
from stretto.resources.table import ReservationTable
from stretto.solution.views import knot

if TYPE_CHECKING:
    from stretto.generate.seating.partial import Partial


# Do they fit? ----------------------------------------------------------------------------


def ring_depth(problem: Problem, room: Room, ii: int, starts: Sequence[int]) -> int:
    """Copies of a rotating storage that are alive at once."""
    writers, completion = room.writers, problem.completion
    begin = starts[writers[0]] if len(writers) == 1 else min([starts[w] for w in writers])
    end = max([starts[op] + completion[op] + ii * distance for op, distance in room.accessors])
    return max(1, -(-(end - begin) // ii))


def bytes_needed(problem: Problem, ii: int, starts: Sequence[int]) -> dict[str, int]:
    """Bytes of each space that a whole placement takes."""
    needed = dict(problem.rooms.single_bytes)
    for room in problem.rotating:
        depth = ring_depth(problem, room, ii, starts)
        needed[room.space] = needed.get(room.space, 0) + room.bytes * depth
    return needed


def overflow(problem: Problem, ii: int, starts: Sequence[int]) -> str:
    """Which budget a whole placement exceeds, with the bytes; empty if it fits.

    Registers of agents come last. Rings that no order of one cycle hands on are no better than
    rings that do not fit.
    """
    tied = knot(problem.loop, ii, problem.starts_by_name(starts)) if problem.instant else ()
    if tied:
        return f"{' and '.join(tied)} take no time, and each has to come before the other"
    needed = bytes_needed(problem, ii, starts) if problem.rotating else {}
    for space, budget in problem.rooms.budgets.items() if problem.rotating else ():
        if needed.get(space, 0) > budget:
            return f"{space} needs {needed[space]:,} bytes; the budget is {budget:,}"
    return problem.registers.overflow(ii, starts)


# Fewer copies ----------------------------------------------------------------------------


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


# Shorter lives ---------------------------------------------------------------------------


def tighten(partial: Partial, rung: str) -> None:
    """Move the fillers and views of a complete placement as late as pays, last ones first."""
    problem = partial.problem
    spread = [room for room in problem.rotating if _depth(problem, room, partial) > 1]
    if not spread:
        return
    touched = _touched(problem)
    movable = {w for room in spread for w in room.writers}
    movable |= {i for i, vector in enumerate(problem.vectors) if not vector.uses}
    beside: ReservationTable | None = None
    for op in sorted(movable, key=problem.rank.__getitem__, reverse=True):
        start = partial.starts[op]
        if start is None or not problem.succs[op]:
            continue
        if problem.deadline.over:  # the placement is complete as it stands
            return
        low, high = partial.window(op)
        if high <= start:
            continue
        before = _bytes(problem, touched[op], partial)
        name, vector = problem.names[op], problem.vectors[op]
        later: int | None = high
        if problem.claims[op]:
            beside = beside or _held_beside(partial, movable)
            beside.release(name)
            later = beside.latest(vector, max(low, start), high)
        partial.move(op, start if later is None else later, rung)
        if _bytes(problem, touched[op], partial) > before:
            partial.move(op, start, rung)
        if beside is not None and problem.claims[op]:
            beside.commit(name, vector, partial.starts[op] or 0)


def _held_beside(partial: Partial, movable: Iterable[int]) -> ReservationTable:
    """What is held of all that some operations of a complete placement hold any of."""
    problem, table = partial.problem, ReservationTable(partial.problem.machine, partial.ii)
    columns = {claim.column for op in movable for claim in problem.claims[op]}
    for op, claims in enumerate(problem.claims):
        if not columns.isdisjoint([claim.column for claim in claims]):
            table.commit(problem.names[op], problem.vectors[op], partial.starts[op] or 0)
    return table


def _touched(problem: Problem) -> list[list[Room]]:
    touched: list[list[Room]] = [[] for _ in problem.names]
    for room in problem.rotating:
        for op in {accessor for accessor, _ in room.accessors}:
            touched[op].append(room)
    return touched


def _bytes(problem: Problem, rooms: Sequence[Room], partial: Partial) -> int:
    """What the rings of some storages take in a complete placement."""
    ii, starts = partial.ii, cast("list[int]", partial.starts)
    return sum([room.bytes * ring_depth(problem, room, ii, starts) for room in rooms])


def _depth(problem: Problem, room: Room, partial: Partial) -> int:
    return ring_depth(problem, room, partial.ii, cast("list[int]", partial.starts))
