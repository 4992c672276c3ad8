"""Through all of a program: instructions in bodies, expressions in instructions, layouts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any, get_args

from stretto.program.expressions import Barrier as BarrierOperand
from stretto.program.expressions import Expression, InShape, Name, Slot, Transposed
from stretto.program.instructions import (
    For,
    If,
    Instruction,
    Pipelined,
    Step,
    While,
)
from stretto.program.layouts import Blocked, Layout, Named, root

_LAYOUTS = get_args(Layout)
_EXPRESSIONS = get_args(Expression)
_INSTRUCTIONS = get_args(Instruction)
_NODES = (*_EXPRESSIONS, *_INSTRUCTIONS, Slot, BarrierOperand)
_LEAVES = (*_LAYOUTS, Blocked, Transposed, InShape)


def bodies_of(instruction: Instruction) -> tuple[tuple[Instruction, ...], ...]:
    """The bodies that an instruction has, in the order in which they stand."""
    match instruction:
        case For() | While() | Step() | Pipelined():
            return (instruction.body,)
        case If():
            return (instruction.body, instruction.otherwise or ())
        case _:
            return ()


def walk(body: Iterable[Instruction]) -> Iterator[Instruction]:
    """All instructions, those inside of others behind them."""
    for instruction in body:
        yield instruction
        for inner in bodies_of(instruction):
            yield from walk(inner)


def expressions_in(body: Iterable[Instruction]) -> Iterator[Expression]:
    """All expressions of all instructions, with those inside of others."""
    for node in _nodes(tuple(body)):
        if isinstance(node, _EXPRESSIONS):
            yield node


def names_in(values: Iterable[Expression | Slot]) -> frozenset[str]:
    """Variables that expressions read."""
    return frozenset(node.name for node in _nodes(tuple(values)) if isinstance(node, Name))


def slots_in(body: Iterable[Instruction]) -> set[str]:
    """The tiles and rings in shared or tensor memory that instructions name."""
    return {node.memory for node in _nodes(tuple(body)) if isinstance(node, Slot)}


def layouts_in(body: Iterable[Instruction]) -> set[Named]:
    """All layouts that have names of their own."""
    return {root(node) for node in _nodes(tuple(body)) if isinstance(node, _LAYOUTS)}


def _nodes(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        for one in node:  # pyright: ignore[reportUnknownVariableType]
            yield from _nodes(one)
    elif isinstance(node, _LEAVES):
        yield node
    elif isinstance(node, _NODES):
        yield node
        for name in _names(node.__class__):
            yield from _nodes(getattr(node, name))


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
