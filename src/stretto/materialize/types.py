"""A program: what a finished schedule becomes.

    Program ── rings      where data stays          a_tile × 5
            ├─ pipes      data on its way           load_a ═► mma, a slot an iteration
            ├─ mutexes    order without data        read ──► next write
            └─ agents     who does what             prologue │ kernel │ epilogue

One agent that does everything is an *unspecialized* program, several are a *specialized* one. An
agent's stream is made of the instructions of `instructions.py`. Everything is frozen and picklable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from stretto.loop import Loop, TileType
from stretto.materialize.instructions import Issue, Stream
from stretto.materialize.persistent import Persistent

Mode = Literal["unspecialized", "specialized"]
MODES: tuple[Mode, ...] = ("unspecialized", "specialized")

Flavour = Literal["scalar", "tile"]
"""A pipe of single values and tokens, or a pipe of tiles."""

Role = Literal["all", "tma", "mma", "simt"]
"""What kind of work an agent does."""

Side = Literal["producer", "consumer"]


@dataclass(frozen=True, slots=True)
class Ring:
    """Copies of one storage, or of one register value, that iterations take in turn."""

    name: str
    depth: int
    space: str
    bytes: int
    """Of one copy."""
    storage: str | None = None
    value: str | None = None
    """The register value it holds, where it is not the ring of a storage."""
    fixed: bool = False
    """One copy, updated in place, which every iteration means."""
    lifetime: int = 0
    """Cycles one copy lives; the depth follows from it."""


@dataclass(frozen=True, slots=True)
class Payload:
    """What one slot of a pipe carries."""

    name: str
    type: TileType | None
    bytes: int
    space: str


@dataclass(frozen=True, slots=True)
class Consumer:
    """An operation that takes from a pipe what was put there `distance` iterations before."""

    op: str
    distance: int = 0


@dataclass(frozen=True, slots=True)
class Pipe:
    """Data on its way from a group of producers to consumers at another stage or agent.

    The owner, the earliest of the group, acquires a slot; the last of the group commits it.
    """

    name: str
    ring: str
    producers: tuple[str, ...]
    """In the order in which they fill a slot; the last one commits it. None: see `trivial`."""
    consumers: tuple[Consumer, ...]
    payload: Payload
    depth: int
    flavour: Flavour
    owner: str | None = None
    """The earliest producer by (stage, order)."""
    aliases: tuple[str, ...] = ()
    """Views of the payload that consumers see it through."""
    latency: int = 0
    """Cycles after the start of the committing producer at which a slot is full."""
    reused: bool = True
    """Whether the owner waits for slots to be released. Else other orders protect the ring."""
    trivial: bool = False
    """No producer is live at its consumer: it is always full."""

    @property
    def commits(self) -> str | None:
        """The producer that hands a slot over."""
        return self.producers[-1] if self.producers else None


@dataclass(frozen=True, slots=True)
class Waiter:
    """An operation that waits for another's turn `distance` iterations before."""

    op: str
    distance: int


@dataclass(frozen=True, slots=True)
class Mutex:
    """An order between agents that no data carries: the waiters stay out until the holder is done.

    It counts: the holder adds one each iteration, a waiter asks for as many as it needs.
    """

    name: str
    holder: str
    latency: int
    """Cycles after the holder's start at which it lets go."""
    waiters: tuple[Waiter, ...]
    excludes: tuple[str, ...]
    """The storages, or stated orders, for whose sake it exists."""


@dataclass(frozen=True, slots=True)
class Iterator:
    """Where one operation stands in a ring: its slot and the phase of its barrier."""

    name: str
    ring: str
    op: str
    side: Side
    distance: int = 0
    """It is used from this iteration on; before, there is nothing in the ring to see."""
    phase: int = 0
    """Parity it first waits for: 0 for a slot to become full; 1 for one to be free, which holds
    at once in the first round."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One that issues instructions in order."""

    name: str
    role: Role
    ops: tuple[str, ...]
    """What it issues, in program order."""
    stream: Stream


@dataclass(frozen=True)
class Program:
    """A pipelined loop, ready to run for any trip count."""

    loop: Loop
    machine: str
    mode: Mode
    ii: int
    stage_count: int
    rings: tuple[Ring, ...]
    pipes: tuple[Pipe, ...]
    mutexes: tuple[Mutex, ...]
    iterators: tuple[Iterator, ...]
    agents: tuple[Agent, ...]
    sequence: tuple[str, ...]
    """One step of the kernel in the order of issue, over all agents."""
    fused: tuple[tuple[str, ...], ...] = ()
    """Groups that share one hold."""
    persistent: Persistent | None = None

    def __getstate__(self) -> dict[str, object]:
        """Pickle the fields alone, not what was derived from them."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @cached_property
    def ring_of(self) -> dict[str, Ring]:
        """Rings by name."""
        return {ring.name: ring for ring in self.rings}

    @cached_property
    def pipe_of(self) -> dict[str, Pipe]:
        """Pipes by name."""
        return {pipe.name: pipe for pipe in self.pipes}

    @cached_property
    def mutex_of(self) -> dict[str, Mutex]:
        """Mutexes by name."""
        return {mutex.name: mutex for mutex in self.mutexes}

    @cached_property
    def iterator_of(self) -> dict[str, Iterator]:
        """Iterators by name."""
        return {iterator.name: iterator for iterator in self.iterators}

    @cached_property
    def agent_of(self) -> dict[str, str]:
        """Operation to the agent that issues it."""
        return {op: agent.name for agent in self.agents for op in agent.ops}

    @cached_property
    def starts(self) -> dict[str, int]:
        """When each operation starts, by the places that the kernels have."""
        return {
            i.op: i.at.stage * self.ii + i.at.cycle
            for agent in self.agents
            for i in agent.stream.kernel
            if isinstance(i, Issue)
        }

    @property
    def named_barriers(self) -> tuple[str, ...]:
        """Who takes a named barrier: each mutex, and each barrier of the loop's own."""
        own = [op.name for op in self.loop.ops if op.kind == "barrier"]
        return (*(mutex.name for mutex in self.mutexes), *own)

    @property
    def memory_barriers(self) -> int:
        """Barriers in shared memory: one for full and one for free in each slot of a pipe."""
        slots = [pipe.depth * (2 if pipe.reused else 1) for pipe in self.pipes if not pipe.trivial]
        return sum(slots)
