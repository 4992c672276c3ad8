"""From a `Loop` to a module that reads back as the same loop.

    Op("mma", "async.dot", operands=(a, b[-1]), ...)
      ──►   scf.for ... iter_args(%b_1 = %b_init) {
              %mma = nv_tileas.generic "async.dot"(%a, %b_1) {stretto.writes = ["acc"]} : ...

Values flow through SSA, carried ones through chains of iter_args. What SSA cannot say (a name that
is no identifier, a value used before the text defines it, a latency of one operand) is stated in
attributes; an operation whose operands are all said by SSA states none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Any

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from stretto.extraction.body import BodyReader
from stretto.extraction.flow import BufferHomes
from stretto.extraction.source import UnreadableError
from stretto.ir.attributes import (
    CONSTRAINT,
    FORCE_SERIAL,
    LOOP_FIELDS,
    OP_FIELDS,
    STATED,
    stated_loop,
    to_attribute,
)
from stretto.ir.dialect.compute import GenericOp
from stretto.ir.dialect.types import TokenType, type_of
from stretto.ir.loops.module import Module
from stretto.ir.printing import ModulePrinter
from stretto.loop import Loop, Op, Operand, Value
from stretto.loop.json import loop_to_json
from stretto.ops.opcodes import opcode
from stretto.ops.spaces import REGISTERS

LONGEST_CHAIN = 4
"""Operands from further back are stated: each step back is one more argument of the loop."""


@dataclass(frozen=True)
class WrittenLoop:
    """A module with one function and one loop, whose operations are known by name."""

    module: ModuleOp
    for_op: scf.ForOp
    ops: Mapping[str, Operation]


def write_loop(loop: Loop) -> WrittenLoop:
    """A loop as a module; `loop` must pass `check()`."""
    plain = _Writer(loop, state_values=False).written()
    return plain if _reads_as(plain, loop) else _Writer(loop, state_values=True).written()


def _reads_as(written: WrittenLoop, loop: Loop) -> bool:
    """Whether what the text implies of values is what the loop says of them."""
    for_op, module = written.for_op, Module(made=written.module)
    homes = BufferHomes(module)
    try:
        found = BodyReader(module, for_op, stated_loop(for_op), homes, {}).read(loop.name)
    except UnreadableError:
        return False
    return found.loop == loop


def print_module(module: ModuleOp, generic: bool = False) -> str:
    """A module as text, in its custom or generic form."""
    stream = StringIO()
    printer = ModulePrinter(stream=stream, print_generic_format=generic)
    printer.print_op(module)
    return stream.getvalue() + "\n"


class _Writer:
    def __init__(self, loop: Loop, state_values: bool) -> None:
        self._loop = loop
        self._state_values = state_values
        self._document = loop_to_json(loop)
        self._values = {value.name: value for value in loop.values}
        self._spaces = {storage.name: storage.space for storage in loop.storages}
        self._types = {value.name: self._type(value) for value in loop.values}
        self._depths = self._chains()
        self._ssa: dict[tuple[str, int], SSAValue] = {}
        self._made: dict[str, Operation] = {}
        self._pointed_at = self._named_in_attributes()

    def written(self) -> WrittenLoop:
        live_ins = [v for v in self._loop.values if v.name not in self._loop.producers]
        outside = [v for v in live_ins if _faithful(v.name)]
        inits = [(name, d) for name, depth in self._depths.items() for d in range(1, depth + 1)]
        types = [self._types[v.name] for v in outside] + [self._types[name] for name, _ in inits]
        symbol = self._loop.name if _faithful(self._loop.name) else "loop"
        function = func.FuncOp(symbol, ([*types, IndexType()], []))
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
        return WrittenLoop(ModuleOp([function]), loop, self._made)

    # The body -----------------------------------------------------------------------------

    def _body(self, inits: list[tuple[str, int]]) -> Block:
        block = Block(arg_types=[IndexType(), *(self._types[name] for name, _ in inits)])
        block.args[0].name_hint = "i"
        for argument, (name, distance) in zip(block.args[1:], inits, strict=True):
            argument.name_hint = f"{_hint(name)}.back"
            self._ssa[name, distance] = argument
        for op, row in zip(self._loop.ops, self._document["ops"], strict=True):
            self._made[op.name] = self._op(op, row)
            block.add_op(self._made[op.name])
        # Each value steps one iteration back: what was made now, then what was one back, ...
        block.add_op(scf.YieldOp(*(self._ssa[name, distance - 1] for name, distance in inits)))
        return block

    def _op(self, op: Op, row: dict[str, Any]) -> Operation:
        said = [self._ssa.get((o.value, o.distance)) for o in op.operands]
        operands = [value for value in said if value is not None]
        stated = set(row) & {"uses", "demands", "latency", "encoding", "facts", "agent", "parent"}
        if self._says_too_little(op):
            stated.add("operands")
        if opcode(op.kind).banked:  # else a reader gives it a bank
            stated.add("facts")
        if self._touches(op):
            stated |= {"reads", "writes"}
        if not op.results or op.name != op.results[0] or not _faithful(op.name):
            stated.add("name")
        if not all(_faithful(name) for name in op.results) or (
            self._pointed_at.intersection(op.results)
        ):
            stated.add("results")
        attributes = {
            STATED + key: to_attribute(row.get(key, {} if key == "facts" else []))
            for key in OP_FIELDS
            if key in stated
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

    def _says_too_little(self, op: Op) -> bool:
        """Whether SSA cannot say all there is to say of the operands."""
        known = self._loop.index
        producers = self._loop.producers

        def said(operand: Operand) -> bool:
            maker = producers.get(operand.value)
            if operand.latency is not None:
                return False
            if maker is None:
                return operand.distance == 0 and _faithful(operand.value)
            if operand.distance == 0:
                return known[maker] < known[op.name]
            return operand.distance <= LONGEST_CHAIN

        return not all(said(operand) for operand in op.operands)

    def _named_in_attributes(self) -> set[str]:
        """Values that attributes name: tools drop the names of SSA values, not of attributes."""
        if self._state_values:
            return set(self._values)
        return {o.value for op in self._loop.ops if self._says_too_little(op) for o in op.operands}

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
        return type_of(value.type, self._spaces.get(value.storage or "", REGISTERS))

    def _stated_of_loop(self) -> dict[str, Attribute]:
        keys = set(LOOP_FIELDS) & set(self._document)
        if not self._state_values:
            keys.discard("values")
        if _faithful(self._loop.name):  # the function has it
            keys.discard("name")
        stated = {
            STATED + key: to_attribute(self._document[key]) for key in LOOP_FIELDS if key in keys
        }
        if self._loop.force_serial:
            stated[CONSTRAINT + FORCE_SERIAL] = to_attribute(True)
        return stated


def _faithful(name: str) -> bool:
    """Whether a name survives as the name of an SSA value."""
    valid = name.isascii() and bool(SSAValue.is_valid_name(name))
    return valid and SSAValue.extract_valid_name(name) == name


def _hint(name: str) -> str:
    return name if _faithful(name) else "value"
