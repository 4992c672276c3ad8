"""What `moving` moves on, and what it is after: rows of numbers, whoever made them.

node 0  load              CUDA ░░████░░        arcs: 0 ─► 2 by 128
node 1  qk, pv (tied)     TC   ██░░░██░        rooms: written by 0, done with by 2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

NEVER = 1 << 60
"""A start that nothing limits."""


class Links:
    """Dependences between nodes, of each pair the strongest: a row of numbers for each field."""

    __slots__ = ("dst", "gain", "src")

    def __init__(self, nodes: int, links: Iterable[tuple[int, int, int]]) -> None:
        """Of (source, destination, gain) of so many nodes; those of one to itself are none."""
        known: dict[int, int] = {}
        for src, dst, gain in links:
            if src != dst:
                pair = src * nodes + dst
                if known.get(pair, -NEVER) < gain:
                    known[pair] = gain
        self.src: list[int] = [pair // nodes for pair in known]
        self.dst: list[int] = [pair % nodes for pair in known]
        self.gain: list[int] = list(known.values())
        """latency - II × distance, and what offsets add."""

    def __len__(self) -> int:
        return len(self.src)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.src, self.dst, self.gain, strict=True)


@dataclass(frozen=True, slots=True)
class Board:
    """What a loop asks at one II, by node, as rows of numbers; lists of lists are cut by `_at`."""

    ii: int
    arcs: Links
    """Between nodes that hold something."""
    every: Links
    """Between all nodes."""
    order: Sequence[int]
    """All nodes in topological order."""
    segments: Sequence[Sequence[tuple[int, int, int, int]]]
    """By node: (column, offset, length, amount) wound around the II."""
    limits: Sequence[int]
    """By column."""
    fitted: int
    """Nodes, the first ones, that `fit` places; the others follow."""
    first: Sequence[int]
    """By node: its first start, were there nobody else."""
    last: Sequence[int]
    """By node: its last start; NEVER: none."""
    reach: Sequence[int]
    """By node: the latest start of an operation in it, from its own start on."""
    pinned: bool
    """Whether somebody is told where to stand: stages then count from 0, not from the first."""
    groups: Sequence[Sequence[tuple[int, int]]]
    """(node, offset) of operations that share a stage, each so much after its node's start."""
    writers: Sequence[Sequence[tuple[int, int]]]
    """By room: (node, offset) of who writes it."""
    accessors: Sequence[Sequence[tuple[int, int]]]
    """By room: (node, cycles from its start until it is done with an instance)."""
    room_bytes: Sequence[int]
    room_space: Sequence[int]
    """By room: its space; -1: registers; -2 - n: those of agent n, rooms of their own."""
    base: Sequence[int]
    """By space: bytes that are there whatever the schedule."""
    budget: Sequence[int]
    """By space."""
    always: int
    """Register bytes that always live."""
    unit: int
    """Bytes of a register."""
    registers: int
    """How many there are; NEVER: any number."""
    agents: Sequence[int] = ()
    """By agent whose registers are counted: the bytes that what lives for a time may have."""


@dataclass(frozen=True, slots=True, order=True)
class Worth:
    """What a placement takes, in the order in which a kernel loses by it."""

    spills: bool
    stages: int
    bytes: int
    registers: int
