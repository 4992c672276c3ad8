"""What a pipelined loop becomes: a program with its rings, orders and trip count.

    program { %n = trip_count ...
              %ring = create_ring ...      %order = create_mutex ...
              agents, or prologue, kernel and epilogue }

    await %order {distance = 1}      arrive %order      slot %ring[%i]      fill %x into %ring

A mutex counts: its holder arrives once an iteration, and the n-th wait at a distance d goes on
when it has arrived n + 1 - d times. `work_tile_info` says which tile a persistent block is at.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    i1,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    base,
    eq,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from stretto.ir.dialect.pipeline import ITERATOR, PIPELINE, check_yield
from stretto.ir.dialect.types import MutexType, same_slot, shape_of, struct_members

COUNT = base(IndexType) | base(IntegerType)
MUTEX = eq(MutexType())


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """A pipelined loop. `loop` is what it was made of, but for what its operations say."""

    name = "nv_tileas.async.pipeline.program"

    mode = prop_def(base(StringAttr))
    machine = prop_def(base(StringAttr))
    ii = prop_def(base(IntegerAttr))
    stage_count = prop_def(base(IntegerAttr))
    ops = prop_def(base(ArrayAttr))
    """Names of its operations, as the loop had them."""
    sequence = opt_prop_def(base(ArrayAttr))
    """In what order a step issues them, where the text does not tell."""
    fused = opt_prop_def(base(ArrayAttr))
    flags = opt_prop_def(base(IntegerAttr))
    """4: trivial, a consumer takes what nobody in the loop makes."""
    loop = prop_def(base(DictionaryAttr))
    made = var_result_def(AnyAttr())
    body = region_def("single_block")

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$body (`->` type($made)^)? attr-dict-with-keyword"

    def verify_(self) -> None:
        """It yields what it results in."""
        check_yield(self, self.body.block, self.made.types, "it", "it")


@irdl_op_definition
class TripCountOp(IRDLOperation):
    """How many iterations a loop from, to and by these has; 0 or less: none."""

    name = "nv_tileas.async.pipeline.trip_count"
    T: ClassVar = VarConstraint("T", COUNT)

    lower = operand_def(T)
    upper = operand_def(T)
    step = operand_def(T)
    result = result_def(T)

    assembly_format = "$lower `to` $upper `step` $step attr-dict `:` type($result)"


@irdl_op_definition
class CreateRingOp(IRDLOperation):
    """Copies that iterations take in turn: of a storage or of a value.

    With an operand, the one copy is a buffer that is there already, or begins as that value.
    """

    name = "nv_tileas.async.pipeline.create_ring"

    buffer = opt_operand_def(AnyAttr())
    storage = opt_prop_def(base(StringAttr))
    value = opt_prop_def(base(StringAttr))
    called = opt_prop_def(base(StringAttr))
    """Its name, where it is not that of its storage or value."""
    fixed = opt_prop_def(base(UnitAttr))
    lifetime = opt_prop_def(base(IntegerAttr))
    result = result_def(PIPELINE)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "(`(` $buffer^ `:` type($buffer) `)`)? attr-dict `:` type($result)"

    def verify_(self) -> None:
        """One copy of what is there already."""
        type = self.result.type
        if self.storage is not None and self.value is not None:
            raise VerifyException(f"`{self.name}` is of a storage and of a value")
        if self.buffer is None:
            return
        if type.stages.data != 1 or type.slot != self.buffer.type:
            told = f"{self.buffer.type} is no ring {type}"
            raise VerifyException(f"`{self.name}`: one copy of {told}")


@irdl_op_definition
class SlotOp(IRDLOperation):
    """A slot of a ring, or what a slot of registers holds; without an iterator, any slot."""

    name = "nv_tileas.async.pipeline.slot"

    ring = operand_def(PIPELINE)
    iterator = opt_operand_def(ITERATOR)
    result = result_def(AnyAttr())

    assembly_format = "$ring (`[` $iterator^ `]`)? attr-dict `:` type($ring) `->` type($result)"

    def verify_(self) -> None:
        """The slot's type."""
        same_slot(self, self.ring.type, self.result.type)


@irdl_op_definition
class FillOp(IRDLOperation):
    """A value into a ring of one slot in registers."""

    name = "nv_tileas.async.pipeline.fill"

    value = operand_def(AnyAttr())
    ring = operand_def(PIPELINE)

    assembly_format = "$value `into` $ring attr-dict `:` type($value) `->` type($ring)"

    def verify_(self) -> None:
        """The slot's type."""
        same_slot(self, self.ring.type, self.value.type)


@irdl_op_definition
class CreateMutexOp(IRDLOperation):
    """An order that no data carries: who waits stays out until `holder` is `latency` on.

    One that is `private` orders the operations of one agent.
    """

    name = "nv_tileas.async.pipeline.create_mutex"

    holder = prop_def(base(StringAttr))
    latency = prop_def(base(IntegerAttr))
    called = opt_prop_def(base(StringAttr))
    waiters = opt_prop_def(base(ArrayAttr))
    excludes = opt_prop_def(base(ArrayAttr))
    private = opt_prop_def(base(UnitAttr))
    result = result_def(MUTEX)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def verify_(self) -> None:
        """A mutex between agents says who waits, and for whose sake."""
        told = (self.called, self.waiters, self.excludes)
        if self.private is None and any(what is None for what in told):
            raise VerifyException(f"`{self.name}` needs `called`, `waiters` and `excludes`")


@irdl_op_definition
class AwaitOp(IRDLOperation):
    """Waits until the holder of `distance` iterations before has come so far."""

    name = "nv_tileas.async.pipeline.await"

    mutex = operand_def(MUTEX)
    distance = opt_prop_def(base(IntegerAttr))

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$mutex attr-dict"


@irdl_op_definition
class ArriveOp(IRDLOperation):
    """Lets the waiters go on, as soon as the holder has come so far."""

    name = "nv_tileas.async.pipeline.arrive"

    mutex = operand_def(MUTEX)

    assembly_format = "$mutex attr-dict"


@irdl_op_definition
class WorkTileInfoOp(IRDLOperation):
    """Where a tile of a persistent loop lies: a coordinate an axis, and whether there is one.

    It is told by the number of the tile; or it arrives, as what an asynchronous read makes: a tile
    of whole numbers in registers, or a descriptor as CUTLASS has it (an `!llvm.struct`), a
    coordinate an axis and last whether there is one.
    """

    name = "nv_tileas.work_tile_info"

    index = operand_def(AnyAttr())
    """A whole number, or a descriptor."""
    extents = var_operand_def(COUNT)
    """Of a problem that is known at run time only."""
    problem = opt_prop_def(base(DenseArrayBase))
    tile = prop_def(base(DenseArrayBase))
    cluster = prop_def(base(DenseArrayBase))
    blocks = opt_prop_def(base(IntegerAttr))
    """Blocks that share the tiles; else the step of the loop, if constant; else one cluster's."""
    parts = var_result_def(AnyAttr())

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$index (`of` $extents^ `:` type($extents))? attr-dict `:` type($index) `->` type($parts)"
    )

    def shape(self, of: Attribute | None) -> tuple[int, ...]:
        """The extents that one of the three says."""
        return of.get_values() if isa(of, DenseArrayBase[IntegerType]) else ()

    @property
    def arrives(self) -> bool:
        """Whether it is what an asynchronous read makes, or a descriptor."""
        return (
            isinstance(self.index.type, TensorType) or struct_members(self.index.type) is not None
        )

    @property
    def members(self) -> tuple[Attribute, ...]:
        """The types of what arrives: a coordinate an axis, and the validity."""
        members = struct_members(self.index.type)
        if members is not None:
            return members
        numbers = shape_of(self.index.type) or ()
        return (self.counted_in,) * (numbers[0] if len(numbers) == 1 else 0)

    @property
    def counted_in(self) -> Attribute:
        """The type of a coordinate."""
        type = self.index.type
        members = struct_members(type)
        if members is not None:
            return members[0] if members else type
        return type.element_type if isa(type, TensorType) else type

    def verify_(self) -> None:
        """Results in one representation: coordinates like the index, and a bit."""
        types = tuple(self.parts.types)
        if not self.arrives and not isinstance(self.index.type, IntegerType | IndexType):
            raise VerifyException(f"`{self.name}`: {self.index.type} is no index and no descriptor")
        axes = len(self.shape(self.problem)) or len(self.extents)
        if self.arrives:
            axes = self._verify_arrived(axes)
        elif (self.problem is None) == (not self.extents):
            raise VerifyException(f"`{self.name}` has a `problem`, or extents `of` one: either")
        if len(types) != axes + 1:
            raise VerifyException(
                f"`{self.name}` has {len(types)} results; a problem of {axes} axes needs "
                f"{axes + 1}: a coordinate an axis, and the validity"
            )
        for axis, type in enumerate((*types[:-1], *self.extents.types)):
            if type != self.counted_in:
                told = f"coordinate {axis} is {type}, the index {self.counted_in}"
                raise VerifyException(f"`{self.name}`: {told}")
        if types[-1] != i1:
            raise VerifyException(f"`{self.name}`: the validity is {types[-1]}; it must be i1")

    def _verify_arrived(self, axes: int) -> int:
        """One number a coordinate, and one for the validity; how many axes the tile has."""
        wanted = len(self.shape(self.tile)) + 1
        whole = all(isinstance(member, IntegerType) for member in self.members)
        alike = all(member == self.counted_in for member in self.members[:-1])
        if not whole or not alike or len(self.members) != wanted:
            raise VerifyException(
                f"`{self.name}` arrives as {self.index.type}; a tile of {wanted - 1} axes takes "
                f"{wanted} whole numbers: a coordinate an axis, and the validity"
            )
        if self.extents or axes not in (0, wanted - 1):
            raise VerifyException(f"`{self.name}` arrives, and is of no other problem")
        return wanted - 1


OPERATIONS = (
    ProgramOp,
    TripCountOp,
    CreateRingOp,
    SlotOp,
    FillOp,
    CreateMutexOp,
    AwaitOp,
    ArriveOp,
    WorkTileInfoOp,
)
