"""Functions of a module as kernel trees: what analyses and simulations of kernels go by.

func.func @matmul(...) { ... scf.for ... }   ──►   Kernel, and which of its parts each operation is

The way back of `writing.py`: what is written there reads back as the same kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import cast

from xdsl.dialects import arith, func
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
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.hints import isa

from stretto.errors import StrettoError
from stretto.ir.attributes import CONSTRAINT, FORCE_SERIAL, PROMISES, STATED, plain
from stretto.ir.dialect import name_of
from stretto.ir.dialect.compute import GenericOp
from stretto.ir.dialect.types import (
    PointerType,
    TokenType,
    buffer_of,
    element_of,
    pointee_of,
    shape_of,
)
from stretto.ir.loops.module import is_one_number
from stretto.ir.parsing import Parsed
from stretto.kernel import tree
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, Token, Type, View
from stretto.ops.spaces import GLOBAL, REGISTERS

_SEGMENTS = "operandSegmentSizes"
CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
    "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
NAME, WARPS = f"{STATED}name", "tt.num_warps"
"""What a parameter is called, and how many warps run a kernel."""
_ENDS = {"func.return": "tile.return"}
_NOWHERE = tree.Location("<module>")
_TRITON = "tt."
"""As what Triton states the divisibility of an argument."""


@dataclass(frozen=True)
class KernelInModule:
    """A kernel, and which of its parts each operation and value of the text is."""

    kernel: tree.Kernel
    operations: dict[Operation, tree.Operation]
    values: dict[SSAValue, tree.Value]


def kernels_of(parsed: Parsed) -> tuple[KernelInModule, ...]:
    """The functions of a module as kernels, to be run."""
    return tuple(_Reader(parsed, op.body.block, op).kernel() for op in _functions(parsed))


def analysed_kernels(parsed: Parsed) -> tuple[KernelInModule, ...]:
    """The functions of any module as kernels that are only looked at, not run.

    What no kernel could do is an operation like another; blocks stand one after the other, and of
    what is handed to one, nothing is known. A module without functions is one itself.
    """
    functions = _functions(parsed)
    if not functions:
        return (_Reader(parsed, parsed.module.body.block, None, analysed=True).kernel(),)
    return tuple(_Reader(parsed, op.body.blocks[0], op, analysed=True).kernel() for op in functions)


def _functions(parsed: Parsed) -> list[func.FuncOp]:
    return [op for op in parsed.module.walk() if isinstance(op, func.FuncOp) and op.body.blocks]


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
    def __init__(
        self, parsed: Parsed, block: Block, function: func.FuncOp | None, *, analysed: bool = False
    ) -> None:
        self._parsed = parsed
        self._block_of_all = block
        self._function = function
        self._analysed = analysed
        self._values: dict[SSAValue, tree.Value] = {}
        self._operations: dict[Operation, tree.Operation] = {}

    def kernel(self) -> KernelInModule:
        function = self._function
        parameters = tuple(self._parameters())
        body = self._block(self._block_of_all)
        warps = None if function is None else function.attributes.get(WARPS)
        kernel = tree.Kernel(
            "" if function is None else function.sym_name.data,
            parameters,
            body,
            _NOWHERE if function is None else self._place(function),
            warps=warps.value.data if isa(warps, IntegerAttr) else None,
        )
        return KernelInModule(kernel, self._operations, self._values)

    def _parameters(self) -> Iterator[tree.Parameter]:
        arg_attrs = None if self._function is None else self._function.arg_attrs
        promised = arg_attrs.data if arg_attrs else ()
        taken: set[str] = set()
        for i, argument in enumerate(self._block_of_all.args):
            said = (promised[i] if i < len(promised) else DictionaryAttr({})).data
            divisor, lower, upper = (
                number.value.data
                if isa(number := said.get(STATED + name, said.get(_TRITON + name)), IntegerAttr)
                else None
                for name in PROMISES
            )
            named = said.get(NAME)
            hint = argument.name_hint or "argument"
            name = named.data if isinstance(named, StringAttr) else _free(hint, taken)
            taken.add(name)
            value = self._define(argument, name)
            yield tree.Parameter(value, divisor or 1, lower, upper)

    def _define(self, value: SSAValue, name: str = "") -> tree.Value:
        """The value of the tree; one that is used before the text makes it is there already."""
        made = self._values.get(value)
        if made is None:
            made = tree.Value(kernel_type(value.type), name or value.name_hint or "")
            self._values[value] = made
        return made

    def _region(self, region: Region) -> tree.Region:
        if not region.blocks:  # the other side of an scf.if that has none
            return tree.Region((tree.Operation("scf.yield", (), ()),))
        if self._analysed:
            return self._block(region.blocks[0], self._arguments(region.blocks[0]))
        return self._block(region.block, self._arguments(region.block))

    def _arguments(self, block: Block) -> tuple[tree.Value, ...]:
        return tuple(self._define(argument) for argument in block.args)

    def _block(self, block: Block, arguments: tuple[tree.Value, ...] = ()) -> tree.Region:
        region = block.parent
        blocks = region.blocks if self._analysed and region is not None else (block,)
        found = [self._operation(op) for one in blocks for op in one.ops]
        if not found or not found[-1].name.endswith(
            (".yield", ".condition", ".return", ".combined")
        ):
            found.append(tree.Operation("scf.yield", (), ()))
        return tree.Region(tuple(found), arguments)

    def _operation(self, op: Operation) -> tree.Operation:
        regions = tuple(self._region(region) for region in op.regions)
        name = _ENDS.get(name_of(op), name_of(op))
        if name == "nv_tileas.generic" and not self._analysed:
            kind = str(cast("StringAttr", op.properties["kind"]).data)
            name = kind if "." in kind else f"nv_tileas.{kind}"
        made = tree.Operation(
            name,
            tuple(self._define(operand) for operand in op.operands),
            tuple(self._define(result) for result in op.results),
            dict(_said(op, numbers_only=self._analysed)),
            regions,
            _NOWHERE if self._analysed else self._place(op),
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


def _said(op: Operation, *, numbers_only: bool) -> Iterator[tuple[str, tree.Attribute]]:
    """The attributes of an operation that matter to what it computes."""
    for name, value in (*op.properties.items(), *op.attributes.items()):
        if name == _SEGMENTS:
            yield "groups", _numbers(value)
        elif name == "kind" and isinstance(op, GenericOp):
            continue  # it is the operation's name
        elif name == CONSTRAINT + FORCE_SERIAL:
            yield "serial", True
        elif name == CONSTRAINT + "gid" and isa(value, IntegerAttr):
            yield "gid", value.value.data
        elif isinstance(value, DictionaryAttr) and name == f"{STATED}facts":
            yield "facts", tuple((key, _fact(said)) for key, said in value.data.items())
        elif name == "predicate" and isa(value, IntegerAttr):
            words = CMPI if isinstance(op, arith.CmpiOp) else CMPF
            yield name, words[value.value.data]
        elif name == "value" and isinstance(op, arith.ConstantOp):
            if not numbers_only or _is_number(value):
                yield name, _constant(value)
        elif isa(value, DenseArrayBase):
            yield name.removeprefix(STATED), _numbers(value)
        elif isinstance(value, StringAttr):
            yield name.removeprefix(STATED), value.data
        elif isa(value, IntegerAttr):
            yield name.removeprefix(STATED), value.value.data


def _fact(value: Attribute) -> tree.Attribute:
    said = plain(value)
    return tuple(cast("list[int]", said)) if isinstance(said, list) else said


def _numbers(value: Attribute) -> tuple[int, ...]:
    return tuple(cast("DenseArrayBase[IntegerType]", value).get_values())


def _is_number(value: Attribute) -> bool:
    """Whether a constant is one number, however wide, or several that are listed."""
    return isa(value, IntegerAttr) or isa(value, DenseIntOrFPElementsAttr)


def _constant(value: Attribute) -> tree.Attribute:
    if isa(value, IntegerAttr):
        number = value.value.data
        return bool(number) if value.type == IntegerType(1) else number
    if isinstance(value, FloatAttr):
        return value.value.data
    if isa(value, DenseIntOrFPElementsAttr):
        numbers = tuple(cast("tuple[int | float, ...]", value.get_values()))
        return numbers[0] if numbers and is_one_number(value) else numbers
    raise StrettoError(f"a constant {value} cannot be run")
