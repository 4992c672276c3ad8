"""A program of a whole kernel into a module: its function, and an operation an instruction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from io import StringIO
from typing import Any, cast

from xdsl.dialects.builtin import NoneAttr, StringAttr, UnregisteredOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir import Operation as ModuleOperation

from stretto.ir.attributes import to_attribute
from stretto.ir.kernel_programs.fields import MEANS, called, fields_of
from stretto.ir.kernels.writing import kernel_module
from stretto.ir.printing import ModulePrinter
from stretto.kernel import Operation
from stretto.program import KernelProgram
from stretto.program.instructions import Arrive, Commit, Expect, NamedArrive, NamedSync, Wait
from stretto.program.kernel_program import Barriers

SIZES = "operandSegmentSizes"
"""How many operands each of several fields has, where that is not one each."""
_NO_VALUE = NoneAttr()


def kernel_program_text(program: KernelProgram) -> str:
    """The program as the text of a module."""
    module = kernel_module(program.kernel)
    block = module.body.block
    _Writer(program).statement(program, block)
    out = StringIO()
    ModulePrinter(out).print_op(module)
    return out.getvalue() + "\n"


class _Writer:
    def __init__(self, program: KernelProgram) -> None:
        self._number = {op: n for n, op in enumerate(program.kernel.walk())}
        self._roles = {one.name: one.role for one in program.barriers.values()}

    def statement(self, one: Any, block: Block) -> None:
        """One instruction or declaration, behind what it takes."""
        block.add_op(self._operation(one, block, ()))

    def _value(self, one: Any, block: Block) -> SSAValue:
        made = self._operation(one, block, (_NO_VALUE,))
        block.add_op(made)
        return made.results[0]

    def _operation(self, one: Any, block: Block, results: Iterable[Attribute]) -> ModuleOperation:
        operands: list[SSAValue] = []
        sizes: list[int] = []
        regions: list[Region] = []
        attributes: dict[str, Attribute] = {}
        kind: type = one.__class__
        for field in fields_of(kind):
            value: Any = getattr(one, field.name)
            said = field.place == "attribute" or isinstance(value, bool)
            if said and (field.default is MISSING or value != field.default):
                attributes[field.name] = to_attribute(self._plain(value))
            if field.place == "operands":
                taken = () if said or value is None else _several(value)
                operands += [self._value(inner, block) for inner in taken]
                sizes.append(len(taken))
            elif field.place == "region" and value is not None:
                body = Block()
                for inner in _several(value):
                    self.statement(inner, body)
                regions.append(Region(body))
        name, means = called(kind, self._role(one))
        if means:
            attributes[MEANS] = StringAttr(means)
        if len(sizes) > 1 and any(size != 1 for size in sizes):
            attributes[SIZES] = to_attribute(sizes)
        return UnregisteredOp.with_name(name).create(
            operands=operands, result_types=list(results), attributes=attributes, regions=regions
        )

    def _role(self, one: Any) -> str:
        match one:
            case Wait() | Arrive() | Expect() | Commit():
                return self._roles[one.barrier.name]
            case NamedSync() | NamedArrive():
                return "named"
            case Barriers():
                return one.role
            case _:
                return ""

    def _plain(self, value: Any) -> Any:
        """A record, a number or a tuple of such, as JSON has it."""
        match value:
            case Operation():
                return self._reference(value)
            case None:
                return {"none": True}
            case bool() | int() | str():
                return value
            case float():
                return {"float": value.hex()}
            case tuple():
                return [self._plain(inner) for inner in _several(value)]
            case Mapping():
                table = cast("Mapping[str, Any]", value)
                return {str(name): self._plain(inner) for name, inner in table.items()}
            case _:
                return self._record(value)

    def _record(self, value: Any) -> dict[str, Any]:
        """What of a record is said: not what goes without saying."""
        kind: type = value.__class__
        assert is_dataclass(kind), value
        said = {one.name: getattr(value, one.name) for one in fields(kind)}
        usual = {one.name: one.default for one in fields(kind)}
        told = {name: inner for name, inner in said.items() if inner != usual[name]}
        return {"is": kind.__name__} | {name: self._plain(inner) for name, inner in told.items()}

    def _reference(self, operation: Operation) -> Any:
        """An operation of the kernel by its number, one that a pass made for itself in full."""
        number = self._number.get(operation)
        if number is not None:
            return {"operation": number, "name": operation.name}
        return {
            "name": operation.name,
            "operands": [self._plain(value.type) for value in operation.operands],
            "results": [self._plain(value.type) for value in operation.results],
            "attributes": self._plain(operation.attributes),
        }


def _several(value: Any) -> tuple[Any, ...]:
    """What a field holds, one or several of it."""
    return cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
