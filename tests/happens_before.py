"""Who knows of which access to memory: a race is one whatever the timing was.

    copy agent    copy 3 ──lands──► full ┐           copy 3 wrote the slot: known to who waited
    compute                              └ wait, product reads the slot, wait, arrive ► free ┐
    copy agent                                                  copy 5 writes it ◄─── wait ──┘

Each agent has a clock for every agent and copy that it has heard of (vector clocks). A barrier
hands on what those knew that arrived in a turn. Whoever reads must know of the last write, whoever
writes of that and of every read since. What is in flight (a product, a store) reads until it is
waited for.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

Clock = dict[str, int]
Event = tuple[str, int]


class RaceError(Exception):
    """Two accesses that nothing orders."""


@dataclass
class Place:
    """What was done to one tile."""

    first: int
    last: int
    written: Event | None = None
    read: dict[str, int] = field(default_factory=dict[str, int])
    flying: set[int] = field(default_factory=set[int])


class Orders:
    """The clocks of one run, and all tiles that were touched."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._mine = threading.local()
        self._places: dict[tuple[int, int], Place] = {}
        self._copies = 0
        self.stopped = False
        """Whether somebody failed: the others need not wait."""
        self._live = self._waiting = self._jobs = 0

    def begin(self) -> None:
        """Another block: its memory is new."""
        with self._lock:
            self._places.clear()
            self._live, self._waiting = 1, 0
            self.enter("block", {})

    def count(self, live: int = 0, waiting: int = 0, jobs: int = 0) -> None:
        """So many agents more, that wait, and copies and products on their way."""
        with self._lock:
            self._live += live
            self._waiting += waiting
            self._jobs += jobs

    @property
    def stuck(self) -> bool:
        """Whether everybody waits, and nothing is on its way that could wake anybody."""
        with self._lock:
            return self._waiting >= self._live and not self._jobs

    # Clocks -------------------------------------------------------------------------------------

    def enter(self, name: str, clock: Clock) -> None:
        """The thread at hand is an agent that knows so much."""
        self._mine.name, self._mine.clock = name, {**clock, name: clock.get(name, 0) + 1}

    @property
    def clock(self) -> Clock:
        """What the agent at hand knows."""
        return self._mine.clock

    def give(self) -> Clock:
        """What the agent at hand knows, for others; what it does from here on they do not."""
        known = dict(self.clock)
        self.clock[self._mine.name] += 1
        return known

    def take(self, clock: Clock) -> None:
        """The agent at hand hears of more."""
        mine = self.clock
        for name, time in clock.items():
            mine[name] = max(time, mine.get(name, 0))

    # Accesses -----------------------------------------------------------------------------------

    def read(self, array: Any) -> None:
        """At once."""
        self._reads(array, self.clock)
        for place in self._at(array):
            place.read[self._mine.name] = self.clock[self._mine.name]

    def write(self, array: Any) -> None:
        """At once."""
        self._writes(array, self.clock, self._mine.name)

    def depart(self, array: Any, flight: object) -> None:
        """A read that goes on until it is waited for."""
        self._reads(array, self.clock)
        with self._lock:
            for place in self._at(array):
                place.flying.add(id(flight))

    def arrive(self, array: Any, flight: object) -> None:
        """That read is over."""
        with self._lock:
            for place in self._at(array):
                place.flying.discard(id(flight))
        self.read(array)

    def copied(self) -> tuple[str, Clock]:
        """A copy begins: its name, and what it knows."""
        with self._lock:
            self._copies += 1
            name = f"copy {self._copies}"
        return name, {**self.give(), name: 1}

    def landed(self, array: Any, name: str, clock: Clock) -> None:
        """It writes, some time later."""
        self._writes(array, clock, name)

    def _reads(self, array: Any, clock: Clock) -> None:
        with self._lock:
            for place in self._at(array):
                self._require(place.written, clock, "a tile is read that may not be there yet")

    def _writes(self, array: Any, clock: Clock, name: str) -> None:
        with self._lock:
            for place in self._at(array):
                self._require(place.written, clock, "a tile is written twice, in any order")
                for event in place.read.items():
                    self._require(event, clock, "a tile is written that may still be read")
                if place.flying:
                    raise RaceError("a tile is written that something in flight reads")
                place.written, place.read = (name, clock[name]), {}

    @staticmethod
    def _require(event: Event | None, clock: Clock, told: str) -> None:
        if event is not None and clock.get(event[0], 0) < event[1]:
            raise RaceError(f"{told}: {event[0]} is not waited for")

    def _at(self, array: Any) -> list[Place]:
        """Everything that was ever touched of these bytes."""
        first = array.__array_interface__["data"][0]
        key = (first, first + array.nbytes)
        with self._lock:
            self._places.setdefault(key, Place(*key))
            return [p for p in self._places.values() if p.first < key[1] and key[0] < p.last]
