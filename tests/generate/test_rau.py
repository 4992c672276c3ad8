"""Seating by cycle: paths, recurrences, packing, rings, and what Rau refinement makes of them."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import stretto
from brute_force import legal_schedules
from generated import Problem as Generated
from generated import problems
from naive_bounds import paths
from naive_seats import Seats as Twin
from naive_seats import stretches
from stretto.generate.kernel import Seats, core_of
from stretto.generate.ladder.rau import never_fits, refine
from stretto.generate.ladder.rings import (
    bytes_needed,
    least_bytes,
    least_depths,
    overflow,
    ring_depth,
    tighten,
    with_caps,
)
from stretto.generate.problem import Options, Problem, make_problem
from stretto.generate.seating.partial import Partial
from stretto.loop import Access, Facts, Loop, Op, Operand, Storage, Use, Value
from stretto.lower_bounds import compute_bounds
from stretto.lower_bounds.distances import earliest_starts
from stretto.lower_bounds.recurrence import recurrence_bound
from stretto.machine import Budget, Machine, Slot
from stretto.problem import apply
from stretto.problem.paths import earliest, heights
from stretto.resources import has_row_words
from stretto.solution import Schedule
from stretto.solution.views import analyse, storage_uses
from stretto.verification import verify


def compiled(generated: Generated, *, fuse: bool = False) -> Problem:
    machine = generated.machine.with_slots(generated.loop.slots)
    return make_problem(generated.loop, machine, Options(fuse=fuse))


def mii(problem: Problem) -> int:
    return compute_bounds(problem.loop, problem.machine, fuse=False).mii


# Paths ------------------------------------------------------------------------------------


@given(problems(), st.integers(0, 9))
def test_earliest_starts_are_longest_paths(generated: Generated, more: int) -> None:
    problem = compiled(generated)
    ii = mii(problem) + more
    assert problem.starts_by_name(earliest(problem.between, ii)) == earliest_starts(
        problem.loop, ii
    )


@given(problems(), st.integers(0, 9))
def test_heights_reach_the_last_completion(generated: Generated, more: int) -> None:
    problem = compiled(generated)
    ii = mii(problem) + more
    table = paths(problem.loop, ii)
    for i, name in enumerate(problem.names):
        reached = [
            distance + problem.completion[j]
            for j, other in enumerate(problem.names)
            if (distance := table.get((name, other))) is not None
        ]
        assert heights(problem.between, problem.completion, ii)[i] == max(reached)


@given(problems(), st.integers(1, 12), st.data())
def test_stages_keep_cycles_and_meet_every_dependence(
    generated: Generated, ii: int, data: st.DataObject
) -> None:
    problem = compiled(generated)
    assume(ii >= mii(problem))
    core = core_of(problem, tie=False)
    cycles = [data.draw(st.integers(0, ii - 1)) for _ in core.nodes]
    seats = Seats(core)
    assert seats.at(ii, core.segments(ii), core.floors(ii))
    seats.put(cycles)
    if not seats.staged():
        # Only a recurrence can make cycles impossible.
        assert core.recurrences
        return
    starts = [start for start in seats.starts() if start is not None]
    assert [start % ii for start in starts] == cycles
    assert all(start >= 0 for start in starts)
    for src, steps in enumerate(core.succs):
        for dst, latency, distance in steps:
            assert starts[dst] >= starts[src] + latency - ii * distance


@given(problems(), st.integers(0, 9))
def test_recurrence_distances_are_the_closure(generated: Generated, more: int) -> None:
    problem = compiled(generated)
    ii = mii(problem) + more
    table = paths(problem.loop, ii)
    core = core_of(problem, tie=False)
    twin = Twin(core)
    assert twin.at(ii, core.segments(ii), core.floors(ii))
    for members, apart in zip(core.recurrences, twin.distances, strict=True):
        assert apart is not None
        for a, src in enumerate(members):
            for b, dst in enumerate(members):
                if a != b:
                    of = problem.names[core.nodes[src][0]], problem.names[core.nodes[dst][0]]
                    assert apart[a][b] == table.get(of)


@given(st.integers(1, 40), st.data())
def test_stretches_are_the_runs_of_free_cycles(ii: int, data: st.DataObject) -> None:
    legal = data.draw(st.integers(0, (1 << ii) - 1))
    free = [bool(legal >> t & 1) for t in range(ii)]
    expected: set[tuple[int, int]] = set()
    if all(free):
        expected = {(0, ii)}
    else:
        for t in range(ii):
            if free[t] and not free[t - 1]:
                length = next(k for k in range(1, ii + 1) if not free[(t + k) % ii])
                expected |= {(t, length), ((t + length - 1) % ii, length)}
    assert set(stretches(legal, ii, 10**6)) == expected


# Refinement -------------------------------------------------------------------------------


@given(problems(), st.integers(0, 6))
def test_what_refine_finds_is_legal(generated: Generated, more: int) -> None:
    problem = compiled(generated)
    ii = mii(problem) + more
    attempt = refine(problem, ii)
    if attempt.placement is None:
        refusal = attempt.stuck.worked_out() if attempt.stuck else attempt.refusal
        assert refusal is not None
        assert refusal.ii == ii
        assert refusal.reason
        return
    starts = problem.starts_by_name(attempt.placement.whole())
    analysis = analyse(problem.loop, problem.machine, Schedule(ii, starts))
    assert verify(problem.loop, problem.machine, analysis) == ()
    assert {rung for rung, _ in attempt.placement.seated_by.values()} == {"rau"}


@given(problems(max_ops=4, max_duration=3), st.integers(0, 3))
@settings(max_examples=40)
def test_refine_seldom_misses_on_tiny_loops(generated: Generated, more: int) -> None:
    """Without groups and depth limits, which it leaves to the arms, it finds what there is."""
    problem = compiled(generated)
    assume(not problem.members and not any(s is not None for s in problem.max_stage))
    assume(not problem.rotating)
    ii = mii(problem) + more
    exists = next(legal_schedules(problem.loop, problem.machine, ii), None) is not None
    assert (refine(problem, ii).placement is not None) == exists


def test_a_recurrence_without_slack_is_seated_first() -> None:
    """Five operations around a cycle leave one place for each; the rest goes in between."""
    machine = Machine("one", "", (Slot(1, "u", 1),))
    ring = [
        Op(
            f"r{i}",
            "k",
            (Operand(f"r{i - 1}"),) if i else (Operand("r4", 1),),
            (f"r{i}",),
            uses=(Use("u", 2),),
            latency=4,
        )
        for i in range(5)
    ]
    rest = [Op(f"x{i}", "k", results=(f"x{i}",), uses=(Use("u", 2),), latency=1) for i in range(5)]
    ops = (*ring, *rest)
    loop = Loop("l", ops, tuple(Value(op.name) for op in ops))
    problem = make_problem(loop, machine, Options())
    assert mii(problem) == 20
    placement = refine(problem, 20).placement
    assert placement is not None
    assert placement.complete


# Rings ------------------------------------------------------------------------------------


def two_tiles(budget: int) -> Problem:
    machine = Machine(
        "m", "", (Slot(1, "t", 1), Slot(2, "c", 1)), budgets=(Budget("smem", budget),)
    )
    loop = Loop(
        "l",
        (
            Op("la", "k", results=("a",), writes=("A",), uses=(Use("t", 3),), latency=8),
            Op("lb", "k", results=("b",), writes=("B",), uses=(Use("t", 3),), latency=8),
            Op(
                "mm",
                "k",
                (Operand("a"), Operand("b")),
                reads=(Access("A"), Access("B")),
                uses=(Use("c", 6),),
                latency=6,
            ),
        ),
        (Value("a", None, "A"), Value("b", None, "B")),
        (Storage("A", "smem", 10), Storage("B", "smem", 10)),
    )
    return make_problem(loop, machine, Options())


def test_overflowing_rings_are_capped() -> None:
    roomy = two_tiles(1000)
    placement = refine(roomy, 7).placement
    assert placement is not None
    free = bytes_needed(roomy, 7, placement.whole())["smem"]
    assert least_depths(roomy, 7) == [2, 2]
    # Both tiles at two copies would need both loads in the same three cycles of one unit.
    tight = two_tiles(50)
    held = refine(tight, 7).placement
    assert held is not None
    assert bytes_needed(tight, 7, held.whole())["smem"] == 50 <= free
    refused = refine(two_tiles(49), 7)
    assert refused.placement is None
    assert refused.refusal is not None
    assert "the budget is 49" in refused.refusal.reason
    assert refused.refusal.limit == "smem"


@given(problems(max_ops=4, max_duration=3), st.integers(0, 4))
@settings(max_examples=40)
def test_least_bytes_bind_every_schedule(generated: Generated, more: int) -> None:
    problem = compiled(generated)
    assume(problem.rotating)
    ii = mii(problem) + more
    least = least_depths(problem, ii)
    for count, found in enumerate(legal_schedules(problem.loop, problem.machine, ii)):
        starts = [found.starts[name] for name in problem.names]
        for room, depth in zip(problem.rotating, least, strict=True):
            assert ring_depth(problem, room, ii, starts) >= depth
        needed = bytes_needed(problem, ii, starts)
        assert all(needed[space] >= size for space, size in least_bytes(problem, ii).items())
        if count == 20:
            break


@given(problems(), st.integers(0, 6), st.data())
def test_caps_are_kept(generated: Generated, more: int, data: st.DataObject) -> None:
    problem = compiled(generated)
    assume(problem.rotating)
    ii = mii(problem) + more
    caps = [depth + data.draw(st.integers(0, 1)) for depth in least_depths(problem, ii)]
    variant = with_caps(problem, caps)
    assume(
        all(room.readers == () or max(d for _, d in room.readers) == 0 for room in problem.rotating)
    )
    assume(recurrence_bound(variant.graph).bound <= ii)
    placement = refine(variant, ii).placement
    assume(placement is not None)
    assert placement is not None
    for room, cap in zip(problem.rotating, caps, strict=True):
        if len(room.writers) + len(room.readers) > 1:
            assert ring_depth(problem, room, ii, placement.whole()) <= cap


# The smaller parts ------------------------------------------------------------------------


@given(problems(), st.integers(0, 6))
def test_ring_depths_and_bytes_agree_with_the_views(generated: Generated, more: int) -> None:
    problem = compiled(generated)
    ii = mii(problem) + more
    placement = refine(problem, ii).placement
    assume(placement is not None)
    assert placement is not None
    starts = placement.whole()
    uses = storage_uses(problem.loop, ii, problem.starts_by_name(starts))
    totals: dict[str, int] = {}
    for use in uses:
        totals[use.space] = totals.get(use.space, 0) + use.bytes * use.ring_depth
    assert bytes_needed(problem, ii, starts) == totals
    assert overflow(problem, ii, starts) == ""


@given(problems(), st.integers(0, 6))
def test_tightening_never_takes_more(generated: Generated, more: int) -> None:
    problem = compiled(generated)
    ii = mii(problem) + more
    placement = refine(problem, ii).placement
    assume(placement is not None)
    assert placement is not None
    before = sum(bytes_needed(problem, ii, placement.whole()).values())
    tighten(placement, "rau")
    assert sum(bytes_needed(problem, ii, placement.whole()).values()) <= before
    analysis = analyse(
        problem.loop, problem.machine, Schedule(ii, problem.starts_by_name(placement.whole()))
    )
    assert verify(problem.loop, problem.machine, analysis) == ()


@given(problems(), st.integers(0, 6))
def test_what_stands_beside_an_operation_is_what_the_table_has(
    generated: Generated, more: int
) -> None:
    problem = compiled(generated)
    ii = mii(problem) + more
    placement = refine(problem, ii).placement
    assume(placement is not None)
    assert placement is not None
    table = apply(problem, ii, placement.starts)
    for i, vector in enumerate(problem.vectors):
        beside = Partial.of(problem, ii, placement.starts, (), "rau").beside(i)
        assert beside.legal_starts(vector) == table.legal_starts(vector)
        if table.conflict(vector, 0) is not None:
            assert str(beside.conflict(vector, 0)) == str(table.conflict(vector, 0))
    if has_row_words(problem.machine):
        rows = tuple(
            Partial.of(problem, ii, placement.starts, (), "rau").row(cycle) for cycle in range(ii)
        )
        assert rows == table.rows()


def test_a_partial_copy_is_its_own() -> None:
    problem = two_tiles(100)
    partial = Partial(problem, 7)
    partial.seat((0,), 0, "rau")
    copy = partial.copy()
    copy.seat((1,), 3, "initial", "permute")
    assert partial.count == 1
    assert copy.count == 2
    assert copy.unseat(0) == (0,)
    assert partial.starts == [0, None, None]
    with pytest.raises(AssertionError):
        partial.whole()


def test_an_operation_that_meets_itself_is_refused_with_a_proof() -> None:
    """Two units of three for ten cycles: at II 7 it would take four in some cycle."""
    machine = Machine("m", "", (Slot(1, "u", 3),))
    loop = Loop("l", (Op("a", "k", uses=(Use("u", 10, occupancy=2),), latency=1),))
    problem = make_problem(loop, machine, Options())
    assert mii(problem) == 7
    refusal = never_fits(problem, 7)
    assert refusal is not None
    assert refusal.proved
    assert "it takes 4 of 3 by itself" in refusal.reason
    assert never_fits(problem, 10) is None
    analysis = stretto.schedule(loop, machine, "cost-based")
    assert analysis.ii == 10
    assert analysis.proof is not None
    assert (analysis.proof.optimal, analysis.proof.method) == (True, "conflict")
    again = stretto.schedule(loop, machine, "cost-based", without=["rau"])
    assert again.proof == analysis.proof


@pytest.mark.parametrize("count", [30, 60])
def test_many_alike_reads_fuse(count: int) -> None:
    """However many there are, permute does not keep fuse from saving holds."""
    loop = stretto.build("reads", machine="blackwell")
    for i in range(count):
        loop.op(f"r{i}", "async.smem_read", facts=Facts(bank=0))
    analysis = stretto.schedule(loop.finish())
    assert analysis.ii == 7 * (count // 5)
