"""Where a value of a loop comes from, and what an operation reads: from which iteration.

scf.for ... iter_args(%m = %m0) { ... use %m ... scf.yield %m_new }
                                      └──► %m_new of the iteration before: distance 1

    iter_args(%a, %b)   { use %b ; scf.yield %new, %a }   use reads new, 2 iterations back

%t = transpose %b;  %b = tiled_tma_load ... into %ring      both live in %ring

Constants, descriptors, pipelines, buffers to fill, and accumulators that stay in place are no data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from typing_extensions import TypeIs
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.dialects.scf import ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from stretto.ir.dialect import row_of
from stretto.ir.dialect.compute import ProductOp
from stretto.ir.dialect.pipeline import BODIES
from stretto.ir.dialect.pipeline import YieldOp as BodyYieldOp
from stretto.ir.dialect.transfers import AllocTensorOp
from stretto.ir.dialect.types import PipelineType, buffer_of
from stretto.ops.spaces import GLOBAL, MEMORIES, REGISTERS

NESTED = (ForOp, IfOp, WhileOp)
"""Control flow that is one operation of the body it stands in."""


class UnreadableError(Exception):
    """A loop that cannot be read; `op` is where, `reason` why."""

    def __init__(self, op: Operation, reason: str) -> None:
        self.op = op
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class BufferHome:
    """The buffer a tile lives in, by the value that stands for it; how many iterations back."""

    root: SSAValue
    distance: int = 0


def around(op: Operation) -> Iterator[Operation]:
    """The operations that enclose one, the nearest first."""
    at = op.parent_op()
    while at is not None:
        yield at
        at = at.parent_op()


def constant_of(value: SSAValue) -> int | None:
    """The whole number that a value is known to be."""
    if isinstance(value, OpResult) and isinstance(value.op, ConstantOp):
        number = value.op.value
        if isa(number, IntegerAttr):
            return number.value.data
    return None


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


def enclosed_by(value: SSAValue, op: Operation) -> bool:
    """Whether a value is defined in what an operation encloses."""
    return any(inside(value, block) for region in op.regions for block in region.blocks)


def uses_of_others(op: Operation) -> list[tuple[Operation, int]]:
    """What an operation takes, and what stands inside it, from outside of it: who, and where."""
    if not isinstance(op, NESTED):
        return [(op, n) for n in range(len(op.operands))]
    return [
        (inner, n)
        for inner in op.walk()
        for n, value in enumerate(inner.operands)
        if not enclosed_by(value, op)
    ]


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
    return not isa(constant, DenseIntOrFPElementsAttr) or is_one_number(constant)


def is_one_number(constant: DenseIntOrFPElementsAttr) -> bool:
    """Whether all elements are the same, bit by bit: NaN is no number that equals itself."""
    data, size = constant.data.data, constant.get_element_type().compile_time_size
    return data == data[:size] * (len(data) // size)


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


class BufferHomes:
    """The buffers that tiles live in; each is found once."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, BufferHome] = {}

    def of(self, value: SSAValue) -> BufferHome | None:
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
            if isinstance(following, BufferHome):
                home = following
            else:
                at = following
        for passed in way:
            self._known[passed] = home
        return home

    def _behind(self, value: SSAValue) -> SSAValue | BufferHome:
        """One step back: the value this one is another name of, or its home."""
        value = through_bodies(value)
        if isinstance(value, OpResult):
            op = value.op
            if isinstance(op, ForOp):
                return yielded(op, value.index)
            if isinstance(op, IfOp | WhileOp):
                return self._chosen(op, value.index)
            if value.index == 0:
                filled = destination_of(op) or accumulator_of(op)
                if filled is not None:
                    return filled
                if row_of(op).view:
                    return op.operands[0]
            return BufferHome(value)
        if isinstance(value, BlockArgument):
            parent = value.block.parent_op()
            if isinstance(parent, BODIES):
                return BufferHome(parent.pipeline)
            if isinstance(parent, ForOp) and value.index > 0:
                return self._carried(parent, value.index - 1)
            if isinstance(parent, WhileOp):
                told = "in which buffer it goes on is not known before; read the tile before it"
                raise UnreadableError(parent, told)
        return BufferHome(value)

    def _chosen(self, op: IfOp | WhileOp, position: int) -> SSAValue | BufferHome:
        """The home of a tile that control flow hands out: one and the same, whatever happens."""
        found = [self.of(end) for end in _ends(op, position)] if isinstance(op, IfOp) else []
        first = found[0] if found else None
        if first is None or any(home != first for home in found):
            raise _unknown_home(op, position)
        return first

    def _carried(self, loop: ForOp, position: int) -> BufferHome:
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
            return BufferHome(root, back)
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
            if isinstance(value, OpResult) and isinstance(value.op, IfOp):
                roots = [self._root_inside(loop, end) for end in _ends(value.op, value.index)]
                if not roots or any(root != roots[0] for root in roots):
                    raise _unknown_home(value.op, value.index)
                return roots[0]
            following = self._behind(value)
            if isinstance(following, BufferHome):
                return following.root
            value = following


def _ends(op: IfOp, position: int) -> list[SSAValue]:
    """What each side hands out as a result."""
    lasts = [region.blocks[0].last_op for region in op.regions if region.blocks]
    return [last.operands[position] for last in lasts if last is not None]


def _unknown_home(op: Operation, position: int) -> UnreadableError:
    return UnreadableError(op, f"in which buffer result {position} lives is not known before")


def space_and_ring(root: SSAValue) -> tuple[SSAValue, int | None]:
    """The value whose type tells a buffer's size, and the cap on its ring."""
    if isinstance(root.type, PipelineType):
        return root, root.type.stages.data
    if isinstance(root, OpResult) and isinstance(root.op, AllocTensorOp):
        depth = root.op.depth
        return root, None if depth is None else depth.value.data
    return root, None


class Flow:
    """The flow of data in one loop, or in a block that nothing is carried round."""

    def __init__(self, owner: Operation, block: Block | None = None) -> None:
        self._for = owner if block is None and isinstance(owner, ForOp) else None
        self._block = owner.regions[0].blocks[0] if block is None else block
        self.sums = {} if self._for is None else dict(register_sums(self._for))
        self._flows: dict[SSAValue, tuple[SSAValue, int] | None] = {}

    def read_by(self, op: Operation) -> Iterable[SSAValue]:
        """The operands whose data an operation reads."""
        if not isinstance(op, NESTED):
            special = special_operands(op)
            total = accumulator_of(op)
            return [
                operand
                for i, operand in enumerate(op.operands)
                if _is_data(operand)
                and (i not in special or (operand is total and self._flows_in(op, operand)))
            ]
        captured = [
            operand
            for nested in op.walk()
            for operand in nested.operands
            if not enclosed_by(operand, op)
        ]
        # What an inner loop does with a buffer as such, its accesses say.
        return [v for v in dict.fromkeys(captured) if _is_data(v) and not _is_bare(v)]

    def _flows_in(self, op: Operation, total: SSAValue) -> bool:
        """Whether what a product adds to is made by another: else it stays in place."""
        flow = self.source_of(total)
        if flow is None or _is_bare(flow[0]):
            return False
        own = isinstance(flow[0], OpResult) and flow[0].op is op
        if own and flow[1] > 0:
            return buffer_of(total.type) == REGISTERS and total not in self.sums
        return True

    def source_of(self, value: SSAValue) -> tuple[SSAValue, int] | None:
        """The value that is meant, and how many iterations back; None: held by the instruction."""
        if value not in self._flows:
            self._flows[value] = self._find_flow(value)
        return self._flows[value]

    def _find_flow(self, value: SSAValue) -> tuple[SSAValue, int] | None:
        """Back through the arguments that carry it; each on the way is found once."""
        way: dict[SSAValue, None] = {}
        at = through_bodies(value)
        while self._for is not None and self._is_carried(at) and at not in self._flows:
            if at in way:  # arguments that only change places: nobody in the loop makes them
                return value, 0
            way[at] = None
            at = through_bodies(yielded(self._for, at.index - 1))
        flow = self._flows[at] if at in self._flows else self._made(at)
        for carried in reversed(way):
            if flow is not None and self._is_carried(flow[0]):
                flow = carried, 0
            elif flow is not None and inside(flow[0], self._block):
                flow = flow[0], flow[1] + 1
            self._flows[carried] = flow
        return flow

    def _is_carried(self, value: SSAValue) -> TypeIs[BlockArgument]:
        if self._for is None or not isinstance(value, BlockArgument):
            return False
        return value.block is self._block and value.index > 0

    def _made(self, at: SSAValue) -> tuple[SSAValue, int] | None:
        # What never changes is the same at every distance, and whatever it is called.
        if not inside(at, self._block):
            at = through_views(at)
        return None if immediate(at) else (at, 0)


def _is_data(value: SSAValue) -> bool:
    """Not a descriptor, nor a pipeline."""
    return buffer_of(value.type) != GLOBAL and not isinstance(value.type, PipelineType)


def _is_bare(value: SSAValue) -> bool:
    """Whether a value is a buffer as such, which nobody has filled yet."""
    return isinstance(value, OpResult) and isinstance(value.op, AllocTensorOp)
