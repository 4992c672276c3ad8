"""The loop over work tiles around a program.

    scf.for %t = %block to %tiles step %blocks : i32 {              as it was written
      %m, %n, %valid = work_tile_info %t ... : i32 -> i32, i32, i1

    scf.for %t = ... : i64 {                                        widened: no product wraps
      %m, %n, %valid = work_tile_info %t ... : i64 -> i64, i64, i1
      %m_1 = arith.trunci %m                                        for those who knew the narrow

The shapes are checked before anything is solved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i64
from xdsl.dialects.scf import ForOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.hints import isa

from stretto.ir.dialect.pipelined import WorkTileInfoOp
from stretto.ir.loops.flow import around, constant_of
from stretto.materialize.persistent import Persistent


def _info_of(loop: ForOp) -> WorkTileInfoOp | None:
    """What makes a loop one over work tiles."""
    for op in loop.body.block.ops:
        if isinstance(op, WorkTileInfoOp) and op.index is loop.body.block.args[0]:
            return op
    return None


def persistent_loop(op: Operation) -> tuple[ForOp, WorkTileInfoOp] | None:
    """The nearest loop over work tiles around an operation."""
    loops = (at for at in around(op) if isinstance(at, ForOp))
    return next(((at, info) for at in loops if (info := _info_of(at)) is not None), None)


def persistent_around(op: Operation) -> Persistent | None:
    """The loop over work tiles around an operation, as materialization knows it."""
    found = persistent_loop(op)
    return None if found is None else describe(*found)


def describe(loop: ForOp, info: WorkTileInfoOp) -> Persistent:
    """What a loop over work tiles says, its index as wide as it will be."""
    cluster = info.shape(info.cluster)
    blocks = constant_of(loop.step)
    if info.blocks is not None:
        blocks = info.blocks.value.data
    return Persistent(
        problem=None if info.problem is None else info.shape(info.problem),
        tile=info.shape(info.tile),
        cluster=cluster,
        # Where nobody says, as few as there can be: one cluster.
        blocks=math.prod(cluster) if blocks is None else blocks,
        info=tuple("i64" if t == info.index.type else str(t) for t in info.parts.types),
    )


# Widening ---------------------------------------------------------------------------------


def widen(loop: ForOp, info: WorkTileInfoOp) -> ForOp:
    """The same loop with an index of 64 bits, and work-tile info to match."""
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
    number = constant_of(value)
    if number is not None and isa(to, IntegerType):
        return arith.ConstantOp(IntegerAttr(number, to))
    narrow = value.type
    if not isa(narrow, IntegerType) or not isa(to, IntegerType):
        return arith.IndexCastOp(value, to)
    widens = narrow.width.data < to.width.data
    return arith.ExtSIOp(value, to) if widens else arith.TruncIOp(value, to)
