"""On the chip: between registers, shared memory and tensor memory; and the buffers there.

%ring = nv_tileas.alloc_tensor : !nv_tileas.smem_ref<...>     a buffer
%s = nv_tileas.async.smem_write %r into %ring                 registers fill it
%t = nv_tileas.async.tmem_copy %s                             one of its own in tensor memory
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from stretto.ir.dialect.constraints import (
    ANY_TILE,
    FACTOR,
    REGISTER,
    SHARED,
    SMEM,
    TMEM,
    TOKEN,
    same_elements,
    same_shape,
)
from stretto.ir.dialect.transfers import FILL, MADE, CpAsyncOp, TiledTmaLoadOp, TmaGatherOp
from stretto.ir.dialect.types import buffer_of


@irdl_op_definition
class SmemWriteOp(IRDLOperation):
    """A tile of registers into shared memory."""

    name = "nv_tileas.async.smem_write"
    T: ClassVar = VarConstraint("T", SMEM)

    value = operand_def(REGISTER)
    destination = opt_operand_def(T)
    after = var_operand_def(TOKEN)
    result = result_def(T)
    token = opt_result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = f"$value {FILL} type($value) `->` {MADE}"

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, value=self.value.type, result=self.result.type)


@irdl_op_definition
class SmemReadOp(IRDLOperation):
    """A tile of shared memory into registers."""

    name = "nv_tileas.async.smem_read"

    source = operand_def(SMEM)
    after = var_operand_def(TOKEN)
    result = result_def(REGISTER)
    token = opt_result_def(TOKEN)

    assembly_format = "$source (`after` $after^)? attr-dict `:` type($source) `->` " + MADE

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, source=self.source.type, result=self.result.type)


@irdl_op_definition
class TmemLoadOp(IRDLOperation):
    """A tile of tensor memory into registers."""

    name = "nv_tileas.async.tmem_load"

    source = operand_def(TMEM)
    after = var_operand_def(TOKEN)
    result = result_def(REGISTER)
    token = opt_result_def(TOKEN)

    assembly_format = "$source (`after` $after^)? attr-dict `:` type($source) `->` " + MADE

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, source=self.source.type, result=self.result.type)


@irdl_op_definition
class TmemStoreOp(IRDLOperation):
    """A tile of registers into tensor memory."""

    name = "nv_tileas.async.tmem_store"
    T: ClassVar = VarConstraint("T", TMEM)

    value = operand_def(REGISTER)
    destination = opt_operand_def(T)
    after = var_operand_def(TOKEN)
    result = result_def(T)
    token = opt_result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = f"$value {FILL} type($value) `->` {MADE}"

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, value=self.value.type, result=self.result.type)


@irdl_op_definition
class TmemCopyOp(IRDLOperation):
    """A tile of shared memory into tensor memory."""

    name = "nv_tileas.async.tmem_copy"
    T: ClassVar = VarConstraint("T", TMEM)

    source = operand_def(SMEM)
    destination = opt_operand_def(T)
    after = var_operand_def(TOKEN)
    result = result_def(T)
    token = opt_result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = f"$source {FILL} type($source) `->` {MADE}"

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, source=self.source.type, result=self.result.type)


@irdl_op_definition
class CopyOp(IRDLOperation):
    """A tile from one buffer to another; the machine looks at where it goes."""

    name = "nv_tileas.async.copy"
    T: ClassVar = VarConstraint("T", ANY_TILE)

    source = operand_def(FACTOR)
    destination = opt_operand_def(T)
    after = var_operand_def(TOKEN)
    result = result_def(T)
    token = opt_result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = f"$source {FILL} type($source) `->` {MADE}"

    def verify_(self) -> None:
        """The same tile on both sides; a destination that is memory."""
        same_elements(self, source=self.source.type, result=self.result.type)
        home = buffer_of(self.result.type)
        if home != "global":
            same_shape(self, source=self.source.type, result=self.result.type)
        if self.destination is not None and home == "register":
            raise VerifyException(f"`{self.name}` into registers has no destination but its result")
        if self.destination is None and home == "global":
            raise VerifyException(f"`{self.name}` to global memory needs `into`")


@irdl_op_definition
class AllocTensorOp(IRDLOperation):
    """A buffer: fresh each iteration inside a loop, one copy outside. `depth` caps its ring."""

    name = "nv_tileas.alloc_tensor"

    init = opt_operand_def(REGISTER)
    depth = opt_prop_def(base(IntegerAttr))
    result = result_def(SHARED)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "(`(` $init^ `:` type($init) `)`)? attr-dict `:` type($result)"

    def verify_(self) -> None:
        """What fills it has its shape; a ring has at least one copy."""
        if self.init is not None:
            same_shape(self, init=self.init.type, result=self.result.type)
        if self.depth is not None and self.depth.value.data < 1:
            raise VerifyException(
                f"`{self.name}` asks for a ring of {self.depth.value.data}; at least 1 is needed"
            )


FILLS = (TiledTmaLoadOp, TmaGatherOp, CpAsyncOp, SmemWriteOp, TmemStoreOp, TmemCopyOp, CopyOp)
"""Operations that fill a buffer: that of `into`, or one of their own."""
OPERATIONS = (
    SmemWriteOp,
    SmemReadOp,
    TmemLoadOp,
    TmemStoreOp,
    TmemCopyOp,
    CopyOp,
    AllocTensorOp,
)
