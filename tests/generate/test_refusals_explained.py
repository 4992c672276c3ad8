"""Every refusal says why, and what it says is so: its window is closed, or each start is held."""

from __future__ import annotations

import pytest

import stretto
from stretto.frontends.random_loops import random_loop
from stretto.generate.ladder.rau import Refiner, Work, never_fits
from stretto.generate.ladder.refusals import TIME, WORK, Stuck, explained
from stretto.generate.problem import Options, make_problem
from stretto.generate.seating.partial import Partial
from stretto.loop import Loop
from stretto.loop.parts import ResourceVector
from stretto.machine import Machine
from stretto.solution import Refusal
from tiny_loops import tiny_agents, tiny_apart, tiny_problem

TINY = [make(seed) for make in (tiny_problem, tiny_apart, tiny_agents) for seed in range(25)]
LOOPS = [random_loop(seed, ops) for seed in range(12) for ops in (5, 9, 16)]


def says_why(refusal: Refusal) -> bool:
    """A proof, an untried II that says so, or who, where, and what refused."""
    if refusal.proved or refusal.reason.startswith("not tried"):
        return True
    return bool(refusal.limit)


@pytest.mark.parametrize("case", range(len(TINY) + len(LOOPS)))
def test_every_refused_ii_says_why(case: int) -> None:
    if case < len(TINY):
        tiny = TINY[case]
        found = stretto.schedule(
            tiny.loop, tiny.machine, fuse=tiny.fuse, max_stages=tiny.max_stages
        )
    else:
        found = stretto.schedule(*LOOPS[case - len(TINY)], effort="quick")
    for refusal in found.refused:
        assert says_why(refusal), refusal


def stuck_at(loop: Loop, machine: Machine) -> list[Stuck]:
    """What refinement is left with at small IIs, with hardly any work allowed."""
    problem = make_problem(loop, machine, Options(fuse=False))
    mii = stretto.bounds(loop, machine, fuse=False).mii
    refiner = Refiner(problem, mii)
    iis = [ii for ii in range(mii, mii + 3) if never_fits(problem, ii) is None]
    attempts = [refiner.refine(ii, Work(2 * problem.size)) for ii in iis]
    return [attempt.stuck for attempt in attempts if attempt.stuck is not None]


def naively_fits(held: Partial, vector: ResourceVector, start: int) -> bool:
    """Cycle by cycle, from the starts of the seated alone."""
    load: dict[tuple[str, int], int] = {}
    seated = [(at, held.problem.vectors[i]) for i, at in enumerate(held.starts) if at is not None]
    for at, one in [*seated, (start, vector)]:
        for use in one.uses:
            for k in range(use.duration):
                cell = use.slot, (at + use.offset + k) % held.ii
                load[cell] = load.get(cell, 0) + use.occupancy
        for demand, cycles in one.draws:
            for k in range(cycles):
                cell = demand.pool, (at + k) % held.ii
                load[cell] = load.get(cell, 0) + demand.units
    machine = held.problem.machine
    most = {slot.name: slot.capacity for slot in machine.slots}
    most |= {pool.name: pool.cap for pool in machine.pools}
    return all(
        limit is None or n <= limit for (name, _), n in load.items() for limit in [most[name]]
    )


def test_the_window_that_is_named_is_illegal() -> None:
    """Against the seats that the refusal was worked out beside, every start of it; naively."""
    seen = 0
    for loop, machine in LOOPS:
        for stuck in stuck_at(loop, machine):
            told = stuck.worked_out()
            assert told == stuck.worked_out()
            if told.limit == WORK or not told.op or told.window is None:
                continue
            seen += 1
            low, high = told.window
            if low > high:
                assert told.limit in ("dependence", "group", "depth")
                continue
            names = {slot.name for slot in machine.slots} | {pool.name for pool in machine.pools}
            assert told.limit in names
            assert told.rows
            held = stuck.completed()
            vector = held.problem.vectors[held.problem.index[told.op]]
            assert held.starts[held.problem.index[told.op]] is None
            assert all(not naively_fits(held, vector, start) for start in range(low, high + 1))
    assert seen > 10


def test_beyond_them_the_seats_that_are_left_say_it() -> None:
    """Naively: who is named has no legal start beside those that hold what it wants."""
    seen = 0
    for loop, machine in LOOPS:
        for stuck in stuck_at(loop, machine):
            (_, told) = explained(
                (stuck.refusal(WORK), Refusal(0, "again")),
                {stuck.refusal(WORK): stuck, Refusal(0, "again"): stuck},
                Options().deadline,
            )
            assert told == stuck.worked_out(), "few enough"
            told = stuck.nearby()
            assert told == stuck.nearby()
            assert told.op
            if told.limit == WORK:
                assert "was free by then" in told.reason or not told.window
                continue
            assert told.window is not None
            low, high = told.window
            if told.limit in ("dependence", "group", "depth"):
                assert low > high
                continue
            seen += 1
            assert told.rows
            held = _as_left(stuck, told.op)
            vector = held.problem.vectors[held.problem.index[told.op]]
            assert all(not naively_fits(held, vector, start) for start in range(low, high + 1))
    assert seen > 5


def _as_left(stuck: Stuck, last: str) -> Partial:
    """The seats as they are left, with those that are free for who comes before the last."""
    held = stuck.partial
    for i in dict.fromkeys((stuck.op, *held.problem.graph.order)):
        if held.problem.names[i] == last:
            return held
        if held.starts[i] is None:
            low, high = held.window(i)
            vector = held.problem.vectors[i]
            starts = range(low, min(high, low + held.ii - 1) + 1)
            held.move(i, next(s for s in starts if naively_fits(held, vector, s)), stuck.rung)
    raise AssertionError(last)


def test_reasons_are_worked_out_while_there_is_time_and_few_enough() -> None:
    stuck = [one for loop, machine in LOOPS for one in stuck_at(loop, machine)]
    assert stuck
    one = stuck[0]
    late = one.refusal(TIME)
    assert (late.limit, late.op) == (TIME, one.core.problem.names[one.op])
    assert "when the time limit came" in late.reason
    (told,) = explained((one.refusal(WORK),), {one.refusal(WORK): one}, Options().deadline)
    assert told == one.worked_out()
    other = Refusal(1, "no")
    assert explained((other,), {}, Options().deadline) == (other,)
    assert one.bare.window is not None
