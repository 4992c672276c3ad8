"""`stretto.generate_loops`: seeded, complete, and the same everywhere."""

from __future__ import annotations

import hashlib
from itertools import islice

import pytest

import stretto
from stretto.loop import check
from stretto.loop.json import dump_loop


def test_a_seed_gives_the_same_loops_as_ever() -> None:
    text = "".join(dump_loop(loop) for loop in stretto.generate_loops(20, seed=7))
    assert hashlib.sha256(text.encode()).hexdigest() == DIGEST


DIGEST = "44e8fdec69fa7d919ffe49f40004713a28e5a9cb7f1a69ab98021c78c6ab4971"
"""What figures in papers were measured on: it never changes."""


def test_a_loop_is_the_same_whatever_the_count() -> None:
    many = list(stretto.generate_loops(30, seed=3))
    assert list(stretto.generate_loops(10, seed=3)) == many[:10]
    assert list(stretto.generate_loops(10, seed=3, first=20)) == many[20:]


def test_seeds_differ_and_names_do_not_repeat() -> None:
    one, other = (list(stretto.generate_loops(20, seed=seed)) for seed in (1, 2))
    assert all(a.ops != b.ops for a, b in zip(one, other, strict=True))
    assert len({loop.name for loop in (*one, *other)}) == 40


def test_they_have_as_many_operations_as_asked_for() -> None:
    assert {len(loop.ops) for loop in stretto.generate_loops(200, ops=(3, 6))} == {3, 4, 5, 6}
    assert {len(loop.ops) for loop in stretto.generate_loops(5, ops=17)} == {17}


def test_each_brings_its_machine_and_can_be_scheduled() -> None:
    for loop in stretto.generate_loops(10, ops=(5, 20)):
        found = stretto.schedule(loop)
        assert check(found.problem.loop, found.problem.machine) == ()
        assert found.machine == "random"
        assert stretto.verify(loop, found).legal


def test_they_are_made_as_they_are_asked_for() -> None:
    endless = stretto.generate_loops(10**9)
    assert [loop.name for loop in islice(endless, 2)] == ["random0_0", "random0_1"]


@pytest.mark.parametrize("ops", [0, (5, 4), (0, 3), -2])
def test_sizes_that_make_no_sense_are_refused(ops: int | tuple[int, int]) -> None:
    with pytest.raises(stretto.StrettoError, match="ops is"):
        stretto.generate_loops(1, ops=ops)


def test_counts_below_nothing_are_refused() -> None:
    with pytest.raises(stretto.StrettoError, match="count is -1"):
        stretto.generate_loops(-1)
