"""A resource vector wound around the II: what an operation takes in each modulo cycle.

    II 5, one use of 7 cycles from offset 1:    k       1 2 3 4 5 6 7
                                                cycle   1 2 3 4 0 1 2
    amount by cycle    1 2 2 1 1                segments (offset 1, length 2, amount 2)
                                                         (offset 3, length 3, amount 1)

A hold of q * II + r cycles counts q in every cycle and one more in r of them. Several uses of one
slot add up, wherever they meet modulo II. Segments of one slot or pool never overlap, so each can
be compared, claimed and released on its own. Offsets are modulo II, relative to the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stretto.errors import StrettoError
from stretto.loop import ResourceVector
from stretto.machine import Machine
from stretto.solution.profile import profile


class Segment(NamedTuple):
    """Modulo cycles in which an operation takes the same amount of one slot or pool."""

    column: int
    """Index of the slot or pool in the table's columns."""
    offset: int
    length: int
    amount: int


class Guard(NamedTuple):
    """A segment of a limited column, with the most that others may hold beside it.

    Slack below 0 is more than the machine has: every count is above it, so no start is legal.
    """

    column: int
    offset: int
    length: int
    slack: int


class Fold(NamedTuple):
    """A vector at one II."""

    segments: tuple[Segment, ...]
    guards: tuple[Guard, ...]
    """The segments that can be refused."""


class Columns(NamedTuple):
    """The slots and pools of a machine, numbered: slots first, each in machine order."""

    slots: Mapping[str, int]
    pools: Mapping[str, int]
    limits: Sequence[int | None]
    """By column; None is unlimited."""


def columns_of(machine: Machine) -> Columns:
    """The columns of a reservation table for this machine."""
    first_pool = len(machine.slots)
    return Columns(
        {slot.name: i for i, slot in enumerate(machine.slots)},
        {pool.name: first_pool + i for i, pool in enumerate(machine.pools)},
        (*(slot.capacity for slot in machine.slots), *(pool.cap for pool in machine.pools)),
    )


def fold(vector: ResourceVector, ii: int, columns: Columns, machine: str) -> Fold:
    """Wind a vector around the II."""
    holds: dict[int, list[tuple[int, int, int]]] = {}
    for use in vector.uses:
        if use.slot not in columns.slots:
            raise StrettoError(f"machine `{machine}` has no slot `{use.slot}`")
        hold = (use.offset, use.duration, use.occupancy)
        holds.setdefault(columns.slots[use.slot], []).append(hold)
    for demand in vector.demands:
        if demand.pool not in columns.pools:
            raise StrettoError(f"machine `{machine}` has no pool `{demand.pool}`")
        hold = (0, vector.duration, demand.units)
        holds.setdefault(columns.pools[demand.pool], []).append(hold)
    segments: list[Segment] = []
    guards: list[Guard] = []
    for column, of_column in holds.items():
        limit = columns.limits[column]
        for offset, length, amount in _wind(of_column, ii):
            segments.append(Segment(column, offset, length, amount))
            if limit is not None:
                guards.append(Guard(column, offset, length, limit - amount))
    return Fold(tuple(segments), tuple(guards))


def _wind(holds: Iterable[tuple[int, int, int]], ii: int) -> list[tuple[int, int, int]]:
    """Disjoint (offset, length, amount) of holds given as (offset, duration, amount)."""
    spans = ((amount, offset, offset + duration) for offset, duration, amount in holds)
    cycles, amounts = profile(spans, ii)
    pieces: list[tuple[int, int, int]] = []
    for first, last, amount in zip(cycles, [*cycles[1:], ii], amounts, strict=True):
        if pieces and pieces[-1][2] == amount:  # nothing changes here
            begin, length, _ = pieces.pop()
            pieces.append((begin, length + last - first, amount))
        else:
            pieces.append((first, last - first, amount))
    if len(pieces) > 1 and pieces[0][2] == pieces[-1][2]:
        first, length, amount = pieces.pop()
        pieces[0] = (first, length + pieces[0][1], amount)
    return [piece for piece in pieces if piece[2]]
