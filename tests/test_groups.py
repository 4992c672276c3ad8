"""Leader groups in search: members wait for each other, and whole schedules turn to align them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import stretto
from brute_force import legal_schedules
from generated import Problem as Generated
from generated import problems
from groups import draw
from stretto.generate.kernel import core_of
from stretto.generate.ladder.rau import aligned
from stretto.generate.problem import Options, Problem, make_problem
from stretto.loop import Constraint, Loop, Op, Operand, Value


def compiled(generated: Generated) -> Problem:
    machine = generated.machine.with_slots(generated.loop.slots)
    return make_problem(generated.loop, machine, Options(fuse=False))


@given(problems(max_ops=4, max_duration=3), st.integers(1, 9))
def test_every_legal_schedule_keeps_what_members_wait_for(generated: Generated, ii: int) -> None:
    problem = compiled(generated)
    core = core_of(problem)
    legal = list(legal_schedules(problem.loop, problem.machine, ii))
    for schedule in legal:
        starts = [schedule.starts[problem.names[ops[0]]] for ops in core.nodes]
        for src, steps in enumerate(core.succs):
            for dst, latency, distance in steps:
                assert starts[dst] >= starts[src] + latency - ii * distance
    event(f"tied: {core.tied}, legal: {bool(legal)}")


@given(problems(max_ops=5, max_duration=3), st.integers(1, 7), st.data())
def test_a_schedule_turns_until_groups_are_aligned(
    generated: Generated, ii: int, data: st.DataObject
) -> None:
    problem = compiled(generated)
    starts = [data.draw(st.integers(0, 3 * ii)) for _ in problem.names]
    turned = aligned(problem, ii, starts)
    (by,) = {after - before for before, after in zip(starts, turned, strict=True)}
    assert min(turned) >= 0
    some = [
        turn for turn in range(ii) if not list(problem.scattered(ii, [s + turn for s in starts]))
    ]
    assert (not list(problem.scattered(ii, turned))) == bool(some)
    assert by == 0 if not some or 0 in some else by % ii in some
    event(f"turned by: {by != 0}")


def chain_in_a_stage() -> Loop:
    """Four operations of which the last three share a stage: it begins in the middle of the way."""
    ops = tuple(
        Op(
            name,
            kind,
            (Operand(before),) if before else (),
            (name,),
            constraint=Constraint(gid=None if before is None else 0),
        )
        for name, kind, before in (
            ("a", "async.wgmma", None),
            ("b", "async.tmem_load", "a"),
            ("c", "async.wgmma", "b"),
            ("d", "async.tmem_store", "c"),
        )
    )
    return Loop("chain", ops, tuple(Value(op.name) for op in ops), machine="blackwell")


def test_members_move_as_a_whole() -> None:
    loop = chain_in_a_stage()
    alone = stretto.schedule(loop, without=["retries", "ties"])
    whole = stretto.schedule(loop, without=["retries"])
    bound = stretto.bounds(loop).mii
    assert whole.ii == bound == 24  # 7 + 16 between b and d, and one
    assert alone.ii is not None
    assert alone.ii > bound


@pytest.mark.parametrize("seed", range(24))
def test_grouped_loops_are_at_their_optimum(seed: int) -> None:
    loop = draw(Random(f"groups of the tests {seed}"))
    found = stretto.schedule(loop)
    proved = stretto.schedule(loop, prove=True, time_limit=60)
    if not proved.success:
        assert not found.success
        return
    assert proved.proof is not None
    assert found.ii is not None
    assert proved.ii is not None
    assert found.ii <= 1.05 * proved.ii
