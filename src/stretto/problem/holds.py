"""What operations take of slots and pools, by number: seen from the operation and from the slot.

    load     ──►  tma 8 cycles, tp_smem_wr 8 cycles          Claim (of an operation)
    tp_smem_wr  ──►  load 8 cycles, write 7 cycles           Hold (on a slot)

Only what is limited is counted: the slots with a capacity, then the pools, are the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from stretto.loop import Loop, ResourceVector
from stretto.machine import Machine

Kind = Literal["slot", "pool"]


class Column(NamedTuple):
    """A limited slot or pool."""

    kind: Kind
    name: str
    limit: int


class Claim(NamedTuple):
    """What an operation takes of one column."""

    column: int
    offset: int
    duration: int
    amount: int
    """Occupancy of a slot, or units of a pool."""


class Hold(NamedTuple):
    """A column held from `offset` cycles after an operation's start."""

    op: int
    offset: int
    duration: int
    amount: int


@dataclass(frozen=True)
class Holds:
    """What the operations of a loop take of its machine."""

    loop: Loop
    machine: Machine

    @cached_property
    def vectors(self) -> tuple[ResourceVector, ...]:
        """By operation."""
        return tuple(op.vector for op in self.loop.ops)

    @cached_property
    def completion(self) -> tuple[int, ...]:
        """By operation: cycles after its start when it is wholly done."""
        return tuple(op.completion for op in self.loop.ops)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The limited slots, then the pools, each in machine order."""
        slots = [
            Column("slot", slot.name, slot.capacity)
            for slot in self.machine.slots
            if slot.capacity is not None
        ]
        return (*slots, *(Column("pool", pool.name, pool.cap) for pool in self.machine.pools))

    @cached_property
    def limits(self) -> tuple[int, ...]:
        """Capacity or cap of each column."""
        return tuple(column.limit for column in self.columns)

    @cached_property
    def claims(self) -> tuple[tuple[Claim, ...], ...]:
        """By operation; what takes no time or nothing is left out."""
        return tuple(map(self.claims_of, self.vectors))

    @cached_property
    def _number(self) -> dict[tuple[Kind, str], int]:
        return {(column.kind, column.name): i for i, column in enumerate(self.columns)}

    def claims_of(self, vector: ResourceVector) -> tuple[Claim, ...]:
        """What a vector takes of what is limited."""
        number = self._number
        return (
            *(
                Claim(number["slot", u.slot], u.offset, u.duration, u.occupancy)
                for u in vector.uses
                if u.duration and u.occupancy and ("slot", u.slot) in number
            ),
            *(
                Claim(number["pool", d.pool], 0, vector.duration, d.units)
                for d in vector.demands
                if d.units and vector.duration
            ),
        )

    @cached_property
    def by_column(self) -> tuple[tuple[Hold, ...], ...]:
        """By column: all that hold it, in program order."""
        found: list[list[Hold]] = [[] for _ in self.columns]
        for op, claims in enumerate(self.claims):
            for column, offset, duration, amount in claims:
                found[column].append(Hold(op, offset, duration, amount))
        return tuple(map(tuple, found))

    @cached_property
    def longest(self) -> tuple[int, ...]:
        """By column: the longest that anyone takes of it."""
        return tuple(max((h.duration for h in holds), default=0) for holds in self.by_column)

    def on(self, kind: Kind) -> dict[str, tuple[int, tuple[Hold, ...]]]:
        """Slots (or pools) that are held, first held first: their limit and holds."""
        first = dict.fromkeys(claim.column for claims in self.claims for claim in claims)
        return {
            self.columns[i].name: (self.columns[i].limit, self.by_column[i])
            for i in first
            if self.columns[i].kind == kind
        }
