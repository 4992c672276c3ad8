"""The exact solver against brute force and against a formulation of its own, on tiny loops.

200 seeded loops of up to 5 operations in CI; thousands of up to 6 under `make test-deep`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import pytest

from brute_force import legal_schedules, optimum
from stretto.exact import Limits
from stretto.exact.case import Case, make_case
from stretto.exact.conflict import find_conflict
from stretto.exact.model import Model
from stretto.exact.objectives import up_to
from stretto.exact.reasons import ReasonKind
from stretto.exact.search import Answer, optimize
from stretto.exact.solving import Clock, solve
from stretto.solution import Schedule
from stretto.solution.views import analyse, stage_count
from stretto.verification import verify
from time_indexed import time_indexed
from tiny_loops import Tiny, tiny_apart, tiny_problem

DEEP = os.environ.get("STRETTO_HYPOTHESIS") == "deep"
CHUNKS = 8
SEEDS = range(3000) if DEEP else range(200)
MAX_OPS = 6 if DEEP else 5
LIMIT = 40
"""No loop of the generator needs a larger II."""
SOON = 7
"""The last II at which loops that may have no schedule are looked at."""


def case_of(tiny: Tiny) -> Case:
    return make_case(tiny.loop, tiny.machine, tiny.fuse, tiny.max_stages)


def chunk(k: int) -> Iterator[tuple[int, Tiny]]:
    for seed in SEEDS[k::CHUNKS]:
        yield seed, tiny_problem(seed, MAX_OPS)


def legal(tiny: Tiny, schedule: Schedule) -> bool:
    analysis = analyse(tiny.loop, tiny.machine, schedule)
    return verify(tiny.loop, tiny.machine, analysis, max_stages=tiny.max_stages) == ()


def solved(tiny: Tiny, objective: str = "ii") -> Answer:
    return optimize(case_of(tiny), 1, LIMIT, None, up_to(objective), Limits())


@pytest.mark.parametrize("k", range(CHUNKS))
def test_the_optimum_is_that_of_brute_force(k: int) -> None:
    for seed, tiny in chunk(k):
        answer = solved(tiny)
        found = None if answer.schedule is None else answer.schedule.ii
        best = optimum(tiny.loop, tiny.machine, tiny.fuse, LIMIT, tiny.max_stages)
        assert found == best, f"seed {seed}"
        assert not answer.limited, f"seed {seed}"
        if answer.schedule is not None:
            assert legal(tiny, answer.schedule), f"seed {seed}"
            assert answer.lower_bound == found, f"seed {seed}"
            assert [o.optimal for o in answer.objectives] == [True], f"seed {seed}"
            if answer.schedule.ii <= 6 and len(tiny.loop.ops) <= 4:
                check_later_objectives(seed, tiny, answer.schedule.ii)


def test_offsets_of_groups_are_those_of_brute_force() -> None:
    """Within small IIs: many of them have no schedule at all."""
    found = Counter[int | None]()
    for seed in range(400 if DEEP else 60):
        tiny = tiny_apart(seed)
        answer = optimize(case_of(tiny), 1, SOON, None, up_to("ii"), Limits())
        best = optimum(tiny.loop, tiny.machine, tiny.fuse, SOON, tiny.max_stages)
        assert (None if answer.schedule is None else answer.schedule.ii) == best, f"seed {seed}"
        assert answer.schedule is None or legal(tiny, answer.schedule), f"seed {seed}"
        found[best] += 1
    assert 10 < found[None] < 50 or DEEP
    assert len(found) > 4


def check_later_objectives(seed: int, tiny: Tiny, ii: int) -> None:
    """Among all legal schedules at the optimum: fewest stages, then bytes, then registers."""
    answer = solved(tiny, "registers")
    assert answer.schedule is not None
    figures: list[tuple[int, int, int]] = []
    for s in legal_schedules(
        tiny.loop, tiny.machine, ii, fuse=tiny.fuse, max_stages=tiny.max_stages
    ):
        a = analyse(tiny.loop, tiny.machine, s)
        assert a.pressure is not None
        figures.append((a.stage_count, sum(m.used for m in a.memory), a.pressure.peak))
    told = tuple(row.value for row in answer.objectives[1:])
    assert told == min(figures), f"seed {seed}"
    assert all(row.optimal for row in answer.objectives), f"seed {seed}"
    assert stage_count(ii, answer.schedule.starts.values()) == told[0]
    assert legal(tiny, answer.schedule), f"seed {seed}"


def test_a_formulation_of_its_own_agrees_on_every_small_ii() -> None:
    """Also above the optimum: feasibility is not monotone in the II."""
    refuted = 0
    for seed in SEEDS:
        tiny = tiny_problem(seed, MAX_OPS)
        tiny = Tiny(tiny.loop, tiny.machine, False, tiny.max_stages)  # it does not fuse
        best = solved(tiny).schedule
        for ii in range(1, (LIMIT if best is None else best.ii + 2) + 1):
            said = solve(Model(case_of(tiny), ii), Clock(Limits())).status
            other = time_indexed(tiny.loop, tiny.machine, ii, max_stages=tiny.max_stages)
            assert said == other, f"seed {seed}, II {ii}"
            refuted += said == "refuted"
    assert refuted > len(SEEDS)


def _pinned(seed: int) -> Tiny:
    """A problem with its first operation pinned to a start."""
    tiny = tiny_problem(seed, MAX_OPS)
    first, *rest = tiny.loop.ops
    told = replace(first, constraint=replace(first.constraint, start=1 + seed % 3))
    return replace(tiny, loop=replace(tiny.loop, ops=(told, *rest)))


def test_every_rule_binds_somewhere() -> None:
    """Each kind of reason forbids the II below some optimum, and fusion lowers some optimum."""
    kinds: set[str] = set()
    fused = 0
    problems = [tiny_problem(seed, MAX_OPS) for seed in SEEDS[:120]]
    problems += [_pinned(seed) for seed in SEEDS[:20]]
    for tiny in problems:
        best = solved(tiny).schedule
        if best is None or best.ii == 1:
            continue
        conflict = find_conflict(case_of(tiny), best.ii - 1, Clock(Limits()))
        assert conflict.status == "impossible"
        kinds |= {reason.kind for reason in conflict.reasons}
        if tiny.fuse:
            apart = Tiny(tiny.loop, tiny.machine, False, tiny.max_stages)
            other = solved(apart).schedule
            fused += other is None or other.ii > best.ii
    assert kinds == set(get_args(ReasonKind)) - {"registers"}  # which tests/test_registers.py has
    assert fused >= 5
