"""What a whole kernel has around its loops: the grid, addresses, views of tensors.

%i = nv_tileas.block_index {axis = 0 : i64} : i32
%p = nv_tileas.offset %base, %r : tensor<128x!nv_tileas.ptr<f16>>, tensor<128xi32> -> ...
%x = nv_tileas.pointer.load %p mask %m : ...                       by threads, into registers
%a = nv_tileas.async.pointer_copy %p mask %m into %ring : ...      by threads, into shared memory
%v = nv_tileas.tensor_view %base sizes %m, %n strides %n, %one : ...
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from stretto.ir.dialect.transfers import FillingSmemOp
from stretto.ir.dialect.types import (
    NUMBERS,
    OFF_CHIP,
    REGISTER,
    TOKEN,
    define,
    pointee_of,
    shape_of,
)

_SEGMENTS = AttrSizedOperandSegments(as_property=True)


class _OfGrid(IRDLOperation):
    axis = prop_def(base(IntegerAttr))
    result = result_def(NUMBERS)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def verify_(self) -> None:
        """A grid has three axes."""
        if not 0 <= self.axis.value.data <= 2:
            raise VerifyException(f"`{self.name}`: axis {self.axis.value.data} of a grid")


@irdl_op_definition
class TileCountOp(_OfGrid):
    """How many tiles a launch asks for along an axis, where so many blocks at most go over them."""

    name = "nv_tileas.tile_count"
    blocks = prop_def(base(IntegerAttr))


@irdl_op_definition
class RangeOp(IRDLOperation):
    """start, start + 1, and so on, below end."""

    name = "nv_tileas.range"

    start = prop_def(base(IntegerAttr))
    end = prop_def(base(IntegerAttr))
    result = result_def(REGISTER)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def verify_(self) -> None:
        """As many elements as numbers."""
        count = self.end.value.data - self.start.value.data
        if shape_of(self.result.type) != (count,):
            raise VerifyException(f"`{self.name}` of {count} numbers is not {self.result.type}")


@irdl_op_definition
class TensorViewOp(IRDLOperation):
    """A tensor in global memory, by its address, sizes and strides in elements."""

    name = "nv_tileas.tensor_view"

    address = operand_def(NUMBERS)
    sizes = var_operand_def(NUMBERS)
    strides = var_operand_def(NUMBERS)
    padding = opt_prop_def(base(StringAttr))
    result = result_def(OFF_CHIP)

    irdl_options = (_SEGMENTS, ParsePropInAttrDict())
    assembly_format = (
        "$address (`sizes` $sizes^ `:` type($sizes))? (`strides` $strides^ `:` type($strides))? "
        "attr-dict `:` type($address) `->` type($result)"
    )

    def verify_(self) -> None:
        """An address to look through, and a size and a stride a dimension."""
        if pointee_of(self.address.type) is None:
            raise VerifyException(f"`{self.name}` of {self.address.type}: it takes an address")
        rank = len(shape_of(self.result.type) or ())
        if len(self.sizes) != rank or len(self.strides) != rank:
            raise VerifyException(
                f"`{self.name}` has {len(self.sizes)} sizes and {len(self.strides)} strides; "
                f"{self.result.type} has {rank} dimensions"
            )


@irdl_op_definition
class OffsetOp(IRDLOperation):
    """An address so many elements further, or a tile of such."""

    name = "nv_tileas.offset"

    address = operand_def(NUMBERS)
    offset = operand_def(NUMBERS)
    result = result_def(NUMBERS)

    assembly_format = (
        "$address `,` $offset attr-dict `:` type($address) `,` type($offset) `->` type($result)"
    )

    def verify_(self) -> None:
        """Addresses in, addresses out, of one shape."""
        if pointee_of(self.address.type) is None or self.address.type != self.result.type:
            raise VerifyException(f"`{self.name}` of {self.address.type}: it takes addresses")
        if shape_of(self.offset.type) != shape_of(self.result.type):
            told = f"offsets of {self.offset.type} for {self.result.type}"
            raise VerifyException(f"`{self.name}`: {told}")


def _check_addresses(op: IRDLOperation, address: Attribute, tile: Attribute) -> None:
    if pointee_of(address) is None:
        raise VerifyException(f"`{op.name}` of {address}: it takes addresses")
    if shape_of(address) != shape_of(tile):
        raise VerifyException(f"`{op.name}`: {tile} at {address}")


@irdl_op_definition
class PointerLoadOp(IRDLOperation):
    """Elements at addresses into registers; where the mask is off, `other` or nothing certain."""

    name = "nv_tileas.pointer.load"

    address = operand_def(NUMBERS)
    mask = opt_operand_def(NUMBERS)
    other = opt_operand_def(NUMBERS)
    result = result_def(NUMBERS)

    irdl_options = (_SEGMENTS,)
    assembly_format = (
        "$address (`mask` $mask^ `:` type($mask))? (`other` $other^ `:` type($other))? attr-dict "
        "`:` type($address) `->` type($result)"
    )

    def verify_(self) -> None:
        """An element an address."""
        _check_addresses(self, self.address.type, self.result.type)


@irdl_op_definition
class PointerCopyOp(FillingSmemOp):
    """Elements at addresses into shared memory, without waiting; zero where the mask is off."""

    name = "nv_tileas.async.pointer_copy"

    address = operand_def(NUMBERS)
    mask = opt_operand_def(NUMBERS)

    assembly_format = (
        "$address (`mask` $mask^ `:` type($mask))? (`into` $destination^)? (`after` $after^)? "
        "attr-dict `:` type($address) `->` type($result) (`,` type($token)^)?"
    )

    def verify_(self) -> None:
        """An element an address."""
        _check_addresses(self, self.address.type, self.result.type)


@irdl_op_definition
class PointerStoreOp(IRDLOperation):
    """Elements of registers to addresses, where the mask is on."""

    name = "nv_tileas.pointer.store"

    address = operand_def(NUMBERS)
    value = operand_def(NUMBERS)
    mask = opt_operand_def(NUMBERS)

    irdl_options = (_SEGMENTS,)
    assembly_format = (
        "$address `,` $value (`mask` $mask^ `:` type($mask))? attr-dict "
        "`:` type($address) `,` type($value)"
    )

    def verify_(self) -> None:
        """An element an address."""
        _check_addresses(self, self.address.type, self.value.type)


@irdl_op_definition
class AtomicRmwOp(IRDLOperation):
    """Reads elements at addresses, combines them with others and writes them back, at once."""

    name = "nv_tileas.pointer.atomic_rmw"

    address = operand_def(NUMBERS)
    value = operand_def(NUMBERS)
    mask = opt_operand_def(NUMBERS)
    kind = prop_def(base(StringAttr))
    semantics = opt_prop_def(base(StringAttr))
    scope = opt_prop_def(base(StringAttr))
    result = result_def(NUMBERS)

    irdl_options = (_SEGMENTS, ParsePropInAttrDict())
    assembly_format = (
        "$address `,` $value (`mask` $mask^ `:` type($mask))? attr-dict "
        "`:` type($address) `,` type($value) `->` type($result)"
    )

    def verify_(self) -> None:
        """An element an address."""
        _check_addresses(self, self.address.type, self.value.type)


@irdl_op_definition
class AtomicCasOp(IRDLOperation):
    """Puts elements at addresses in place of those that are expected there, at once."""

    name = "nv_tileas.pointer.atomic_cas"

    address = operand_def(NUMBERS)
    expected = operand_def(NUMBERS)
    value = operand_def(NUMBERS)
    mask = opt_operand_def(NUMBERS)
    semantics = opt_prop_def(base(StringAttr))
    scope = opt_prop_def(base(StringAttr))
    result = result_def(NUMBERS)

    irdl_options = (_SEGMENTS, ParsePropInAttrDict())
    assembly_format = (
        "$address `,` $expected `,` $value (`mask` $mask^ `:` type($mask))? attr-dict "
        "`:` type($address) `,` type($expected) `,` type($value) `->` type($result)"
    )

    def verify_(self) -> None:
        """An element an address."""
        _check_addresses(self, self.address.type, self.value.type)


class _Cast(IRDLOperation):
    source = operand_def(NUMBERS)
    result = result_def(NUMBERS)
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"


class _Two(IRDLOperation):
    a = operand_def(REGISTER)
    b = operand_def(REGISTER)
    result = result_def(REGISTER)
    assembly_format = "$a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($result)"


class _OnCondition(IRDLOperation):
    condition = operand_def(NUMBERS)
    message = opt_prop_def(base(StringAttr))

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition attr-dict `:` type($condition)"


@irdl_op_definition
class CatOp(IRDLOperation):
    """Two tiles one after the other along a dimension: the first unless stated."""

    name = "nv_tileas.cat"

    a = operand_def(REGISTER)
    b = operand_def(REGISTER)
    axis = opt_prop_def(base(IntegerAttr))
    result = result_def(REGISTER)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($result)"


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Elements of a tile along an axis, each picked by an index."""

    name = "nv_tileas.gather"

    source = operand_def(REGISTER)
    indices = operand_def(REGISTER)
    axis = prop_def(base(IntegerAttr))
    result = result_def(REGISTER)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$source `[` $indices `]` attr-dict "
        "`:` type($source) `[` type($indices) `]` `->` type($result)"
    )

    def verify_(self) -> None:
        """An element an index."""
        if shape_of(self.indices.type) != shape_of(self.result.type):
            told = f"{self.result.type} picked by {self.indices.type}"
            raise VerifyException(f"`{self.name}`: {told}")


@irdl_op_definition
class ExtractOp(IRDLOperation):
    """A part of a tile by its index, counted in parts; the only element without one."""

    name = "nv_tileas.extract"

    source = operand_def(REGISTER)
    indices = var_operand_def(base(IntegerType) | base(IndexType))
    result = result_def(NUMBERS)

    assembly_format = (
        "$source (`[` $indices^ `:` type($indices) `]`)? attr-dict "
        "`:` type($source) `->` type($result)"
    )


@irdl_op_definition
class SplitOp(IRDLOperation):
    """The two halves of a last dimension of size 2."""

    name = "nv_tileas.split"

    source = operand_def(REGISTER)
    first = result_def(REGISTER)
    second = result_def(REGISTER)
    assembly_format = "$source attr-dict `:` type($source) `->` type($first) `,` type($second)"


@irdl_op_definition
class TokenOp(IRDLOperation):
    """Order: after all of these."""

    name = "nv_tileas.token"

    after = var_operand_def(TOKEN)
    result = result_def(TOKEN)
    assembly_format = "($after^)? attr-dict `:` type($result)"


class CombiningOp(IRDLOperation):
    """Tiles put together along an axis, two elements of each at a time, as its region says."""

    sources = var_operand_def(REGISTER)
    axis = prop_def(base(IntegerAttr))
    reverse = opt_prop_def(base(IntegerAttr))
    made = var_result_def(NUMBERS)
    combine = region_def("single_block")

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$sources $combine attr-dict `:` functional-type($sources, $made)"

    def verify_(self) -> None:
        """Two elements of each source in, one of each out."""
        count, block = len(self.sources), self.combine.block
        last = block.last_op
        if len(self.made) != count or len(block.args) != 2 * count:
            told = f"{count} sources, {len(self.made)} results, {len(block.args)} arguments"
            raise VerifyException(f"`{self.name}` has {told}")
        if not isinstance(last, CombinedOp) or len(last.values) != count:
            raise VerifyException(f"`{self.name}`: its region does not end in {count} elements")


@irdl_op_definition
class CombinedOp(IRDLOperation):
    """What two elements make."""

    name = "nv_tileas.combined"

    values = var_operand_def(NUMBERS)

    traits = traits_def(IsTerminator())
    assembly_format = "$values attr-dict `:` type($values)"


OPERATIONS = (
    define(CombiningOp, "reduce.with", "Elements along an axis, put together to one."),
    define(CombiningOp, "scan", "Elements along an axis, each put together with those before it."),
    CombinedOp,
    define(_OfGrid, "block_index", "Which block this is, along an axis of the grid."),
    define(_OfGrid, "block_count", "How many blocks there are along an axis of the grid."),
    TileCountOp,
    RangeOp,
    TensorViewOp,
    OffsetOp,
    PointerLoadOp,
    PointerCopyOp,
    PointerStoreOp,
    AtomicRmwOp,
    AtomicCasOp,
    define(_Cast, "pointer_to_int", "An address as a number."),
    define(_Cast, "pointer_cast", "An address as one of another type."),
    define(_Cast, "int_to_pointer", "A number as an address."),
    define(_Two, "join", "Two tiles along a new last dimension."),
    CatOp,
    GatherOp,
    ExtractOp,
    SplitOp,
    define(_OnCondition, "assume", "That a condition holds is promised."),
    define(_OnCondition, "assert", "That a condition holds is claimed."),
    TokenOp,
)
