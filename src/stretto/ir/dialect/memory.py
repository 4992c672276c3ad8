"""Moving tiles: between global memory, shared memory, tensor memory and registers.

    %a = nv_tileas.async.tiled_tma_load %A[%row, %k] into %ring : ... -> !nv_tileas.smem_ref<...>
                                        │               │
                        a tile of global memory     the buffer it fills

What has `into` fills that buffer and its result is another name of it; without, it fills one of its
own. `after` takes tokens: the operation starts when their makers are done.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, TensorType, i32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    base,
    eq,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from stretto.ir.dialect.constraints import (
    ANY_TILE,
    FACTOR,
    GLOBAL,
    REGISTER,
    SHARED,
    SMEM,
    TMEM,
    describe,
    same_elements,
    same_shape,
)
from stretto.ir.dialect.types import TokenType, buffer_of, shape_of

TOKEN = eq(TokenType())
I32 = eq(i32)

_FILL = "(`into` $destination^)? (`after` $after^)? attr-dict `:`"
_MADE = "type($result) (`,` type($token)^)?"


def check_coordinates(op: IRDLOperation, memory: SSAValue, coordinates: int) -> None:
    """One coordinate a dimension."""
    shape = shape_of(memory.type)
    if shape is not None and len(shape) != coordinates:
        raise VerifyException(
            f"`{op.name}` has {coordinates} coordinates; {describe(memory.type)} has "
            f"{len(shape)} dimensions"
        )


@irdl_op_definition
class TiledTmaLoadOp(IRDLOperation):
    """A tile of global memory into shared memory, by the tensor memory accelerator."""

    name = "nv_tileas.async.tiled_tma_load"
    T: ClassVar = VarConstraint("T", SMEM)

    source = operand_def(GLOBAL)
    coordinates = var_operand_def(I32)
    destination = opt_operand_def(T)
    after = var_operand_def(TOKEN)
    result = result_def(T)
    token = opt_result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = f"$source `[` $coordinates `]` {_FILL} type($source) `->` {_MADE}"

    def verify_(self) -> None:
        """Coordinates and elements fit."""
        check_coordinates(self, self.source, len(self.coordinates))
        same_elements(self, source=self.source.type, result=self.result.type)


@irdl_op_definition
class TmaGatherOp(IRDLOperation):
    """Rows of global memory, picked by index, into shared memory."""

    name = "nv_tileas.async.tma_gather"
    T: ClassVar = VarConstraint("T", SMEM)

    source = operand_def(GLOBAL)
    indices = operand_def(REGISTER)
    destination = opt_operand_def(T)
    after = var_operand_def(TOKEN)
    result = result_def(T)
    token = opt_result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        f"$source `[` $indices `]` {_FILL} type($source) `[` type($indices) `]` `->` {_MADE}"
    )

    def verify_(self) -> None:
        """A row for every index."""
        check_rows(self, self.indices, self.result)
        same_elements(self, source=self.source.type, result=self.result.type)


def check_rows(op: IRDLOperation, indices: SSAValue, tile: SSAValue) -> None:
    """As many rows as indices."""
    picked, rows = shape_of(indices.type), shape_of(tile.type)
    integers = isa(indices.type, TensorType) and indices.type.element_type == i32
    if not integers or picked is None or len(picked) != 1:
        raise VerifyException(f"`{op.name}`: the indices are {indices.type}, not a row of i32")
    if rows and rows[0] != picked[0]:
        raise VerifyException(
            f"`{op.name}`: {picked[0]} indices pick {rows[0]} rows of {describe(tile.type)}"
        )


@irdl_op_definition
class TiledTmaStoreOp(IRDLOperation):
    """A tile of shared memory into global memory, by the tensor memory accelerator."""

    name = "nv_tileas.async.tiled_tma_store"

    value = operand_def(SMEM)
    target = operand_def(GLOBAL)
    coordinates = var_operand_def(I32)
    after = var_operand_def(TOKEN)
    token = result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$value `to` $target `[` $coordinates `]` (`after` $after^)? attr-dict `:` "
        "type($value) `->` type($target)"
    )

    def verify_(self) -> None:
        """Coordinates and elements fit."""
        check_coordinates(self, self.target, len(self.coordinates))
        same_elements(self, value=self.value.type, target=self.target.type)


@irdl_op_definition
class TmaScatterOp(IRDLOperation):
    """Rows of shared memory to rows of global memory that are picked by index."""

    name = "nv_tileas.async.tma_scatter"

    value = operand_def(SMEM)
    target = operand_def(GLOBAL)
    indices = operand_def(REGISTER)
    after = var_operand_def(TOKEN)
    token = result_def(TOKEN)

    assembly_format = (
        "$value `to` $target `[` $indices `]` (`after` $after^)? attr-dict `:` "
        "type($value) `->` type($target) `[` type($indices) `]`"
    )

    def verify_(self) -> None:
        """A row for every index."""
        check_rows(self, self.indices, self.value)
        same_elements(self, value=self.value.type, target=self.target.type)


@irdl_op_definition
class CpAsyncOp(IRDLOperation):
    """A tile of global memory into shared memory, copied by threads."""

    name = "nv_tileas.async.cp_async"
    T: ClassVar = VarConstraint("T", SMEM)

    source = operand_def(GLOBAL)
    coordinates = var_operand_def(I32)
    destination = opt_operand_def(T)
    after = var_operand_def(TOKEN)
    result = result_def(T)
    token = opt_result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = f"$source `[` $coordinates `]` {_FILL} type($source) `->` {_MADE}"

    def verify_(self) -> None:
        """Coordinates and elements fit."""
        check_coordinates(self, self.source, len(self.coordinates))
        same_elements(self, source=self.source.type, result=self.result.type)


@irdl_op_definition
class LoadOp(IRDLOperation):
    """A tile of global memory into registers."""

    name = "nv_tileas.load"

    source = operand_def(GLOBAL)
    coordinates = var_operand_def(I32)
    after = var_operand_def(TOKEN)
    result = result_def(REGISTER)
    token = opt_result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$source `[` $coordinates `]` (`after` $after^)? attr-dict `:` type($source) `->` " + _MADE
    )

    def verify_(self) -> None:
        """Coordinates and elements fit."""
        check_coordinates(self, self.source, len(self.coordinates))
        same_elements(self, source=self.source.type, result=self.result.type)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """A tile of registers into global memory."""

    name = "nv_tileas.store"

    value = operand_def(REGISTER)
    target = operand_def(GLOBAL)
    coordinates = var_operand_def(I32)
    after = var_operand_def(TOKEN)
    token = result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$value `to` $target `[` $coordinates `]` (`after` $after^)? attr-dict `:` "
        "type($value) `->` type($target)"
    )

    def verify_(self) -> None:
        """Coordinates and elements fit."""
        check_coordinates(self, self.target, len(self.coordinates))
        same_elements(self, value=self.value.type, target=self.target.type)


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
    assembly_format = f"$value {_FILL} type($value) `->` {_MADE}"

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

    assembly_format = "$source (`after` $after^)? attr-dict `:` type($source) `->` " + _MADE

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

    assembly_format = "$source (`after` $after^)? attr-dict `:` type($source) `->` " + _MADE

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
    assembly_format = f"$value {_FILL} type($value) `->` {_MADE}"

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
    assembly_format = f"$source {_FILL} type($source) `->` {_MADE}"

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
    assembly_format = f"$source {_FILL} type($source) `->` {_MADE}"

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
    TiledTmaLoadOp,
    TmaGatherOp,
    TiledTmaStoreOp,
    TmaScatterOp,
    CpAsyncOp,
    LoadOp,
    StoreOp,
    SmemWriteOp,
    SmemReadOp,
    TmemLoadOp,
    TmemStoreOp,
    TmemCopyOp,
    CopyOp,
    AllocTensorOp,
)
