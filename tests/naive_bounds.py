"""The bounds and the closure, as their definitions read: slow, short, and for small loops.

every simple cycle by depth-first search, every grouping of a fusion class, every path
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil

from stretto.loop import Dependence, Loop, Op
from stretto.machine import Machine


def resource(loop: Loop, machine: Machine, *, fuse: bool) -> int:
    machine = machine.with_slots(loop.slots)
    bound = 1
    for slot in machine.slots:
        if slot.capacity is None:
            continue
        classes: dict[object, list[Op]] = {}
        for op in loop.ops:
            key = _class(op, machine) if fuse else None
            classes.setdefault(op.name if key is None else key, []).append(op)
        total = sum(_cheapest(members, slot.name, machine) for members in classes.values())
        bound = max(bound, ceil(Fraction(total, slot.capacity)))
    return bound


def _class(op: Op, machine: Machine) -> tuple[str, tuple[str, ...], int] | None:
    held = [use.slot for use in op.uses or () if use.duration > 0]
    if op.facts.bank is None or any(machine.slot(s).fusion_cap == 1 for s in held):
        return None
    return op.kind, tuple(sorted(held)), op.facts.bank


def _cheapest(members: Sequence[Op], slot: str, machine: Machine) -> int:
    """Least cells the members fill on a slot, over every grouping within the fusion caps."""
    caps = [machine.slot(use.slot).fusion_cap for use in members[0].uses or () if use.duration > 0]
    size = min(caps, default=1)
    return min(
        sum(max(_cells(op, slot) for op in group) for group in groups)
        for groups in _groupings(list(members))
        if all(len(group) <= size for group in groups)
    )


def _cells(op: Op, slot: str) -> int:
    return sum(use.occupancy * use.duration for use in op.uses or () if use.slot == slot)


def _groupings(members: list[Op]) -> Iterator[list[list[Op]]]:
    if not members:
        yield []
        return
    for groups in _groupings(members[1:]):
        yield [[members[0]], *groups]
        for i, group in enumerate(groups):
            yield [*groups[:i], [members[0], *group], *groups[i + 1 :]]


def recurrence(loop: Loop) -> int:
    ratios = [
        ceil(Fraction(sum(d.latency for d in cycle), sum(d.distance for d in cycle)))
        for cycle in simple_cycles(loop)
    ]
    return max([1, *ratios])


def simple_cycles(loop: Loop, more: Sequence[Dependence] = ()) -> Iterator[list[Dependence]]:
    """Every simple cycle once: from its first operation, through later ones only."""
    steps = [*loop.dependences, *more]

    def walk(first: str, path: list[Dependence], at: str) -> Iterator[list[Dependence]]:
        for d in steps:
            if d.src != at:
                continue
            if d.dst == first:
                yield [*path, d]
            elif loop.index[d.dst] > loop.index[first] and all(d.dst != p.dst for p in path):
                yield from walk(first, [*path, d], d.dst)

    for op in loop.ops:
        yield from walk(op.name, [], op.name)


def group(loop: Loop) -> int:
    """Over cycles that go from member to member of a group at least once; 1: no II would do."""
    ahead: dict[str, tuple[int, int]] = {}
    for number, names in enumerate(loop.groups):
        ahead |= {name: (number, loop.op(name).constraint.stage_offset) for name in names}
    back = [
        Dependence(b, a, 1, 1 + ahead[b][1] - ahead[a][1])
        for a in ahead
        for b in ahead
        if a != b and ahead[a][0] == ahead[b][0]
    ]
    bound = 1
    for cycle in simple_cycles(loop, back):
        latency, distance = sum(d.latency for d in cycle), sum(d.distance for d in cycle)
        if distance <= 0 < latency:
            return 1
        bound = max(bound, ceil(Fraction(latency, distance)))
    return bound if bound > recurrence(loop) else 1


def fine(loop: Loop, machine: Machine) -> int:
    bound = 1
    for pool in machine.pools:
        total = 0
        for op in loop.ops:
            lasts = max((use.duration for use in op.uses or ()), default=0)
            total += sum(d.units * lasts for d in op.demands if d.pool == pool.name)
        bound = max(bound, ceil(Fraction(total, pool.cap)))
    return bound


def dependence(loop: Loop, max_stages: int | None) -> int:
    def longest(name: str) -> int:
        into = [d for d in loop.dependences if d.dst == name and d.distance == 0]
        return max((longest(d.src) + d.latency for d in into), default=0)

    bound = 1
    for op in loop.ops:
        for stages in (max_stages, _stages(op)):
            if stages is not None:
                bound = max(bound, ceil(Fraction(longest(op.name) + 1, stages)))
    return bound


def _stages(op: Op) -> int | None:
    return None if op.constraint.max_depth is None else op.constraint.max_depth + 1


def paths(loop: Loop, ii: int) -> dict[tuple[str, str], int]:
    """Longest paths between all pairs that have one, at an II that has them."""
    found = closure(loop, ii)
    assert found is not None
    return found


def closure(loop: Loop, ii: int) -> dict[tuple[str, str], int] | None:
    """Longest paths by relaxing every pair with every edge, again and again; None: a gain."""
    found = {(op.name, op.name): 0 for op in loop.ops}
    for _ in range(len(loop.ops) + 1):
        before = dict(found)
        for source in loop.ops:
            for d in loop.dependences:
                if (source.name, d.src) in found:
                    weight = found[source.name, d.src] + d.latency - ii * d.distance
                    key = (source.name, d.dst)
                    found[key] = max(found.get(key, weight), weight)
        if found == before:
            return found
    return None
