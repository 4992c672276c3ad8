"""A program of a whole kernel out of a module: instructions from operations, by the same fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any, cast

from xdsl.ir import Operation as ModuleOperation
from xdsl.ir import Region, SSAValue

from stretto.diagnostics import MlirError
from stretto.ir.attributes import plain
from stretto.ir.dialect import name_of
from stretto.ir.kernel_programs.fields import (
    DIALECT,
    MEANS,
    fields_of,
    kind_of_operation,
    misfit,
    records,
)
from stretto.ir.kernel_programs.writing import SIZES
from stretto.ir.kernels.functions import kernels_of
from stretto.ir.parsing import Parsed, parse_module
from stretto.kernel import Kernel, Operation, Value
from stretto.program import KernelProgram
from stretto.program.expressions import Barrier, Slot
from stretto.program.instructions import CopyIn, CopyOut, NamedArrive, NamedSync

_CALLED = "op_name__"
"""Where xDSL keeps the name of an operation that no dialect has."""
_PROGRAM = f"{DIALECT}kernel_program"


def read_kernel_program(file: str, text: str) -> KernelProgram:
    """The program that a module holds; MlirError at its place where there is no such."""
    parsed = parse_module(text, file)
    kernels = kernels_of(parsed)
    found = [op for op in parsed.module.body.block.ops if name_of(op) == _PROGRAM]
    if len(kernels) != 1 or len(found) != 1:
        told = f"has {len(found)} programs of {len(kernels)} kernels, not one of one"
        raise MlirError([parsed.diagnose(parsed.module, "error", told)])
    return _Reader(parsed, kernels[0].kernel).program(found[0])


class _Reader:
    def __init__(self, parsed: Parsed, kernel: Kernel) -> None:
        self._parsed = parsed
        self._kernel = kernel
        self._operations = list(kernel.walk())
        self._made: dict[SSAValue, Any] = {}
        self._built: dict[str, Operation] = {}
        self._named: list[tuple[ModuleOperation, str]] = []
        """Memory, barriers and descriptors, and who names them."""

    def statement(self, op: ModuleOperation) -> Any:
        """What an operation stands for."""
        said = {name: plain(value) for name, value in op.attributes.items() if name != _CALLED}
        kind = kind_of_operation(name_of(op), str(said.pop(MEANS, "")))
        if kind is None:
            raise self._wrong(op, "is no instruction of a program")
        values = self._fields(op, kind, said)
        if kind is KernelProgram:
            values["kernel"] = self._kernel
        return self._of(op, kind, values)

    def _fields(self, op: ModuleOperation, kind: type, said: dict[str, Any]) -> dict[str, Any]:
        every = fields_of(kind)
        operands, regions = list(op.operands), list(op.regions)
        places = [field for field in every if field.place == "operands"]
        usual = [len(operands)] if len(places) == 1 else [1] * len(places)
        sizes = cast("list[int]", said.pop(SIZES, usual))
        if len(sizes) != len(places) or sum(sizes) != len(operands):
            raise self._wrong(op, f"has {len(operands)} operands for {len(places)} fields")
        values: dict[str, Any] = {}
        for field, size in zip(places, sizes, strict=True):
            taken = tuple(self._value(operands.pop(0)) for _ in range(size))
            if field.many:
                values[field.name] = taken
            elif taken:
                (values[field.name],) = taken
            elif field.name not in said:
                values[field.name] = None
        for field in every:
            if field.place == "region" and regions:
                values[field.name] = self._body(regions.pop(0))
            elif field.name in said:
                values[field.name] = self._record(op, said.pop(field.name))
            elif field.name not in values and field.default is not MISSING:
                values[field.name] = field.default
        if said or regions:
            raise self._wrong(op, f"has no field `{next(iter(said), 'region')}`")
        return values

    def _value(self, value: SSAValue) -> Any:
        if value not in self._made:
            owner = value.owner
            assert isinstance(owner, ModuleOperation)
            self._made[value] = self.statement(owner)
        return self._made[value]

    def _body(self, region: Region) -> tuple[Any, ...]:
        return tuple(self.statement(op) for op in region.block.ops if not op.results)

    def _record(self, op: ModuleOperation, said: Any) -> Any:
        """The way back of `_plain`."""
        match said:
            case {"none": True}:
                return None
            case {"float": str() as digits}:
                return float.fromhex(digits)
            case {"operation": int() as number, "name": str() as name}:
                return self._referred(op, number, name)
            case {"name": str() as name, "operands": _, "results": _, "attributes": _}:
                return self._built_as(op, name, said)
            case {"is": str() as name}:
                kind = records().get(name)
                if kind is None:
                    raise self._wrong(op, f"`{name}` is no record of a program")
                inner = {key: self._record(op, one) for key, one in said.items() if key != "is"}
                return self._of(op, kind, inner)
            case dict():
                table = cast("Mapping[str, Any]", said)
                return {key: self._record(op, one) for key, one in table.items()}
            case list():
                return tuple(self._record(op, one) for one in cast("list[Any]", said))
            case _:
                return said

    def _of(self, op: ModuleOperation, kind: type, values: Mapping[str, Any]) -> Any:
        try:
            made = kind(**values)
        except TypeError as error:
            raise self._wrong(op, str(error).rpartition("() ")[2]) from None
        wrong = misfit(kind, values)
        if wrong:
            raise self._wrong(op, f"has a `{wrong}` of another type than `{kind.__name__}` takes")
        match made:
            case Slot():
                self._named.append((op, made.memory))
            case Barrier():
                self._named.append((op, made.name))
            case NamedSync() | NamedArrive():
                self._named.append((op, made.barrier))
            case CopyIn() | CopyOut():
                self._named.append((op, made.descriptor))
            case _:
                pass
        return made

    def program(self, op: ModuleOperation) -> KernelProgram:
        """All of it, in which nothing is named that is not declared."""
        program = cast("KernelProgram", self.statement(op))
        declared = {one.name for one in (*program.memory, *program.descriptors)}
        for at, name in self._named:
            if name not in declared and name not in program.barriers:
                raise self._wrong(at, f"names `{name}`, which is not declared")
        return program

    def _referred(self, op: ModuleOperation, number: int, name: str) -> Operation:
        known = self._operations
        if not 0 <= number < len(known) or known[number].name != name:
            raise self._wrong(op, f"operation {number} of the kernel is no `{name}`")
        return known[number]

    def _built_as(self, op: ModuleOperation, name: str, said: Mapping[str, Any]) -> Operation:
        key = repr(said)
        if key not in self._built:
            operands, results = (
                tuple(Value(self._record(op, type)) for type in said[side])
                for side in ("operands", "results")
            )
            attributes = self._record(op, said["attributes"])
            self._built[key] = Operation(name, operands, results, attributes)
        return self._built[key]

    def _wrong(self, op: ModuleOperation, told: str) -> MlirError:
        return MlirError([self._parsed.diagnose(op, "error", f"`{name_of(op)}` {told}")])
