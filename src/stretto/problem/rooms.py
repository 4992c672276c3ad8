"""Storages by number: who writes an instance, who still reads it, and what there is room for.

    a_tile  smem  65,536 bytes   written by load_a, read by mma      ring of any depth
    acc     tmem  32,768 bytes   fixed: one copy, whatever the schedule

Nothing here depends on an II or a start.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from stretto.loop import Loop
from stretto.machine import Machine
from stretto.vocabulary.spaces import REGISTERS, SPACES

Reader = tuple[int, int]
"""(operation, distance)."""


@dataclass(frozen=True)
class Room:
    """Something of which each iteration has an instance, by its accessors."""

    name: str
    space: str
    bytes: int
    writers: tuple[int, ...]
    readers: tuple[Reader, ...]
    cap: int | None = None
    """Copies at most."""

    @cached_property
    def accessors(self) -> tuple[Reader, ...]:
        """(operation, distance) of all that write (distance 0) or read an instance, each once."""
        return tuple(dict.fromkeys([*((w, 0) for w in self.writers), *self.readers]))


@dataclass(frozen=True)
class Rooms:
    """The storages of a loop on its machine."""

    loop: Loop
    machine: Machine

    @cached_property
    def turning(self) -> tuple[Room, ...]:
        """Rotating storages that some operation writes, registers included."""
        writers: dict[str, list[int]] = {}
        readers: dict[str, list[Reader]] = {}
        for i, op in enumerate(self.loop.ops):
            for name in dict.fromkeys(op.writes):
                writers.setdefault(name, []).append(i)
            for read in self.loop.reads[op.name]:
                readers.setdefault(read.storage, []).append((i, read.distance))
        return tuple(
            Room(
                s.name,
                s.space,
                s.bytes,
                tuple(writers[s.name]),
                tuple(readers.get(s.name, ())),
                s.depth,
            )
            for s in self.loop.storages
            if not s.fixed and s.name in writers
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
        found: list[Room] = []
        for value in loop.values:
            producer = loop.producers.get(value.name)
            if value.register_bytes and producer is not None:
                readers = tuple((loop.index[name], d) for name, d in loop.readers[value.name])
                by = (loop.index[producer],)
                found.append(Room(value.name, REGISTERS, value.register_bytes, by, readers))
        return tuple(found)

    @cached_property
    def registers(self) -> tuple[Room, ...]:
        """Rotating storages in registers."""
        return tuple(room for room in self.turning if not SPACES[room.space].budgeted)
