"""Sums that a step rescales row by row, which is left out where all factors of a warp are 1.

    total = total * shrink[:, None]         total = row_scaled_32(total, shrink[:, None])
    total = total + p x v                   total = total + p x v

Of a softmax over tiles the factor is exp2(m - m'), m and m' the row's maximum before this tile and
behind it: 1 where the maximum stayed, as it does in most steps of a long row. A number times 1 is
that number, so nothing changes but the time: on an H200 by up to 8 % where four consumers share an
SM's schedulers, and for the worse where two do (docs/attention.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stretto.kernel import Operation
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Scalar, Tile
from stretto.ops.opcodes import opcode
from stretto.program.expressions import Computed, Expanded, Expression, RowScaled
from stretto.program.instructions import (
    Assign,
    For,
    If,
    Instruction,
    Pipelined,
    Product,
    Step,
    While,
)
from stretto.program.kernel_program import KernelProgram
from stretto.program.walk import walk

_THREADS = 128
"""Of a group of four warps, which have 64 rows: two of them a thread."""
_ROWS = 64
_MOST = 64
"""Registers of a sum up to which assembly takes them all."""
_CROWDED = 4
"""Consumers from which on arithmetic is what they wait for, not products."""


def with_rescaling(program: KernelProgram) -> KernelProgram:
    """The program that leaves multiplications by 1 out; itself where they cost nothing."""
    if sum(any(isinstance(p, Product) for p in walk(a.body)) for a in program.agents) < _CROWDED:
        return program
    sums = {
        op.operands[2]
        for op in program.kernel.walk()
        if opcode(kind_of(op)).accumulator is not None and len(op.operands) > 2
    }
    scaling = frozenset(
        op for op in program.kernel.walk() if kind_of(op) == "arith.mulf" and op.results[0] in sums
    )
    agents = tuple(
        replace(agent, body=_body(agent.body, scaling))
        if agent.warps * 32 == _THREADS and any(isinstance(p, Product) for p in walk(agent.body))
        else agent
        for agent in program.agents
    )
    return replace(program, agents=agents)


def _body(body: Iterable[Instruction], scaling: frozenset[Operation]) -> tuple[Instruction, ...]:
    found: list[Instruction] = []
    for one in body:
        match one:
            case For() | While() | Step() | Pipelined():
                found.append(replace(one, body=_body(one.body, scaling)))
            case If():
                other = None if one.otherwise is None else _body(one.otherwise, scaling)
                found.append(replace(one, body=_body(one.body, scaling), otherwise=other))
            case Assign(values=(Computed(operation, operands),)) if operation in scaling:
                made = _row_scaled(operation, operands)
                found.append(one if made is None else replace(one, values=(made,)))
            case _:
                found.append(one)
    return tuple(found)


def _row_scaled(operation: Operation, operands: tuple[Expression, ...]) -> RowScaled | None:
    type = operation.results[0].type
    if not isinstance(type, Tile) or type.shape[0] != _ROWS or type.element != Scalar("f32"):
        return None
    registers = type.elements // _THREADS
    for value, factor in (operands, operands[::-1]):
        by_rows = isinstance(factor, Expanded) and factor.axis == 1
        if by_rows and not isinstance(value, Expanded) and registers <= _MOST:
            return RowScaled(value, factor, registers)
    return None
