"""What warps issue: instructions of a thread, by what a beat does.

    load of 4 elements   2 for the address, 1 for the mask, 1 for what else is there, 1 that loads
    sums + x             1 an element
    y.to(float16)        1 for two elements

Four schedulers issue them, one warp at a time each; warps of all blocks of an SM share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stretto.kernel import Operation
from stretto.kernel.types import Scalar, Tile
from stretto.prediction.memory import Memory
from stretto.prediction.score import Beat, LoopScore
from stretto.prediction.touching import Access

WARP = 32
QUARTERS = 4
"""Schedulers of an SM: fewer warps leave some of them idle."""
WIDE = 16
"""Bytes that a thread loads at once."""
ACCESS = 5
"""Instructions of a masked access, its address and its mask among them."""
START, MEETING = 50, 40
"""Instructions of a block before its first loop and behind its last, and of a reduction over it."""
HALF = 16
"""Bits of numbers of which two are made at once."""


def makes_data(name: str, loop: LoopScore) -> bool:
    """Whether an operation makes numbers with a fraction: whatever else there is are addresses."""
    for beat in loop.kernel:
        if beat.op == name and beat.operation is not None and beat.operation.results:
            type = beat.operation.results[0].type
            element = type.element if isinstance(type, Tile) else type
            return isinstance(element, Scalar) and element.is_float
    return False


@dataclass(frozen=True)
class Issuing:
    """How a block of so many warps issues."""

    warps: int
    touched: Mapping[Operation, Access]
    memory: Memory

    @property
    def lanes(self) -> int:
        """Threads of a block."""
        return WARP * self.warps

    def accesses(self, access: Access) -> float:
        """Loads or stores of a thread: tiles of one shape are split alike, by the widest."""
        widest = max(other.bytes / other.elements for other in self.touched.values())
        at_once = max(1.0, WIDE // max(1.0, widest))
        return max(1.0, access.elements / self.lanes / at_once)

    def instructions(self, beat: Beat, loop: LoopScore) -> float:
        """Of a thread, for one beat of a loop."""
        made = beat.operation
        if made is None or not beat.op:
            return 0.0
        if made in self.touched:
            return ACCESS * self.accesses(self.touched[made])
        if not made.results or not makes_data(beat.op, loop):
            return 0.0
        type = made.results[0].type
        if not isinstance(type, Tile):
            return 1.0
        each = type.elements / self.lanes
        return each / 2 if type.element.bits == HALF else each

    def step(self, loop: LoopScore) -> float:
        """Of a thread, in a step of a loop."""
        return sum(self.instructions(beat, loop) for beat in loop.kernel)

    def slots(self, instructions: float) -> float:
        """Cycles of all schedulers that so many instructions of each thread take."""
        return instructions * self.warps / QUARTERS * self.memory.instruction[1]

    def cycles(self, instructions: float, others: float) -> float:
        """Cycles of a block for so many of each thread, where others have a part of the slots."""
        alone, _ = self.memory.instruction
        return max(instructions * alone, self.slots(instructions) / (1 - others))
