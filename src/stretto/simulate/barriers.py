"""Barriers with a phase bit, as shared memory has them, and mutexes that count.

    arrive × needed  ──►  phase 0 complete  ──►  whoever waits for parity 0 goes on

A wait names a parity: it passes when the phase of that parity is complete, that is, when the bit of
the current phase differs from it. A wrong parity passes too early, or never.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.simulate.knowledge import Known, merge

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
    pending: Known
    """What those tell that have arrived."""
    arrived: int = 0
    completed: int = 0
    phases: dict[int, Known] = field(default_factory=dict[int, Known])
    """What each completed phase tells: no more than that may be concluded from waiting for it."""
    waiting: list[int] = field(default_factory=list[int])
    """Agents to wake."""

    def arrive(self, known: Known) -> bool:
        """One arrival; whether a phase is complete."""
        merge(self.pending, known)
        self.arrived += 1
        if self.arrived < self.needed:
            return False
        self.phases[self.completed] = list(self.pending)
        self.phases.pop(self.completed - REMEMBERED, None)
        self.arrived = 0
        self.completed += 1
        return True

    def passes(self, parity: int) -> bool:
        """Whether the phase of this parity is complete."""
        return self.completed % 2 != parity

    def tells(self, phase: int) -> Known | None:
        """What is known once a phase is complete; None: it is not, or long past."""
        return self.phases.get(phase)


@dataclass(slots=True)
class Counter:
    """A mutex: how often its holder has let go, and what each time told."""

    name: str
    holder: str
    times: list[Known] = field(default_factory=list[Known])
    waiting: list[int] = field(default_factory=list[int])

    def arrive(self, known: Known) -> bool:
        """The holder lets go once more."""
        self.times.append(known)
        return True


def barrier(name: str, needed: int, arrivers: tuple[str, ...], nothing: Known) -> Barrier:
    """A barrier in its first phase."""
    return Barrier(name, needed, arrivers, list(nothing))
