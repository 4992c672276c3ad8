"""What an agent can be sure of, whatever the timing.

    load(3) ── commit ─► wait ── mma(3)        mma's agent knows: load(3) is 556 cycles on

Each agent knows, for every operation and every latency that matters, the last iteration that has
come so far. Issuing in order and waiting add to that; whoever signals passes on all it knows. A
read that happens at the right time, but that nothing makes happen then, is found by this.
"""

from __future__ import annotations

from stretto.loop import Loop
from stretto.simulate.needs import Requirement

Known = list[int]
"""Last known iteration by level; -1: none."""


class Levels:
    """Numbers the (operation, latency) pairs that matter."""

    def __init__(self, loop: Loop, needs: dict[str, tuple[Requirement, ...]]) -> None:
        wanted: dict[str, set[int]] = {op.name: {op.completion} for op in loop.ops}
        for found in needs.values():
            for need in found:
                wanted[need.src].add(need.latency)
        self._number: dict[tuple[str, int], int] = {}
        self._of: dict[str, list[tuple[int, int]]] = {}
        for op, latencies in wanted.items():
            for latency in sorted(latencies):
                number = len(self._number)
                self._number[op, latency] = number
                self._of.setdefault(op, []).append((latency, number))

    def nothing(self) -> Known:
        """What is known before anything happens."""
        return [-1] * len(self._number)

    def number(self, op: str, latency: int) -> int:
        """The level of an operation at a latency that matters."""
        return self._number[op, latency]

    def learn(self, known: Known, op: str, latency: int, iteration: int) -> None:
        """An operation's iteration has come so far."""
        for level, number in self._of[op]:
            if level <= latency and known[number] < iteration:
                known[number] = iteration


def merge(known: Known, other: Known) -> None:
    """Add what another knows."""
    known[:] = [a if a > b else b for a, b in zip(known, other, strict=True)]
