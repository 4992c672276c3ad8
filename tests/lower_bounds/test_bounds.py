"""The five bounds: equal to their definitions, true of every schedule, and well explained."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import brute_force
import naive_bounds
from generated import Problem, problems
from stretto.loop import Constraint, Demand, Dependence, Facts, Loop, Op, Use
from stretto.lower_bounds import compute_bounds
from stretto.lower_bounds.remedies import remedies
from stretto.machine import Machine, Pool, Slot
from stretto.problem import fusion_class
from stretto.solution import BOUND_NAMES, Bounds, Part, Witness

MAX_STAGES = st.sampled_from([None, None, 1, 2, 3])


def op(name: str, *uses: Use, latency: int = 0, bank: int | None = None, kind: str = "op") -> Op:
    return Op(name, kind, uses=uses, latency=latency, facts=Facts(bank=bank))


def machine(*slots: Slot, pools: tuple[Pool, ...] = ()) -> Machine:
    return Machine("m", "a machine of the test", slots, pools=pools)


# Against the definitions ----------------------------------------------------------------------


@given(problems(max_ops=6, max_duration=9), st.booleans(), MAX_STAGES)
def test_each_bound_is_its_naive_twin(problem: Problem, fuse: bool, max_stages: int | None) -> None:
    bounds = compute_bounds(problem.loop, problem.machine, fuse=fuse, max_stages=max_stages)
    assert bounds.resource.bound == naive_bounds.resource(problem.loop, problem.machine, fuse=fuse)
    assert bounds.recurrence.bound == naive_bounds.recurrence(problem.loop)
    assert bounds.fine.bound == naive_bounds.fine(problem.loop, problem.machine)
    assert bounds.dependence.bound == naive_bounds.dependence(problem.loop, max_stages)
    assert bounds.group.bound == naive_bounds.group(problem.loop)
    event(f"group: {bounds.group.kind}, limits: {bounds.limiter == 'group'}")


@st.composite
def recurrences(draw: st.DrawFn) -> Loop:
    """Dense cycles with distances up to 7 and latencies of any size."""
    n = draw(st.integers(1, 6))
    scale = draw(st.sampled_from([1, 1, 10**30]))
    names = [f"op{i}" for i in range(n)]
    stated: list[Dependence] = []
    for _ in range(draw(st.integers(0, 2 * n + 2))):
        i, j = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
        distance = draw(st.integers(0 if i < j else 1, 7))
        latency = draw(st.sampled_from([0, 1, 2, 3, 7, 100, 601])) * scale
        stated.append(Dependence(names[i], names[j], latency + draw(st.integers(0, 1)), distance))
    return Loop("rec", tuple(op(name) for name in names), stated=tuple(stated))


@given(recurrences())
def test_recurrences_of_any_size(loop: Loop) -> None:
    witness = compute_bounds(loop, machine()).recurrence
    assert witness.bound == naive_bounds.recurrence(loop)
    check_cycle(loop, witness)
    event(f"cycle of {len(witness.parts)}")


@given(recurrences())
def test_the_cycle_has_the_largest_ratio_exactly(loop: Loop) -> None:
    witness = compute_bounds(loop, machine()).recurrence
    for cycle in naive_bounds.simple_cycles(loop):
        latency, distance = sum(d.latency for d in cycle), sum(d.distance for d in cycle)
        if witness.kind == "none":
            assert latency == 0
        else:
            assert latency * witness.capacity <= witness.total * distance


# True of every schedule -----------------------------------------------------------------------


@given(problems(max_ops=4, max_duration=3), st.booleans(), MAX_STAGES)
def test_no_schedule_beats_a_bound(problem: Problem, fuse: bool, max_stages: int | None) -> None:
    loop, target = problem.loop, problem.machine
    bounds = compute_bounds(loop, target, fuse=fuse, max_stages=max_stages)
    limit = bounds.mii + 6
    best = brute_force.optimum(loop, target, fuse=fuse, limit=limit, max_stages=max_stages)
    event(f"{bounds.limiter}, met: {best == bounds.mii}")
    assert best is None or bounds.mii <= best


@st.composite
def reads(draw: st.DrawFn) -> Problem:
    """Reads that may fuse, of mixed lengths and occupancies, with now and then a reason not to."""
    capacity = draw(st.integers(1, 2))
    slots = [
        Slot(1, "rd", capacity, fusion_cap=draw(st.sampled_from([3, 3, 2, 1]))),
        Slot(2, "wide", capacity, fusion_cap=draw(st.sampled_from([2, 2, 1]))),
    ]
    shapes = [("rd",), ("rd",), ("rd", "wide"), ("wide", "rd"), ("rd", "rd")]
    ops: list[Op] = []
    for i in range(draw(st.integers(2, 4))):
        uses: list[Use] = []
        for slot in draw(st.sampled_from(shapes)):
            duration = draw(st.sampled_from([1, 2, 2, 3, 0]))
            occupancy = draw(st.integers(1, capacity))
            uses.append(Use(slot, duration, offset=3 * len(uses), occupancy=occupancy))
        bank, kind = draw(st.sampled_from([0, 0, 0, 1, None])), draw(st.sampled_from("aaab"))
        ops.append(op(f"op{i}", *uses, bank=bank, kind=kind))
    return Problem(Loop("reads", tuple(ops)), machine(*slots))


@given(reads())
def test_fusion_is_counted_as_defined(problem: Problem) -> None:
    loop, target = problem.loop, problem.machine
    witness = compute_bounds(loop, target).resource
    assert witness.bound == naive_bounds.resource(loop, target, fuse=True)
    check_slot(loop, target, witness, fuse=True)


@given(reads())
def test_no_fused_schedule_beats_the_resource_bound(problem: Problem) -> None:
    loop, target = problem.loop, problem.machine
    bounds = compute_bounds(loop, target)
    best = brute_force.optimum(loop, target, fuse=True)
    assert best is not None
    assert bounds.mii <= best
    alone = compute_bounds(loop, target, fuse=False).mii
    assert bounds.mii <= alone
    event(f"fusion helps: {bounds.mii < alone}, met: {bounds.mii == best}")


# Witnesses add up -----------------------------------------------------------------------------


def check_cycle(loop: Loop, witness: Witness) -> None:
    if witness.kind == "none":
        assert (witness.total, witness.capacity, witness.parts) == (1, 1, ())
        return
    assert witness.kind == "cycle"
    names = [name for part in witness.parts for name in part.ops]
    assert len(set(names)) == len(names) == len(witness.parts)
    known = {(d.src, d.dst, d.latency, d.distance) for d in loop.dependences}
    for part, src, dst in zip(witness.parts, names, names[1:] + names[:1], strict=True):
        assert (src, dst, part.amount, part.distance) in known
    assert sum(part.amount for part in witness.parts) == witness.total
    assert sum(part.distance for part in witness.parts) == witness.capacity


def check_group(loop: Loop, witness: Witness) -> None:
    if witness.kind == "none":
        return
    assert witness.kind == "group"
    known = {(d.src, d.dst, d.latency, d.distance) for d in loop.dependences}
    offset = {o.name: o.constraint.stage_offset for o in loop.ops}
    jumps = 0
    for part, after in zip(witness.parts, [*witness.parts[1:], witness.parts[0]], strict=True):
        src, dst = part.ops[0], after.ops[0]
        if len(part.ops) == 1:
            assert (src, dst, part.amount, part.distance) in known
            continue
        jumps += 1
        assert part.ops[1] == dst
        assert any({src, dst} <= set(names) for names in loop.groups)
        assert (part.amount, part.distance) == (1, 1 + offset[src] - offset[dst])
    assert jumps > 0
    assert witness.limit == witness.parts[0].ops[0]
    assert sum(part.amount for part in witness.parts) == witness.total
    assert sum(part.distance for part in witness.parts) == witness.capacity


def check_path(loop: Loop, witness: Witness, max_stages: int | None) -> None:
    if witness.kind == "none":
        return
    assert witness.kind == "depth"
    depth = loop.op(witness.limit).constraint.max_depth
    limits = [n for n in (max_stages, None if depth is None else depth + 1) if n is not None]
    assert witness.capacity == min(limits)
    names = [name for part in witness.parts for name in part.ops]
    assert names[-1] == witness.limit
    assert witness.parts[-1].amount == 0
    known = {(d.src, d.dst, d.latency) for d in loop.dependences if d.distance == 0}
    for part, src, dst in zip(witness.parts[:-1], names[:-1], names[1:], strict=True):
        assert (src, dst, part.amount) in known
    assert sum(part.amount for part in witness.parts) + 1 == witness.total


def check_slot(loop: Loop, target: Machine, witness: Witness, *, fuse: bool) -> None:
    if witness.kind == "none":
        return
    assert witness.kind == "slot"
    slot = target.slot(witness.limit)
    assert (witness.slot_id, witness.capacity) == (slot.id, slot.capacity)
    assert sum(part.amount for part in witness.parts) == witness.total
    named = [name for part in witness.parts for name in part.ops]
    cells = {
        o.name: sum(u.occupancy * u.duration for u in o.vector.uses if u.slot == slot.name)
        for o in loop.ops
    }
    assert sorted(named) == sorted(name for name, amount in cells.items() if amount)
    firsts = [loop.index[part.ops[0]] for part in witness.parts]
    assert firsts == sorted(firsts)
    for part in witness.parts:
        assert part.amount == max(cells[name] for name in part.ops)
        if len(part.ops) > 1:
            assert fuse
            assert len(part.ops) <= slot.fusion_cap
            classes = {fusion_class(loop.op(name), target) for name in part.ops}
            assert len(classes) == 1
            assert None not in classes


@given(problems(max_ops=6, max_duration=9), st.booleans(), MAX_STAGES)
def test_witnesses_add_up(problem: Problem, fuse: bool, max_stages: int | None) -> None:
    loop, target = problem.loop, problem.machine
    bounds = compute_bounds(loop, target, fuse=fuse, max_stages=max_stages)
    check_slot(loop, target, bounds.resource, fuse=fuse)
    check_cycle(loop, bounds.recurrence)
    check_path(loop, bounds.dependence, max_stages)
    check_group(loop, bounds.group)
    fine = bounds.fine
    if fine.kind != "none":
        assert fine.capacity == target.pool(fine.limit).cap
        assert sum(part.amount for part in fine.parts) == fine.total
        for part in fine.parts:
            drawn = loop.op(part.ops[0])
            units = sum(d.units for d in drawn.demands if d.pool == fine.limit)
            assert part.amount == units * drawn.vector.duration


@given(problems(), st.booleans())
def test_bounds_are_the_same_every_time(problem: Problem, fuse: bool) -> None:
    again = replace(problem.loop)
    first = compute_bounds(problem.loop, problem.machine, fuse=fuse)
    assert first == compute_bounds(again, problem.machine, fuse=fuse)


# Worked examples ------------------------------------------------------------------------------


def four_op() -> tuple[Loop, Machine]:
    """The four-op body: the TMA load and the write share the shared-memory write transport."""
    target = machine(
        Slot(9, "tma", 1),
        Slot(5, "tc_and_mma", 1),
        Slot(15, "tp_smem_rd", 1, fusion_cap=5),
        Slot(16, "tp_smem_wr", 1),
        Slot(18, "tp_mma", 1),
    )
    ops = (
        op("load", Use("tma", 8), Use("tp_smem_wr", 8), latency=8),
        op("write", Use("tp_smem_wr", 7), latency=7),
        op("mma", Use("tc_and_mma", 8), Use("tp_mma", 8), latency=16),
        op("read", Use("tp_smem_rd", 7), latency=7),
    )
    return Loop("four_op", ops, stated=(Dependence("load", "read", 8),)), target


def test_the_four_op_body_needs_fifteen_cycles() -> None:
    loop, target = four_op()
    bounds = compute_bounds(loop, target)
    parts = (Part(("load",), 8), Part(("write",), 7))
    assert bounds.resource == Witness("slot", "tp_smem_wr", 15, 1, parts, slot_id=16)
    assert (bounds.mii, bounds.limiter) == (15, "resource")
    others = {name: bounds[name] for name in BOUND_NAMES if name != "resource"}
    assert set(others.values()) == {Witness("none")}
    assert brute_force.optimum(loop, target) == 15


@pytest.mark.parametrize("ids", [(7, 3), (3, 7)])
def test_equal_slots_are_told_apart_by_id(ids: tuple[int, int]) -> None:
    target = machine(Slot(ids[0], "first", 1), Slot(ids[1], "second", 1))
    loop = Loop("tie", (op("a", Use("first", 4)), op("b", Use("second", 4))))
    assert compute_bounds(loop, target).resource.slot_id == 3


def test_unlimited_slots_and_empty_loops_limit_nothing() -> None:
    target = machine(Slot(1, "free", None), pools=(Pool("p", 1),))
    free = Op("a", "op", uses=(Use("free", 900),), demands=(Demand("p", 0),), latency=3)
    bounds = compute_bounds(Loop("free", (free,)), target)
    assert bounds == Bounds(*[Witness("none")] * 5)
    assert bounds.mii == 1


def test_slots_the_loop_brings_along_count() -> None:
    loop = Loop("own", (op("a", Use("inner", 5)), op("b", Use("inner", 6))), slots=("inner",))
    witness = compute_bounds(loop, machine(Slot(4, "s", 1))).resource
    assert (witness.limit, witness.slot_id, witness.bound) == ("inner", 5, 11)


def test_fused_reads_count_once_for_the_longest() -> None:
    target = machine(Slot(1, "rd", 1, fusion_cap=2))
    lengths = {"a": 3, "b": 9, "c": 4, "d": 8, "e": 2}
    ops = tuple(op(name, Use("rd", cycles), bank=0) for name, cycles in lengths.items())
    loop = Loop("reads", (*ops, op("other", Use("rd", 5), bank=1), op("none", Use("rd", 1))))
    witness = compute_bounds(loop, target).resource
    assert witness.parts == (
        Part(("a", "c"), 4),
        Part(("b", "d"), 9),
        Part(("e",), 2),
        Part(("other",), 5),
        Part(("none",), 1),
    )
    assert witness.total == 21
    assert compute_bounds(loop, target, fuse=False).resource.total == 32


@pytest.mark.parametrize(
    ("caps", "groups"),
    [((3, 3), [3]), ((3, 2), [2, 1]), ((3, 1), [1, 1, 1])],
)
def test_the_smallest_fusion_cap_of_the_slots_holds(
    caps: tuple[int, int], groups: list[int]
) -> None:
    target = machine(Slot(1, "rd", 1, fusion_cap=caps[0]), Slot(2, "wr", 1, fusion_cap=caps[1]))
    uses = Use("rd", 4), Use("wr", 4)
    ops = (op("a", *uses, bank=0), op("b", *reversed(uses), bank=0), op("c", *uses, bank=0))
    witness = compute_bounds(Loop("l", ops), target).resource
    assert [len(part.ops) for part in witness.parts] == groups
    assert witness.total == 4 * len(groups)


@pytest.mark.parametrize("latency", [1, 10**30])
def test_a_cycle_over_several_iterations_shares_its_latency(latency: int) -> None:
    links = Dependence("a", "b", 5 * latency, 1), Dependence("b", "a", 2 * latency, 2)
    loop = Loop("far", (op("a"), op("b")), stated=links)
    witness = compute_bounds(loop, machine()).recurrence
    parts = (Part(("a",), 5 * latency, 1), Part(("b",), 2 * latency, 2))
    assert witness == Witness("cycle", "", 7 * latency, 3, parts)
    assert witness.bound == -(-7 * latency // 3)


def test_a_cycle_without_latency_limits_nothing() -> None:
    loop = Loop("idle", (op("a"),), stated=(Dependence("a", "a", 0, 1),))
    assert compute_bounds(loop, machine()).recurrence == Witness("none")


def test_a_shallow_operation_at_the_end_of_a_path() -> None:
    last = Op("store", "op", uses=(), latency=0, constraint=Constraint(max_depth=1))
    links = Dependence("load", "mma", 556), Dependence("mma", "store", 16)
    loop = Loop("deep", (op("load"), op("mma"), last), stated=links)
    witness = compute_bounds(loop, machine()).dependence
    parts = (Part(("load",), 556), Part(("mma",), 16), Part(("store",), 0))
    assert witness == Witness("depth", "store", 573, 2, parts)
    assert witness.bound == 287
    assert compute_bounds(loop, machine(), max_stages=1).dependence.bound == 573
    assert compute_bounds(loop, machine(), max_stages=9).dependence.bound == 287


def grouped(*latencies: int, offset: int = 0, carried: int = 0) -> Loop:
    """A chain whose first and last operation are a group, the last `offset` stages behind."""
    names = [f"op{i}" for i in range(len(latencies) + 1)]
    chain = [
        Dependence(a, b, latency, carried if i == 0 else 0)
        for i, (a, b, latency) in enumerate(zip(names, names[1:], latencies, strict=False))
    ]
    ends = {
        names[0]: Constraint(gid=0),
        names[-1]: Constraint(leader_gid=0, gid=0, stage_offset=offset),
    }
    ops = tuple(replace(op(name), constraint=ends.get(name, Constraint())) for name in names)
    return Loop("grouped", ops, stated=tuple(chain))


@pytest.mark.parametrize(
    ("loop", "bound", "optimum"),
    [
        (grouped(7, 16), 24, 24),
        (grouped(7, 16, offset=1), 12, 12),
        (grouped(7, 16, carried=1), 12, 12),
        (grouped(7, 16, carried=2, offset=1), 6, 6),
        (grouped(0, 0), 1, 1),
    ],
)
def test_members_of_a_stage_are_less_than_an_ii_apart(loop: Loop, bound: int, optimum: int) -> None:
    witness = compute_bounds(loop, machine()).group
    check_group(loop, witness)
    assert witness.bound == naive_bounds.group(loop) == bound
    assert brute_force.optimum(loop, machine(), limit=30) == optimum


def test_a_group_that_no_ii_allows_has_no_bound() -> None:
    loop = grouped(7, 16)
    ahead = replace(loop.ops[0], constraint=Constraint(gid=0, stage_offset=1))
    loop = replace(loop, ops=(ahead, *loop.ops[1:]))
    assert compute_bounds(loop, machine()).group == Witness("none")
    assert brute_force.optimum(loop, machine(), limit=30) is None


def test_two_groups_that_hold_each_other_apart() -> None:
    links = Dependence("a", "c", 9), Dependence("d", "b", 5)
    groups = {"a": 0, "b": 0, "c": 1, "d": 1}
    ops = tuple(replace(op(name), constraint=Constraint(gid=gid)) for name, gid in groups.items())
    loop = Loop("two", ops, stated=links)
    witness = compute_bounds(loop, machine()).group
    parts = Part(("a",), 9), Part(("c", "d"), 1, 1), Part(("d",), 5), Part(("b", "a"), 1, 1)
    assert witness == Witness("group", "a", 16, 2, parts)
    # Stages are whole: c and d either stand in the stage of a and b, or d comes too late for b.
    assert brute_force.optimum(loop, machine(), limit=30) == 10


# Remedies -------------------------------------------------------------------------------------


def said(loop: Loop, target: Machine, max_stages: int | None = None) -> dict[str, int]:
    bounds = compute_bounds(loop, target, max_stages=max_stages)
    found = remedies(loop, target, bounds, fuse=True, max_stages=max_stages)
    return {remedy.text: remedy.mii for remedy in found}


def test_remedies_of_a_slot() -> None:
    assert said(*four_op()) == {
        "a second unit of tp_smem_wr (capacity 1 -> 2), on other hardware": 8,
        "`load` holds tp_smem_wr 7 cycles less (8 -> 1)": 8,
    }


def test_shortening_stops_where_the_next_bound_stands() -> None:
    target = machine(Slot(1, "s", 1), Slot(2, "t", 1))
    loop = Loop("l", (op("a", Use("s", 9)), op("b", Use("s", 4), Use("t", 11))))
    assert said(loop, target)["`a` holds s 2 cycles less (9 -> 7)"] == 11


def test_remedies_of_a_recurrence() -> None:
    links = Dependence("a", "b", 16), Dependence("b", "a", 4, 1), Dependence("b", "b", 9, 1)
    loop = Loop("l", (op("a"), op("b")), stated=links)
    assert said(loop, machine()) == {
        "11 cycles less latency of `a` -> `b` (16 -> 5)": 9,
        "`b` -> `a` carried over 2 more iterations (distance 1 -> 3)": 9,
    }


def test_the_better_of_two_carried_steps_is_named() -> None:
    links = (
        Dependence("a", "b", 9, 1),
        Dependence("b", "a", 9, 1),
        Dependence("a", "c", 0),
        Dependence("c", "b", 8, 1),
    )
    loop = Loop("l", (op("a"), op("b"), op("c")), stated=links)
    carried = [text for text in said(loop, machine()) if "carried" in text]
    # Going round by c stays as it is unless b -> a, which both cycles share, is carried farther.
    assert carried == ["`b` -> `a` carried over one more iteration (distance 1 -> 2)"]


def test_fused_reads_are_shortened_and_none_is_stretched() -> None:
    target = machine(Slot(1, "rd", 2, fusion_cap=2))
    long, wide = op("a", Use("rd", 9), bank=0), op("b", Use("rd", 1, occupancy=2), bank=0)
    text = "`a` and `b` together hold rd 7 cycles less (9 -> 2)"
    assert said(Loop("l", (long, wide)), target)[text] == 1


def test_remedies_of_a_pool_and_of_depth() -> None:
    target = machine(Slot(1, "s", None), pools=(Pool("p", 2),))
    draws = Op("a", "op", uses=(Use("s", 8),), demands=(Demand("p", 2),), latency=0)
    assert said(Loop("l", (draws,)), target) == {
        "one more unit of pool p (cap 2 -> 3), on other hardware": 6
    }
    last = Op("b", "op", uses=(), latency=0, constraint=Constraint(max_depth=0))
    loop = Loop("l", (op("a"), last), stated=(Dependence("a", "b", 9),))
    own = "one stage more: max_depth of `b` 0 -> 1"
    assert said(loop, target) == {own: 5}
    assert said(loop, target, 1) == {f"{own} and at most 2 stages instead of 1": 5}


def test_nothing_helps_when_two_bounds_are_equal() -> None:
    target = machine(Slot(1, "s", 1))
    loop = Loop("l", (op("a", Use("s", 9)),), stated=(Dependence("a", "a", 9, 1),))
    assert said(loop, target) == {}


@given(problems(max_ops=5), st.booleans(), MAX_STAGES)
def test_remedies_lower_the_mii(problem: Problem, fuse: bool, max_stages: int | None) -> None:
    bounds = compute_bounds(problem.loop, problem.machine, fuse=fuse, max_stages=max_stages)
    found = remedies(problem.loop, problem.machine, bounds, fuse=fuse, max_stages=max_stages)
    assert all(1 <= remedy.mii < bounds.mii for remedy in found)
    event(f"{bounds.witness.kind}: {len(found)}")
