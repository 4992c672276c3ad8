"""The serial generator: facts by hand, legality always, what it does not honour."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given

import generated
from stretto.errors import InfeasibleError
from stretto.generate.ladder.serial import SerialError, SerialResult, serial
from stretto.generate.problem import Options, Problem, make_problem
from stretto.loop import (
    Access,
    Constraint,
    Demand,
    Dependence,
    Loop,
    LoopError,
    Op,
    Operand,
    Storage,
    TileType,
    Use,
    Value,
)
from stretto.machine import Budget, Machine, Pool, Slot
from stretto.solution import Schedule
from stretto.solution.views import analyse
from stretto.solve import prepare
from stretto.verification import verify

MACHINE = Machine(
    "tiny",
    "a test machine",
    (Slot(1, "one", 1), Slot(2, "two", 2), Slot(3, "free", None)),
    (Pool("p", 3),),
    budgets=(Budget("smem", 32), Budget("register", 1 << 18, unit=512)),
)


def op(name: str, *uses: Use, after: str = "", latency: int = 1, **more: object) -> Op:
    operands = tuple(Operand(f"v_{src}") for src in after.split())
    made = Op(name, "k", operands, (f"v_{name}",), uses=uses, latency=latency)
    return replace(made, **more)  # pyright: ignore[reportArgumentType]


def loop(*ops: Op, stated: tuple[Dependence, ...] = (), **more: object) -> Loop:
    values = tuple(Value(f"v_{o.name}") for o in ops)
    made = Loop("l", ops, values, stated=stated)
    return replace(made, **more)  # pyright: ignore[reportArgumentType]


def problem(made: Loop, options: Options | None = None) -> Problem:
    ready = prepare(made, MACHINE)
    return make_problem(ready.loop, ready.machine, options or Options())


def run(made: Loop, options: Options | None = None) -> SerialResult:
    """The serial schedule, verified."""
    compiled = problem(made, options)
    result = serial(compiled)
    starts = compiled.starts_by_name(result.starts)
    analysis = analyse(compiled.loop, compiled.machine, Schedule(result.ii, starts))
    assert verify(compiled.loop, compiled.machine, analysis, max_stages=1) == ()
    return result


# Where operations start -------------------------------------------------------------------


def test_dependences_and_slots() -> None:
    made = loop(
        op("a", Use("one", 3), latency=8),
        op("b", Use("one", 2), latency=4),
        op("c", Use("two", 1), after="a"),
    )
    result = run(made)
    assert (result.starts, result.ii, result.warnings) == ([0, 3, 8], 9, ())


def test_nobody_overtakes() -> None:
    """`c` could start at 0, but stands after `b`, which waits for `a`."""
    made = loop(op("a", latency=6), op("b", after="a"), op("c"))
    assert run(made).starts == [0, 6, 6]


def test_program_order_among_those_that_are_ready() -> None:
    """`a` waits for `c`, so `b` and `c` come first, in program order."""
    made = loop(
        op("a", Use("one", 1)),
        op("b", Use("one", 1)),
        op("c", Use("one", 1)),
        stated=(Dependence("c", "a", 1),),
    )
    assert run(made).starts == [2, 0, 1]


def test_capacity_and_offsets() -> None:
    made = loop(
        op("a", Use("two", 4)),
        op("b", Use("two", 4, offset=2)),
        op("c", Use("two", 2)),
        op("d", Use("two", 2, occupancy=2)),
    )
    # c fits beside a before b's hold begins; d needs both units, free when b ends.
    assert run(made).starts == [0, 0, 0, 6]


def test_two_uses_of_one_slot() -> None:
    twice = op("b", Use("two", 2), Use("two", 3, offset=1))
    made = loop(op("a", Use("two", 4)), twice)
    # From its second cycle on `b` takes both units for one cycle, so `a` must be done by then.
    assert run(made).starts == [0, 3]


def test_pools() -> None:
    two = (Demand("p", 2),)
    made = loop(op("a", Use("free", 5), demands=two), op("b", Use("free", 5), demands=two))
    assert run(made).starts == [0, 5]


def test_unlimited_slots_limit_nothing() -> None:
    made = loop(op("a", Use("free", 5)), op("b", Use("free", 5)))
    assert (run(made).starts, run(made).ii) == ([0, 0], 5)


# The II -----------------------------------------------------------------------------------


def test_ii_is_the_latest_completion() -> None:
    assert run(loop(op("a", Use("one", 3), latency=2))).ii == 3
    assert run(loop(op("a", Use("one", 3), latency=7))).ii == 7


def test_an_operation_that_takes_no_time_stands_in_stage_0() -> None:
    made = loop(op("a", latency=4), op("b", after="a", latency=0))
    assert (run(made).starts, run(made).ii) == ([0, 4], 5)
    assert run(loop(op("a", latency=0))).ii == 1


def test_carried_dependences_may_ask_for_more() -> None:
    made = loop(op("a"), op("b", after="a"), stated=(Dependence("b", "a", 20, 2),))
    assert run(made).ii == 11
    itself = loop(op("a"), stated=(Dependence("a", "a", 20, 3),))
    assert run(itself).ii == 7


# What it honours and what not -------------------------------------------------------------


def test_depth_and_groups_hold() -> None:
    made = loop(
        op("a", latency=9, constraint=Constraint(gid=0)),
        op("b", after="a", constraint=Constraint(gid=0, max_depth=0)),
    )
    assert run(made).warnings == ()


def test_pending_is_a_warning_and_a_failure_under_strict() -> None:
    made = loop(op("a", constraint=Constraint(pending=True)), op("b"))
    (warning,) = run(made).warnings
    assert warning.startswith("`pending` of `a` is not honoured")
    with pytest.raises(SerialError, match="`pending` of `a` is not honoured"):
        serial(problem(made, Options(strict=True)))


def test_spills_are_a_warning() -> None:
    wide = Value("v_a", TileType((128, 1024), "f32"))
    made = loop(op("a"), op("b", after="a"), values=(wide, Value("v_b")))
    (warning,) = run(made).warnings
    assert warning.startswith("register pressure peaks at 1024 of 512")
    with pytest.raises(SerialError, match="1024 of 512"):
        serial(problem(made, Options(strict=True)))


def test_rings_that_do_not_fit_even_so() -> None:
    made = loop(
        op("a", writes=("m",)),
        op("b", reads=(Access("m", 3),)),
        storages=(Storage("m", "smem", 10),),
    )
    with pytest.raises(SerialError) as caught:
        serial(problem(made))
    assert str(caught.value) == (
        "serially, at II 1, smem needs 40 bytes; the budget is 32 (m 4 × 10)"
    )
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.ii, str(again)) == (1, str(caught.value))


def test_a_dependence_cycle_is_named() -> None:
    made = loop(op("a"), op("b", after="a"), op("c", after="b"), stated=(Dependence("c", "a", 1),))
    with pytest.raises(LoopError, match="a -> b -> c -> a"):
        prepare(made, MACHINE)
    with pytest.raises(InfeasibleError, match="a -> b -> c -> a"):
        make_problem(made, MACHINE, Options())


def test_offsets_of_a_group_take_stages_and_keep_the_cycles() -> None:
    """b stands a stage behind a, and so does c, which waits for b in the same iteration."""
    made = loop(
        op("a", latency=9, constraint=Constraint(gid=0)),
        op("b", after="a", constraint=Constraint(gid=0, stage_offset=1)),
        op("c", after="b"),
    )
    flat = replace(made, ops=tuple(replace(o, constraint=Constraint()) for o in made.ops))
    plain, apart = serial(problem(flat)), serial(problem(made))
    assert apart.ii == plain.ii
    assert [s // apart.ii for s in apart.starts] == [0, 1, 1]
    assert [s % apart.ii for s in apart.starts] == plain.starts


def test_offsets_that_an_iteration_cannot_keep_to_are_told() -> None:
    """b waits for a and stands a stage before it: no II will do."""
    made = loop(
        op("a", latency=9, constraint=Constraint(gid=0, stage_offset=1)),
        op("b", after="a", constraint=Constraint(gid=0)),
    )
    with pytest.raises(SerialError, match="no stages keep to the offsets of groups"):
        serial(problem(made))


@given(generated.problems(max_ops=8, offsets=True))
def test_always_legal(drawn: generated.Problem) -> None:
    compiled = make_problem(drawn.loop, drawn.machine, Options())
    result, refused = None, ""
    try:
        result = serial(compiled)
    except SerialError as error:
        refused = str(error)
    apart = any(compiled.ahead)
    if result is None:
        assert "the budget is" in refused or (apart and "stage" in refused)
        assert apart or any(read.distance for o in drawn.loop.ops for read in o.reads)
        return
    starts = compiled.starts_by_name(result.starts)
    analysis = analyse(drawn.loop, drawn.machine, Schedule(result.ii, starts))
    assert verify(drawn.loop, drawn.machine, analysis, max_stages=None if apart else 1) == ()
    assert analysis.stage_count == 1 or apart


@given(generated.problems(max_ops=8))
def test_nobody_overtakes_and_nobody_idles(drawn: generated.Problem) -> None:
    """Starts rise along some topological order, and none could be one cycle earlier."""
    compiled = make_problem(drawn.loop, drawn.machine, Options())
    try:
        result = serial(compiled)
    except SerialError:
        return
    starts = result.starts
    for i, start in enumerate(starts):
        earlier = [s for s in starts if s < start]
        if not earlier or start - 1 < max(earlier):
            continue
        moved = [s - 1 if s == start else s for s in starts]
        analysis = analyse(
            drawn.loop, drawn.machine, Schedule(result.ii + 1, compiled.starts_by_name(moved))
        )
        found = verify(drawn.loop, drawn.machine, analysis)
        assert {v.rule for v in found} & {"dependence", "slot", "pool"}, (i, moved)
