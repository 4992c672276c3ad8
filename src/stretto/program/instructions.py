"""What a program of a whole kernel can do, on one page.

A `KernelProgram` (`kernel_program.py`) declares memory, barriers and descriptors, and has one body
for each agent: the instructions below, one after the other. Whoever prints, runs or times a kernel
reads these and decides nothing.

    names     Assign             x, y = a, b
              Advance, Flip      one slot further in a ring: next slot, and phase; or phase alone
    barriers  Wait               until a barrier has completed the phase of this parity
              Arrive             count one arrival
              Expect             arrive, and have the phase wait for so many bytes as well
              Commit             arrive once the products issued so far are done (tcgen05)
              NamedSync          arrive at a barrier of the hardware, and wait for all of it
              NamedArrive        arrive there
    copies    CopyIn             TMA: a tile of a tensor to shared memory; a barrier counts bytes
              CopyOut            TMA: a tile of shared memory to a tensor
              StoreWait          until all copies out but the last `left` have read their tiles
              ThreadCopy         threads ask for a tile by addresses, into shared memory (cp.async)
              CommitGroup        what they asked for since the last is a group
              WaitGroup          until all groups but the last `left` are there: each thread's own
              Fence              what threads wrote to shared memory is seen by TMA and products
    memory    Read, Put          a tile of shared or tensor memory to registers, and back
              Load, Store        global memory, by addresses; `Atomic` changes what is there
    products  Product            target = total + left x right of a warpgroup, in its own time
              Settle             until all but the youngest `left` products are done
              ProductInit        a product that is in flight still is the sum of a further one
              TensorProduct      into tensor memory, in its own time (tcgen05)
    control   For, While, If     with bodies; what is assigned inside is there behind them
              ThreadBarrier      all threads of the agent meet
              Print              numbers are shown
    clocks    TraceBegin, TraceEnd, ReadClock, TraceSteps, TraceMark
    text      Remark             a line for who reads the source
    schedule  Pipelined          around a loop that runs by a schedule: what is inside runs
              Step               around what an agent does in one step of it

`Pipelined` and `Step` do nothing themselves: they say which instructions are the prologue, the
steady part, the epilogue. A product in flight is known by its variable and may be read behind a
`Settle` that names it; so may the registers of its left factor be written again.

    iteration of an instruction = step - stage            Origin.stage; `at` is where the schedule
    barriers of a ring: phase p of slot s                 has its operation: (stage, cycle)
        full    arrivals 1 (Expect), bytes: a CopyIn      Wait(full[s], p) - Read or Product ...
        free    arrivals: one an agent that reads         Wait(free[s], p ^ 1 ...) before the CopyIn

A wait for parity p ends when the phase of that parity is over: a barrier begins in phase 0, so a
wait for 1 ends at once at first. Slots and phases are variables like any others, which instructions
set: nothing about rings is implied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stretto.kernel import Operation, Value
from stretto.program.expressions import Barrier, Expression, Iteration, Slot
from stretto.program.layouts import Layout


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an instruction comes from."""

    op: str = ""
    """The operation of a loop that runs by a schedule; empty: outside of such, or of none."""
    stage: int = 0
    """It works on iteration step - stage."""
    operation: Operation | None = None
    """As it stands in the kernel, with its place in the source."""
    at: tuple[int, int] | None = None
    """Stage and cycle of the schedule at which it starts."""


NOWHERE = Origin()
"""Of what no operation asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Instruction:
    origin: Origin = NOWHERE
    opens: bool = False
    """Whether it is the first of its operation in a step: where a printer says when that starts."""
    reason: str = ""
    """Why it is there, where only a compiler asks for it."""

    @property
    def silent(self) -> bool:
        """Whether it stands for what an earlier one did, and no line of source does."""
        return False


# Names -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign(_Instruction):
    """Variables get values, all at once; two may get the `Halves` of one."""

    targets: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Advance(_Instruction):
    """One slot further: behind the last of `depth` the first comes again, with the other phase."""

    slot: str
    phase: str
    depth: int


@dataclass(frozen=True, slots=True)
class Flip(_Instruction):
    """The other phase of what has one slot."""

    phase: str


# Barriers ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wait(_Instruction):
    """Until a barrier has completed the phase of this parity."""

    barrier: Barrier
    phase: Expression


@dataclass(frozen=True, slots=True)
class Arrive(_Instruction):
    """One arrival."""

    barrier: Barrier


@dataclass(frozen=True, slots=True)
class Expect(_Instruction):
    """One arrival; the phase is over only when so many bytes have come as well."""

    barrier: Barrier
    bytes: int


@dataclass(frozen=True, slots=True)
class Commit(_Instruction):
    """One arrival, once all products into tensor memory that the agent issued so far are done."""

    barrier: Barrier


@dataclass(frozen=True, slots=True)
class NamedSync(_Instruction):
    """Arrive at a named barrier, and wait until all its threads have."""

    barrier: str


@dataclass(frozen=True, slots=True)
class NamedArrive(_Instruction):
    """Arrive at a named barrier, and go on."""

    barrier: str


# Copies ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CopyIn(_Instruction):
    """TMA brings a tile of a tensor, in its own time."""

    descriptor: str
    coordinates: tuple[Expression, ...]
    """Of its first element; outside of the tensor it finds zeros."""
    barrier: Barrier
    """On which its bytes count when they have come."""
    target: Slot
    bytes: int


@dataclass(frozen=True, slots=True)
class CopyOut(_Instruction):
    """TMA takes a tile to a tensor, in its own time; what is outside of it is dropped."""

    descriptor: str
    coordinates: tuple[Expression, ...]
    source: Slot


@dataclass(frozen=True, slots=True)
class StoreWait(_Instruction):
    """Until all of the agent's copies out, but the last so many, have read their tiles."""

    left: int


@dataclass(frozen=True, slots=True)
class ThreadCopy(_Instruction):
    """Threads ask for a tile, which comes in its own time."""

    operands: tuple[Expression, ...]
    """Addresses, and which of them are read: where they are not, there will be zeros."""
    target: Slot
    layout: Layout
    """Of the addresses: which thread asks for what."""


@dataclass(frozen=True, slots=True)
class CommitGroup(_Instruction):
    """What threads asked for since the last of these is a group, empty or not."""


@dataclass(frozen=True, slots=True)
class WaitGroup(_Instruction):
    """Until all groups but the youngest are there: of each thread what it asked for itself.

    What others asked for is there once all have met; products see it behind a `Fence` of each
    thread between its wait and that.
    """

    left: int


@dataclass(frozen=True, slots=True)
class Fence(_Instruction):
    """What threads did in shared memory comes before what TMA and products do there."""


# Memory ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Read(_Instruction):
    """A tile of shared or tensor memory to registers."""

    target: str
    source: Slot
    layout: Layout
    added: Expression | None = None
    """Of a sum that may have got no product: how many it got; it is zero where that is none."""


@dataclass(frozen=True, slots=True)
class Put(_Instruction):
    """A tile in registers to shared or tensor memory."""

    value: Expression
    target: Slot


@dataclass(frozen=True, slots=True)
class Load(_Instruction):
    """Global memory to registers."""

    target: str
    operands: tuple[Expression, ...]
    """Addresses, which of them are read, and what the others are."""
    layout: Layout | None = None
    """Of a tile."""


@dataclass(frozen=True, slots=True)
class Store(_Instruction):
    """Registers to global memory."""

    operands: tuple[Expression, ...]
    """Addresses, data, and which of them are written."""
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class Atomic(_Instruction):
    """Registers are combined with global memory, as `origin.operation` says."""

    target: str | None
    """What was there before; None: nobody asks."""
    operation: Operation
    operands: tuple[Expression, ...]
    layout: Layout | None = None
    """Of a tile of addresses."""
    home: Layout | None = None
    """The layout that the target is converted to, where it differs."""


# Products ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Product(_Instruction):
    """A product of a warpgroup: `target` = `total` + `left` x `right`."""

    target: str
    left: Expression | Slot
    right: Slot
    total: Expression
    adds: bool
    """False: what `total` holds does not count."""
    asynchronous: bool
    """Whether it is issued only: it is done behind the `Settle` that names its target."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A variable that is its own again behind a wait for products."""

    name: str
    reason: str = ""
    """Why it is named although no product writes or reads it any more, if it is."""


@dataclass(frozen=True, slots=True)
class Settle(_Instruction):
    """Until all but the youngest `left` products are done.

    Nothing is named where an earlier one has waited for all that is asked for: then it stands for
    that, and no line of source does.
    """

    left: int
    names: tuple[Kept, ...]
    """Targets of the products that are done, and registers of their left factors."""

    @property
    def silent(self) -> bool:
        """Whether an earlier one has waited for all that is asked for."""
        return not self.names


@dataclass(frozen=True, slots=True)
class ProductInit(_Instruction):
    """A sum that was waited for is in flight again, as a younger product adds to it."""

    target: str


@dataclass(frozen=True, slots=True)
class TensorProduct(_Instruction):
    """A product that adds to a sum in tensor memory, in its own time."""

    left: Slot
    right: Slot
    total: Slot
    adds: bool | Iteration
    """False: what is there does not count. An iteration: it does in all but the first."""


# Control flow ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class For(_Instruction):
    """`variable` goes from `lower` up to `upper`, which it does not reach."""

    variable: str
    lower: Expression | None
    """None: from 0."""
    upper: Expression
    step: Expression | None
    """None: by 1."""
    body: tuple[Instruction, ...]
    operation: Operation | None = None
    """The loop of the kernel, where it is one that does not run by a schedule."""
    hands_back: bool = False
    """Whether it takes the tiles of steps that an agent leaves out, and hands them back."""


@dataclass(frozen=True, slots=True)
class While(_Instruction):
    """As long as a variable is true."""

    condition: str
    body: tuple[Instruction, ...]
    operation: Operation | None = None


@dataclass(frozen=True, slots=True)
class If(_Instruction):
    """One body or the other."""

    condition: Expression
    body: tuple[Instruction, ...]
    otherwise: tuple[Instruction, ...] | None = None
    operation: Operation | None = None
    """The branch of the kernel, where it is one."""


@dataclass(frozen=True, slots=True)
class ThreadBarrier(_Instruction):
    """All threads of the agent meet."""


@dataclass(frozen=True, slots=True)
class Print(_Instruction):
    """Numbers are shown to whoever looks at what the device prints."""

    prefix: str
    values: tuple[Expression, ...]


# Clocks ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TraceBegin(_Instruction):
    """An agent finds its record, and writes when it begins."""

    agent: int
    agents: int
    marks: bool
    """Whether steps are written down mark by mark."""


@dataclass(frozen=True, slots=True)
class TraceEnd(_Instruction):
    """It writes when it ends."""


@dataclass(frozen=True, slots=True)
class ReadClock(_Instruction):
    """A variable gets the cycle that it is."""

    target: str


@dataclass(frozen=True, slots=True)
class TraceSteps(_Instruction):
    """Cycles and steps of a loop's steady part are added to the record."""

    loop: int
    """Its number among those that are recorded."""
    steps: Expression
    once: bool
    """Whether nothing is there yet that it would be added to."""


@dataclass(frozen=True, slots=True)
class TraceMark(_Instruction):
    """The clock before or behind a wait, behind a product or a copy."""

    number: int
    """Of the marks of a step."""


# Text and schedule -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Remark(_Instruction):
    """A line for who reads the source."""

    text: str


StepKind = Literal["prologue", "kernel", "epilogue", "iteration", "group"]
"""Of a step: before the steady part, in it, behind it; or a whole iteration, of a loop that is too
short for a pipeline; or a step of a group of iterations that run to their end together."""


@dataclass(frozen=True, slots=True)
class Step(_Instruction):
    """What an agent does in one step of a pipelined loop."""

    kind: StepKind
    number: int
    """Of a prologue's from the loop's begin on, of an epilogue's from the trip count on."""
    counted: Iteration
    """The iteration that its stage 0 works on."""
    body: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Pipelined(_Instruction):
    """One agent's part of a loop that runs by a schedule."""

    number: int
    """Of the loop among those of the kernel."""
    operation: Operation
    """The loop, as it stands there."""
    known: int | None
    """How often it goes round, where that is a number."""
    first: int
    """The steady part runs `first` .. trips + `ahead` - 1."""
    ahead: int
    needed: int
    """Trips below which iterations run one after the other."""
    together: tuple[int, ...]
    """Iterations that run to their end before the next begin: as many groups of the first size as
    there are, and of what is left over a group of each further size that it has. Empty: the steady
    part goes on to the last iteration."""
    order: tuple[str, ...]
    """Its operations, as a step has them."""
    body: tuple[Instruction, ...]
    hidden: int = 0
    """Of its last iterations, those that the agent leaves out: their tiles are handed back."""

    @property
    def bounds(self) -> tuple[Value, Value, Value]:
        """Where it begins and ends, and by how much it counts."""
        lower, upper, step = self.operation.operands[:3]
        return lower, upper, step


Instruction = (
    Assign
    | Advance
    | Flip
    | Wait
    | Arrive
    | Expect
    | Commit
    | NamedSync
    | NamedArrive
    | CopyIn
    | CopyOut
    | StoreWait
    | ThreadCopy
    | CommitGroup
    | WaitGroup
    | Fence
    | Read
    | Put
    | Load
    | Store
    | Atomic
    | Product
    | Settle
    | ProductInit
    | TensorProduct
    | For
    | While
    | If
    | ThreadBarrier
    | Print
    | TraceBegin
    | TraceEnd
    | ReadClock
    | TraceSteps
    | TraceMark
    | Remark
    | Step
    | Pipelined
)
