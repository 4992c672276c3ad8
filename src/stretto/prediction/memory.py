"""Memory as threads see it: how long a load takes at a rate, and what an SM's own cache keeps.

bytes a cycle    0.6    4.3   10.5   14.8   16.8      of HBM, by each SM
cycles           793    884  1,500  2,126  3,788
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log2

from stretto.machine import Machine


@dataclass(frozen=True)
class Curve:
    """Latency of a memory by the bytes a cycle that an SM takes of it."""

    points: tuple[tuple[float, float], ...]

    @property
    def most(self) -> float:
        """Bytes a cycle that there are."""
        return max(rate for rate, _ in self.points)

    def latency(self, rate: float) -> float:
        """Cycles, between what was measured."""
        low = self.points[0]
        if rate <= low[0]:
            return low[1]
        for (slow, short), (fast, long) in pairwise(self.points):
            if rate <= fast:
                return short + (long - short) * (rate - slow) / (fast - slow)
        return self.points[-1][1]


GATHERED = 16
"""Loads of a block that the latency beside stores was measured with."""


@dataclass(frozen=True)
class Memory:
    """What a machine says of loads and stores by threads."""

    keeps: tuple[tuple[float, float], ...]
    """Bytes that an SM goes round in, and the part of its loads that its own cache then has."""
    cache: float
    """Bytes of the one that all share."""
    own: tuple[float, float]
    """Of an SM's own cache: cycles of latency, bytes a cycle."""
    shared: Curve
    far: Curve
    beside: Curve
    """Of the same where as much is stored: until the last of 16 loads of a block is there."""
    last: float
    """Part by which the last is later for each time that a block loads twice as many."""
    mixed: float
    """Bytes a cycle of memory that is loaded from and stored to."""
    follow: tuple[float, float]
    """Cycles from the end of a block to the beginning of the next in its place; and at least for
    each block, however many an SM has."""
    passing: tuple[float, float]
    """The same of blocks whose threads load."""
    registers: float
    """Of a thread, beyond what it has loaded."""
    meet: tuple[float, ...]
    """Cycles of a reduction over a block of 1, 2, 4, 8 and 16 warps."""
    instruction: tuple[float, float]
    """Cycles of one: of a warp that is alone on its scheduler, and of the scheduler."""

    def meeting(self, warps: int) -> float:
        """Cycles of a reduction over a block."""
        return self.meet[min(len(self.meet), (warps - 1).bit_length() + 1) - 1]

    def late(self, loads: float) -> float:
        """How much later the last of so many loads of a block is there than the last of 16."""
        return max(0.0, 1 + self.last * log2(max(1.0, loads) / GATHERED))

    def hits(self, held: float) -> float:
        """The part of an SM's loads that its own cache has, of those that it made before."""
        (least, best), *_ = self.keeps
        if held <= least:
            return best
        for (small, more), (large, fewer) in pairwise(self.keeps):
            if held <= large:
                return more + (fewer - more) * (held - small) / (large - small)
        return 0.0


def memory_of(machine: Machine, clock: float) -> Memory | None:
    """The figures of a machine at a clock; None where it does not state them."""
    names = ("load_clock", "load_l1", "load_rate_l2", "load_latency_l2", "load_rate_hbm",
             "load_latency_hbm", "load_rate_mixed", "load_latency_mixed", "load_last",
             "load_store_hbm", "follow", "pass", "addresses", "keep_size", "keep_hits", "l2",
             "meet", "instruction")  # fmt: skip
    stated = {name: machine.timing(name) for name in names}
    found = {name: tuple(map(float, v)) for name, v in stated.items() if v is not None}
    if len(found) < len(names):
        return None
    # Memory has a clock of its own: at a slower one of the SMs it takes fewer of their cycles.
    slower = clock / found["load_clock"][0]

    def curve(source: str) -> Curve:
        rates, latencies = found[f"load_rate_{source}"], found[f"load_latency_{source}"]
        return Curve(
            tuple(
                (rate / 100 / slower, cycles * slower)
                for rate, cycles in zip(rates, latencies, strict=True)
            )
        )

    latency, rate = found["load_l1"]
    return Memory(
        tuple(
            (size * 1024, hits / 100)
            for size, hits in zip(found["keep_size"], found["keep_hits"], strict=True)
        ),
        found["l2"][0],
        (latency, rate),
        curve("l2"),
        curve("hbm"),
        curve("mixed"),
        found["load_last"][0] / 100,
        found["load_store_hbm"][0] / 100 / slower,
        (found["follow"][0], found["follow"][1]),
        (found["pass"][0], found["pass"][1]),
        found["addresses"][0],
        found["meet"],
        (found["instruction"][0] / 100, found["instruction"][1] / 100),
    )
