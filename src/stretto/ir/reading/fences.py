"""Barriers as dependences: who touches memory stays on its side, round the loop as well.

read ─► barrier ─► write ─► (next iteration) barrier
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation
from xdsl.traits import Pure

from stretto.ir.dialect.barriers import BarrierOp
from stretto.loop import Dependence, Op
from stretto.vocabulary.opcodes import opcode


def fences(ops: Sequence[Op], body: Sequence[Operation]) -> Iterator[Dependence]:
    """The orders that barriers ask for; `body` is where each operation comes from."""
    at = [i for i, op in enumerate(body) if isinstance(op, BarrierOp)]
    if not at:
        return
    touching = [_touches(op, source) for op, source in zip(ops, body, strict=True)]
    # Round the loop: the operations before the first barrier follow the last one's.
    around = [*range(at[-1] + 1, len(ops)), *range(at[0])]
    for number, fence in enumerate(at):
        last = number + 1 == len(at)
        following = at[0] if last else at[number + 1]
        for i in around if last else range(fence + 1, following):
            if touching[i]:
                before, after = int(i < fence), int(last and i > fence)
                yield _order(ops[fence], ops[i], before)
                yield _order(ops[i], ops[following], after)


def _touches(op: Op, source: Operation) -> bool:
    """Whether an operation may touch memory: all that is not known to leave it alone."""
    if op.reads or op.writes:
        return True
    return opcode(op.kind).memory and not source.has_trait(Pure, value_if_unregistered=False)


def _order(src: Op, dst: Op, distance: int) -> Dependence:
    return Dependence(src.name, dst.name, 0, distance, "order", "barrier")
