"""What an agent's stream is made of.

    wait    full?  ─┐                      acquire  free?  ─┐
    read            ├─ issue the operation                  ├─ write, commit: full
    release  free  ─┘                      ...              ─┘

Pipe and mutex instructions take no slot and no cycle. Those that stand around an operation have its
place: the step they belong to, and the iteration that operation works on in that step.

    iteration = step - stage      step:  prologue  0, 1, ..          as written
                                         kernel    k, k + 1, ..      the induction variable
                                         epilogue  N + 0, N + 1, ..  from the trip count on
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction stands; see the module's head."""

    step: int
    """In the prologue the step itself, in the epilogue steps after the trip count, else 0."""
    stage: int
    cycle: int
    """Cycles into the step at which its operation issues."""
    needs: int = 0
    """It runs only if the trip count is at least this."""


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


Source = LiveIn | Direct | Through | Stored | Alias


@dataclass(frozen=True, slots=True)
class Slot:
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
class Issue:
    """The operation itself."""

    at: Place
    op: str
    operands: tuple[Source, ...] = ()
    reads: tuple[Slot, ...] = ()
    writes: tuple[Slot, ...] = ()
    after: tuple[After, ...] = ()


@dataclass(frozen=True, slots=True)
class Acquire:
    """Wait until a slot is free."""

    at: Place
    op: str
    pipe: str
    iterator: str


@dataclass(frozen=True, slots=True)
class Write:
    """The operation fills its slot."""

    at: Place
    op: str
    pipe: str
    iterator: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What was written becomes full when it is ready."""

    at: Place
    op: str
    pipe: str
    iterator: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until a slot is full."""

    at: Place
    op: str
    pipe: str
    iterator: str


@dataclass(frozen=True, slots=True)
class Read:
    """The operation takes from the slot."""

    at: Place
    op: str
    pipe: str
    iterator: str


@dataclass(frozen=True, slots=True)
class Release:
    """The slot is free when the operation is wholly done."""

    at: Place
    op: str
    pipe: str
    iterator: str


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until a mutex's holder of `distance` iterations before has let go."""

    at: Place
    op: str
    mutex: str
    distance: int


@dataclass(frozen=True, slots=True)
class Arrive:
    """The mutex's holder lets go when it has come so far."""

    at: Place
    op: str
    mutex: str


@dataclass(frozen=True, slots=True)
class Advance:
    """An iterator goes on to the next slot."""

    at: Place
    op: str
    iterator: str


PipeInstruction = Acquire | Write | Commit | Wait | Read | Release
Instruction = PipeInstruction | Issue | Await | Arrive | Advance


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
