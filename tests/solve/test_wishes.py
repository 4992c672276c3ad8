"""Soft constraints: kept to where they cost no cycle of the II, told of where they do."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

import stretto
from brute_force import legal_schedules
from stretto.cli.main import main
from stretto.deadline import deadline_after
from stretto.errors import StrettoError
from stretto.generate.problem import Options
from stretto.ir import read_mlir, write_mlir
from stretto.loop import Constraint, Dependence, Loop, Op, Use, check
from stretto.loop.json import dump_loop
from stretto.machine import Machine, Slot
from stretto.solution import Schedule, ScheduleAnalysis
from stretto.solution.views import analyse
from stretto.solve.wishes import granted, wishes_of
from stretto.verification import verify
from tiny_loops import tiny_problem

MACHINE = Machine("m", "", (Slot(1, "u", 1), Slot(2, "v", 1)))


def op(name: str, slot: str, cycles: int, latency: int = 1, **wishes: int) -> Op:
    constraint = replace(Constraint(), **wishes)  # pyright: ignore[reportArgumentType]
    return Op(name, "k", uses=(Use(slot, cycles),), latency=latency, constraint=constraint)


def stages(found: ScheduleAnalysis) -> dict[str, int]:
    return {placed.op: placed.stage for placed in found.placements}


def bare(loop: Loop) -> Loop:
    return replace(loop, ops=tuple(replace(o, constraint=Constraint()) for o in loop.ops))


# c waits 5 for a; nobody waits for b, which as early as it can be stands in stage 0.
DEPTHS = Loop(
    "depths",
    (op("a", "u", 2), op("b", "u", 2, same_depth=1), op("c", "v", 4, same_depth=1)),
    stated=(Dependence("a", "c", 5),),
)


def test_same_depth_moves_who_may_move() -> None:
    free = stretto.schedule(bare(DEPTHS), MACHINE)
    assert stages(free)["b"] != stages(free)["c"]
    found = stretto.schedule(DEPTHS, MACHINE)
    assert found.ii == free.ii == 4
    assert stages(found)["b"] == stages(found)["c"]
    assert found.warnings == ()
    assert found.proof is not None
    assert found.proof.optimal


# At II 4 the chain a, c takes two stages; together they would take 9 cycles.
COSTLY = replace(
    DEPTHS,
    name="costly",
    ops=(op("a", "u", 2, same_depth=1), op("b", "u", 2), op("c", "v", 4, same_depth=1)),
)


def test_same_depth_that_costs_cycles_is_told_and_left() -> None:
    found = stretto.schedule(COSTLY, MACHINE)
    assert found.ii == 4
    (told,) = found.warnings
    assert told.text == "`same_depth` 1 is not kept to: `a` in stage 0, `c` in stage 1"
    with pytest.raises(StrettoError, match=r"`same_depth` 1 is not kept to.* \(strict\)"):
        stretto.schedule(COSTLY, MACHINE, strict=True)


def test_as_groups_they_would_cost_cycles() -> None:
    """What the wish leaves undone is what a group, which is a rule, asks for."""
    grouped = tuple(
        replace(o, constraint=Constraint(gid=o.constraint.same_depth)) for o in COSTLY.ops
    )
    found = stretto.schedule(replace(COSTLY, ops=grouped), MACHINE)
    assert found.ii is not None
    assert found.ii > 4


# c waits for b and nobody for a: left alone, b comes first.
ORDERS = Loop(
    "orders",
    (
        op("a", "u", 1, structural=7),
        op("b", "u", 1, structural=7),
        op("c", "v", 3),
    ),
    stated=(Dependence("b", "c", 4), Dependence("c", "b", 2, 2)),
)


def test_structural_keeps_program_order_where_it_costs_nothing() -> None:
    found = stretto.schedule(ORDERS, MACHINE)
    placed = {p.op: (p.stage, p.order) for p in found.placements}
    assert placed["a"] < placed["b"]
    free = stretto.schedule(bare(ORDERS), MACHINE)
    assert free.starts["b"] < free.starts["a"]
    assert found.ii == free.ii
    assert found.warnings == ()


# a waits for b of the same iteration: no order of the two has a first.
TURNED = Loop(
    "turned",
    (op("a", "u", 1, structural=7), op("b", "u", 1, structural=7)),
    stated=(Dependence("b", "a", 2),),
)


def test_structural_that_a_dependence_forbids_is_told() -> None:
    found = stretto.schedule(TURNED, MACHINE)
    (told,) = found.warnings
    assert told.text.startswith("`structural` 7 is not kept to: `b` at 0 is issued before `a` at ")


def test_one_impossible_same_depth_drops_no_other_wish() -> None:
    """What DEPTHS, COSTLY and ORDERS ask for, in one loop: of these only COSTLY's is impossible."""
    ops = (
        *(replace(o, name=f"d_{o.name}") for o in DEPTHS.ops),
        *(replace(o, name=f"c_{o.name}") for o in _numbered(COSTLY, 2)),
        *(replace(o, name=f"o_{o.name}") for o in ORDERS.ops),
    )
    ops = tuple(  # each part has slots of its own
        replace(o, uses=tuple(replace(use, slot=o.name[0] + use.slot) for use in o.uses or ()))
        for o in ops
    )
    stated = tuple(
        replace(d, src=f"{part}_{d.src}", dst=f"{part}_{d.dst}")
        for part, loop in (("d", DEPTHS), ("c", COSTLY), ("o", ORDERS))
        for d in loop.stated
    )
    slots = [a + b for a in "dco" for b in "uv"]
    machine = Machine("m", "", tuple(Slot(n, name, 1) for n, name in enumerate(slots, 1)))
    found = stretto.schedule(Loop("l", ops, stated=stated), machine)
    assert found.ii == 4
    assert [note.text for note in found.warnings] == [
        "`same_depth` 2 is not kept to: `c_a` in stage 0, `c_c` in stage 1"
    ]
    placed = {p.op: (p.stage, p.order) for p in found.placements}
    assert placed["d_b"][0] == placed["d_c"][0]
    assert placed["o_a"] < placed["o_b"]


def _numbered(loop: Loop, number: int) -> tuple[Op, ...]:
    return tuple(
        replace(o, constraint=replace(o.constraint, same_depth=number))
        if o.constraint.same_depth
        else o
        for o in loop.ops
    )


def test_families_count_in_their_order() -> None:
    """b cannot share a stage with c and be issued after a: depths come first."""
    ops = (
        op("a", "u", 1, structural=1),
        op("b", "v", 1, structural=1, same_depth=3),
        op("c", "v", 2, same_depth=3),
    )
    # b, c and a take turns: c after b, a a full stage after c.
    loop = Loop("l", ops, stated=(Dependence("b", "c", 1), Dependence("b", "a", 3)))
    found = stretto.schedule(loop, MACHINE)
    assert [note.text.split(" is")[0] for note in found.warnings] == ["`structural` 1"]


@pytest.mark.parametrize("seed", range(150))
def test_the_strongest_set_is_kept(seed: int) -> None:
    """Among all schedules of that II none keeps to a stronger set."""
    tiny, rng = tiny_problem(seed, 5), random.Random(f"wishes {seed}")
    ops = tuple(
        replace(
            o,
            constraint=replace(
                o.constraint,
                same_depth=rng.choice([None, 1, 2]),
                structural=rng.choice([None, 1, 1, 2]),
            ),
        )
        for o in rng.sample(tiny.loop.ops, len(tiny.loop.ops))  # or dependences keep to all
    )
    loop = replace(tiny.loop, ops=ops)
    wishes = list(wishes_of(loop))
    if check(loop, tiny.machine):
        return  # what is read has moved before what writes it
    found = stretto.schedule(loop, tiny.machine, fuse=False, generator="cost-based")
    if not wishes or not found.success or found.ii is None or found.ii > 12:
        return
    assert not verify(loop, tiny.machine, found)

    def strength(starts: Mapping[str, int]) -> tuple[list[int], list[bool]]:
        one = analyse(loop, tiny.machine, Schedule(found.ii or 0, dict(starts)))
        at = {p.op: (p.stage, p.order) for p in one.placements}
        kept = [
            len({at[name][0] for name in w.ops}) == 1
            if w.family == "same_depth"
            else at[w.ops[0]] <= at[w.ops[1]]
            for w in wishes
        ]
        families = [w.family for w in wishes]
        count = [
            sum(k for k, f in zip(kept, families, strict=True) if f == name)
            for name in ("same_depth", "structural")
        ]
        return count, kept

    best = max(
        (strength(s.starts) for s in islice(legal_schedules(loop, tiny.machine, found.ii), 20_000)),
        default=([0, 0], [False]),
    )
    assert strength(found.starts) >= best
    told = [note.text for note in found.warnings if "is not kept to" in note.text]
    assert len(told) == len(wishes) - sum(strength(found.starts)[0])


def test_what_the_limit_of_time_leaves_is_the_schedule_that_was_found() -> None:
    ready = stretto.prepare(DEPTHS, MACHINE)
    found = stretto.schedule(bare(DEPTHS), MACHINE)
    assert granted(ready, found, Options()).warnings == ()
    kept = granted(ready, found, Options(deadline=deadline_after(1e-9)))
    assert kept.ii == found.ii
    assert kept.overdue
    assert {note.text.split(" is")[0] for note in kept.warnings} >= {"`same_depth` 1"}


def test_serially_they_are_told_of() -> None:
    found = stretto.schedule(TURNED, MACHINE, generator="serial")
    assert "`structural` 7 is not kept to" in found.warnings[-1].text
    with pytest.raises(StrettoError, match="strict"):
        stretto.schedule(TURNED, MACHINE, generator="serial", strict=True)


def test_wishes_stand_beside_groups_and_limits() -> None:
    """b is tied to d by its group, to c by its wish: all three share a stage."""
    ops = (
        op("a", "u", 2),
        op("b", "u", 2, same_depth=1, gid=5),
        op("c", "v", 3, same_depth=1),
        op("d", "v", 1, gid=5, leader_gid=6),
    )
    loop = Loop("l", ops, stated=(Dependence("a", "c", 5),))
    found = stretto.schedule(loop, MACHINE)
    assert found.warnings == ()
    assert len({stages(found)[name] for name in "bcd"}) == 1


def test_wishes_stand_beside_pins() -> None:
    """b is pinned to where it stands without the wish, so that c, which waits, cannot join it."""
    pinned = replace(DEPTHS.ops[1], constraint=replace(DEPTHS.ops[1].constraint, stage=0))
    found = stretto.schedule(replace(DEPTHS, ops=(DEPTHS.ops[0], pinned, DEPTHS.ops[2])), MACHINE)
    assert stages(found)["b"] == 0
    assert "`same_depth` 1 is not kept to" in found.warnings[-1].text


def test_proofs_are_of_the_ii_alone_where_a_wish_moved_something() -> None:
    found = stretto.schedule(DEPTHS, MACHINE, prove=True)
    assert found.proof is not None
    assert found.proof.optimal
    assert stages(found)["b"] == stages(found)["c"]
    assert len(found.proof.objectives) <= 1


@pytest.mark.parametrize("loop", [DEPTHS, ORDERS, TURNED], ids=lambda loop: loop.name)
def test_wishes_survive_writing_and_reading(loop: Loop, tmp_path: Any) -> None:
    file = tmp_path / "l.json"
    file.write_text(dump_loop(loop))
    assert stretto.read(file)[0].ops == loop.ops
    ((again,), _) = read_mlir("l.mlir", write_mlir(loop), MACHINE)
    assert again.ops == loop.ops


def test_the_command_line_warns_and_refuses_where_strict(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file, machine = tmp_path / "l.json", tmp_path / "m.toml"
    file.write_text(dump_loop(COSTLY))
    machine.write_text('machine.name = "m"\nslots.u.capacity = 1\nslots.v.capacity = 1\n')
    assert main(["schedule", str(file), "--machine", str(machine)]) == 0
    assert "`same_depth` 1 is not kept to" in capsys.readouterr().out
    assert main(["schedule", str(file), "--machine", str(machine), "--strict"]) == 1
