"""Where a value of a loop comes from, and what an operation reads: from which iteration.

scf.for ... iter_args(%m = %m0) { ... use %m ... scf.yield %m_new }
                                      └──► %m_new of the iteration before: distance 1

    iter_args(%a, %b)   { use %b ; scf.yield %new, %a }   use reads new, 2 iterations back

%t = transpose %b;  %b = tiled_tma_load ... into %ring      both live in %ring

Constants, descriptors, pipelines, buffers to fill, and accumulators that stay in place are no data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic

from stretto.extraction.source import (
    BODIES,
    FOR,
    IF,
    NESTED,
    WHILE,
    BlockT,
    OpT,
    Source,
    UnreadableError,
    ValueT,
)
from stretto.ops.spaces import GLOBAL, MEMORIES, REGISTERS


@dataclass(frozen=True, slots=True)
class BufferHome(Generic[ValueT]):
    """The buffer a tile lives in, by the value that stands for it; how many iterations back."""

    root: ValueT
    distance: int = 0


class BufferHomes(Generic[OpT, BlockT, ValueT]):
    """The buffers that tiles live in; each is found once."""

    def __init__(self, source: Source[OpT, BlockT, ValueT]) -> None:
        self._source = source
        self._known: dict[ValueT, BufferHome[ValueT]] = {}

    def of(self, value: ValueT) -> BufferHome[ValueT] | None:
        """The buffer of a tile in shared or tensor memory; None for anything else."""
        if self._source.buffer(value) not in MEMORIES:
            return None
        way: list[ValueT] = []
        at = value
        home: BufferHome[ValueT] | None = None
        while home is None:
            if at in self._known:
                home = self._known[at]
                break
            way.append(at)
            at, home = self._behind(at)
        for passed in way:
            self._known[passed] = home
        return home

    def _behind(self, value: ValueT) -> tuple[ValueT, BufferHome[ValueT] | None]:
        """One step back: the value that this one is another name of; its home, if it has one."""
        text = self._source
        value = text.through_bodies(value)
        op, index = text.maker(value), text.index(value)
        if op is not None:
            name = text.name(op)
            if name == FOR:
                return text.yielded(op, index), None
            if name in (IF, WHILE):
                return value, self._chosen(op, index)
            if index == 0:
                filled = text.destination(op) or text.accumulator(op)
                if filled is not None:
                    return filled, None
                if text.row(op).view:
                    return text.operands(op)[0], None
            return value, BufferHome(value)
        block = text.entered(value)
        parent = None if block is None else text.above(block)
        if parent is not None:
            name = text.name(parent)
            if name in BODIES:
                return value, BufferHome(text.operands(parent)[0])
            if name == FOR and index > 0:
                return value, self._carried(parent, index - 1)
            if name == WHILE:
                told = "in which buffer it goes on is not known before; read the tile before it"
                raise UnreadableError(parent, told)
        return value, BufferHome(value)

    def _chosen(self, op: OpT, position: int) -> BufferHome[ValueT]:
        """The home of a tile that control flow hands out: one and the same, whatever happens."""
        found = [self.of(end) for end in self._ends(op, position)]
        first = found[0] if found else None
        if first is None or any(home != first for home in found):
            raise _unknown_home(op, position)
        return first

    def _ends(self, op: OpT, position: int) -> list[ValueT]:
        """What each side of an scf.if hands out as a result; of an scf.while, none."""
        text = self._source
        if text.name(op) != IF:
            return []
        lasts = [text.last(block) for block in text.blocks(op)]
        return [text.operands(last)[position] for last in lasts if last is not None]

    def _carried(self, loop: OpT, position: int) -> BufferHome[ValueT]:
        """The home of a carried tile: where it was before the loop, or one of the loop's own."""
        text = self._source
        first = self.of(text.operands(loop)[3 + position])
        assert first is not None  # the same type as the carried value
        root: ValueT | int = position
        back, seen = 0, list[int]()
        while isinstance(root, int):
            if root in seen:
                if root != position or len(seen) > 1:
                    reason = "buffers that change places between iterations cannot be followed"
                    raise UnreadableError(loop, reason)
                return first
            seen.append(root)
            root, back = self._root_inside(loop, text.yielded(loop, root)), back + 1
        if text.defined_in(root, text.body(loop)):
            return BufferHome(root, back)
        if root is not first.root:
            raise UnreadableError(
                loop, f"carried value {position} begins in one buffer and goes on in another"
            )
        return first

    def _root_inside(self, loop: OpT, value: ValueT) -> ValueT | int:
        """Where a yielded tile lives, without going round the loop: a root, or which argument."""
        text = self._source
        while True:
            op, index = text.maker(value), text.index(value)
            if op is None and text.entered(value) is text.body(loop):
                return index - 1
            if value in self._known:
                return self._known[value].root
            if op is not None and text.name(op) == IF:
                roots = [self._root_inside(loop, end) for end in self._ends(op, index)]
                if not roots or any(root != roots[0] for root in roots):
                    raise _unknown_home(op, index)
                return roots[0]
            value, home = self._behind(value)
            if home is not None:
                return home.root


def _unknown_home(op: object, position: int) -> UnreadableError:
    return UnreadableError(op, f"in which buffer result {position} lives is not known before")


class Flow(Generic[OpT, BlockT, ValueT]):
    """The flow of data in one loop, or in a block that nothing is carried round."""

    def __init__(
        self, source: Source[OpT, BlockT, ValueT], owner: OpT, block: BlockT | None = None
    ) -> None:
        self._source = source
        self._for = owner if block is None and source.name(owner) == FOR else None
        self._block = source.body(owner) if block is None else block
        self.sums: dict[ValueT, ValueT] = {}
        if self._for is not None:
            self.sums.update(source.register_sums(self._for))
        self._flows: dict[ValueT, tuple[ValueT, int] | None] = {}

    def read_by(self, op: OpT) -> Iterable[ValueT]:
        """The operands whose data an operation reads."""
        text = self._source
        if text.name(op) not in NESTED:
            special = text.special_operands(op)
            total = text.accumulator(op)
            return [
                operand
                for i, operand in enumerate(text.operands(op))
                if self._is_data(operand)
                and (i not in special or (operand is total and self._flows_in(op, operand)))
            ]
        captured = [
            operand
            for nested in text.walk(op)
            for operand in text.operands(nested)
            if not text.enclosed_by(operand, op)
        ]
        # What an inner loop does with a buffer as such, its accesses say.
        return [v for v in dict.fromkeys(captured) if self._is_data(v) and not text.is_bare(v)]

    def _flows_in(self, op: OpT, total: ValueT) -> bool:
        """Whether what a product adds to is made by another: else it stays in place."""
        text, flow = self._source, self.source_of(total)
        if flow is None or text.is_bare(flow[0]):
            return False
        if text.maker(flow[0]) is op and flow[1] > 0:
            return text.buffer(total) == REGISTERS and total not in self.sums
        return True

    def source_of(self, value: ValueT) -> tuple[ValueT, int] | None:
        """The value that is meant, and how many iterations back; None: held by the instruction."""
        if value not in self._flows:
            self._flows[value] = self._find_flow(value)
        return self._flows[value]

    def _find_flow(self, value: ValueT) -> tuple[ValueT, int] | None:
        """Back through the arguments that carry it; each on the way is found once."""
        text = self._source
        way: dict[ValueT, None] = {}
        at = text.through_bodies(value)
        while self._for is not None and self._is_carried(at) and at not in self._flows:
            if at in way:  # arguments that only change places: nobody in the loop makes them
                return value, 0
            way[at] = None
            at = text.through_bodies(text.yielded(self._for, text.index(at) - 1))
        flow: tuple[ValueT, int] | None
        flow = self._flows[at] if at in self._flows else self._made(at)
        for carried in reversed(way):
            if flow is not None and self._is_carried(flow[0]):
                flow = carried, 0
            elif flow is not None and text.defined_in(flow[0], self._block):
                flow = flow[0], flow[1] + 1
            self._flows[carried] = flow
        return flow

    def _is_carried(self, value: ValueT) -> bool:
        text = self._source
        if self._for is None or text.maker(value) is not None:
            return False
        return text.entered(value) is self._block and text.index(value) > 0

    def _made(self, at: ValueT) -> tuple[ValueT, int] | None:
        # What never changes is the same at every distance, and whatever it is called.
        if not self._source.defined_in(at, self._block):
            at = self._source.through_views(at)
        return None if self._source.immediate(at) else (at, 0)

    def _is_data(self, value: ValueT) -> bool:
        """Not a descriptor, nor a pipeline."""
        return self._source.buffer(value) != GLOBAL and not self._source.is_pipeline(value)
