"""A lowered kernel as a module: every operation of the tree becomes one, at the same place.

Operation("nv_tileas.async.tcgen05_mma", (%a, %b, %c), ..., groups=(1, 1, 1, 0, 0))
    ──►  %o = nv_tileas.async.tcgen05_mma %a, %b acc %c : ...     loc("mm.py":17:9), kept beside it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import cast

from xdsl.dialects import arith, func, math, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FileLineColLoc,
    Float32Type,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from stretto.ir.attributes import CONSTRAINT, FORCE_SERIAL, STATED, to_attribute
from stretto.ir.dialect import NvTileas
from stretto.ir.dialect.compute import GenericOp
from stretto.ir.dialect.types import (
    BufferTensorType,
    PointerType,
    TokenType,
    builtin_element,
    type_of,
)
from stretto.ir.kernels.functions import CMPF, CMPI, NAME, WARPS
from stretto.kernel import Kernel, KernelError, tree
from stretto.kernel.configuration import DEFAULT, Configuration
from stretto.kernel.pipeline import lower
from stretto.kernel.tree import ALIAS_SET, HIDDEN
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, Type, View
from stretto.loop import TileType
from stretto.machine import Machine
from stretto.ops.spaces import GLOBAL, REGISTERS

_OPERATIONS: dict[str, type[Operation]] = {
    defined.name: defined
    for dialect in (arith.Arith, math.Math, scf.Scf, NvTileas)
    for defined in dialect.operations
}
_SEGMENTS = "operandSegmentSizes"
_LOOP_NOTES = ("num_stages", "warp_specialize", "flatten", "loop_unroll_factor")


def kernel_module(kernel: tree.Kernel) -> ModuleOp:
    """A module with one function: the kernel."""
    return _Writer(kernel).module()


@cache
def mlir_type(type: Type) -> Attribute:
    """The type in MLIR."""
    match type:
        case Scalar(element):
            found = builtin_element(TileType((), element))
            return StringAttr(element) if found is None else found
        case Pointer(pointee):
            return PointerType(mlir_type(pointee))
        case Tile(shape, Pointer() as element):
            return TensorType(mlir_type(element), shape)
        case Tile(shape, Scalar(element)):
            return type_of(TileType(shape, element), REGISTERS)
        case Buffer(shape, element, space):
            return type_of(TileType(shape, element.element), space)
        case View():
            shape = type.shape or (None,) * len(type.tile)
            sizes = [DYNAMIC_INDEX if size is None else size for size in shape]
            return BufferTensorType(sizes, type.element.element, GLOBAL)
        case _:
            return TokenType()


def lowered_module(
    kernels: Sequence[Kernel], machine: Machine, configuration: Configuration = DEFAULT
) -> tuple[ModuleOp, tuple[str, ...]]:
    """Kernels in nv_tileas for a machine, in one module, and what is worth saying of them."""
    functions: list[ModuleOp] = []
    notes: list[str] = []
    for kernel in kernels:
        lowered = lower(kernel, machine, configuration)
        try:
            functions.append(kernel_module(lowered.kernel))
        except VerifyException as error:
            told = f"it cannot be lowered for {machine.name}: {error}"
            raise KernelError(kernel.location, told) from error
        notes += kernel.notes
        notes += [f"{place}: note: {said}" for place, said in lowered.notes]
    first, *others = functions
    for other in others:
        for op in list(other.body.block.ops):
            op.detach()
            first.body.block.add_op(op)
    return first, tuple(notes)


class _Writer:
    def __init__(self, kernel: tree.Kernel) -> None:
        self._kernel = kernel
        self._values: dict[tree.Value, SSAValue] = {}
        self._blocks: list[Block] = []

    def module(self) -> ModuleOp:
        parameters = self._kernel.parameters
        types = [mlir_type(p.value.type) for p in parameters]
        block = Block(arg_types=types)
        for parameter, argument in zip(parameters, block.args, strict=True):
            argument.name_hint = _hint(parameter.name)
            self._values[parameter.value] = argument
        self._fill(block, self._kernel.body)
        promised = [
            DictionaryAttr({f"{STATED}{name}": said for name, said in _promised(p)})
            for p in parameters
        ]
        # A name that several share, or that ends in a number, is another one when it is read back.
        names = [p.name for p in parameters]
        for i, (name, argument) in enumerate(zip(names, block.args, strict=True)):
            if name and (names.count(name) > 1 or argument.name_hint != name):
                promised[i] = DictionaryAttr({**promised[i].data, NAME: StringAttr(name)})
        made = func.FuncOp(
            self._kernel.name,
            (types, []),
            Region(block),
            arg_attrs=ArrayAttr(promised) if any(d.data for d in promised) else None,
        )
        if self._kernel.warps is not None:
            made.attributes[WARPS] = IntegerAttr(self._kernel.warps, i64)
        made.location = _place(self._kernel.location)
        return ModuleOp([made])

    def _fill(self, block: Block, region: tree.Region) -> None:
        for operation in region.operations:
            made = self._operation(operation)
            made.location = _place(operation.location)
            for value, result in zip(operation.results, made.results, strict=True):
                result.name_hint = _hint(value.name)
                self._values[value] = result
            block.add_op(made)

    def _region(self, region: tree.Region) -> Region:
        block = Block(arg_types=[mlir_type(value.type) for value in region.arguments])
        for value, argument in zip(region.arguments, block.args, strict=True):
            argument.name_hint = _hint(value.name)
            self._values[value] = argument
        self._fill(block, region)
        return Region(block)

    def _operation(self, operation: tree.Operation) -> Operation:
        name = operation.name
        if name == "tile.return":
            return func.ReturnOp()
        defined = _OPERATIONS.get(name)
        operands = [self._values[value] for value in operation.operands]
        types = [mlir_type(value.type) for value in operation.results]
        if defined is None:
            kind = StringAttr(name.removeprefix("nv_tileas."))
            told = {
                said: _ATTRIBUTES[said](operation, value)
                for said, value in operation.attributes.items()
                if said in _ATTRIBUTES
            }
            _, stated = self._said(operation, GenericOp)
            return GenericOp.create(
                operands=operands,
                result_types=types,
                properties={"kind": kind},
                attributes={**told, **stated},
            )
        properties, attributes = self._said(operation, defined)
        return defined.create(
            operands=operands,
            result_types=types,
            properties=properties,
            attributes=attributes,
            regions=[self._region(region) for region in operation.regions],
        )

    def _said(
        self, operation: tree.Operation, defined: type[Operation]
    ) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
        properties = dict(_defaults(defined))
        attributes: dict[str, Attribute] = {}
        for name, value in operation.attributes.items():
            write = _ATTRIBUTES.get(name)
            if name == "facts":
                if value:
                    rows = cast("tuple[tuple[str, int], ...]", value)
                    attributes[f"{STATED}facts"] = to_attribute(_row(rows))
            elif name == "serial":
                attributes[CONSTRAINT + FORCE_SERIAL] = UnitAttr()
            elif name in ("gid", ALIAS_SET):
                assert isinstance(value, int)
                prefix = STATED if name == ALIAS_SET else CONSTRAINT
                attributes[prefix + name] = IntegerAttr(value, i64)
            elif name == "agent":
                attributes[f"{STATED}{name}"] = StringAttr(str(value))
            elif name == "machine":
                attributes[f"{STATED}machine"] = StringAttr(str(value))
            elif name == HIDDEN:
                steps = cast("list[int]", value)
                attributes[f"{STATED}{name}"] = DenseArrayBase.from_list(i32, steps)
            elif name == "groups":
                properties[_SEGMENTS] = DenseArrayBase.from_list(i32, cast("list[int]", value))
            elif write is not None:
                properties[name if name != "order" else "permutation"] = write(operation, value)
            elif name in _LOOP_NOTES:
                attributes[f"tt.{name}"] = to_attribute(value)
        return properties, attributes


def _promised(parameter: tree.Parameter) -> Iterator[tuple[str, Attribute]]:
    """What is known of a parameter from outside."""
    if parameter.divisibility > 1:
        yield "divisibility", IntegerAttr(parameter.divisibility, i64)
    if parameter.lower is not None:
        yield "lower", IntegerAttr(parameter.lower, i64)
    if parameter.upper is not None:
        yield "upper", IntegerAttr(parameter.upper, i64)


def _row(facts: tuple[tuple[str, int], ...]) -> dict[str, object]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in facts}


@cache
def _defaults(defined: type[Operation]) -> Mapping[str, Attribute]:
    if not issubclass(defined, IRDLOperation):
        return {}
    found = defined.get_irdl_definition().properties
    return {
        name: said.default_value for name, said in found.items() if said.default_value is not None
    }


def _integer(_: tree.Operation, value: tree.Attribute) -> Attribute:
    assert isinstance(value, int)
    return IntegerAttr(value, i64)


def _predicate(operation: tree.Operation, value: tree.Attribute) -> Attribute:
    if operation.name.startswith("nv_tileas."):
        return StringAttr(str(value))
    words = CMPI if operation.name == arith.CmpiOp.name else CMPF
    return IntegerAttr(words.index(str(value)), i64)


def _text(_: tree.Operation, value: tree.Attribute) -> Attribute:
    return StringAttr(str(value))


def _order(_: tree.Operation, value: tree.Attribute) -> Attribute:
    return DenseArrayBase.from_list(i64, cast("list[int]", value))


def _constant(operation: tree.Operation, value: tree.Attribute) -> Attribute:
    type = mlir_type(operation.result.type)
    if isinstance(type, TensorType):
        numbers = list(value) if isinstance(value, tuple) else [value]
        return DenseIntOrFPElementsAttr.from_list(
            cast("TensorType[IntegerType]", type), cast("list[int]", numbers)
        )
    assert isinstance(value, int | float)
    if isa(type, IntegerType | IndexType):
        return IntegerAttr(int(value), type)
    return FloatAttr(float(value), cast("Float32Type", type))


_ATTRIBUTES: dict[str, Callable[[tree.Operation, tree.Attribute], Attribute]] = {
    "value": _constant,
    "predicate": _predicate,
    "axis": _integer,
    "blocks": _integer,
    "reverse": _integer,
    "start": _integer,
    "end": _integer,
    "permutation": _order,
    "tile": _order,
    "cluster": _order,
    "padding": _text,
    "kind": _text,
    "semantics": _text,
    "scope": _text,
    "message": _text,
    "asm": _text,
    "prefix": _text,
    "constraints": _text,
    "pack": _integer,
}


def _hint(name: str) -> str | None:
    """A name as xDSL takes it."""
    cleaned = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return cleaned if cleaned and not cleaned[0].isdigit() else None


@cache
def _place(location: tree.Location) -> FileLineColLoc:
    return FileLineColLoc(
        StringAttr(location.file), IntAttr(location.line), IntAttr(location.column)
    )
