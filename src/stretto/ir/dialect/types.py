"""Tiles by where they live, and the types that carry no data.

tensor<128x64xf16>                          registers (MLIR's own type)
!nv_tileas.smem_ref<128x64xf16>             shared memory
!nv_tileas.tmem_ref<128x128xf32>            tensor memory
!nv_tileas.tensor<4096x?xf16, global>       global memory, or any buffer by name
!nv_tileas.token                            order between asynchronous operations
!nv_tileas.pipeline<3, !nv_tileas.smem_ref<128x64xf16>>     a ring of 3 tiles
!nv_tileas.iterator                         a place in such a ring
!nv_tileas.mutex                            order between agents, counted
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    IndexType,
    IntAttr,
    IntegerType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.hints import isa

from stretto.loop.parts import TileType, element_bits
from stretto.vocabulary.spaces import BUFFERS, BY_NAME, GLOBAL, REGISTERS, SPACES


def _parse_shape(parser: AttrParser) -> tuple[ArrayAttr[IntAttr], StringAttr]:
    dimensions = parser.parse_dimension_list()
    if dimensions:
        parser.parse_shape_delimiter()
    element = parser.parse_identifier(" as element type")
    return ArrayAttr([IntAttr(d) for d in dimensions]), StringAttr(element)


def _print_shape(printer: Printer, shape: ArrayAttr[IntAttr], element: StringAttr) -> None:
    dimensions = [d.data for d in shape.data]
    if dimensions:
        printer.print_dimension_list(dimensions)
        printer.print_string("x")
    printer.print_string(element.data)


def _check_shape(shape: ArrayAttr[IntAttr], element: StringAttr, dynamic: bool) -> None:
    for position, dimension in enumerate(shape.data):
        if dimension.data == DYNAMIC_INDEX and not dynamic:
            raise VerifyException(
                f"dimension {position} is `?`; only tiles in global memory may be of any size"
            )
        if dimension.data != DYNAMIC_INDEX and dimension.data < 1:
            raise VerifyException(f"dimension {position} is {dimension.data}; at least 1 is needed")
    if element_bits(element.data) is None:
        raise VerifyException(f"`{element.data}` is not an element type such as f16, bf16 or i32")


def _attributes(
    shape: Sequence[int] | ArrayAttr[IntAttr], element: str | StringAttr
) -> tuple[ArrayAttr[IntAttr], StringAttr]:
    if not isinstance(shape, ArrayAttr):
        shape = ArrayAttr([IntAttr(d) for d in shape])
    return shape, StringAttr(element) if isinstance(element, str) else element


@irdl_attr_definition
class SmemRefType(ParametrizedAttribute, TypeAttribute):
    """A tile in shared memory."""

    name = "nv_tileas.smem_ref"

    shape: ArrayAttr[IntAttr] = param_def()
    element: StringAttr = param_def()

    def __init__(self, shape: Sequence[int] | ArrayAttr[IntAttr], element: str | StringAttr):
        super().__init__(*_attributes(shape, element))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """`<128x64xf16>`."""
        with parser.in_angle_brackets():
            return _parse_shape(parser)

    def print_parameters(self, printer: Printer) -> None:
        """`<128x64xf16>`."""
        with printer.in_angle_brackets():
            _print_shape(printer, self.shape, self.element)

    def verify(self) -> None:
        """Whole dimensions, a known element."""
        _check_shape(self.shape, self.element, dynamic=False)


@irdl_attr_definition
class TmemRefType(ParametrizedAttribute, TypeAttribute):
    """A tile in tensor memory."""

    name = "nv_tileas.tmem_ref"

    shape: ArrayAttr[IntAttr] = param_def()
    element: StringAttr = param_def()

    def __init__(self, shape: Sequence[int] | ArrayAttr[IntAttr], element: str | StringAttr):
        super().__init__(*_attributes(shape, element))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """`<128x128xf32>`."""
        with parser.in_angle_brackets():
            return _parse_shape(parser)

    def print_parameters(self, printer: Printer) -> None:
        """`<128x128xf32>`."""
        with printer.in_angle_brackets():
            _print_shape(printer, self.shape, self.element)

    def verify(self) -> None:
        """Whole dimensions, a known element."""
        _check_shape(self.shape, self.element, dynamic=False)


@irdl_attr_definition
class BufferTensorType(ParametrizedAttribute, TypeAttribute):
    """A tile in a buffer that is named: global, smem, tmem or register."""

    name = "nv_tileas.tensor"

    shape: ArrayAttr[IntAttr] = param_def()
    element: StringAttr = param_def()
    buffer: StringAttr = param_def()

    def __init__(
        self,
        shape: Sequence[int] | ArrayAttr[IntAttr],
        element: str | StringAttr,
        buffer: str | StringAttr,
    ):
        buffer = StringAttr(buffer) if isinstance(buffer, str) else buffer
        super().__init__(*_attributes(shape, element), buffer)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """`<4096x?xf16, global>`."""
        with parser.in_angle_brackets():
            shape, element = _parse_shape(parser)
            parser.parse_punctuation(",")
            return shape, element, StringAttr(parser.parse_identifier(" as buffer"))

    def print_parameters(self, printer: Printer) -> None:
        """`<4096x?xf16, global>`."""
        with printer.in_angle_brackets():
            _print_shape(printer, self.shape, self.element)
            printer.print_string(f", {self.buffer.data}")

    def verify(self) -> None:
        """A known buffer; whole dimensions unless it is global."""
        if self.buffer.data not in BUFFERS:
            raise VerifyException(f"`{self.buffer.data}` is no buffer; {', '.join(BUFFERS)} are")
        _check_shape(self.shape, self.element, dynamic=self.buffer.data == GLOBAL)


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """Order: whoever takes it starts when its maker is done."""

    name = "nv_tileas.token"


@irdl_attr_definition
class IteratorType(ParametrizedAttribute, TypeAttribute):
    """A place in a pipeline's ring, and the phase it is in."""

    name = "nv_tileas.iterator"


@irdl_attr_definition
class MutexType(ParametrizedAttribute, TypeAttribute):
    """How often somebody has let go."""

    name = "nv_tileas.mutex"


@irdl_attr_definition
class PipelineType(ParametrizedAttribute, TypeAttribute):
    """A ring of tiles between producers and consumers."""

    name = "nv_tileas.pipeline"

    stages: IntAttr = param_def()
    slot: Attribute = param_def()

    def __init__(self, stages: int | IntAttr, slot: Attribute):
        super().__init__(IntAttr(stages) if isinstance(stages, int) else stages, slot)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """`<3, !nv_tileas.smem_ref<128x64xf16>>`."""
        with parser.in_angle_brackets():
            stages = parser.parse_integer(allow_boolean=False)
            parser.parse_punctuation(",")
            return IntAttr(stages), parser.parse_type()

    def print_parameters(self, printer: Printer) -> None:
        """`<3, !nv_tileas.smem_ref<128x64xf16>>`."""
        with printer.in_angle_brackets():
            printer.print_string(f"{self.stages.data}, ")
            printer.print_attribute(self.slot)

    def verify(self) -> None:
        """At least one stage; tiles on the chip, scalars or tokens."""
        if self.stages.data < 1:
            raise VerifyException(f"a pipeline of {self.stages.data} stages; at least 1 is needed")
        if buffer_of(self.slot) == GLOBAL or isinstance(self.slot, PipelineType):
            told = "its slots hold tiles on the chip, scalars or tokens"
            raise VerifyException(f"a pipeline of {self.slot}; {told}")


_OF_ONE_SPACE = (SmemRefType, TmemRefType)
"""Types of tiles that the rows of memory spaces name."""
_TILES = (*_OF_ONE_SPACE, BufferTensorType)
TYPES = (*_TILES, TokenType, IteratorType, MutexType, PipelineType)


def shape_of(type: Attribute) -> tuple[int, ...] | None:
    """The dimensions of a tile or scalar, DYNAMIC_INDEX for `?`; None for what has none."""
    if isinstance(type, _TILES):
        return tuple(d.data for d in type.shape.data)
    if isa(type, TensorType):
        return tuple(type.get_shape())
    return () if _is_scalar(type) else None


def element_of(type: Attribute) -> str | None:
    """The element of a tile or scalar, as text."""
    if isinstance(type, _TILES):
        return type.element.data
    if isa(type, TensorType):
        return element_of(type.element_type)
    return str(type) if _is_scalar(type) else None


def _is_scalar(type: Attribute) -> bool:
    return isinstance(type, IntegerType | IndexType | AnyFloat)


def tile_of(type: Attribute) -> TileType | None:
    """The tile or scalar a type describes; None for tokens and what has a `?` in its shape."""
    shape, element = shape_of(type), element_of(type)
    if shape is None or element is None or min(shape, default=1) < 1:
        return None
    return TileType(shape, element) if element_bits(element) is not None else None


_NAMED = {defined.name: defined for defined in _OF_ONE_SPACE}
_BUILT_IN = SPACES[REGISTERS].mlir
_OWN_TYPE = {
    space: _NAMED[row.mlir] for space, row in SPACES.items() if row.mlir not in (BY_NAME, _BUILT_IN)
}
"""By space; a row that names a type which is none is told when this is loaded."""
_SPACE_OF = {defined: space for space, defined in _OWN_TYPE.items()}


def buffer_of(type: Attribute) -> str | None:
    """The buffer a tile lives in: global, or a space; None for scalars and tokens."""
    if isinstance(type, _OF_ONE_SPACE):
        return _SPACE_OF[type.__class__]
    if isinstance(type, BufferTensorType):
        return type.buffer.data
    return REGISTERS if isinstance(type, TensorType) else None


def type_of(tile: TileType, space: str) -> Attribute:
    """The type of a tile in a space, or of a scalar in registers."""
    if space in _OWN_TYPE:
        return _OWN_TYPE[space](tile.shape, tile.element)
    element = _builtin_element(tile) if SPACES[space].mlir == _BUILT_IN else None
    if element is None:
        return BufferTensorType(tile.shape, tile.element, space)
    return TensorType(element, tile.shape) if tile.shape else element


def _builtin_element(tile: TileType) -> Attribute | None:
    """MLIR's own type of that element, if it has one that reads back the same."""
    try:
        element = Parser(Context(), tile.element).parse_optional_type()
    except (ParseError, ValueError):
        return None
    return element if element is not None and str(element) == tile.element else None


def same_slot(op: Operation, ring: Attribute, held: Attribute) -> None:
    """Refuse anything that is not what a ring's slots hold."""
    if isinstance(ring, PipelineType) and ring.slot != held:
        raise VerifyException(f"`{op.name}`: {held} in a ring of {ring.slot}")
