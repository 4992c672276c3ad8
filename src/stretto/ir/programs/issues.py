"""The operation that a bundle stands around, there and back; what the last of them leave behind.

    %mma = nv_tileas... {stretto.name = "mma", nv_tile.program.stage = 2, .cycle = 141}

In the kernel it also has its row of the loop, as `stretto.*` attributes. It shows every slot that
it touches: as an operand, or by a `slot` operation of its own.

    %m_last = create_ring(%m0 : T)      begins as the loop did
    fill %m into %m_last                whenever an iteration makes a new one
    slot %m_last                        after the program

So somebody can read after the loop what it carried. What was handed on unchanged moves one cell
further at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from stretto.extraction.source import NESTED
from stretto.ir.attributes import CONSTRAINT, OP_FIELDS, STATED, op_row, plain
from stretto.ir.dialect import kind_of
from stretto.ir.dialect import row_of as opcode_of
from stretto.ir.dialect.pipelined import CreateRingOp, FillOp, SlotOp
from stretto.ir.dialect.transfers import AllocTensorOp
from stretto.ir.dialect.types import PipelineType, buffer_of
from stretto.ir.loops.module import ANY
from stretto.ir.programs.declarations import Reading, Writing, slot_of, to_attributes
from stretto.ir.programs.operands import Bundle, Operands, Sources
from stretto.ir.programs.original import (
    Spot,
    UnwritableError,
    bare,
    with_operands,
)
from stretto.loop.json import loop_to_json
from stretto.materialization.program import After, Issue, Position, RingAccess
from stretto.ops.spaces import MEMORIES


@dataclass
class Outlets:
    """The cells of one program, by the position of the carried value."""

    to: Writing
    cells: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    chains: dict[str, list[list[int]]] = field(default_factory=dict[str, list[list[int]]])
    """By value: positions that hand it on, the newest first."""

    def __post_init__(self) -> None:
        self.original = self.to.original

    def open(self) -> None:
        """Make a cell for every value that is read after the loop."""
        names = {value: name for name, value in self.original.results.items()}
        for position, result in enumerate(self.original.for_op.results):
            if not result.uses or self._stays(position):
                continue
            chain, root = self._chain(position)
            if root is self.original.induction or not self.original.inside(root):
                if len(chain) > 1:
                    raise self._refused(position)
                continue
            if root not in names:
                raise self._refused(position)
            # The newest first: the one that takes the value itself.
            self.chains.setdefault(names[root], []).append(chain[::-1])
            for at in chain:
                if at not in self.cells:
                    self.cells[at] = self._cell(at)

    def _refused(self, position: int) -> UnwritableError:
        reason = f"what it leaves behind as result {position} cannot be followed"
        return UnwritableError(self.original.for_op, reason)

    def _stays(self, position: int) -> bool:
        """Whether a result is a buffer that was there before, or a sum in registers."""
        value = ANY.yielded(self.original.for_op, position)
        if buffer_of(value.type) in MEMORIES:
            home = self.original.homes.of(value)
            if home is not None and self.original.inside(home.root):
                reason = f"result {position} is a tile of a ring, which others take over"
                raise UnwritableError(self.original.for_op, reason)
            return True
        return position in {at for _, at in self.original.sums.values()}

    def _chain(self, position: int) -> tuple[list[int], SSAValue]:
        """Positions from a result back to the one that is made anew, and what is made."""
        block = self.original.for_op.body.block
        chain = [position]
        value = ANY.yielded(self.original.for_op, position)
        while isinstance(value, BlockArgument) and value.block is block and value.index > 0:
            if value.index - 1 in chain:
                if len(chain) > 1:
                    raise self._refused(position)
                return chain, self.original.for_op.iter_args[position]
            chain.append(value.index - 1)
            value = ANY.yielded(self.original.for_op, value.index - 1)
        return chain, value

    def _cell(self, position: int) -> SSAValue:
        first = self.original.for_op.iter_args[position]
        made = CreateRingOp.create(operands=[first], result_types=[PipelineType(1, first.type)])
        self.to.block.add_op(made)
        made.result.name_hint = self.original.for_op.results[position].name_hint
        return made.result

    def values(self) -> frozenset[str]:
        """Values that cells take."""
        return frozenset(self.chains)

    def update(self, scope: Spot, results: dict[str, SSAValue]) -> None:
        """An operation has made new values: put them into their cells."""
        for name, value in results.items():
            done: set[int] = set()
            # The longest first, since the others are its beginnings.
            for chain in sorted(self.chains.get(name, []), key=len, reverse=True):
                for older, newer in zip(chain[:0:-1], chain[-2::-1], strict=True):
                    if older not in done:
                        self._fill(scope, self._held(scope, newer), older)
                        done.add(older)
                if chain[0] not in done:
                    self._fill(scope, value, chain[0])
                    done.add(chain[0])

    def _held(self, scope: Spot, position: int) -> SSAValue:
        cell = self.cells[position]
        return scope.add(SlotOp.create(operands=[cell], result_types=[slot_of(cell)]))

    def _fill(self, scope: Spot, value: SSAValue, position: int) -> None:
        scope.block.add_op(FillOp.create(operands=[value, self.cells[position]]))

    def results(self) -> dict[int, SSAValue]:
        """What stands for each result that is read after the program and is made in it."""
        return {
            position: self._result(Spot(self.to.block, 0, self.to.trips), position)
            for position, result in enumerate(self.original.for_op.results)
            if result.uses and buffer_of(result.type) not in MEMORIES
        }

    def _result(self, scope: Spot, position: int) -> SSAValue:
        first = self.original.for_op.iter_args[position]
        for storage, at in self.original.sums.values():
            if at == position:
                ring = self.to.rings[storage]
                return scope.add(SlotOp.create(operands=[ring], result_types=[first.type]))
        if position in self.cells:
            return self._held(scope, position)
        root = self._chain(position)[1]
        if root is self.original.induction:
            root = self.to.numbers.induction(scope, 0, 1)
        any_ran = scope.add(arith.CmpiOp(self.to.trips, self.to.numbers.whole(1), "sge"))
        return scope.add(arith.SelectOp(any_ran, root, first))


_NAME = STATED + "name"
_STAGE, _CYCLE = "nv_tile.program.stage", "nv_tile.program.cycle"


class Issues:
    """Writes the operations of one program."""

    def __init__(self, to: Writing) -> None:
        self._original = to.original
        self._operands = Operands(to)
        self._rows: dict[str, dict[str, Any]] = {
            row["name"]: row for row in loop_to_json(to.program.loop)["ops"]
        }

    def write(self, scope: Spot, around: Bundle, kernel: bool) -> Operation:
        """An operation in its place, and the slots that it touches before it."""
        issue = around.issue
        source = self._original.ops[issue.op]
        kept: list[int] | None = None
        operands = self._operands.of(scope, around)
        self._operands.touch(scope, around)
        if issue.op in self._original.stated:
            made = with_operands(bare(source), operands)
        else:
            made = bare(source)
            if ANY.name(source) in NESTED:
                kept = self._enclosed(around, source, made, operands)
            else:
                made.operands = operands
                self._into(around, source, made)
        made.attributes.update(self._attributes(issue, kernel, kept))
        scope.block.add_op(made)
        return made

    def _enclosed(
        self, around: Bundle, source: Operation, made: Operation, operands: Sequence[SSAValue]
    ) -> list[int]:
        """A region in its new place: what it takes, and slots for the buffers it has of its own.

        Where what it took before is among all that it takes now.
        """
        for old, new in zip(tuple(source.walk()), tuple(made.walk()), strict=True):
            if isinstance(old, AllocTensorOp) and old.init is None:
                self._slot_for(around, old, new)
            elif old is not source:
                self._into(around, old, new)
        slots = frozenset(around.slots.values())
        taken = ANY.uses_of_others(made)
        kept = [n for n, (user, at) in enumerate(taken) if user.operands[at] not in slots]
        for n, value in zip(kept, operands, strict=True):
            user, at = taken[n]
            user.operands[at] = value
        return kept

    def _slot_for(self, around: Bundle, source: Operation, made: Operation) -> None:
        """A buffer of a region is a slot of its ring."""
        storage = self._original.storage_of(source.results[0])
        slot = next((s for (name, _), s in around.slots.items() if name == storage), None)
        if slot is not None and slot.type == made.results[0].type:
            made.results[0].replace_all_uses_with(slot)
            made.detach()
            made.erase()

    def _attributes(
        self, issue: Issue, kernel: bool, kept: Sequence[int] | None = None
    ) -> dict[str, Attribute]:
        said: dict[str, Any] = {_NAME: issue.op}
        positions: dict[str, Attribute] = {}
        if kernel:
            row = self._rows[issue.op]
            said |= {STATED + key: row[key] for key in OP_FIELDS if key in row}
            said |= {CONSTRAINT + key: value for key, value in row.get("constraint", {}).items()}
            positions = self._operands.positions(issue, kept)
        place = {_STAGE: issue.at.stage, _CYCLE: issue.at.cycle}
        return {**to_attributes(said), **positions, **to_attributes(place)}

    def _into(self, around: Bundle, source: Operation, made: Operation) -> None:
        """Name the slot to an operation that had a buffer of its own."""
        at = opcode_of(source).destination
        if at is None:
            return
        if ANY.destination(source) is not None or ANY.accumulator(source) is not None:
            return
        result = source.results[0]
        storage = self._original.storage_of(result)
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


# The way back -----------------------------------------------------------------------------


def name_of_issued(op: Operation) -> str | None:
    """Which operation of the loop it is that a program issues; None for anything else."""
    if _STAGE not in op.attributes or _CYCLE not in op.attributes:
        return None
    return plain(op.attributes[_NAME]) if _NAME in op.attributes else "-"


def row_of(op: Operation) -> dict[str, Any]:
    """The row of an operation of the kernel, as loop JSON has it."""
    return {"name": "-", **op_row(op), "kind": kind_of(op)}


def place_of(head: Reading, op: Operation) -> tuple[int, int]:
    """Stage and cycle of an operation that issues."""
    found: list[Any] = [plain(op.attributes[key]) for key in (_STAGE, _CYCLE)]
    if not all(isinstance(number, int) and number >= 0 for number in found):
        raise head.refuse(op, f"stage {found[0]}, cycle {found[1]}: numbers are needed")
    return found[0], found[1]


def read_issue(
    sources: Sources,
    op: Operation,
    at: Position,
    section: str,
    touched: Sequence[str],
    after: tuple[After, ...],
) -> Issue:
    """An operation in its place; `touched` are the iterators around it."""
    head = sources.head
    row = head.loop.op(head.issued[op])
    operands = sources.of(op, row, at, section)
    listed = head.loop.reads[row.name]
    reads = tuple(_slot(head, op, touched, r.storage, "consumer", r.distance) for r in listed)
    writes = tuple(_slot(head, op, touched, storage, "producer", 0) for storage in row.writes)
    return Issue(at, row.name, operands, reads, writes, after)


def _slot(
    head: Reading, op: Operation, touched: Sequence[str], storage: str, side: str, distance: int
) -> RingAccess:
    ring = head.ring_of.get(storage)
    if ring is None:
        raise head.refuse(op, f"storage `{storage}` has no ring")
    if ring.fixed:
        return RingAccess(storage, None, distance)
    for name in touched:
        iterator = head.iterator_of[name]
        if (iterator.ring, iterator.side, iterator.distance) == (ring.name, side, distance):
            return RingAccess(storage, name, distance)
    raise head.refuse(op, f"it touches `{storage}` and no iterator says which slot")
