"""What loops are taken out of: operations, blocks and values, and what is known of each.

    kernel tree    trees.py            a lowered kernel, as front ends and passes make it
    module         ir/loops/module.py  an MLIR text, in the dialect or in any other

Both are asked the same questions, so that what a loop is follows from one source code. An operation
has operands, results and blocks, a block arguments and operations; who makes a value, and what is
around it, either answers in constant time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from stretto.diagnostics import Diagnostic, Severity
from stretto.loop import Facts, Loop, Op, TileType, Written
from stretto.ops.opcodes import Opcode
from stretto.ops.spaces import REGISTERS

OpT = TypeVar("OpT")
BlockT = TypeVar("BlockT")
ValueT = TypeVar("ValueT")
"""Operations, blocks and values."""

FOR, IF, WHILE, PARALLEL = "scf.for", "scf.if", "scf.while", "scf.parallel"
FUNCTION = "func.func"
NESTED = (FOR, IF, WHILE)
"""Control flow that is one operation of the body it stands in."""
BODIES = ("nv_tileas.async.pipeline.producer_write", "nv_tileas.async.pipeline.consumer_read")
"""Operations whose body belongs to the loop around them."""
BODY_YIELD = "nv_tileas.async.pipeline.yield"
COMBINING = ("nv_tileas.reduce.with", "nv_tileas.scan")
"""Operations whose region says how two elements become one."""
WORK_TILE = "nv_tileas.work_tile_info"
OVER_TILES = "it goes over work tiles; the loops inside it are pipelined"
ALLOCATION, BARRIER, COPY = "nv_tileas.alloc_tensor", "nv_tileas.barrier", "nv_tileas.async.copy"


class UnreadableError(Exception):
    """A loop that cannot be read; `op` is where, `reason` why."""

    def __init__(self, op: object, reason: str) -> None:
        self.op = op
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class StatedOp:
    """What is stated of one operation: an `Op` of which the fields `given` count."""

    op: Op
    given: frozenset[str]


@dataclass(frozen=True, slots=True)
class StatedLoop:
    """What is stated of one loop: a `Loop` of which the fields `given` count."""

    loop: Loop
    given: frozenset[str]
    trip_count: int | None = None
    length: int | None = None


NOTHING = StatedOp(Op("", ""), frozenset())


class Source(ABC, Generic[OpT, BlockT, ValueT]):
    """Operations, blocks and values, and what follows from how they stand to each other."""

    # How they stand ------------------------------------------------------------------------------

    @abstractmethod
    def operands(self, op: OpT) -> Sequence[ValueT]:
        """What an operation takes."""

    @abstractmethod
    def results(self, op: OpT) -> Sequence[ValueT]:
        """What an operation makes."""

    @abstractmethod
    def blocks(self, op: OpT) -> Sequence[BlockT]:
        """The blocks of all of its regions."""

    @abstractmethod
    def has_regions(self, op: OpT) -> bool:
        """Whether there are regions, which may have no blocks."""

    @abstractmethod
    def operations(self, block: BlockT) -> Iterable[OpT]:
        """In the order of the text."""

    @abstractmethod
    def last(self, block: BlockT) -> OpT | None:
        """The last operation of a block."""

    @abstractmethod
    def arguments(self, block: BlockT) -> Sequence[ValueT]:
        """What a block is entered with."""

    @abstractmethod
    def block_of(self, op: OpT) -> BlockT | None:
        """The block that an operation stands in."""

    @abstractmethod
    def above(self, block: BlockT) -> OpT | None:
        """The operation that a block is part of."""

    @abstractmethod
    def maker(self, value: ValueT) -> OpT | None:
        """The operation that makes a value; None: it is an argument."""

    @abstractmethod
    def entered(self, value: ValueT) -> BlockT | None:
        """The block whose argument a value is; None: it is made, or nobody knows."""

    @abstractmethod
    def index(self, value: ValueT) -> int:
        """Which result, or which argument, a value is."""

    @abstractmethod
    def users(self, value: ValueT) -> Sequence[OpT]:
        """Who takes a value, each as often as it does."""

    @abstractmethod
    def place(self, op: OpT) -> int:
        """Which operation of all it is, in the order of the text."""

    @abstractmethod
    def all(self) -> Iterable[OpT]:
        """All operations, in the order of the text."""

    # What they are -------------------------------------------------------------------------------

    @abstractmethod
    def name(self, op: OpT) -> str:
        """What an operation is called, with its dialect."""

    @abstractmethod
    def kind(self, op: OpT) -> str:
        """The opcode by which machines know it."""

    @abstractmethod
    def row(self, op: OpT) -> Opcode:
        """What is true of an operation of the dialect; of any other, nothing."""

    @abstractmethod
    def generic(self, op: OpT) -> bool:
        """Whether the text of the operation names its opcode, of which the dialect has no own."""

    @abstractmethod
    def unknown(self, op: OpT) -> bool:
        """Whether no dialect knows it."""

    @abstractmethod
    def ends(self, op: OpT) -> bool:
        """Whether it ends its block."""

    @abstractmethod
    def pure(self, op: OpT) -> bool:
        """Whether it is known to leave memory alone."""

    @abstractmethod
    def destination(self, op: OpT) -> ValueT | None:
        """The buffer an operation fills, if it names one."""

    @abstractmethod
    def accumulator(self, op: OpT) -> ValueT | None:
        """The tile a product adds to in place."""

    @abstractmethod
    def hint(self, value: ValueT) -> str | None:
        """A name worth keeping."""

    @abstractmethod
    def buffer(self, value: ValueT) -> str | None:
        """The buffer a tile lives in: global, or a space; None for scalars and tokens."""

    @abstractmethod
    def far(self, value: ValueT) -> bool:
        """Whether it is an address, or a tile of such."""

    @abstractmethod
    def tile(self, value: ValueT) -> TileType | None:
        """The tile or scalar that a value is; None for tokens and what is of unknown size."""

    @abstractmethod
    def room(self, value: ValueT) -> tuple[TileType | None, str | None, int | None]:
        """What a buffer takes as a storage: its tile, its buffer, and the cap on its ring."""

    @abstractmethod
    def is_pipeline(self, value: ValueT) -> bool:
        """Whether it is a ring of tiles, by which several agents go."""

    @abstractmethod
    def constant(self, value: ValueT) -> int | None:
        """The whole number that a value is known to be."""

    @abstractmethod
    def immediate(self, value: ValueT) -> bool:
        """Whether an instruction can hold the value: a constant, one number however wide."""

    # What is said of them ------------------------------------------------------------------------

    @abstractmethod
    def stated(self, op: OpT) -> StatedOp:
        """What is stated of an operation."""

    @abstractmethod
    def stated_loop(self, op: OpT) -> StatedLoop:
        """What is stated of a loop."""

    @abstractmethod
    def alias_set(self, op: OpT) -> int | None:
        """The number of an operation's alias set, if it touches global memory and is in one."""

    @abstractmethod
    def facts(self, op: OpT) -> Facts:
        """What is known of an operation by the addresses that it goes to."""

    @abstractmethod
    def written(self, op: OpT) -> Written | None:
        """Where an operation stands, or what it was made from; None where nobody knows."""

    @abstractmethod
    def function(self, op: OpT) -> str:
        """The name of the function that encloses an operation, or of itself; "": none."""

    @abstractmethod
    def made_already(self, op: OpT) -> str | None:
        """Why a loop is not one to be pipelined, if it is not."""

    @abstractmethod
    def file(self) -> str:
        """Where it was read."""

    @abstractmethod
    def check(self) -> None:
        """MlirError with all that is wrong with what is stated."""

    @abstractmethod
    def diagnose(
        self,
        op: OpT,
        severity: Severity,
        message: str,
        notes: tuple[Diagnostic, ...] = (),
        attribute: str | None = None,
    ) -> Diagnostic:
        """Something said about an operation, or about one of its attributes."""

    # What follows --------------------------------------------------------------------------------

    def body(self, op: OpT) -> BlockT:
        """The first of its blocks."""
        return self.blocks(op)[0]

    def walk(self, op: OpT) -> Iterator[OpT]:
        """It and all inside of it, as the text has them."""
        yield op
        for block in self.blocks(op):
            yield from self.inside(block)

    def inside(self, block: BlockT) -> Iterator[OpT]:
        """All operations inside of a block, as the text has them."""
        for op in self.operations(block):
            yield from self.walk(op)

    def parent(self, op: OpT) -> OpT | None:
        """The operation around one."""
        block = self.block_of(op)
        return None if block is None else self.above(block)

    def around(self, op: OpT) -> Iterator[OpT]:
        """The operations that enclose one, the nearest first."""
        at = self.parent(op)
        while at is not None:
            yield at
            at = self.parent(at)

    def defined_in(self, value: ValueT, block: BlockT) -> bool:
        """Whether a value is defined in a block or in what the block encloses."""
        maker = self.maker(value)
        at = self.entered(value) if maker is None else self.block_of(maker)
        while at is not None:
            if at is block:
                return True
            above = self.above(at)
            at = None if above is None else self.block_of(above)
        return False

    def enclosed_by(self, value: ValueT, op: OpT) -> bool:
        """Whether a value is defined in what an operation encloses."""
        return any(self.defined_in(value, block) for block in self.blocks(op))

    def uses_of_others(self, op: OpT) -> list[tuple[OpT, int]]:
        """What an operation takes, and what stands inside it, from outside: who, and where."""
        if self.name(op) not in NESTED:
            return [(op, n) for n in range(len(self.operands(op)))]
        return [
            (inner, n)
            for inner in self.walk(op)
            for n, value in enumerate(self.operands(inner))
            if not self.enclosed_by(value, op)
        ]

    def special_operands(self, op: OpT) -> dict[int, ValueT]:
        """By position, the buffer an operation fills and the tile it adds to; it may read them."""
        found: dict[int, ValueT] = {}
        for value in (self.destination(op), self.accumulator(op)):
            if value is not None:
                # Both stand behind what is read, so of several places the last is meant.
                found[max(i for i, o in enumerate(self.operands(op)) if o is value)] = value
        return found

    def yielded(self, loop: OpT, position: int) -> ValueT:
        """What a loop hands to its next iteration as carried value `position`."""
        last = self.last(self.body(loop))
        if last is None or self.name(last) != "scf.yield":
            raise UnreadableError(loop, "its body has no scf.yield")
        return self.operands(last)[position]

    def through_bodies(self, value: ValueT) -> ValueT:
        """What a producer's or consumer's body yields, for the result that stands for it."""
        op = self.maker(value)
        while op is not None and self.name(op) in BODIES and self.index(value) > 0:
            last = self.last(self.body(op))
            if last is None or self.name(last) != BODY_YIELD:
                return value
            value = self.operands(last)[self.index(value) - 1]
            op = self.maker(value)
        return value

    def through_views(self, value: ValueT) -> ValueT:
        """The registers a value of registers is another name of."""
        op = self.maker(value)
        while op is not None and self.row(op).view:
            if self.buffer(value) != REGISTERS:
                break
            value = self.operands(op)[0]
            op = self.maker(value)
        return value

    def is_bare(self, value: ValueT) -> bool:
        """Whether a value is a buffer as such, which nobody has filled yet."""
        op = self.maker(value)
        return op is not None and self.name(op) == ALLOCATION

    def register_sums(self, loop: OpT) -> Iterator[tuple[ValueT, ValueT]]:
        """Sums in registers that stay in place: each by its two names, and the argument it goes by.

        The product hands its sum on to itself and in no other way; who else reads the sum of before
        does so before the product writes over it.
        """
        block = self.body(loop)
        last = self.last(block)
        for position, argument in enumerate(self.arguments(block)[1:]):
            made = self.yielded(loop, position)
            op = self.maker(made)
            if self.buffer(argument) != REGISTERS or op is None or self.index(made):
                continue
            if self.block_of(op) is not block or self.accumulator(op) is not argument:
                continue
            handed_on = [user for user in self.users(made) if user is last]
            others = [user for user in self.users(argument) if user is not op]
            if len(handed_on) == 1 and all(self._reads_before(op, user) for user in others):
                yield argument, argument
                yield made, argument

    def _reads_before(self, op: OpT, reader: OpT) -> bool:
        """Whether a reader is done with a value before `op`, and gives it no other name."""
        block, at = self.block_of(op), reader
        while self.block_of(at) is not block:
            above = self.parent(at)
            if above is None:
                return False
            at = above
        return self.place(at) < self.place(op) and not self.row(reader).view
