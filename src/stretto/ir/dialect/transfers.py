"""How tiles move: between global memory and the chip, on the chip, and the buffers they fill.

    %a = nv_tileas.async.tiled_tma_load %A[%row, %k] into %ring : ... -> !nv_tileas.smem_ref<...>
                                        │               │
                        a tile of global memory     the buffer it fills

    %ring = nv_tileas.alloc_tensor : !nv_tileas.smem_ref<...>     a buffer
    %s = nv_tileas.async.smem_write %r into %ring                 registers fill it
    %t = nv_tileas.async.tmem_copy %s                             one of its own in tensor memory
    nv_tileas.barrier                                             all threads meet

What has `into` fills that buffer and its result is another name of it; without, it fills one of
its own. `after` takes tokens: the operation starts when their makers are done.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType, i32
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

from stretto.ir.dialect.types import (
    ANY_TILE,
    FACTOR,
    OFF_CHIP,
    REGISTER,
    SHARED,
    SMEM,
    TMEM,
    TOKEN,
    buffer_of,
    define,
    describe,
    same_elements,
    same_shape,
    shape_of,
)
from stretto.ops.spaces import GLOBAL, SPACES

I32 = eq(i32)

FILL = "(`into` $destination^)? (`after` $after^)? attr-dict `:`"
"""What the text of an operation that fills a buffer has after its operands."""
MADE = "type($result) (`,` type($token)^)?"
"""What it has at its end: a tile, and a token if somebody waits for it."""


def check_coordinates(op: IRDLOperation, memory: SSAValue, coordinates: int) -> None:
    """One coordinate a dimension."""
    shape = shape_of(memory.type)
    if shape is not None and len(shape) != coordinates:
        raise VerifyException(
            f"`{op.name}` has {coordinates} coordinates; {describe(memory.type)} has "
            f"{len(shape)} dimensions"
        )


# xDSL lists an operation's own fields first and then those of its bases: so `source` stands before
# `destination`. Whoever overrides a field that is not the first, overrides those before it as well.


class FillingOp(IRDLOperation):
    """Fills a buffer: that of `into`, or one of its own."""

    T: ClassVar = VarConstraint("T", ANY_TILE)

    destination = opt_operand_def(T)
    after = var_operand_def(TOKEN)
    result = result_def(T)
    token = opt_result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)


class FillingSmemOp(FillingOp):
    """Fills a buffer in shared memory."""

    T: ClassVar = VarConstraint("T", SMEM)

    destination = opt_operand_def(T)
    result = result_def(T)


class FillingTmemOp(FillingOp):
    """Fills a buffer in tensor memory."""

    T: ClassVar = VarConstraint("T", TMEM)

    destination = opt_operand_def(T)
    result = result_def(T)


class _LoadTileOp(FillingSmemOp):
    source = operand_def(OFF_CHIP)
    coordinates = var_operand_def(I32)

    assembly_format = f"$source `[` $coordinates `]` {FILL} type($source) `->` {MADE}"

    def verify_(self) -> None:
        """Coordinates and elements fit."""
        check_coordinates(self, self.source, len(self.coordinates))
        same_elements(self, source=self.source.type, result=self.result.type)


class _StoreTileOp(IRDLOperation):
    value = operand_def(REGISTER)
    target = operand_def(OFF_CHIP)
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
class TmaGatherOp(FillingSmemOp):
    """Rows of global memory, picked by index, into shared memory."""

    name = "nv_tileas.async.tma_gather"

    source = operand_def(OFF_CHIP)
    indices = operand_def(REGISTER)
    column = opt_operand_def(I32)
    """Where in its row each begins; at its first element unless stated."""

    assembly_format = (
        "$source `[` $indices (`,` $column^)? `]` "
        f"{FILL} type($source) `[` type($indices) `]` `->` {MADE}"
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
class TiledTmaStoreOp(_StoreTileOp):
    """A tile of shared memory into global memory, by the tensor memory accelerator."""

    name = "nv_tileas.async.tiled_tma_store"

    value = operand_def(SMEM)
    kind = opt_prop_def(base(StringAttr))
    """How it is combined with what is there: add, min, max, and, or, xor; else in its place."""

    irdl_options = (ParsePropInAttrDict(),)


@irdl_op_definition
class TmaScatterOp(IRDLOperation):
    """Rows of shared memory to rows of global memory that are picked by index."""

    name = "nv_tileas.async.tma_scatter"

    value = operand_def(SMEM)
    target = operand_def(OFF_CHIP)
    indices = operand_def(REGISTER)
    column = opt_operand_def(I32)
    """Where in its row each begins; at its first element unless stated."""
    after = var_operand_def(TOKEN)
    token = result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$value `to` $target `[` $indices (`,` $column^)? `]` (`after` $after^)? attr-dict `:` "
        "type($value) `->` type($target) `[` type($indices) `]`"
    )

    def verify_(self) -> None:
        """A row for every index."""
        check_rows(self, self.indices, self.value)
        same_elements(self, value=self.value.type, target=self.target.type)


class _LoadRegistersOp(IRDLOperation):
    source = operand_def(OFF_CHIP)
    coordinates = var_operand_def(I32)
    after = var_operand_def(TOKEN)
    result = result_def(REGISTER)
    token = opt_result_def(TOKEN)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$source `[` $coordinates `]` (`after` $after^)? attr-dict `:` type($source) `->` " + MADE
    )

    def verify_(self) -> None:
        """Coordinates and elements fit."""
        check_coordinates(self, self.source, len(self.coordinates))
        same_elements(self, source=self.source.type, result=self.result.type)


@irdl_op_definition
class LoadOp(_LoadRegistersOp):
    """A tile of global memory into registers."""

    name = "nv_tileas.load"


# On the chip -------------------------------------------------------------------------------


class _FromRegisters(FillingOp):
    value = operand_def(REGISTER)

    assembly_format = f"$value {FILL} type($value) `->` {MADE}"

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, value=self.value.type, result=self.result.type)


@irdl_op_definition
class SmemWriteOp(_FromRegisters, FillingSmemOp):
    """A tile of registers into shared memory."""

    name = "nv_tileas.async.smem_write"


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
class TmemStoreOp(_FromRegisters, FillingTmemOp):
    """A tile of registers into tensor memory."""

    name = "nv_tileas.async.tmem_store"


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
class MmaCopyOp(IRDLOperation):
    """A tile of registers, laid out as the tensor cores take it."""

    name = "nv_tileas.async.mma_copy"

    source = operand_def(REGISTER)
    after = var_operand_def(TOKEN)
    result = result_def(REGISTER)
    token = opt_result_def(TOKEN)

    assembly_format = "$source (`after` $after^)? attr-dict `:` type($source) `->` " + MADE

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, source=self.source.type, result=self.result.type)
        same_elements(self, source=self.source.type, result=self.result.type)


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


# Barriers ----------------------------------------------------------------------------------


class _Sync(IRDLOperation):
    after = var_operand_def(TOKEN)
    token = opt_result_def(TOKEN)

    assembly_format = "(`after` $after^)? attr-dict (`:` type($token)^)?"


@irdl_op_definition
class BarrierOp(_Sync):
    """All threads meet: what touches memory before it stays before, what comes after, after."""

    name = "nv_tileas.barrier"


OPERATIONS = (
    define(_LoadTileOp, "async.tiled_tma_load", "Global into shared memory, by the TMA."),
    TmaGatherOp,
    TiledTmaStoreOp,
    TmaScatterOp,
    define(_LoadTileOp, "async.cp_async", "Global into shared memory, copied by threads."),
    LoadOp,
    define(_LoadRegistersOp, "async.gnic_read", "From across the interconnect into registers."),
    define(_StoreTileOp, "store", "A tile of registers into global memory."),
    define(_StoreTileOp, "async.gnic_write", "A tile of registers across the interconnect."),
    SmemWriteOp,
    SmemReadOp,
    TmemLoadOp,
    TmemStoreOp,
    TmemCopyOp,
    CopyOp,
    MmaCopyOp,
    AllocTensorOp,
    BarrierOp,
    define(_Sync, "async.mbarrier_arrive", "Arrives at a barrier in shared memory."),
    define(_Sync, "async.mbarrier_wait", "Waits for a barrier in shared memory."),
)
