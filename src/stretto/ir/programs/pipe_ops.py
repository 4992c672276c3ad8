"""One operation of a program with the pipe and mutex operations around it, there and back.

wait, await, acquire, read
producer_write %pipe[%i] (%slot) { the operation ; yield }     nested, where several pipes are
commit, release, arrive, inc_iter

Read back, pipe instructions belong to the operation that their iterator is of, waits at a mutex to
the next one that issues. An iterator is where its last `inc_iter` put it: whoever uses an older
place is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from stretto.ir.attributes import to_attribute
from stretto.ir.dialect.pipeline import (
    ConsumerReadOp,
    ConsumerReleaseOp,
    ConsumerWaitOp,
    IncIterOp,
    ProducerAcquireOp,
    ProducerCommitOp,
    ProducerWriteOp,
    YieldOp,
)
from stretto.ir.dialect.pipelined import ArriveOp, AwaitOp, FillOp, SlotOp
from stretto.ir.dialect.types import IteratorType, TokenType, buffer_of
from stretto.ir.programs.declarations import Writing, slot_of
from stretto.ir.programs.issues import Issues, Outlets, place_of, read_issue
from stretto.ir.programs.operands import Bundle, Sources
from stretto.ir.programs.original import Section, Spot
from stretto.materialization.program import (
    Acquire,
    Advance,
    After,
    Arrive,
    Await,
    Commit,
    Direct,
    Instruction,
    Issue,
    PipeInstruction,
    Position,
    Read,
    Release,
    Side,
    Wait,
    Write,
)
from stretto.ops.spaces import MEMORIES, SPACES

_PIPE_OPS: dict[type[PipeInstruction], type[Operation]] = {
    Acquire: ProducerAcquireOp,
    Write: ProducerWriteOp,
    Commit: ProducerCommitOp,
    Wait: ConsumerWaitOp,
    Read: ConsumerReadOp,
    Release: ConsumerReleaseOp,
}
_PIPE_INSTRUCTIONS = {op: instruction for instruction, op in _PIPE_OPS.items()}

Tokens = dict[tuple[str, Side], SSAValue]
"""The last token on each side of each pipe."""


def _side(i: PipeInstruction) -> tuple[str, Side]:
    return i.pipe, "producer" if isinstance(i, Acquire | Write | Commit) else "consumer"


class BundleWriter:
    """Writes the bundles of one program."""

    def __init__(self, to: Writing, outlets: Outlets) -> None:
        self._to = to
        self._outlets = outlets
        self._issues = Issues(to)
        taken = (source for issue in to.issues for source in issue.operands)
        self._needed = {source.path.origin for source in taken if isinstance(source, Direct)}
        """Values that something beside their maker reads."""
        self._needed |= outlets.values()

    def write(self, scope: Spot, bundle: Sequence[Instruction], kernel: bool) -> None:
        """All instructions of one operation in one place."""
        issue = next(i for i in bundle if isinstance(i, Issue))
        around = Bundle(issue)
        tokens: Tokens = {}
        for instruction in bundle:
            match instruction:
                case Issue():
                    writes = [i for i in bundle if isinstance(i, Write)]
                    self._issue(scope, around, writes, tokens, kernel)
                case Read():
                    self._read(scope, around, instruction, tokens)
                case Acquire() | Wait() | Commit() | Release():
                    self._pipe(scope, instruction, tokens)
                case Await(mutex=mutex, distance=distance):
                    self._await(scope, self._to.mutexes[mutex], distance)
                case Arrive(mutex=mutex):
                    scope.block.add_op(ArriveOp.create(operands=[self._to.mutexes[mutex]]))
                case Advance(iterator=iterator):
                    old = scope.iterators[iterator]
                    inc = IncIterOp.create(operands=[old], result_types=[IteratorType()])
                    scope.iterators[iterator] = scope.add(inc)
                    inc.result.name_hint = old.name_hint
                case Write():
                    pass  # around the operation

    # Pipes ------------------------------------------------------------------------------------

    def _pipe(
        self,
        scope: Spot,
        i: PipeInstruction,
        tokens: Tokens,
        types: Sequence[Attribute] = (),
        body: Block | None = None,
    ) -> Sequence[SSAValue]:
        """An operation on a pipe, after the last one on its side of it; what it makes."""
        after = [tokens[_side(i)]] if _side(i) in tokens else []
        made = _PIPE_OPS[type(i)].create(
            operands=[self._to.pipes[i.pipe], scope.iterators[i.iterator], *after],
            result_types=[TokenType(), *types],
            regions=[] if body is None else [Region(body)],
        )
        scope.block.add_op(made)
        tokens[_side(i)], *others = made.results
        return others

    def _slot_body(self, i: Read | Write) -> Block:
        """The body of an operation on a pipe, which is given the slot."""
        ring = self._to.program.pipe_of[i.pipe].ring
        body = Block(arg_types=[slot_of(self._to.pipes[i.pipe])])
        body.args[0].name_hint = ring if SSAValue.is_valid_name(ring) else None
        return body

    def _read(self, scope: Spot, around: Bundle, read: Read, tokens: Tokens) -> None:
        body = self._slot_body(read)
        body.add_op(YieldOp.create(operands=[body.args[0]]))
        (given,) = self._pipe(scope, read, tokens, [body.args[0].type], body)
        given.name_hint = body.args[0].name_hint
        ring = self._to.program.ring_of[self._to.program.pipe_of[read.pipe].ring]
        if ring.storage is None:
            around.reads[read.iterator] = given
        else:
            around.slots[ring.storage, None if ring.fixed else read.iterator] = given

    def _await(self, scope: Spot, mutex: SSAValue, distance: int) -> None:
        properties: dict[str, Attribute] = {}
        if distance:
            properties["distance"] = to_attribute(distance)
        scope.block.add_op(AwaitOp.create(operands=[mutex], properties=properties))

    # The operation ----------------------------------------------------------------------------

    def _issue(
        self,
        scope: Spot,
        around: Bundle,
        writes: Sequence[Write],
        tokens: Tokens,
        kernel: bool,
    ) -> None:
        issue = around.issue
        for after in issue.after:
            self._await(scope, self._to.tokens[after.op, after.latency], after.distance)
        outside, bodies = scope.block, [self._body(around, write) for write in writes]
        scope.block = bodies[0] if bodies else outside
        made = self._issues.write(scope, around, kernel)
        names = self._to.program.loop.op(issue.op).results
        results: dict[str, SSAValue] = dict(zip(names, made.results, strict=True))
        enclosed: list[Write] = []
        for write, body, block in zip(writes, bodies, [*bodies, outside][1:], strict=True):
            scope.block = block
            results = self._write(scope, write, body, results, tokens, enclosed)
            enclosed.append(write)
        scope.block = outside
        scope.made.update(results)
        if not writes and issue.op in self._to.original.sums:
            ring = self._to.rings[self._to.original.sums[issue.op][0]]
            scope.block.add_op(FillOp.create(operands=[made.results[0], ring]))
        self._outlets.update(scope, results)
        for (holder, _), mutex in self._to.tokens.items():
            if holder == issue.op:
                scope.block.add_op(ArriveOp.create(operands=[mutex]))

    def _body(self, around: Bundle, write: Write) -> Block:
        body = self._slot_body(write)
        if buffer_of(body.args[0].type) not in MEMORIES:
            return Block()
        ring = self._to.program.ring_of[self._to.program.pipe_of[write.pipe].ring]
        if ring.storage is not None:
            around.slots[ring.storage, None if ring.fixed else write.iterator] = body.args[0]
        return body

    def _write(
        self,
        scope: Spot,
        write: Write,
        body: Block,
        results: dict[str, SSAValue],
        tokens: Tokens,
        enclosed: Sequence[Write],
    ) -> dict[str, SSAValue]:
        """Close the body around an operation; its results as they are outside.

        Tokens of the writes inside it leave it as well, since their commits stand outside.
        """
        ring = self._to.program.ring_of[self._to.program.pipe_of[write.pipe].ring]
        home = {value.name: value.storage for value in self._to.program.loop.values}
        slot = slot_of(self._to.pipes[write.pipe])
        inside = not SPACES[ring.space].budgeted
        content = [
            name
            for name in results
            if (inside and results[name].type == slot and ring.name in (name, home[name]))
            or ring.value == name
        ][:1]
        kept = [*content, *(n for n in results if n in self._needed and n not in content)]
        out = [*(results[name] for name in kept), *(tokens[_side(one)] for one in enclosed)]
        body.add_op(YieldOp.create(operands=out))
        others = self._pipe(scope, write, tokens, [value.type for value in out], body)
        for value, result in zip(out, others, strict=True):
            result.name_hint = value.name_hint
        for one, result in zip(enclosed, others[len(kept) :], strict=True):
            tokens[_side(one)] = result
        return dict(zip(kept, others, strict=False))


# The way back -----------------------------------------------------------------------------

_UNPLACED = Position(0, 0, 0)


@dataclass
class Passage:
    """The body of a guard or a kernel, while it is read."""

    section: Section
    step: int = 0
    needs: int = 0
    entries: list[tuple[Operation, str | None, Instruction]] = field(
        default_factory=list[tuple[Operation, str | None, Instruction]]
    )
    """Where it stands, whose it is (None: whoever issues next), and what, not yet in its place."""
    issues: dict[str, Operation] = field(default_factory=dict[str, Operation])
    touched: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Iterators that stand around each operation."""
    tokens: dict[str, list[After]] = field(default_factory=dict[str, list[After]])
    arrived: set[SSAValue] = field(default_factory=set[SSAValue])


@dataclass
class BundleReader:
    """Reads the bundles of one agent."""

    sources: Sources
    now: dict[str, SSAValue]
    """Where each iterator stands."""

    def __post_init__(self) -> None:
        self.head = self.sources.head

    def stands(self, name: str, value: SSAValue) -> None:
        """An iterator has gone on."""
        self.head.versions[value] = name
        self.now[name] = value

    def named(self, op: Operation, value: SSAValue) -> str:
        """The iterator that a value stands for, which must be where it is now."""
        name = self.head.versions.get(value)
        if name is None:
            raise self.head.refuse(op, f"`{op.name}` uses an iterator of another agent or program")
        if self.now[name] is not value:
            told = f"iterator `{name}` where it has been, not where it is"
            raise self.head.refuse(op, f"`{op.name}` uses {told}")
        return name

    def walk(self, block: Block, part: Passage) -> None:
        """Find all instructions of a body."""
        for op in block.ops:
            if op in self.head.issued:
                self._issue(op, part)
            elif isinstance(op, IncIterOp):
                iterator = self.named(op, op.iterator)
                self.stands(iterator, op.result)
                owner = self._touch(part, iterator)
                part.entries.append((op, owner, Advance(_UNPLACED, owner, iterator)))
            elif isinstance(op, SlotOp):
                if op.iterator is not None:
                    self._touch(part, self.named(op, op.iterator))
            elif isinstance(op, AwaitOp | ArriveOp):
                self._order(op, part)
            elif type(op) in _PIPE_INSTRUCTIONS:
                self._piped(op, part)

    def _piped(self, op: Operation, part: Passage) -> None:
        pipe = self.head.pipes.get(op.operands[0])
        if pipe is None:
            raise self.head.refuse(op, f"`{op.name}` on a pipeline of another program")
        iterator = self.named(op, op.operands[1])
        if isinstance(op, ProducerWriteOp):
            self.walk(op.body.block, part)
        owner, kind = self._touch(part, iterator), _PIPE_INSTRUCTIONS[type(op)]
        part.entries.append((op, owner, kind(_UNPLACED, owner, pipe.name, iterator)))

    def _touch(self, part: Passage, iterator: str) -> str:
        owner = self.head.iterator_of[iterator].op
        part.touched.setdefault(owner, []).append(iterator)
        return owner

    def _order(self, op: AwaitOp | ArriveOp, part: Passage) -> None:
        mutex, token = self.head.mutexes.get(op.mutex), self.head.tokens.get(op.mutex)
        if mutex is None and token is None:
            raise self.head.refuse(op, f"`{op.name}` at a mutex of another program")
        if isinstance(op, ArriveOp):
            if mutex is None:
                part.arrived.add(op.mutex)
            else:
                arrive = Arrive(_UNPLACED, mutex.holder, mutex.name)
                part.entries.append((op, mutex.holder, arrive))
            return
        distance = 0 if op.distance is None else op.distance.value.data
        if mutex is not None:
            part.entries.append((op, None, Await(_UNPLACED, "", mutex.name, distance)))
        elif token is not None:
            part.tokens.setdefault("", []).append(After(token[0], distance, token[1]))

    def _issue(self, op: Operation, part: Passage) -> None:
        name = self.head.issued[op]
        if name in part.issues:
            raise self.head.refuse(op, f"`{name}` issues twice in one step")
        part.issues[name] = op
        part.tokens[name] = part.tokens.pop("", [])
        part.entries.append((op, name, Issue(_UNPLACED, name)))

    def instructions(self, part: Passage) -> tuple[Instruction, ...]:
        """All instructions of a body, in their places."""
        places = {
            name: Position(part.step, *place_of(self.head, op), part.needs)
            for name, op in part.issues.items()
        }
        found: list[Instruction] = []
        following: str | None = None
        for op, whose, instruction in reversed(part.entries):
            if isinstance(instruction, Issue):
                following = whose
            owner = following if whose is None else whose
            if owner is None or owner not in places:
                told = "waits alone"
                if owner:
                    told = f"belongs to `{owner}`, which does not issue here"
                raise self.head.refuse(op, f"`{op.name}` {told}")
            at = places[owner]
            if isinstance(instruction, Issue):
                touched, after = part.touched.get(owner, []), tuple(part.tokens[owner])
                found.append(read_issue(self.sources, op, at, part.section, touched, after))
            else:
                found.append(replace(instruction, at=at, op=owner))
        for value, (holder, _) in self.head.tokens.items():
            if holder in part.issues and value not in part.arrived:
                told = f"`{holder}` never arrives, and others wait for it"
                raise self.head.refuse(part.issues[holder], told)
        return tuple(found[::-1])
