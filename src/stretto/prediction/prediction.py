"""What a prediction says: of each loop, and of the whole kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class LoopTime:
    """One loop of a kernel, in its steady part."""

    name: str
    ii: int
    """Of its schedule: cycles an iteration, were nothing late."""
    stages: int
    cycles: float
    """An iteration."""
    trips: int
    """In a middling block."""
    units: Mapping[str, float]
    """Cycles of an iteration in which each unit is busy."""
    spent: Mapping[str, Mapping[str, float]]
    """Of each agent: cycles of an iteration by what they go to, which add up to it."""
    bound: str
    """What it is bound by: one of its units, or of the kinds below."""
    agent: str = ""
    """The one that computes."""
    kinds: Mapping[str, float] = field(default_factory=dict[str, float])
    """Cycles of its iteration by kind, which add up to it."""
    coded: bool = False
    """Whether its cycles are told by machine code."""


@dataclass(frozen=True)
class Prediction:
    """One kernel in one configuration, on a grid."""

    kernel: str
    machine: str
    mode: str
    consumers: int
    rings: Mapping[str, int]
    """Slots of each."""
    grid: tuple[int, ...]
    loops: tuple[LoopTime, ...]
    block: float
    """Cycles of a middling block."""
    fill: float
    """Of them, those before and behind the steady parts of its loops."""
    resident: int
    """Blocks that an SM runs at a time."""
    waves: float
    """Blocks for each place on an SM."""
    cycles: float
    """Of all blocks, from the first to the last."""
    tail: float
    """Of them, cycles in which some SM has nothing left to do."""
    clock: float
    """MHz."""
    seconds: float
    """Of a launch."""
    flops: float
    """Floating point operations of its products."""
    spilled: int = 0
    """Registers of a thread that are too many by our count; bytes of a thread that the assembler
    stores for want of registers, where it was asked."""
    assembled: bool = False
    """Whether it was."""
    crowd: int = 0
    """Blocks that an SM would run at a time if they took no shared memory."""

    @property
    def spills(self) -> bool:
        """Whether its registers are too many."""
        return self.spilled > 0

    @property
    def iteration(self) -> float:
        """Cycles an iteration of its longest loop."""
        return max((loop.cycles for loop in self.loops), default=0.0)

    @property
    def tflops(self) -> float | None:
        """Of its products; None where it has none."""
        return self.flops / self.seconds / 1e12 if self.flops else None

    @property
    def longest(self) -> LoopTime | None:
        """The loop that takes most of a block."""
        return max(self.loops, key=lambda loop: loop.cycles * loop.trips, default=None)

    @property
    def bound(self) -> str:
        """What its longest loop is bound by."""
        return self.longest.bound if self.longest is not None else "launch"
