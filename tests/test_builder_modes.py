"""The constraint builder: build stages, apply commits, one record between them."""

from __future__ import annotations

import pytest
from hypothesis import given

from generated import Problem, problems
from stretto.loop import Loop, Op, Use
from stretto.machine import Machine, Slot, load_machine
from stretto.resources import ConflictError, encode_rows
from stretto.resources.blocks import apply, build
from stretto.solve import prepare

FOUR = Loop(
    "four_op",
    (
        Op("load", "async.tiled_tma_load"),
        Op("write", "async.smem_write"),
        Op("wgmma", "async.wgmma"),
        Op("read", "async.smem_read"),
    ),
)


def test_build_stages_and_apply_commits() -> None:
    ready = prepare(FOUR, load_machine("blackwell", {}))
    record = build(ready.loop, ready.machine)
    assert [staged.rows for staged in record.staged] == [
        (0x8800,) * 8,
        (0x8000,) * 7,
        (0x40400,) * 8,
        (0x4000,) * 7,
    ]
    table = apply(record, 15, {"load": 0, "write": 8, "wgmma": 0, "read": 8})
    assert table.row(0) == 0x8800 | 0x40400
    assert table.row(14) == 0x8000 | 0x4000
    with pytest.raises(ConflictError, match="tp_smem_wr"):
        apply(record, 14, {"load": 0, "write": 8})
    # The record is not spent: it can be applied again, at any II, in part.
    assert apply(record, 99, {"read": 3}).placed == {"read": 3}


@given(problems(fusion=False))
def test_staged_rows_are_the_encoded_vectors(problem: Problem) -> None:
    record = build(problem.loop, problem.machine)
    for op, staged in zip(problem.loop.ops, record.staged, strict=True):
        assert staged.vector == op.vector
        assert staged.rows == encode_rows(op.vector, problem.machine)
    assert record.summary.ops == len(problem.loop.ops)


def test_many_slots_have_no_row_words() -> None:
    slots = tuple(Slot(i + 1, f"s{i}", 1) for i in range(65))
    loop = Loop("l", (Op("a", "k", uses=(Use("s64", 2),), latency=1),))
    record = build(loop, Machine("wide", "", slots))
    assert record.staged[0].rows is None
    assert apply(record, 4, {"a": 1}).occupancy("s64", 2) == 1
