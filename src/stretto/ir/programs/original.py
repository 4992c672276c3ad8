"""The loop that a program replaces, and the place where something of it is written.

%a = load ... into %ring      value `a`   ──►  %a        storage `ring`  ──►  %ring
iter_args(%m = %m0)           `m` of the iteration before the first  ──►  %m0

prologue   iteration = step - stage                    a number
kernel     iteration = %step - stage                   the kernel's induction variable
epilogue   iteration = %trips + step - stage           the trip count
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.dialects.scf import ForOp
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from stretto.extraction.flow import BufferHomes, Flow
from stretto.extraction.source import NESTED
from stretto.ir.attributes import CONSTRAINT, SCHEDULE, STATED, stated_op
from stretto.ir.dialect.compute import GenericOp
from stretto.ir.dialect.pipeline import BODIES
from stretto.ir.dialect.types import TokenType, buffer_of, type_of
from stretto.ir.loops.module import ANY
from stretto.loop import Loop, Storage, TileType
from stretto.ops.spaces import MEMORIES

_OF_LOOP = (STATED, CONSTRAINT, SCHEDULE)
"""Attributes that belong to a loop and its schedule, not to an operation of a program."""


class UnwritableError(Exception):
    """A loop whose program has no text; `op` is where, `reason` why."""

    def __init__(self, op: Operation, reason: str) -> None:
        self.op = op
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True)
class Original:
    """A loop as the text has it, by the names of its operations, values and storages.

    UnwritableError if no program can be written of it.
    """

    for_op: ForOp
    ops: Mapping[str, Operation]
    """What each operation of the loop is in the text."""
    loop: Loop
    """The same loop, with costs."""
    homes: BufferHomes[Operation, Block, SSAValue] = field(default_factory=lambda: BufferHomes(ANY))
    buffers: Mapping[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """Buffers of the text that are its storages, those of regions among them."""

    def __post_init__(self) -> None:
        for name, op in self.ops.items():
            inner = op if not op.regions else next(filter(_is_loop, op.walk()), None)
            if inner is not None and _is_loop(inner):
                remedy = "materialize it alone, or unroll it"
                raise UnwritableError(inner, f"`{name}` is a loop inside it, or has one; {remedy}")
            if isinstance(op, BODIES):
                raise UnwritableError(op, f"`{name}` is a pipeline operation already")
            if name in self.stated and not isinstance(op, GenericOp):
                what = f"`{name}` states its operands"
                raise UnwritableError(op, f"{what}; only `nv_tileas.generic` may, to be rewritten")

    # Operands ---------------------------------------------------------------------------------

    @cached_property
    def stated(self) -> frozenset[str]:
        """Operations whose operands are stated, not said by SSA."""
        given = {name: stated_op(op).given for name, op in self.ops.items()}
        return frozenset(name for name, fields in given.items() if "operands" in fields)

    @cached_property
    def operand_at(self) -> dict[str, tuple[int, ...]]:
        """By operation, which SSA operand each operand of the loop's operation is."""
        flow = self._flow
        found: dict[str, tuple[int, ...]] = {}
        for name, op in self.ops.items():
            if name in self.stated:
                continue
            taken = [user.operands[n] for user, n in ANY.uses_of_others(op)]
            places: list[int] = []
            at = -1
            for value in flow.read_by(op):
                # Of what a region takes, the first use of each value counts.
                at = taken.index(value) if ANY.name(op) in NESTED else taken.index(value, at + 1)
                if flow.source_of(value) is not None:
                    places.append(at)
            found[name] = tuple(places)
        return found

    def operand(self, op: str, number: int) -> SSAValue | None:
        """The SSA operand that an operand is; None: it is only stated."""
        places = self.operand_at.get(op)
        if places is None:
            return None
        user, at = ANY.uses_of_others(self.ops[op])[places[number]]
        return user.operands[at]

    @cached_property
    def results(self) -> dict[str, SSAValue]:
        """What operations make, by the names of values."""
        return {
            name: result
            for op in self.loop.ops
            for name, result in zip(op.results, self.ops[op.name].results, strict=True)
        }

    @cached_property
    def live_ins(self) -> dict[str, SSAValue]:
        """What comes from outside, and the induction variable."""
        found: dict[str, SSAValue] = {}
        flow = self._flow
        for op in self.loop.ops:
            for number, operand in enumerate(op.operands):
                value = self.operand(op.name, number)
                source = None if value is None else flow.source_of(value)
                if source is not None and operand.value not in self.results:
                    found[operand.value] = source[0]
        above = self.for_op.parent_block()
        arguments = () if above is None else above.args
        named = {a.name_hint: a for a in arguments if a.name_hint is not None}
        for value in self.loop.values:
            if value.name not in self.results and value.name in named:
                found.setdefault(value.name, named[value.name])
        return found

    def before(self, value: SSAValue | None) -> list[SSAValue]:
        """What a carried value is in the first iterations."""
        found: list[SSAValue] = []
        block = self.for_op.body.block
        while isinstance(value, BlockArgument) and value.block is block and value.index > 0:
            found.append(self.for_op.iter_args[value.index - 1])
            value = ANY.yielded(self.for_op, value.index - 1)
            if len(found) > len(self.for_op.iter_args):
                break
        return found

    @property
    def induction(self) -> SSAValue:
        """The induction variable."""
        return self.for_op.body.block.args[0]

    def inside(self, value: SSAValue) -> bool:
        """Whether a value belongs to the loop."""
        return ANY.defined_in(value, self.for_op.body.block)

    # Storages ---------------------------------------------------------------------------------

    @cached_property
    def roots(self) -> dict[SSAValue, str]:
        """The buffers of the loop, each with its storage."""
        homes: dict[SSAValue, str] = {}
        named = {value.name: value.storage for value in self.loop.values}
        for name, value in (*self.results.items(), *self.live_ins.items()):
            home, storage = self.homes.of(value), named[name]
            if home is not None and storage is not None:
                homes.setdefault(home.root, storage)
        for storage, root in self.buffers.items():
            homes.setdefault(root, storage)
        return homes

    def storage_of(self, value: SSAValue) -> str | None:
        """The storage that a tile lives in."""
        home = self.homes.of(value)
        return None if home is None else self.roots.get(home.root)

    @cached_property
    def sums(self) -> dict[str, tuple[str, int]]:
        """Products that add up in registers: the storage, and which carried argument it is."""
        home = {value.name: value.storage for value in self.loop.values}
        names = {result: name for name, result in self.results.items()}
        found: dict[str, tuple[str, int]] = {}
        for made, argument in self._flow.sums.items():
            storage = home[names[made]] if made in names else None
            if storage is not None and isinstance(argument, BlockArgument):
                found[self.loop.producers[names[made]]] = (storage, argument.index - 1)
        return found

    @cached_property
    def _flow(self) -> Flow[Operation, Block, SSAValue]:
        return Flow(ANY, self.for_op)

    def buffer_of(self, storage: str) -> SSAValue | None:
        """The one buffer outside the loop that a storage is, or the value it begins as."""
        for name, position in self.sums.values():
            if name == storage:
                return self.for_op.iter_args[position]
        outside = [r for r, name in self.roots.items() if name == storage and not self.inside(r)]
        is_tile = outside and buffer_of(outside[0].type) in MEMORIES
        return outside[0] if is_tile else None

    def slot_type(self, storage: Storage) -> Attribute:
        """What a slot of a storage is; bytes, where the text does not say."""
        outside = self.buffer_of(storage.name)
        if outside is not None:
            return outside.type
        for root, name in self.roots.items():
            if name == storage.name and buffer_of(root.type) in MEMORIES:
                return root.type
        if storage.bytes < 1:
            return TokenType()
        return type_of(TileType((storage.bytes,), "i8"), storage.space)


def _is_loop(op: Operation) -> bool:
    return isinstance(op, ForOp)


def bare(op: Operation) -> Operation:
    """A copy of an operation without what the loop and its schedule say of it."""
    made = op.clone()
    for name in list(made.attributes):
        if name.startswith(_OF_LOOP):
            del made.attributes[name]
    for old, new in zip(op.results, made.results, strict=True):
        new.name_hint = old.name_hint
    return made


def with_operands(op: Operation, operands: list[SSAValue]) -> Operation:
    """An operation of any kind, of these operands."""
    made = GenericOp.create(
        operands=operands,
        result_types=op.result_types,
        properties=op.properties,
        attributes=op.attributes,
    )
    for old, new in zip(op.results, made.results, strict=True):
        new.name_hint = old.name_hint
    return made


# Where something is written ---------------------------------------------------------------

Count = IndexType | IntegerType
Section = Literal["prologue", "kernel", "epilogue"]


@dataclass
class Spot:
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
class Counts:
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

    def iteration(self, scope: Spot, stage: int, back: int = 0) -> SSAValue:
        """Which iteration a stage works on, or one before it."""
        offset = scope.step - stage - back
        if scope.base is None:
            return self.whole(offset)
        if offset == 0:
            return scope.base
        return scope.add(arith.AddiOp(scope.base, self.whole(offset)))

    def induction(self, scope: Spot, stage: int, back: int = 0) -> SSAValue:
        """What the loop's induction variable was in that iteration."""
        loop = self.original.for_op
        value = self.iteration(scope, stage, back)
        if ANY.constant(loop.step) != 1:
            value = scope.add(arith.MuliOp(value, loop.step))
        if ANY.constant(loop.lb) != 0:
            value = scope.add(arith.AddiOp(loop.lb, value))
        if value is not scope.base:
            value.name_hint = value.name_hint or self.original.induction.name_hint
        return value

    def is_iteration(self, scope: Spot, stage: int, back: int, number: int) -> SSAValue:
        """Whether a stage works on a certain iteration."""
        now = self.iteration(scope, stage, back)
        return scope.add(arith.CmpiOp(now, self.whole(number), "eq"))
