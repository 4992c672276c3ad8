"""The verifier and the simulator do not believe the derivation.

One derived storage dependence of a random loop is forgotten, everywhere. Whatever schedule that
lets through is refused by the verifier, which is given the forgetful loop, and found by the
simulator, which runs the program that was built from it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rich_loops import Rich, rich_problem
from stretto.errors import InfeasibleError
from stretto.generate.ladder.serial import SerialError, serial
from stretto.generate.problem import Options, make_problem
from stretto.generate.search import search
from stretto.loop import Dependence, Loop
from stretto.lower_bounds import compute_bounds
from stretto.machine import Machine
from stretto.materialization import MODES, Mode, materialize, roster
from stretto.simulation import simulate_program
from stretto.solution import Schedule, ScheduleAnalysis
from stretto.solution.views import analyse
from stretto.verification import verify

DEEP = os.environ.get("STRETTO_HYPOTHESIS") == "deep"
SEEDS = 400 if DEEP else 60
TRIES = 6
"""Dependences of a loop that are dropped, one at a time."""


def storage_dependences(loop: Loop) -> list[Dependence]:
    """What storages ask for, and nothing else asks for as well."""
    stated = set(loop.stated)
    return [d for d in loop.dependences if d.kind != "flow" and d not in stated]


def forgetful(loop: Loop, dropped: Dependence) -> Loop:
    """The loop with a derivation that forgot one dependence."""
    made = replace(loop)
    made.__dict__["dependences"] = tuple(d for d in loop.dependences if d != dropped)
    return made


def hurried(loop: Loop, dropped: Dependence) -> Loop:
    """The same, with the dropped dependence not only forgotten but broken on purpose."""
    made = forgetful(loop, dropped)
    early = Dependence(dropped.dst, dropped.src, 1 - dropped.latency, 0, "order")
    made.__dict__["dependences"] = (*made.dependences, early)
    return made


def let_through(rich: Rich, machine: Machine, dropped: Dependence) -> Iterator[ScheduleAnalysis]:
    """Schedules of the forgetful loop in which the dropped dependence does not hold."""
    loops = [forgetful(rich.loop, dropped)]
    if dropped.distance == 0 and dropped.latency > 0:
        loops.append(hurried(rich.loop, dropped))
    for loop in loops:
        try:
            problem = make_problem(loop, machine, Options(max_stages=rich.max_stages, fuse=False))
            bounds = compute_bounds(loop, machine, fuse=False, max_stages=rich.max_stages)
            found = search(problem, bounds, lambda p=problem: serial(p).ii, None)
        except InfeasibleError:  # breaking it closes a circle, or nothing fits
            continue
        if found.placement is None or found.ii is None:
            continue
        starts = problem.starts_by_name(found.placement.whole())
        if (
            starts[dropped.dst] + found.ii * dropped.distance
            < starts[dropped.src] + dropped.latency
        ):
            yield analyse(forgetful(rich.loop, dropped), machine, Schedule(found.ii, starts))


def simulated(
    loop: Loop, machine: Machine, analysis: ScheduleAnalysis, mode: Mode
) -> tuple[str, ...]:
    """What the simulator finds in the program of a schedule that nobody verified."""
    crew = {op.name: ("tma", "mma", "simt")[n % 3] for n, op in enumerate(loop.ops)}
    given = crew if mode == "specialized" else None
    program = materialize(loop, machine, analysis, mode, agents=given)
    steps = program.stage_count + max(ring.depth for ring in program.rings) + 4
    run = simulate_program(program, machine, analysis.starts, steps)
    return tuple(violation.name for violation in run.violations)


def kind_of(loop: Loop, d: Dependence) -> str:
    storage = loop.storage(d.via)
    home = "fixed" if storage.fixed else "capped" if storage.depth else "rotating"
    return f"{d.kind}, {'carried' if d.distance else 'inside'}, {home}"


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_what_a_lost_dependence_lets_through_is_noticed(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noticed: Counter[str] = Counter()
    for seed in range(first, first + 20):
        rich = rich_problem(seed)
        machine = rich.machine.with_slots(rich.loop.slots)
        for dropped in storage_dependences(rich.loop)[:TRIES]:
            for analysis in let_through(rich, machine, dropped):
                loop = forgetful(rich.loop, dropped)
                told = verify(loop, machine, analysis, max_stages=rich.max_stages)
                assert "dependence" in {v.rule for v in told}, (seed, dropped)
                with monkeypatch.context() as patch:
                    patch.setattr(roster, "verify", _content)
                    for mode in MODES:
                        assert simulated(loop, machine, analysis, mode), (seed, dropped, mode)
                noticed[kind_of(rich.loop, dropped)] += 1
    assert sum(noticed.values()) > 10


def _content(*_: object, **__: object) -> tuple[()]:
    return ()


def test_a_forgetful_loop_is_noticed_only_for_what_it_forgot() -> None:
    """Without a lost dependence the same way through is silent."""
    for seed in range(20):
        rich = rich_problem(seed)
        machine = rich.machine.with_slots(rich.loop.slots)
        problem = make_problem(rich.loop, machine, Options(fuse=False))
        try:
            result = serial(problem)
        except SerialError:
            continue
        starts = problem.starts_by_name(result.starts)
        analysis = analyse(rich.loop, machine, Schedule(result.ii, starts))
        assert verify(rich.loop, machine, analysis) == () or rich.max_stages is not None
        for mode in MODES:
            assert simulated(rich.loop, machine, analysis, mode) == ()
