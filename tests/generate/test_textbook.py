"""Rau's own method as a member of the search: its decisions, and no II above what it finds."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stretto
from generated import Problem, problems
from ims_process import Flat, flat
from ims_twin import run_twin
from naive_seats import Seats as Twin
from speed_loops import KINDS, loop_of
from stretto import Loop, Machine
from stretto.generate.kernel import COMPILED, DONE, Seats, whole_of
from stretto.generate.ladder.rau import Refiner
from stretto.generate.problem import LONG, Options, make_problem
from stretto.generate.problem import Problem as Search
from stretto.generate.seating.partial import Partial
from stretto.lower_bounds import bounds_of
from stretto.solution import Refusal

SLOW = {("tile", 30, 1), ("random", 10, 0), ("scattered", 30, 0), ("scattered", 30, 1)}
"""At which the naive scheduler has no end within seconds."""
SMALL = sorted(set(product(KINDS, (10, 30), (0, 1))) - SLOW)


def both(loop: Loop, machine: Machine) -> tuple[Search, Flat]:
    """One loop, for the search and for the naive scheduler, which begins with its own MII."""
    ready = stretto.prepare(loop, machine)
    problem = make_problem(ready.loop, ready.machine, Options(fuse=False))
    return problem, flat(loop, machine, bounds_of(problem).mii)


def first_found(
    problem: Search, kind: type[Seats | Twin], first: int, last: int
) -> tuple[int, list[int]]:
    """The II at which seats of a kind end by Rau's own plan, and their starts."""
    core = whole_of(problem)
    seats = kind(core)
    for ii in range(first, last + 1):
        assert seats.at(ii, core.segments(ii), core.floors(ii))
        seats.rau(seats.heights(), LONG * core.size)
        if seats.run(LONG * core.size + 1) == DONE:
            starts = [start for start in seats.starts() if start is not None]
            return ii, [start - min(starts) for start in starts]
    raise AssertionError(f"nothing is found up to {last}")


@pytest.mark.parametrize(("kind", "ops", "seed"), SMALL)
def test_its_decisions_are_those_of_the_textbook(kind: str, ops: int, seed: int) -> None:
    """The same II and the same starts as a scheduler that counts cycle by cycle."""
    problem, naive = both(*loop_of(kind, ops, seed))
    told = run_twin(naive, LONG, seconds=120.0)
    assert told.finished
    for seats in (Twin, Seats):
        assert first_found(problem, seats, naive.mii, told.ii) == (told.ii, list(told.starts))


@given(problems(max_ops=8))
@settings(max_examples=60)
def test_no_ii_is_above_what_the_textbook_finds(generated: Problem) -> None:
    loop, machine = generated.loop, generated.machine
    if any(budget.bytes is not None for budget in machine.budgets):
        return
    found = stretto.schedule(loop, machine)
    _, naive = both(loop, machine)
    told = run_twin(naive, LONG, seconds=2.0)
    if told.finished and found.generator == "cost-based":
        assert found.ii is not None
        assert found.ii <= told.ii


@given(st.integers(100, 10_000), st.sampled_from(["random", "scattered"]), st.integers(6, 24))
@settings(max_examples=25)
def test_nor_on_loops_that_are_hard_to_place(seed: int, kind: str, ops: int) -> None:
    loop, machine = loop_of(kind, ops, seed)
    _, naive = both(loop, machine)
    told = run_twin(naive, LONG, seconds=2.0)
    found = stretto.schedule(loop, machine)
    assert found.ii is not None
    assert not told.finished or found.ii <= told.ii  # where it was stopped, it says nothing


def not_at_all(_hunt: object, _first: int) -> None:
    """In place of the sweep."""


@pytest.mark.skipif(not COMPILED, reason="takes minutes in Python")
def test_a_loop_is_worse_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, machine = loop_of("random", 300, 14)
    problem, _ = both(loop, machine)
    mii = bounds_of(problem).mii
    refiner = Refiner(problem, mii)
    textbook = next(
        ii for ii in range(mii, 2 * mii) if isinstance(refiner.textbook(ii), Partial | Refusal)
    )
    found = stretto.schedule(loop, machine)
    assert found.ii is not None
    assert found.ii <= textbook
    monkeypatch.setattr("stretto.generate.search._Hunt.sweep", not_at_all)
    without = stretto.schedule(loop, machine)
    assert without.ii is not None
    assert without.ii > textbook
