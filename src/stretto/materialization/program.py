"""A program: what a finished schedule becomes.

    Program ── rings      where data stays          a_tile × 5
            ├─ pipes      data on its way           load_a ═► mma, a slot an iteration
            ├─ mutexes    order without data        read ──► next write
            └─ agents     who does what             prologue │ kernel │ epilogue

One agent that does everything is an *unspecialized* program, several are a *specialized* one. An
agent's stream is made of instructions:

    wait    full?  ─┐                      acquire  free?  ─┐
    read            ├─ issue the operation                  ├─ write, commit: full
    release  free  ─┘                      ...              ─┘

Pipe and mutex instructions take no slot and no cycle. Those that stand around an operation have its
position: the step they belong to, and the iteration that operation works on in that step.

    iteration = step - stage      step:  prologue  0, 1, ..          as written
                                         kernel    k, k + 1, ..      the induction variable
                                         epilogue  N + 0, N + 1, ..  from the trip count on

Everything is frozen and picklable.
"""

from __future__ import annotations

import collections.abc
from dataclasses import dataclass
from typing import Literal

from stretto.loop import Loop, TileType
from stretto.loop.parts import cached_property
from stretto.materialization.persistent import Persistent

Mode = Literal["unspecialized", "specialized"]
MODES: tuple[Mode, ...] = ("unspecialized", "specialized")

Flavour = Literal["scalar", "tile"]
"""A pipe of single values and tokens, or a pipe of tiles."""

Role = Literal["all", "tma", "mma", "simt"]
"""What kind of work an agent does."""

Side = Literal["producer", "consumer"]


# What is declared ------------------------------------------------------------------------


TRIVIAL = 4
"""The flag of a schedule with a consumer-only pipe, as the reference numbers it."""


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


# Where operands come from -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Path:
    """From an operand back to what it is a name of: x0, made by view v1 from x1, and so on.

    `values` has one more entry than `views`; `distances` has as many as `values`.
    """

    values: tuple[str, ...]
    distances: tuple[int, ...]
    views: tuple[str, ...] = ()

    @property
    def distance(self) -> int:
        """Iterations from the reader back to the origin."""
        return sum(self.distances)

    @property
    def origin(self) -> str:
        """The value at its end, which no view makes."""
        return self.values[-1]


@dataclass(frozen=True, slots=True)
class LiveIn:
    """A value from outside the loop, seen through views."""

    path: Path


@dataclass(frozen=True, slots=True)
class Direct:
    """The result of an operation that the same agent issued earlier in the same step."""

    path: Path
    """Its end is the result of that operation."""
    op: str
    latency: int
    """Cycles after that operation's start at which it may be read."""


@dataclass(frozen=True, slots=True)
class Through:
    """A value that a pipe brings, seen through views."""

    path: Path
    pipe: str
    iterator: str


@dataclass(frozen=True, slots=True)
class Stored:
    """What a storage holds, seen through views; `read` is the number of the access."""

    value: str
    read: int
    views: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of something in a storage, which a view makes without looking at it."""

    value: str


Supply = LiveIn | Direct | Through | Stored | Alias


@dataclass(frozen=True, slots=True)
class RingAccess:
    """A copy of a storage that an operation touches."""

    storage: str
    iterator: str | None
    """None: there is one copy."""
    distance: int = 0


@dataclass(frozen=True, slots=True)
class After:
    """A token: wait until an operation of the same agent has come so far."""

    op: str
    distance: int
    latency: int


# Instructions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Position:
    """Where an instruction stands; see above."""

    step: int
    """In the prologue the step itself, in the epilogue steps after the trip count, else 0."""
    stage: int
    cycle: int
    """Cycles into the step at which its operation issues."""
    needs: int = 0
    """It runs only if the trip count is at least this."""


@dataclass(frozen=True, slots=True)
class Issue:
    """The operation itself."""

    at: Position
    op: str
    operands: tuple[Supply, ...] = ()
    reads: tuple[RingAccess, ...] = ()
    writes: tuple[RingAccess, ...] = ()
    after: tuple[After, ...] = ()


@dataclass(frozen=True, slots=True)
class _OnPipe:
    """What an operation does to a slot of a pipe: that at which the iterator stands."""

    at: Position
    op: str
    pipe: str
    iterator: str


@dataclass(frozen=True, slots=True)
class Acquire(_OnPipe):
    """Wait until a slot is free."""


@dataclass(frozen=True, slots=True)
class Write(_OnPipe):
    """The operation fills its slot."""


@dataclass(frozen=True, slots=True)
class Commit(_OnPipe):
    """What was written becomes full when it is ready."""


@dataclass(frozen=True, slots=True)
class Wait(_OnPipe):
    """Wait until a slot is full."""


@dataclass(frozen=True, slots=True)
class Read(_OnPipe):
    """The operation takes from the slot."""


@dataclass(frozen=True, slots=True)
class Release(_OnPipe):
    """The slot is free when the operation is wholly done."""


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until a mutex's holder of `distance` iterations before has let go."""

    at: Position
    op: str
    mutex: str
    distance: int


@dataclass(frozen=True, slots=True)
class Arrive:
    """The mutex's holder lets go when it has come so far."""

    at: Position
    op: str
    mutex: str


@dataclass(frozen=True, slots=True)
class Advance:
    """An iterator goes on to the next slot."""

    at: Position
    op: str
    iterator: str


PipeInstruction = Acquire | Write | Commit | Wait | Read | Release
Instruction = PipeInstruction | Issue | Await | Arrive | Advance


def iterators_of(instruction: Instruction) -> list[str]:
    """The iterators that an instruction goes by."""
    match instruction:
        case Issue(operands=operands, reads=reads, writes=writes):
            taken = [source.iterator for source in operands if isinstance(source, Through)]
            touched = [access.iterator for access in (*reads, *writes)]
            return taken + [name for name in touched if name is not None]
        case Await() | Arrive():
            return []
        case _:
            return [instruction.iterator]


@dataclass(frozen=True, slots=True)
class Stream:
    """One agent's instructions. The kernel runs for the steps `last` to N + `first` - 1."""

    first: int
    """The earliest stage of its operations."""
    last: int
    """The latest stage of its operations."""
    prologue: tuple[Instruction, ...]
    kernel: tuple[Instruction, ...]
    epilogue: tuple[Instruction, ...]

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """All of them, as written."""
        return (*self.prologue, *self.kernel, *self.epilogue)

    def run(self, trip_count: int) -> collections.abc.Iterator[tuple[int, Instruction]]:
        """What runs for a trip count, each instruction with its step."""
        for instruction in self.prologue:
            if trip_count >= instruction.at.needs:
                yield instruction.at.step, instruction
        for step in range(self.last, trip_count + self.first):
            for instruction in self.kernel:
                yield step, instruction
        for instruction in self.epilogue:
            if trip_count >= instruction.at.needs:
                yield trip_count + instruction.at.step, instruction


# The whole --------------------------------------------------------------------------------


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
    def flags(self) -> int:
        """`TRIVIAL`, where a consumer takes what nobody in the loop makes; else 0."""
        return TRIVIAL if any(pipe.trivial for pipe in self.pipes) else 0

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
