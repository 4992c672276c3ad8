"""Every legal schedule of a tiny loop, by trying them all.

    groups to fuse × cycles (0 .. II-1 each) × stages  ──►  Schedule(ii, starts, fused), ...

Naive on purpose, and its own: every rule of legality is written here once more, from its
statement, and nothing is shared with the code under test except the types of the problem.
Slots and pools depend on cycles alone, so cycles are chosen first; dependences, depth, groups
and storage then limit the stages.

A fused group starts together and holds each of its slots once: from the earliest offset of a
member to the latest end (the longest duration, when offsets agree), with the largest occupancy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count, permutations

from living import over
from stretto.loop import Dependence, Loop, Op, Storage, Use
from stretto.machine import Machine
from stretto.solution import Schedule

Group = tuple[str, ...]


def legal_schedules(
    loop: Loop,
    machine: Machine,
    ii: int,
    *,
    horizon: int | None = None,
    fuse: bool = False,
    max_stages: int | None = None,
) -> Iterator[Schedule]:
    """Every legal schedule with starts below `horizon` (None: `complete_horizon`)."""
    machine = machine.with_slots(loop.slots)
    if horizon is None:
        horizon = complete_horizon(loop, ii)
    end = horizon if max_stages is None else min(horizon, max_stages * ii)
    if not _dependences_allow(loop, ii, end):
        return
    for fused in fusions(loop, machine) if fuse else iter([()]):
        grouped = {name for group in fused for name in group}
        units = [*fused, *((op.name,) for op in loop.ops if op.name not in grouped)]
        # Units with storage come first, so that a full memory is noticed early.
        units.sort(key=lambda unit: not any(_touches(loop.op(name)) for name in unit))
        for cycles in _cycles(loop, machine, ii, units):
            cycle = {name: c for unit, c in zip(units, cycles, strict=True) for name in unit}
            last = _last_stages(loop, ii, cycle, horizon, max_stages)
            for starts in _stages(loop, machine, ii, units=units, cycle=cycle, last=last):
                yield Schedule(ii, {op.name: starts[op.name] for op in loop.ops}, fused)


def optimum(
    loop: Loop,
    machine: Machine,
    fuse: bool = False,
    limit: int = 100,
    max_stages: int | None = None,
) -> int | None:
    """The smallest II with a legal schedule; None: none up to `limit`."""
    for ii in range(1, limit + 1):
        found = legal_schedules(loop, machine, ii, fuse=fuse, max_stages=max_stages)
        if next(found, None) is not None:
            return ii
    return None


def complete_horizon(loop: Loop, ii: int) -> int:
    """If any schedule is legal at this II, one is that starts everything before this cycle.

    A run of empty stages longer than any dependence asks for (and longer than any distance or
    offset, so that nothing reaches back over it) can be shortened: lifetimes do not grow, nothing
    else changes.
    """
    latency = max((d.latency for d in loop.dependences), default=0)
    distance = max((d.distance for d in loop.dependences), default=0)
    offset = max(op.constraint.stage_offset for op in loop.ops)
    gap = max(-(-(latency + ii - 1) // ii), distance + 1, offset + 1)
    return ((len(loop.ops) - 1) * gap + 1) * ii


def _touches(op: Op) -> bool:
    return bool(op.reads or op.writes)


def _dependences_allow(loop: Loop, ii: int, horizon: int) -> bool:
    """Whether dependences and stages alone can be met: push starts up until they rest or run away.

    Two of a group, moved by their offsets, are less than an II apart.
    """
    asked = [op.constraint for op in loop.ops]
    depth = {op.name: op.constraint.max_depth for op in loop.ops}
    last = {
        name: horizon - 1 if most is None else min(horizon, (most + 1) * ii) - 1
        for name, most in depth.items()
    }
    steps = [(d.src, d.dst, d.latency - ii * d.distance) for d in loop.dependences]
    for a, b in permutations((name for group in loop.groups for name in group), 2):
        if any(a in group and b in group for group in loop.groups):
            wide = asked[loop.index[b]].stage_offset - asked[loop.index[a]].stage_offset
            steps.append((a, b, ii * wide - ii + 1))
    start = {op.name: 0 for op in loop.ops}
    moved = True
    while moved:
        moved = False
        for src, dst, gain in steps:
            least = start[src] + gain
            if start[dst] < least:
                start[dst] = least
                moved = True
                if least > last[dst]:
                    return False
    return True


# Fusion -------------------------------------------------------------------------------------


def fusions(loop: Loop, machine: Machine) -> Iterator[tuple[Group, ...]]:
    """Every way to fuse that decision 10 allows; the first fuses nothing."""
    machine = machine.with_slots(loop.slots)
    groups = [
        tuple(op.name for op in members)
        for size in range(2, len(loop.ops) + 1)
        for members in combinations(loop.ops, size)
        if _may_fuse(loop, machine, members)
    ]
    for size in range(len(loop.ops) // 2 + 1):
        for chosen in combinations(groups, size):
            names = [name for group in chosen for name in group]
            if len(set(names)) == len(names) and _contraction_is_acyclic(loop, chosen):
                yield chosen


def _held(op: Op) -> list[Use]:
    """What it holds, slot by slot in order of time: the order it is written in means nothing."""
    held = [use for use in op.uses or () if use.duration > 0]
    return sorted(held, key=lambda use: (use.slot, use.offset))


def _may_fuse(loop: Loop, machine: Machine, members: Sequence[Op]) -> bool:
    first = members[0]
    slots = [use.slot for use in _held(first)]
    if not slots or first.facts.bank is None:
        return False
    for slot in slots:
        cap = machine.slot(slot).fusion_cap
        if cap < 2 or len(members) > cap:
            return False
    for op in members:
        same = (
            op.kind == first.kind
            and op.facts.bank == first.facts.bank
            and [use.slot for use in _held(op)] == slots
        )
        if not same:
            return False
    for a in members:
        for b in members:
            if a is not b and (b.name in _reached(loop, a.name) or _encloses(loop, a, b)):
                return False
    return True


def _reached(loop: Loop, name: str) -> set[str]:
    """What a path of distance-0 dependences leads to."""
    seen: set[str] = set()
    front = [name]
    while front:
        at = front.pop()
        for d in loop.dependences:
            if d.distance == 0 and d.src == at and d.dst not in seen:
                seen.add(d.dst)
                front.append(d.dst)
    return seen


def _encloses(loop: Loop, outer: Op, inner: Op) -> bool:
    above = inner.parent
    while above is not None:
        if above == outer.name:
            return True
        above = loop.op(above).parent
    return False


def _contraction_is_acyclic(loop: Loop, groups: Sequence[Group]) -> bool:
    unit = {op.name: op.name for op in loop.ops}
    for group in groups:
        for name in group:
            unit[name] = group[0]
    edges = {(unit[d.src], unit[d.dst]) for d in loop.dependences if d.distance == 0}
    left = set(unit.values())
    while left:
        free = {u for u in left if not any(dst == u and src in left for src, dst in edges)}
        if not free:
            return False
        left -= free
    return True


# Cycles: slots and pools ----------------------------------------------------------------------


def _group_holds(members: Sequence[Op]) -> list[Use]:
    """What the members hold together: use by use, they have the same slots."""
    holds: list[Use] = []
    for uses in zip(*(_held(op) for op in members), strict=True):
        offset = min(use.offset for use in uses)
        end = max(use.end for use in uses)
        most = max(use.occupancy for use in uses)
        holds.append(Use(uses[0].slot, end - offset, offset, most))
    return holds


def _cycles(
    loop: Loop, machine: Machine, ii: int, units: Sequence[Group]
) -> Iterator[tuple[int, ...]]:
    """Every choice of a cycle per unit that no slot or pool forbids."""
    held = [list(_cells(machine, [loop.op(name) for name in unit])) for unit in units]
    chosen: list[int] = []

    def extend() -> Iterator[tuple[int, ...]]:
        if len(chosen) == len(units):
            yield tuple(chosen)
            return
        for cycle in range(ii):
            chosen.append(cycle)
            if _fits(ii, held, chosen):
                yield from extend()
            chosen.pop()

    yield from extend()


Cell = tuple[str, str, int, int, int]
"""Slot or pool, its name, how long after the start, how much is held, and the most of all."""


def _cells(machine: Machine, members: Sequence[Op]) -> Iterator[Cell]:
    """What a unit holds of what is limited, cycle by cycle."""
    for use in _group_holds(members):
        most = machine.slot(use.slot).capacity
        if most is not None:
            yield from (
                ("slot", use.slot, k, use.occupancy, most) for k in range(use.offset, use.end)
            )
    for op in members:
        lasts = max((use.duration for use in op.uses or ()), default=0)
        for demand in op.demands:
            most = machine.pool(demand.pool).cap
            yield from (("pool", demand.pool, k, demand.units, most) for k in range(lasts))


def _fits(ii: int, held: Sequence[Sequence[Cell]], cycles: Sequence[int]) -> bool:
    """Count who is where, cell by cell."""
    cells: dict[tuple[str, str, int], int] = {}
    for unit, cycle in zip(held, cycles, strict=False):
        for what, name, k, amount, most in unit:
            cell = (what, name, (cycle + k) % ii)
            cells[cell] = cells.get(cell, 0) + amount
            if cells[cell] > most:
                return False
    return True


# Stages: dependence, depth, group, storage ----------------------------------------------------


def _last_stages(
    loop: Loop, ii: int, cycle: Mapping[str, int], horizon: int, max_stages: int | None
) -> dict[str, int]:
    """Stages above which nothing may stand."""
    last: dict[str, int] = {}
    for op in loop.ops:
        limits = [(horizon - 1 - cycle[op.name]) // ii, op.constraint.max_depth]
        limits.append(None if max_stages is None else max_stages - 1)
        last[op.name] = min(limit for limit in limits if limit is not None)
    return last


def _stages(
    loop: Loop,
    machine: Machine,
    ii: int,
    *,
    units: Sequence[Group],
    cycle: Mapping[str, int],
    last: Mapping[str, int],
) -> Iterator[dict[str, int]]:
    """Every choice of a stage per unit, as starts of operations."""
    first = _first_stages(loop, ii, units, cycle, last)
    if first is None:
        return
    legal_so_far = _legality(loop, machine, ii)
    starts: dict[str, int] = {}

    def extend(at: int) -> Iterator[dict[str, int]]:
        if at == len(units):
            if min(starts.values()) < ii:
                yield dict(starts)
            return
        unit = units[at]
        for stage in range(first[unit[0]], min(last[name] for name in unit) + 1):
            for name in unit:
                starts[name] = stage * ii + cycle[name]
            if legal_so_far(starts):
                yield from extend(at + 1)
            for name in unit:
                del starts[name]

    yield from extend(0)


def _first_stages(
    loop: Loop,
    ii: int,
    units: Sequence[Group],
    cycle: Mapping[str, int],
    last: Mapping[str, int],
) -> dict[str, int] | None:
    """Stages below which nothing can stand, once cycles are chosen; None: no choice at all."""
    stage = dict.fromkeys(cycle, 0)
    together = [dict.fromkeys(unit, 0) for unit in units]
    together += [{n: loop.op(n).constraint.stage_offset for n in group} for group in loop.groups]
    for _ in count():
        before = dict(stage)
        for d in loop.dependences:
            while stage[d.dst] * ii + cycle[d.dst] < (
                stage[d.src] * ii + cycle[d.src] + d.latency - ii * d.distance
            ):
                stage[d.dst] += 1
        for group in together:
            deepest = max(stage[name] - offset for name, offset in group.items())
            stage.update({name: deepest + offset for name, offset in group.items()})
        if any(stage[name] > last[name] for name in stage):
            return None
        if stage == before:
            break
    return stage


def _legality(loop: Loop, machine: Machine, ii: int) -> Callable[[Mapping[str, int]], bool]:
    """Every rule but slots and pools, on the operations placed so far."""
    asked = {op.name: op.constraint for op in loop.ops}
    pinned = [n for n, c in asked.items() if (c.start, c.stage, c.cycle) != (None, None, None)]
    limits = [
        (b.bytes, [_Ring.of(loop, s) for s in loop.storages if s.space == b.space])
        for b in machine.budgets
        if b.bytes is not None and b.space != "register"
    ]

    def legal_so_far(starts: Mapping[str, int]) -> bool:
        for d in loop.dependences:
            if d.src in starts and d.dst in starts and not _met(d, ii, starts):
                return False
        for name in pinned:
            at, c = starts.get(name), asked[name]
            told = [] if at is None else [(c.start, at), (c.stage, at // ii), (c.cycle, at % ii)]
            if any(wanted is not None and wanted != has for wanted, has in told):
                return False
        for group in loop.groups:
            stages = {starts[n] // ii - asked[n].stage_offset for n in group if n in starts}
            if len(stages) > 1:
                return False
        for most, rings in limits:
            if sum(ring.bytes * ring.depth(ii, starts) for ring in rings) > most:
                return False
        return not over(loop, machine, ii, starts)

    return legal_so_far


def _met(d: Dependence, ii: int, starts: Mapping[str, int]) -> bool:
    return starts[d.dst] >= starts[d.src] + d.latency - ii * d.distance


@dataclass(frozen=True)
class _Ring:
    """A storage, and who touches it: its name, when it is done, iterations back."""

    bytes: int
    fixed: bool
    writers: list[tuple[str, int]]
    readers: list[tuple[str, int, int]]

    @staticmethod
    def of(loop: Loop, storage: Storage) -> _Ring:
        ring = _Ring(storage.bytes, storage.fixed, [], [])
        for op in loop.ops:
            holds = max((use.offset + use.duration for use in op.uses or ()), default=0)
            lasts = max(op.latency or 0, holds)
            if storage.name in op.writes:
                ring.writers.append((op.name, lasts))
            for read in op.reads:
                if read.storage == storage.name:
                    ring.readers.append((op.name, lasts, read.distance))
        return ring

    def depth(self, ii: int, starts: Mapping[str, int]) -> int:
        """Copies alive at once, as far as operations are placed; it only grows as more are."""
        begins = [starts[name] for name, _ in self.writers if name in starts]
        if self.fixed or not begins:
            return 1
        ends = [starts[name] + lasts for name, lasts in self.writers if name in starts]
        ends += [
            starts[name] + lasts + ii * distance
            for name, lasts, distance in self.readers
            if name in starts
        ]
        return max(1, -(-(max(ends) - min(begins)) // ii))
