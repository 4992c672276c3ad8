"""While a schedule is made the garbage collector looks seldom; afterwards it is as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import permutations

import pytest

import stretto
from stretto.frontends.random_loops import random_loop
from stretto.solve.collecting import SELDOM, seldom


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before, on = gc.get_threshold(), gc.isenabled()
    yield
    assert gc.isenabled() == on
    gc.set_threshold(*before)


def test_the_thresholds_come_back_after_a_schedule() -> None:
    gc.set_threshold(701, 11, 12)
    loop, machine = random_loop(0, 12)
    seen: list[int] = []
    stretto.schedule(loop, machine, progress=lambda _: seen.append(gc.get_threshold()[0]))
    assert set(seen) == {SELDOM}
    assert gc.get_threshold() == (701, 11, 12)


def test_they_come_back_after_an_error() -> None:
    gc.set_threshold(701, 11, 12)
    loop, machine = random_loop(0, 12)
    with pytest.raises(stretto.StrettoError):
        stretto.schedule(loop, machine, effort="none")
    assert gc.get_threshold() == (701, 11, 12)


@pytest.mark.parametrize("first", [0, 2 * SELDOM])
def test_who_wants_it_off_or_rarer_still_keeps_that(first: int) -> None:
    gc.set_threshold(first, 11, 12)
    with seldom():
        assert gc.get_threshold() == (first, 11, 12)
    assert gc.get_threshold() == (first, 11, 12)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_threads_may_leave_in_any_order(order: tuple[int, ...]) -> None:
    gc.set_threshold(701, 11, 12)
    inside = [ExitStack() for _ in order]
    for each in inside:
        each.enter_context(seldom())
    for left, i in enumerate(order):
        assert gc.get_threshold()[0] == SELDOM
        inside[i].close()
        assert (gc.get_threshold() == (701, 11, 12)) == (left == 2)
