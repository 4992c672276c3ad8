"""Loops: what values and storages imply, and what check() finds."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import Problem, problems
from stretto.loop import (
    Access,
    Constraint,
    Demand,
    Dependence,
    Facts,
    Loop,
    Op,
    Operand,
    Storage,
    TileType,
    Use,
    Value,
    check,
)
from stretto.machine import Machine, load_machine


def op(name: str, latency: int = 1, duration: int = 1, **more: object) -> Op:
    uses = (Use("s", duration),)
    return replace(Op(name, "test", uses=uses, latency=latency), **more)  # type: ignore[arg-type]


def edges(loop: Loop) -> set[tuple[str, str, int, int, str]]:
    return {(d.src, d.dst, d.latency, d.distance, d.kind) for d in loop.dependences}


# Derivation -------------------------------------------------------------------------------


def test_flow_at_any_distance_and_latency() -> None:
    loop = Loop(
        "l",
        (
            op("a", 7, results=("x",)),
            op("b", operands=(Operand("x"), Operand("x", 3), Operand("live"))),
            op("c", operands=(Operand("x", 0, 2),)),
        ),
        (Value("x"), Value("live")),
    )
    assert edges(loop) == {
        ("a", "b", 7, 0, "flow"),
        ("a", "b", 7, 3, "flow"),
        ("a", "c", 2, 0, "flow"),
    }


def test_a_ring_forbids_no_overlap() -> None:
    """load -> read -> load has no recurrence: the next load takes a fresh slot."""
    loop = Loop(
        "l",
        (op("load", 8, writes=("m",)), op("read", 7, reads=(Access("m"),))),
        storages=(Storage("m", "smem", 64),),
    )
    assert edges(loop) == {("load", "read", 8, 0, "memory")}


def test_a_capped_ring_is_an_anti_dependence_at_its_depth() -> None:
    loop = Loop(
        "l",
        (op("load", 8, 9, writes=("m",)), op("read", 7, reads=(Access("m"), Access("m", 1)))),
        storages=(Storage("m", "smem", 64, depth=3),),
    )
    assert edges(loop) == {
        ("load", "read", 8, 0, "memory"),
        ("load", "read", 8, 1, "memory"),
        ("read", "load", 7, 3, "anti"),
        ("read", "load", 7, 2, "anti"),  # it reads the instance of one iteration before
        ("load", "load", 9, 3, "output"),
    }


def test_a_fixed_storage_makes_the_next_writer_wait() -> None:
    loop = Loop(
        "l",
        (op("load", 8, 5, writes=("m",)), op("read", 3, 7, reads=(Access("m"),))),
        storages=(Storage("m", "tmem", 64, fixed=True),),
    )
    assert edges(loop) == {
        ("load", "read", 8, 0, "memory"),
        ("read", "load", 7, 1, "anti"),  # completion: latency 3, but it holds its slot 7 cycles
        ("load", "load", 8, 1, "output"),
    }


def test_an_in_place_updater_needs_nothing_on_itself() -> None:
    loop = Loop(
        "l",
        (op("mma", 16, 8, reads=(Access("acc"),), writes=("acc",)),),
        storages=(Storage("acc", "tmem", 262144, fixed=True),),
    )
    assert edges(loop) == set()
    assert check(loop, load_machine("b200-pipes", {}).with_slots(("s",))) == ()


def test_fixed_storage_orders_neighbouring_accesses() -> None:
    """Whatever else must hold follows from these: mma(i) before store(i + 1), say."""
    loop = Loop(
        "l",
        (
            op("read", 5, reads=(Access("acc"),)),
            op("store", 4, writes=("acc",)),
            op("mma", 9, reads=(Access("acc"),), writes=("acc",)),
        ),
        storages=(Storage("acc", "tmem", 64, fixed=True),),
    )
    assert edges(loop) == {
        ("read", "store", 5, 0, "anti"),
        ("store", "mma", 4, 0, "memory"),
        ("store", "mma", 4, 0, "output"),
        ("mma", "store", 9, 1, "output"),
        ("mma", "read", 9, 1, "memory"),
    }


def all_orders(loop: Loop) -> list[Dependence]:
    """Every order a storage imposes, pair by pair, straight from the definitions."""
    found: list[Dependence] = []
    for s in loop.storages:
        touch = [
            (k, o, {r.distance for r in o.reads if r.storage == s.name}, s.name in o.writes)
            for k, o in enumerate(loop.ops)
        ]
        touch = [t for t in touch if t[2] or t[3]]
        for i, a, a_reads, a_writes in touch:
            for j, b, b_reads, b_writes in touch:
                now = (0 in a_reads or a_writes) and (0 in b_reads or b_writes)
                if now and i < j and a_writes and 0 in b_reads:
                    found.append(Dependence(a.name, b.name, a.ready))
                if now and i < j and b_writes:
                    found.append(Dependence(a.name, b.name, a.completion))
                if s.fixed and (a_writes or b_writes) and i >= j:
                    if i != j or not a_reads:
                        found.append(Dependence(a.name, b.name, a.completion, 1))
                elif a_writes:
                    found += [Dependence(a.name, b.name, a.ready, d) for d in b_reads if d]
                if s.depth is not None and b_writes:
                    back = a_reads | ({0} if a_writes else set[int]())
                    for d in back:
                        if s.depth - d > 0 or i != j:
                            found.append(Dependence(a.name, b.name, a.completion, s.depth - d))
    return found


@given(problems(), st.integers(1, 40))
def test_no_order_is_lost(problem: Problem, ii: int) -> None:
    """The derived dependences imply every order of the definitions, at any II that they allow."""
    bare = replace(
        problem.loop,
        ops=tuple(replace(o, operands=()) for o in problem.loop.ops),
        stated=(),
    )
    stated = all_orders(bare)
    at = dict.fromkeys(bare.index, 0)
    for _ in range(4 * len(bare.ops) + 4):
        for d in bare.dependences:
            at[d.dst] = max(at[d.dst], at[d.src] + d.latency - ii * d.distance)
    if any(at[d.dst] < at[d.src] + d.latency - ii * d.distance for d in bare.dependences):
        return  # the II is below the recurrence bound
    for d in stated:
        reached = dict.fromkeys(bare.index, -(10**9))
        reached[d.src] = 0
        for _ in range(4 * len(bare.ops) + 4):
            for e in bare.dependences:
                reached[e.dst] = max(reached[e.dst], reached[e.src] + e.latency - ii * e.distance)
        if d.src == d.dst:
            assert ii * d.distance >= d.latency
        else:
            assert reached[d.dst] >= d.latency - ii * d.distance, d


def test_inside_an_iteration_all_orders_hold() -> None:
    loop = Loop(
        "l",
        (
            op("w1", 2, writes=("m",)),
            op("r", 3, reads=(Access("m"),)),
            op("w2", 4, writes=("m",)),
        ),
        storages=(Storage("m", "smem", 64),),
    )
    assert edges(loop) == {
        ("w1", "r", 2, 0, "memory"),
        ("r", "w2", 3, 0, "anti"),
        ("w1", "w2", 2, 0, "output"),
    }


def test_a_flow_of_something_else_does_not_speak_for_the_storage() -> None:
    """A token, or a stated dependence, says nothing of when the buffer may be read."""
    loop = Loop(
        "l",
        (
            op("w", 100, results=("token",), writes=("m",)),
            op("r", 1, operands=(Operand("token", 0, 5),), reads=(Access("m"),)),
        ),
        (Value("token"),),
        (Storage("m", "smem", 64),),
        (Dependence("w", "r", 0),),
    )
    assert ("w", "r", 100, 0, "memory") in edges(loop)


def test_many_accessors_make_few_dependences() -> None:
    ops = tuple(
        op(f"o{i}", reads=(Access("m"),), writes=("m",) if i % 2 else ()) for i in range(400)
    )
    loop = Loop("l", ops, storages=(Storage("m", "tmem", 4, fixed=True),))
    assert len(loop.dependences) < 4 * len(ops)


def test_a_value_flow_says_when_to_read_and_completion_when_to_write() -> None:
    """Where the accumulator's value flows with a latency of its own, it says when to read it."""
    loop = Loop(
        "l",
        (
            op("first", 9, results=("x",), writes=("acc",)),
            op(
                "second", 9, operands=(Operand("x", 0, 4),), reads=(Access("acc"),), writes=("acc",)
            ),
        ),
        (Value("x", None, "acc"),),
        (Storage("acc", "tmem", 64),),
    )
    assert edges(loop) == {
        ("first", "second", 4, 0, "flow"),
        ("first", "second", 9, 0, "output"),
    }


def test_live_in_storages_imply_nothing() -> None:
    loop = Loop(
        "l",
        (op("a", reads=(Access("q"),)), op("b", reads=(Access("q"),))),
        storages=(Storage("q", "smem", 64),),
    )
    assert edges(loop) == set()


def test_groups_join_through_leaders() -> None:
    def member(name: str, gid: int | None, leader: int | None) -> Op:
        return op(name, constraint=Constraint(gid=gid, leader_gid=leader))

    loop = Loop(
        "l",
        (
            member("a", 1, None),
            member("b", 2, 1),
            member("c", 3, None),
            member("d", None, 2),
            member("e", None, None),
        ),
    )
    assert loop.groups == (("a", "b", "d"),)


@given(problems())
def test_loops_are_picklable_and_equal_after(problem: Problem) -> None:
    copy = pickle.loads(pickle.dumps(problem.loop))
    assert copy == problem.loop
    assert copy.dependences == problem.loop.dependences


# check() ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def machine() -> Machine:
    return load_machine("blackwell", {}).with_slots(("s",))


def codes(loop: Loop, machine: Machine) -> list[str]:
    return [fault.code for fault in check(loop, machine)]


GOOD = Loop(
    "good",
    (op("a", results=("x",)), op("b", operands=(Operand("x"),))),
    (Value("x"),),
)


def test_good_loop_has_no_fault(machine: Machine) -> None:
    assert check(GOOD, machine) == ()


def change(index: int, **more: object) -> Loop:
    ops = list(GOOD.ops)
    ops[index] = replace(ops[index], **more)  # type: ignore[arg-type]
    return replace(GOOD, ops=tuple(ops))


FAULTS: list[tuple[str, str, Loop]] = [
    ("empty-loop", "`good` has no operations", replace(GOOD, ops=())),
    ("duplicate-name", "`a` stands 2 times in ops", change(1, name="a")),
    ("dangling-operand", "`b` uses `y`, which no operation", change(1, operands=(Operand("y"),))),
    ("undeclared-result", "`b` defines `z`", change(1, results=("z",))),
    ("defined-twice", "`b` defines `x`, which `a` defines", change(1, results=("x",))),
    ("zero-distance-cycle", "a -> b -> a", replace(GOOD, stated=(Dependence("b", "a", 1),))),
    ("zero-distance-cycle", "a -> a", replace(GOOD, stated=(Dependence("a", "a", 0),))),
    (
        "unknown-slot",
        "`a` uses slot `warp`; blackwell has issue",
        change(0, uses=(Use("warp", 1),)),
    ),
    ("unknown-pool", "`a` draws on pool `l2`", change(0, demands=(Demand("l2", 1),))),
    (
        "over-capacity",
        "`a` takes 2 of slot `s`, which has capacity 1",
        change(0, uses=(Use("s", 1, 0, 2),)),
    ),
    (
        "over-capacity",
        "`a` alone takes 2 of slot `s` 2 cycles after its start",
        change(0, uses=(Use("s", 4), Use("s", 4, 2))),
    ),
    (
        "over-capacity",
        "draws 3 from `register_bank`, cap 2",
        change(0, demands=(Demand("register_bank", 3),)),
    ),
    ("negative-latency", "`a` has latency -3", change(0, latency=-3)),
    ("negative-latency", "operand `x` has latency -1", change(1, operands=(Operand("x", 0, -1),))),
    (
        "negative-latency",
        "dependence a -> b has latency -2",
        replace(GOOD, stated=(Dependence("a", "b", -2),)),
    ),
    ("negative-distance", "operand `x` has distance -1", change(1, operands=(Operand("x", -1),))),
    ("negative-duration", "use of `s` has duration -1", change(0, uses=(Use("s", -1),))),
    ("negative-offset", "use of `s` has offset -1", change(0, uses=(Use("s", 1, -1),))),
    ("negative-max_depth", "`a` has max_depth -1", change(0, constraint=Constraint(max_depth=-1))),
    ("unknown-op", "no operation `c`", replace(GOOD, stated=(Dependence("c", "a", 1),))),
    ("unknown-op", "nested in `c`, which is no operation", change(0, parent="c")),
    ("nesting", "`a` is nested in itself", change(0, parent="a")),
    ("unclassified", "`a` (test) has no uses", change(0, uses=None)),
    ("unclassified", "`a` (test) has no latency", change(0, latency=None)),
    ("unknown-storage", "`a` accesses `m`, which is no storage", change(0, writes=("m",))),
    (
        "unknown-storage",
        "lives in `m`, which is no storage",
        replace(GOOD, values=(Value("x", None, "m"),)),
    ),
    (
        "unknown-view",
        "value `x` is a view of `y`, which its maker does not read",
        replace(GOOD, values=(Value("x", None, None, "y"),)),
    ),
    ("storage-size", "`m` has 0 bytes", replace(GOOD, storages=(Storage("m", "smem", 0),))),
    ("ring-depth", "it is fixed", replace(GOOD, storages=(Storage("m", "smem", 4, True, 2),))),
    (
        "ring-depth",
        "asks for a ring of 0",
        replace(GOOD, storages=(Storage("m", "smem", 4, False, 0),)),
    ),
    (
        "over-budget",
        "smem holds 232,448 bytes; one copy of each storage takes 300,000 (m 300,000)",
        replace(GOOD, storages=(Storage("m", "smem", 300000),)),
    ),
    (
        "ceiling",
        "from far memory; blackwell puts the ceiling of one such dependence at 5000",
        change(0, kind="load", latency=5000),
    ),
    (
        "ceiling",
        "`a` is ready after 5000 cycles",
        change(0, latency=5000, facts=Facts(buffer="global")),
    ),
    (
        "ceiling",
        "`a` is ready for `b` after 5000 cycles",
        replace(change(0, kind="async.tiled_tma_load"), stated=(Dependence("a", "b", 5000),)),
    ),
]


@pytest.mark.parametrize(("code", "message", "loop"), FAULTS)
def test_check_names_the_fault(code: str, message: str, loop: Loop, machine: Machine) -> None:
    faults = check(loop, machine)
    assert code in [fault.code for fault in faults]
    told = [fault.message for fault in faults if fault.code == code]
    assert any(message in text for text in told), told


def test_check_returns_every_fault(machine: Machine) -> None:
    loop = replace(
        change(0, latency=-1, uses=(Use("warp", 1),)), stated=(Dependence("c", "a", -1),)
    )
    assert sorted(codes(loop, machine)) == [
        "negative-latency",
        "negative-latency",
        "unknown-op",
        "unknown-slot",
    ]


def test_traffic_across_the_cluster_has_the_higher_ceiling(machine: Machine) -> None:
    assert codes(change(0, latency=6000, facts=Facts(cluster=True)), machine) == []
    assert "ceiling" in codes(change(0, latency=7000, facts=Facts(cluster=True)), machine)
    assert (
        check(
            change(0, kind="load", latency=6000), load_machine("b200-pipes", {}).with_slots(("s",))
        )
        == ()
    )


def test_a_ceiling_is_about_one_far_dependence(machine: Machine) -> None:
    """Neither what is near has one, nor a path of several that each stay below it."""
    assert codes(change(0, latency=6000), machine) == []
    far = {"kind": "load", "latency": 4999}
    path = replace(GOOD, ops=tuple(replace(o, **far) for o in GOOD.ops))  # type: ignore[arg-type]
    assert codes(path, machine) == []
    carried = replace(change(0, kind="load"), stated=(Dependence("a", "b", 5000, 3),))
    assert codes(carried, machine) == ["ceiling"]
    order = replace(change(0, kind="load"), stated=(Dependence("a", "b", 9000, 0, "order"),))
    assert codes(order, machine) == []


def test_storage_accesses_are_checked(machine: Machine) -> None:
    fixed = Storage("m", "smem", 4, fixed=True)
    ring = Storage("m", "smem", 4, depth=1)
    read_back = (Access("m", 1),)
    loop = replace(change(1, reads=read_back), storages=(fixed,))
    assert codes(loop, machine) == ["fixed-distance"]
    writer_reads_back = replace(change(0, reads=read_back, writes=("m",)), storages=(ring,))
    assert codes(writer_reads_back, machine) == ["ring-depth"]
    early = replace(change(0, reads=(Access("m"),)), storages=(Storage("m", "smem", 4),))
    early = replace(early, ops=(early.ops[0], replace(early.ops[1], writes=("m",))))
    assert codes(early, machine) == ["read-before-write"]


def in_place(*ops: Op, bytes: int = 4, type: TileType | None = None) -> Loop:
    """Operations whose results, where they write `m`, live there."""
    home = {name: "m" if op.writes else None for op in ops for name in op.results}
    values = tuple(Value(name, type if there else None, there) for name, there in home.items())
    return Loop("l", ops, values, (Storage("m", "smem", bytes, fixed=True),))


def test_an_operand_that_its_fixed_storage_holds_no_more_is_refused(machine: Machine) -> None:
    update = op("w", results=("x",), operands=(Operand("x", 1),), writes=("m",))
    before, after, far = (op(f"r{d}", operands=(Operand("x", d),)) for d in (1, 0, 2))
    late = op("late", operands=(Operand("x", 1),))
    assert codes(in_place(update), machine) == []
    assert codes(in_place(before, update, after), machine) == []
    assert codes(in_place(update, late), machine) == ["overwritten"]
    assert codes(in_place(far, update), machine) == ["overwritten"]
    (fault,) = check(in_place(update, late), machine)
    assert fault.message == (
        "`late` uses `x` at distance 1, which lives in fixed storage `m`; "
        "by then `w` has overwritten it"
    )
    assert fault.place.path == "$.ops[1].operands[0]"


def test_others_overwrite_a_fixed_storage_too_where_they_fill_it(machine: Machine) -> None:
    first = op("first", results=("x",), writes=("m",))
    second = op("second", results=("y",), writes=("m",))
    stale = op("stale", operands=(Operand("x"),))
    fresh = op("fresh", operands=(Operand("y"),))
    assert codes(in_place(first, second, fresh), machine) == []
    assert codes(in_place(first, second, stale), machine) == ["overwritten"]
    carried = replace(stale, operands=(Operand("x", 1),))
    assert codes(in_place(carried, first), machine) == []
    assert codes(in_place(carried, first, second), machine) == ["overwritten"]
    half, whole = TileType((4,), "i8"), TileType((8,), "i8")
    assert codes(in_place(first, second, stale, bytes=8, type=half), machine) == []
    assert codes(in_place(first, second, stale, bytes=8, type=whole), machine) == ["overwritten"]


def test_views_of_what_was_overwritten_are_refused(machine: Machine) -> None:
    write = op("w", results=("x",), writes=("m",))
    view = Op("v", "test", (Operand("x", 1),), ("y",), uses=(), latency=0)
    read = op("r", operands=(Operand("y"),))
    loop = in_place(write, view, read)
    values = (*loop.values[:1], Value("y", None, "m", "x"))
    assert codes(replace(loop, values=values), machine) == ["overwritten"]


@given(st.randoms(use_true_random=False))
def test_an_operand_is_refused_where_sequential_execution_finds_another_value(
    rng: random.Random,
) -> None:
    """Execute, one operation after the other, and note who wrote last."""
    count = rng.randint(1, 5)
    writing = [rng.random() < 0.6 for _ in range(count)]
    ops = [
        op(
            f"o{i}",
            results=(f"v{i}",),
            writes=("m",) if writing[i] else (),
            operands=tuple(
                Operand(f"v{source}", rng.randint(0 if source < i else 1, 2))
                for source in rng.sample(range(count), rng.randint(0, min(2, count)))
            ),
        )
        for i in range(count)
    ]
    stale: set[tuple[int, int]] = set()
    last: tuple[int, int] | None = None
    for iteration in range(8):
        for i, one in enumerate(ops):
            for j, operand in enumerate(one.operands):
                source = int(operand.value[1:])
                named = (source, iteration - operand.distance)
                if writing[source] and named[1] >= 0 and named != last:
                    stale.add((i, j))
            if writing[i]:
                last = (i, iteration)
    faults = [fault for fault in check(in_place(*ops)) if fault.code == "overwritten"]
    assert {(f.place.op, f.place.field[1]) for f in faults} == stale


def test_lifted_budget_is_not_checked() -> None:
    lifted = load_machine("blackwell", {"TILE_AS_DEBUG_UNLIMITED_SMEM": "1"}).with_slots(("s",))
    assert check(replace(GOOD, storages=(Storage("m", "smem", 300000),)), lifted) == ()


# Tile types -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "elements", "size"),
    [
        ("128x64xf16", 8192, 16384),
        ("f32", 1, 4),
        ("3xi1", 3, 1),
        ("64xf4E2M1FN", 64, 32),
        ("4x4xbf16", 16, 32),
        ("token", 1, 0),
    ],
)
def test_tile_types(text: str, elements: int, size: int) -> None:
    tile = TileType.parse(text)
    assert (tile.elements, tile.bytes, str(tile)) == (elements, size, text)


@pytest.mark.parametrize(
    "text", ["", "x", "128", "128x", "0x4xf32", "128xf", "f0", "-1xf32", "4 xf32"]
)
def test_what_is_no_tile_type(text: str) -> None:
    with pytest.raises(ValueError, match="is not a tile type"):
        TileType.parse(text)
