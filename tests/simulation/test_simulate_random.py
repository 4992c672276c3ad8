"""Random loops, schedules of every generator, any trip count, any agents: always equal."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import faults
import stretto
from generated import Problem, problems
from stretto.loop import Access, Loop, Op, Operand, Value, check
from stretto.materialization import MODES, Mode, Program, materialize
from stretto.simulation import Symbolic, run_sequential, simulate_program
from stretto.simulation.execution import run_program
from stretto.solution import ScheduleAnalysis

AGENTS = ("tma", "mma", "simt")


@st.composite
def named_problems(draw: st.DrawFn) -> Problem:
    """Loops with names for things: values that live in storages, and views, also carried ones."""
    problem = draw(problems())
    loop = problem.loop
    ops, values = list(loop.ops), list(loop.values)
    if draw(st.booleans()):
        ops, values = _housed(draw, loop, ops, values)
    for n in range(draw(st.integers(0, 2))):
        ops, values = _viewed(draw, ops, values, f"x{n}")
    named = replace(loop, ops=tuple(ops), values=tuple(values))
    assume(check(named, problem.machine) == ())
    return Problem(named, problem.machine)


def _housed(
    draw: st.DrawFn, loop: Loop, ops: list[Op], values: list[Value]
) -> tuple[list[Op], list[Value]]:
    """Results of writers live in the storage they write; their readers access it."""
    homes = {op.results[0]: op.writes[0] for op in ops if op.writes and draw(st.booleans())}
    fixed = {storage.name for storage in loop.storages if storage.fixed}
    values = [
        replace(v, storage=homes[v.name], type=None) if v.name in homes else v for v in values
    ]
    for i, op in enumerate(ops):
        reads = list(op.reads)
        for operand in op.operands:
            home = homes.get(operand.value)
            if home is not None and draw(st.integers(0, 3)):
                reads.append(Access(home, 0 if home in fixed else operand.distance))
        ops[i] = replace(op, reads=tuple(dict.fromkeys(reads)))
    return ops, values


def _viewed(
    draw: st.DrawFn, ops: list[Op], values: list[Value], name: str
) -> tuple[list[Op], list[Value]]:
    """Another name for some value, and readers that use it instead."""
    at = draw(st.integers(0, len(ops) - 1))
    seen = next(value for value in values if value.name == ops[at].results[0])
    back = draw(st.sampled_from([0, 0, 1]))
    latency = draw(st.sampled_from([None, None, 0, 3]))
    operand = Operand(seen.name, back, latency)
    view = Op(f"view_{name}", "view", (operand,), (name,), uses=(), latency=0)
    view_of = seen.name if seen.storage is None else None
    values = [*values, Value(name, seen.type, seen.storage, view_of)]
    renamed: list[Op] = []
    for i, op in enumerate(ops):
        operands = tuple(
            replace(o, value=name)
            if o.value == seen.name and (i > at or o.distance > 0) and draw(st.booleans())
            else o
            for o in op.operands
        )
        renamed.append(replace(op, operands=operands))
    return [*renamed[: at + 1], view, *renamed[at + 1 :]], values


def _program(
    problem: Problem, analysis: ScheduleAnalysis, mode: Mode, data: st.DataObject
) -> Program:
    """The program of a schedule, with agents of any kind."""
    assume(analysis.success)
    agents = None
    if mode == "specialized":
        agents = {op.name: data.draw(st.sampled_from(AGENTS)) for op in problem.loop.ops}
    return materialize(problem.loop, problem.machine, analysis, mode, agents=agents)


def _check(problem: Problem, generator: str, mode: Mode, data: st.DataObject) -> None:
    analysis = stretto.schedule(problem.loop, problem.machine, generator)
    program = _program(problem, analysis, mode, data)
    trip_count = data.draw(st.integers(0, 3 * program.stage_count))
    run = simulate_program(program, problem.machine, analysis.starts, trip_count)
    assert run.violations == ()
    assert run.equal
    assert not run.deadlock
    assert run.cycles_per_iteration == analysis.ii
    assert run.prologue_cycles == (program.stage_count - 1) * program.ii


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("generator", ["serial", "cost-based", "exact"])
@given(problem=problems(), data=st.data())
def test_every_generator(generator: str, mode: Mode, problem: Problem, data: st.DataObject) -> None:
    _check(problem, generator, mode, data)


@pytest.mark.parametrize("mode", MODES)
@given(problem=named_problems(), data=st.data())
def test_views_and_values_in_storages(mode: Mode, problem: Problem, data: st.DataObject) -> None:
    _check(problem, data.draw(st.sampled_from(["serial", "cost-based"])), mode, data)


@pytest.mark.parametrize("mode", MODES)
@given(problem=named_problems(), seed=st.integers(0, 1000), data=st.data())
def test_whoever_is_late_the_values_are_the_same(
    mode: Mode, problem: Problem, seed: int, data: st.DataObject
) -> None:
    """Agents fall behind at random: waits alone keep the data right, no luck in the timing."""
    analysis = stretto.schedule(problem.loop, problem.machine, "cost-based")
    program = _program(problem, analysis, mode, data)
    trip_count = data.draw(st.integers(1, 3 * program.stage_count + 3))
    delays = random.Random(seed)
    most = data.draw(st.sampled_from([1, 4, 50]))
    domain = Symbolic()
    run = run_program(program, analysis.starts, domain, trip_count, lambda: delays.randint(0, most))
    expected = run_sequential(problem.loop, domain, trip_count)
    assert run.blocked == ()
    assert {v.name for v in run.findings.all()} <= {"stall"}
    assert run.trace == expected


@given(problem=problems(), data=st.data())
def test_no_mutex_can_be_spared(problem: Problem, data: st.DataObject) -> None:
    """Whichever mutex is dropped, some order holds by luck at best, and the simulator says so."""
    analysis = stretto.schedule(problem.loop, problem.machine)
    program = _program(problem, analysis, "specialized", data)
    assume(program.mutexes)
    mutex = data.draw(st.sampled_from(program.mutexes))
    far = max(abs(w.distance) for w in mutex.waiters)
    trip_count = 2 * program.stage_count + far + 2
    broken = faults.without_mutex(program, mutex.name)
    run = simulate_program(broken, problem.machine, analysis.starts, trip_count)
    assert {v.name for v in run.violations} & {"unwritten", "overwritten", "unordered"}
