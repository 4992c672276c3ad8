"""Which operations may share one hold, and what they hold then.

read0 ┐ same kind, slots and bank, every slot lets several fuse: one class
read1 ├─ of which as many as the cap may form a group
read2 ┘ unless a distance-0 path or nesting keeps two apart
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from stretto.deadline import Deadline
from stretto.loop import Loop, Op, ResourceVector, Use
from stretto.loop.parts import cached_property
from stretto.machine import Machine
from stretto.problem.graph import Graph

FusionClass = tuple[str, tuple[str, ...], int]
"""Kind, slots held (sorted) and bank: operations that agree in all three may fuse."""

Shape = tuple[Use, ...]
"""What is held, slot by slot in order of time."""


@dataclass(frozen=True, slots=True)
class Class:
    """Operations of which some may fuse."""

    members: tuple[int, ...]
    """In program order."""
    cap: int
    """Members of one group at most."""
    apart: frozenset[tuple[int, int]]
    """Pairs (lower first) that never share a group: a path or nesting lies between them."""


@dataclass(frozen=True)
class Fusion:
    """What may fuse with what; nothing where fusion is not wanted."""

    loop: Loop
    machine: Machine
    wanted: bool = True

    @cached_property
    def keys(self) -> tuple[FusionClass | None, ...]:
        """By operation: what others must share to fuse with it; None: it never fuses."""
        if not self.wanted:
            return (None,) * len(self.loop.ops)
        machine = self.machine
        return tuple(
            [None if op.facts.bank is None else fusion_class(op, machine) for op in self.loop.ops]
        )

    @cached_property
    def alike(self) -> dict[FusionClass, tuple[int, ...]]:
        """Class to all of it, in program order; a class of one included."""
        found: dict[FusionClass, list[int]] = {}
        for i, key in enumerate(self.keys):
            if key is not None:
                found.setdefault(key, []).append(i)
        return {key: tuple(members) for key, members in found.items()}

    def cap(self, key: FusionClass) -> int:
        """How many of a class may share a hold."""
        return min(self.machine.slot(slot).fusion_cap for slot in key[1])

    def classes(self, graph: Graph, deadline: Deadline) -> tuple[Class, ...]:
        """Sets of at least two operations, with the pairs that are kept apart."""
        sets = {key: members for key, members in self.alike.items() if len(members) > 1}
        ahead = {i: _reached(graph, i, deadline) for members in sets.values() for i in members}

        def kept_apart(a: int, b: int) -> bool:
            deadline.check()
            if b in ahead[a] or a in ahead[b]:
                return True
            return a in enclosing(self.loop, b) or b in enclosing(self.loop, a)

        return tuple(
            Class(
                members,
                self.cap(key),
                frozenset(pair for pair in combinations(members, 2) if kept_apart(*pair)),
            )
            for key, members in sets.items()
        )


def fusion_class(op: Op, machine: Machine) -> FusionClass | None:
    """What an operation must share with others to fuse with them; None: it never fuses.

    It holds something, every slot it holds lets several fused operations share one hold, and
    its bank is stated.
    """
    if op.facts.bank is None:
        return None
    slots = tuple(sorted(use.slot for use in op.vector.uses if use.duration > 0))
    if not slots:
        return None
    if any(machine.slot(slot).fusion_cap < 2 for slot in slots):
        return None
    return op.kind, slots, op.facts.bank


def enclosing(loop: Loop, i: int) -> Iterator[int]:
    """The operations that an operation is nested in, the innermost first."""
    seen = {i}
    above = loop.ops[i].parent
    while above is not None and above in loop.index and loop.index[above] not in seen:
        yield loop.index[above]
        seen.add(loop.index[above])
        above = loop.op(above).parent


def _reached(graph: Graph, source: int, deadline: Deadline) -> set[int]:
    """What an operation leads to by dependences of distance 0."""
    deadline.check()
    seen: set[int] = set()
    front = [source]
    while front:
        for arc in graph.inside[front.pop()]:
            if arc.other not in seen:
                seen.add(arc.other)
                front.append(arc.other)
    return seen


# What is held together -----------------------------------------------------------------------


def shape(vector: ResourceVector) -> Shape:
    """What an operation holds, slot by slot in order of time."""
    held = [use for use in vector.uses if use.duration]
    return tuple(sorted(held, key=lambda use: (use.slot, use.offset)))


def join(a: Sequence[Use], b: Sequence[Use]) -> Shape:
    """What two fused operations hold: use by use, the first offset to the last end."""
    return tuple(
        replace(
            x,
            offset=min(x.offset, y.offset),
            duration=max(x.end, y.end) - min(x.offset, y.offset),
            occupancy=max(x.occupancy, y.occupancy),
        )
        for x, y in zip(a, b, strict=True)
    )
