"""Between global memory and the chip: TMA, copies by threads, plain loads and stores.

    %a = nv_tileas.async.tiled_tma_load %A[%row, %k] into %ring : ... -> !nv_tileas.smem_ref<...>
                                        │               │
                        a tile of global memory     the buffer it fills

What has `into` fills that buffer and its result is another name of it; without, it fills one of
its own. `after` takes tokens: the operation starts when their makers are done.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    eq,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_result_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from stretto.ir.dialect.constraints import (
    ANY_TILE,
    OFF_CHIP,
    REGISTER,
    SMEM,
    TMEM,
    TOKEN,
    describe,
    same_elements,
)
from stretto.ir.dialect.types import shape_of

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
class TiledTmaLoadOp(_LoadTileOp):
    """A tile of global memory into shared memory, by the tensor memory accelerator."""

    name = "nv_tileas.async.tiled_tma_load"


@irdl_op_definition
class TmaGatherOp(FillingSmemOp):
    """Rows of global memory, picked by index, into shared memory."""

    name = "nv_tileas.async.tma_gather"

    source = operand_def(OFF_CHIP)
    indices = operand_def(REGISTER)

    assembly_format = (
        f"$source `[` $indices `]` {FILL} type($source) `[` type($indices) `]` `->` {MADE}"
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


@irdl_op_definition
class TmaScatterOp(IRDLOperation):
    """Rows of shared memory to rows of global memory that are picked by index."""

    name = "nv_tileas.async.tma_scatter"

    value = operand_def(SMEM)
    target = operand_def(OFF_CHIP)
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
class CpAsyncOp(_LoadTileOp):
    """A tile of global memory into shared memory, copied by threads."""

    name = "nv_tileas.async.cp_async"


@irdl_op_definition
class LoadOp(IRDLOperation):
    """A tile of global memory into registers."""

    name = "nv_tileas.load"

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
class StoreOp(_StoreTileOp):
    """A tile of registers into global memory."""

    name = "nv_tileas.store"


OPERATIONS = (
    TiledTmaLoadOp,
    TmaGatherOp,
    TiledTmaStoreOp,
    TmaScatterOp,
    CpAsyncOp,
    LoadOp,
    StoreOp,
)
