"""One II, start by start: what is refuted has no schedule, and what is found keeps to the rules."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from brute_force import optimum
from stretto.exact import Limits, windows
from stretto.exact.case import Case, make_case
from stretto.exact.instants import Found, ask
from stretto.exact.multipliers import impossible, refutes
from stretto.exact.ranges import first_possible
from stretto.exact.search import optimize
from stretto.exact.solving import Clock
from stretto.exact.windows import Windows
from stretto.loop import Dependence, Loop, Op, Use
from stretto.machine import Machine, Slot
from stretto.solve import prepare
from tiny_loops import tiny_problem

LIMIT = 40
"""No loop of the generator needs a larger II."""


def said(case: Case, ii: int) -> Found:
    return ask(case, ii, Clock(Limits()), 1.0)


@given(st.integers(0, 1_000_000))
def test_no_ii_that_brute_force_finds_is_refuted(seed: int) -> None:
    tiny = tiny_problem(seed, 4)
    best = optimum(tiny.loop, tiny.machine, tiny.fuse, LIMIT, tiny.max_stages)
    case = make_case(tiny.loop, tiny.machine, tiny.fuse, tiny.max_stages)
    if best is not None:
        assert not said(case, best).refuted


@given(st.integers(0, 1_000_000))
def test_what_is_found_keeps_dependences_and_capacities(seed: int) -> None:
    tiny = tiny_problem(seed, 4)
    case = make_case(tiny.loop, tiny.machine, tiny.fuse, tiny.max_stages)
    for ii in range(case.mii, case.mii + 3):
        found = said(case, ii).hint
        if found is None:
            continue
        starts = found.starts
        assert 0 <= min(starts) < ii == found.ii
        for src, dst, d in case.edges:
            assert starts[dst] - starts[src] >= d.latency - ii * d.distance
        for limit, held in (case.slots | case.pools).values():
            used = [0] * ii
            for hold in held:
                for k in range(hold.duration):
                    used[(starts[hold.op] + hold.offset + k) % ii] += hold.amount
            assert max(used) <= limit


def test_three_that_must_share_a_slot_of_two_are_refuted_where_pairs_are_not() -> None:
    """Ten cycles apart each and 30 around: at II 10 all three stand in one modulo cycle."""
    ops = tuple(Op(name, "k", uses=(Use("port", 1),), latency=10) for name in "abc")
    stated = (Dependence("a", "b", 10), Dependence("b", "c", 10), Dependence("c", "a", 10, 3))
    machine = Machine("m", "", (Slot(1, "port", 2),))
    case = make_case(prepare(Loop("l", ops, stated=stated), machine).loop, machine)
    assert case.mii == 10
    assert first_possible(case, 10, 10, Clock(Limits()), 1.0) == 10
    assert said(case, 10).refuted
    assert not said(case, 11).refuted
    answer = optimize(case, 10, 12)
    assert answer.schedule is not None
    assert answer.schedule.ii == answer.lower_bound == 11
    assert "start by start" in answer.refused[0].reason


def test_a_recurrence_that_is_longer_than_the_ii_allows_is_refuted() -> None:
    stated = (Dependence("a", "b", 5), Dependence("b", "a", 5, 1))
    ops = tuple(Op(name, "k", uses=(Use("port", 1),), latency=5) for name in "ab")
    machine = Machine("m", "", (Slot(1, "port", 1),))
    case = make_case(prepare(Loop("l", ops, stated=stated), machine).loop, machine)
    assert said(case, 9).refuted
    assert not said(case, 10).refuted


def test_loops_of_long_holds_are_left_to_the_other_models() -> None:
    ops = tuple(Op(name, "k", uses=(Use("unit", 20_000),), latency=1) for name in "ab")
    machine = Machine("m", "", (Slot(1, "unit", 1),))
    case = make_case(prepare(Loop("l", ops), machine).loop, machine)
    found = said(case, 30_000)
    assert windows.MOST < 2 * 30_000
    assert not found.refuted
    assert found.hint is None


def five_words() -> Case:
    """Five reads by one port between two operations of three cycles each, once around an II."""
    ends = tuple(Op(name, "k", latency=3, uses=(Use("unit", 1),)) for name in "az")
    reads = tuple(Op(f"r{k}", "k", latency=1, uses=(Use("port", 1),)) for k in range(5))
    stated = [Dependence("a", r.name, 3) for r in reads]
    stated += [Dependence(r.name, "z", 1) for r in reads]
    stated.append(Dependence("z", "a", 3, 1))
    machine = Machine("m", "", (Slot(1, "port", 1), Slot(2, "unit", 1)))
    loop = Loop("l", (ends[0], *reads, ends[1]), stated=tuple(stated))
    return make_case(prepare(loop, machine).loop, machine)


def test_the_linear_relaxation_refutes_more_reads_than_there_are_cycles_for() -> None:
    case = five_words()
    assert case.mii == 7
    for ii in range(7, 11):
        assert refutes(Windows(case, ii), Clock(Limits()))
    assert not refutes(Windows(case, 11), Clock(Limits()))
    starts = said(case, 11).hint
    assert starts is not None
    assert sorted(start - starts.starts[0] for start in starts.starts[1:6]) == [3, 4, 5, 6, 7]


@given(st.integers(0, 1_000_000))
def test_no_multipliers_refute_an_ii_that_has_a_schedule(seed: int) -> None:
    """Whatever the simplex method says, right or wrong."""
    tiny = tiny_problem(seed, 4)
    best = optimum(tiny.loop, tiny.machine, tiny.fuse, LIMIT, tiny.max_stages)
    if best is None:
        return
    made = Windows(make_case(tiny.loop, tiny.machine, tiny.fuse, tiny.max_stages), best)
    if not made.worth:
        return
    capacities = list(made.capacities())
    drawn = random.Random(seed)
    for _ in range(5):
        times = [drawn.choice((0, 1, 3)) for _ in range(len(made.implied) + len(capacities))]
        assert not impossible(made, capacities, times)


def test_five_reads_in_four_cycles_are_refuted_by_adding_up_the_cycles() -> None:
    made = Windows(five_words(), 10)
    capacities = list(made.capacities())
    rows = [0] * len(made.implied)
    assert not impossible(made, capacities, [*rows, *(0 for _ in capacities)])
    assert impossible(made, capacities, [*rows, *(int(len(cell) == 5) for _, cell in capacities)])
