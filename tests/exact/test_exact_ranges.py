"""A run of IIs is refuted only where each of them is, and where each is, mostly at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_force import optimum
from stretto.exact import Limits
from stretto.exact.case import Case, make_case
from stretto.exact.ranges import exclusive, first_possible
from stretto.exact.runs import first_legal
from stretto.exact.solving import Clock
from stretto.frontends.random_loops import random_loop
from stretto.generate.problem import Options
from stretto.loop import Dependence, Loop, Op, Use
from stretto.lower_bounds import bounds_of
from stretto.machine import Machine, Slot
from stretto.solve import prepare, schedule_prepared
from tiny_loops import Tiny, tiny_agents, tiny_apart, tiny_problem

LIMIT = 40
"""No loop of the generator needs a larger II."""
SMALL = 8
"""The last II of a run where loops may have no schedule, which brute force is slow to see."""


def first(case: Case, low: int, last: int) -> int:
    return first_possible(case, low, last, Clock(Limits()), 1.0)


@given(st.integers(0, 1_000_000))
def test_no_ii_that_brute_force_finds_is_refuted(seed: int) -> None:
    tiny = tiny_problem(seed, 4)
    best = optimum(tiny.loop, tiny.machine, tiny.fuse, LIMIT, tiny.max_stages)
    case = make_case(tiny.loop, tiny.machine, tiny.fuse, tiny.max_stages)
    found = first(case, 1, LIMIT)
    if best is not None:
        assert found <= best
    # A run says what its IIs say one by one.
    assert found == next((ii for ii in range(1, LIMIT + 1) if first(case, ii, ii) == ii), LIMIT + 1)


def test_a_recurrence_that_no_ii_brings_into_step_is_refuted_up_to_the_optimum() -> None:
    """Two holds of 10 that stand 21 apart, and again: below 31 one always meets the other."""
    ops = (
        Op("a", "k", uses=(Use("s", 10),), latency=21),
        Op("b", "k", uses=(Use("s", 10),), latency=21),
    )
    stated = (Dependence("a", "b", 21), Dependence("b", "a", 21, 2))
    machine = Machine("m", "", (Slot(1, "s", 1),))
    case = make_case(prepare(Loop("l", ops, stated=stated), machine).loop, machine)
    best = optimum(case.loop, machine, False, LIMIT, None)
    assert bounds_of(case.problem).mii == 21
    assert best is not None
    assert first(case, 21, best + 5) == best > 21
    assert first(case, 21, best - 1) == best
    assert exclusive(case) == ["s"]


def test_what_a_scheduler_finds_is_never_refuted() -> None:
    """Loops of ten to forty operations, fusion and all, at the II found and around it."""
    above = 0
    for seed in range(12):
        ready = prepare(*random_loop(seed, 10 + 3 * seed))
        found = schedule_prepared(ready, options=Options())
        assert found.ii is not None
        assert found.bounds is not None
        case = make_case(ready.loop, ready.machine)
        assert first(case, found.ii, found.ii) == found.ii
        assert first(case, found.bounds.mii, found.ii + 9) <= found.ii
        above += first(case, found.bounds.mii, found.ii) > found.bounds.mii
    assert above


@pytest.mark.parametrize("make", [tiny_problem, tiny_apart, tiny_agents])
@settings(max_examples=30)
@given(seed=st.integers(0, 1_000_000))
def test_a_run_refutes_what_brute_force_does(make: Callable[[int, int], Tiny], seed: int) -> None:
    """Groups, rings, registers and limits on stages included."""
    tiny = make(seed, 4)
    best = optimum(tiny.loop, tiny.machine, tiny.fuse, SMALL, tiny.max_stages)
    case = make_case(tiny.loop, tiny.machine, tiny.fuse, tiny.max_stages)
    found, solution = first_legal(case, 1, SMALL, Clock(Limits()))
    assert found <= (best or SMALL + 1)
    assert solution is None or solution.ii == found
    left_out = case.classes or case.problem.pinned or case.problem.instant_pairs
    assert left_out or found == (best or SMALL + 1)
