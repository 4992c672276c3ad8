"""Barriers and mutexes of a running program: who waits for what, and who tells whom.

    commit, release, arrive  ──►  a signal, on its way until the operation has come so far
    wait, acquire, await     ──►  pass and learn what the signals told, or block

A signal tells no more than is so: what was never issued or written says nothing about itself.
Barriers have a phase bit, as shared memory has them:

    arrive × needed  ──►  phase 0 complete  ──►  whoever waits for parity 0 goes on

A wait names a parity: it passes when the phase of that parity is complete, that is, when the bit of
the current phase differs from it. A wrong parity passes too early, or never.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.materialization.program import Acquire, Arrive, Await, Commit, Release, Wait, Write
from stretto.simulation.domains import Datum
from stretto.simulation.needs import Told
from stretto.simulation.outcome import Act
from stretto.simulation.ring_memory import Memory

REMEMBERED = 4
"""Phases a barrier is remembered for; nobody may lag behind by more than one."""


@dataclass(slots=True)
class Barrier:
    """One slot's barrier on one side of a pipe."""

    name: str
    needed: int
    """Arrivals that complete a phase."""
    arrivers: tuple[str, ...]
    """Operations that arrive, for messages."""
    pending: Told = field(default_factory=Told)
    """What those tell that have arrived."""
    arrived: int = 0
    completed: int = 0
    phases: dict[int, Told] = field(default_factory=dict[int, Told])
    """What each completed phase tells: no more than that may be concluded from waiting for it."""
    waiting: list[int] = field(default_factory=list[int])
    """Agents to wake."""

    def arrive(self, told: Told) -> bool:
        """One arrival; whether a phase is complete."""
        self.pending.add(told)
        self.arrived += 1
        if self.arrived < self.needed:
            return False
        self.phases[self.completed] = self.pending.copy()
        self.phases.pop(self.completed - REMEMBERED, None)
        self.arrived = 0
        self.completed += 1
        return True

    def passes(self, parity: int) -> bool:
        """Whether the phase of this parity is complete."""
        return self.completed % 2 != parity

    def tells(self, phase: int) -> Told | None:
        """What is known once a phase is complete; None: it is not, or long past."""
        return self.phases.get(phase)


@dataclass(slots=True)
class MutexCount:
    """A mutex: how often its holder has let go, and what each time told."""

    name: str
    arrivers: tuple[str, ...]
    """Its holder, for messages."""
    times: list[Told] = field(default_factory=list[Told])
    waiting: list[int] = field(default_factory=list[int])

    def arrive(self, told: Told) -> bool:
        """The holder lets go once more."""
        self.times.append(told)
        return True


@dataclass(frozen=True, slots=True)
class Signal:
    """An arrival on its way, with all that its sender knew."""

    when: int
    at: Barrier | MutexCount
    told: Told


class Signals:
    """All barriers and mutexes of a program."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.program = memory, memory.program
        self._full: dict[tuple[str, int], Barrier] = {}
        self._free: dict[tuple[str, int], Barrier] = {}
        self._filled: dict[tuple[str, int, str], int] = {}
        """Pipe, slot and producer to the iteration it has filled the slot for."""
        for pipe in self.program.pipes:
            takers = tuple(c.op for c in pipe.consumers)
            makers = pipe.producers[-1:]
            for slot in range(pipe.depth):
                name = f"{pipe.name}[{slot}]"
                self._full[pipe.name, slot] = Barrier(f"{name} to be full", 1, makers)
                free = Barrier(f"{name} to be free", len(takers), takers)
                self._free[pipe.name, slot] = free
        self._mutexes = {m.name: MutexCount(m.name, (m.holder,)) for m in self.program.mutexes}

    # Waiting ----------------------------------------------------------------------------------

    def awaited(self, wait: Wait | Acquire | Await, act: Act) -> Barrier | MutexCount | None:
        """What blocks; None: nothing does, and all that the wait tells is known."""
        if isinstance(wait, Await):
            return self._await(wait, act)
        iterator = self.program.iterator_of[wait.iterator]
        if act.iteration < iterator.distance:
            return None
        barriers = self._full if isinstance(wait, Wait) else self._free
        at = barriers[wait.pipe, self.memory.slot(wait.iterator)]
        lap = self.memory.lap(wait.iterator)
        if not at.passes((lap + iterator.phase) % 2):
            return at
        # In the first round a slot is free though nobody has released it.
        told = at.tells(lap if isinstance(wait, Wait) else lap - 1)
        if told is not None:
            act.known.hear(told)
        return None

    def _await(self, wait: Await, act: Act) -> MutexCount | None:
        wanted = act.iteration - wait.distance
        counter = self._mutexes[wait.mutex]
        if 0 <= wanted < act.trip_count:
            if len(counter.times) <= wanted:
                return counter
            act.known.hear(counter.times[wanted])
        return None

    # Telling ----------------------------------------------------------------------------------

    def write(self, write: Write, results: tuple[Datum, ...] | None, act: Act) -> None:
        """An operation fills its slot with its results; None: it has not issued."""
        pipe = self.program.pipe_of[write.pipe]
        ring = self.program.ring_of[pipe.ring]
        slot = self.memory.slot(write.iterator)
        if results is None:
            what = f"writes {pipe.name}[{slot}]"
            self._unwritten(act, what, "before it has issued", pipe.name)
            return
        self._filled[pipe.name, slot, act.op] = act.iteration
        if ring.value is not None:
            number = self.program.loop.op(act.op).results.index(ring.value)
            self.memory.put(ring.name, write.iterator, results[number], act)

    def commit(self, commit: Commit, act: Act) -> Signal:
        """What was written is full when it is ready."""
        pipe, slot = self.program.pipe_of[commit.pipe], self.memory.slot(commit.iterator)
        filled = self._filled.pop((pipe.name, slot, act.op), None)
        if filled != act.iteration:
            what = f"commits {pipe.name}[{slot}]"
            self._unwritten(act, what, "in which it has written nothing", pipe.name)
        return self._signal(self._full[pipe.name, slot], pipe.latency, act)

    def release(self, release: Release, act: Act) -> Signal | None:
        """The slot is free when the operation is wholly done; None: it has none yet."""
        if act.iteration < self.program.iterator_of[release.iterator].distance:
            return None
        at = self._free[release.pipe, self.memory.slot(release.iterator)]
        return self._signal(at, self.program.loop.op(act.op).completion, act)

    def arrive(self, arrive: Arrive, act: Act) -> Signal:
        """The holder lets go when it has come so far."""
        mutex = self.program.mutex_of[arrive.mutex]
        return self._signal(self._mutexes[arrive.mutex], mutex.latency, act)

    def _signal(self, at: Barrier | MutexCount, latency: int, act: Act) -> Signal:
        """Arrive when an operation has come so far; at once, and with nothing, if it has not."""
        facts, when = dict[int, int](), act.cycle
        began = self.memory.issued.get((act.op, act.iteration))
        if began is not None:
            facts = self.memory.levels.facts(act.op, latency, act.iteration)
            when = max(when, began + latency)
        return Signal(when, at, act.known.tells(facts))

    def _unwritten(self, act: Act, what: str, why: str, pipe: str) -> None:
        self.memory.findings.at(act, "unwritten", what, f", {why}", about=pipe)
