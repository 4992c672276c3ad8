"""The seating loops: compiled and in Python the same, on hearts that lose nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import Problem as Generated
from generated import problems
from naive_bounds import paths
from naive_seats import Seats as Twin
from stretto.generate import kernel
from stretto.generate.kernel import COMPILED, DONE, FAILED, MORE, Core, Seats, core_of
from stretto.generate.kernel.sharing import shared_sets
from stretto.generate.problem import Options, Problem, make_problem
from stretto.loop import Constraint, Dependence, Facts, Loop, Op, Use
from stretto.lower_bounds import bounds_of
from stretto.machine import Machine, Slot
from stretto.problem.contract import contracted, idle
from stretto.solution import Schedule
from stretto.solution.views import analyse
from stretto.verification import verify
from tiny_loops import with_offsets


def source() -> type[Seats]:
    """The loops as Python runs them."""
    path = Path(kernel.__file__).parent / "seats.py"
    spec = spec_from_file_location("seats_in_python", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Seats


InPython = source()
ALIKE = {Seats: "compiled", InPython: "in Python"}
"""The seating loops, in both worlds."""


def problem_of(generated: Generated, *, fuse: bool = False) -> Problem:
    machine = generated.machine.with_slots(generated.loop.slots)
    return make_problem(generated.loop, machine, Options(fuse=fuse))


def test_it_is_compiled_where_a_compiler_is() -> None:
    """`make` installs Cython and builds; without this the tests below would skip unseen."""
    pytest.importorskip("Cython")
    from shutil import which  # noqa: PLC0415

    if which("cc") or which("gcc"):
        assert COMPILED


# Both alike ---------------------------------------------------------------------------------------


def plans(core: Core, rng: random.Random) -> list[tuple[str, tuple[object, ...]]]:
    priority = [rng.randrange(50) for _ in range(core.size)]
    return [
        ("pack", (priority, rng.random() < 0.4, rng.random() < 0.4, rng.randrange(60))),
        ("iterate", (priority, rng.randrange(20 * core.size + 1), False)),
        ("iterate", (priority, rng.randrange(20 * core.size + 1), True)),
        ("rau", (priority, rng.randrange(20 * core.size + 1))),
    ]


def alike(a: Seats, b: Twin, core: Core, ii: int, rng: random.Random) -> None:
    """Every plan on both, in uneven runs of steps: the same at every stop."""
    assert a.at(ii, core.segments(ii), core.floors(ii))
    assert b.at(ii, core.segments(ii), core.floors(ii))
    assert a.earliest() == b.earliest()
    assert a.heights() == b.heights()
    assert a.packable == b.packable
    for name, arguments in plans(core, rng):
        for seats in (a, b):
            getattr(seats, name)(*arguments)
        verdict = MORE
        while verdict == MORE:
            steps = rng.randrange(1, 40)
            verdict = a.run(steps)
            assert verdict == b.run(steps)
            assert a.starts() == b.starts()
        assert (a.failed, a.evictions, a.spent) == (b.failed, b.evictions, b.spent)
        if verdict == FAILED:
            continue
        if name == "pack":
            staged = a.staged()
            assert staged == b.staged()
            if not staged:
                continue
        a.compact(3)
        b.compact(3)
        assert a.starts() == b.starts()


@pytest.mark.parametrize("world", ALIKE, ids=ALIKE.get)
@given(generated=problems(), more=st.integers(0, 6), seed=st.integers(0, 1 << 30))
def test_the_loops_do_what_their_twin_does(
    world: type[Seats], generated: Generated, more: int, seed: int
) -> None:
    problem = problem_of(generated, fuse=True)
    ii = bounds_of(problem).mii + more
    for sets in ([], shared_sets(problem, ii)):
        core = core_of(problem, sets)
        twin = Twin(core)
        if not twin.at(ii, core.segments(ii), core.floors(ii)):
            assert not world(core).at(ii, core.segments(ii), core.floors(ii))
            continue
        alike(world(core), twin, core, ii, random.Random(seed))


@pytest.mark.parametrize("world", ALIKE, ids=ALIKE.get)
@pytest.mark.parametrize("seed", range(4))
def test_also_on_loops_with_groups_depths_and_pending(world: type[Seats], seed: int) -> None:
    loop, machine = crowd(seed)
    problem = make_problem(loop, machine, Options())
    core = core_of(problem)
    ii = bounds_of(problem).mii
    rng = random.Random(seed)
    for more in (0, 3, 11):
        segments, floors = core.segments(ii + more), core.floors(ii + more)
        if not Twin(core).at(ii + more, segments, floors):  # groups and dependences contradict
            assert not world(core).at(ii + more, segments, floors)
            core = core_of(problem, tie=False)
        alike(world(core), Twin(core), core, ii + more, rng)


def crowd(seed: int) -> tuple[Loop, Machine]:
    """Some 30 operations on three slots, with groups, last stages and one that comes last."""
    rng = random.Random(f"crowd {seed}")
    machine = Machine("m", "", (Slot(1, "a", 1), Slot(2, "b", 2), Slot(3, "c", 1)))
    ops = [
        Op(
            f"o{i}",
            "k",
            uses=tuple(
                Use(slot, rng.randint(1, 6), rng.choice([0, 0, 2]))
                for slot in rng.sample("abc", rng.randint(0, 2))
            ),
            latency=rng.randint(0, 7),
            constraint=Constraint(
                gid=rng.choice([None, None, None, 0, 1]),
                max_depth=rng.choice([None, None, None, None, 3]),
                pending=rng.random() < 0.05,
            ),
        )
        for i in range(30)
    ]
    ops = with_offsets(random.Random(f"offsets {seed}"), ops)
    stated = [
        Dependence(f"o{rng.randrange(i)}", f"o{i}", rng.randint(0, 6), 0, "order")
        for i in range(1, 30)
    ]
    stated += [
        Dependence(f"o{rng.randrange(30)}", f"o{rng.randrange(30)}", rng.randint(0, 9), 3, "order")
        for _ in range(6)
    ]
    return Loop("crowd", tuple(ops), stated=tuple(stated)), machine


# The heart ----------------------------------------------------------------------------------------


def light(seed: int, size: int = 24) -> tuple[Loop, Machine]:
    """A loop of which most operations hold nothing."""
    rng = random.Random(f"light {seed}")
    machine = Machine("m", "", (Slot(1, "a", 1),))
    ops = [
        Op(
            f"o{i}",
            "k",
            uses=(Use("a", rng.randint(1, 4)),) if rng.random() < 0.2 else (),
            latency=rng.randint(0, 5),
        )
        for i in range(size)
    ]
    stated = [
        Dependence(f"o{rng.randrange(i)}", f"o{i}", rng.randint(0, 5), 0, "order")
        for i in range(1, size)
        for _ in range(rng.randint(1, 2))
    ]
    stated += [
        Dependence(
            f"o{rng.randrange(size)}", f"o{rng.randrange(size)}", rng.randint(0, 9), 2, "order"
        )
        for _ in range(4)
    ]
    return Loop("light", tuple(ops), stated=tuple(stated)), machine


def ways(core: Core, ii: int) -> dict[tuple[int, int], int]:
    """Longest paths between all nodes of a heart, the plain way."""
    far: dict[tuple[int, int], int] = {}
    for node, steps in enumerate(core.succs):
        for other, latency, distance in steps:
            weight = latency - ii * distance
            far[node, other] = max(weight, far.get((node, other), weight))
    for k in range(core.size):
        for a in range(core.size):
            for b in range(core.size):
                if (a, k) in far and (k, b) in far:
                    through = far[a, k] + far[k, b]
                    far[a, b] = max(through, far.get((a, b), through))
    return far


@pytest.mark.parametrize("seed", range(8))
def test_folding_keeps_every_longest_path(seed: int) -> None:
    loop, machine = light(seed)
    problem = make_problem(loop, machine, Options())
    ii = bounds_of(problem).mii
    core = core_of(problem)
    assert core.size < problem.size
    table = paths(loop, ii)
    found = ways(core, ii)
    for a, (src,) in enumerate(core.nodes):
        for b, (dst,) in enumerate(core.nodes):
            if a != b:
                assert found.get((a, b)) == table.get((problem.names[src], problem.names[dst]))


@pytest.mark.parametrize("seed", range(8))
def test_what_was_folded_is_put_back_legally(seed: int) -> None:
    loop, machine = light(seed)
    problem = make_problem(loop, machine, Options())
    ii = bounds_of(problem).mii + 2
    core = core_of(problem)
    seats = Seats(core)
    assert seats.at(ii, core.segments(ii), core.floors(ii))
    seats.iterate(seats.heights(), 50 * core.size, True)
    assert seats.run(1 << 40) == DONE
    starts = core.expand(ii, whole(seats))
    schedule = Schedule(ii, problem.starts_by_name(starts))
    assert verify(loop, machine, analyse(loop, machine, schedule)) == ()


def whole(seats: Seats) -> Sequence[int]:
    return [start for start in seats.starts() if start is not None]


def test_what_has_a_rule_of_its_own_stays() -> None:
    machine = Machine("m", "", (Slot(1, "a", 1),))
    ops = (
        Op("free", "k", uses=(), latency=3),
        Op("deep", "k", uses=(), latency=3, constraint=Constraint(max_depth=1)),
        Op("last", "k", uses=(), latency=3, constraint=Constraint(pending=True)),
        Op("one", "k", uses=(), latency=3, constraint=Constraint(gid=0)),
        Op("two", "k", uses=(), latency=3, constraint=Constraint(gid=0)),
        Op("held", "k", uses=(Use("a", 2),), latency=3),
    )
    problem = make_problem(Loop("l", ops), machine, Options())
    assert [problem.names[i] for i in idle(problem)] == ["free"]
    assert idle(make_problem(Loop("l", ops), machine, Options(max_stages=2))) == []


def test_a_hub_stays_where_folding_it_would_tie_everybody_to_everybody() -> None:
    machine = Machine("m", "", (Slot(1, "a", 100),))
    held = (Use("a", 1),)
    ops = [Op(f"in{i}", "k", uses=held, latency=1) for i in range(20)]
    ops += [Op("hub", "k", uses=(), latency=1)]
    ops += [Op(f"out{i}", "k", uses=held, latency=1) for i in range(20)]
    stated = [Dependence(f"in{i}", "hub", 1, 0, "order") for i in range(20)]
    stated += [Dependence("hub", f"out{i}", 1, 0, "order") for i in range(20)]
    problem = make_problem(Loop("l", tuple(ops), stated=tuple(stated)), machine, Options())
    arcs = contracted(problem)
    arcs.fold(idle(problem))
    assert not arcs.gone


# Shared holds -------------------------------------------------------------------------------------


def test_sets_are_as_large_as_the_cap_and_keep_levels_apart() -> None:
    machine = Machine("m", "", (Slot(1, "r", 1, fusion_cap=3), Slot(2, "x", 1)))
    reads = [
        Op(f"r{i}", "read", uses=(Use("r", 4),), latency=4, facts=Facts(bank=0)) for i in range(7)
    ]
    chain = Dependence("r0", "r6", 4, 0, "order")
    problem = make_problem(Loop("l", tuple(reads), stated=(chain,)), machine, Options())
    sets = shared_sets(problem, 20)
    assert sorted(map(len, sets), reverse=True)[:2] == [3, 3]
    for members in sets:
        assert len(members) <= 3
        assert not {0, 6} <= set(members)
    core = core_of(problem, sets)
    assert core.size == 7 - sum(len(members) - 1 for members in sets)


def test_who_shares_a_hold_is_not_folded_away() -> None:
    """On a slot without a limit nothing is claimed, and the leader of a set may have no group."""
    machine = Machine("m", "", (Slot(1, "r", None, fusion_cap=3), Slot(2, "x", 1)))
    reads = [
        Op(
            f"r{i}",
            "read",
            uses=(Use("r", 4),),
            latency=4,
            facts=Facts(bank=0),
            constraint=Constraint(gid=0 if i else None),
        )
        for i in range(3)
    ]
    held = Op("held", "k", uses=(Use("x", 2),), latency=1)
    problem = make_problem(Loop("l", (*reads, held)), machine, Options())
    (members,) = shared_sets(problem, 20)
    core = core_of(problem, [members])
    assert {i for ops in core.nodes for i in ops} == {0, 1, 2, 3}


def test_who_waits_for_a_partner_by_way_of_what_holds_nothing_cannot_share_its_start() -> None:
    machine = Machine("m", "", (Slot(1, "r", 1, fusion_cap=2),))
    ops = (
        Op("r0", "read", uses=(Use("r", 2),), latency=1, facts=Facts(bank=0)),
        Op("r1", "read", uses=(Use("r", 2),), latency=1, facts=Facts(bank=0)),
        Op("view", "k", uses=(), latency=0),
    )
    stated = (
        Dependence("r0", "view", 0, 0, "order"),
        Dependence("view", "r1", 4, 1, "order"),
    )
    problem = make_problem(Loop("l", ops, stated=stated), machine, Options())
    core = core_of(problem, [(0, 1)])
    assert not core.turns(2)
    assert core.turns(4)
