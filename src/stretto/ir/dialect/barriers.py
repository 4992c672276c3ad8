"""Barriers, and operations that have no name of their own here.

nv_tileas.barrier                                all threads meet
%t = nv_tileas.async.mbarrier_arrive : ...       one arrives, another waits
%x = nv_tileas.generic "tt.load"(%p) : ...       whatever a machine knows as `tt.load`
"""

from __future__ import annotations

from xdsl.dialects.builtin import BytesAttr, StringAttr
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    base,
    irdl_op_definition,
    opt_result_def,
    prop_def,
    var_operand_def,
    var_result_def,
)

from stretto.ir.dialect.constraints import TOKEN

_SYNC = "(`after` $after^)? attr-dict (`:` type($token)^)?"


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """All threads meet: what touches memory before it stays before, what comes after, after."""

    name = "nv_tileas.barrier"

    after = var_operand_def(TOKEN)
    token = opt_result_def(TOKEN)

    assembly_format = _SYNC


@irdl_op_definition
class MbarrierArriveOp(IRDLOperation):
    """Arrives at a barrier in shared memory."""

    name = "nv_tileas.async.mbarrier_arrive"

    after = var_operand_def(TOKEN)
    token = opt_result_def(TOKEN)

    assembly_format = _SYNC


@irdl_op_definition
class MbarrierWaitOp(IRDLOperation):
    """Waits for a barrier in shared memory."""

    name = "nv_tileas.async.mbarrier_wait"

    after = var_operand_def(TOKEN)
    token = opt_result_def(TOKEN)

    assembly_format = _SYNC


@irdl_op_definition
class GenericOp(IRDLOperation):
    """An operation of any kind, by the name its machine knows it by."""

    name = "nv_tileas.generic"

    kind = prop_def(base(StringAttr) | base(BytesAttr))
    arguments = var_operand_def(AnyAttr())
    made = var_result_def(AnyAttr())

    assembly_format = "$kind `(` $arguments `)` attr-dict `:` functional-type($arguments, $made)"


OPERATIONS = (BarrierOp, MbarrierArriveOp, MbarrierWaitOp, GenericOp)
