"""A module, asked for what loops are made of: who makes a value, what stands around it.

addresses  what is known of operations that touch global memory, where that is not stated
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnregisteredOp,
)
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.hints import isa

from stretto.diagnostics import Diagnostic, MlirError, Severity
from stretto.extraction.source import OVER_TILES, Source, StatedLoop, StatedOp
from stretto.ir.attributes import alias_set, stated_loop, stated_op, verify_attributes
from stretto.ir.dialect import kind_of, name_of, row_of
from stretto.ir.dialect.compute import GenericOp, ProductOp
from stretto.ir.dialect.pipelined import ProgramOp, WorkTileInfoOp
from stretto.ir.dialect.transfers import AllocTensorOp
from stretto.ir.dialect.types import PipelineType, buffer_of, pointee_of, tile_of
from stretto.ir.parsing import Parsed
from stretto.loop import Facts, TileType, Written
from stretto.ops.opcodes import Opcode
from stretto.ops.spaces import GLOBAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.ir.kernels.functions import KernelInModule
    from stretto.kernel import Value
    from stretto.kernel.axes import Axis


class Module(Source[Operation, Block, SSAValue]):
    """A parsed module; one that was made, of which nothing but the operations is known; or neither:
    what is asked of operations alone then has an answer."""

    def __init__(self, parsed: Parsed | None = None, made: ModuleOp | None = None) -> None:
        self._parsed = parsed
        self._made = made

    @cached_property
    def _addresses(self) -> Addresses | None:
        return None if self._parsed is None else Addresses(self._parsed)

    @cached_property
    def _places(self) -> dict[Operation, int]:
        module = self._module.module if self._made is None else self._made
        return {op: i for i, op in enumerate(module.walk())}

    @property
    def _module(self) -> Parsed:
        assert self._parsed is not None
        return self._parsed

    # How they stand ------------------------------------------------------------------------------

    def operands(self, op: Operation) -> Sequence[SSAValue]:
        """What an operation takes."""
        return op.operands

    def results(self, op: Operation) -> Sequence[SSAValue]:
        """What an operation makes."""
        return op.results

    def blocks(self, op: Operation) -> Sequence[Block]:
        """The blocks of all of its regions."""
        return [block for region in op.regions for block in region.blocks]

    def has_regions(self, op: Operation) -> bool:
        """Whether there are regions."""
        return bool(op.regions)

    def operations(self, block: Block) -> Iterable[Operation]:
        """In the order of the text."""
        return block.ops

    def last(self, block: Block) -> Operation | None:
        """The last operation of a block."""
        return block.last_op

    def arguments(self, block: Block) -> Sequence[SSAValue]:
        """What a block is entered with."""
        return block.args

    def block_of(self, op: Operation) -> Block | None:
        """The block that an operation stands in."""
        return op.parent

    def above(self, block: Block) -> Operation | None:
        """The operation that a block is part of."""
        return block.parent_op()

    def maker(self, value: SSAValue) -> Operation | None:
        """The operation that makes a value; None: it is an argument."""
        return value.op if isinstance(value, OpResult) else None

    def entered(self, value: SSAValue) -> Block | None:
        """The block whose argument a value is; None: it is made, or nobody knows."""
        return value.block if isinstance(value, BlockArgument) else None

    def index(self, value: SSAValue) -> int:
        """Which result, or which argument, a value is."""
        return value.index if isinstance(value, OpResult | BlockArgument) else 0

    def users(self, value: SSAValue) -> Sequence[Operation]:
        """Who takes a value, each as often as it does."""
        return [use.operation for use in value.uses]

    def place(self, op: Operation) -> int:
        """Which operation of all it is, in the order of the text."""
        return self._places[op]

    def all(self) -> Iterable[Operation]:
        """All operations, in the order of the text."""
        return self._places

    def walk(self, op: Operation) -> Iterator[Operation]:
        """It and all inside of it, as the text has them."""
        return op.walk()

    # What they are -------------------------------------------------------------------------------

    def name(self, op: Operation) -> str:
        """What an operation is called, with its dialect."""
        return name_of(op)

    def kind(self, op: Operation) -> str:
        """The opcode by which machines know it."""
        return kind_of(op)

    def row(self, op: Operation) -> Opcode:
        """What is true of an operation of the dialect; of any other, nothing."""
        return row_of(op)

    def generic(self, op: Operation) -> bool:
        """Whether the text of the operation names its opcode, of which the dialect has no own."""
        return type(op) is GenericOp

    def unknown(self, op: Operation) -> bool:
        """Whether no dialect knows it."""
        return isinstance(op, UnregisteredOp)

    def ends(self, op: Operation) -> bool:
        """Whether it ends its block."""
        return op.has_trait(IsTerminator, value_if_unregistered=False)

    def pure(self, op: Operation) -> bool:
        """Whether it is known to leave memory alone."""
        return op.has_trait(Pure, value_if_unregistered=False)

    def destination(self, op: Operation) -> SSAValue | None:
        """The buffer an operation fills, if it names one."""
        return None if row_of(op).destination is None else cast("ProductOp", op).destination

    def accumulator(self, op: Operation) -> SSAValue | None:
        """The tile a product adds to in place."""
        return None if row_of(op).accumulator is None else cast("ProductOp", op).accumulator

    def hint(self, value: SSAValue) -> str | None:
        """A name worth keeping."""
        return value.name_hint

    def buffer(self, value: SSAValue) -> str | None:
        """The buffer a tile lives in: global, or a space; None for scalars and tokens."""
        return buffer_of(value.type)

    def far(self, value: SSAValue) -> bool:
        """Whether it is an address, or a tile of such."""
        return pointee_of(value.type) is not None

    def tile(self, value: SSAValue) -> TileType | None:
        """The tile or scalar that a value is; None for tokens and what is of unknown size."""
        return tile_of(value.type)

    def room(self, value: SSAValue) -> tuple[TileType | None, str | None, int | None]:
        """What a buffer takes as a storage: its tile, its buffer, and the cap on its ring."""
        type, depth = value.type, None
        if isinstance(type, PipelineType):
            type, depth = type.slot, type.stages.data
        elif isinstance(value, OpResult) and isinstance(value.op, AllocTensorOp):
            stated = value.op.depth
            depth = None if stated is None else stated.value.data
        return tile_of(type), buffer_of(type), depth

    def is_pipeline(self, value: SSAValue) -> bool:
        """Whether it is a ring of tiles, by which several agents go."""
        return isinstance(value.type, PipelineType)

    def constant(self, value: SSAValue) -> int | None:
        """The whole number that a value is known to be."""
        if isinstance(value, OpResult) and isinstance(value.op, ConstantOp):
            number = value.op.value
            if isa(number, IntegerAttr):
                return number.value.data
        return None

    def immediate(self, value: SSAValue) -> bool:
        """Whether an instruction can hold the value: a constant, one number however wide."""
        if not isinstance(value, OpResult) or not isinstance(value.op, ConstantOp):
            return False
        constant = value.op.value
        return not isa(constant, DenseIntOrFPElementsAttr) or is_one_number(constant)

    # What is said of them ------------------------------------------------------------------------

    def stated(self, op: Operation) -> StatedOp:
        """What is stated of an operation."""
        return stated_op(op)

    def stated_loop(self, op: Operation) -> StatedLoop:
        """What is stated of a loop."""
        return stated_loop(op)

    def alias_set(self, op: Operation) -> int | None:
        """The number of an operation's alias set, if it touches global memory and is in one."""
        return alias_set(op)

    def facts(self, op: Operation) -> Facts:
        """What is known of an operation by the addresses that it goes to."""
        return Facts() if self._addresses is None else self._addresses.of(op)

    def written(self, op: Operation) -> Written | None:
        """Where an operation stands, or what it was made from; None where nobody knows."""
        return None if self._parsed is None else self._parsed.written(op)

    def function(self, op: Operation) -> str:
        """The symbol of the function that encloses an operation, or of itself; "": none."""
        for at in (op, *self.around(op)):
            symbol = at.properties.get("sym_name") or at.attributes.get("sym_name")
            if isinstance(symbol, StringAttr):
                return symbol.data
        return ""

    def made_already(self, op: Operation) -> str | None:
        """Why a loop is not one to be pipelined, if it is not."""
        if any(isinstance(at, ProgramOp) for at in self.around(op)):
            return "it is part of a program already"
        if any(isinstance(at, WorkTileInfoOp) for body in self.blocks(op) for at in body.ops):
            return OVER_TILES
        return None

    def file(self) -> str:
        """Where it was read."""
        return self._module.source.file

    def check(self) -> None:
        """MlirError with all that is wrong with the attributes, unless that was asked before."""
        if self._module.verified:
            return
        wrong = [
            self.diagnose(op, "error", message, attribute=attribute)
            for op in self._places
            for attribute, message in verify_attributes(op)
        ]
        if wrong:
            raise MlirError(wrong)

    def diagnose(
        self,
        op: Operation,
        severity: Severity,
        message: str,
        notes: tuple[Diagnostic, ...] = (),
        attribute: str | None = None,
    ) -> Diagnostic:
        """Something said about an operation, or about one of its attributes."""
        return self._module.diagnose(op, severity, message, notes, attribute)


def is_one_number(constant: DenseIntOrFPElementsAttr) -> bool:
    """Whether all elements are the same, bit by bit: NaN is no number that equals itself."""
    data, size = constant.data.data, constant.get_element_type().compile_time_size
    return data == data[:size] * (len(data) // size)


ANY = Module()
"""What is asked of operations wherever they stand."""


class Addresses:
    """The accesses of one module."""

    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed

    def of(self, op: Operation) -> Facts:
        """What is known of an operation; nothing of one that touches no global memory."""
        far = any(buffer_of(v.type) == GLOBAL or pointee_of(v.type) for v in op.operands)
        return self._all.get(op, Facts()) if far else Facts()

    def axes(self) -> Iterator[tuple[SSAValue, Axis | None]]:
        """The values of the module, and what is known of each integer and address."""
        for function, axes in self._functions:
            yield from ((value, axes.get(kept)) for value, kept in function.values.items())

    @cached_property
    def _functions(self) -> tuple[tuple[KernelInModule, Mapping[Value, Axis]], ...]:
        from stretto.ir.kernels.functions import analysed_kernels  # noqa: PLC0415 - see above
        from stretto.kernel.axes import analyse  # noqa: PLC0415

        return tuple((found, analyse(found.kernel)) for found in analysed_kernels(self._parsed))

    @cached_property
    def _all(self) -> dict[Operation, Facts]:
        from stretto.kernel.accesses import ACCESSES, Accesses, shared_loads  # noqa: PLC0415

        found: dict[Operation, Facts] = {}
        for function, axes in self._functions:
            accesses, shared = Accesses(function.kernel, axes), shared_loads(function.kernel)
            for op, kept in function.operations.items():
                if kept.name in ACCESSES:
                    facts = accesses.facts(kept)
                    found[op] = replace(facts, cluster=shared[kept]) if kept in shared else facts
        return found
