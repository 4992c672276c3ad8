"""Where an operation is being written: its section, its step, and what is at hand there.

prologue   iteration = step - stage                    a number
kernel     iteration = %step - stage                   the kernel's induction variable
epilogue   iteration = %trips + step - stage           the trip count
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from stretto.ir.programs.original import Original, constant_of

Count = IndexType | IntegerType
Section = Literal["prologue", "kernel", "epilogue"]


@dataclass
class Scope:
    """One place of the text."""

    block: Block
    step: int = 0
    base: SSAValue | None = None
    """What `step` is counted from; None: from the first step of all."""
    floor: int = 0
    """The least that the base can be."""
    iterators: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """Where each iterator stands."""
    made: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """Values that were made in this step."""

    def least(self, stage: int) -> int:
        """The least iteration that a stage can be at here; the only one where there is no base."""
        return self.floor + self.step - stage

    def add(self, op: Operation) -> SSAValue:
        """An operation of one result."""
        self.block.add_op(op)
        return op.results[0]


@dataclass
class Numbers:
    """Constants and counts of one program; the constants stand at its very top."""

    original: Original
    top: list[Operation] = field(default_factory=list[Operation])
    _known: dict[tuple[int, Attribute], SSAValue] = field(
        default_factory=dict[tuple[int, Attribute], SSAValue]
    )
    _clones: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    @property
    def type(self) -> Count:
        """What the loop counts in."""
        type = self.original.induction.type
        assert isa(type, IndexType | IntegerType)
        return type

    def whole(self, number: int) -> SSAValue:
        """A whole number."""
        key = (number, self.type)
        if key not in self._known:
            made = arith.ConstantOp(IntegerAttr(number, self.type))
            made.result.name_hint = f"c{number}" if number >= 0 else f"c.{-number}"
            self.top.append(made)
            self._known[key] = made.result
        return self._known[key]

    def immediate(self, value: SSAValue) -> SSAValue:
        """A constant of the loop's body, outside of it."""
        if value not in self._clones:
            assert isinstance(value.owner, Operation)
            made = value.owner.clone()
            self.top.append(made)
            self._clones[value] = made.results[0]
        return self._clones[value]

    def poison(self, type: Attribute) -> SSAValue:
        """A value nobody reads."""
        made = PoisonOp(type)
        self.top.append(made)
        made.result.name_hint = "nothing"
        return made.result

    def iteration(self, scope: Scope, stage: int, back: int = 0) -> SSAValue:
        """Which iteration a stage works on, or one before it."""
        offset = scope.step - stage - back
        if scope.base is None:
            return self.whole(offset)
        if offset == 0:
            return scope.base
        return scope.add(arith.AddiOp(scope.base, self.whole(offset)))

    def induction(self, scope: Scope, stage: int, back: int = 0) -> SSAValue:
        """What the loop's induction variable was in that iteration."""
        loop = self.original.for_op
        value = self.iteration(scope, stage, back)
        if constant_of(loop.step) != 1:
            value = scope.add(arith.MuliOp(value, loop.step))
        if constant_of(loop.lb) != 0:
            value = scope.add(arith.AddiOp(loop.lb, value))
        if value is not scope.base:
            value.name_hint = value.name_hint or self.original.induction.name_hint
        return value

    def is_iteration(self, scope: Scope, stage: int, back: int, number: int) -> SSAValue:
        """Whether a stage works on a certain iteration."""
        now = self.iteration(scope, stage, back)
        return scope.add(arith.CmpiOp(now, self.whole(number), "eq"))
