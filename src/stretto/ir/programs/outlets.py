"""What a loop leaves behind: the last of every carried value that somebody reads after it.

%m_last = create_ring(%m0 : T)      begins as the loop did
fill %m into %m_last                whenever an iteration makes a new one
slot %m_last                        after the program

What was handed on unchanged moves one cell further at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, SSAValue

from stretto.ir.dialect.programs import CreateRingOp, FillOp, SlotOp
from stretto.ir.dialect.types import PipelineType, buffer_of
from stretto.ir.programs.declarations import Writing, slot_of
from stretto.ir.programs.original import UnwritableError
from stretto.ir.programs.scope import Scope
from stretto.ir.reading.values import yielded
from stretto.vocabulary.spaces import MEMORIES


@dataclass
class Outlets:
    """The cells of one program, by the position of the carried value."""

    to: Writing
    cells: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    chains: dict[str, list[list[int]]] = field(default_factory=dict[str, list[list[int]]])
    """By value: positions that hand it on, the newest first."""

    def __post_init__(self) -> None:
        self.original = self.to.original

    def open(self) -> None:
        """Make a cell for every value that is read after the loop."""
        names = {value: name for name, value in self.original.results.items()}
        for position, result in enumerate(self.original.for_op.results):
            if not result.uses or self._stays(position):
                continue
            chain, root = self._chain(position)
            if root is self.original.induction or not self.original.inside(root):
                if len(chain) > 1:
                    raise self._refused(position)
                continue
            if root not in names:
                raise self._refused(position)
            # The newest first: the one that takes the value itself.
            self.chains.setdefault(names[root], []).append(chain[::-1])
            for at in chain:
                if at not in self.cells:
                    self.cells[at] = self._cell(at)

    def _refused(self, position: int) -> UnwritableError:
        reason = f"what it leaves behind as result {position} cannot be followed"
        return UnwritableError(self.original.for_op, reason)

    def _stays(self, position: int) -> bool:
        """Whether a result is a buffer that was there before, or a sum in registers."""
        value = yielded(self.original.for_op, position)
        if buffer_of(value.type) in MEMORIES:
            home = self.original.homes.of(value)
            if home is not None and self.original.inside(home.root):
                reason = f"result {position} is a tile of a ring, which others take over"
                raise UnwritableError(self.original.for_op, reason)
            return True
        return position in {at for _, at in self.original.sums.values()}

    def _chain(self, position: int) -> tuple[list[int], SSAValue]:
        """Positions from a result back to the one that is made anew, and what is made."""
        block = self.original.for_op.body.block
        chain = [position]
        value = yielded(self.original.for_op, position)
        while isinstance(value, BlockArgument) and value.block is block and value.index > 0:
            if value.index - 1 in chain:
                if len(chain) > 1:
                    raise self._refused(position)
                return chain, self.original.for_op.iter_args[position]
            chain.append(value.index - 1)
            value = yielded(self.original.for_op, value.index - 1)
        return chain, value

    def _cell(self, position: int) -> SSAValue:
        first = self.original.for_op.iter_args[position]
        made = CreateRingOp.create(operands=[first], result_types=[PipelineType(1, first.type)])
        self.to.block.add_op(made)
        made.result.name_hint = self.original.for_op.results[position].name_hint
        return made.result

    def values(self) -> frozenset[str]:
        """Values that cells take."""
        return frozenset(self.chains)

    def update(self, scope: Scope, results: dict[str, SSAValue]) -> None:
        """An operation has made new values: put them into their cells."""
        for name, value in results.items():
            done: set[int] = set()
            # The longest first, since the others are its beginnings.
            for chain in sorted(self.chains.get(name, []), key=len, reverse=True):
                for older, newer in zip(chain[:0:-1], chain[-2::-1], strict=True):
                    if older not in done:
                        self._fill(scope, self._held(scope, newer), older)
                        done.add(older)
                if chain[0] not in done:
                    self._fill(scope, value, chain[0])
                    done.add(chain[0])

    def _held(self, scope: Scope, position: int) -> SSAValue:
        cell = self.cells[position]
        return scope.add(SlotOp.create(operands=[cell], result_types=[slot_of(cell)]))

    def _fill(self, scope: Scope, value: SSAValue, position: int) -> None:
        scope.block.add_op(FillOp.create(operands=[value, self.cells[position]]))

    def results(self) -> dict[int, SSAValue]:
        """What stands for each result that is read after the program and is made in it."""
        return {
            position: self._result(Scope(self.to.block, 0, self.to.trips), position)
            for position, result in enumerate(self.original.for_op.results)
            if result.uses and buffer_of(result.type) not in MEMORIES
        }

    def _result(self, scope: Scope, position: int) -> SSAValue:
        first = self.original.for_op.iter_args[position]
        for storage, at in self.original.sums.values():
            if at == position:
                ring = self.to.rings[storage]
                return scope.add(SlotOp.create(operands=[ring], result_types=[first.type]))
        if position in self.cells:
            return self._held(scope, position)
        root = self._chain(position)[1]
        if root is self.original.induction:
            root = self.to.numbers.induction(scope, 0, 1)
        any_ran = scope.add(arith.CmpiOp(self.to.trips, self.to.numbers.whole(1), "sge"))
        return scope.add(arith.SelectOp(any_ran, root, first))
