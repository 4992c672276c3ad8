"""Members of a group that stand stages apart, from the loop to the report.

rescale_o   reads pv of the iteration before
pv          stage_offset 1: awaited in the step of the rescale_o that reads it
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import stretto
from stretto.limits import STAGES
from stretto.loop import Constraint, Dependence, Loop, Op, Operand, TileType, Use, Value, check
from stretto.loop.json import loop_to_json
from stretto.machine import Machine, Slot

MACHINE = Machine("m", "", (Slot(1, "tc", 1), Slot(2, "simt", 1)))
TILE = TileType((64, 64), "f32")


def attention(offset: int = 1) -> Loop:
    """A product whose sum is rescaled by the next iteration before it is added to."""
    return Loop(
        "attention",
        (
            Op("qk", "mma", results=("s",), uses=(Use("tc", 8),), latency=10),
            Op("exp", "exp", (Operand("s"),), ("p",), uses=(Use("simt", 12),), latency=12),
            Op(
                "rescale_o",
                "mul",
                (Operand("o", 1), Operand("p", 0, 4)),
                ("r",),
                uses=(Use("simt", 3),),
                latency=3,
                constraint=Constraint(gid=0),
            ),
            Op(
                "pv",
                "mma",
                (Operand("p"), Operand("r")),
                ("o",),
                uses=(Use("tc", 8),),
                latency=10,
                constraint=Constraint(gid=0, stage_offset=offset),
            ),
        ),
        tuple(Value(name, TILE) for name in "spro"),
    )


@pytest.mark.parametrize(
    ("generator", "offset"),
    [*product(["cost-based", "exact"], [0, 1, 2]), ("serial", 0), ("serial", 2)],
)
def test_every_generator_keeps_to_the_offset(generator: str, offset: int) -> None:
    made = attention(offset)
    if offset == 2:  # awaited in a later step than it is read in
        made = replace(made, ops=(*made.ops[:2], replace(made.ops[2], operands=()), made.ops[3]))
    found = stretto.schedule(made, MACHINE, generator)
    stage = {p.op: p.stage for p in found.placements}
    assert stage["pv"] == stage["rescale_o"] + offset


def test_serially_nothing_is_awaited_in_the_step_that_reads_it() -> None:
    """pv follows rescale_o in its iteration, so it would have to in every step."""
    found = stretto.schedule(attention(), MACHINE, "serial")
    assert not found.success
    assert "no stages keep to the offsets of groups" in found.refused[0].reason


@pytest.mark.parametrize("generator", ["cost-based", "exact"])
def test_an_offset_may_need_a_longer_ii_than_one_operation_after_the_other(generator: str) -> None:
    """`b` waits for the `a` of two iterations before, which stands two stages behind it: it stands
    6 cycles later in its stage than `a` in its own.
    """
    ops = (
        Op("a", "k", uses=(), latency=0, constraint=Constraint(gid=0, stage_offset=2)),
        Op("b", "k", uses=(Use("tc", 2),), latency=0, constraint=Constraint(gid=0)),
    )
    made = Loop("l", ops, stated=(Dependence("a", "b", 6, 2),))
    found = stretto.schedule(made, MACHINE, generator)
    assert found.ii == 7
    assert found.starts["a"] // 7 == found.starts["b"] // 7 + 2


def test_what_stands_against_an_ii_says_who_is_how_far_behind() -> None:
    """b must end before a's next turn and stands a stage behind a."""
    ops = (
        Op("a", "k", uses=(Use("tc", 4),), latency=4, constraint=Constraint(gid=0)),
        Op("b", "k", uses=(Use("tc", 4),), latency=4, constraint=Constraint(gid=0, stage_offset=1)),
    )
    made = Loop("l", ops, stated=(Dependence("b", "a", 9, 1),))
    best = stretto.schedule(made, MACHINE, prove=True)
    assert best.ii is not None
    told = stretto.explain(made, MACHINE, ii=best.ii - 1)
    assert "a, b share a stage, b 1 later" in "\n".join(told.view().to_text())
    (reason,) = (r for r in told.view().to_json()["reasons"] if r["kind"] == "group")
    assert (reason.get("ops"), reason.get("offsets")) == (["a", "b"], [0, 1])


def test_a_document_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(loop_to_json(attention())), encoding="utf-8")
    (read,) = stretto.read(path)
    assert read.op("pv").constraint.stage_offset == 1


@pytest.mark.parametrize(
    ("constraint", "told"),
    [
        (Constraint(stage_offset=2), "`a` has stage_offset 2, and no gid or leader_gid"),
        (Constraint(gid=0, stage_offset=-1), "`a` has stage_offset -1; it must be 0 or more"),
        (
            Constraint(gid=0, stage_offset=STAGES + 1),
            "`a` has stage_offset 1,001; at most 1,000 is allowed",
        ),
    ],
)
def test_an_offset_that_means_nothing_is_a_fault(constraint: Constraint, told: str) -> None:
    loop = Loop("l", (Op("a", "k", uses=(), latency=1, constraint=constraint),))
    assert any(told in fault.message for fault in check(loop, MACHINE))
