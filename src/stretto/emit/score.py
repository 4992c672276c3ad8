"""What an emitted program does, agent by agent, in the order in which it is written.

    AgentScore ── Beat         wait for `k_tile` to be full; issue `scores_2`; arrive; ...
               ├─ LoopScore    a loop that runs by a program: prologue, kernel, epilogue
               └─ Around       a loop around those, with a body of the same kinds

It is noted down while the source is written, so that whoever asks how long a program takes reads
the program itself, not the schedule that it was made by.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from stretto.kernel import Operation, Value

BeatKind = Literal["full", "free", "copy", "arrive", "product", "settle", "work", "store", "drain"]
"""Waits for a slot that is full or free, or for products; a copy that is issued; an arrival that
frees a slot; a product that is issued; arithmetic; a copy out, and the wait until it has read."""


@dataclass(frozen=True)
class Beat:
    """One thing that an agent does."""

    kind: BeatKind
    op: str
    """The operation for which it happens."""
    thing: str = ""
    """The ring, or the tile in shared memory, that it concerns."""
    stage: int = 0
    """It works on iteration step - stage."""
    left: int = 0
    """Of a wait for products: those that may still run."""
    bytes: int = 0
    """Of a copy: what it moves."""
    operation: Operation | None = None
    """What is computed, or copied, as it stands in the kernel."""


@dataclass(frozen=True)
class LoopScore:
    """A loop that runs by a program. The steady part runs `first` .. trips + `ahead` - 1."""

    number: int
    """Of the loop among those of the kernel."""
    lower: Value
    upper: Value
    step: Value
    prologue: tuple[tuple[int, tuple[Beat, ...]], ...]
    """Steps before the steady part, each with its number."""
    kernel: tuple[Beat, ...]
    epilogue: tuple[tuple[int, tuple[Beat, ...]], ...]
    """Steps behind it, each with its number from the trip count on."""
    first: int
    ahead: int
    needed: int
    """Trips below which iterations run one after the other."""
    singly: tuple[Beat, ...]
    """One iteration of that way."""
    together: tuple[int, ...] = ()
    """Iterations that run to their end before the next begin: as many groups of the first size as
    there are, and of what is left over a group of each further size that it has. Empty: the steady
    part goes on to the last iteration."""

    def groups(self, trips: int) -> list[tuple[int, int]]:
        """Where each group of iterations begins, and how many it has."""
        found: list[tuple[int, int]] = []
        begun = 0
        for many in self.together:
            while trips - begun >= many:
                found.append((begun, many))
                begun += many
        return found

    def group(self, many: int) -> list[tuple[int, tuple[Beat, ...]]]:
        """The steps of a group of so many: what an iteration of it is at in each."""
        last = max(beat.stage for beat in self.kernel)
        return [
            (step, tuple(beat for beat in self.kernel if 0 <= step - beat.stage < many))
            for step in range(self.ahead, last + many)
        ]


def sizes(most: int, trips: int | None) -> tuple[int, ...]:
    """Of iterations that run together: so many, then powers of two below, down to one.

    Where the trips are known, those of which there is a group.
    """
    found: list[int] = []
    many = most
    while many:
        if trips is None:
            found.append(many)
        elif trips >= many:
            found.append(many)
            trips %= many
        many = 1 << (many - 1).bit_length() >> 1
    return tuple(found)


@dataclass(frozen=True)
class Around:
    """A loop that is not pipelined."""

    lower: Value | None
    """None: it goes round while a condition holds, and nobody knows how often that is."""
    upper: Value | None
    step: Value | None
    body: tuple[Beat | LoopScore | Around, ...]


@dataclass(frozen=True)
class AgentScore:
    """One agent, from its first beat to its last."""

    agent: str
    warps: int
    parts: tuple[Beat | LoopScore | Around, ...]


Part = Beat | LoopScore | Around


def loops_in(parts: Iterable[Part]) -> list[LoopScore]:
    """Loops that run by programs, in order, whatever is around them."""
    found: list[LoopScore] = []
    for part in parts:
        if isinstance(part, LoopScore):
            found.append(part)
        elif isinstance(part, Around):
            found += loops_in(part.body)
    return found
