"""Tiles by where they live, and the types that carry no data.

tensor<128x64xf16>                          registers (MLIR's own type)
!nv_tileas.smem_ref<128x64xf16>             shared memory
!nv_tileas.tmem_ref<128x128xf32>            tensor memory
!nv_tileas.tensor<4096x?xf16, global>       global memory, or any buffer by name
!nv_tileas.token                            order between asynchronous operations
!nv_tileas.pipeline<3, !nv_tileas.smem_ref<128x64xf16>>     a ring of 3 tiles
!nv_tileas.iterator                         a place in such a ring
!nv_tileas.mutex                            order between agents, counted

And what operations ask of the types of their operands and results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import TypeVar
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
from xdsl.irdl import (
    AttrConstraint,
    IntConstraint,
    IRDLOperation,
    eq,
    irdl_attr_definition,
    irdl_op_definition,
    param_def,
)
from xdsl.irdl.constraints import VerificationContext
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.hints import isa

from stretto.loop.parts import TileType, element_bits
from stretto.ops.spaces import (
    BUFFERS,
    BY_NAME,
    GLOBAL,
    MEMORIES,
    REGISTERS,
    SPACES,
    words_of,
)


@dataclass(frozen=True, init=False)
class _Tile(ParametrizedAttribute, TypeAttribute):
    """A shape and an element, in angle brackets: `<128x64xf16>`."""

    shape: ArrayAttr[IntAttr]
    element: StringAttr

    def __init__(self, shape: Sequence[int], element: str, *more: Attribute):
        super().__init__(ArrayAttr([IntAttr(d) for d in shape]), StringAttr(element), *more)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """`<128x64xf16>`."""
        with parser.in_angle_brackets():
            dimensions = parser.parse_dimension_list()
            if dimensions:
                parser.parse_shape_delimiter()
            element = StringAttr(parser.parse_identifier(" as element type"))
            shape = ArrayAttr([IntAttr(d) for d in dimensions])
            return shape, element, *cls._parse_more(parser)

    @classmethod
    def _parse_more(cls, parser: AttrParser) -> Sequence[Attribute]:
        del parser
        return ()

    def print_parameters(self, printer: Printer) -> None:
        """`<128x64xf16>`."""
        with printer.in_angle_brackets():
            dimensions = [d.data for d in self.shape.data]
            if dimensions:
                printer.print_dimension_list(dimensions)
                printer.print_string("x")
            printer.print_string(self.element.data + self._more())

    def _more(self) -> str:
        return ""

    def verify(self) -> None:
        """Whole dimensions, unless it is global; a known element."""
        for position, dimension in enumerate(self.shape.data):
            if dimension.data == DYNAMIC_INDEX and buffer_of(self) != GLOBAL:
                told = "only tiles in global memory may be of any size"
                raise VerifyException(f"dimension {position} is `?`; {told}")
            if dimension.data != DYNAMIC_INDEX and dimension.data < 1:
                told = f"dimension {position} is {dimension.data}"
                raise VerifyException(f"{told}; at least 1 is needed")
        if element_bits(self.element.data) is None:
            told = "is not an element type such as f16, bf16 or i32"
            raise VerifyException(f"`{self.element.data}` {told}")


@irdl_attr_definition
class SmemRefType(_Tile):
    """A tile in shared memory."""

    name = "nv_tileas.smem_ref"

    def __init__(self, shape: Sequence[int], element: str):
        super().__init__(shape, element)


@irdl_attr_definition
class TmemRefType(_Tile):
    """A tile in tensor memory."""

    name = "nv_tileas.tmem_ref"

    def __init__(self, shape: Sequence[int], element: str):
        super().__init__(shape, element)


@irdl_attr_definition
class BufferTensorType(_Tile):
    """A tile in a buffer that is named: `<4096x?xf16, global>`, smem, tmem or register."""

    name = "nv_tileas.tensor"

    buffer: StringAttr

    def __init__(self, shape: Sequence[int], element: str, buffer: str):
        super().__init__(shape, element, StringAttr(buffer))

    @classmethod
    def _parse_more(cls, parser: AttrParser) -> Sequence[Attribute]:
        parser.parse_punctuation(",")
        return (StringAttr(parser.parse_identifier(" as buffer")),)

    def _more(self) -> str:
        return f", {self.buffer.data}"

    def verify(self) -> None:
        """A known buffer; the rest as of every tile."""
        if self.buffer.data not in BUFFERS:
            raise VerifyException(f"`{self.buffer.data}` is no buffer; {', '.join(BUFFERS)} are")
        super().verify()


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """An address in global memory, of elements of one type; in a register it takes 64 bits."""

    name = "nv_tileas.ptr"

    pointee: Attribute = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """`<f16>`."""
        with parser.in_angle_brackets():
            return [parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        """`<f16>`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.pointee)

    def verify(self) -> None:
        """Of numbers."""
        if not _is_scalar(self.pointee):
            raise VerifyException(f"an address of {self.pointee}; it is one of numbers")


_ADDRESS = "i64"
"""What an address is in a register."""


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
TYPES = (
    *_OF_ONE_SPACE,
    BufferTensorType,
    PointerType,
    TokenType,
    IteratorType,
    MutexType,
    PipelineType,
)


def shape_of(type: Attribute) -> tuple[int, ...] | None:
    """The dimensions of a tile or scalar, DYNAMIC_INDEX for `?`; None for what has none."""
    if isinstance(type, _Tile):
        return tuple(d.data for d in type.shape.data)
    if isa(type, TensorType):
        return tuple(type.get_shape())
    return () if _is_scalar(type) or isinstance(type, PointerType) else None


def pointee_of(type: Attribute) -> Attribute | None:
    """What an address, or a tile of such, points to; None for anything else."""
    element = type.element_type if isa(type, TensorType) else type
    return element.pointee if isinstance(element, PointerType) else None


def element_of(type: Attribute) -> str | None:
    """The element of a tile or scalar, as text."""
    if isinstance(type, _Tile):
        return type.element.data
    if isa(type, TensorType):
        return element_of(type.element_type)
    if isinstance(type, PointerType):
        return _ADDRESS
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
    element = builtin_element(tile) if SPACES[space].mlir == _BUILT_IN else None
    if element is None:
        return BufferTensorType(tile.shape, tile.element, space)
    return TensorType(element, tile.shape) if tile.shape else element


def builtin_element(tile: TileType) -> Attribute | None:
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


# What operations ask of types --------------------------------------------------------------


class _OfType(AttrConstraint):
    def mapping_type_vars(
        self,
        type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint],  # noqa: ARG002
    ) -> AttrConstraint:
        """Nothing to map."""
        return self


@dataclass(frozen=True)
class InBuffer(_OfType):
    """A tile that lives in one of some buffers: ``InBuffer(("smem",))``."""

    buffers: tuple[str, ...]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:  # noqa: ARG002
        """Refuse anything else."""
        if buffer_of(attr) not in self.buffers:
            places = " or ".join(words_of(buffer) for buffer in self.buffers)
            raise VerifyException(f"{attr} is not a tile in {places}")


@dataclass(frozen=True)
class InRegistersOrScalar(_OfType):
    """A tile in registers, or a scalar or an address that is spread over one."""

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:  # noqa: ARG002
        """Refuse anything else."""
        scalar = _is_scalar(attr) or isinstance(attr, PointerType)
        if not scalar and buffer_of(attr) != REGISTERS:
            raise VerifyException(f"{attr} is neither a tile in registers nor a scalar")


OFF_CHIP = InBuffer((GLOBAL,))
SMEM = InBuffer(("smem",))
TMEM = InBuffer(("tmem",))
REGISTER = InBuffer((REGISTERS,))
ANY_TILE = InBuffer(BUFFERS)
SHARED = InBuffer(MEMORIES)
FACTOR = InBuffer(tuple(SPACES))
NUMBERS = InRegistersOrScalar()
TOKEN = eq(TokenType())


def same_elements(op: Operation, **types: Attribute) -> None:
    """Refuse tiles whose elements differ."""
    (first, first_type), *rest = types.items()
    for name, type in rest:
        if element_of(type) != element_of(first_type):
            raise VerifyException(
                f"`{op.name}`: {name} has elements of {element_of(type)}, "
                f"{first} of {element_of(first_type)}"
            )


def same_shape(op: Operation, **types: Attribute) -> None:
    """Refuse tiles whose shapes or elements differ."""
    same_elements(op, **types)
    (first, first_type), *rest = types.items()
    for name, type in rest:
        if shape_of(type) != shape_of(first_type):
            raise VerifyException(
                f"`{op.name}`: {name} is {describe(type)}, {first} is {describe(first_type)}"
            )


def describe(type: Attribute) -> str:
    """A tile as people write it: 128x64xf16."""
    shape, element = shape_of(type), element_of(type)
    if shape is None or element is None:
        return str(type)
    return "x".join([*("?" if d == DYNAMIC_INDEX else str(d) for d in shape), element])


# Operations that differ from others by their names alone ---------------------------------


def define(base_class: type[IRDLOperation], kind: str, meaning: str) -> type[IRDLOperation]:
    """The operation `nv_tileas.<kind>`, of the operands and syntax of a base class."""
    title = "".join(part.capitalize() for part in kind.split("."))
    names = {"name": f"nv_tileas.{kind}", "__doc__": meaning, "__module__": __name__}
    return irdl_op_definition(type(f"{title}Op", (base_class,), names))


def struct_members(type: Attribute) -> tuple[Attribute, ...] | None:
    """The types that an `!llvm.struct` is made of; None: it is none."""
    if type.name != "llvm.struct":
        return None
    from xdsl.dialects.llvm import LLVMStructType  # noqa: PLC0415 - loaded by whoever has one

    assert isinstance(type, LLVMStructType)
    return type.types.data
