"""What operations ask of the types of their operands and results.

InBuffer(("smem",))     a tile in shared memory
Numbers()               a tile in registers, or a scalar that is spread over one
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import TypeVar
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, IndexType, IntegerType
from xdsl.ir import Attribute, Operation
from xdsl.irdl import AttrConstraint, IntConstraint, eq
from xdsl.irdl.constraints import VerificationContext
from xdsl.utils.exceptions import VerifyException

from stretto.ir.dialect.types import TokenType, buffer_of, element_of, shape_of
from stretto.vocabulary.spaces import BUFFERS, GLOBAL, MEMORIES, REGISTERS, SPACES, words_of


@dataclass(frozen=True)
class InBuffer(AttrConstraint):
    """A tile that lives in one of some buffers."""

    buffers: tuple[str, ...]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:  # noqa: ARG002
        """Refuse anything else."""
        if buffer_of(attr) not in self.buffers:
            places = " or ".join(words_of(buffer) for buffer in self.buffers)
            raise VerifyException(f"{attr} is not a tile in {places}")

    def mapping_type_vars(
        self,
        type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint],  # noqa: ARG002
    ) -> AttrConstraint:
        """Nothing to map."""
        return self


@dataclass(frozen=True)
class Numbers(AttrConstraint):
    """A tile in registers, or a scalar."""

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:  # noqa: ARG002
        """Refuse anything else."""
        scalar = isinstance(attr, IntegerType | IndexType | AnyFloat)
        if not scalar and buffer_of(attr) != REGISTERS:
            raise VerifyException(f"{attr} is neither a tile in registers nor a scalar")

    def mapping_type_vars(
        self,
        type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint],  # noqa: ARG002
    ) -> AttrConstraint:
        """Nothing to map."""
        return self


OFF_CHIP = InBuffer((GLOBAL,))
SMEM = InBuffer(("smem",))
TMEM = InBuffer(("tmem",))
REGISTER = InBuffer((REGISTERS,))
ANY_TILE = InBuffer(BUFFERS)
SHARED = InBuffer(MEMORIES)
FACTOR = InBuffer(tuple(SPACES))
NUMBERS = Numbers()
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
