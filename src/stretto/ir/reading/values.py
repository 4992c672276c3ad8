"""Where a value of a loop comes from, followed back through carried arguments and views.

scf.for ... iter_args(%m = %m0) { ... use %m ... scf.yield %m_new }
                                      └──► %m_new of the iteration before: distance 1

%t = transpose %b;  %b = tiled_tma_load ... into %ring      both live in %ring
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from stretto.ir.dialect.kinds import row_of
from stretto.ir.dialect.memory import AllocTensorOp
from stretto.ir.dialect.pipeline import BODIES
from stretto.ir.dialect.pipeline import YieldOp as BodyYieldOp
from stretto.ir.dialect.products import ProductOp
from stretto.ir.dialect.types import PipelineType, buffer_of
from stretto.vocabulary.spaces import MEMORIES, REGISTERS


class UnreadableError(Exception):
    """A loop that cannot be read; `op` is where, `reason` why."""

    def __init__(self, op: Operation, reason: str) -> None:
        self.op = op
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Home:
    """The buffer a tile lives in, by the value that stands for it; how many iterations back."""

    root: SSAValue
    distance: int = 0


def destination_of(op: Operation) -> SSAValue | None:
    """The buffer an operation fills, if it names one."""
    return None if row_of(op).destination is None else cast("ProductOp", op).destination


def accumulator_of(op: Operation) -> SSAValue | None:
    """The tile a product adds to in place."""
    return None if row_of(op).accumulator is None else cast("ProductOp", op).accumulator


def special_operands(op: Operation) -> dict[int, SSAValue]:
    """By position, the buffer an operation fills and the tile it adds to; it may read them too."""
    found: dict[int, SSAValue] = {}
    for value in (destination_of(op), accumulator_of(op)):
        if value is not None:
            # Both stand behind what is read, so of several places the last is meant.
            found[max(i for i, o in enumerate(op.operands) if o is value)] = value
    return found


def yielded(loop: ForOp, position: int) -> SSAValue:
    """What a loop hands to its next iteration as carried value `position`."""
    last = loop.body.block.last_op
    if not isinstance(last, YieldOp):
        raise UnreadableError(loop, "its body has no scf.yield")
    return last.operands[position]  # `arguments` would be a copy of all


def inside(value: SSAValue, block: Block) -> bool:
    """Whether a value is defined in a block or in what the block encloses."""
    owner = value.owner
    at: Block | None = owner if isinstance(owner, Block) else owner.parent
    while at is not None:
        if at is block:
            return True
        above = at.parent_op()
        at = above.parent if above is not None else None
    return False


def through_bodies(value: SSAValue) -> SSAValue:
    """What a producer's or consumer's body yields, for the result that stands for it."""
    while isinstance(value, OpResult) and isinstance(value.op, BODIES) and value.index > 0:
        last = value.op.body.block.last_op
        if not isinstance(last, BodyYieldOp):
            return value
        value = last.arguments[value.index - 1]
    return value


def through_views(value: SSAValue) -> SSAValue:
    """The registers a value of registers is another name of."""
    while isinstance(value, OpResult) and row_of(value.op).view:
        if buffer_of(value.type) != REGISTERS:
            break
        value = value.op.operands[0]
    return value


def immediate(value: SSAValue) -> bool:
    """Whether an instruction can hold the value itself: a constant, one number however wide."""
    if not isinstance(value, OpResult) or not isinstance(value.op, ConstantOp):
        return False
    constant = value.op.value
    return not isa(constant, DenseIntOrFPElementsAttr) or constant.is_splat()


def register_sums(loop: ForOp) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Sums in registers that stay in place: each by its two names, and the argument it goes by.

    The product hands its sum on to itself and in no other way; who else reads the sum of before
    does so before the product writes over it.
    """
    block = loop.body.block
    for argument in block.args[1:]:
        made = yielded(loop, argument.index - 1)
        if buffer_of(argument.type) != REGISTERS or not isinstance(made, OpResult):
            continue
        op = made.op
        if made.index or op.parent is not block or accumulator_of(op) is not argument:
            continue
        handed_on = [use for use in made.uses if use.operation is block.last_op]
        others = [use.operation for use in argument.uses if use.operation is not op]
        if len(handed_on) == 1 and all(_reads_before(op, reader) for reader in others):
            yield argument, argument
            yield made, argument


def _reads_before(op: Operation, reader: Operation) -> bool:
    """Whether a reader is done with a value before `op`, and gives it no other name."""
    block = op.parent_block()
    at = None if block is None else block.find_ancestor_op_in_block(reader)
    return at is not None and at.is_before_in_block(op) and not row_of(reader).view


class Homes:
    """The buffers that tiles live in; each is found once."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Home] = {}

    def of(self, value: SSAValue) -> Home | None:
        """The buffer of a tile in shared or tensor memory; None for anything else."""
        if buffer_of(value.type) not in MEMORIES:
            return None
        way: list[SSAValue] = []
        at, home = value, None
        while home is None:
            if at in self._known:
                home = self._known[at]
                break
            way.append(at)
            following = self._behind(at)
            if isinstance(following, Home):
                home = following
            else:
                at = following
        for passed in way:
            self._known[passed] = home
        return home

    def _behind(self, value: SSAValue) -> SSAValue | Home:
        """One step back: the value this one is another name of, or its home."""
        value = through_bodies(value)
        if isinstance(value, OpResult):
            op = value.op
            if isinstance(op, ForOp):
                return yielded(op, value.index)
            if value.index == 0:
                filled = destination_of(op) or accumulator_of(op)
                if filled is not None:
                    return filled
                if row_of(op).view:
                    return op.operands[0]
            return Home(value)
        if isinstance(value, BlockArgument):
            parent = value.block.parent_op()
            if isinstance(parent, BODIES):
                return Home(parent.pipeline)
            if isinstance(parent, ForOp) and value.index > 0:
                return self._carried(parent, value.index - 1)
        return Home(value)

    def _carried(self, loop: ForOp, position: int) -> Home:
        """The home of a carried tile: where it was before the loop, or one of the loop's own."""
        first = self.of(loop.iter_args[position])
        assert first is not None  # the same type as the carried value
        root, back, seen = position, 0, list[int]()
        while isinstance(root, int):
            if root in seen:
                if root != position or len(seen) > 1:
                    reason = "buffers that change places between iterations cannot be followed"
                    raise UnreadableError(loop, reason)
                return first
            seen.append(root)
            root, back = self._root_inside(loop, yielded(loop, root)), back + 1
        if inside(root, loop.body.block):
            return Home(root, back)
        if root is not first.root:
            raise UnreadableError(
                loop, f"carried value {position} begins in one buffer and goes on in another"
            )
        return first

    def _root_inside(self, loop: ForOp, value: SSAValue) -> SSAValue | int:
        """Where a yielded tile lives, without going round the loop: a root, or which argument."""
        while True:
            if isinstance(value, BlockArgument) and value.block is loop.body.block:
                return value.index - 1
            if value in self._known:
                return self._known[value].root
            following = self._behind(value)
            if isinstance(following, Home):
                return following.root
            value = following


def space_and_ring(root: SSAValue) -> tuple[SSAValue, int | None]:
    """The value whose type tells a buffer's size, and the cap on its ring."""
    if isinstance(root.type, PipelineType):
        return root, root.type.stages.data
    if isinstance(root, OpResult) and isinstance(root.op, AllocTensorOp):
        depth = root.op.depth
        return root, None if depth is None else depth.value.data
    return root, None
