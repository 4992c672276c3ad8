"""From a `Loop` to a module that reads back as the same loop.

    Op("mma", "async.dot", operands=(a, b[-1]), ...)
      ──►   scf.for ... iter_args(%b_1 = %b_init) {
              %mma = nv_tileas.generic "async.dot"(%a, %b_1) {stretto.writes = ["acc"]} : ...

Values flow through SSA, carried ones through chains of iter_args. What SSA cannot say (a name that
is no identifier, a value used before the text defines it, a latency of one operand) is stated in
attributes; an operation whose operands are all said by SSA states none.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from stretto.ir.attributes import (
    CONSTRAINT,
    FORCE_SERIAL,
    OP_FIELDS,
    STATED,
    to_attribute,
)
from stretto.ir.dialect.pipeline import GenericOp
from stretto.ir.dialect.types import BufferTensorType, SmemRefType, TmemRefType, TokenType
from stretto.loop import Loop, Op, Operand, TileType, Value
from stretto.loop.json import loop_to_json

LONGEST_CHAIN = 4
"""Operands from further back are stated: each step back is one more argument of the loop."""


def write_loop(loop: Loop) -> ModuleOp:
    """A module with one function and one loop; `loop` must pass `check()`."""
    return _Writer(loop).module()


def print_module(module: ModuleOp, generic: bool = False) -> str:
    """A module as text, in its custom or generic form."""
    stream = StringIO()
    printer = Printer(stream=stream, print_generic_format=generic)
    printer.print_op(module)
    return stream.getvalue() + "\n"


class _Writer:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._document = loop_to_json(loop)
        self._values = {value.name: value for value in loop.values}
        self._spaces = {storage.name: storage.space for storage in loop.storages}
        self._types = {value.name: self._type(value) for value in loop.values}
        self._depths = self._chains()
        self._ssa: dict[tuple[str, int], SSAValue] = {}

    def module(self) -> ModuleOp:
        live_ins = [v for v in self._loop.values if v.name not in self._loop.producers]
        outside = [v for v in live_ins if _faithful(v.name)]
        inits = [(name, d) for name, depth in self._depths.items() for d in range(1, depth + 1)]
        types = [self._types[v.name] for v in outside] + [self._types[name] for name, _ in inits]
        function = func.FuncOp("loop", ([*types, IndexType()], []))
        entry = function.body.block
        for argument, value in zip(entry.args, outside, strict=False):
            argument.name_hint = value.name
            self._ssa[value.name, 0] = argument
        trips = entry.args[-1]
        trips.name_hint = "trips"
        zero = arith.ConstantOp.from_int_and_width(0, IndexType())
        one = arith.ConstantOp.from_int_and_width(1, IndexType())
        zero.result.name_hint, one.result.name_hint = "zero", "one"
        initial = entry.args[len(outside) : -1]
        block = self._body(inits)
        loop = scf.ForOp(zero.result, trips, one.result, initial, Region(block))
        loop.attributes.update(self._stated_of_loop())
        entry.add_ops([zero, one, loop, func.ReturnOp()])
        for argument, (name, _) in zip(initial, inits, strict=True):
            argument.name_hint = f"{_hint(name)}.before"
        return ModuleOp([function])

    # The body -----------------------------------------------------------------------------

    def _body(self, inits: list[tuple[str, int]]) -> Block:
        block = Block(arg_types=[IndexType(), *(self._types[name] for name, _ in inits)])
        block.args[0].name_hint = "i"
        for argument, (name, distance) in zip(block.args[1:], inits, strict=True):
            argument.name_hint = f"{_hint(name)}.back"
            self._ssa[name, distance] = argument
        for op, row in zip(self._loop.ops, self._document["ops"], strict=True):
            block.add_op(self._op(op, row))
        # Each value steps one iteration back: what was made now, then what was one back, ...
        block.add_op(scf.YieldOp(*(self._ssa[name, distance - 1] for name, distance in inits)))
        return block

    def _op(self, op: Op, row: dict[str, Any]) -> Operation:
        said = [self._ssa.get((o.value, o.distance)) for o in op.operands]
        operands = [value for value in said if value is not None]
        stated = set(row) & {"uses", "demands", "latency", "encoding", "facts", "parent"}
        if len(operands) < len(said) or any(o.latency is not None for o in op.operands):
            stated.add("operands")
        if self._touches(op):
            stated |= {"reads", "writes"}
        if not op.results or op.name != op.results[0] or not _faithful(op.name):
            stated.add("name")
        if not all(_faithful(name) for name in op.results):
            stated.add("results")
        attributes = {
            STATED + key: to_attribute(row.get(key, [])) for key in OP_FIELDS if key in stated
        }
        for key, value in row.get("constraint", {}).items():
            attributes[CONSTRAINT + key] = to_attribute(value)
        made = GenericOp.build(
            operands=[operands],
            result_types=[[self._types[name] for name in op.results]],
            properties={"kind": StringAttr(op.kind)},
            attributes=attributes,
        )
        for result, name in zip(made.results, op.results, strict=True):
            if _faithful(name):
                result.name_hint = name
            self._ssa[name, 0] = result
        return made

    def _touches(self, op: Op) -> bool:
        """Whether a reader would look for storages: it touches some, or its types suggest it."""
        near = [self._values[n].storage for n in (*op.results, *(o.value for o in op.operands))]
        return bool(op.reads or op.writes) or any(home is not None for home in near)

    def _chains(self) -> dict[str, int]:
        """How far back each value of the body is read through SSA."""
        depths: dict[str, int] = {}
        for op in self._loop.ops:
            for operand in op.operands:
                if self._carried(operand):
                    known = depths.get(operand.value, 0)
                    depths[operand.value] = max(known, operand.distance)
        return depths

    def _carried(self, operand: Operand) -> bool:
        made_here = operand.value in self._loop.producers
        return made_here and 0 < operand.distance <= LONGEST_CHAIN

    # Types and attributes -----------------------------------------------------------------

    def _type(self, value: Value) -> Attribute:
        if value.type is None:
            return TokenType()
        space = self._spaces.get(value.storage or "")
        if space == "smem":
            return SmemRefType(value.type.shape, value.type.element)
        if space == "tmem":
            return TmemRefType(value.type.shape, value.type.element)
        element = _builtin_element(value.type)
        if element is None:
            return BufferTensorType(value.type.shape, value.type.element, "register")
        return TensorType(element, value.type.shape) if value.type.shape else element

    def _stated_of_loop(self) -> dict[str, Attribute]:
        keys = ("name", "machine", "slots", "values", "storages", "dependences")
        stated = {
            STATED + key: to_attribute(self._document[key]) for key in keys if key in self._document
        }
        if self._loop.force_serial:
            stated[CONSTRAINT + FORCE_SERIAL] = to_attribute(True)
        return stated


def _builtin_element(type: TileType) -> Attribute | None:
    """MLIR's own type of that element, if it has one that reads back the same."""
    try:
        element = Parser(Context(), type.element).parse_optional_type()
    except (ParseError, ValueError):
        return None
    return element if element is not None and str(element) == type.element else None


def _faithful(name: str) -> bool:
    """Whether a name survives as the name of an SSA value."""
    return bool(SSAValue.is_valid_name(name)) and SSAValue.extract_valid_name(name) == name


def _hint(name: str) -> str:
    return name if _faithful(name) else "value"
