"""The loop over work tiles around a program.

    scf.for %t = %block to %tiles step %blocks : i32 {              as it was written
      %m, %n, %valid = work_tile_info %t ... : i32 -> i32, i32, i1

    scf.for %t = ... : i64 {                                        widened: no product wraps
      %m, %n, %valid = work_tile_info %t ... : i64 -> i64, i64, i1
      %m_1 = arith.trunci %m                                        for those who knew the narrow

    scf.while (%t = %first) : (tensor<4xi32>) -> tensor<4xi32> {     as CUTLASS goes round: the tile
      %m, %n, %l, %valid = work_tile_info %t ...                    arrives as (M, N, L, valid)

The shapes are checked before anything is solved. Info that arrives, as what an asynchronous read
makes, is of the loop around it whatever that counts. A loop over tiles can be made, too, around the
work of one block (`construct`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, WhileOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.hints import isa

from stretto.ir.dialect import NvTileas
from stretto.ir.dialect.pipelined import WorkTileInfoOp
from stretto.ir.dialect.transfers import AllocTensorOp
from stretto.ir.dialect.types import struct_members
from stretto.ir.loops.module import ANY
from stretto.materialization.persistent import Persistent

PersistentLoop = ForOp | WhileOp


def info_of(loop: PersistentLoop) -> WorkTileInfoOp | None:
    """What makes a loop one over work tiles."""
    block = loop.body.block if isinstance(loop, ForOp) else loop.after_region.block
    counted = block.args[0] if isinstance(loop, ForOp) else None
    for op in block.ops:
        if isinstance(op, WorkTileInfoOp) and (op.arrives or op.index is counted):
            return op
    return None


def persistent_loop(op: Operation) -> tuple[PersistentLoop, WorkTileInfoOp] | None:
    """The nearest loop over work tiles around an operation."""
    loops = (at for at in ANY.around(op) if isinstance(at, PersistentLoop))
    return next(((at, info) for at in loops if (info := info_of(at)) is not None), None)


def persistent_around(op: Operation) -> Persistent | None:
    """The loop over work tiles around an operation, as materialization knows it."""
    found = persistent_loop(op)
    return None if found is None else describe(*found)


def describe(loop: PersistentLoop, info: WorkTileInfoOp) -> Persistent:
    """What a loop over work tiles says, its index as wide as it will be."""
    cluster = info.shape(info.cluster)
    blocks = ANY.constant(loop.step) if isinstance(loop, ForOp) else None
    if info.blocks is not None:
        blocks = info.blocks.value.data
    return Persistent(
        problem=None if info.problem is None else info.shape(info.problem),
        tile=info.shape(info.tile),
        cluster=cluster,
        # Where nobody says, as few as there can be: one cluster.
        blocks=math.prod(cluster) if blocks is None else blocks,
        info=tuple("i64" if t == info.counted_in else str(t) for t in info.parts.types),
    )


# Widening ---------------------------------------------------------------------------------


def widen(loop: PersistentLoop, info: WorkTileInfoOp) -> PersistentLoop:
    """The same loop with an index of 64 bits, and work-tile info to match.

    What arrives has its numbers widened; the loop's own index counts nothing of the tile then.
    """
    if info.arrives or not isinstance(loop, ForOp):
        # Whoever asks whether there is another tile reads the same descriptor.
        blocks = [b for region in loop.regions for b in region.blocks]
        for one in [op for block in blocks for op in block.ops if isinstance(op, WorkTileInfoOp)]:
            if one.arrives and one.counted_in != i64:
                _widen_arrived(one)
        return loop
    narrow = loop.body.block.args[0].type
    if narrow == i64:
        return loop
    outside = loop.parent_block()
    assert outside is not None
    bounds: list[SSAValue] = []
    for value in (loop.lb, loop.ub, loop.step):
        wide = _cast(value, i64)
        outside.insert_op_before(wide, loop)
        wide.results[0].name_hint = value.name_hint
        bounds.append(wide.results[0])
    old = loop.body.block
    loop.body.detach_block(old)
    _widen_index(old, narrow)
    lower, upper, step = bounds
    _widen_info(info, narrow, {loop.ub: upper})
    made = ForOp(lower, upper, step, list(loop.iter_args), Region(old))
    made.attributes.update(loop.attributes)
    outside.insert_op_before(made, loop)
    for before, after in zip(loop.results, made.results, strict=True):
        after.name_hint = before.name_hint
        before.replace_all_uses_with(after)
    loop.detach()
    loop.erase()
    return made


def _widen_arrived(info: WorkTileInfoOp) -> None:
    narrow, arrived = info.counted_in, info.index
    block = info.parent_block()
    assert block is not None
    if struct_members(arrived.type) is not None:
        made = _wide_descriptor(arrived, info.members)
    else:
        type = TensorType(i64, [len(info.parts)])
        made = [_defined("arith.extsi").create(operands=[arrived], result_types=[type])]
    made[-1].results[0].name_hint = arrived.name_hint
    block.insert_ops_before(made, info)
    info.operands[0] = made[-1].results[0]
    _widen_info(info, narrow, {})


def _wide_descriptor(arrived: SSAValue, members: Sequence[Attribute]) -> list[Operation]:
    """The same descriptor, its coordinates of 64 bits; the validity stays what it is."""
    from xdsl.dialects.llvm import (  # noqa: PLC0415 - only where there is a struct
        ExtractValueOp,
        InsertValueOp,
        LLVMStructType,
        UndefOp,
    )

    wide = LLVMStructType.from_type_list([*(i64 for _ in members[:-1]), members[-1]])
    made: list[Operation] = [UndefOp(wide)]
    for at, member in enumerate(members):
        position = DenseArrayBase.from_list(i64, [at])
        made.append(ExtractValueOp(position, arrived, member))
        whole, taken = made[-2].results[0], made[-1].results[0]
        if at < len(members) - 1:
            made.append(arith.ExtSIOp(taken, i64))
            taken = made[-1].results[0]
        made.append(InsertValueOp(position, whole, taken))
    return made


def _widen_index(block: Block, narrow: Attribute) -> None:
    index = block.args[0]
    wide = block.insert_arg(i64, 0)
    wide.name_hint = index.name_hint
    others = [use for use in index.uses if not isinstance(use.operation, WorkTileInfoOp)]
    if others:
        short = _cast(wide, narrow)
        first = block.first_op
        assert first is not None
        block.insert_op_before(short, first)
        short.results[0].name_hint = index.name_hint
        for use in others:
            use.operation.operands[use.index] = short.results[0]
    index.replace_all_uses_with(wide)
    block.erase_arg(index)


def _widen_info(info: WorkTileInfoOp, narrow: Attribute, wide: Mapping[SSAValue, SSAValue]) -> None:
    block = info.parent_block()
    assert block is not None
    extents: list[SSAValue] = []
    for value in info.extents:
        if value in wide:
            extents.append(wide[value])
            continue
        longer = _cast(value, i64)
        block.insert_op_before(longer, info)
        extents += longer.results
    types = [i64 if type == narrow else type for type in info.parts.types]
    made = WorkTileInfoOp.create(
        operands=[info.index, *extents],
        result_types=types,
        properties=info.properties,
        attributes=info.attributes,
    )
    block.insert_op_before(made, info)
    for old, new in zip(info.results, made.results, strict=True):
        new.name_hint = old.name_hint
        if old.type == new.type or not old.uses:
            old.replace_all_uses_with(new)
            continue
        short = _cast(new, narrow)
        block.insert_op_before(short, info)
        short.results[0].name_hint = old.name_hint
        old.replace_all_uses_with(short.results[0])
    info.detach()
    info.erase()


def _cast(value: SSAValue, to: Attribute) -> Operation:
    number = ANY.constant(value)
    if number is not None and isa(to, IntegerType):
        return arith.ConstantOp(IntegerAttr(number, to))
    narrow = value.type
    if not isa(narrow, IntegerType) or not isa(to, IntegerType):
        return arith.IndexCastOp(value, to)
    widens = narrow.width.data < to.width.data
    return arith.ExtSIOp(value, to) if widens else arith.TruncIOp(value, to)


# Construction -----------------------------------------------------------------------------


class UnpersistentError(Exception):
    """Why a function cannot be put into a loop over work tiles, and what forbids it."""

    def __init__(self, op: Operation, reason: str) -> None:
        self.op = op
        self.reason = reason
        super().__init__(reason)


def construct(function: FuncOp, shape: Persistent) -> ForOp:
    """Put the work of one block into a loop over the tiles that the block works on.

    A block of the grid as it was is a tile now: its index along an axis becomes the tile's
    coordinate, and the count of blocks that of tiles. The new grid has one axis of `shape.blocks`.
    Constants and bare buffers stay before the loop.
    """
    body = function.body.block
    last = body.last_op
    if last is None or last.operands:
        raise UnpersistentError(function, "it returns what a tile computes")
    of_grid = [op for op in function.walk() if op.name in (_INDEX, _COUNT)]
    for op in of_grid:
        if _axis(op) >= len(shape.tile):
            axes = f"a grid of axis {_axis(op)}; tiles have {len(shape.tile)} axes"
            raise UnpersistentError(op, f"`{op.name}` asks for {axes}")
    inside = [op for op in body.ops if op is not last and not _stays(op)]
    block = Block(arg_types=[i64])
    block.args[0].name_hint = "tile"
    parts = len(shape.tile)
    info = WorkTileInfoOp.create(
        operands=[block.args[0]],
        result_types=[*[i64] * parts, i1],
        properties={
            "problem": DenseArrayBase.from_list(i64, shape.problem or ()),
            "tile": DenseArrayBase.from_list(i64, shape.tile),
            "cluster": DenseArrayBase.from_list(i64, shape.cluster),
            "blocks": IntegerAttr(shape.blocks, i64),
        },
    )
    for op in inside:
        op.detach()
    block.add_op(info)
    block.add_ops([*inside, YieldOp()])
    for op in of_grid:
        _of_tile(op, info, shape)
    axis = {"axis": IntegerAttr(0, i64)}
    index = _defined("block_index").create(result_types=[i32], properties=axis)
    wide = arith.ExtSIOp(index.results[0], i64)
    ends = [arith.ConstantOp(IntegerAttr(n, i64)) for n in (shape.tiles, shape.blocks)]
    for op, name in zip((index, wide, *ends), ("block", "first", "tiles", "blocks"), strict=True):
        op.results[0].name_hint = name
        body.insert_op_before(op, last)
    made = ForOp(wide.results[0], ends[0].result, ends[1].result, [], Region(block))
    body.insert_op_before(made, last)
    return made


_INDEX, _COUNT = "nv_tileas.block_index", "nv_tileas.block_count"


def _defined(kind: str) -> type[Operation]:
    """An operation of the dialect that has no class of its own by name."""
    return next(op for op in NvTileas.operations if op.name == f"nv_tileas.{kind}")


def _axis(op: Operation) -> int:
    axis = op.properties["axis"]
    assert isinstance(axis, IntegerAttr)
    return axis.value.data


def _stays(op: Operation) -> bool:
    """What every tile shares: constants, and buffers that are filled for each anew."""
    bare = isinstance(op, AllocTensorOp) and op.init is None
    return bare or isinstance(op, arith.ConstantOp)


def _of_tile(op: Operation, info: WorkTileInfoOp, shape: Persistent) -> None:
    """In the place of a question about the grid, the answer about the tile."""
    block = op.parent_block()
    assert block is not None
    type = op.results[0].type
    if op.name == _COUNT:
        count = shape.grid[_axis(op)]
        wide = type.width.data if isa(type, IntegerType) else IndexType()
        made: Operation = arith.ConstantOp.from_int_and_width(count, wide)
    else:
        made = _cast(info.parts[_axis(op)], type)
    made.results[0].name_hint = op.results[0].name_hint
    block.insert_op_before(made, op)
    op.results[0].replace_all_uses_with(made.results[0])
    op.detach()
    op.erase()
