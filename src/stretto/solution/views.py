"""From starts to everything that follows from them.

    start = stage × II + cycle          load @0 → stage 0, cycle 0     write @23, II 15 → 1, 8
    ring depth = ceil(lifetime / II)    how many iterations hold a copy at once
    CUDA held 1,210 of 1,325 cycles     how busy a slot is
    cycles(n) = 4,314 + 1,325 × n       how long n iterations take

For whoever makes an analysis. The verifier does not use this module: it counts in absolute time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import cast

from stretto.errors import InfeasibleError
from stretto.loop import Fault, Loop, Note, Storage, topological_order
from stretto.machine import Machine
from stretto.ops.spaces import REGISTERS, SPACES
from stretto.solution import (
    Bounds,
    Placement,
    Pressure,
    Proof,
    Refusal,
    Schedule,
    ScheduleAnalysis,
    SpaceUse,
    StorageUse,
    TableRow,
)


def profile(
    spans: Iterable[tuple[int, int, int]], ii: int, always: int = 0
) -> tuple[list[int], list[int]]:
    """What overlapping spans, each (amount, begin, end), add up to in each cycle of the II.

        II 5, one span of 7 cycles from cycle 1     cycle    0 1 2 3 4
                                                    amount   1 2 2 1 1      steps at 0, 1 and 3

    A span of q × II + r cycles counts q in every cycle and once more in r of them. The sum comes as
    steps: from cycles[k] on, amounts[k]; cycles[0] is 0.
    """
    base, change = always, {0: 0}
    for amount, begin, end in spans:
        turns, rest = divmod(end - begin, ii)
        base += amount * turns
        if rest:
            first, last = begin % ii, (begin + rest) % ii
            change[first] = change.get(first, 0) + amount
            change[last] = change.get(last, 0) - amount
            if last < first:  # around the end: there at cycle 0 as well (last == 0 cancels out)
                change[0] += amount
    cycles = sorted(change)
    amounts: list[int] = []
    for cycle in cycles:
        base += change[cycle]
        amounts.append(base)
    return cycles, amounts


def placements(
    loop: Loop,
    ii: int,
    starts: Mapping[str, int],
    seated_by: Mapping[str, tuple[str, str]] | None = None,
) -> tuple[Placement, ...]:
    """Stage and order of every operation, in program order."""
    ranks = topological_order(loop)
    if isinstance(ranks, Fault):
        raise InfeasibleError(ranks.message)
    ops, seated_by = loop.ops, seated_by or {}
    order = [0] * len(ops)
    stage, count = -1, 0
    for start, _, i in sorted([(starts[ops[i].name], r, i) for r, i in enumerate(ranks)]):
        if start // ii != stage:
            stage, count = start // ii, 0
        order[i], count = count, count + 1
    found: list[Placement] = []
    for op, position in zip(ops, order, strict=True):
        name = op.name
        start = starts[name]
        rung, arm = seated_by.get(name, ("", ""))
        found.append(Placement(name, start, start // ii, position, rung, arm, start % ii))
    return tuple(found)


def stage_count(ii: int, starts: Iterable[int]) -> int:
    """Stages the expanded program has."""
    return max(starts) // ii + 1


def pipeline_depth(loop: Loop, ii: int, starts: Mapping[str, int]) -> int:
    """Iterations in flight until the last result is ready."""
    return -(-(max([starts[op.name] + op.ready for op in loop.ops]) + 1) // ii)


def lifetime(loop: Loop, storage: Storage, ii: int, starts: Mapping[str, int]) -> int:
    """Cycles one instance lives: first writer's issue to last completion, half open."""
    writers = loop.storage_writers[storage.name]
    if storage.fixed or not writers:
        return ii
    begin = min(starts[op.name] for op in writers)
    ends = [starts[op.name] + op.completion for op in writers]
    ends += [
        starts[op.name] + op.completion + ii * distance
        for op, distance in loop.storage_readers[storage.name]
    ]
    return max(ends) - begin


def ring_depth(storage: Storage, life: int, ii: int) -> int:
    """Copies alive at once."""
    return 1 if storage.fixed else max(1, -(-life // ii))


def knot(loop: Loop, ii: int, starts: Mapping[str, int]) -> tuple[str, ...]:
    """Operations of one cycle that take no time, each of which has to come before the next.

    A read of no duration may hand its copy on in the cycle in which it starts. Such hand-overs,
    and dependences without latency, must leave some order of the operations of a cycle; only where
    something is read as many iterations back as its ring has copies may there be none.
    """
    instant = {op.name for op in loop.ops if op.completion == 0}
    carried = [read.storage for name in instant for read in loop.reads[name] if read.distance > 0]
    waits: dict[str, set[str]] = {}
    for s in loop.storages:
        writers = [op.name for op in loop.storage_writers[s.name]]
        if s.name not in carried or s.fixed or not writers:
            continue
        depth = ring_depth(s, lifetime(loop, s, ii, starts), ii)
        touches = [(name, 0) for name in writers]
        touches += [(op.name, distance) for op, distance in loop.storage_readers[s.name]]
        for name, back in touches:
            for writer in writers:
                at_once = starts[name] + ii * back == starts[writer] + ii * depth
                if name in instant and at_once and name != writer:
                    waits.setdefault(writer, set()).add(name)
    if not waits:
        return ()
    for d in loop.dependences:
        at_once = starts[d.dst] + ii * d.distance == starts[d.src]
        if d.latency == 0 and at_once and d.src != d.dst:
            waits.setdefault(d.dst, set()).add(d.src)
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        return tuple(dict.fromkeys(cast("list[str]", error.args[1])))
    return ()


def storage_uses(loop: Loop, ii: int, starts: Mapping[str, int]) -> tuple[StorageUse, ...]:
    """Lifetime and ring depth of every storage."""
    uses: list[StorageUse] = []
    for s in loop.storages:
        life = lifetime(loop, s, ii, starts)
        uses.append(StorageUse(s.name, s.space, s.bytes, life, ring_depth(s, life, ii)))
    return tuple(uses)


def memory(machine: Machine, uses: Sequence[StorageUse]) -> tuple[SpaceUse, ...]:
    """Bytes needed in every space that the machine budgets or the loop uses."""
    spaces = [b.space for b in machine.budgets] + [u.space for u in uses]
    rows: list[SpaceUse] = []
    for space in dict.fromkeys(s for s in spaces if SPACES[s].budgeted):
        budget = machine.budget(space)
        used = sum(u.bytes * u.ring_depth for u in uses if u.space == space)
        rows.append(SpaceUse(space, used, budget.bytes if budget else None))
    return tuple(rows)


def register_lives(loop: Loop, ii: int, starts: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """(bytes, begin, end) of everything that lives in registers, one iteration's instance."""
    lives: list[tuple[int, int, int]] = []
    done = {op.name: starts[op.name] + op.completion for op in loop.ops}
    producers, readers = loop.producers, loop.readers
    for value in loop.values:
        size = value.register_bytes
        if not size:
            continue
        producer = producers.get(value.name)
        if producer is None:
            lives.append((size, 0, ii))
            continue
        end = done[producer]
        for reader, distance in readers[value.name]:
            end = max(end, done[reader] + ii * distance)
        lives.append((size, starts[producer], end))
    for storage in loop.storages:
        if not SPACES[storage.space].budgeted:
            begin = min((starts[op.name] for op in loop.storage_writers[storage.name]), default=0)
            lives.append((storage.bytes, begin, begin + lifetime(loop, storage, ii, starts)))
    return lives


def pressure(loop: Loop, machine: Machine, ii: int, starts: Mapping[str, int]) -> Pressure:
    """Peak of live register bytes over the modulo cycles, in the machine's register units."""
    cycles, live = profile(register_lives(loop, ii, starts), ii)
    peak = max(live)
    budget = machine.budget(REGISTERS)
    unit = budget.unit if budget else 1
    limit = budget.bytes // unit if budget and budget.bytes is not None else None
    return Pressure(-(-peak // unit), limit, cycles[live.index(peak)])


# Loads and times --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """What an iteration takes of a slot or of a pool."""

    name: str
    capacity: int
    """What there is of it in one cycle."""
    held: int
    """Cycles of a slot, or units of a pool in a cycle, summed up over one interval."""
    ii: int
    limiting: bool
    """Whether it asks for the MII on its own."""
    id: int | None = None
    """The number of a slot."""

    @property
    def available(self) -> int:
        """What there is of it in one interval."""
        return self.capacity * self.ii

    @property
    def utilization(self) -> float:
        """The part that is held, 0 to 1."""
        return self.held / self.available


def slot_loads(analysis: ScheduleAnalysis, machine: Machine) -> tuple[Load, ...]:
    """The limited slots that are held, as the machine lists them."""
    held = _sums(analysis.table, lambda row: row.held)
    return tuple(
        _load(analysis, slot.name, slot.capacity, held[slot.name], slot.id)
        for slot in machine.slots
        if slot.name in held and slot.capacity is not None
    )


def pool_loads(analysis: ScheduleAnalysis, machine: Machine) -> tuple[Load, ...]:
    """The pools that are drawn from, as the machine lists them."""
    drawn = _sums(analysis.table, lambda row: row.drawn)
    return tuple(
        _load(analysis, pool.name, pool.cap, drawn[pool.name])
        for pool in machine.pools
        if pool.name in drawn
    )


def _sums(
    table: Iterable[TableRow], of: Callable[[TableRow], tuple[tuple[str, int], ...]]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in table:
        for name, amount in of(row):
            found[name] = found.get(name, 0) + amount * row.cycles
    return found


def _load(
    analysis: ScheduleAnalysis, name: str, capacity: int, held: int, id: int | None = None
) -> Load:
    assert analysis.ii is not None
    bounds = analysis.bounds
    limiting = bounds is not None and -(-held // capacity) >= bounds.mii > 1
    return Load(name, capacity, held, analysis.ii, limiting, id)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The cycles of the loop by its trip count, as the schedule has them."""

    fixed: int
    """Cycles beside those of the iterations: the last one's way to its end."""
    per_iteration: int
    """The II."""
    prologue: int
    """Cycles until the first step in which all stages run."""

    def cycles(self, iterations: int) -> int:
        """From the start of the first iteration to the end of the last; 0 for none."""
        return self.fixed + self.per_iteration * iterations if iterations else 0

    @property
    def epilogue(self) -> int:
        """Cycles from when no iteration starts any more to the end: what is fixed."""
        return self.fixed


def prediction(loop: Loop, analysis: ScheduleAnalysis) -> Prediction:
    """How long a schedule takes; the loop with its costs."""
    ii, starts = analysis.ii, analysis.starts
    assert ii is not None
    last = max(starts[op.name] + op.completion for op in loop.ops)
    return Prediction(last - ii, ii, (analysis.stage_count - 1) * ii)


# All of it ----------------------------------------------------------------------------------


def analyse(
    loop: Loop,
    machine: Machine,
    schedule: Schedule,
    *,
    seated_by: Mapping[str, tuple[str, str]] | None = None,
    table: Sequence[TableRow] = (),
    bounds: Bounds | None = None,
    proof: Proof | None = None,
    generator: str = "",
    rule: str = "",
    refused: tuple[Refusal, ...] = (),
    warnings: tuple[Note, ...] = (),
    seconds: float = 0.0,
) -> ScheduleAnalysis:
    """The whole analysis of a schedule; groups in program order."""
    ii, starts = schedule.ii, schedule.starts
    position = {op.name: i for i, op in enumerate(loop.ops)}
    groups = [sorted(group, key=lambda n: position.get(n, -1)) for group in schedule.fused]
    groups.sort(key=lambda group: [position.get(name, -1) for name in group])
    uses = storage_uses(loop, ii, starts)
    return ScheduleAnalysis(
        loop=loop.name,
        machine=machine.name,
        success=True,
        ii=ii,
        placements=placements(loop, ii, starts, seated_by),
        fused=tuple(map(tuple, groups)),
        stage_count=stage_count(ii, starts.values()),
        pipeline_depth=pipeline_depth(loop, ii, starts),
        storages=uses,
        memory=memory(machine, uses),
        pressure=pressure(loop, machine, ii, starts),
        table=table,
        bounds=bounds,
        proof=proof,
        generator=generator,
        rule=rule,
        refused=refused,
        warnings=warnings,
        seconds=seconds,
    )
