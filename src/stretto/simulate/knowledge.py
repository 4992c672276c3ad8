"""What an agent can be sure of, whatever the timing.

    load(3) ── commit ─► wait ── mma(3)        mma's agent knows: load(3) is 556 cycles on

Each agent knows, for every operation and every latency that matters, the last iteration that has
come so far. Issuing in order and waiting add to that; whoever signals passes on all it knows. A
read that happens at the right time, but that nothing makes happen then, is found by this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from stretto.loop import Loop
from stretto.materialize.origins import Origins

Known = list[int]
"""Last known iteration by level; -1: none."""

Lack = Literal["unwritten", "overwritten", "unordered"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """`dst` must come after `src` of `distance` iterations before has come `latency` far."""

    src: str
    latency: int
    distance: int
    lack: Lack
    """What it is called when that is not so."""
    via: str


def requirements(loop: Loop) -> dict[str, tuple[Requirement, ...]]:
    """What each operation needs, from the loop alone."""
    origins = Origins(loop)
    found: dict[str, list[Requirement]] = {op.name: [] for op in loop.ops}
    lacks: dict[str, Lack] = {
        "flow": "unwritten",
        "memory": "unwritten",
        "anti": "overwritten",
        "output": "overwritten",
        "order": "unordered",
    }
    for d in loop.dependences:
        into = origins.views.get(d.dst)
        if d.kind == "flow" and (d.src in origins.views or (into and into.kind == "storage")):
            continue  # a name, not data: its reader needs the origin
        need = Requirement(d.src, d.latency, d.distance, lacks[d.kind], d.via)
        found[d.dst].append(need)
    for op in loop.ops:
        found[op.name] += _behind_views(loop, origins, op.name)
    return {op: tuple(dict.fromkeys(needs)) for op, needs in found.items()}


def _behind_views(loop: Loop, origins: Origins, name: str) -> Iterable[Requirement]:
    for seen in origins.seen(loop.op(name)):
        maker = loop.producers.get(seen.path.origin)
        if seen.kind != "value" or not seen.path.views or maker is None:
            continue
        (operand,) = loop.op(seen.path.views[-1]).operands
        ready = loop.op(maker).ready if operand.latency is None else operand.latency
        distance = seen.path.distance
        yield Requirement(maker, ready, distance, "unwritten", seen.path.origin)


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
