"""Longest paths against their naive twin, and the earliest starts that they make."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_bounds
from generated import Problem, problems
from stretto.errors import InfeasibleError
from stretto.loop import Dependence, Loop, Op
from stretto.lower_bounds import compute_bounds
from stretto.lower_bounds.distances import earliest_starts
from stretto.problem import dependence_graph
from stretto.problem.paths import longest_from


def chain(*dependences: Dependence, scale: int = 1) -> Loop:
    names = dict.fromkeys(name for d in dependences for name in (d.src, d.dst))
    ops = tuple(Op(name, "op", uses=(), latency=0) for name in names)
    stated = tuple(Dependence(d.src, d.dst, d.latency * scale, d.distance) for d in dependences)
    return Loop("chain", ops, stated=stated)


def from_one(loop: Loop, ii: int, source: str) -> list[int | None]:
    return longest_from(dependence_graph(loop).succs, loop.index[source], ii)


@given(problems(max_ops=6, max_duration=9), st.integers(0, 3))
def test_every_distance_is_the_naive_one(problem: Problem, above: int) -> None:
    loop = problem.loop
    ii = compute_bounds(loop, problem.machine).recurrence.bound + above
    expected = naive_bounds.closure(loop, ii)
    assert expected is not None
    for a in loop.index:
        assert from_one(loop, ii, a) == [expected.get((a, b)) for b in loop.index]
    starts = {b: max(w for (_, dst), w in expected.items() if dst == b) for b in loop.index}
    assert earliest_starts(loop, ii) == starts


@given(problems(max_ops=5, max_duration=9))
def test_an_ii_below_the_recurrence_is_refused(problem: Problem) -> None:
    loop = problem.loop
    bound = compute_bounds(loop, problem.machine).recurrence.bound
    if bound == 1:
        return
    assert naive_bounds.closure(loop, bound - 1) is None
    with pytest.raises(InfeasibleError, match=f"II {bound - 1} is below .* bound {bound}"):
        earliest_starts(loop, bound - 1)


def test_the_refusal_names_the_cycle() -> None:
    loop = chain(Dependence("a", "b", 7), Dependence("b", "c", 9), Dependence("c", "b", 6, 2))
    with pytest.raises(InfeasibleError, match=r"b -> c -> b \(latency 15 over distance 2\)"):
        earliest_starts(loop, 7)
    assert from_one(loop, 8, "a") == [0, 7, 16]
    assert from_one(loop, 8, "c") == [None, 6 - 16, 0]
    assert from_one(loop, 8, "b") == [None, 0, 9]


def test_a_path_of_weight_zero_is_a_path() -> None:
    loop = chain(Dependence("a", "b", 0), Dependence("c", "c", 1, 1))
    assert from_one(loop, 5, "a") == [0, 0, None]


@pytest.mark.parametrize("scale", [1, 2**61, 10**30])
def test_distances_are_exact_at_any_size(scale: int) -> None:
    links = Dependence("a", "b", 3), Dependence("b", "c", 5), Dependence("c", "a", 1, 3)
    loop = chain(*links, scale=scale)
    ii = 3 * scale
    assert from_one(loop, ii, "a")[2] == 8 * scale
    assert from_one(loop, ii, "c")[1] == (1 - 9 + 3) * scale
    assert earliest_starts(loop, ii) == {"a": 0, "b": 3 * scale, "c": 8 * scale}


def test_a_long_chain_needs_no_recursion() -> None:
    links = [Dependence(f"op{i}", f"op{i + 1}", 2) for i in range(3000)]
    loop = chain(*links, Dependence("op3000", "op0", 0, 1))
    assert from_one(loop, 6000, "op0")[3000] == 6000
    with pytest.raises(InfeasibleError, match="latency 6000 over distance 1"):
        earliest_starts(loop, 5999)


def test_a_cycle_of_one_iteration_is_refused() -> None:
    loop = chain(Dependence("a", "b", 1), Dependence("b", "a", 1))
    with pytest.raises(InfeasibleError, match="distance 0"):
        earliest_starts(loop, 10)


def test_bounds_load_no_numpy() -> None:
    program = "import sys, stretto.lower_bounds; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
