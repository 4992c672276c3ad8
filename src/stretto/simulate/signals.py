"""Barriers and mutexes of a running program: who waits for what, and who tells whom.

    commit, release, arrive  ──►  a signal, on its way until the operation has come so far
    wait, acquire, await     ──►  pass and learn what the signals told, or block

A signal tells no more than is so: what was never issued or written says nothing about itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.materialize.pipelined import (
    Acquire,
    Arrive,
    Await,
    Commit,
    Program,
    Release,
    Wait,
    Write,
)
from stretto.simulate.barriers import Barrier, Counter, barrier
from stretto.simulate.issuing import Made
from stretto.simulate.knowledge import Known, Levels, merge
from stretto.simulate.memory import Memory, Moment


@dataclass(frozen=True, slots=True)
class Signal:
    """An arrival on its way, with all that its sender knew."""

    when: int
    at: Barrier | Counter
    known: Known


@dataclass
class Signals:
    """All barriers and mutexes of a program."""

    program: Program
    levels: Levels
    memory: Memory
    _full: dict[tuple[str, int], Barrier] = field(default_factory=dict[tuple[str, int], Barrier])
    _free: dict[tuple[str, int], Barrier] = field(default_factory=dict[tuple[str, int], Barrier])
    _filled: dict[tuple[str, int, str], int] = field(
        default_factory=dict[tuple[str, int, str], int]
    )
    """Pipe, slot and producer to the iteration it has filled the slot for."""

    def __post_init__(self) -> None:
        nothing = self.levels.nothing()
        for pipe in self.program.pipes:
            takers = tuple(c.op for c in pipe.consumers)
            makers = pipe.producers[-1:]
            for slot in range(pipe.depth):
                name = f"{pipe.name}[{slot}]"
                self._full[pipe.name, slot] = barrier(f"{name} to be full", 1, makers, nothing)
                free = barrier(f"{name} to be free", len(takers), takers, nothing)
                self._free[pipe.name, slot] = free
        self._mutexes = {m.name: Counter(m.name, m.holder) for m in self.program.mutexes}

    # Waiting ----------------------------------------------------------------------------------

    def awaited(self, wait: Wait | Acquire | Await, moment: Moment) -> Barrier | Counter | None:
        """What blocks; None: nothing does, and all that the wait tells is known."""
        if isinstance(wait, Await):
            return self._await(wait, moment)
        iterator = self.program.iterator_of[wait.iterator]
        if moment.iteration < iterator.distance:
            return None
        barriers = self._full if isinstance(wait, Wait) else self._free
        at = barriers[wait.pipe, self.memory.slot(wait.iterator)]
        lap = self.memory.lap(wait.iterator)
        if not at.passes((lap + iterator.phase) % 2):
            return at
        # In the first round a slot is free though nobody has released it.
        told = at.tells(lap if isinstance(wait, Wait) else lap - 1)
        if told is not None:
            merge(moment.known, told)
        return None

    def _await(self, wait: Await, moment: Moment) -> Counter | None:
        wanted = moment.iteration - wait.distance
        counter = self._mutexes[wait.mutex]
        if 0 <= wanted < moment.trip_count:
            if len(counter.times) <= wanted:
                return counter
            merge(moment.known, counter.times[wanted])
        return None

    # Telling ----------------------------------------------------------------------------------

    def write(self, write: Write, made: Made | None, moment: Moment) -> None:
        """An operation that has issued fills its slot."""
        pipe = self.program.pipe_of[write.pipe]
        ring = self.program.ring_of[pipe.ring]
        slot = self.memory.slot(write.iterator)
        if made is None or made.iteration != moment.iteration:
            self._found(moment, f"writes {pipe.name}[{slot}]", "before it has issued", pipe.name)
            return
        self._filled[pipe.name, slot, moment.op] = moment.iteration
        if ring.value is not None:
            number = self.program.loop.op(moment.op).results.index(ring.value)
            self.memory.put(ring.name, write.iterator, made.results[number], moment)

    def commit(self, commit: Commit, moment: Moment) -> Signal:
        """What was written is full when it is ready."""
        pipe, slot = self.program.pipe_of[commit.pipe], self.memory.slot(commit.iterator)
        filled = self._filled.pop((pipe.name, slot, moment.op), None)
        if filled != moment.iteration:
            told = f"commits {pipe.name}[{slot}]"
            self._found(moment, told, "in which it has written nothing", pipe.name)
        return self._signal(self._full[pipe.name, slot], pipe.latency, moment)

    def release(self, release: Release, moment: Moment) -> Signal | None:
        """The slot is free when the operation is wholly done; None: it has none yet."""
        if moment.iteration < self.program.iterator_of[release.iterator].distance:
            return None
        at = self._free[release.pipe, self.memory.slot(release.iterator)]
        return self._signal(at, self.program.loop.op(moment.op).completion, moment)

    def arrive(self, arrive: Arrive, moment: Moment) -> Signal:
        """The holder lets go when it has come so far."""
        mutex = self.program.mutex_of[arrive.mutex]
        return self._signal(self._mutexes[arrive.mutex], mutex.latency, moment)

    def _signal(self, at: Barrier | Counter, latency: int, moment: Moment) -> Signal:
        """Arrive when an operation has come so far; at once, and with nothing, if it has not."""
        known, when = list(moment.known), moment.cycle
        began = self.memory.issued.get((moment.op, moment.iteration))
        if began is not None:
            self.levels.learn(known, moment.op, latency, moment.iteration)
            when = max(when, began + latency)
        return Signal(when, at, known)

    def _found(self, moment: Moment, what: str, why: str, pipe: str) -> None:
        told = f"`{moment.op}` of iteration {moment.iteration} {what} at {moment.cycle}, {why}"
        self.memory.findings.add("unwritten", told, (moment.op,), moment.cycle, pipe)
