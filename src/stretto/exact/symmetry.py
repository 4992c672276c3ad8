"""Schedules that differ in nothing that matters: of each such set the solver sees one.

    turning     every start later by k: the same rows, turned    ─►  one hold stands at cycle 0
    twins       two operations that may change places            ─►  in program order

Turning moves operations over the edge of a stage, so it is used only where no group asks for a
common stage and nothing is pinned; depth limits count from the first start, which turns along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.exact.case import Case
from stretto.loop import Op


@dataclass(frozen=True, slots=True)
class Anchor:
    """A hold that stands at the start of the circle."""

    op: int
    cycle: int
    """The cycle of the operation that puts the hold there."""


def anchor(case: Case, ii: int) -> Anchor | None:
    """The longest hold of the busiest exclusive slot; None where turning is not allowed."""
    if case.problem.members or case.problem.pinned or not case.size:
        return None
    best: tuple[int, int, Anchor] | None = None
    for limit, holds in case.slots.values():
        if limit != 1 or not holds:
            continue
        load = sum(h.duration for h in holds)
        longest = max(holds, key=lambda h: h.duration)
        found = Anchor(longest.op, -longest.offset % ii)
        if best is None or (load, longest.duration) > best[:2]:
            best = (load, longest.duration, found)
    return best[2] if best is not None else Anchor(0, 0)


def twins(case: Case) -> tuple[tuple[int, ...], ...]:
    """Sets of operations, in program order, any two of which may change places."""
    around: list[set[tuple[object, ...]]] = [set() for _ in range(case.size)]
    for src, dst, d in case.edges:
        around[src].add(("to", dst, d.latency, d.distance))
        around[dst].add(("from", src, d.latency, d.distance))
    apart = {pair for c in case.classes for pair in c.apart}
    parents = {op.parent for op in case.loop.ops}
    alike: dict[object, list[int]] = {}
    for i, op in enumerate(case.loop.ops):
        case.deadline.check()
        if not _touches_itself(around[i], i) and op.name not in parents:
            key = (frozenset(around[i]), _features(case, op), case.problem.group[i])
            alike.setdefault(key, []).append(i)
    return tuple(
        tuple(members)
        for members in alike.values()
        if len(members) > 1 and not any(set(pair) <= set(members) for pair in apart)
    )


def _touches_itself(around: set[tuple[object, ...]], i: int) -> bool:
    return any(step[1] == i for step in around)


def _features(case: Case, op: Op) -> tuple[object, ...]:
    """Everything but dependences that a rule or an objective asks of an operation."""
    value = {v.name: v for v in case.loop.values}
    results = sorted(
        (value[r].register_bytes, case.loop.readers[r]) for r in op.results if r in value
    )
    operands = tuple(sorted((o.value, o.distance) for o in op.operands))
    reads = tuple(sorted((r.storage, r.distance) for r in case.loop.reads[op.name]))
    return (
        op.kind,
        op.agent,
        op.vector.uses,
        op.demands,
        op.ready,
        op.constraint,
        op.facts.bank,
        op.parent,
        tuple(results),
        operands,
        reads,
        tuple(sorted(op.writes)),
    )


def in_order(sets: Sequence[Sequence[int]], starts: Sequence[int]) -> list[int]:
    """Who takes whose place so that twins stand in program order: `place[i]` is i's new start."""
    place = list(range(len(starts)))
    for members in sets:
        ordered = sorted(members, key=lambda i: (starts[i], i))
        for i, other in zip(members, ordered, strict=True):
            place[i] = other
    return place
