"""Two evaluators that rank placements, and the threshold search they are asked through.

    II 8         row  0 1 2 3 4 5 6 7
    in iteration      2 2 2 2 2 2 2 1     load and read, started at 0: at most 2
    carried           1 1 1 1 1 1 1 ·     write, started at 8: at most 1        bank pressure 3

Both only probe. They take any placement, a partial or an illegal one included: what cannot be is
the business of the first cost component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from stretto.generate.problem import Problem
from stretto.generate.seating.partial import Partial
from stretto.machine import Machine
from stretto.problem import fused_vector
from stretto.resources.table import Counters, arc

IN_ITERATION_CELL, CARRIED_CELL = 1, 6
"""Cells of a machine's published capacity vector that cap the two halves of the bank pressure."""


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


def threshold(probe: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest number from `low` to `high` at which a monotone predicate holds; None: none.

    Gallop, then halve: J. Bentley and A. Yao, "An almost optimal algorithm for unbounded
    searching" (1976). It asks about 2 log2(answer - low) times. Only for predicates that stay
    true once they are: II feasibility is not one.
    """
    if low > high:
        return None
    last, step = low, 1
    while not probe(last):
        if last == high:
            return None
        low = last + 1
        last = min(high, last + step)
        step *= 2
    while low < last:
        middle = (low + last) // 2
        if probe(middle):
            last = middle
        else:
            low = middle + 1
    return last


# Bank pressure ------------------------------------------------------------------------------


class BankCaps(NamedTuple):
    """The most claimants in a row that the cost-based evaluator lets pass."""

    in_iteration: int
    carried: int


def bank_caps(machine: Machine) -> BankCaps | None:
    """The caps a machine publishes; None: it has no capacity vector."""
    cells = {cell.index: cell.value for cell in machine.cells}
    if IN_ITERATION_CELL not in cells or CARRIED_CELL not in cells:
        return None
    return BankCaps(cells[IN_ITERATION_CELL], cells[CARRIED_CELL])


def bank_pressure(seats: Seating) -> tuple[int, int]:
    """Most claimants of the transports in one row: (in iteration, carried).

    A cell is in iteration when ``start + k < II``; the others are still held when the next
    iteration has begun. A fused group is one claimant.
    """
    ii, problem = seats.ii, seats.problem
    transports = problem.machine.transports
    if not transports:
        return 0, 0
    inside, carried = Counters(ii), Counters(ii)
    claims = 0
    for members, start in holds(seats):
        for use in fused_vector(problem, members).uses:
            if use.slot in transports and use.duration:
                first, end = start + use.offset, start + use.end
                _count(inside, first, min(end, ii))
                _count(carried, max(first, ii), end)
                claims += 1 + use.duration // ii
    return _largest_row(inside, claims), _largest_row(carried, claims)


def _count(rows: Counters, first: int, end: int) -> None:
    """One more claimant in the rows of the cells from `first` to `end`, half open."""
    if end <= first:
        return
    turns, rest = divmod(end - first, rows.cycles)
    rows.add(rows.full, turns)
    if rest:
        rows.add(arc(first % rows.cycles, rest, rows.cycles), 1)


def _largest_row(rows: Counters, claims: int) -> int:
    found = threshold(lambda cap: not rows.above(cap), 0, claims)
    assert found is not None, "no row has more claimants than there are claims"
    return found


def bank_cost(pressure: tuple[int, int], caps: BankCaps | None) -> int | None:
    """The smallest joint cap the pressure stays under; None: one of the two caps vetoes it."""
    inside, carried = pressure
    if caps is not None and (inside > caps.in_iteration or carried > caps.carried):
        return None
    return threshold(lambda cap: inside + carried <= cap, 0, inside + carried)


# Pipe slots ---------------------------------------------------------------------------------


def pipe_slot(distances: Iterable[int], ii: int) -> int:
    """By how much the farthest predecessor lies more than an II before an operation.

    ``max(0, max D[p, op] - II)`` over the predecessors that have a path to it: `distances` are
    those D (the largest alone gives the same answer). It is the smallest slack under which every
    predecessor reaches the operation. Whether its footprint fits the table was asked before: no
    seat is scored that the third gate refuses.
    """
    farthest = max(distances, default=0)
    found = threshold(lambda slack: farthest - ii <= slack, 0, max(0, farthest))
    assert found is not None, "a slack of the whole distance is always enough"
    return found
