"""What an emitted kernel does, agent by agent, as far as it takes time: read off its program.

    AgentScore ── Beat         wait for `k_tile` to be full; issue `scores_2`; arrive; ...
               ├─ LoopScore    a loop that runs by a schedule: prologue, kernel, epilogue
               └─ Around       a loop around those, with a body of the same kinds

A beat is an instruction that somebody waits for or that holds a unit; an operation of several
instructions, such as a tile that is split, is one beat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from stretto.kernel import Operation, Value
from stretto.kernel.lowering.written import TMA_LOAD, TMA_STORE
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Tile
from stretto.ops.opcodes import opcode
from stretto.program import AgentProgram, KernelProgram
from stretto.program.expressions import Arithmetic, Expression, Name
from stretto.program.instructions import (
    Advance,
    Arrive,
    Assign,
    Atomic,
    Commit,
    CopyIn,
    CopyOut,
    Flip,
    For,
    If,
    Instruction,
    Load,
    NamedArrive,
    NamedSync,
    Pipelined,
    Product,
    Put,
    Read,
    Settle,
    Step,
    Store,
    StoreWait,
    TensorProduct,
    ThreadCopy,
    Wait,
    While,
)
from stretto.program.kernel_program import Barriers, TensorMemory
from stretto.program.walk import walk

BeatKind = Literal[
    "full", "free", "copy", "arrive", "product", "settle", "work", "store", "drain", "turn", "hand",
    "next",
]  # fmt: skip
"""Waits for a slot that is full or free, or for products; a copy that is issued; an arrival that
frees a slot; a product that is issued; arithmetic; a copy out, and the wait until it has read; a
wait for one's turn, which another hands on; a phase that is over for the agent."""


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
    phase: str = ""
    """Outside of loops that run by schedules: the variable that tells which turn is waited for, and
    that goes on to the next. Empty: it is the first, however often it is waited for."""


@dataclass(frozen=True)
class LoopScore:
    """A loop that runs by a schedule. The steady part runs `first` .. trips + `ahead` - 1."""

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
    hidden: int = 0
    """Of its last iterations, those that the agent leaves out."""

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


@dataclass(frozen=True)
class Around:
    """A loop that is not pipelined."""

    lower: Value | None
    """None: it goes round while a condition holds, and nobody knows how often that is."""
    upper: Value | None
    step: Value | None
    body: tuple[Beat | LoopScore | Around, ...]
    counter: Value | None = None
    """What trip counts of the loops inside may follow from."""


Part = Beat | LoopScore | Around


@dataclass(frozen=True)
class AgentScore:
    """One agent, from its first beat to its last."""

    agent: str
    warps: int
    parts: tuple[Part, ...]


def loops_in(parts: Iterable[Part]) -> list[LoopScore]:
    """Loops that run by schedules, in order, whatever is around them."""
    found: list[LoopScore] = []
    for part in parts:
        if isinstance(part, LoopScore):
            found.append(part)
        elif isinstance(part, Around):
            found += loops_in(part.body)
    return found


def scores_of(program: KernelProgram) -> tuple[AgentScore, ...]:
    """What each agent of a program does."""
    barriers = {one.name: one for one in program.memory if isinstance(one, Barriers)}
    sums = frozenset(one.name for one in program.memory if isinstance(one, TensorMemory))
    return tuple(_Reader(barriers, sums).agent(agent) for agent in program.agents)


@dataclass(frozen=True)
class _Reader:
    barriers: Mapping[str, Barriers]
    sums: frozenset[str]
    """Those in tensor memory."""

    def agent(self, agent: AgentProgram) -> AgentScore:
        return AgentScore(agent.name, agent.warps, tuple(self._parts(agent.body)))

    def _parts(self, body: Iterable[Instruction]) -> Iterator[Part]:
        worked: Operation | None = None
        for instruction in body:
            match instruction:
                case Pipelined():
                    yield self._loop(instruction)
                case For(operation=Operation() as loop):
                    lower, upper, step = loop.operands[:3]
                    counter = loop.regions[0].arguments[0]
                    yield Around(lower, upper, step, tuple(self._parts(instruction.body)), counter)
                case While():
                    yield Around(None, None, None, tuple(self._parts(instruction.body)))
                case If():
                    yield from self._parts(instruction.body)
                    yield from self._parts(instruction.otherwise or ())
                case _:
                    works = self._works_outside(instruction)
                    operation = instruction.origin.operation if works else None
                    if operation is None or operation is not worked:
                        yield from self._outside(instruction)
                    worked = operation or worked

    # Outside of loops that run by schedules ------------------------------------------------------

    def _works_outside(self, instruction: Instruction) -> bool:
        """Whether it is arithmetic of tiles, or moves them between registers and memory."""
        operation = instruction.origin.operation
        match instruction:
            case Put() | Load() | Store() | Atomic() | ThreadCopy():
                return True
            case Read():
                return instruction.source.memory in self.sums
            case Assign() if operation is not None:
                return any(isinstance(result.type, Tile) for result in operation.results)
            case _:
                return False

    def _outside(self, instruction: Instruction) -> Iterator[Beat]:
        operation = instruction.origin.operation
        name = "" if operation is None else kind_of(operation)
        match instruction:
            case Wait() | Arrive():
                of = self.barriers[instruction.barrier.name]
                if isinstance(instruction, Arrive):
                    yield Beat("arrive", "", of.of)
                    return
                waits = "full" if of.role == "full" else "free"
                yield Beat(waits, "", of.of, phase=_variable(instruction.phase))
            case Flip(phase=phase) | Advance(phase=phase):
                yield Beat("next", "", phase=phase)
            case CopyIn():
                memory = instruction.target.memory
                yield Beat("copy", name, memory, bytes=instruction.bytes, operation=operation)
            case NamedSync() | NamedArrive():
                waits = "turn" if isinstance(instruction, NamedSync) else "hand"
                yield Beat(waits, "", instruction.barrier)
            case CopyOut():
                yield Beat("store", name, operation=operation)
            case StoreWait():
                yield Beat("drain", "")
            case Product():
                yield Beat("product", name, operation=operation)
                yield Beat("settle", name, operation=operation)
            case _ if self._works_outside(instruction):
                yield Beat("work", name, operation=operation)
            case _:
                pass

    # Loops that run by schedules -----------------------------------------------------------------

    def _loop(self, loop: Pipelined) -> LoopScore:
        prologue: list[tuple[int, tuple[Beat, ...]]] = []
        epilogue: list[tuple[int, tuple[Beat, ...]]] = []
        kernel = singly = tuple[Beat, ...]()
        groups: list[Beat] = []
        for step in walk(loop.body):
            if not isinstance(step, Step):
                continue
            beats = tuple(self._step(step))
            match step.kind:
                case "prologue":
                    prologue.append((step.number, beats))
                case "kernel":
                    kernel = beats
                case "epilogue":
                    epilogue.append((step.number, beats))
                case "iteration":
                    singly = beats
                case "group":
                    groups += beats
        if loop.together:
            places = {op: n for n, op in enumerate(loop.order)}
            kernel = tuple(sorted(dict.fromkeys(groups), key=lambda beat: places[beat.op]))
        return LoopScore(
            loop.number, *loop.bounds, tuple(prologue), kernel or singly,
            tuple(epilogue), loop.first, loop.ahead, loop.needed, singly, loop.together,
            loop.hidden,
        )  # fmt: skip

    def _step(self, step: Step) -> Iterator[Beat]:
        worked = ""
        for instruction in walk(step.body):
            origin = instruction.origin
            beat = self._inside(instruction)
            if beat is None or not origin.op or (beat.kind == "work" and worked == origin.op):
                continue
            worked = origin.op if beat.kind == "work" else worked
            yield beat

    def _inside(self, instruction: Instruction) -> Beat | None:
        origin = instruction.origin
        op, stage, operation = origin.op, origin.stage, origin.operation
        match instruction:
            case Wait() | Arrive():
                of = self.barriers[instruction.barrier.name]
                waits = "full" if of.role == "full" else "free"
                kind = waits if isinstance(instruction, Wait) else "arrive"
                return Beat(kind, op, of.of, stage, operation=operation)
            case Commit() if self.barriers[instruction.barrier.name].role == "turn":
                return Beat("arrive", op, instruction.barrier.name, stage, operation=operation)
            case CopyIn(target=target, bytes=bytes):
                return Beat("copy", op, target.memory, stage, bytes=bytes, operation=operation)
            case NamedSync() | NamedArrive():
                waits = "turn" if isinstance(instruction, NamedSync) else "hand"
                return Beat(waits, op, instruction.barrier, stage)
            case CopyOut():
                return Beat("store", op, "", stage, operation=operation)
            case Product() | TensorProduct():
                return Beat("product", op, "", stage, operation=operation)
            case Settle(left=left):
                return Beat("settle", op, "", stage, left, operation=operation)
            case Assign() | Put() | Load() | Store() | Atomic() | Read() | ThreadCopy() if _works(
                operation
            ):
                return Beat("work", op, "", stage, operation=operation)
            case _:
                return None


def _variable(phase: Expression) -> str:
    """Which variable a phase is told by, its parity or the other; none where it is a number."""
    if isinstance(phase, Arithmetic):
        phase = phase.left
    return phase.name if isinstance(phase, Name) else ""


def _works(operation: Operation | None) -> bool:
    """Whether an operation is more than an issue or a wait, which are beats of their own."""
    if operation is None or kind_of(operation) in (TMA_LOAD, TMA_STORE):
        return False
    row = opcode(kind_of(operation))
    return row.accumulator is None and not row.awaits
