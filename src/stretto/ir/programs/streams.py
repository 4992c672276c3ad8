"""Streams, read back from guards and kernels.

    scf.if (trips >= 2) { ... } {step = 1}   ──►   instructions of step 1 that need 2 iterations
    scf.for %step = 2 to trips + 1           ──►   first 1, last 2

An iterator is where its last `inc_iter` put it: whoever uses an older place is refused. Pipe
instructions belong to the operation that their iterator is of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects.arith import AddiOp, CmpiOp
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from stretto.ir.attributes import plain
from stretto.ir.dialect.pipeline import (
    ConsumerReadOp,
    ConsumerReleaseOp,
    ConsumerWaitOp,
    IncIterOp,
    ProducerAcquireOp,
    ProducerCommitOp,
    ProducerWriteOp,
)
from stretto.ir.dialect.programs import ArriveOp, AwaitOp, SlotOp
from stretto.ir.programs import names
from stretto.ir.programs.head import Head, issued
from stretto.ir.programs.issues import Issues
from stretto.ir.programs.original import constant_of
from stretto.materialize.instructions import (
    Acquire,
    Advance,
    After,
    Arrive,
    Await,
    Commit,
    Instruction,
    PipeInstruction,
    Place,
    Read,
    Release,
    Stream,
    Wait,
    Write,
)

_PIPE_OPS: dict[type[Operation], type[PipeInstruction]] = {
    ProducerAcquireOp: Acquire,
    ProducerWriteOp: Write,
    ProducerCommitOp: Commit,
    ConsumerWaitOp: Wait,
    ConsumerReadOp: Read,
    ConsumerReleaseOp: Release,
}
_PREDICATE_SGE = 5

Make = Callable[[Place, str], Instruction]
"""An instruction for an operation in its place."""


def _advancing(iterator: str) -> Make:
    return lambda at, op: Advance(at, op, iterator)


def _piping(kind: type[PipeInstruction], pipe: str, iterator: str) -> Make:
    return lambda at, op: kind(at, op, pipe, iterator)


def _awaiting(mutex: str, distance: int) -> Make:
    return lambda at, op: Await(at, op, mutex, distance)


def _arriving(mutex: str) -> Make:
    return lambda at, op: Arrive(at, op, mutex)


@dataclass
class Entry:
    """One instruction in the making: who it belongs to, and how it is made once that is placed."""

    op: Operation
    owner: str | None
    """None: whoever issues next."""
    make: Make


@dataclass
class Part:
    """The body of a guard or a kernel."""

    section: str
    step: int = 0
    needs: int = 0
    entries: list[Entry] = field(default_factory=list[Entry])
    issues: dict[str, Operation] = field(default_factory=dict[str, Operation])
    touched: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Iterators that stand around each operation."""
    tokens: dict[str, list[After]] = field(default_factory=dict[str, list[After]])
    arrived: set[SSAValue] = field(default_factory=set[SSAValue])


@dataclass
class StreamReader:
    """Reads the stream of one agent from its block."""

    head: Head
    versions: dict[SSAValue, str]
    """Every SSA value that stands for an iterator."""
    issues: Issues
    parts: list[Part] = field(default_factory=list[Part])
    now: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    bounds: tuple[int, int] | None = None

    def read(self, block: Block) -> Stream:
        """The whole stream."""
        self.now = {i.name: value for value, i in self.head.iterators.items()}
        for op in block.ops:
            if isinstance(op, IfOp) and names.SECTION in op.attributes:
                self._guard(op)
            elif isinstance(op, ForOp) and names.SECTION in op.attributes:
                self._kernel(op)
        if self.bounds is None:
            raise self.head.refuse(self.head.op, "an agent of the program has no kernel")
        # Operands of the first iterations are those of the kernel, seen before the loop.
        order = sorted(self.parts, key=lambda part: part.section != "kernel")
        made = {id(part): tuple(self._instructions(part)) for part in order}
        found: dict[str, list[Instruction]] = {"prologue": [], "kernel": [], "epilogue": []}
        for part in self.parts:
            found[part.section] += made[id(part)]
        return Stream(*self.bounds, *(tuple(section) for section in found.values()))

    # Guards and kernels -----------------------------------------------------------------------

    def _guard(self, op: IfOp) -> None:
        section = plain(op.attributes[names.SECTION])
        wanted = "prologue" if self.bounds is None else "epilogue"
        step = plain(op.attributes.get(names.STEP, op.attributes[names.SECTION]))
        if section != wanted or not isinstance(step, int):
            told = f"section {section}, step {step}; it stands in the {wanted}"
            raise self.head.refuse(op, f"a guard of {told}")
        part = Part(wanted, step, self._needs(op))
        outer = dict(self.now)
        self._walk(op.true_region.block, part)
        self._leave(op, op.true_region.block, outer)
        self.parts.append(part)

    def _needs(self, op: IfOp) -> int:
        made = op.cond.op if isinstance(op.cond, OpResult) else None
        if isinstance(made, CmpiOp) and made.lhs is self.head.trips:
            least = constant_of(made.rhs)
            if least is not None and made.predicate.value.data == _PREDICATE_SGE:
                return least
        raise self.head.refuse(op, "a guard that does not ask for a least trip count")

    def _leave(self, op: IfOp, then: Block, outer: dict[str, SSAValue]) -> None:
        """Iterators after a guard: as inside it, or where they were."""
        last = then.last_op
        inner = dict(self.now)
        self.now = dict(outer)
        yielded = () if last is None else last.operands
        other = op.false_region.blocks.first
        skipped = () if other is None or other.last_op is None else other.last_op.operands
        for n, value in enumerate(yielded):
            name = self.versions.get(value)
            if name is None:
                continue
            if value is not inner[name] or n >= len(skipped) or skipped[n] is not outer[name]:
                raise self.head.refuse(op, f"iterator `{name}` leaves this guard as another")
            self._stands(name, op.results[n])
        for name, value in inner.items():
            if value is not outer[name] and self.now[name] is outer[name]:
                raise self.head.refuse(op, f"iterator `{name}` goes on in this guard and is lost")

    def _kernel(self, op: ForOp) -> None:
        if self.bounds is not None:
            raise self.head.refuse(op, "a second kernel of one agent")
        last, first = constant_of(op.lb), self._above(op.ub)
        if last is None or first is None or constant_of(op.step) != 1:
            raise self.head.refuse(op, "a kernel that does not go from a stage to the trip count")
        self.bounds = (first, last)
        part = Part("kernel")
        block = op.body.block
        carried: list[str | None] = []
        for outside, argument in zip(op.iter_args, block.args[1:], strict=True):
            name = self._named(op, outside) if outside in self.versions else None
            carried.append(name)
            if name is not None:
                self._stands(name, argument)
        self._walk(block, part)
        end = block.last_op
        for n, name in enumerate(carried):
            if name is None:
                continue
            if end is None or end.operands[n] is not self.now[name]:
                raise self.head.refuse(op, f"iterator `{name}` is not carried round the kernel")
            self._stands(name, op.results[n])
        self.parts.append(part)

    def _above(self, value: SSAValue) -> int | None:
        """How far an upper bound lies above the trip count."""
        if value is self.head.trips:
            return 0
        made = value.op if isinstance(value, OpResult) else None
        if isinstance(made, AddiOp) and made.lhs is self.head.trips:
            return constant_of(made.rhs)
        return None

    # Instructions -----------------------------------------------------------------------------

    def _stands(self, name: str, value: SSAValue) -> None:
        self.versions[value] = name
        self.now[name] = value

    def _named(self, op: Operation, value: SSAValue) -> str:
        name = self.versions.get(value)
        if name is None:
            raise self.head.refuse(op, f"`{op.name}` uses an iterator of another agent or program")
        if self.now[name] is not value:
            told = f"iterator `{name}` where it has been, not where it is"
            raise self.head.refuse(op, f"`{op.name}` uses {told}")
        return name

    def _walk(self, block: Block, part: Part) -> None:
        for op in block.ops:
            name = issued(op)
            if name is not None:
                self._issue(op, name, part)
            elif isinstance(op, IncIterOp):
                iterator = self._named(op, op.iterator)
                self._stands(iterator, op.result)
                self._add(part, op, iterator, _advancing(iterator))
            elif isinstance(op, SlotOp):
                if op.iterator is not None:
                    self._touch(part, self._named(op, op.iterator))
            elif isinstance(op, AwaitOp | ArriveOp):
                self._order(op, part)
            elif type(op) in _PIPE_OPS:
                self._piped(op, part)

    def _piped(self, op: Operation, part: Part) -> None:
        pipe = self.head.pipes.get(op.operands[0])
        if pipe is None:
            raise self.head.refuse(op, f"`{op.name}` on a pipeline of another program")
        iterator = self._named(op, op.operands[1])
        if isinstance(op, ProducerWriteOp):
            self._walk(op.body.block, part)
        self._add(part, op, iterator, _piping(_PIPE_OPS[type(op)], pipe.name, iterator))

    def _touch(self, part: Part, iterator: str) -> str:
        owner = self.issues.iterators[iterator].op
        part.touched.setdefault(owner, []).append(iterator)
        return owner

    def _add(self, part: Part, op: Operation, iterator: str, make: Make) -> None:
        part.entries.append(Entry(op, self._touch(part, iterator), make))

    def _order(self, op: AwaitOp | ArriveOp, part: Part) -> None:
        mutex, token = self.head.mutexes.get(op.mutex), self.head.tokens.get(op.mutex)
        if mutex is None and token is None:
            raise self.head.refuse(op, f"`{op.name}` at a mutex of another program")
        if isinstance(op, ArriveOp):
            if mutex is None:
                part.arrived.add(op.mutex)
            else:
                part.entries.append(Entry(op, mutex.holder, _arriving(mutex.name)))
            return
        distance = 0 if op.distance is None else op.distance.value.data
        if mutex is not None:
            part.entries.append(Entry(op, None, _awaiting(mutex.name, distance)))
        elif token is not None:
            part.tokens.setdefault("", []).append(After(token[0], distance, token[1]))

    def _issue(self, op: Operation, name: str, part: Part) -> None:
        if name in part.issues:
            raise self.head.refuse(op, f"`{name}` issues twice in one step")
        part.issues[name] = op
        part.tokens[name] = part.tokens.pop("", [])

        def make(at: Place, _: str) -> Instruction:
            touched, after = part.touched.get(name, []), tuple(part.tokens[name])
            return self.issues.issue(op, name, at, part.section, touched, after)

        part.entries.append(Entry(op, name, make))

    def _instructions(self, part: Part) -> list[Instruction]:
        places = {
            name: Place(part.step, *self.issues.place(op), part.needs)
            for name, op in part.issues.items()
        }
        found: list[Instruction] = []
        following: str | None = None
        for entry in reversed(part.entries):
            owner = entry.owner
            if owner in part.issues and entry.op is part.issues[owner]:
                following = owner
            owner = following if owner is None else owner
            if owner is None or owner not in places:
                told = (
                    f"belongs to `{owner}`, which does not issue here" if owner else "waits alone"
                )
                raise self.head.refuse(entry.op, f"`{entry.op.name}` {told}")
            found.append(entry.make(places[owner], owner))
        for value, (holder, _) in self.head.tokens.items():
            if holder in part.issues and value not in part.arrived:
                told = f"`{holder}` never arrives, and others wait for it"
                raise self.head.refuse(part.issues[holder], told)
        return found[::-1]
