"""Offsets that a loop carries, counted instead: every agent that needs one works it out.

    for i from 0 to n by 64:          for i from 0 to n by 64:
        v = load desc, off                off = begin + i
        off = off + 64                    v = load desc, off

Only what tiles are loaded or stored at goes this way, or what loops inside go by: a number that is
handed from step to step lies in the registers of one agent, and copies are another's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from stretto.kernel.building import Builder
from stretto.kernel.tree import Kernel, Operation, Region, Value
from stretto.kernel.types import Scalar

_PLACES = ("tile.view_load", "tile.view_store", "tile.view_gather", "scf.for")
"""Operations whose numbers other agents need."""


def with_counted_offsets(kernel: Kernel) -> Kernel:
    """The kernel with offsets worked out of the counters of its loops."""
    maker = {value: op for op in kernel.walk() for value in op.results}
    read = {value for op in kernel.walk() for value in op.operands}
    loops = [op for op in kernel.walk() if op.name == "scf.for"]
    found = {loop: list(_offsets(loop, maker)) for loop in loops}
    if not any(found.values()):
        return kernel
    writer = _Writer(found, maker, read, Builder(kernel.location))
    for operation in kernel.body.operations:
        writer.operation(operation)
    return replace(kernel, body=writer.out.finish())


@dataclass(frozen=True)
class _Offset:
    """A carried number to which each step adds the same."""

    number: int
    """Among what the loop carries."""
    add: Operation
    by: Value


def _offsets(loop: Operation, maker: dict[Value, Operation]) -> Iterator[_Offset]:
    (body,) = loop.regions
    inside = {v for op in body.walk() for v in op.results} | set(body.arguments)
    for number, (argument, end) in enumerate(
        zip(body.arguments[1:], body.terminator.operands, strict=True)
    ):
        add = maker.get(end)
        if not isinstance(argument.type, Scalar) or add is None or add.name != "arith.addi":
            continue
        others = [value for value in add.operands if value is not argument]
        if len(others) == 1 and others[0] not in inside and _is_a_place(argument, body):
            yield _Offset(number, add, others[0])


def _is_a_place(argument: Value, body: Region) -> bool:
    """Whether a number tells where a tile is, or how far a loop inside goes."""
    reached = {argument}
    for operation in body.walk():
        if reached.isdisjoint(operation.operands):
            continue
        if operation.name in _PLACES:
            return True
        reached |= {value for value in operation.results if isinstance(value.type, Scalar)}
    return False


@dataclass
class _Writer:
    offsets: dict[Operation, list[_Offset]]
    maker: dict[Value, Operation]
    read: set[Value]
    out: Builder
    _new: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def operation(self, operation: Operation) -> None:
        """An operation, with what it takes as it is now."""
        self.out.location = operation.location
        operands = self._now(operation.operands)
        if self.offsets.get(operation):
            self._loop(operation, operands, self.offsets[operation])
            return
        regions = tuple(self._region(region) for region in operation.regions)
        self.out.append(replace(operation, operands=tuple(operands), regions=regions))

    def _now(self, values: Sequence[Value]) -> list[Value]:
        return [self._new.get(value, value) for value in values]

    def _region(self, region: Region) -> Region:
        with self.out.region(region.arguments) as opened:
            for operation in region.operations:
                self.operation(operation)
        return opened.region

    def _loop(self, loop: Operation, operands: list[Value], offsets: Sequence[_Offset]) -> None:
        lower, upper, step, *begun = operands
        (body,) = loop.regions
        gone = {offset.number for offset in offsets}
        index, *arguments = body.arguments
        kept = [a for n, a in enumerate(arguments) if n not in gone]
        adds = {offset.add for offset in offsets}
        ends = [e for n, e in enumerate(body.terminator.operands) if n not in gone]
        needed = {v for op in body.walk() for v in op.operands if op is not body.terminator}
        needed.update(ends)
        with self.out.region((index, *kept)) as opened:
            for offset in offsets:
                start = begun[offset.number]
                argument = arguments[offset.number]
                by = self._times(offset.by, index, lower, step)
                self._new[argument] = self.out.op(
                    "arith.addi", (start, by), argument.type, argument.name
                )
            for operation in body.operations[:-1]:
                if operation not in adds or operation.result in needed:
                    self.operation(operation)
            self.out.location = body.terminator.location
            self.out.append(replace(body.terminator, operands=tuple(self._now(ends))))
        self.out.location = loop.location
        results = tuple(r for n, r in enumerate(loop.results) if n not in gone)
        first = [value for n, value in enumerate(begun) if n not in gone]
        self.out.append(
            replace(
                loop,
                operands=(lower, upper, step, *first),
                results=results,
                regions=(opened.region,),
            )
        )
        for offset in offsets:
            result = loop.results[offset.number]
            if result in self.read:
                self._new[result] = self._behind(offset, result, begun, (lower, upper, step))

    def _times(self, by: Value, index: Value, lower: Value, step: Value) -> Value:
        """What was added until a step: so often as steps went before."""
        by = self._new.get(by, by)
        type = by.type
        past = index
        if self._constant(lower) != 0:
            past = self.out.op("arith.subi", (index, lower), index.type)
        one, many = self._constant(step), self._constant(by)
        if one is not None and many is not None and many % one == 0:
            past = self._as(past, type)
            if many == one:
                return past
            assert isinstance(type, Scalar)
            return self.out.op("arith.muli", (past, self.out.constant(many // one, type)), type)
        if one != 1:
            past = self.out.op("arith.divsi", (past, step), index.type)
        return self.out.op("arith.muli", (self._as(past, type), by), type)

    def _behind(
        self, offset: _Offset, result: Value, begun: Sequence[Value], bounds: Sequence[Value]
    ) -> Value:
        """What an offset is after its loop."""
        lower, upper, step = bounds
        assert isinstance(lower.type, Scalar)
        way = self.out.op("arith.subi", (upper, lower), lower.type)
        trips = self.out.op("arith.ceildivsi", (way, step), lower.type)
        zero = self.out.constant(0, lower.type)
        trips = self.out.op("arith.maxsi", (trips, zero), lower.type)
        by = self._new.get(offset.by, offset.by)
        more = self.out.op("arith.muli", (self._as(trips, by.type), by), by.type)
        start = begun[offset.number]
        return self.out.op("arith.addi", (start, more), result.type, result.name)

    def _as(self, value: Value, type: object) -> Value:
        """A count in another width."""
        assert isinstance(type, Scalar)
        assert isinstance(value.type, Scalar)
        if value.type == type:
            return value
        kind = "arith.extsi" if value.type.bits < type.bits else "arith.trunci"
        return self.out.op(kind, (value,), type)

    def _constant(self, value: Value) -> int | None:
        made = self.maker.get(value)
        number = made.attributes.get("value") if made and made.name == "arith.constant" else None
        return number if isinstance(number, int) and not isinstance(number, bool) else None
