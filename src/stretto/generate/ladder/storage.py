"""Do the rings fit? Bytes × ring depth of a placement against the budget of each space.

a_tile  lives 2,892 cycles at II 2,048  ──►  2 copies × 65,536 bytes
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.generate.problem import Problem
from stretto.problem import Room
from stretto.solution.views import knot


def ring_depth(problem: Problem, room: Room, ii: int, starts: Sequence[int]) -> int:
    """Copies of a rotating storage that are alive at once."""
    begin = min(starts[w] for w in room.writers)
    end = begin
    for op, distance in room.accessors:
        end = max(end, starts[op] + problem.completion[op] + ii * distance)
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

    Rings that no order of one cycle hands on are no better than rings that do not fit.
    """
    tied = knot(problem.loop, ii, problem.starts_by_name(starts)) if problem.instant else ()
    if tied:
        return f"{' and '.join(tied)} take no time, and each has to come before the other"
    if not problem.rotating:
        return ""
    needed = bytes_needed(problem, ii, starts)
    for space, budget in problem.rooms.budgets.items():
        if needed.get(space, 0) > budget:
            return f"{space} needs {needed[space]:,} bytes; the budget is {budget:,}"
    return ""
