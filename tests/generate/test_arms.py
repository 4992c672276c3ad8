"""The arms: what each proposes, and that proposing changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import generated
from stretto.generate.problem import Options, Problem, make_problem
from stretto.generate.seating.arms import Bench, cost_based, cycles, fuse, permute, propose, retry
from stretto.generate.seating.cost import Scorer
from stretto.generate.seating.fusing import may_fuse
from stretto.generate.seating.gates import snapshot
from stretto.generate.seating.orders import orders
from stretto.generate.seating.partial import Partial
from stretto.loop import Constraint, Dependence, Facts, Loop, Op, Storage, Use
from stretto.lower_bounds import compute_bounds
from stretto.machine import Machine, Slot, load_machine

MACHINE = Machine("m", "", (Slot(1, "s", 1), Slot(2, "t", 1), Slot(3, "shared", 1, fusion_cap=3)))


def op(
    name: str, *uses: Use, constraint: Constraint | None = None, parent: str | None = None
) -> Op:
    facts = Facts(bank=0)
    constraint = constraint or Constraint()
    return Op(name, "k", uses=uses, latency=1, facts=facts, constraint=constraint, parent=parent)


def bench(ii: int, *ops: Op, stated: tuple[Dependence, ...] = ()) -> Bench:
    problem = make_problem(Loop("l", ops, stated=stated), MACHINE, Options())
    partial = Partial(problem, ii)
    made = Bench(partial, Scorer(problem, ii), snapshot(partial))
    made.ready.extend(range(problem.size))
    return made


# Orders -------------------------------------------------------------------------------------


def chain_problem(size: int, *arcs: tuple[int, int]) -> Problem:
    stated = tuple(Dependence(f"o{a}", f"o{b}", 1) for a, b in arcs)
    ops = tuple(op(f"o{i}") for i in range(size))
    return make_problem(Loop("l", ops, stated=stated), MACHINE, Options())


def test_three_of_six_orders_respect_load_before_read() -> None:
    load, write, read = 0, 1, 2
    found = list(orders(chain_problem(3, (load, read)), (load, write, read), 24))
    assert found == [(0, 1, 2), (0, 2, 1), (1, 0, 2)]


def test_orders_respect_paths_through_others() -> None:
    found = list(orders(chain_problem(3, (0, 1), (1, 2)), (2, 0), 24))
    assert found == [(0, 2)]


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11))))
def test_orders_are_legal_distinct_and_within_the_budget(
    size: int, pairs: list[tuple[int, int]]
) -> None:
    arcs = [(a % size, b % size) for a, b in pairs if a % size < b % size]
    problem = chain_problem(size, *arcs)
    found = list(orders(problem, range(size), 24, seed=3))
    assert found == list(orders(problem, range(size), 24, seed=3))
    assert found[0] == tuple(range(size))
    assert 1 <= len(found) == len(set(found)) <= 24
    for order in found:
        assert sorted(order) == list(range(size))
        assert all(order.index(a) < order.index(b) for a, b in arcs)


def test_a_thousand_ready_operations_are_sampled() -> None:
    assert len(list(orders(chain_problem(1000), range(1000), 4))) == 4


# Permute ------------------------------------------------------------------------------------


def test_permute_finds_the_order_in_which_all_fit() -> None:
    # `long` must take cycles 0 to 3; were `short` first, at 0, it could not.
    last = Dependence("long", "long2", 0)
    made = bench(
        6,
        op("short", Use("s", 2)),
        op("long", Use("s", 4), constraint=Constraint(max_depth=0)),
        op("long2", Use("t", 1)),
        stated=(last,),
    )
    made.snap.reach.high[1] = 0
    found = permute(made)
    assert found is not None
    assert (found.members, found.start) == ((1,), 0)
    assert made.partial.count == 0


def test_permute_rejects_when_no_order_seats_all() -> None:
    made = bench(6, op("a", Use("s", 4)), op("b", Use("s", 3)))
    assert permute(made) is None
    assert made.partial.count == 0


def test_without_work_left_permute_proposes_the_first_that_is_ready() -> None:
    made = bench(6, op("a", Use("s", 4)), op("b", Use("s", 3)))
    made.work.trials = 0
    found = permute(made)
    assert found is not None
    assert (found.members, found.start) == ((0,), 0)


# Fuse ---------------------------------------------------------------------------------------


def test_fuse_takes_as_many_as_the_cap_allows() -> None:
    made = bench(6, *(op(f"r{i}", Use("shared", 4)) for i in range(5)))
    assert permute(made) is None
    found = propose(made, ("permute", "fuse"))
    assert found is not None
    assert (found.arm, found.members, found.start) == ("fuse", (0, 1, 2), 0)


def test_fuse_needs_alike_operations_on_shared_slots() -> None:
    assert fuse(bench(6, op("a", Use("s", 2)), op("b", Use("s", 2)))) is None
    assert fuse(bench(6, op("a", Use("shared", 2)), op("b", Use("shared", 2), Use("t", 1)))) is None


def test_fused_operations_start_in_the_windows_of_all() -> None:
    made = bench(
        9,
        op("a", Use("shared", 2)),
        op("b", Use("shared", 3)),
        op("seated"),
        stated=(Dependence("seated", "b", 5),),
    )
    made.partial.seat((2,), 0, "test")
    made.ready.remove(2)
    found = fuse(made)
    assert found is not None
    assert (found.members, found.start) == ((0, 1), 5)


def test_what_may_not_fuse() -> None:
    uses = (Use("shared", 2),)
    path = bench(
        9,
        op("a", *uses),
        op("m"),
        op("b", *uses),
        stated=(
            Dependence("a", "m", 0),
            Dependence("m", "b", 0),
        ),
    )
    assert not may_fuse(path.partial, (0, 2))
    nested = bench(9, op("a", *uses), op("b", *uses, parent="a"))
    assert not may_fuse(nested.partial, (0, 1))
    carried = bench(9, op("a", *uses), op("b", *uses), stated=(Dependence("a", "b", 10, 1),))
    assert not may_fuse(carried.partial, (0, 1))
    crossed = bench(
        9,
        *(op(name, *uses) for name in "abcd"),
        stated=(Dependence("a", "c", 0), Dependence("d", "b", 0)),
    )
    assert may_fuse(crossed.partial, (0, 1))
    crossed.partial.seat((2, 3), 0, "test")
    assert not may_fuse(crossed.partial, (0, 1))


# Retry --------------------------------------------------------------------------------------


def test_retry_revives_the_first_dead_operation_that_has_a_seat() -> None:
    deep = Constraint(max_depth=2)
    made = bench(6, op("a", constraint=deep), op("b", Use("s", 2), constraint=deep), op("c"))
    assert made.snap.dead == {0, 1}
    assert retry(made) is None
    made.snap.horizon = 2
    found = retry(made)
    assert found is not None
    assert (found.arm, found.members) == ("retry", (0,))
    assert made.snap.dead == {1}
    assert made.partial.count == 0


def test_a_dead_operation_is_not_permuted() -> None:
    made = bench(6, op("a", constraint=Constraint(max_depth=2)), op("b"))
    found = permute(made)
    assert found is not None
    assert found.members == (1,)


def test_pending_operations_wait_for_what_retry_revives() -> None:
    made = bench(
        6,
        op("late", constraint=Constraint(pending=True)),
        op("deep", constraint=Constraint(max_depth=2)),
    )
    made.snap.horizon = 2
    found = propose(made, ("permute", "fuse", "retry"))
    assert found is not None
    assert (found.arm, found.members) == ("retry", (1,))


# Cost-based ---------------------------------------------------------------------------------


def tangled() -> Bench:
    """`x` may start at 0 or 1, `y` at 0 or 2; only 1 and 2 agree."""
    made = bench(
        12,
        op("x", Use("s", 1, offset=2)),
        op("y", Use("s", 1), Use("s", 2, offset=2), Use("t", 1)),
        op("f", Use("t", 1)),
    )
    made.partial.seat((2,), 1, "test")
    made.ready.remove(2)
    made.snap.reach.high[:2] = [1, 2]
    return made


def test_the_cost_based_arm_sees_what_a_seat_leaves_to_others() -> None:
    made = tangled()
    assert permute(made) is None
    before = list(made.partial.starts)
    found = cost_based(made)
    assert found is not None
    assert (found.members, found.start) in [((0,), 1), ((1,), 2)]
    assert made.partial.starts == before


def test_it_runs_only_when_the_others_reject() -> None:
    made = bench(6, op("a", Use("s", 2)))
    found = propose(made, ("permute", "fuse", "retry", "cost-based"))
    assert found is not None
    assert found.arm == "permute"
    alone = propose(made, ("cost-based",))
    assert alone is not None
    assert alone.arm == "cost-based"


def test_it_rejects_when_its_work_is_done() -> None:
    made = bench(6, op("a", Use("s", 2)))
    made.work.scores = 0
    assert cost_based(made) is None
    assert made.snap.dead == set()


def test_an_operation_without_a_seat_is_dead() -> None:
    made = bench(6, op("a", Use("s", 6)), op("b", Use("s", 1)))
    made.partial.seat((0,), 0, "test")
    made.ready.remove(0)
    assert cost_based(made) is None
    assert made.snap.dead == {1}


@pytest.mark.parametrize(("before", "seated"), [(0, 4), (1, 3)])
def test_bank_caps_veto(before: int, seated: int) -> None:
    """A fifth buffer of the iteration, or a fourth of the one before, finds no seat."""
    machine = load_machine("blackwell")
    names = [f"b{i}" for i in range(seated + 1)]
    ops = tuple(Op(name, "k", writes=(name,), uses=(), latency=4) for name in names)
    memory = tuple(Storage(name, "tmem", 8) for name in names)
    problem = make_problem(Loop("l", ops, (), memory), machine, Options())
    partial = Partial(problem, 4)
    for i in range(seated):
        partial.seat((i,), 4 * before, "test")
    made = Bench(partial, Scorer(problem, 4), snapshot(partial), [seated])
    made.snap.reach.low[seated] = made.snap.reach.high[seated] = 4 * before
    assert cost_based(made) is None
    found = propose(made, ("permute",))
    assert found is not None
    assert found.start == 4 * before
    made.veto = True
    assert propose(made, ("permute",)) is None
    made.scorer.caps = None
    assert propose(made, ("permute",)) is not None
    assert cost_based(made) is not None


@given(generated.problems(), st.integers(2, 8), st.integers(0, 3))
def test_cycles_are_legal_and_all_of_them_when_few(
    case: generated.Problem, most: int, extra: int
) -> None:
    ii = compute_bounds(case.loop, case.machine).mii + extra
    problem = make_problem(case.loop, case.machine, Options())
    partial = Partial(problem, ii)
    made = Bench(partial, Scorer(problem, ii), snapshot(partial))
    for i in range(problem.size):
        low, high = max(partial.window(i)[0], made.snap.reach.low[i]), partial.window(i)[1]
        high = min(high, made.snap.reach.high[i], low + ii - 1)
        legal = [t for t in range(low, high + 1) if partial.table.fits(problem.vectors[i], t)]
        found = cycles(made, i, most)
        assert found == sorted(set(found))
        assert set(found) <= set(legal)
        assert len(found) <= most
        assert found == legal if len(legal) <= most else found
        if found and low <= found[0]:
            partial.seat((i,), found[0], "test")
            made.snap.reach.seat(i, found[0])
