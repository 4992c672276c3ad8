"""The ladder: whatever a rung returns is legal, and each rung does what it is for."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import generated
import stretto
from stretto.generate.ladder import Attempt, refusal_for
from stretto.generate.ladder.climb import climb, resumed
from stretto.generate.problem import RUNGS, Options, Problem, make_problem
from stretto.generate.seating.partial import Partial
from stretto.loop import Access, Constraint, Dependence, Facts, Loop, Op, Storage, Use
from stretto.lower_bounds import compute_bounds
from stretto.machine import Budget, Machine, Slot
from stretto.solution import Refusal, Schedule
from stretto.solution.views import analyse
from stretto.verification import verify

MACHINE = Machine(
    "m",
    "",
    (Slot(1, "s", 1), Slot(2, "t", 1), Slot(3, "shared", 1, fusion_cap=3)),
    budgets=(Budget("smem", 100),),
)


def nothing(problem: Problem, ii: int) -> Attempt:
    """A refinement that seats nothing."""
    return Attempt(None, Partial(problem, ii), None)


def op(name: str, *uses: Use, latency: int = 1, **constraint: int | bool) -> Op:
    asked = Constraint(**constraint)  # pyright: ignore[reportArgumentType]
    return Op(name, "k", uses=uses, latency=latency, facts=Facts(bank=0), constraint=asked)


def problem(*ops: Op, stated: tuple[Dependence, ...] = (), without: str = "") -> Problem:
    options = Options(without=frozenset(without.split()))
    return make_problem(Loop("l", ops, stated=stated), MACHINE, options)


def check(placement: Partial) -> None:
    p = placement.problem
    assert placement.complete
    starts = p.starts_by_name(placement.whole())
    fused = tuple(tuple(p.names[i] for i in group) for group in placement.fused.values())
    analysis = analyse(p.loop, p.machine, Schedule(placement.ii, starts, fused))
    assert verify(p.loop, p.machine, analysis, max_stages=p.options.max_stages) == ()


# Every placement is legal -------------------------------------------------------------------


@given(
    generated.problems(max_ops=6),
    st.integers(0, 6),
    st.frozensets(st.sampled_from([*RUNGS, "arm:permute", "arm:fuse", "arm:retry"]), max_size=4),
    st.sampled_from([None, None, 2]),
)
def test_every_placement_verifies(
    case: generated.Problem, extra: int, without: frozenset[str], stages: int | None
) -> None:
    ii = compute_bounds(case.loop, case.machine).mii + extra
    options = Options(without=without, max_stages=stages)
    p = make_problem(case.loop, case.machine, options)
    attempt = climb(p, ii, nothing)
    if attempt.placement is None:
        assert attempt.refusal is not None
        assert attempt.refusal.ii == ii
        assert attempt.refusal.reason
    else:
        check(attempt.placement)
        for rung, arm in attempt.placement.seated_by.values():
            assert rung in RUNGS
            assert rung not in without
            assert f"arm:{arm}" not in without
    again = climb(p, ii, nothing)
    assert again.refusal == attempt.refusal
    assert again.partial.starts == attempt.partial.starts


@given(generated.problems(max_ops=6), st.data())
def test_resumed_placements_verify_whatever_the_first_rung_left(
    case: generated.Problem, data: st.DataObject
) -> None:
    ii = compute_bounds(case.loop, case.machine).mii + data.draw(st.integers(0, 4))
    p = make_problem(case.loop, case.machine, Options())

    def careless(p: Problem, ii: int) -> Attempt:
        """Seats that fit the table and respect nothing else."""
        partial = Partial(p, ii)
        for i in range(p.size):
            start = data.draw(st.integers(0, 2 * ii))
            if partial.table.fits(p.vectors[i], start):
                partial.seat((i,), start, "rau")
        return Attempt(None, partial, Refusal(ii, "careless"))

    attempt = climb(p, ii, careless)
    if attempt.placement is not None:
        check(attempt.placement)


# Rungs --------------------------------------------------------------------------------------


def test_the_first_rung_wins_at_once() -> None:
    p = problem(op("a", Use("s", 2)))

    def done(p: Problem, ii: int) -> Attempt:
        partial = Partial(p, ii)
        partial.seat((0,), 0, "rau")
        return Attempt(partial, partial, None)

    found = climb(p, 2, done).placement
    assert found is not None
    assert found.seated_by == {0: ("rau", "")}
    left_out = climb(problem(op("a", Use("s", 2)), without="rau"), 2, done).placement
    assert left_out is not None
    assert left_out.seated_by == {0: ("initial", "permute")}


def test_initial_goes_on_from_what_was_reached() -> None:
    ops = (op("a", Use("s", 2)), op("b", Use("s", 2)), op("c", Use("s", 4)))

    def gaps(p: Problem, ii: int) -> Attempt:
        """`a` and `b` so that `c` has no room."""
        partial = Partial(p, ii)
        partial.seat((0,), 0, "rau")
        partial.seat((1,), 3, "rau")
        return Attempt(None, partial, refusal_for(partial, 2, "rau"))

    stuck = climb(problem(*ops), 8, gaps)
    assert stuck.placement is None
    assert stuck.refusal is not None
    assert (stuck.refusal.op, stuck.refusal.limit) == ("c", "s")
    easy = climb(problem(*ops), 10, gaps).placement
    assert easy is not None
    assert easy.seated_by == {0: ("rau", ""), 1: ("rau", ""), 2: ("initial", "permute")}


def test_deepest_depth_is_for_limits_beyond_the_first_horizon() -> None:
    def ops(depth: int) -> tuple[Op, ...]:
        return op("b", Use("t", 2), max_depth=depth), op("a", Use("s", 2))

    first = (Dependence("b", "a", 1),)
    deep = climb(problem(*ops(2), stated=first), 2, nothing).placement
    assert deep is not None
    assert deep.seated_by == {0: ("deepest-depth", "retry"), 1: ("deepest-depth", "permute")}
    shallow = climb(problem(*ops(1)), 2, nothing).placement
    assert shallow is not None
    assert set(shallow.seated_by.values()) == {("initial", "permute")}
    for part in ("deepest-depth", "arm:retry"):
        refused = climb(problem(*ops(2), without=part), 2, nothing).refusal
        assert refused is not None
        assert refused.op == "b"
        assert "its limit is stage 2, search begins with 1" in refused.reason


def test_the_fuse_arm_makes_room() -> None:
    ops = tuple(op(f"r{i}", Use("shared", 4)) for i in range(3))
    found = climb(problem(*ops), 4, nothing).placement
    assert found is not None
    check(found)
    assert set(found.seated_by.values()) == {("initial", "fuse")}
    assert climb(problem(*ops, without="arm:fuse"), 4, nothing).placement is None


def tangled(without: str = "") -> Problem:
    """`x` may start at 0 or 1, `y` at 0 or 2 (`f` is in its way at 1); only 1 and 2 agree.

    Whoever goes first and takes its earliest start leaves the other none.
    """
    return problem(
        op("z"),
        op("f", Use("t", 1)),
        op("x", Use("s", 1, offset=2)),
        op("y", Use("s", 1), Use("s", 2, offset=2), Use("t", 1)),
        stated=(
            *(Dependence("z", name, at) for name, at in (("f", 1), ("x", 0), ("y", 0))),
            *(Dependence(name, "z", 12 - at, 1) for name, at in (("f", 1), ("x", 1), ("y", 2))),
        ),
        without=without,
    )


def test_the_cost_based_arm_takes_a_seat_that_is_not_the_earliest() -> None:
    found = climb(tangled(), 12, nothing).placement
    assert found is not None
    check(found)
    assert found.starts == [0, 1, 1, 2]
    assert found.seated_by[0] == ("initial", "permute")
    assert ("cost-based", "cost-based") in found.seated_by.values()
    assert climb(tangled("arm:cost-based"), 12, nothing).placement is None
    assert climb(tangled("cost-based"), 12, nothing).placement is None


def test_groups_are_reordered_into_a_common_stage() -> None:
    p = problem(
        op("first", Use("s", 2), gid=1),
        op("middle", latency=9),
        op("last", Use("t", 2), gid=1),
        op("block", Use("t", 6)),
        stated=(Dependence("middle", "last", 9),),
    )
    found = climb(p, 8, nothing).placement
    assert found is not None
    check(found)
    starts = found.whole()
    assert starts[0] // 8 == starts[2] // 8 == 1


def test_pending_operations_are_seated_last() -> None:
    p = problem(op("late", Use("s", 4), pending=True), op("a", Use("s", 2)), op("b", Use("s", 2)))
    found = climb(p, 8, nothing).placement
    assert found is not None
    assert list(found.seated_by)[-1] == 0
    blocking = problem(
        op("late", Use("s", 4), pending=True),
        op("a", Use("s", 2)),
        stated=(Dependence("late", "a", 1),),
    )
    assert climb(blocking, 8, nothing).placement is not None


# Refusals -----------------------------------------------------------------------------------


def test_rings_that_overflow_are_refused_with_the_bytes() -> None:
    fill = Op("fill", "k", uses=(Use("s", 4),), latency=4, writes=("ring",))
    read = Op("read", "k", uses=(), latency=7, reads=(Access("ring"),))
    loop = Loop(
        "l",
        (fill, read),
        storages=(Storage("ring", "smem", 60),),
        stated=(Dependence("fill", "read", 4),),
    )
    p = make_problem(loop, MACHINE, Options())
    refusal = climb(p, 4, nothing).refusal
    assert refusal is not None
    assert refusal.reason == "smem needs 180 bytes; the budget is 100"
    assert refusal.limit == "smem"
    found = climb(p, 11, nothing).placement
    assert found is not None
    check(found)


def test_a_refusal_tells_what_stood_in_the_way() -> None:
    p = problem(op("a", Use("s", 3), gid=1), op("b", Use("s", 2), gid=1))
    partial = Partial(p, 4)
    partial.seat((0,), 1, "test")
    refusal = refusal_for(partial, 1, "initial")
    assert (refusal.ii, refusal.rung, refusal.op) == (4, "initial", "b")
    assert refusal.reason == "`b` wants s at cycle 1 (start 0 + 1, II 4): held by `a` (1 of 1)"
    assert refusal.uses == (Use("s", 2),)
    assert refusal.window == (0, 3)
    assert refusal.limit == "s"
    assert refusal.rows == ((1, 1), (2, 1), (3, 1))
    assert (refusal.group, refusal.stage) == (("a", "b"), 0)


def test_a_refusal_tells_who_closed_the_window() -> None:
    p = problem(
        op("a"), op("b"), op("c"), stated=(Dependence("a", "b", 5), Dependence("b", "c", 4))
    )
    partial = Partial(p, 4)
    partial.seat((0,), 0, "test")
    partial.seat((2,), 8, "test")
    assert refusal_for(partial, 1, "rau").reason == (
        "`b` may start from 5 on and until 4, at no time both (`a` is ready at 5 (start 0 + "
        "latency 5, distance 0); `c` starts at 8 and waits 4 for it, distance 0; II 4)"
    )


def test_a_ladder_without_rungs_says_so() -> None:
    refusal = climb(problem(op("a"), without=" ".join(RUNGS)), 1, nothing).refusal
    assert refusal == Refusal(1, "no rung of the ladder was tried")


# Resuming -----------------------------------------------------------------------------------


def test_resumed_seats_move_by_whole_stages_or_are_given_up() -> None:
    p = problem(
        op("a", Use("s", 1)),
        op("b", Use("t", 1)),
        op("c", max_depth=0),
        stated=(Dependence("a", "b", 6), Dependence("b", "c", 1)),
    )
    partial = Partial(p, 4)
    partial.seat((0,), 3, "rau")
    partial.seat((1,), 1, "rau")
    partial.seat((2,), 2, "rau")
    assert resumed(p, partial).starts == [3, 9, None]


def test_a_thirty_op_loop_is_climbed_quickly() -> None:
    ops = [op(f"o{i}", Use("st"[i % 2], 60 + i), latency=100) for i in range(30)]
    stated = tuple(Dependence(f"o{i}", f"o{i + 6}", 100) for i in range(24))
    p = problem(*ops, stated=stated)
    begin = time.perf_counter()
    attempt = climb(p, sum(60 + i for i in range(0, 30, 2)) - 1, nothing)
    assert attempt.placement is None
    assert time.perf_counter() - begin < 1  # about 0.05; slow machines are slow


# Pending ------------------------------------------------------------------------------------


def test_pending_that_is_not_honoured_is_said_and_strictly_it_is_honoured() -> None:
    path = Path(__file__).parents[2] / "examples" / "gemm.json"
    (loop,) = stretto.read(path).loops
    first = replace(loop.ops[1], constraint=Constraint(pending=True))
    loop = replace(loop, ops=(loop.ops[0], first, *loop.ops[2:]))
    found = stretto.schedule(loop)
    assert any("`pending` of `load_a` is not honoured" in note.text for note in found.warnings)
    strict = stretto.schedule(loop, strict=True)
    assert strict.warnings == ()
    assert all(placed.arm for placed in strict.placements)
    assert not stretto.schedule(loop, generator="serial", strict=True).success
