"""A loop of a module, looked at by someone who is about to take it apart.

%a = load ... into %ring      value `a`   ──►  %a        storage `ring`  ──►  %ring
iter_args(%m = %m0)           `m` of the iteration before the first  ──►  %m0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.scf import ForOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from stretto.ir.attributes import CONSTRAINT, SCHEDULE, STATED, stated_op
from stretto.ir.dialect.barriers import GenericOp
from stretto.ir.dialect.pipeline import BODIES
from stretto.ir.dialect.types import TokenType, buffer_of, type_of
from stretto.ir.reading.flow import Flow
from stretto.ir.reading.values import Homes, inside, yielded
from stretto.loop import Loop, Storage, TileType
from stretto.vocabulary.spaces import MEMORIES

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
    homes: Homes = field(default_factory=Homes)

    def __post_init__(self) -> None:
        for name, op in self.ops.items():
            if isinstance(op, ForOp):
                raise UnwritableError(op, f"`{name}` is a loop inside it")
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
            places: list[int] = []
            at = 0
            for value in flow.read_by(op):
                while op.operands[at] is not value:
                    at += 1
                if flow.source_of(value) is not None:
                    places.append(at)
                at += 1
            found[name] = tuple(places)
        return found

    def operand(self, op: str, number: int) -> SSAValue | None:
        """The SSA operand that an operand is; None: it is only stated."""
        places = self.operand_at.get(op)
        return None if places is None else self.ops[op].operands[places[number]]

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
            value = yielded(self.for_op, value.index - 1)
            if len(found) > len(self.for_op.iter_args):
                break
        return found

    @property
    def induction(self) -> SSAValue:
        """The induction variable."""
        return self.for_op.body.block.args[0]

    def inside(self, value: SSAValue) -> bool:
        """Whether a value belongs to the loop."""
        return inside(value, self.for_op.body.block)

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
    def _flow(self) -> Flow:
        return Flow(self.for_op)

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


def constant_of(value: SSAValue) -> int | None:
    """The whole number that a value is known to be."""
    if isinstance(value, OpResult) and isinstance(value.op, ConstantOp):
        number = value.op.value
        if isa(number, IntegerAttr):
            return number.value.data
    return None


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
