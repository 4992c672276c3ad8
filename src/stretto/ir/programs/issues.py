"""The operation that a bundle stands around: what its text says of it, there and back.

%mma = nv_tileas... {stretto.name = "mma", nv_tile.program.stage = 2, nv_tile.program.cycle = 141}

In the kernel it also has its row of the loop, as `stretto.*` attributes. It shows every slot that
it touches: as an operand, or by a `slot` operation of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Operation

from stretto.ir.attributes import CONSTRAINT, OP_FIELDS, STATED, op_row, plain
from stretto.ir.dialect.kinds import kind_of
from stretto.ir.dialect.kinds import row_of as opcode_of
from stretto.ir.dialect.types import buffer_of
from stretto.ir.programs.declarations import Reading, Writing, to_attributes
from stretto.ir.programs.operands import Bundle, Operands, Sources
from stretto.ir.programs.original import bare, with_operands
from stretto.ir.programs.scope import Scope
from stretto.ir.reading.values import accumulator_of, destination_of
from stretto.loop.json import loop_to_json
from stretto.materialize.program import After, Issue, Position, RingAccess
from stretto.vocabulary.spaces import MEMORIES

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

    def write(self, scope: Scope, around: Bundle, kernel: bool) -> Operation:
        """An operation in its place, and the slots that it touches before it."""
        issue = around.issue
        source = self._original.ops[issue.op]
        operands = self._operands.of(scope, around)
        self._operands.touch(scope, around)
        if issue.op in self._original.stated:
            made = with_operands(bare(source), operands)
        else:
            made = bare(source)
            made.operands = operands
            self._into(around, source, made)
        made.attributes.update(self._attributes(issue, kernel))
        scope.block.add_op(made)
        return made

    def _attributes(self, issue: Issue, kernel: bool) -> dict[str, Attribute]:
        said: dict[str, Any] = {_NAME: issue.op}
        positions: dict[str, Attribute] = {}
        if kernel:
            row = self._rows[issue.op]
            said |= {STATED + key: row[key] for key in OP_FIELDS if key in row}
            said |= {CONSTRAINT + key: value for key, value in row.get("constraint", {}).items()}
            positions = self._operands.positions(issue)
        place = {_STAGE: issue.at.stage, _CYCLE: issue.at.cycle}
        return {**to_attributes(said), **positions, **to_attributes(place)}

    def _into(self, around: Bundle, source: Operation, made: Operation) -> None:
        """Name the slot to an operation that had a buffer of its own."""
        at = opcode_of(source).destination
        if at is None:
            return
        if destination_of(source) is not None or accumulator_of(source) is not None:
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
    return {**op_row(op)[0], "kind": kind_of(op)}


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
