"""Operations that share one hold: fusion.

read0 ┐                   same kind, same stated bank, same slots, same start,
read1 ├─ tp_smem_rd       no more members than the slot's fusion cap,
read2 ┘  held once        and neither waits for another, however indirectly
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import cast

from stretto.loop import Op
from stretto.verification.layout import Layout, Violation, listed


def fusion(laid: Layout) -> Iterator[Violation]:
    """Every fused group is one that may share a hold, and all of them may at once."""
    groups: list[tuple[Op, ...]] = []
    for members in laid.analysis.fused:
        yield from _membership(laid, members)
        known = dict.fromkeys(name for name in members if name in laid.loop.index)
        if len(known) > 1:
            groups.append(tuple(laid.loop.op(name) for name in known))
    yield from _in_one_group(laid)
    apart = True
    for group in groups:
        for check in (_alike, _slots, _starts, _nesting):
            yield from check(laid, group)
        for violation in _paths(laid, group):
            apart = False
            yield violation
    if groups and apart:  # a path inside a group is a cycle of its contraction: said once
        yield from _contraction(laid, groups)


def _named(group: tuple[Op, ...]) -> tuple[str, ...]:
    return tuple(op.name for op in group)


# Who is in it -----------------------------------------------------------------------------


def _membership(laid: Layout, members: tuple[str, ...]) -> Iterator[Violation]:
    times = Counter(members)
    for name, count in times.items():
        if name not in laid.loop.index:
            message = f"`{name}` is fused, but loop `{laid.loop.name}` has no such operation"
            yield Violation("fusion", message, (name,))
        if count > 1:
            message = f"`{name}` stands {count} times in one fused group"
            yield Violation("fusion", message, (name,), (("times", count),))
    if len(times) < 2:
        message = f"the fused group ({listed(members)}) has {len(times)} members; it needs 2"
        yield Violation("fusion", message, tuple(times), (("members", len(times)),))


def _in_one_group(laid: Layout) -> Iterator[Violation]:
    groups = Counter(name for members in laid.analysis.fused for name in dict.fromkeys(members))
    for name, count in groups.items():
        if count > 1:
            message = f"`{name}` is in {count} fused groups; one operation is in at most one"
            yield Violation("fusion", message, (name,), (("groups", count),))


# Each group on its own --------------------------------------------------------------------


def _alike(_: Layout, group: tuple[Op, ...]) -> Iterator[Violation]:
    """Equal kinds, equal stated banks, the same slots."""
    features: tuple[tuple[str, Callable[[Op], str]], ...] = (
        ("kind", lambda op: op.kind),
        ("bank", lambda op: "not stated" if op.facts.bank is None else str(op.facts.bank)),
        ("slots", lambda op: ", ".join(sorted(_held(op))) or "none"),
    )
    for what, feature in features:
        found = {op.name: feature(op) for op in group}
        unstated = what == "bank" and "not stated" in found.values()
        if unstated or len(set(found.values())) > 1:
            where = "; ".join(f"`{name}` {value}" for name, value in found.items())
            message = f"fused operations need the same {what}, stated: {where}"
            yield Violation("fusion", message, _named(group), tuple(found.items()))


def _held(op: Op) -> list[str]:
    return [use.slot for use in op.vector.uses if use.duration > 0]


def _slots(laid: Layout, group: tuple[Op, ...]) -> Iterator[Violation]:
    """Every slot held may be shared, by that many."""
    size = len(group)
    for op in group:
        if not _held(op):
            message = f"`{op.name}` is fused, but holds no slot to share"
            yield Violation("fusion", message, (op.name,))
    for slot in dict.fromkeys(slot for op in group for slot in _held(op)):
        holders = tuple(op.name for op in group if slot in _held(op))
        cap = laid.machine.slot(slot).fusion_cap if laid.machine.has_slot(slot) else 1
        if cap < 2:
            message = f"{listed(holders)} hold slot `{slot}`, which cannot be shared by fusion"
            yield Violation("fusion", message, holders, (("slot", slot), ("fusion_cap", cap)))
        elif size > cap:
            message = (
                f"{size} operations share slot `{slot}`, whose fusion cap is {cap}: "
                f"{listed(_named(group))}"
            )
            detail = (("slot", slot), ("members", size), ("fusion_cap", cap))
            yield Violation("fusion", message, _named(group), detail)


def _starts(laid: Layout, group: tuple[Op, ...]) -> Iterator[Violation]:
    starts = {op.name: laid.starts[op.name] for op in group if op.name in laid.starts}
    if len(set(starts.values())) > 1:
        where = ", ".join(f"`{name}` at {start}" for name, start in starts.items())
        message = f"fused operations start together: {where}"
        yield Violation("fusion", message, tuple(starts), tuple(starts.items()))


def _nesting(laid: Layout, group: tuple[Op, ...]) -> Iterator[Violation]:
    members = set(_named(group))
    for op in group:
        above, seen = op.parent, {op.name}
        while above is not None and above not in seen and above in laid.loop.index:
            if above in members:
                message = f"`{op.name}` is nested in `{above}`; they cannot be fused"
                yield Violation("fusion", message, (above, op.name))
            seen.add(above)
            above = laid.loop.op(above).parent


def _paths(laid: Layout, group: tuple[Op, ...]) -> Iterator[Violation]:
    """No member waits for another in its own iteration."""
    for a, b in combinations(_named(group), 2):
        for src, dst in ((a, b), (b, a)):
            way = _way(laid, src, dst)
            if way:
                shown = " -> ".join(way)
                message = f"`{dst}` waits for `{src}` in the same iteration: {shown}"
                yield Violation("fusion", message, way, (("steps", len(way) - 1),))


def _way(laid: Layout, src: str, dst: str) -> tuple[str, ...]:
    """A path of distance-0 dependences, walked back from its end; empty when there is none."""
    towards: dict[str, str] = {}
    front = [dst]
    while front:
        at = front.pop(0)
        for before in laid.predecessors[at]:
            if before not in towards:
                towards[before] = at
                front.append(before)
    if src not in towards:
        return ()
    way = [src]
    while way[-1] != dst:
        way.append(towards[way[-1]])
    return tuple(way)


# All groups together ----------------------------------------------------------------------


def _contraction(laid: Layout, groups: list[tuple[Op, ...]]) -> Iterator[Violation]:
    """With every group drawn as one node, distance-0 dependences still form no cycle."""
    node: dict[str, tuple[str, ...]] = {op.name: (op.name,) for op in laid.loop.ops}
    for group in groups:
        for op in group:
            node[op.name] = _named(group)
    waits: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for name, before in laid.predecessors.items():
        own = waits.setdefault(node[name], [])
        own += [node[b] for b in before if node[b] != node[name]]
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        cycle = cast("list[tuple[str, ...]]", error.args[1])
        if all(len(members) == 1 for members in cycle):
            return  # the loop's own cycle, not of fusion's making
        way = " -> ".join(listed(members) for members in cycle)
        message = f"fused groups wait for one another in the same iteration: {way}"
        ops = tuple(dict.fromkeys(name for members in cycle for name in members))
        yield Violation("fusion", message, ops, (("groups", len(cycle) - 1),))
