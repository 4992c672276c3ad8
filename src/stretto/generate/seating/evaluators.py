"""Two evaluators that rank placements.

    II 8         row  0 1 2 3 4 5 6 7
    in iteration      2 2 2 2 2 2 2 2     the loaded tile and the accumulator: at most 2
    carried           1 1 1 1 1 1 1 1     the accumulator, ready at 16: at most 1   bank pressure 3

Both only look. They take any placement, a partial or an illegal one included: what cannot be is
the business of the first cost component.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stretto.generate.problem import Problem
from stretto.generate.seating.partial import Partial
from stretto.machine import Machine
from stretto.problem import Room
from stretto.problem.paths import not_before

BANK_CAPS = ("bank_claims_in_iteration", "bank_claims_carried")
"""Limits of a machine that cap the two halves of the bank pressure."""


class Seating(NamedTuple):
    """Some operations and their starts at an II: what every cost component is a function of."""

    problem: Problem
    ii: int
    starts: Sequence[int | None]
    """By operation; None: not seated."""
    fused: Mapping[int, tuple[int, ...]]
    """Leader to all members of its fused group, the leader first."""


def seating(problem: Problem, ii: int, starts: Mapping[str, int]) -> Seating:
    """A seating of named operations, none fused."""
    return Seating(problem, ii, [starts.get(name) for name in problem.names], {})


def seating_of(partial: Partial, members: Sequence[int] = (), start: int = 0) -> Seating:
    """What is seated, and `members` (fused, if several) at `start` beside it."""
    if not members:
        return Seating(partial.problem, partial.ii, partial.starts, partial.fused)
    starts = partial.starts.copy()
    for i in members:
        starts[i] = start
    fused = partial.fused
    if len(members) > 1:
        fused = {**fused, members[0]: tuple(members)}
    return Seating(partial.problem, partial.ii, starts, fused)


def holds(seats: Seating) -> Iterable[tuple[tuple[int, ...], int]]:
    """(members, start) of all that hold something together, by their leader."""
    followers = {i for members in seats.fused.values() for i in members[1:]}
    for i, start in enumerate(seats.starts):
        if start is not None and i not in followers:
            yield seats.fused.get(i, (i,)), start


# Bank pressure ------------------------------------------------------------------------------


class BankCaps(NamedTuple):
    """The most claimants in a row that the cost-based evaluator lets pass."""

    in_iteration: int
    carried: int


def bank_caps(machine: Machine) -> BankCaps | None:
    """The caps a machine states; None: it has no bank evaluator."""
    inside, carried = (machine.limit(name) for name in BANK_CAPS)
    return None if inside is None or carried is None else BankCaps(inside, carried)


def bank_pressure(seats: Seating) -> tuple[int, int]:
    """Most claimants of banks and barriers in one row: (in iteration, carried).

    A cycle before the II is in iteration; whoever still claims from there on is carried into the
    next. Only what is seated counts: a claim begins with its first writer's seat.
    """
    problem = seats.problem
    if bank_caps(problem.machine) is None:
        return 0, 0
    spans = [span for claim in problem.claimants if (span := alive(seats, claim)) is not None]
    inside = [(begin, min(end, seats.ii)) for begin, end in spans]
    carried = [(max(begin, seats.ii), end) for begin, end in spans]
    return _largest_row(inside, seats.ii), _largest_row(carried, seats.ii)


def _largest_row(spans: Iterable[tuple[int, int]], ii: int) -> int:
    """How many of the spans, half open, meet in one modulo cycle at most."""
    always = 0
    changes: dict[int, int] = {}
    for begin, end in spans:
        if end <= begin:
            continue
        whole, rest = divmod(end - begin, ii)
        always += whole
        if rest:
            first, last = begin % ii, (begin + rest) % ii
            changes[first] = changes.get(first, 0) + 1
            changes[last] = changes.get(last, 0) - 1
            always += last < first
    most = here = 0
    for cycle in sorted(changes):
        here += changes[cycle]
        most = max(most, here)
    return always + most


def alive(seats: Seating, room: Room) -> tuple[int, int] | None:
    """First and last cycle of one instance, half open; None: no writer is seated."""
    starts, completion = seats.starts, seats.problem.completion
    begins = [(s, s + completion[w]) for w in room.writers if (s := starts[w]) is not None]
    if not begins:
        return None
    begin, end = min(b for b, _ in begins), max(e for _, e in begins)
    for reader, distance in room.readers:
        start = starts[reader]
        if start is None:
            start = not_before(seats.problem.preds[reader], starts, seats.ii)
        end = max(end, start + completion[reader] + seats.ii * distance)
    return begin, end


def bank_cost(pressure: tuple[int, int], caps: BankCaps | None) -> int | None:
    """The smallest joint cap the pressure stays under; None: one of the two caps vetoes it."""
    inside, carried = pressure
    if caps is not None and (inside > caps.in_iteration or carried > caps.carried):
        return None
    return inside + carried


# Pipe slots ---------------------------------------------------------------------------------


def pipe_slot(distances: Iterable[int], ii: int) -> int:
    """By how much the farthest predecessor lies more than an II before an operation.

    ``max(0, max D[p, op] - II)`` over the predecessors that have a path to it: `distances` are
    those D (the largest alone gives the same answer). It is the smallest slack under which every
    predecessor reaches the operation. Whether its footprint fits the table was asked before: no
    seat is scored that the third gate refuses.
    """
    return max(0, max(distances, default=0) - ii)
