"""Where an SSA value of a program comes from, looked at through guards, bodies and views.

%x = consumer_read %pipe[%i] ...     ──►  Piped(pipe, iterator)
%x = an operation that issues        ──►  Made(operation, value)
anything else                        ──►  None: it was there before the program
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.arith import SelectOp
from xdsl.dialects.scf import IfOp
from xdsl.ir import OpResult, SSAValue

from stretto.ir.dialect.barriers import GenericOp
from stretto.ir.dialect.kinds import row_of
from stretto.ir.dialect.pipeline import ConsumerReadOp, ProducerWriteOp
from stretto.ir.programs.head import Head, issued


@dataclass(frozen=True, slots=True)
class Made:
    """The result of an operation of the program."""

    op: str
    value: str


@dataclass(frozen=True, slots=True)
class Piped:
    """What a read gave."""

    pipe: str
    iterator: str


Trace = Made | Piped | None


def trace(head: Head, versions: dict[SSAValue, str], value: SSAValue) -> Trace:
    """Follow a value back; `versions` are the iterators that every SSA value of one stands for."""
    while isinstance(value, OpResult):
        op, index = value.op, value.index
        name = issued(op)
        if name is not None:
            return Made(name, head.loop.op(name).results[index])
        match op:
            case ConsumerReadOp() if index > 0:
                pipe = head.pipes.get(op.pipeline)
                iterator = versions.get(op.iterator)
                return None if pipe is None or iterator is None else Piped(pipe.name, iterator)
            case ProducerWriteOp() if index > 0:
                last = op.body.block.last_op
                inner = last.operands if last is not None else ()
                if index > len(inner):
                    return None
                value = inner[index - 1]
            case IfOp():
                last = op.true_region.block.last_op
                if last is None or index >= len(last.operands):
                    return None
                value = last.operands[index]
            case SelectOp():
                value = op.rhs
            case _ if op.operands and (row_of(op).view or isinstance(op, GenericOp)):
                value = op.operands[0]
            case _:
                return None
    return None
