"""Memory of a program with a record of who touched what: a race is one whatever the timing.

    allocation ─► views (offset, shape, strides) ─► places: last write, reads since

Whoever reads must know of the last write, whoever writes of that and of every read since. What is
asynchronous has a component of its own in the clocks, which becomes known by waiting.
"""

# Views are NumPy's.
# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto.sanitizer.finding import Access, Site
from stretto.sanitizer.scheduler import Clock

if TYPE_CHECKING:
    from stretto.sanitizer.block import Block

LIVES = 32
"""Of an allocation in a loop: how often it is looked at when memory is added up."""
Key = tuple[int, tuple[int, ...], tuple[int, ...], int]
"""Offset, shape, strides and element size of a view, in bytes."""


@dataclass(eq=False)
class Place:
    """What was done through one view, or to all of it through others."""

    key: Key
    written: Access | None = None
    reads: dict[int, Access] = field(default_factory=dict[int, Access])
    filled: bool = False
    """Whether all of it has been written."""


@dataclass(eq=False)
class Record:
    """What was done to the memory of one block of a cluster."""

    mask: Any
    """Of each byte: whether it was ever written."""
    places: dict[Key, Place] = field(default_factory=dict[Key, Place])
    overlaps: dict[Key, list[Place]] = field(default_factory=dict[Key, list[Place]])


@dataclass(eq=False)
class Allocation:
    """Shared or tensor memory that was asked for at one place of the source."""

    block: Block
    kind: str
    """`shared` or `tensor`"""
    name: str
    site: Site
    data: Any
    """Raw bytes."""
    slot_bytes: int
    """Of one slot of a ring; all of it where it is none."""
    born: int
    last_use: int
    parts: int = 1
    """Blocks of a cluster that have it between them."""
    lives: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Where it is allocated again and again: from when to when it was used before."""
    records: dict[int, Record] = field(default_factory=dict[int, Record])
    """Of each block of a cluster."""

    def forget(self) -> None:
        """Allocated anew at the same place: what is in it means nothing, who uses it matters."""
        if len(self.lives) < LIVES:
            self.lives.append((self.born, self.last_use))
        self.born = self.last_use = self.block.now()
        self.data[...] = 0xFE
        for record in self.records.values():
            record.mask[...] = False
            for place in record.places.values():
                place.filled = False

    def live(self, at: int) -> bool:
        """Whether somebody still uses it, or uses it already, at some time."""
        return any(a <= at <= b for a, b in (*self.lives, (self.born, self.last_use)))

    def _record(self, cta: int | None) -> Record:
        """Of a block of the cluster; None: of the one that acts."""
        number = self.block.agent.cta if cta is None else cta
        known = self.records.get(number)
        if known is None:
            known = self.records[number] = Record(np.zeros(self.data.size, np.bool_))
        return known

    @property
    def bytes(self) -> int:
        """Of one block."""
        return self.data.size // self.parts

    def key_of(self, view: Any) -> Key:
        """Where a view lies."""
        start = view.__array_interface__["data"][0] - self.data.__array_interface__["data"][0]
        return start, view.shape, view.strides, view.itemsize

    def slot_of(self, key: Key) -> str:
        """Which slot of a ring that is, for people."""
        if self.slot_bytes >= self.data.size:
            return self.name
        return f"{self.name}[{key[0] // self.slot_bytes}]"

    @staticmethod
    def _filled(record: Record, place: Place) -> bool:
        """Whether all of a place has been written."""
        if not place.filled:
            start, shape, strides, _ = place.key
            place.filled = bool(np.ndarray(shape, np.bool_, record.mask.data, start, strides).all())
        return place.filled

    def _touched(self, record: Record, key: Key) -> list[Place]:
        """Everything that overlaps a view, itself first."""
        known = record.overlaps.get(key)
        if known is not None:
            return known
        place = record.places[key] = Place(key)
        found = [place]
        for other, at in record.places.items():
            if other != key and self._overlap(key, other):
                found.append(at)
                record.overlaps[other].append(place)
        record.overlaps[key] = found
        return found

    def _overlap(self, a: Key, b: Key) -> bool:
        if not self._near(a, b):
            return False
        scratch = np.zeros(self.data.size, np.bool_)
        for byte in range(a[3]):
            np.ndarray(a[1], np.bool_, scratch.data, a[0] + byte, a[2])[...] = True
        return any(
            bool(np.ndarray(b[1], np.bool_, scratch.data, b[0] + byte, b[2]).any())
            for byte in range(b[3])
        )

    @staticmethod
    def _near(a: Key, b: Key) -> bool:
        def end(key: Key) -> int:
            steps = zip(key[1], key[2], strict=True)
            return key[0] + sum((n - 1) * stride for n, stride in steps) + key[3]

        return a[0] < end(b) and b[0] < end(a)

    def _unfenced(self, first: Access, second: Access, fenced: Clock) -> bool:
        """Whether the second is of the asynchronous proxy and does not see what threads did."""
        return (
            self.kind == "shared"
            and first.proxy != "async"
            and second.proxy == "async"
            and fenced.get(first.component, 0) < first.time
        )

    # Accesses -----------------------------------------------------------------------------------

    def read(
        self, view: Any, access: Access, clock: Clock, fenced: Clock, later: bool = False,
        cta: int | None = None,
    ) -> Callable[[], None] | None:  # fmt: skip
        """By whoever knows so much.

        What nothing has written is told at once, or `later`: by a call of what is given back, when
        the value is used.
        """
        key = self.key_of(view)
        record = self._record(cta)
        self.block.history.touches(access, self.slot_of(key))
        raced = False
        touched = self._touched(record, key)
        for place in touched:
            last = place.written
            if last is not None:
                if clock.get(last.component, 0) < last.time:
                    raced = True
                    self.block.race("read", self, key, last, access)
                elif self._unfenced(last, access, fenced):
                    raced = True
                    self.block.unfenced(self, key, last, access)
        touched[0].reads[access.component] = access
        self.last_use = self.block.now()
        if raced or self._filled(record, touched[0]):
            return None

        def tell() -> None:
            self.block.never_written(self, key, access)

        if later:
            return tell
        tell()
        return None

    def write(
        self, view: Any, access: Access, clock: Clock, fenced: Clock, cta: int | None = None
    ) -> None:
        """By whoever knows so much."""
        key = self.key_of(view)
        record = self._record(cta)
        self.block.history.touches(access, self.slot_of(key))
        touched = self._touched(record, key)
        for place in touched:
            last = place.written
            if last is not None:
                if clock.get(last.component, 0) < last.time:
                    self.block.race("write", self, key, last, access)
                elif self._unfenced(last, access, fenced):
                    self.block.unfenced(self, key, last, access)
            for reader in place.reads.values():
                if clock.get(reader.component, 0) < reader.time:
                    self.block.race("overwrite", self, key, reader, access)
                elif self._unfenced(reader, access, fenced):
                    self.block.reused_unfenced(self, key, reader, access)
        place = touched[0]
        place.written = access
        place.reads.clear()
        if not place.filled:
            start, shape, strides, _ = key
            np.ndarray(shape, np.bool_, record.mask.data, start, strides)[...] = True
            place.filled = True
        self.last_use = self.block.now()


def peak(sizes: list[tuple[Allocation, int]]) -> tuple[int, list[tuple[Allocation, int]]]:
    """The most that is live at once, and what that is."""
    most: list[tuple[Allocation, int]] = []
    for one, _ in sizes:
        for at, _ in (*one.lives, (one.born, one.last_use)):
            live = [(other, size) for other, size in sizes if other.live(at)]
            most = max(most, live, key=lambda each: sum(size for _, size in each))
    return sum(size for _, size in most), most
