"""What a loop takes of its machine, by number: of slots and pools, and of memory.

    load     ──►  tma 8 cycles, tp_smem_wr 8 cycles          Claim (of an operation)
    tp_smem_wr  ──►  load 8 cycles, write 7 cycles           Hold (on a slot)

    a_tile  smem  65,536 bytes   written by load_a, read by mma      Room: a ring of any depth
    acc     tmem  32,768 bytes   fixed: one copy, whatever the schedule

Only what is limited is counted: the slots with a capacity, then the pools, are the columns. Nothing
here depends on an II or a start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from stretto.loop import Loop, ResourceVector
from stretto.loop.parts import cached_property
from stretto.machine import Machine
from stretto.ops.spaces import REGISTERS, SPACES
from stretto.problem.graph import made

ColumnKind = Literal["slot", "pool"]
Reader = tuple[int, int]
"""(operation, distance)."""


class Column(NamedTuple):
    """A limited slot or pool."""

    kind: ColumnKind
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
        return tuple([op.vector for op in self.loop.ops])

    @cached_property
    def completion(self) -> tuple[int, ...]:
        """By operation: cycles after its start when it is wholly done."""
        return tuple([op.completion for op in self.loop.ops])

    @cached_property
    def end(self) -> int:
        """The longest from the start of an operation until it holds nothing."""
        ends = [use.offset + use.duration for vector in self.vectors for use in vector.uses]
        return max(ends, default=0)

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
    def _number(self) -> dict[tuple[ColumnKind, str], int]:
        return {(column.kind, column.name): i for i, column in enumerate(self.columns)}

    @cached_property
    def _slots(self) -> dict[str, int]:
        return {name: i for (kind, name), i in self._number.items() if kind == "slot"}

    def claims_of(self, vector: ResourceVector) -> tuple[Claim, ...]:
        """What a vector takes of what is limited."""
        if not vector.uses:
            return ()  # nor is anything drawn, for no time
        slots = self._slots
        found: list[Claim] = []
        for use in vector.uses:
            column = slots.get(use.slot)
            if column is not None and use.duration and use.occupancy:
                claim = (column, use.offset, use.duration, use.occupancy)
                found.append(made(Claim, claim))
        if vector.demands:
            for demand, cycles in vector.draws:
                if demand.units and cycles:
                    found.append(Claim(self._number["pool", demand.pool], 0, cycles, demand.units))
        return tuple(found)

    @cached_property
    def by_column(self) -> tuple[tuple[Hold, ...], ...]:
        """By column: all that hold it, in program order."""
        found: list[list[Hold]] = [[] for _ in self.columns]
        for op, claims in enumerate(self.claims):
            for column, offset, duration, amount in claims:
                found[column].append(made(Hold, (op, offset, duration, amount)))
        return tuple(map(tuple, found))

    @cached_property
    def longest(self) -> tuple[int, ...]:
        """By column: the longest that anyone takes of it."""
        return tuple(max((h.duration for h in holds), default=0) for holds in self.by_column)

    def on(self, kind: ColumnKind) -> dict[str, tuple[int, tuple[Hold, ...]]]:
        """Slots (or pools) that are held, first held first: their limit and holds."""
        first = dict.fromkeys([claim[0] for claims in self.claims for claim in claims])
        return {
            self.columns[i].name: (self.columns[i].limit, self.by_column[i])
            for i in first
            if self.columns[i].kind == kind
        }


# Storages: who writes an instance, who still reads it, what there is room for ------------


class Room(NamedTuple):
    """Something of which each iteration has an instance, by its accessors."""

    name: str
    space: str
    bytes: int
    writers: tuple[int, ...]
    readers: tuple[Reader, ...]
    accessors: tuple[Reader, ...]
    """(operation, distance) of all that write (distance 0) or read an instance, each once."""
    cap: int | None = None
    """Copies at most."""

    @staticmethod
    def of(
        name: str,
        space: str,
        bytes: int,
        writers: tuple[int, ...],
        readers: tuple[Reader, ...],
        cap: int | None = None,
    ) -> Room:
        """The room of these writers and readers."""
        touching = tuple(dict.fromkeys([*[(w, 0) for w in writers], *readers]))
        return made(Room, (name, space, bytes, writers, readers, touching, cap))


@dataclass(frozen=True)
class Rooms:
    """The storages of a loop on its machine."""

    loop: Loop
    machine: Machine

    @cached_property
    def turning(self) -> tuple[Room, ...]:
        """Rotating storages that some operation writes, registers included."""
        index, writers = self.loop.index, self.loop.storage_writers
        readers = self.loop.storage_readers
        return tuple(
            Room.of(
                s.name,
                s.space,
                s.bytes,
                tuple(index[op.name] for op in writers[s.name]),
                tuple((index[op.name], distance) for op, distance in readers[s.name]),
                s.depth,
            )
            for s in self.loop.storages
            if not s.fixed and writers[s.name]
        )

    @cached_property
    def rotating(self) -> tuple[Room, ...]:
        """Those outside registers: their rings share a budget."""
        return tuple(room for room in self.turning if SPACES[room.space].budgeted)

    @cached_property
    def single_bytes(self) -> dict[str, int]:
        """Space to the bytes of storages that have one copy whatever the schedule."""
        turning = {room.name for room in self.turning}
        found: dict[str, int] = {}
        for s in self.loop.storages:
            if SPACES[s.space].budgeted and s.name not in turning:
                found[s.space] = found.get(s.space, 0) + s.bytes
        return found

    @cached_property
    def budgets(self) -> dict[str, int]:
        """Space to its bytes, where the loop uses a space that is limited."""
        used = {room.space for room in self.rotating} | set(self.single_bytes)
        return {
            b.space: b.bytes
            for b in self.machine.budgets
            if b.bytes is not None and b.space in used
        }

    # Registers --------------------------------------------------------------------------------

    @cached_property
    def always(self) -> int:
        """Register bytes that live all the time: live-in values, and storages of one copy."""
        turning = {room.name for room in self.turning}
        loop = self.loop
        values = [v.register_bytes for v in loop.values if v.name not in loop.producers]
        kept = [
            s.bytes for s in loop.storages if not SPACES[s.space].budgeted and s.name not in turning
        ]
        return sum(values) + sum(kept)

    @cached_property
    def values(self) -> tuple[Room, ...]:
        """Values that live in registers from their producer's start on."""
        loop = self.loop
        index, producers, readers = loop.index, loop.producers, loop.readers
        found: list[Room] = []
        for value in loop.values:
            name, size = value.name, value.register_bytes
            if size and name in producers:
                maker, reading = index[producers[name]], readers[name]
                own = (maker, 0)
                if len(reading) == 1:  # as most are, for which no list is made
                    read: tuple[Reader, ...] = ((index[reading[0][0]], reading[0][1]),)
                else:
                    read = tuple([(index[reader], d) for reader, d in reading])
                touching = (own, *read)
                if own in read:
                    touching = tuple(dict.fromkeys(touching))
                room = (name, REGISTERS, size, (maker,), read, touching, None)
                found.append(made(Room, room))
        return tuple(found)

    @cached_property
    def registers(self) -> tuple[Room, ...]:
        """Rotating storages in registers."""
        return tuple(room for room in self.turning if not SPACES[room.space].budgeted)
