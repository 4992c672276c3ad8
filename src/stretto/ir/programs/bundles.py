"""One operation of a program as text, with the pipe and mutex operations around it.

wait, await, acquire, read
producer_write %pipe[%i] (%slot) { the operation ; yield }     nested, where several pipes are
commit, release, arrive, inc_iter
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from stretto.ir.attributes import CONSTRAINT, OP_FIELDS, STATED, to_attribute
from stretto.ir.dialect.kinds import row_of
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
from stretto.ir.dialect.programs import ArriveOp, AwaitOp, FillOp
from stretto.ir.dialect.types import IteratorType, PipelineType, TokenType, buffer_of
from stretto.ir.programs import names
from stretto.ir.programs.declaring import Declared
from stretto.ir.programs.operands import Bundle, Operands, bare, with_operands
from stretto.ir.programs.original import Original
from stretto.ir.programs.outlets import Outlets
from stretto.ir.programs.scope import Scope
from stretto.ir.reading.values import accumulator_of, destination_of
from stretto.materialize.instructions import (
    Acquire,
    Advance,
    Arrive,
    Await,
    Commit,
    Direct,
    Instruction,
    Issue,
    PipeInstruction,
    Read,
    Release,
    Wait,
    Write,
)
from stretto.materialize.types import Program, Side
from stretto.vocabulary.spaces import MEMORIES, SPACES

_PLAIN_OPS: dict[type[Instruction], type[Operation]] = {
    Acquire: ProducerAcquireOp,
    Wait: ConsumerWaitOp,
    Commit: ProducerCommitOp,
    Release: ConsumerReleaseOp,
}

Tokens = dict[tuple[str, Side], SSAValue]
"""The last token on each side of each pipe."""


def _side(i: PipeInstruction) -> tuple[str, Side]:
    return i.pipe, "producer" if isinstance(i, Acquire | Write | Commit) else "consumer"


@dataclass
class Bundles:
    """Writes bundles; `rows` are the loop's own, for the kernel's operations."""

    program: Program
    original: Original
    declared: Declared
    operands: Operands
    outlets: Outlets
    rows: dict[str, dict[str, Any]]
    needed: frozenset[str] = field(default_factory=frozenset[str])
    """Values that something beside their maker reads."""

    def write(self, scope: Scope, bundle: Sequence[Instruction], kernel: bool) -> None:
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
                    kind = _PLAIN_OPS[type(instruction)]
                    made = self._at(scope, kind, instruction, tokens)
                    tokens[_side(instruction)] = made
                case Await(mutex=mutex, distance=distance):
                    self._await(scope, self.declared.mutexes[mutex], distance)
                case Arrive(mutex=mutex):
                    scope.block.add_op(ArriveOp.create(operands=[self.declared.mutexes[mutex]]))
                case Advance(iterator=iterator):
                    old = scope.iterators[iterator]
                    inc = IncIterOp.create(operands=[old], result_types=[IteratorType()])
                    scope.iterators[iterator] = scope.add(inc)
                    inc.result.name_hint = old.name_hint
                case Write():
                    pass  # around the operation

    # Pipes ------------------------------------------------------------------------------------

    def _place(self, scope: Scope, i: PipeInstruction, tokens: Tokens) -> list[SSAValue]:
        found = [self.declared.pipes[i.pipe], scope.iterators[i.iterator]]
        return found + ([tokens[_side(i)]] if _side(i) in tokens else [])

    def _at(
        self,
        scope: Scope,
        kind: type[Operation],
        instruction: PipeInstruction,
        tokens: Tokens,
    ) -> SSAValue:
        operands = self._place(scope, instruction, tokens)
        return scope.add(kind.create(operands=operands, result_types=[TokenType()]))

    def _read(self, scope: Scope, around: Bundle, read: Read, tokens: Tokens) -> None:
        pipe = self.program.pipe_of[read.pipe]
        slot = _slot_of(self.declared.pipes[read.pipe])
        body = Block(arg_types=[slot])
        body.args[0].name_hint = pipe.ring if SSAValue.is_valid_name(pipe.ring) else None
        body.add_op(YieldOp.create(operands=[body.args[0]]))
        made = ConsumerReadOp.create(
            operands=self._place(scope, read, tokens),
            result_types=[TokenType(), slot],
            regions=[Region(body)],
        )
        scope.block.add_op(made)
        tokens[_side(read)] = made.results[0]
        made.results[1].name_hint = body.args[0].name_hint
        ring = self.program.ring_of[pipe.ring]
        if ring.storage is None:
            around.reads[read.iterator] = made.results[1]
        else:
            around.slots[ring.storage, None if ring.fixed else read.iterator] = made.results[1]

    def _await(self, scope: Scope, mutex: SSAValue, distance: int) -> None:
        properties: dict[str, Attribute] = {}
        if distance:
            properties["distance"] = to_attribute(distance)
        scope.block.add_op(AwaitOp.create(operands=[mutex], properties=properties))

    # The operation ----------------------------------------------------------------------------

    def _issue(
        self,
        scope: Scope,
        around: Bundle,
        writes: Sequence[Write],
        tokens: Tokens,
        kernel: bool,
    ) -> None:
        issue = around.issue
        for after in issue.after:
            self._await(scope, self.declared.tokens[after.op, after.latency], after.distance)
        outside, bodies = scope.block, [self._body(around, write) for write in writes]
        scope.block = bodies[0] if bodies else outside
        made = self._operation(scope, around, kernel)
        results: dict[str, SSAValue] = {}
        results.update(zip(self._results(issue.op), made.results, strict=True))
        enclosed: list[Write] = []
        for write, body, block in zip(writes, bodies, [*bodies, outside][1:], strict=True):
            scope.block = block
            results = self._write(scope, write, body, results, tokens, enclosed)
            enclosed.append(write)
        scope.block = outside
        for name, value in results.items():
            scope.made[name] = value
        if not writes and issue.op in self.original.sums:
            ring = self.declared.rings[self.original.sums[issue.op][0]]
            scope.block.add_op(FillOp.create(operands=[made.results[0], ring]))
        self.outlets.update(scope, results)
        for (holder, _), mutex in self.declared.tokens.items():
            if holder == issue.op:
                scope.block.add_op(ArriveOp.create(operands=[mutex]))

    def _results(self, op: str) -> tuple[str, ...]:
        return self.program.loop.op(op).results

    def _body(self, around: Bundle, write: Write) -> Block:
        pipe = self.program.pipe_of[write.pipe]
        ring = self.program.ring_of[pipe.ring]
        slot = _slot_of(self.declared.pipes[write.pipe])
        if buffer_of(slot) not in MEMORIES:
            return Block()
        body = Block(arg_types=[slot])
        body.args[0].name_hint = pipe.ring if SSAValue.is_valid_name(pipe.ring) else None
        if ring.storage is not None:
            around.slots[ring.storage, None if ring.fixed else write.iterator] = body.args[0]
        return body

    def _write(
        self,
        scope: Scope,
        write: Write,
        body: Block,
        results: dict[str, SSAValue],
        tokens: Tokens,
        enclosed: Sequence[Write],
    ) -> dict[str, SSAValue]:
        """Close the body around an operation; its results as they are outside.

        Tokens of the writes inside it leave it as well, since their commits stand outside.
        """
        ring = self.program.ring_of[self.program.pipe_of[write.pipe].ring]
        home = {value.name: value.storage for value in self.program.loop.values}
        slot = _slot_of(self.declared.pipes[write.pipe])
        inside = not SPACES[ring.space].budgeted
        content = [
            name
            for name in results
            if (inside and results[name].type == slot and ring.name in (name, home[name]))
            or ring.value == name
        ][:1]
        kept = [*content, *(n for n in results if n in self.needed and n not in content)]
        out = [*(results[name] for name in kept), *(tokens[_side(one)] for one in enclosed)]
        body.add_op(YieldOp.create(operands=out))
        made = ProducerWriteOp.create(
            operands=self._place(scope, write, tokens),
            result_types=[TokenType(), *(value.type for value in out)],
            regions=[Region(body)],
        )
        scope.block.add_op(made)
        token, *others = made.results
        for value, result in zip(out, others, strict=True):
            result.name_hint = value.name_hint
        tokens[_side(write)] = token
        for one, result in zip(enclosed, others[len(kept) :], strict=True):
            tokens[_side(one)] = result
        return dict(zip(kept, others, strict=False))

    def _operation(self, scope: Scope, around: Bundle, kernel: bool) -> Operation:
        issue = around.issue
        source = self.original.ops[issue.op]
        operands = self.operands.of(scope, around)
        self.operands.touch(scope, around)
        if issue.op in self.original.stated:
            made = with_operands(bare(source), operands)
        else:
            made = bare(source)
            made.operands = operands
            self._into(around, source, made)
        made.attributes.update(self._attributes(issue, kernel))
        scope.block.add_op(made)
        return made

    def _into(self, around: Bundle, source: Operation, made: Operation) -> None:
        """Name the slot to an operation that had a buffer of its own."""
        at = row_of(source).destination
        if at is None:
            return
        if destination_of(source) is not None or accumulator_of(source) is not None:
            return
        result = source.results[0]
        storage = self.original.storage_of(result)
        slots = [s for s in around.issue.writes if s.storage == storage]
        if buffer_of(result.type) not in MEMORIES or not slots:
            return
        slot = around.slots.get((slots[0].storage, slots[0].iterator))
        if slot is None or slot.type != result.type:
            return
        segments = made.properties["operandSegmentSizes"]
        assert isinstance(segments, DenseArrayBase)
        sizes = [int(n) for n in segments.get_values()]
        before = sum(sizes[:at])
        made.operands = [*made.operands[:before], slot, *made.operands[before:]]
        sizes[at] = 1
        made.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)

    def _attributes(self, issue: Issue, kernel: bool) -> dict[str, Attribute]:
        row = self.rows[issue.op]
        found = {STATED + "name": to_attribute(issue.op)}
        if kernel:
            found |= {STATED + key: to_attribute(row[key]) for key in OP_FIELDS if key in row}
            wishes = row.get("constraint", {})
            found |= {CONSTRAINT + key: to_attribute(value) for key, value in wishes.items()}
            places = self.original.operand_at.get(issue.op, range(len(issue.operands)))
            if list(places) != list(range(len(issue.operands))):
                found[names.OPERANDS] = DenseArrayBase.from_list(i64, list(places))
        found[names.STAGE] = to_attribute(issue.at.stage)
        found[names.CYCLE] = to_attribute(issue.at.cycle)
        return found


def needed_values(program: Program) -> frozenset[str]:
    """Values that an operation takes directly from the one that makes them."""
    return frozenset(
        source.path.origin
        for agent in program.agents
        for i in agent.stream.kernel
        if isinstance(i, Issue)
        for source in i.operands
        if isinstance(source, Direct)
    )


def _slot_of(pipe: SSAValue) -> Attribute:
    assert isinstance(pipe.type, PipelineType)
    return pipe.type.slot
