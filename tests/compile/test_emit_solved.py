"""Kernels by the solver's schedules: shorter, right, and one iteration at a time in registers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import pytest
from test_emit import attention

from gluon_cases import holds, shipped
from stretto.compile import iteration_order, loop_schedules
from stretto.compile.bisection import shortened
from stretto.compile.candidates import STAGES, Emitter
from stretto.compile.emitted import EmittedKernel
from stretto.compile.iteration_order import one_at_a_time
from stretto.compile.scheduled import ScheduledLoop
from stretto.exact import Limits
from stretto.kernel.wiring import LoopWiring
from stretto.loop import Dependence, Loop, Op
from stretto.machine import load_machine
from stretto.materialization.program import Issue, Position
from stretto.program.builder.steps import steps_of
from stretto.resources.prepare import prepare
from stretto.verification import verify

FORWARD = "triton/attention_forward_d128"
AGENTS = ("compute", "compute.1")


@cache
def solved(name: str) -> EmittedKernel:
    """The kernel for two consumers: the shortest of its candidates, which is the solver's."""
    with patch.dict(STAGES, {"specialized": (3,)}):
        made = Emitter(shipped(name)).candidates(2)
    assert [solved_by(one) for one in made] == [False, True]
    return made[1]


def solved_by(made: EmittedKernel) -> bool:
    return any(analysis.generator == "exact" for analysis in made.analyses)


def test_the_solver_s_schedule_is_shorter_than_the_generators_and_legal() -> None:
    with patch.dict(STAGES, {"specialized": (3,)}):
        generated, found = Emitter(shipped(FORWARD)).candidates(2)
    (before,), (after,) = generated.analyses, found.analyses
    assert after.bounds is not None
    assert after.bounds.mii <= (after.ii or 0) < (before.ii or 0)
    ready = after.problem
    assert not verify(ready.loop, ready.machine, after)


@pytest.mark.parametrize("name", [FORWARD, "triton/attention_backward_q"])
def test_a_kernel_by_the_solver_s_schedule_does_what_numpy_does(name: str) -> None:
    holds(name, solved(name).source)


def test_attention_by_the_solver_s_schedule_is_right_at_any_trip_count() -> None:
    for trips in range(6):
        attention(solved(FORWARD).source, trips, 64, 128)


def test_a_kernel_that_is_at_its_bound_is_not_solved_anew() -> None:
    made = Emitter(shipped("triton/matmul_descriptors")).candidates(2)
    assert any(one.short for one in made)
    assert not any(solved_by(one) for one in made)


def test_where_little_effort_is_asked_for_nothing_is_solved() -> None:
    made = Emitter(shipped(FORWARD), effort="quick").candidates(2)
    assert not any(solved_by(one) for one in made)


# One iteration at a time ------------------------------------------------------------------------


def loop_of(consumers: int) -> LoopWiring:
    (loop,) = Emitter(shipped(FORWARD)).lowered(consumers).loops
    return loop.wiring


def orders(wiring: LoopWiring) -> list[Dependence]:
    return [d for d in wiring.loop.stated if d.kind == "order"]


def timed(wiring: LoopWiring, product: int = 1) -> Loop:
    """The loop with what its operations hold, products so many times as long."""
    loop = prepare(wiring.loop, load_machine("h200")).loop

    def longer(op: Op) -> Op:
        uses = tuple(
            replace(use, duration=use.duration * (1 if use.slot == op.agent else product))
            for use in op.uses or ()
        )
        return replace(op, uses=uses) if op.kind == "async.wgmma" else op

    return replace(loop, ops=tuple(map(longer, loop.ops)))


def apart_of(wiring: LoopWiring, product: int = 1) -> LoopWiring:
    """What is preferred; behind it stands the same without waits that are stated."""
    first, *others = one_at_a_time(wiring, AGENTS, timed(wiring, product))
    without = [orders(apart_of(wiring))] if product > 1 else []
    assert [orders(one) for one in others] == without
    return first


def test_a_long_product_is_waited_for_right_behind_the_first_reduction() -> None:
    wiring = loop_of(2)
    short, long = orders(apart_of(wiring)), orders(apart_of(wiring, product=4))
    more = [d for d in long if d not in short]
    assert [d for d in short if d not in long] == []
    ops = {op.name: op for op in wiring.loop.ops}
    assert {ops[d.src].agent for d in more} == set(AGENTS)
    for d in more:
        assert (d.latency, d.distance) == (0, 1)  # of the iteration before, in this step
        assert ops[d.src].kind == "async.wgmma_wait"
        (product,) = [p for p in wiring.operations[d.src].operands if p in wiring.made][:1]
        assert wiring.operations[wiring.made[product][0]].integers("groups")[2] == 1  # it adds
        (first,) = [o for o in short if o.dst == d.dst and not o.distance]
        assert ops[first.src].kind == "reduce.max"


def test_the_next_product_comes_behind_all_arithmetic_of_an_iteration() -> None:
    wiring = loop_of(2)
    apart = apart_of(wiring)
    for agent in AGENTS:
        mine = {op.name: op for op in wiring.loop.ops if op.agent == agent}
        asked = [d for d in orders(apart) if d.src in mine]
        (behind,) = [d for d in asked if d.distance and mine[d.dst].kind == "async.wgmma"]
        (before,) = [d for d in asked if d.distance and d is not behind]
        assert (mine[before.src].kind, mine[before.dst].kind) == ("async.wgmma", "async.wgmma_wait")
        assert mine[behind.src].facts.accumulates  # the sums that products add to come last
        chain = [d.src for d in asked if not d.distance] + [behind.src]
        assert len(set(chain)) == len(chain) > 5
        assert not any(mine[name].kind.startswith("async.") for name in chain)


def test_a_product_without_arithmetic_has_nothing_to_wait_for() -> None:
    (loop,) = Emitter(shipped("triton/matmul_descriptors")).lowered(2).loops
    assert one_at_a_time(loop.wiring, AGENTS, timed(loop.wiring)) == []


def test_what_is_shortened_keeps_to_the_orders_and_is_legal() -> None:
    wiring, machine = apart_of(loop_of(2)), load_machine("h200")
    found = shortened(wiring.loop, machine, 1024, 1306, max_stages=3, limits=Limits(2.0))
    assert found is not None
    assert 1024 <= (found.ii or 0) < 1306
    assert all(d.src != d.dst for d in found.problem.loop.stated)  # nor the II asked for
    assert not verify(found.problem.loop, machine, found)
    for d in orders(wiring):
        assert found.starts[d.dst] + d.distance * (found.ii or 0) >= found.starts[d.src] + d.latency


def test_where_no_shorter_schedule_is_found_there_is_none() -> None:
    wiring, machine = apart_of(loop_of(2)), load_machine("h200")
    assert shortened(wiring.loop, machine, 100, 103, max_stages=3, limits=Limits(1.0)) is None


# Where steps begin ------------------------------------------------------------------------------

WAITS = {"pv_done": "pv", "qk_done": "qk"}


def steps(order: str, stages: str, begins: str | None = "qk") -> tuple[list[str], list[int]]:
    names = order.split()
    issues = [
        Issue(Position(0, int(stage), 10 * n), name)
        for n, (name, stage) in enumerate(zip(names, stages.split(), strict=True))
    ]
    found = steps_of(issues, frozenset(names), begins, lambda i: WAITS.get(i.op))
    return [i.op for i in found.order], [found.stages[i.op] for i in found.order]


def test_a_step_begins_with_the_product_and_iterations_stay_what_they_were() -> None:
    found = steps("exp scale qk pv qk_done max pv_done", "2 2 1 2 1 1 2")
    assert found == (
        ["qk", "pv", "qk_done", "max", "pv_done", "exp", "scale"],
        [1, 2, 1, 1, 2, 1, 1],
    )


def test_a_step_that_begins_with_it_already_is_left_as_it_is() -> None:
    assert steps("qk pv qk_done max pv_done", "1 2 1 1 2")[1] == [1, 2, 1, 1, 2]


def test_a_step_is_not_cut_where_more_products_are_in_flight() -> None:
    order = "max pv qk qk_done pv_done"
    assert steps(order, "1 1 1 1 1") == (order.split(), [1] * 5)


def test_without_such_a_product_steps_begin_at_cycle_0() -> None:
    assert steps("exp pv pv_done", "1 1 1", None) == (["exp", "pv", "pv_done"], [1, 1, 1])


def test_no_stage_is_negative() -> None:
    assert steps("exp qk qk_done", "0 0 0") == (["qk", "qk_done", "exp"], [1, 1, 0])


def test_the_same_operations_are_issued_in_the_same_order_wherever_steps_are_cut() -> None:
    order, stages = ["exp", "scale", "qk", "pv", "qk_done", "max", "pv_done"], [2, 2, 1, 2, 1, 1, 2]
    turned, moved = steps(" ".join(order), " ".join(map(str, stages)))

    def laid_out(names: list[str], at: list[int], count: int) -> list[tuple[str, int]]:
        every = [
            (name, step - stage)
            for step in range(count + 3)
            for name, stage in zip(names, at, strict=True)
        ]
        return [(name, i) for name, i in every if 0 <= i < count]

    assert laid_out(turned, moved, 4) == laid_out(order, stages, 4)


def test_of_kernels_at_one_ii_the_one_of_fewer_stages_comes_first() -> None:
    made = Emitter(shipped("triton/matmul_descriptors")).candidates(1, stages=(3,))[0]
    (analysis,) = made.analyses

    def order(ii: int, stages: int) -> tuple[float, ...]:
        return replace(made, analyses=(replace(analysis, ii=ii, stage_count=stages),)).order

    assert order(2467, 2) < order(2460, 3)  # as of attention backward: 0.3 % apart
    assert order(2400, 3) < order(2467, 2)
    assert order(2460, 3) < order(2467, 3)


def test_where_nothing_is_found_that_waits_there_it_is_sought_without_that_order() -> None:
    asked: list[Loop] = []

    def picky(loop: Loop, *others: Any, **options: Any) -> ScheduledLoop | None:
        asked.append(loop)
        return shortened(loop, *others, **options) if len(asked) > 1 else None

    stages = patch.dict(STAGES, {"specialized": (3,)})
    with (
        stages,
        patch.object(iteration_order, "LONG", 0),
        patch.object(loop_schedules, "shortened", picky),
    ):
        made = Emitter(shipped(FORWARD)).candidates(2)
    first, second = asked
    assert set(second.stated) < set(first.stated)
    assert solved_by(made[-1])
