"""A function of a module as a kernel, and each of its loops wired to the operations of the text.

func.func @matmul(...) { ... scf.for ... }   ──►   Kernel, LoopWiring of the loop

The way back of `writing.py`: what is written there reads back as the same kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import cast

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FileLineColLoc,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.utils.hints import isa

from stretto.errors import StrettoError
from stretto.ir.attributes import STATED
from stretto.ir.dialect import name_of
from stretto.ir.dialect.types import (
    PointerType,
    TokenType,
    buffer_of,
    element_of,
    pointee_of,
    shape_of,
)
from stretto.ir.kernels.writing import CMPF, CMPI, NAME, WARPS
from stretto.ir.loops import LoopInModule
from stretto.ir.loops.flow import (
    Flow,
    accumulator_of,
    inside,
    is_one_number,
    special_operands,
)
from stretto.ir.parsing import Parsed
from stretto.kernel import tree
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, Token, Type, View
from stretto.loop import Operand
from stretto.simulate.kernels.wiring import Accumulated, LoopWiring, Outer, Taken, Unread, Wire
from stretto.vocabulary.spaces import GLOBAL, REGISTERS

_SEGMENTS = "operandSegmentSizes"
_ENDS = {"func.return": "tile.return"}


@dataclass(frozen=True)
class KernelInModule:
    """A kernel, and which of its parts each operation and value of the text is."""

    kernel: tree.Kernel
    operations: dict[Operation, tree.Operation]
    values: dict[SSAValue, tree.Value]

    def loop(self, item: LoopInModule) -> tuple[tree.Operation, LoopWiring]:
        """A loop of the kernel, and how it is wired."""
        return self.operations[item.for_op], _Wirer(self, item).wiring()


def kernels_of(parsed: Parsed) -> tuple[KernelInModule, ...]:
    """The functions of a module as kernels."""
    return tuple(
        _Reader(parsed, op).kernel()
        for op in parsed.module.walk()
        if isinstance(op, func.FuncOp) and op.body.blocks
    )


def kernel_type(type: Attribute) -> Type:
    """A type of MLIR as a kernel has it."""
    if isinstance(type, TokenType):
        return Token()
    if isinstance(type, PointerType):
        return Pointer(_scalar(type.pointee))
    shape, element = shape_of(type), element_of(type)
    if shape is None or element is None:
        return Token()  # nothing that could be computed with
    buffer = buffer_of(type)
    if buffer == GLOBAL:
        sizes = tuple(None if d == DYNAMIC_INDEX else d for d in shape)
        return View((), Scalar(element), sizes)
    if buffer is None:
        return Scalar(element)
    if buffer != REGISTERS:
        return Buffer(shape, Scalar(element), buffer)
    pointee = pointee_of(type)
    return Tile(shape, Scalar(element) if pointee is None else Pointer(_scalar(pointee)))


def _scalar(type: Attribute) -> Scalar:
    return Scalar(element_of(type) or str(type))


class _Reader:
    def __init__(self, parsed: Parsed, function: func.FuncOp) -> None:
        self._parsed = parsed
        self._function = function
        self._values: dict[SSAValue, tree.Value] = {}
        self._operations: dict[Operation, tree.Operation] = {}

    def kernel(self) -> KernelInModule:
        block = self._function.body.block
        promised = self._function.arg_attrs.data if self._function.arg_attrs else ()
        parameters: list[tree.Parameter] = []
        taken: set[str] = set()
        for i, argument in enumerate(block.args):
            said = promised[i] if i < len(promised) else DictionaryAttr({})
            divisor, lower, upper = (
                number.value.data
                if isa(number := said.data.get(f"{STATED}{name}"), IntegerAttr)
                else None
                for name in ("divisibility", "lower", "upper")
            )
            named = said.data.get(NAME)
            hint = argument.name_hint or "argument"
            name = named.data if isinstance(named, StringAttr) else _free(hint, taken)
            taken.add(name)
            value = self._define(argument, name)
            parameters.append(tree.Parameter(value, divisor or 1, lower, upper))
        body = self._block(block)
        warps = self._function.attributes.get(WARPS)
        kernel = tree.Kernel(
            self._function.sym_name.data,
            tuple(parameters),
            body,
            self._place(self._function),
            warps=warps.value.data if isa(warps, IntegerAttr) else None,
        )
        return KernelInModule(kernel, self._operations, self._values)

    def _define(self, value: SSAValue, name: str = "") -> tree.Value:
        made = tree.Value(kernel_type(value.type), name or value.name_hint or "")
        self._values[value] = made
        return made

    def _region(self, region: Region) -> tree.Region:
        if not region.blocks:  # the other side of an scf.if that has none
            return tree.Region((tree.Operation("scf.yield", (), ()),))
        arguments = tuple(self._define(argument) for argument in region.block.args)
        return self._block(region.block, arguments)

    def _block(self, block: Block, arguments: tuple[tree.Value, ...] = ()) -> tree.Region:
        found = [self._operation(op) for op in block.ops]
        if not found or not found[-1].name.endswith(
            (".yield", ".condition", ".return", ".combined")
        ):
            found.append(tree.Operation("scf.yield", (), ()))
        return tree.Region(tuple(found), arguments)

    def _operation(self, op: Operation) -> tree.Operation:
        regions = tuple(self._region(region) for region in op.regions)
        name = _ENDS.get(name_of(op), name_of(op))
        if name == "nv_tileas.generic":
            name = str(cast("StringAttr", op.properties["kind"]).data)
        made = tree.Operation(
            name,
            tuple(self._values[operand] for operand in op.operands),
            tuple(self._define(result) for result in op.results),
            dict(_said(op)),
            regions,
            self._place(op),
        )
        self._operations[op] = made
        return made

    def _place(self, op: Operation) -> tree.Location:
        location = op.location
        if isinstance(location, FileLineColLoc):
            line, column = location.line.data, location.column.data
            return tree.Location(location.filename.data, line, column)
        told = self._parsed.diagnose(op, "note", "")
        return tree.Location(told.file, told.line, told.column)


def _free(name: str, taken: set[str]) -> str:
    """A name that no parameter before has."""
    numbered = (f"{name}_{n}" for n in count(1))
    return name if name not in taken else next(one for one in numbered if one not in taken)


def _said(op: Operation) -> Iterator[tuple[str, tree.Attribute]]:
    """The attributes of an operation that matter to what it computes."""
    for name, value in (*op.properties.items(), *op.attributes.items()):
        if name == _SEGMENTS:
            yield "groups", _numbers(value)
        elif name == "predicate" and isa(value, IntegerAttr):
            words = CMPI if isinstance(op, arith.CmpiOp) else CMPF
            yield name, words[value.value.data]
        elif name == "value" and isinstance(op, arith.ConstantOp):
            yield name, _constant(value)
        elif isa(value, DenseArrayBase):
            yield name, _numbers(value)
        elif isinstance(value, StringAttr):
            yield name.removeprefix(STATED), value.data
        elif isa(value, IntegerAttr):
            yield name.removeprefix(STATED), value.value.data


def _numbers(value: Attribute) -> tuple[int, ...]:
    return tuple(cast("DenseArrayBase[IntegerType]", value).get_values())


def _constant(value: Attribute) -> tree.Attribute:
    if isa(value, IntegerAttr):
        number = value.value.data
        return bool(number) if value.type == IntegerType(1) else number
    if isinstance(value, FloatAttr):
        return value.value.data
    if isa(value, DenseIntOrFPElementsAttr):
        if is_one_number(value):
            return cast("int | float", value.get_values()[0])
        return tuple(cast("tuple[int | float, ...]", value.get_values()))
    raise StrettoError(f"a constant {value} cannot be run")


class _Wirer:
    """How one loop is wired to the text."""

    def __init__(self, kernel: KernelInModule, item: LoopInModule) -> None:
        self._kernel = kernel
        self._item = item
        self._flow = Flow(item.for_op)

    def wiring(self) -> LoopWiring:
        item, values = self._item, self._kernel.values
        names = {name: op for name, op in item.ops.items() if op in self._kernel.operations}
        made = {
            values[result]: (name, i)
            for name, op in names.items()
            for i, result in enumerate(op.results)
        }
        inside = {result for op in names.values() for result in op.results}
        return LoopWiring(
            item.loop,
            {name: self._kernel.operations[op] for name, op in names.items()},
            {name: tuple(self._wires(name, op)) for name, op in names.items()},
            {
                name: values[value]
                for value, name in item.values.items()
                if value not in inside and value in values
            },
            dict(self._initial()),
            {name: values[root] for name, root in item.buffers.items() if root in values},
            made,
        )

    def _wires(self, name: str, op: Operation) -> Iterator[Wire]:
        special = special_operands(op)
        total = accumulator_of(op)
        block = self._item.for_op.body.block
        operands = self._item.loop.op(name).operands
        for position, value in enumerate(op.operands):
            flows = value is total and value in self._flow.read_by(op)
            if position in special and not flows:
                yield Accumulated() if value is total else Unread()
                continue
            # What never changes needs no pipe; the loop may know it by the name of what it views.
            fixed = buffer_of(value.type) == GLOBAL or not inside(value, block)
            flow = None if fixed else self._flow.source_of(value)
            called = None if flow is None else self._item.values.get(flow[0])
            if flow is None or called is None:
                yield Outer(self._kernel.values[value])
                continue
            yield Taken(operands.index(Operand(called, flow[1])))

    def _initial(self) -> Iterator[tuple[tuple[str, int], tree.Value]]:
        """Carried values before the first step: the argument that each comes in by."""
        block = self._item.for_op.body.block
        last = block.last_op
        assert isinstance(last, scf.YieldOp)
        for argument in block.args[1:]:
            at, depth = last.operands[argument.index - 1], 1
            seen: set[SSAValue] = {argument}
            while (
                isinstance(at, BlockArgument) and at.block is block and at.index and at not in seen
            ):
                seen.add(at)
                at, depth = last.operands[at.index - 1], depth + 1
            called = self._item.values.get(at)
            if called is not None:
                yield (called, -depth), self._kernel.values[argument]
