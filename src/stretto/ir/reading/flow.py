"""What an operation of a loop reads, and from which iteration.

    iter_args(%m = ...) { use %m ; scf.yield %m_new }     use reads m_new, 1 iteration back
    iter_args(%a, %b)   { use %b ; scf.yield %new, %a }   use reads new, 2 iterations back

Constants, descriptors, pipelines, buffers to fill, and accumulators that stay in place are no data.
"""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import TypeIs
from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from stretto.ir.dialect.memory import AllocTensorOp
from stretto.ir.dialect.types import PipelineType, buffer_of
from stretto.ir.reading.values import (
    accumulator_of,
    immediate,
    inside,
    register_sums,
    special_operands,
    through_bodies,
    through_views,
    yielded,
)
from stretto.vocabulary.spaces import GLOBAL, REGISTERS


class Flow:
    """The flow of data in one loop."""

    def __init__(self, for_op: ForOp) -> None:
        self._for = for_op
        self.sums = dict(register_sums(for_op))
        self._flows: dict[SSAValue, tuple[SSAValue, int] | None] = {}

    def read_by(self, op: Operation) -> Iterable[SSAValue]:
        """The operands whose data an operation reads."""
        if not isinstance(op, ForOp):
            special = special_operands(op)
            total = accumulator_of(op)
            return [
                operand
                for i, operand in enumerate(op.operands)
                if _is_data(operand)
                and (i not in special or (operand is total and self._flows_in(op, operand)))
            ]
        captured = [
            operand
            for nested in op.walk()
            for operand in nested.operands
            if not inside(operand, op.body.block)
        ]
        # What an inner loop does with a buffer as such, its accesses say.
        return [v for v in dict.fromkeys(captured) if _is_data(v) and not _is_bare(v)]

    def _flows_in(self, op: Operation, total: SSAValue) -> bool:
        """Whether what a product adds to is made by another: else it stays in place."""
        flow = self.source_of(total)
        if flow is None or _is_bare(flow[0]):
            return False
        own = isinstance(flow[0], OpResult) and flow[0].op is op
        if own and flow[1] > 0:
            return buffer_of(total.type) == REGISTERS and total not in self.sums
        return True

    def source_of(self, value: SSAValue) -> tuple[SSAValue, int] | None:
        """The value that is meant, and how many iterations back; None: held by the instruction."""
        if value not in self._flows:
            self._flows[value] = self._find_flow(value)
        return self._flows[value]

    def _find_flow(self, value: SSAValue) -> tuple[SSAValue, int] | None:
        """Back through the arguments that carry it; each on the way is found once."""
        way: dict[SSAValue, None] = {}
        at = through_bodies(value)
        while self._is_carried(at) and at not in self._flows:
            if at in way:  # arguments that only change places: nobody in the loop makes them
                return value, 0
            way[at] = None
            at = through_bodies(yielded(self._for, at.index - 1))
        flow = self._flows[at] if at in self._flows else self._made(at)
        for carried in reversed(way):
            if flow is not None and self._is_carried(flow[0]):
                flow = carried, 0
            elif flow is not None and inside(flow[0], self._for.body.block):
                flow = flow[0], flow[1] + 1
            self._flows[carried] = flow
        return flow

    def _is_carried(self, value: SSAValue) -> TypeIs[BlockArgument]:
        block = self._for.body.block
        return isinstance(value, BlockArgument) and value.block is block and value.index > 0

    def _made(self, at: SSAValue) -> tuple[SSAValue, int] | None:
        # What never changes is the same at every distance, and whatever it is called.
        if not inside(at, self._for.body.block):
            at = through_views(at)
        return None if immediate(at) else (at, 0)


def _is_data(value: SSAValue) -> bool:
    """Not a descriptor, nor a pipeline."""
    return buffer_of(value.type) != GLOBAL and not isinstance(value.type, PipelineType)


def _is_bare(value: SSAValue) -> bool:
    """Whether a value is a buffer as such, which nobody has filled yet."""
    return isinstance(value, OpResult) and isinstance(value.op, AllocTensorOp)
