"""What follows from starts, against counting it out in absolute time, cycle by cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import problems
from stretto.errors import InfeasibleError
from stretto.loop import Dependence, Loop, Op, Operand, Space, TileType, Use, Value
from stretto.machine import Budget, Machine, Slot
from stretto.solution import Schedule, ScheduleAnalysis
from stretto.solution.views import analyse, placements


@dataclass(frozen=True)
class Case:
    loop: Loop
    machine: Machine
    ii: int
    starts: dict[str, int]

    @property
    def analysis(self) -> ScheduleAnalysis:
        return analyse(self.loop, self.machine, Schedule(self.ii, self.starts))

    def done(self, op: Op, iteration: int = 0) -> int:
        """Absolute completion, from its parts."""
        last = max((u.offset + u.duration for u in op.uses or ()), default=0)
        return self.starts[op.name] + iteration * self.ii + max(last, op.latency or 0)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    problem = draw(problems(max_ops=5))
    spaces: list[Space] = ["smem", "tmem", "register"]
    storages = tuple(replace(s, space=draw(st.sampled_from(spaces))) for s in problem.loop.storages)
    loop = replace(problem.loop, storages=storages)
    # One byte a register unit: the peak is exact, not rounded up.
    unit = draw(st.sampled_from([1, 512]))
    budgets = (Budget("smem", 30), Budget("tmem", 40), Budget("register", 1 << 18, unit=unit))
    starts = {op.name: draw(st.integers(0, 25)) for op in loop.ops}
    return Case(loop, replace(problem.machine, budgets=budgets), draw(st.integers(1, 9)), starts)


FAR = 60
"""Iterations counted out: more than any life here lasts, twice over."""


def instances(case: Case, born: int, dead: int) -> Iterator[range]:
    """The cycles in which each iteration's instance is alive."""
    for i in range(FAR):
        yield range(born + i * case.ii, dead + i * case.ii)


def steady(case: Case) -> range:
    """The last II cycles for which every iteration that matters has begun."""
    return range((FAR - 1) * case.ii, FAR * case.ii)


@given(cases())
def test_stage_and_order(case: Case) -> None:
    waits = {op.name: 0 for op in case.loop.ops}
    for _ in case.loop.ops:  # longest path in edges, by pushing once per operation
        for d in case.loop.dependences:
            if d.distance == 0:
                waits[d.dst] = max(waits[d.dst], waits[d.src] + 1)
    analysis = case.analysis
    assert [p.op for p in analysis.placements] == [op.name for op in case.loop.ops]
    seats: dict[int, list[tuple[int, int, int]]] = {}
    for index, placed in enumerate(analysis.placements):
        assert placed.stage * case.ii <= placed.start < (placed.stage + 1) * case.ii
        seats.setdefault(placed.stage, []).append((placed.start, waits[placed.op], index))
    for stage, rows in seats.items():
        ranked = sorted(p.order for p in analysis.placements if p.stage == stage)
        assert ranked == list(range(len(rows)))
        for order, (_, _, index) in enumerate(sorted(rows)):
            assert analysis.placements[index].order == order
    assert analysis.stage_count == max(seats) + 1


@given(cases())
def test_pipeline_depth(case: Case) -> None:
    """Iterations that have begun when the last result of the first one is ready."""
    ready = max(case.starts[op.name] + (op.latency or 0) for op in case.loop.ops)
    begun = sum(1 for i in range(1000) if i * case.ii <= ready)
    assert case.analysis.pipeline_depth == begun


@given(cases())
def test_lifetime_and_ring_depth(case: Case) -> None:
    analysis = case.analysis
    assert [u.name for u in analysis.storages] == [s.name for s in case.loop.storages]
    used: Counter[str] = Counter()
    for storage, use in zip(case.loop.storages, analysis.storages, strict=True):
        assert (use.space, use.bytes) == (storage.space, storage.bytes)
        writers = [op for op in case.loop.ops if storage.name in op.writes]
        if storage.fixed or not writers:
            assert (use.lifetime, use.ring_depth) == (case.ii, 1)
        else:
            born = min(case.starts[op.name] for op in writers)
            dead = max(case.done(op) for op in writers)
            for op in case.loop.ops:
                for read in op.reads:
                    if read.storage == storage.name:
                        dead = max(dead, case.done(op, read.distance))
            assert use.lifetime == dead - born
            alive = Counter(cycle for life in instances(case, born, dead) for cycle in life)
            assert use.ring_depth == max(1, max(alive.values(), default=0))
        used[storage.space] += storage.bytes * use.ring_depth
    rows = {row.space: row for row in analysis.memory}
    assert "register" not in rows
    for space in ("smem", "tmem"):
        budget = case.machine.budget(space)
        assert budget is not None
        assert (rows[space].used, rows[space].budget) == (used[space], budget.bytes)


@given(cases())
def test_pressure(case: Case) -> None:
    live: Counter[int] = Counter()
    window = steady(case)

    def add(size: int, born: int, dead: int) -> None:
        for life in instances(case, born, dead):
            for cycle in life:
                live[cycle] += size

    def always(size: int) -> None:
        for cycle in window:
            live[cycle] += size

    makers = {result: op for op in case.loop.ops for result in op.results}
    for value in case.loop.values:
        size = value.register_bytes
        if value.name not in makers:
            always(size)
            continue
        maker = makers[value.name]
        dead = case.done(maker)
        for op in case.loop.ops:
            for operand in op.operands:
                if operand.value == value.name:
                    dead = max(dead, case.done(op, operand.distance))
        add(size, case.starts[maker.name], dead)
    for storage, use in zip(case.loop.storages, case.analysis.storages, strict=True):
        if storage.space != "register":
            continue
        writers = [case.starts[op.name] for op in case.loop.ops if storage.name in op.writes]
        if storage.fixed or not writers:
            always(storage.bytes)
        else:
            add(storage.bytes, min(writers), min(writers) + use.lifetime)
    pressure = case.analysis.pressure
    budget = case.machine.budget("register")
    assert pressure is not None
    assert budget is not None
    assert budget.bytes is not None
    peak = max(live[cycle] for cycle in window)
    assert pressure.peak == -(-peak // budget.unit)
    assert live[window[0] + pressure.cycle] == peak
    assert 0 <= pressure.cycle < case.ii
    assert pressure.budget == budget.bytes // budget.unit


def test_pressure_by_hand() -> None:
    """Two values of 512 bytes; at II 4 the long one overlaps itself for 2 cycles."""
    tile = TileType((128,), "f32")
    loop = Loop(
        "two",
        (
            Op("a", "a", (), ("x",), uses=(Use("s", 1),), latency=1),
            Op("b", "b", (Operand("x"),), ("y",), uses=(Use("s", 1),), latency=1),
        ),
        (Value("x", tile), Value("y", tile)),
    )
    machine = Machine("m", "", (Slot(1, "s", 1),), budgets=(Budget("register", 4096, unit=512),))
    # x lives 3..9 (cycles 3, 0, 1, 2, 3, 0), y lives 8..9 (cycle 0): three at cycle 0.
    pressure = analyse(loop, machine, Schedule(4, {"a": 3, "b": 8})).pressure
    assert pressure is not None
    assert (pressure.peak, pressure.cycle, pressure.budget) == (3, 0, 8)


def test_no_order_where_dependences_go_round() -> None:
    ops = (Op("a", "a", uses=(), latency=0), Op("b", "b", uses=(), latency=0))
    loop = Loop("round", ops, stated=(Dependence("a", "b", 0), Dependence("b", "a", 0)))
    with pytest.raises(InfeasibleError, match="a -> b -> a"):
        placements(loop, 1, {"a": 0, "b": 0})
