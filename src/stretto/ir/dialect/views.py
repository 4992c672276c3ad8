"""Other names for the same bytes, and changes of layout.

%t = transpose %k     slice, view, transpose: the same buffer, or the same registers
%w = broadcast %m     expand_dims, broadcast, splat: registers that are read many times
%c = convert_layout   registers exchanged between threads: a real operation
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, i32
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    base,
    eq,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from stretto.ir.dialect.types import (
    FACTOR,
    NUMBERS,
    REGISTER,
    buffer_of,
    describe,
    same_elements,
    same_shape,
    shape_of,
    tile_of,
)


class _OfTile(IRDLOperation):
    source = operand_def(FACTOR)
    result = result_def(FACTOR)

    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of the source and of the result."""
        return shape_of(self.source.type) or (), shape_of(self.result.type) or ()

    def refused(self, why: str) -> VerifyException:
        """A result that cannot be had of the source."""
        before, after = describe(self.source.type), describe(self.result.type)
        return VerifyException(f"`{self.name}` of {before} cannot be {after}: {why}")

    def check_elements(self) -> None:
        """Refuse tiles whose elements differ."""
        same_elements(self, source=self.source.type, result=self.result.type)


class _Renaming(_OfTile):
    def check_buffer(self) -> None:
        """Refuse another buffer: the bytes stay where they are."""
        before, after = buffer_of(self.source.type), buffer_of(self.result.type)
        if before != after:
            raise VerifyException(f"`{self.name}` cannot move a tile from {before} to {after}")


class _InRegisters(_OfTile):
    source = operand_def(REGISTER)
    result = result_def(REGISTER)


@irdl_op_definition
class SliceOp(_Renaming):
    """A part of a tile."""

    name = "nv_tileas.slice"

    source = operand_def(FACTOR)
    offsets = var_operand_def(eq(i32))

    assembly_format = "$source `[` $offsets `]` attr-dict `:` type($source) `->` type($result)"

    def verify_(self) -> None:
        """A part of the same buffer, with one offset a dimension."""
        self.check_buffer()
        self.check_elements()
        whole, part = self.shapes()
        if len(self.offsets) != len(whole):
            raise VerifyException(
                f"`{self.name}` has {len(self.offsets)} offsets; {describe(self.source.type)} has "
                f"{len(whole)} dimensions"
            )
        if len(part) != len(whole) or any(p > w for p, w in zip(part, whole, strict=True)):
            raise self.refused("it does not lie inside")


@irdl_op_definition
class ViewOp(_Renaming):
    """The same bytes as another type: a cast or a reshape."""

    name = "nv_tileas.view"

    def verify_(self) -> None:
        """As many bytes in the same buffer."""
        self.check_buffer()
        before, after = tile_of(self.source.type), tile_of(self.result.type)
        if before is not None and after is not None and before.bytes != after.bytes:
            why = f"{before.bytes} bytes are not {after.bytes}"
            raise self.refused(why)


@irdl_op_definition
class TransposeOp(_Renaming):
    """The same tile with its dimensions in another order: the reverse unless stated."""

    name = "nv_tileas.transpose"

    permutation = opt_prop_def(base(DenseArrayBase))

    irdl_options = (ParsePropInAttrDict(),)

    def order(self) -> tuple[int, ...]:
        """Which dimension of the source each dimension of the result is."""
        rank = len(shape_of(self.source.type) or ())
        if self.permutation is None:
            return tuple(reversed(range(rank)))
        numbers = self.permutation
        return numbers.get_values() if isa(numbers, DenseArrayBase[IntegerType]) else ()

    def verify_(self) -> None:
        """The shape that the order says."""
        self.check_buffer()
        self.check_elements()
        shape, order = shape_of(self.source.type) or (), self.order()
        if sorted(order) != list(range(len(shape))):
            raise VerifyException(
                f"`{self.name}`: {list(order)} is no order of {len(shape)} dimensions"
            )
        if tuple(shape[i] for i in order) != shape_of(self.result.type):
            raise self.refused(f"the order of dimensions is {list(order)}")


@irdl_op_definition
class BroadcastOp(_InRegisters):
    """A tile spread along dimensions of size 1, or along new ones at the end."""

    name = "nv_tileas.broadcast"

    def verify_(self) -> None:
        """Every dimension is kept, or is 1 and spread."""
        self.check_elements()
        narrow, wide = self.shapes()
        if not _spreads(narrow, wide):
            raise self.refused("dimensions of size 1, and new ones at the end, may grow")


def _spreads(narrow: Sequence[int], wide: Sequence[int]) -> bool:
    return len(narrow) <= len(wide) and all(
        n in (1, w) for n, w in zip(narrow, wide[: len(narrow)], strict=True)
    )


@irdl_op_definition
class ExpandDimsOp(_InRegisters):
    """A new dimension of size 1 at `axis`."""

    name = "nv_tileas.expand_dims"

    axis = prop_def(base(IntegerAttr))

    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        """The source's shape with a 1 put in."""
        self.check_elements()
        shape, axis = shape_of(self.source.type) or (), self.axis.value.data
        if not 0 <= axis <= len(shape):
            raise VerifyException(f"`{self.name}`: axis {axis} of {len(shape)} dimensions")
        if (*shape[:axis], 1, *shape[axis:]) != shape_of(self.result.type):
            raise self.refused(f"a dimension of size 1 comes in at {axis}")


@irdl_op_definition
class SplatOp(_InRegisters):
    """A scalar as a tile that has it everywhere."""

    name = "nv_tileas.splat"

    source = operand_def(NUMBERS)

    def verify_(self) -> None:
        """From a scalar of that element."""
        self.check_elements()
        if shape_of(self.source.type) != ():
            raise VerifyException(f"`{self.name}` of {self.source.type}: it takes a scalar")


@irdl_op_definition
class ConvertLayoutOp(_InRegisters):
    """The same tile, spread over the threads in another way."""

    name = "nv_tileas.convert_layout"

    def verify_(self) -> None:
        """The same tile on both sides."""
        same_shape(self, source=self.source.type, result=self.result.type)


OPERATIONS = (
    SliceOp,
    ViewOp,
    TransposeOp,
    BroadcastOp,
    ExpandDimsOp,
    SplatOp,
    ConvertLayoutOp,
)
