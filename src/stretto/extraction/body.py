"""From the body of one scf.for, or of a function without loops, to a `Loop`.

    %k = tiled_tma_load %K[%i] into %ring     Op("k", reads=(), writes=("ring",), ...)
    %s = tcgen05_mma %q, %k into %acc         Op("s", operands=(q, k), reads=("q", "ring"), ...)
    scf.yield %m_new                          who reads %m gets Operand("m_new", distance=1)

Constants, descriptors and bare buffers are no values of the loop: an instruction holds the first,
the machine's units the second, and storages say all there is to say of the third.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count
from typing import Generic

from stretto.extraction.flow import BufferHomes, Flow
from stretto.extraction.source import (
    ALLOCATION,
    BARRIER,
    BODIES,
    BODY_YIELD,
    COMBINING,
    COPY,
    FOR,
    NESTED,
    BlockT,
    OpT,
    Source,
    StatedLoop,
    StatedOp,
    UnreadableError,
    ValueT,
)
from stretto.extraction.storages import Names, Storages, Touched, standing
from stretto.loop import Access, Dependence, Facts, Loop, Op, Operand, Value
from stretto.ops.opcodes import UNKNOWN, opcode


@dataclass(frozen=True, slots=True)
class Inner:
    """What an inner loop costs as an operation of the outer one."""

    op: Op
    slots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scheduled(Generic[OpT]):
    """An operation of the body that becomes one of the loop."""

    op: OpT
    parent: OpT | None
    stated: StatedOp


@dataclass(frozen=True, slots=True)
class Body(Generic[OpT, ValueT]):
    """A loop as read, and which operation of the text each of its own is."""

    loop: Loop
    ops: dict[str, OpT]
    values: dict[ValueT, str]
    """Values of the text that the loop has, by what they are called there."""
    buffers: dict[str, ValueT]
    """Buffers of the text that are its storages."""


_WITH_REGIONS = (*NESTED, *COMBINING, *BODIES)


def scheduled_ops(
    source: Source[OpT, BlockT, ValueT], block: BlockT, parent: OpT | None = None
) -> Iterator[Scheduled[OpT]]:
    """The operations of a body that a schedule places, bodies of pipeline operations included."""
    for op in source.operations(block):
        name, results = source.name(op), source.results(op)
        if name == BODY_YIELD or source.ends(op):
            continue
        if name == ALLOCATION and not source.operands(op):
            continue
        if results and source.immediate(results[0]):
            continue
        if source.has_regions(op) and name not in _WITH_REGIONS:
            raise UnreadableError(op, f"`{name}` is a region inside the body")
        yield Scheduled(op, parent, source.stated(op))
        if name in BODIES:
            yield from scheduled_ops(source, source.body(op), op)


class BodyReader(Generic[OpT, BlockT, ValueT]):
    """Reads one loop, or a block that is gone through once."""

    def __init__(
        self,
        source: Source[OpT, BlockT, ValueT],
        owner: OpT,
        stated: StatedLoop,
        homes: BufferHomes[OpT, BlockT, ValueT],
        inner: Mapping[OpT, Inner],
        block: BlockT | None = None,
    ) -> None:
        self._source = source
        self._block = source.body(owner) if block is None else block
        self._for = owner if block is None and source.name(owner) == FOR else None
        self._stated = stated
        self._homes = homes
        self._inner = inner
        self._body = tuple(scheduled_ops(source, self._block))
        self._op_names: dict[OpT, str] = {}
        self._value_names: dict[ValueT, str] = {}
        self._values = Names()
        self._flow = Flow(source, owner, block)
        self._storages = Storages(source, owner, self._block, homes, stated, self._flow.sums)
        self._live_ins: tuple[ValueT, ...] = ()

    def read(self, name: str) -> Body[OpT, ValueT]:
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
        yield from fences(self._source, ops, body)
        yield from same_places(self._source, ops, body)
        yield from same_sets(self._source, ops, body)
        for item in self._body:  # each after the one whose body it is in
            if item.parent is not None:
                names = self._op_names[item.parent], self._op_names[item.op]
                yield Dependence(*names, 0, 0, "order", "body")

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
            hints = [self._source.hint(result) for result in self._source.results(item.op)]
            if "name" in item.stated.given:
                name = item.stated.op.name
            else:
                tail = self._source.kind(item.op).split(".")[-1]
                name = ops.give(next(iter(hints), None) or f"{tail}_{position}")
            self._op_names[item.op] = name
            self._name_values(item, hints, name, declared)

    def _name_values(
        self, item: Scheduled[OpT], hints: list[str | None], name: str, declared: set[str]
    ) -> None:
        results = self._source.results(item.op)
        if "results" in item.stated.given:
            given = item.stated.op.results
            if len(given) != len(results):
                told = f"`stretto.results` names {len(given)} results; it has {len(results)}"
                raise UnreadableError(item.op, told)
            self._value_names.update(zip(results, given, strict=True))
            return
        for result, hint in zip(results, hints, strict=True):
            self._value_names[result] = self._take(hint or name, declared)

    def _take(self, wanted: str, declared: set[str]) -> str:
        """A name: one the loop declares, if nobody has it yet, or a new one."""
        if wanted in declared:
            declared.discard(wanted)
            return wanted
        return self._values.give(wanted)

    def _name_live_ins(self) -> None:
        """In the order they are defined in; the induction variable first."""
        found: dict[ValueT, None] = {}
        for item in self._body:
            for value in self._flow.read_by(item.op):
                flow = self._flow.source_of(value)
                if flow is not None and flow[0] not in self._value_names:
                    found[flow[0]] = None
        named = {self._value_names[value] for value in self._value_names}
        declared = {v.name for v in self._stated.loop.values} - named
        for value in sorted(found, key=self._order):
            text = self._source
            argument = text.entered(value) is not None
            wanted = text.hint(value) or (f"arg{text.index(value)}" if argument else "live_in")
            self._value_names[value] = self._take(wanted, declared)
        self._live_ins = tuple(sorted(found, key=self._order))

    def _order(self, value: ValueT) -> tuple[int, int, int]:
        text = self._source
        if self._for is not None and value is text.arguments(self._block)[0]:
            return (-2, 0, 0)
        place, index = standing(text, value)
        return place, int(text.entered(value) is None), index

    # Operations ---------------------------------------------------------------------------

    def _op(self, item: Scheduled[OpT], touched: Touched[ValueT]) -> Op:
        op, stated, given = item.op, item.stated.op, item.stated.given
        storages, text = self._storages, self._source
        reads, writes = storages.reads(touched), storages.writes(touched)
        made = Op(
            name=self._op_names[op],
            kind=text.kind(op),
            operands=stated.operands if "operands" in given else tuple(self._operands(op)),
            results=tuple(self._value_names[result] for result in text.results(op)),
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
            written=text.written(op),
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

    def _operands(self, op: OpT) -> Iterator[Operand]:
        for value in self._flow.read_by(op):
            flow = self._flow.source_of(value)
            if flow is not None:
                for made in (flow[0], *self._enclosed(flow[0])):
                    if made in self._value_names:
                        yield Operand(self._value_names[made], flow[1])

    def _enclosed(self, token: ValueT) -> Iterator[ValueT]:
        """What a body has made by the time its operation hands out its token.

        Whoever takes the token waits for what is inside: `%done = producer_commit after %full`.
        """
        text = self._source
        op = text.maker(token)
        if op is not None and text.index(token) == 0 and text.name(op) in BODIES:
            for inside in text.operations(text.body(op)):
                yield from text.results(inside)[:1]
                for result in text.results(inside)[:1]:
                    yield from self._enclosed(result)

    def _facts(self, op: OpT, stated: StatedOp) -> Facts:
        """Those that are stated; else what follows from its addresses."""
        facts = stated.op.facts
        # Machines cost a copy by where it goes; the storages it touches do not always tell.
        text = self._source
        if text.name(op) == COPY and facts.buffer is None:
            return replace(facts, buffer=text.buffer(text.results(op)[0]))
        return facts if "facts" in stated.given else text.facts(op)

    def _grouped(self, item: Scheduled[OpT], op: Op) -> Op:
        """Whoever fills a buffer whose allocation has a group is led by it, unless it says by whom.

        So the operations that one pipeline's buffers are assigned to share a stage.
        """
        if op.constraint.leader_gid is not None:
            return op
        roots = self._storages.roots()
        makers = [self._allocation(roots[name]) for name in op.writes if name in roots]
        stated = [self._source.stated(one).op.constraint for one in makers if one is not None]
        groups = dict.fromkeys(gid for c in stated for gid in (c.gid, c.leader_gid))
        found = [gid for gid in groups if gid is not None and gid != op.constraint.gid]
        if len(found) > 1:
            told = " and ".join(map(str, found))
            raise UnreadableError(item.op, f"it fills buffers of groups {told}; one leads it")
        if not found:
            return op
        return replace(op, constraint=replace(op.constraint, leader_gid=found[0]))

    def _allocation(self, root: ValueT) -> OpT | None:
        """The operation that makes a buffer; None: it is no allocation."""
        op = self._source.maker(root)
        return op if op is not None and self._source.name(op) == ALLOCATION else None

    def _banked(self, ops: list[Op]) -> tuple[Op, ...]:
        """Operations that read one copy of one buffer get one bank, unless their facts are stated.

        The bank that the buffer's allocation states, which others may have as well. Else banks are
        numbered as they are met; numbers that somebody states are left out.
        """
        readers: dict[Access, list[int]] = {}
        makers = {name: self._allocation(at) for name, at in self._storages.roots().items()}
        stated = {
            name: self._source.stated(maker).op.facts.bank
            for name, maker in makers.items()
            if maker is not None
        }
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
        text, block, carried = self._source, self._block, list[ValueT]()
        if self._for is not None:
            loop, handed = self._for, len(text.arguments(block)) - 1
            carried = [text.yielded(loop, i) for i in range(handed)]
        results = [result for item in self._body for result in text.results(item.op)]
        own = (v for v in carried if v in self._value_names and text.defined_in(v, block))
        ordered = dict.fromkeys((*self._live_ins, *own))
        ordered |= dict.fromkeys(results)
        derived = {self._value_names[v]: self._value(v) for v in ordered}
        stated = {value.name: value for value in self._stated.loop.values}
        if self._storages.stated_names:
            derived = self._homed(derived, ops)
        return tuple({**stated, **{n: v for n, v in derived.items() if n not in stated}}.values())

    def _value(self, value: ValueT) -> Value:
        text = self._source
        home, op = self._homes.of(value), text.maker(value)
        viewed = None
        row = UNKNOWN if op is None else text.row(op)
        if op is not None and (row.view or row.awaits) and home is None:
            source = self._flow.source_of(text.operands(op)[0])
            viewed = None if source is None else self._value_names[source[0]]
            viewed = viewed if text.defined_in(value, self._block) else None
        return Value(
            self._value_names[value],
            text.tile(value),
            self._storages.home_of(value),
            viewed,
        )

    def _homed(self, values: dict[str, Value], ops: tuple[Op, ...]) -> dict[str, Value]:
        """Results that live in a storage the text only states: the first their maker writes."""
        space = {storage.name: storage.space for storage in self._stated.loop.storages}
        for op, item in zip(ops, self._body, strict=True):
            for result in self._source.results(item.op):
                name = self._value_names[result]
                wanted = self._source.buffer(result)
                home = next((s for s in op.writes if space.get(s) == wanted), None)
                if "writes" in item.stated.given and home is not None:
                    values[name] = replace(values[name], storage=home)
        return values


# Orders that no data carries --------------------------------------------------------------


def fences(
    source: Source[OpT, BlockT, ValueT], ops: Sequence[Op], body: Sequence[OpT]
) -> Iterator[Dependence]:
    """Who touches memory stays on its side of a barrier, round the loop as well.

    read ─► barrier ─► write ─► (next iteration) barrier; `body` is where each operation comes from.
    """
    at = [i for i, op in enumerate(body) if source.name(op) == BARRIER]
    if not at:
        return
    touching = [_touches(source, op, one) for op, one in zip(ops, body, strict=True)]
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


def _touches(source: Source[OpT, BlockT, ValueT], op: Op, one: OpT) -> bool:
    """Whether an operation may touch memory: all that is not known to leave it alone."""
    if op.reads or op.writes:
        return True
    return opcode(op.kind).memory and not source.pure(one)


def same_places(
    source: Source[OpT, BlockT, ValueT], ops: Sequence[Op], body: Sequence[OpT]
) -> Iterator[Dependence]:
    """What is at an address is loaded and stored in the order of the text, within a step.

    Who may meet in different steps, alias sets say.
    """
    last: dict[ValueT, list[int]] = {}
    for i, one in enumerate(body):
        if source.name(one) not in _BY_ADDRESS:
            continue
        before = last.setdefault(source.operands(one)[0], [])
        stores = source.name(one) == _BY_ADDRESS[1]
        for j in before:
            if stores or source.name(body[j]) == _BY_ADDRESS[1]:
                yield _order(ops[j], ops[i], 0, "address")
        before.append(i)


def same_sets(
    source: Source[OpT, BlockT, ValueT], ops: Sequence[Op], body: Sequence[OpT]
) -> Iterator[Dependence]:
    """What may touch the same element in different steps comes in the order of the text, in each
    step and from step to step; agents keep no order between them, and are refused where it counts.
    """
    members: dict[tuple[int, str | None], list[int]] = {}
    reads: list[bool] = []
    for i, one in enumerate(body):
        numbers = {inner: source.alias_set(inner) for inner in source.walk(one)}
        touching = [inner for inner, number in numbers.items() if number is not None]
        reads.append(all(source.name(inner) == _BY_ADDRESS[0] for inner in touching))
        for number in {*numbers.values()}:
            if number is not None:
                members.setdefault((number, ops[i].agent), []).append(i)
    for of_set in members.values():
        for i, j in combinations(of_set, 2):
            if not (reads[i] and reads[j]):
                yield _order(ops[i], ops[j], 0, "address")
                yield replace(_order(ops[j], ops[i], 1, "address"), latency=1)


_BY_ADDRESS = ("nv_tileas.pointer.load", "nv_tileas.pointer.store")


def _order(src: Op, dst: Op, distance: int, via: str = "barrier") -> Dependence:
    return Dependence(src.name, dst.name, 0, distance, "order", via)
