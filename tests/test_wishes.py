"""Soft constraints: kept to where they cost no cycle of the II, told of where they do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import stretto
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.ir import read_mlir, write_mlir
from stretto.loop import Constraint, Dependence, Loop, Op, Use
from stretto.loop.json import dump_loop
from stretto.machine import Machine, Slot
from stretto.solution import ScheduleAnalysis

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
