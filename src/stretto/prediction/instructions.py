"""What agents do on an SM, and what it costs.

    Full(k_tile, 3) ─ Product(512) ─ Work(224) ─ Work(603) ─ Settle(0) ─ Arrive(k_tile, 3) ─ Step

Work is arithmetic that nothing interrupts: cycles of two kinds of pipes that overlap, and cycles in
which it waits for results of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


def both(arithmetic: float, special: float) -> float:
    """Cycles of work of two kinds of pipes that overlaps: a little more than the longer of both."""
    return (arithmetic**3 + special**3) ** (1 / 3)


def between(points: Sequence[tuple[float, float]], at: float) -> float:
    """What lies between points that were measured, and is that of the last beyond them."""
    if at <= points[0][0]:
        return points[0][1]
    for (low, less), (high, more) in pairwise(points):
        if at <= high:
            return less + (more - less) * (at - low) / (high - low)
    return points[-1][1]


@dataclass(frozen=True, slots=True)
class Work:
    """Arithmetic that nothing interrupts."""

    cycles: float
    """Alone."""
    arithmetic: float
    """Cycles of the arithmetic pipes in it, of all warps."""
    special: float
    """Cycles of the special function units in it."""
    meetings: float = 0.0
    """How often lanes have to be brought together, for two rows of each thread."""

    @property
    def idle(self) -> float:
        """Cycles in which it keeps no pipe busy, but waits for results of its own."""
        return self.cycles - both(self.arithmetic, self.special)


@dataclass(frozen=True, slots=True)
class Delay:
    """Cycles in which an agent does nothing else."""

    cycles: float
    why: str


@dataclass(frozen=True, slots=True)
class Full:
    """Wait until a slot holds what an iteration put there."""

    ring: str
    turn: int


@dataclass(frozen=True, slots=True)
class Free:
    """Wait until a slot is free for an iteration."""

    ring: str
    turn: int


@dataclass(frozen=True, slots=True)
class Copy:
    """Have an iteration's tile copied into its slot."""

    ring: str
    turn: int
    bytes: float
    source: str


@dataclass(frozen=True, slots=True)
class Arrive:
    """Say that an iteration's slot is not read any more."""

    ring: str
    turn: int


@dataclass(frozen=True, slots=True)
class Hand:
    """Hand a turn on to whoever waits for it to be full."""

    ring: str
    turn: int


@dataclass(frozen=True, slots=True)
class Product:
    """Issue a product."""

    cycles: float
    """Of the tensor core."""
    issue: float
    """Of the agent."""
    smem: float = 0.0
    """Bytes of shared memory that it reads in a cycle."""
    parts: int = 1
    """Instructions that it is."""
    rest: bool = False
    """Whether it is what was left of the one before, and done with it."""


@dataclass(frozen=True, slots=True)
class Settle:
    """Wait until all products but the youngest are done."""

    left: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a loop ends; `key` tells which loop."""

    key: int


Instruction = Work | Delay | Full | Free | Copy | Arrive | Hand | Product | Settle | Step


@dataclass(frozen=True)
class Costs:
    """What the machine's file says of waits, arrivals, products and copies."""

    wait: float
    """Cycles of a wait for something that is there, by an agent of four warps."""
    wait_warp: float
    """More, or fewer, for each warp beyond four."""
    arrive: float
    arrive_warp: float
    wake: float
    """From an arrival until a waiter goes on."""
    expect: float
    copy_issue: float
    latency: dict[str, float]
    """Of a copy, by where it comes from: cycles until its first byte."""
    queue: float
    """Bytes that may be on their way before the memory's rate is felt."""
    port: float
    """Bytes a cycle that an SM takes in at most."""
    rate: dict[str, float]
    """Bytes a cycle that one SM gets, by where they come from."""
    product_latency: float
    """Of a product, beyond its cycles of the tensor core."""
    settle: float
    """More of an arrival that follows a wait for products: warps have to meet."""
    beside: float
    """Part of the arithmetic pipes that a running product leaves."""
    special: float
    """Part of the special function units that it leaves."""
    meeting: tuple[tuple[float, float], ...]
    """Cycles more that lanes take to be brought together while a product runs that reads so many
    bytes of shared memory in a cycle: bytes and cycles, rising."""


@dataclass
class Landing:
    """Copies of an SM: bytes come at the memory's rate at most, and one tile after the other."""

    costs: Costs
    copied: float = 0.0
    """When the memory has sent all that was asked for."""
    landed: float = 0.0
    """When the last tile was there."""

    def lands(self, issued: float, bytes: float, source: str) -> float:
        """When a tile is there that is asked for now."""
        costs = self.costs
        rate = costs.rate[source]
        begin = max(issued, self.copied - costs.queue / rate)
        self.copied = max(issued, self.copied) + bytes / rate
        self.landed = max(begin + costs.latency[source], self.landed) + bytes / costs.port
        return self.landed
