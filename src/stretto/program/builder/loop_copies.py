"""Which rings of a loop threads copy to themselves, and who reads them."""

from __future__ import annotations

from collections.abc import Sequence

from stretto.kernel import Operation
from stretto.kernel.lowering.loads import LEAST_COPY
from stretto.kernel.lowering.written import COPY
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer
from stretto.materialization.program import Issue
from stretto.ops.opcodes import opcode
from stretto.program.builder.layouts import copied_at_once
from stretto.program.builder.loop_view import LoopView
from stretto.program.builder.thread_copies import RingCopies, ThreadCopies
from stretto.program.errors import EmitError


class LoopCopies(LoopView):
    """Finds an agent's copies by threads in a loop, and counts their groups."""

    def _find_copies(self) -> None:
        """The rings that threads of this agent copy to."""
        found: list[RingCopies] = []
        starts, operations = self._program.starts, self._wiring.operations
        for i in self._issues:
            if kind_of(operations[i.op]) != COPY:
                continue
            ring = next(r for r, reads in self._touched(i) if not reads)
            readers = [j for j in self._issues if (ring, True) in self._touched(j)]
            if not readers or self._stored_from(ring):
                told = f"nobody computes with what `{i.op}` copies: this has no Gluon yet"
                raise EmitError(told, operations[i.op])
            readers.sort(key=lambda j: starts[j.op])
            rows = [opcode(kind_of(operations[j.op])) for j in readers]
            by_products = any(row.accumulator is not None for row in rows)
            found.append(RingCopies(ring, i, tuple(readers), by_products))
        self._require_whole([operations[one.copies.op] for one in found])
        self._copies = ThreadCopies(found, operations, self._awaited)

    def _require_whole(self, copies: Sequence[Operation]) -> None:
        """That Triton sees what copies bring at once: promises in the source are not printed."""
        for copy, elements in copied_at_once(self._a.plan.kernel, copies).items():
            buffer = copy.operands[-1].type
            assert isinstance(buffer, Buffer)
            bytes = elements * buffer.element.bits // 8
            if bytes < LEAST_COPY:
                told = f"threads would copy {bytes} bytes at once; Triton takes {LEAST_COPY}"
                raise EmitError(told, copy, "strides as tl.constexpr say more than tl.multiple_of")

    def _commit(self, i: Issue) -> None:
        """What a copy asked for is a group; nothing of other operations."""
        if i.op in self._copies.rings:
            for instruction in self._copies.commit(i.op):
                self._a.say(instruction)
