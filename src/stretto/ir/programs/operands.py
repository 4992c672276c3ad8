"""The operands of an operation in its new place.

    beside it      the result itself           another stage   what a read of its pipe gave
    a storage      a slot of its ring          before the loop what the loop began with

Views that an operation looks through itself are written before it, as often as needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from stretto.ir.attributes import CONSTRAINT, SCHEDULE, STATED
from stretto.ir.dialect.barriers import GenericOp
from stretto.ir.dialect.kinds import row_of
from stretto.ir.dialect.programs import SlotOp
from stretto.ir.dialect.types import PipelineType, buffer_of
from stretto.ir.programs.declaring import Declared
from stretto.ir.programs.original import Original, UnwritableError
from stretto.ir.programs.scope import Numbers, Scope
from stretto.ir.reading.values import accumulator_of, destination_of, immediate, yielded
from stretto.materialize.instructions import (
    Alias,
    Direct,
    Issue,
    LiveIn,
    Path,
    Slot,
    Source,
    Stored,
    Through,
)
from stretto.materialize.types import Program
from stretto.vocabulary.spaces import MEMORIES

OURS = (STATED, CONSTRAINT, SCHEDULE)
"""Attributes that belong to a loop and its schedule, not to an operation of a program."""


@dataclass
class Bundle:
    """What stands around one operation."""

    issue: Issue
    slots: dict[tuple[str, str | None], SSAValue] = field(
        default_factory=dict[tuple[str, str | None], SSAValue]
    )
    """Slots at hand, by ring and iterator."""
    reads: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """What came out of pipes, by iterator."""


@dataclass
class Operands:
    """Finds operands; `at` of a bundle's issue says whose stage is meant."""

    program: Program
    original: Original
    declared: Declared
    numbers: Numbers

    def of(self, scope: Scope, bundle: Bundle) -> list[SSAValue]:
        """All operands of an operation, as its text has them."""
        issue = bundle.issue
        op = self.original.ops[issue.op]
        places = self.original.operand_at.get(issue.op)
        if places is None:
            return [
                self._operand(scope, bundle, n, source) for n, source in enumerate(issue.operands)
            ]
        number = {place: n for n, place in enumerate(places)}
        return [
            self._operand(scope, bundle, number[at], issue.operands[number[at]])
            if at in number
            else self._other(scope, bundle, value, op)
            for at, value in enumerate(op.operands)
        ]

    def touch(self, scope: Scope, bundle: Bundle) -> None:
        """Show every slot that the operation touches, also where no operand is it."""
        for slot in (*bundle.issue.reads, *bundle.issue.writes):
            if slot.iterator is not None and (slot.storage, slot.iterator) not in bundle.slots:
                self._slot(scope, bundle, slot)

    def _operand(self, scope: Scope, bundle: Bundle, number: int, source: Source) -> SSAValue:
        op, stage = bundle.issue.op, bundle.issue.at.stage
        value = self.original.operand(op, number)
        match source:
            case Stored(read=read):
                if value is not None and buffer_of(value.type) in MEMORIES:
                    return self._buffer(scope, bundle, value)
                return self._slot(scope, bundle, bundle.issue.reads[read])
            case Alias(value=name):
                if value is not None:
                    return self._buffer(scope, bundle, value)
                home = next(v.storage for v in self.program.loop.values if v.name == name)
                return self._slot(scope, bundle, Slot(home or "", None))
            case LiveIn(path=path):
                return self._along(
                    scope, stage, op, number, path, lambda: self._outside(scope, stage, path), False
                )
            case Direct(path=path):
                return self._along(
                    scope, stage, op, number, path, lambda: scope.made[path.origin], False
                )
            case Through(path=path, iterator=iterator):
                return self._along(
                    scope, stage, op, number, path, lambda: bundle.reads[iterator], True
                )

    # Register values --------------------------------------------------------------------------

    def _outside(self, scope: Scope, stage: int, path: Path) -> SSAValue:
        value = self.original.live_ins.get(path.origin)
        if value is self.original.induction:
            return self.numbers.induction(scope, stage, path.distance)
        if value is None:
            return self.numbers.poison(self._type(path.origin))
        return self._plain(value, self.original.for_op)

    def _type(self, name: str) -> Attribute:
        value = self.original.results.get(name) or self.original.live_ins.get(name)
        if value is not None:
            return value.type
        return self.numbers.type

    def _along(
        self,
        scope: Scope,
        stage: int,
        op: str,
        number: int,
        path: Path,
        origin: Callable[[], SSAValue],
        lagging: bool,
    ) -> SSAValue:
        """The end of a path, or what was there before the loop, seen through its views."""
        readers = [(op, number), *((view, 0) for view in path.views)]
        last = len(path.values) - 1

        def inner(n: int, gone: int) -> SSAValue:
            if n == last:
                return origin()
            return self.view(scope, path.views[n], at(n + 1, gone + path.distances[n]))

        def at(n: int, gone: int) -> SSAValue:
            distance = path.distances[n]
            least = scope.least(stage) - gone
            if least >= distance or distance == 0 or (lagging and n == last):
                return inner(n, gone)
            before = self._before(*readers[n], path.values[n], distance)
            if scope.base is None:
                return before[least]
            value = inner(n, gone)
            for first in range(distance - 1, max(least, 0) - 1, -1):
                here = self.numbers.is_iteration(scope, stage, gone, first)
                value = scope.add(arith.SelectOp(here, before[first], value))
            return value

        return at(0, 0)

    def _before(self, reader: str, number: int, value: str, distance: int) -> list[SSAValue]:
        known = self.original.before(self.original.operand(reader, number))
        if len(known) >= distance:
            return known
        return [self.numbers.poison(self._type(value)) for _ in range(distance)]

    def view(self, scope: Scope, name: str, value: SSAValue) -> SSAValue:
        """A view of a value, made on the spot."""
        op = self.original.ops[name]
        made = bare(op)
        places = self.original.operand_at.get(name)
        if places is None:
            made = with_operands(made, [value])
        else:
            operands = list(op.operands)
            operands[places[0]] = value
            rest = [n for n in range(len(operands)) if n != places[0]]
            for n in rest:
                operands[n] = self._plain(operands[n], op)
            made.operands = operands
        return scope.add(made)

    # Tiles in memory --------------------------------------------------------------------------

    def _buffer(
        self, scope: Scope, bundle: Bundle, value: SSAValue, writing: bool = False
    ) -> SSAValue:
        """The buffer that a tile is, in its new place."""
        original = self.original
        if isinstance(value, OpResult) and original.inside(value):
            op = value.op
            if row_of(op).view:
                made = bare(op)
                rest = [self._plain(operand, op) for operand in op.operands[1:]]
                made.operands = [self._buffer(scope, bundle, op.operands[0], writing), *rest]
                return scope.add(made)
            filled = destination_of(op) or accumulator_of(op) if value.index == 0 else None
            if filled is not None and filled is not value:
                return self._buffer(scope, bundle, filled, writing)
        home = original.homes.of(value)
        storage = original.storage_of(value)
        if home is not None and storage is not None and original.inside(home.root):
            slot = self._access(bundle.issue, storage, home.distance, writing)
            return self._slot(scope, bundle, slot)
        if isinstance(value, BlockArgument) and original.inside(value):
            value = original.before(value)[0]
        # A pipe hands the one buffer on: what it gave is its name now.
        known = bundle.slots.get((storage or "", None))
        return known if known is not None and known.type == value.type else value

    @staticmethod
    def _access(issue: Issue, storage: str, distance: int, writing: bool) -> Slot:
        reads = [s for s in issue.reads if s.storage == storage and s.distance == distance]
        writes = [s for s in issue.writes if s.storage == storage]
        found = [*writes, *reads] if writing else [*reads, *writes]
        return found[0] if found else Slot(storage, None)

    def _slot(self, scope: Scope, bundle: Bundle, slot: Slot) -> SSAValue:
        key = (slot.storage, slot.iterator)
        if key not in bundle.slots:
            ring = self.declared.rings[slot.storage]
            assert isinstance(ring.type, PipelineType)
            operands = [ring]
            operands += [scope.iterators[slot.iterator]] if slot.iterator is not None else []
            made = SlotOp.create(operands=operands, result_types=[ring.type.slot])
            bundle.slots[key] = scope.add(made)
        return bundle.slots[key]

    # All else ---------------------------------------------------------------------------------

    def _other(self, scope: Scope, bundle: Bundle, value: SSAValue, op: Operation) -> SSAValue:
        """An operand that is no data of the loop."""
        if bundle.issue.op in self.original.sums and value is accumulator_of(op):
            return self._slot(scope, bundle, Slot(self.original.sums[bundle.issue.op][0], None))
        if buffer_of(value.type) in MEMORIES:
            return self._buffer(scope, bundle, value, writing=value is destination_of(op))
        if value is self.original.induction:
            return self.numbers.induction(scope, bundle.issue.at.stage)
        return self._plain(value, op)

    def _plain(self, value: SSAValue, op: Operation) -> SSAValue:
        """A value from outside, or a constant."""
        if not self.original.inside(value):
            return value
        if immediate(value):
            return self.numbers.immediate(value)
        loop = self.original.for_op
        position = value.index - 1 if isinstance(value, BlockArgument) else -1
        if position >= 0 and value.owner is loop.body.block and yielded(loop, position) is value:
            return loop.iter_args[position]  # it never changes
        raise UnwritableError(op, "an operand of it has no place in a program")


def bare(op: Operation) -> Operation:
    """A copy of an operation without what the loop and its schedule say of it."""
    made = op.clone()
    for name in list(made.attributes):
        if name.startswith(OURS):
            del made.attributes[name]
    for old, new in zip(op.results, made.results, strict=True):
        new.name_hint = old.name_hint
    return made


def with_operands(op: Operation, operands: list[SSAValue]) -> Operation:
    """An operation of any kind, of these operands."""
    made = GenericOp.create(
        operands=operands,
        result_types=op.result_types,
        properties=op.properties,
        attributes=op.attributes,
    )
    for old, new in zip(op.results, made.results, strict=True):
        new.name_hint = old.name_hint
    return made
