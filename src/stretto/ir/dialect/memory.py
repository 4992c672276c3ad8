"""On the chip: between registers, shared memory and tensor memory; and the buffers there.

%ring = nv_tileas.alloc_tensor : !nv_tileas.smem_ref<...>     a buffer
%s = nv_tileas.async.smem_write %r into %ring                 registers fill it
%t = nv_tileas.async.tmem_copy %s                             one of its own in tensor memory
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
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
    FACTOR,
    REGISTER,
    SHARED,
    SMEM,
    TMEM,
    TOKEN,
    same_elements,
    same_shape,
)
from stretto.ir.dialect.transfers import FILL, MADE, FillingOp, FillingSmemOp, FillingTmemOp
from stretto.ir.dialect.types import buffer_of
from stretto.vocabulary.spaces import GLOBAL, SPACES


@irdl_op_definition
class SmemWriteOp(FillingSmemOp):
    """A tile of registers into shared memory."""

    name = "nv_tileas.async.smem_write"

    value = operand_def(REGISTER)

    assembly_format = f"$value {FILL} type($value) `->` {MADE}"

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, value=self.value.type, result=self.result.type)


class _ReadOp(IRDLOperation):
    source = operand_def(SHARED)
    after = var_operand_def(TOKEN)
    result = result_def(REGISTER)
    token = opt_result_def(TOKEN)

    assembly_format = "$source (`after` $after^)? attr-dict `:` type($source) `->` " + MADE

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, source=self.source.type, result=self.result.type)


@irdl_op_definition
class SmemReadOp(_ReadOp):
    """A tile of shared memory into registers."""

    name = "nv_tileas.async.smem_read"

    source = operand_def(SMEM)


@irdl_op_definition
class TmemLoadOp(_ReadOp):
    """A tile of tensor memory into registers."""

    name = "nv_tileas.async.tmem_load"

    source = operand_def(TMEM)


@irdl_op_definition
class TmemStoreOp(FillingTmemOp):
    """A tile of registers into tensor memory."""

    name = "nv_tileas.async.tmem_store"

    value = operand_def(REGISTER)

    assembly_format = f"$value {FILL} type($value) `->` {MADE}"

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, value=self.value.type, result=self.result.type)


@irdl_op_definition
class TmemCopyOp(FillingTmemOp):
    """A tile of shared memory into tensor memory."""

    name = "nv_tileas.async.tmem_copy"

    source = operand_def(SMEM)

    assembly_format = f"$source {FILL} type($source) `->` {MADE}"

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, source=self.source.type, result=self.result.type)


@irdl_op_definition
class CopyOp(FillingOp):
    """A tile from one buffer to another; the machine looks at where it goes."""

    name = "nv_tileas.async.copy"

    source = operand_def(FACTOR)

    assembly_format = f"$source {FILL} type($source) `->` {MADE}"

    def verify_(self) -> None:
        """The same tile on both sides; a destination that is memory."""
        same_elements(self, source=self.source.type, result=self.result.type)
        home = buffer_of(self.result.type)
        if home == GLOBAL and self.destination is None:
            raise VerifyException(f"`{self.name}` to global memory needs `into`")
        if home is None or home == GLOBAL:
            return
        same_shape(self, source=self.source.type, result=self.result.type)
        space = SPACES[home]
        if self.destination is not None and not space.budgeted:
            told = f"`{self.name}` into {space.words} has no destination but its result"
            raise VerifyException(told)


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


OPERATIONS = (
    SmemWriteOp,
    SmemReadOp,
    TmemLoadOp,
    TmemStoreOp,
    TmemCopyOp,
    CopyOp,
    AllocTensorOp,
)
