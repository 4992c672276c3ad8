"""From the body of one scf.for, or of a function without loops, to a `Loop`.

    %k = tiled_tma_load %K[%i] into %ring     Op("k", reads=(), writes=("ring",), ...)
    %s = tcgen05_mma %q, %k into %acc         Op("s", operands=(q, k), reads=("q", "ring"), ...)
    scf.yield %m_new                          who reads %m gets Operand("m_new", distance=1)

Constants, descriptors and bare buffers are no values of the loop: an instruction holds the first,
the machine's units the second, and storages say all there is to say of the third.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count
from typing import TypeGuard, cast

from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator, Pure

from stretto.ir.attributes import StatedLoop, StatedOp, alias_set, stated_op
from stretto.ir.dialect import kind_of, name_of, row_of
from stretto.ir.dialect.kernels import CombiningOp
from stretto.ir.dialect.pipeline import BODIES
from stretto.ir.dialect.pipeline import YieldOp as BodyYieldOp
from stretto.ir.dialect.transfers import AllocTensorOp, BarrierOp, CopyOp
from stretto.ir.dialect.types import buffer_of, tile_of
from stretto.ir.loops.flow import (
    NESTED,
    BufferHomes,
    Flow,
    UnreadableError,
    immediate,
    inside,
    yielded,
)
from stretto.ir.loops.storages import Names, Storages, Touched
from stretto.loop import Access, Dependence, Facts, Loop, Op, Operand, Value, Written
from stretto.ops.opcodes import UNKNOWN, opcode


@dataclass(frozen=True, slots=True)
class Inner:
    """What an inner loop costs as an operation of the outer one."""

    op: Op
    slots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scheduled:
    """An operation of the body that becomes one of the loop."""

    op: Operation
    parent: Operation | None
    stated: StatedOp


@dataclass(frozen=True, slots=True)
class Body:
    """A loop as read, and which operation of the text each of its own is."""

    loop: Loop
    ops: dict[str, Operation]
    values: dict[SSAValue, str]
    """Values of the text that the loop has, by what they are called there."""
    buffers: dict[str, SSAValue]
    """Buffers of the text that are its storages."""


def scheduled_ops(block: Block, parent: Operation | None = None) -> Iterator[Scheduled]:
    """The operations of a body that a schedule places, bodies of pipeline operations included."""
    for op in block.ops:
        if isinstance(op, BodyYieldOp) or op.has_trait(IsTerminator, value_if_unregistered=False):
            continue
        if isinstance(op, AllocTensorOp) and op.init is None:
            continue
        if op.results and immediate(op.results[0]):
            continue
        if op.regions and not isinstance(op, (*NESTED, CombiningOp, *BODIES)):
            raise UnreadableError(op, f"`{name_of(op)}` is a region inside the body")
        yield Scheduled(op, parent, stated_op(op))
        if isinstance(op, BODIES):
            yield from scheduled_ops(op.body.block, op)


class BodyReader:
    """Reads one loop, or a block that is gone through once.

    `place` orders all operations of the module as they stand.
    """

    def __init__(
        self,
        owner: Operation,
        stated: StatedLoop,
        homes: BufferHomes,
        place: dict[Operation, int],
        inner: Mapping[Operation, Inner],
        written: Callable[[Operation], Written | None] | None = None,
        known: Callable[[Operation], Facts] | None = None,
        block: Block | None = None,
    ) -> None:
        self._block = owner.regions[0].blocks[0] if block is None else block
        self._for = owner if block is None and isinstance(owner, ForOp) else None
        self._known = known
        self._written = written
        self._stated = stated
        self._homes = homes
        self._place = place
        self._inner = inner
        self._body = tuple(scheduled_ops(self._block))
        self._op_names: dict[Operation, str] = {}
        self._value_names: dict[SSAValue, str] = {}
        self._values = Names()
        self._flow = Flow(owner, block)
        self._storages = Storages(owner, self._block, homes, place, stated, self._flow.sums)
        self._live_ins: tuple[SSAValue, ...] = ()

    def read(self, name: str) -> Body:
        """The loop, under a name."""
        self._name_results()
        self._name_live_ins()
        accesses = [self._storages.accesses(i.op, i.stated.given) for i in self._body]
        self._storages.settle(accesses)
        ops = self._banked(
            [
                self._grouped(item, self._op(item, touched))
                for item, touched in zip(self._body, accesses, strict=True)
            ]
        )
        loop = Loop(
            name=name,
            ops=ops,
            values=self._all_values(ops),
            storages=self._storages.all(),
            stated=(*self._stated.loop.stated, *self._orders(ops)),
            machine=self._stated.loop.machine,
            slots=(*self._stated.loop.slots, *self._own_slots()),
            force_serial=self._for is None or self._stated.loop.force_serial,
        )
        named = {self._op_names[item.op]: item.op for item in self._body}
        return Body(loop, named, self._value_names, self._storages.roots())

    def _orders(self, ops: tuple[Op, ...]) -> Iterator[Dependence]:
        body = [item.op for item in self._body]
        yield from fences(ops, body)
        yield from same_places(ops, body)
        yield from same_sets(ops, body)
        yield from entries(((item.op, item.parent) for item in self._body), self._op_names)

    def _own_slots(self) -> Iterator[str]:
        for item in self._body:
            if item.op in self._inner and "uses" not in item.stated.given:
                yield from self._inner[item.op].slots

    # Names --------------------------------------------------------------------------------

    def _name_results(self) -> None:
        stated_ops = [i.stated.op.name for i in self._body if "name" in i.stated.given]
        stated_values = [name for i in self._body for name in i.stated.op.results]
        ops = Names(stated_ops)
        self._values = Names([*stated_values, *(v.name for v in self._stated.loop.values)])
        declared = {v.name for v in self._stated.loop.values} - set(stated_values)
        for position, item in enumerate(self._body):
            hints = [result.name_hint for result in item.op.results]
            if "name" in item.stated.given:
                name = item.stated.op.name
            else:
                tail = kind_of(item.op).split(".")[-1]
                name = ops.give(next(iter(hints), None) or f"{tail}_{position}")
            self._op_names[item.op] = name
            self._name_values(item, hints, name, declared)

    def _name_values(
        self, item: Scheduled, hints: list[str | None], name: str, declared: set[str]
    ) -> None:
        if "results" in item.stated.given:
            given = item.stated.op.results
            if len(given) != len(item.op.results):
                raise UnreadableError(
                    item.op,
                    f"`stretto.results` names {len(given)} results; it has {len(item.op.results)}",
                )
            self._value_names.update(zip(item.op.results, given, strict=True))
            return
        for result, hint in zip(item.op.results, hints, strict=True):
            self._value_names[result] = self._take(hint or name, declared)

    def _take(self, wanted: str, declared: set[str]) -> str:
        """A name: one the loop declares, if nobody has it yet, or a new one."""
        if wanted in declared:
            declared.discard(wanted)
            return wanted
        return self._values.give(wanted)

    def _name_live_ins(self) -> None:
        """In the order they are defined in; the induction variable first."""
        found: dict[SSAValue, None] = {}
        for item in self._body:
            for value in self._flow.read_by(item.op):
                flow = self._flow.source_of(value)
                if flow is not None and flow[0] not in self._value_names:
                    found[flow[0]] = None
        named = {self._value_names[value] for value in self._value_names}
        declared = {v.name for v in self._stated.loop.values} - named
        for value in sorted(found, key=self._order):
            wanted = value.name_hint or (
                f"arg{value.index}" if isinstance(value, BlockArgument) else "live_in"
            )
            self._value_names[value] = self._take(wanted, declared)
        self._live_ins = tuple(sorted(found, key=self._order))

    def _order(self, value: SSAValue) -> tuple[int, int, int]:
        if self._for is not None and value is self._block.args[0]:
            return (-1, 0, 0)
        if isinstance(value, OpResult):
            return (self._place[value.op], 1, value.index)
        if isinstance(value, BlockArgument):
            above = value.block.parent_op()
            return (self._place[above] if above is not None else -1, 0, value.index)
        return (-1, 1, 0)

    # Operations ---------------------------------------------------------------------------

    def _op(self, item: Scheduled, touched: Touched) -> Op:
        op, stated, given = item.op, item.stated.op, item.stated.given
        storages = self._storages
        reads, writes = storages.reads(touched), storages.writes(touched)
        made = Op(
            name=self._op_names[op],
            kind=kind_of(op),
            operands=stated.operands if "operands" in given else tuple(self._operands(op)),
            results=tuple(self._value_names[result] for result in op.results),
            reads=stated.reads if "reads" in given else reads,
            writes=stated.writes if "writes" in given else writes,
            uses=stated.uses,
            demands=stated.demands,
            latency=stated.latency,
            encoding=stated.encoding,
            facts=self._facts(op, item.stated),
            constraint=stated.constraint,
            agent=stated.agent,
            parent=stated.parent
            if "parent" in given
            else (None if item.parent is None else self._op_names[item.parent]),
            written=None if self._written is None else self._written(op),
        )
        if op in self._inner:
            inner = self._inner[op].op
            made = replace(
                made,
                uses=made.uses if "uses" in given else inner.uses,
                demands=made.demands if "demands" in given else inner.demands,
                latency=made.latency if "latency" in given else inner.latency,
            )
        return made

    def _operands(self, op: Operation) -> Iterator[Operand]:
        for value in self._flow.read_by(op):
            flow = self._flow.source_of(value)
            if flow is not None:
                for made in (flow[0], *enclosed(flow[0])):
                    if made in self._value_names:
                        yield Operand(self._value_names[made], flow[1])

    def _facts(self, op: Operation, stated: StatedOp) -> Facts:
        """Those that are stated; else what follows from its addresses."""
        facts = stated.op.facts
        # Machines cost a copy by where it goes; the storages it touches do not always tell.
        if isinstance(op, CopyOp) and facts.buffer is None:
            return replace(facts, buffer=buffer_of(op.result.type))
        if self._known is None or "facts" in stated.given:
            return facts
        return self._known(op)

    def _grouped(self, item: Scheduled, op: Op) -> Op:
        """Whoever fills a buffer whose allocation has a group is led by it, unless it says by whom.

        So the operations that one pipeline's buffers are assigned to share a stage.
        """
        if op.constraint.leader_gid is not None:
            return op
        roots = self._storages.roots()
        owners = [roots[name].owner for name in op.writes if name in roots]
        stated = [stated_op(owner).op.constraint for owner in owners if _allocates(owner)]
        groups = dict.fromkeys(gid for c in stated for gid in (c.gid, c.leader_gid))
        found = [gid for gid in groups if gid is not None and gid != op.constraint.gid]
        if len(found) > 1:
            told = " and ".join(map(str, found))
            raise UnreadableError(item.op, f"it fills buffers of groups {told}; one leads it")
        if not found:
            return op
        return replace(op, constraint=replace(op.constraint, leader_gid=found[0]))

    def _banked(self, ops: list[Op]) -> tuple[Op, ...]:
        """Operations that read one copy of one buffer get one bank, unless their facts are stated.

        The bank that the buffer's allocation states, which others may have as well. Else banks are
        numbered as they are met; numbers that somebody states are left out.
        """
        readers: dict[Access, list[int]] = {}
        owners = {name: root.owner for name, root in self._storages.roots().items()}
        stated = {n: stated_op(o).op.facts.bank for n, o in owners.items() if _allocates(o)}
        for i, (op, item) in enumerate(zip(ops, self._body, strict=True)):
            if opcode(op.kind).banked and len(op.reads) == 1 and "facts" not in item.stated.given:
                bank = stated.get(op.reads[0].storage)
                if bank is None:
                    readers.setdefault(op.reads[0], []).append(i)
                else:
                    ops[i] = replace(op, facts=replace(op.facts, bank=bank))
        said = {op.facts.bank for op in ops} | set(stated.values())
        free = (number for number in count() if number not in said)
        for alike in readers.values():
            if len(alike) > 1:
                bank = next(free)
                for i in alike:
                    ops[i] = replace(ops[i], facts=replace(ops[i].facts, bank=bank))
        return tuple(ops)

    # Values -------------------------------------------------------------------------------

    def _all_values(self, ops: tuple[Op, ...]) -> tuple[Value, ...]:
        """Live-ins, carried values, then results in program order; what is stated, as stated."""
        block, carried = self._block, list[SSAValue]()
        if self._for is not None:
            carried = [yielded(self._for, i) for i in range(len(self._for.iter_args))]
        results = [result for item in self._body for result in item.op.results]
        ordered = dict.fromkeys(
            (*self._live_ins, *(v for v in carried if v in self._value_names and inside(v, block)))
        )
        ordered |= dict.fromkeys(results)
        derived = {self._value_names[v]: self._value(v) for v in ordered}
        stated = {value.name: value for value in self._stated.loop.values}
        if self._storages.stated_names:
            derived = self._homed(derived, ops)
        return tuple({**stated, **{n: v for n, v in derived.items() if n not in stated}}.values())

    def _value(self, value: SSAValue) -> Value:
        home = self._homes.of(value)
        viewed = None
        row = row_of(value.op) if isinstance(value, OpResult) else UNKNOWN
        if isinstance(value, OpResult) and (row.view or row.awaits) and home is None:
            source = self._flow.source_of(value.op.operands[0])
            viewed = None if source is None else self._value_names[source[0]]
            viewed = None if not inside(value, self._block) else viewed
        return Value(
            self._value_names[value],
            tile_of(value.type),
            self._storages.home_of(value),
            viewed,
        )

    def _homed(self, values: dict[str, Value], ops: tuple[Op, ...]) -> dict[str, Value]:
        """Results that live in a storage the text only states: the first their maker writes."""
        space = {storage.name: storage.space for storage in self._stated.loop.storages}
        for op, item in zip(ops, self._body, strict=True):
            for result in item.op.results:
                name = self._value_names[result]
                wanted = buffer_of(result.type)
                home = next((s for s in op.writes if space.get(s) == wanted), None)
                if "writes" in item.stated.given and home is not None:
                    values[name] = replace(values[name], storage=home)
        return values


def _allocates(owner: Operation | Block) -> TypeGuard[AllocTensorOp]:
    return isinstance(owner, AllocTensorOp)


# Orders that no data carries --------------------------------------------------------------


def fences(ops: Sequence[Op], body: Sequence[Operation]) -> Iterator[Dependence]:
    """Who touches memory stays on its side of a barrier, round the loop as well.

    read ─► barrier ─► write ─► (next iteration) barrier; `body` is where each operation comes from.
    """
    at = [i for i, op in enumerate(body) if isinstance(op, BarrierOp)]
    if not at:
        return
    touching = [_touches(op, source) for op, source in zip(ops, body, strict=True)]
    # Round the loop: the operations before the first barrier follow the last one's.
    around = [*range(at[-1] + 1, len(ops)), *range(at[0])]
    for number, fence in enumerate(at):
        last = number + 1 == len(at)
        following = at[0] if last else at[number + 1]
        for i in around if last else range(fence + 1, following):
            if touching[i]:
                before, after = int(i < fence), int(last and i > fence)
                yield _order(ops[fence], ops[i], before)
                yield _order(ops[i], ops[following], after)


def _touches(op: Op, source: Operation) -> bool:
    """Whether an operation may touch memory: all that is not known to leave it alone."""
    if op.reads or op.writes:
        return True
    return opcode(op.kind).memory and not source.has_trait(Pure, value_if_unregistered=False)


def same_places(ops: Sequence[Op], body: Sequence[Operation]) -> Iterator[Dependence]:
    """What is at an address is loaded and stored in the order of the text, within a step.

    Who may meet in different steps, alias sets say.
    """
    last: dict[SSAValue, list[int]] = {}
    for i, source in enumerate(body):
        if source.name not in _BY_ADDRESS:
            continue
        before = last.setdefault(source.operands[0], [])
        stores = source.name == _BY_ADDRESS[1]
        for j in before:
            if stores or body[j].name == _BY_ADDRESS[1]:
                yield _order(ops[j], ops[i], 0, "address")
        before.append(i)


def same_sets(ops: Sequence[Op], body: Sequence[Operation]) -> Iterator[Dependence]:
    """What may touch the same element in different steps comes in the order of the text, in each
    step and from step to step; agents keep no order between them, and are refused where it counts.
    """
    members: dict[tuple[int, str | None], list[int]] = {}
    for i, source in enumerate(body):
        for number in {alias_set(op) for op in source.walk()} - {None}:
            members.setdefault((cast("int", number), ops[i].agent), []).append(i)
    for of_set in members.values():
        for i, j in combinations(of_set, 2):
            if not (_only_reads(body[i]) and _only_reads(body[j])):
                yield _order(ops[i], ops[j], 0, "address")
                yield replace(_order(ops[j], ops[i], 1, "address"), latency=1)


def _only_reads(source: Operation) -> bool:
    return all(op.name == _BY_ADDRESS[0] for op in source.walk() if alias_set(op) is not None)


_BY_ADDRESS = ("nv_tileas.pointer.load", "nv_tileas.pointer.store")


def _order(src: Op, dst: Op, distance: int, via: str = "barrier") -> Dependence:
    return Dependence(src.name, dst.name, 0, distance, "order", via)


def enclosed(token: SSAValue) -> Iterator[SSAValue]:
    """What a body has made by the time its operation hands out its token.

    Whoever takes the token waits for what is inside: `%done = producer_commit ... after %full`.
    """
    if isinstance(token, OpResult) and token.index == 0 and isinstance(token.op, BODIES):
        for op in token.op.body.block.ops:
            yield from op.results[:1]
            yield from (made for result in op.results[:1] for made in enclosed(result))


def entries(
    parents: Iterable[tuple[Operation, Operation | None]], names: Mapping[Operation, str]
) -> Iterator[Dependence]:
    """Each operation after the one whose body it is in."""
    for op, parent in parents:
        if parent is not None:
            yield Dependence(names[parent], names[op], 0, 0, "order", "body")
