"""The operands of an operation in its new place, and what they are when they are read back.

    Direct    beside it        the result itself       Through   another stage   what a read gave
    Stored    in a storage     a slot of its ring      LiveIn    from outside    the value itself

Of the first iterations the loop says what a carried value is. Views that an operation looks through
itself are written before it, as often as needed; who reads looks through them, and through guards
and bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from xdsl.dialects.arith import SelectOp
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.dialects.scf import IfOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from stretto.extraction.source import NESTED
from stretto.ir.dialect import row_of as opcode_of
from stretto.ir.dialect.compute import GenericOp
from stretto.ir.dialect.pipeline import ConsumerReadOp, ProducerWriteOp
from stretto.ir.dialect.pipelined import SlotOp
from stretto.ir.dialect.types import buffer_of
from stretto.ir.loops.module import ANY
from stretto.ir.programs.declarations import Reading, Writing, slot_of
from stretto.ir.programs.original import (
    Spot,
    UnwritableError,
    bare,
    with_operands,
)
from stretto.loop import Op
from stretto.materialization.origins import Origins, Seen
from stretto.materialization.program import (
    Alias,
    Direct,
    Issue,
    LiveIn,
    Path,
    Position,
    RingAccess,
    Stored,
    Supply,
    Through,
)
from stretto.ops.spaces import MEMORIES

OPERANDS = "nv_tile.program.operands"
"""Which SSA operand each operand of the loop's operation is, where they are not the first ones."""


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


class Operands:
    """Finds operands to write; `at` of a bundle's issue says whose stage is meant."""

    def __init__(self, to: Writing) -> None:
        self._to = to
        self._original = to.original
        self._numbers = to.numbers

    def positions(self, issue: Issue, kept: Sequence[int] | None) -> dict[str, Attribute]:
        """Where the operands stand, unless they are the first.

        `kept`: where in a region the operands of the text are, if it takes more than those now.
        """
        usual = list(range(len(issue.operands)))
        places = list(self._original.operand_at.get(issue.op, usual))
        places = [at if kept is None else kept[at] for at in places]
        return {} if places == usual else {OPERANDS: DenseArrayBase.from_list(i64, places)}

    def of(self, scope: Spot, bundle: Bundle) -> list[SSAValue]:
        """All operands of an operation, as its text has them."""
        issue = bundle.issue
        op = self._original.ops[issue.op]
        places = self._original.operand_at.get(issue.op)
        if places is None:
            every = enumerate(issue.operands)
            return [self._operand(scope, bundle, n, source) for n, source in every]
        number = {place: n for n, place in enumerate(places)}
        if ANY.name(op) in NESTED:
            return self._taken(scope, bundle, op, number)
        return [
            self._operand(scope, bundle, number[at], issue.operands[number[at]])
            if at in number
            else self._other(scope, bundle, value, op)
            for at, value in enumerate(op.operands)
        ]

    def _taken(
        self, scope: Spot, bundle: Bundle, op: Operation, number: dict[int, int]
    ) -> list[SSAValue]:
        """What a region takes from outside of it, each value looked for once."""
        known: dict[tuple[SSAValue, bool], SSAValue] = {}
        for at, (user, n) in enumerate(ANY.uses_of_others(op)):
            value = user.operands[n]
            if at in number:
                supply = bundle.issue.operands[number[at]]
                found = self._operand(scope, bundle, number[at], supply)
                known[value, False] = known[value, True] = found
        every: list[SSAValue] = []
        for user, n in ANY.uses_of_others(op):
            value = user.operands[n]
            key = value, value is ANY.destination(user)
            if key not in known:
                known[key] = self._other(scope, bundle, value, user)
            every.append(known[key])
        return every

    def touch(self, scope: Spot, bundle: Bundle) -> None:
        """Show every slot that the operation touches, also where no operand is it."""
        for slot in (*bundle.issue.reads, *bundle.issue.writes):
            if slot.iterator is not None and (slot.storage, slot.iterator) not in bundle.slots:
                self._slot(scope, bundle, slot)

    def _operand(self, scope: Spot, bundle: Bundle, number: int, source: Supply) -> SSAValue:
        value = self._original.operand(bundle.issue.op, number)
        match source:
            case Stored(read=read):
                if value is not None and buffer_of(value.type) in MEMORIES:
                    return self._buffer(scope, bundle, value)
                return self._slot(scope, bundle, bundle.issue.reads[read])
            case Alias(value=name):
                if value is not None:
                    return self._buffer(scope, bundle, value)
                home = next(v.storage for v in self._to.program.loop.values if v.name == name)
                return self._slot(scope, bundle, RingAccess(home or "", None))
            case LiveIn(path=path):
                outside = partial(self._outside, scope, bundle, path)
                return self._along(scope, bundle, number, path, outside)
            case Direct(path=path):
                return self._along(scope, bundle, number, path, lambda: scope.made[path.origin])
            case Through(path=path, iterator=iterator):
                given = partial(bundle.reads.__getitem__, iterator)
                return self._along(scope, bundle, number, path, given, lagging=True)

    # Register values --------------------------------------------------------------------------

    def _outside(self, scope: Spot, bundle: Bundle, path: Path) -> SSAValue:
        value = self._original.live_ins.get(path.origin)
        if value is self._original.induction:
            return self._numbers.induction(scope, bundle.issue.at.stage, path.distance)
        if value is None:
            return self._numbers.poison(self._type(path.origin))
        return self._plain(value, self._original.for_op)

    def _type(self, name: str) -> Attribute:
        value = self._original.results.get(name) or self._original.live_ins.get(name)
        return self._numbers.type if value is None else value.type

    def _along(
        self,
        scope: Spot,
        bundle: Bundle,
        number: int,
        path: Path,
        origin: Callable[[], SSAValue],
        lagging: bool = False,
    ) -> SSAValue:
        """The end of a path, or what was there before the loop, seen through its views."""
        stage = bundle.issue.at.stage
        readers = [(bundle.issue.op, number), *((view, 0) for view in path.views)]
        last = len(path.values) - 1

        def inner(n: int, gone: int) -> SSAValue:
            if n == last:
                return origin()
            return self._view(scope, path.views[n], at(n + 1, gone + path.distances[n]))

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
                here = self._numbers.is_iteration(scope, stage, gone, first)
                value = scope.add(SelectOp(here, before[first], value))
            return value

        return at(0, 0)

    def _before(self, reader: str, number: int, value: str, distance: int) -> list[SSAValue]:
        known = self._original.before(self._original.operand(reader, number))
        if len(known) >= distance:
            return known
        return [self._numbers.poison(self._type(value)) for _ in range(distance)]

    def _view(self, scope: Spot, name: str, value: SSAValue) -> SSAValue:
        """A view of a value, made on the spot."""
        op = self._original.ops[name]
        made = bare(op)
        places = self._original.operand_at.get(name)
        if places is None:
            made = with_operands(made, [value])
        else:
            made.operands = [
                value if n == places[0] else self._plain(operand, op)
                for n, operand in enumerate(op.operands)
            ]
        return scope.add(made)

    # Tiles in memory --------------------------------------------------------------------------

    def _buffer(
        self, scope: Spot, bundle: Bundle, value: SSAValue, writing: bool = False
    ) -> SSAValue:
        """The buffer that a tile is, in its new place."""
        original = self._original
        if isinstance(value, OpResult) and original.inside(value):
            op = value.op
            if opcode_of(op).view:
                made = bare(op)
                rest = [self._plain(operand, op) for operand in op.operands[1:]]
                made.operands = [self._buffer(scope, bundle, op.operands[0], writing), *rest]
                return scope.add(made)
            if isinstance(op, IfOp):  # both sides hand out the same
                end = op.true_region.block.last_op
                assert end is not None  # `BufferHomes` has looked
                return self._buffer(scope, bundle, end.operands[value.index], writing)
            filled = ANY.destination(op) or ANY.accumulator(op) if value.index == 0 else None
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
    def _access(issue: Issue, storage: str, distance: int, writing: bool) -> RingAccess:
        reads = [s for s in issue.reads if s.storage == storage and s.distance == distance]
        writes = [s for s in issue.writes if s.storage == storage]
        found = [*writes, *reads] if writing else [*reads, *writes]
        return found[0] if found else RingAccess(storage, None)

    def _slot(self, scope: Spot, bundle: Bundle, slot: RingAccess) -> SSAValue:
        key = (slot.storage, slot.iterator)
        if key not in bundle.slots:
            ring = self._to.rings[slot.storage]
            at = [] if slot.iterator is None else [scope.iterators[slot.iterator]]
            made = SlotOp.create(operands=[ring, *at], result_types=[slot_of(ring)])
            bundle.slots[key] = scope.add(made)
        return bundle.slots[key]

    # All else ---------------------------------------------------------------------------------

    def _other(self, scope: Spot, bundle: Bundle, value: SSAValue, op: Operation) -> SSAValue:
        """An operand that is no data of the loop."""
        if bundle.issue.op in self._original.sums and value is ANY.accumulator(op):
            return self._slot(
                scope, bundle, RingAccess(self._original.sums[bundle.issue.op][0], None)
            )
        if buffer_of(value.type) in MEMORIES:
            return self._buffer(scope, bundle, value, writing=value is ANY.destination(op))
        if value is self._original.induction:
            return self._numbers.induction(scope, bundle.issue.at.stage)
        return self._plain(value, op)

    def _plain(self, value: SSAValue, op: Operation) -> SSAValue:
        """A value from outside, or a constant."""
        if not self._original.inside(value):
            return value
        if ANY.immediate(value):
            return self._numbers.immediate(value)
        loop = self._original.for_op
        position = value.index - 1 if isinstance(value, BlockArgument) else -1
        if (
            position >= 0
            and value.owner is loop.body.block
            and ANY.yielded(loop, position) is value
        ):
            return loop.iter_args[position]  # it never changes
        raise UnwritableError(op, "an operand of it has no place in a program")


# The way back -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResultOf:
    """The result of an operation of the program."""

    op: str
    value: str


@dataclass(frozen=True, slots=True)
class FromPipe:
    """What a read gave."""

    pipe: str
    iterator: str


def trace(head: Reading, value: SSAValue) -> ResultOf | FromPipe | None:
    """Who gives a value; None: it was there before the program."""
    while isinstance(value, OpResult):
        op, index = value.op, value.index
        name = head.issued.get(op)
        if name is not None:
            return ResultOf(name, head.loop.op(name).results[index])
        match op:
            case ConsumerReadOp() if index > 0:
                pipe, iterator = head.pipes.get(op.pipeline), head.versions.get(op.iterator)
                return None if pipe is None or iterator is None else FromPipe(pipe.name, iterator)
            case ProducerWriteOp() | IfOp():
                block = op.body.block if isinstance(op, ProducerWriteOp) else op.true_region.block
                at = index - 1 if isinstance(op, ProducerWriteOp) else index
                inner = () if block.last_op is None else block.last_op.operands
                if not 0 <= at < len(inner):
                    return None
                value = inner[at]
            case SelectOp():
                value = op.rhs
            case _ if op.operands and (opcode_of(op).view or isinstance(op, GenericOp)):
                value = op.operands[0]
            case _:
                return None
    return None


@dataclass
class Sources:
    """Finds where the operands of a program's operations come from.

    The loop says what an operand is a name of, which is its path; SSA says who gives it.
    """

    head: Reading
    stages: dict[str, int]
    """As the kernels have them."""
    _kernel: dict[str, tuple[Supply, ...]] = field(default_factory=dict[str, tuple[Supply, ...]])
    """What was found in the kernel."""
    _positions: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    @cached_property
    def _origins(self) -> Origins:
        return Origins(self.head.loop)

    def of(self, op: Operation, row: Op, at: Position, section: str) -> tuple[Supply, ...]:
        """All operands of an operation in its place; those of the kernel are asked for first."""
        positions = op.attributes.get(OPERANDS)
        if section == "kernel" and positions is not None:
            if not isinstance(positions, DenseArrayBase):
                raise self.head.refuse(op, f"`{OPERANDS}` is {positions}; numbers are needed")
            self._positions[row.name] = [int(n) for n in positions.get_values()]
        seen = enumerate(self._origins.seen(row))
        found = tuple(self._source(op, row, at, section, number, one) for number, one in seen)
        if section == "kernel":
            self._kernel[row.name] = found
        return found

    def _source(
        self, op: Operation, row: Op, at: Position, section: str, number: int, seen: Seen
    ) -> Supply:
        path = seen.path
        if seen.kind == "alias":
            return Alias(path.values[0])
        if seen.kind == "stored":
            return Stored(path.values[0], seen.read, path.views)
        positions = self._positions.get(row.name)
        position = number if positions is None else positions[number]
        taken = ANY.uses_of_others(op)
        if not 0 <= position < len(taken):
            told = f"it has no operand {position}, which should be `{path.values[0]}`"
            raise self.head.refuse(op, told)
        user, n = taken[position]
        found = trace(self.head, user.operands[n])
        if isinstance(found, ResultOf):
            return self._direct(op, row.name, path, found, at)
        if isinstance(found, FromPipe):
            return Through(path, found.pipe, found.iterator)
        if seen.kind == "live-in":
            known = () if section == "kernel" else self._kernel.get(row.name, ())
            return known[number] if known else LiveIn(path)
        if section == "prologue" and at.step - at.stage < path.distance:
            # What was there before the loop: the kernel says what it stands for.
            return self._kernel[row.name][number]
        told = f"operand `{path.values[0]}` comes from outside the program"
        raise self.head.refuse(op, f"`{row.name}`: {told}")

    def _direct(
        self, op: Operation, consumer: str, path: Path, made: ResultOf, at: Position
    ) -> Direct:
        """The maker stands beside the consumer: find it on the path."""
        distance = 0
        for n, value in enumerate(path.values):
            distance += path.distances[n]
            apart = self.stages.get(made.op, at.stage) - at.stage
            if value == made.value and distance == apart:
                reader = consumer if n == 0 else path.views[n - 1]
                cut = Path(path.values[: n + 1], path.distances[: n + 1], path.views[:n])
                return Direct(cut, made.op, self._latency(made.op, reader, path.distances[n]))
        told = f"`{made.value}` of `{made.op}` in this step is not `{path.values[0]}`"
        raise self.head.refuse(op, f"`{consumer}`: {told}, {path.distance} iterations back")

    def _latency(self, src: str, dst: str, distance: int) -> int:
        found = [
            d.latency
            for d in self.head.loop.dependences
            if (d.src, d.dst, d.distance) == (src, dst, distance) and d.kind in ("flow", "memory")
        ]
        return max(found, default=0)
