"""Which rings of a loop threads copy to themselves, and who reads them."""

from __future__ import annotations

from stretto.kernel.lowering.written import COPY
from stretto.kernel.tree import kind_of
from stretto.materialization.program import Issue
from stretto.ops.opcodes import opcode
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
        self._copies = ThreadCopies(found, operations, self._awaited)

    def _commit(self, i: Issue) -> None:
        """What a copy asked for is a group; nothing of other operations."""
        if i.op in self._copies.rings:
            for instruction in self._copies.commit(i.op):
                self._a.say(instruction)
