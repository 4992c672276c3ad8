"""Accepted starts, applied to a reservation table; the table as it is published."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

import stretto
from generated import Problem, problems
from rich_loops import rich_problem
from stretto.diagnostics import MlirError
from stretto.ir import read_schedules, write_schedule
from stretto.loop import Demand, Facts, Loop, Op, Use
from stretto.machine import Machine, Pool, Slot, load_machine
from stretto.problem import Compiled, apply, compile_loop
from stretto.resources.table import ConflictError, ReservationTable
from stretto.solution import SCHEMA, TableRow
from stretto.solution.json import analysis_to_json, parse_schedules
from stretto.solve import job, prepare, schedule_prepared
from stretto.verification import verify

EXAMPLES = Path(__file__).parent.parent / "examples"
FOUR = Loop(
    "four_op",
    (
        Op("load", "async.tiled_tma_load"),
        Op("write", "async.smem_write"),
        Op("wgmma", "async.wgmma"),
        Op("read", "async.smem_read"),
    ),
)


def test_starts_are_applied_probe_before_commit() -> None:
    ready = prepare(FOUR, load_machine("blackwell", {}))
    built = compile_loop(ready.loop, ready.machine)
    table = apply(built, 15, [0, 8, 0, 8])
    assert table.row(0) == 0x8800 | 0x40400
    assert table.row(14) == 0x8000 | 0x4000
    with pytest.raises(ConflictError, match="tp_smem_wr"):
        apply(built, 14, [0, 8, None, None])
    # What was built is not spent: it can be applied again, at any II, in part.
    assert apply(built, 99, [None, None, None, 3]).placed == {"read": 3}


def test_fused_operations_hold_once_and_draw_each_as_long_as_it_lasts() -> None:
    machine = Machine("m", "", (Slot(1, "s", 1, fusion_cap=2),), (Pool("p", 3),))
    ops = tuple(
        Op(
            name,
            "r",
            uses=(Use("s", cycles),),
            demands=(Demand("p", 1),),
            latency=1,
            facts=Facts(0),
        )
        for name, cycles in (("a", 2), ("b", 3))
    )
    built = compile_loop(Loop("l", ops), machine)
    table = apply(built, 4, [1, 1], [[0, 1]])
    assert table.steps() == (
        TableRow(0, 1, 0),
        TableRow(1, 2, 1, (("s", 1),), (("p", 2),)),
        TableRow(3, 1, 1, (("s", 1),), (("p", 1),)),
    )
    with pytest.raises(ConflictError):
        apply(built, 4, [1, 1])


def test_a_fused_group_with_unlike_demands_is_scheduled_and_published() -> None:
    machine = Machine("m", "", (Slot(1, "s", 1, fusion_cap=2),), (Pool("p", 2),))
    ops = tuple(
        Op(
            name,
            "r",
            uses=(Use("s", n),),
            demands=(Demand("p", 1),),
            latency=1,
            facts=Facts(bank=0),
        )
        for name, n in (("a", 2), ("b", 6))
    )
    ready = prepare(Loop("l", ops), machine)
    found = schedule_prepared(ready)
    assert (found.ii, found.fused) == (6, (("a", "b"),))
    assert [row.drawn for row in found.table] == [(("p", 2),), (("p", 1),)]
    assert verify(ready.loop, ready.machine, found) == ()


# The published table --------------------------------------------------------------------------


@given(problems())
def test_rows_say_what_is_held_in_each_of_their_cycles(problem: Problem) -> None:
    """By the table itself, cycle by cycle: all of them, and no two neighbours alike."""
    found = schedule_prepared(prepare(problem.loop, problem.machine))
    if found.ii is None:
        return
    built = compile_loop(problem.loop, problem.machine)
    starts = [found.starts[name] for name in built.names]
    table = apply(built, found.ii, starts, [[built.index[n] for n in g] for g in found.fused])
    cycles = [cycle for row in found.table for cycle in range(row.cycle, row.cycle + row.cycles)]
    assert cycles == list(range(found.ii))
    for row in found.table:
        for cycle in range(row.cycle, row.cycle + row.cycles):
            slots = {s.name: table.occupancy(s.name, cycle) for s in built.machine.slots}
            pools = {p.name: table.pool_load(p.name, cycle) for p in built.machine.pools}
            assert dict(row.held) == {name: n for name, n in slots.items() if n}
            assert dict(row.drawn) == {name: n for name, n in pools.items() if n}
            assert row.word == table.row(cycle)
    for one, following in zip(found.table, found.table[1:], strict=False):
        assert (one.held, one.drawn) != (following.held, following.drawn)


@pytest.mark.parametrize("seed", range(30))
def test_published_tables_pass_a_count_in_absolute_time(seed: int) -> None:
    rich = rich_problem(seed)
    ready = prepare(rich.loop, rich.machine)
    found = schedule_prepared(ready)
    if found.ii is not None:
        assert found.table
        assert verify(ready.loop, ready.machine, found) == ()


def test_many_slots_have_no_row_words() -> None:
    slots = tuple(Slot(i + 1, f"s{i}", 1) for i in range(65))
    loop = Loop("l", (Op("a", "k", uses=(Use("s64", 2),), latency=1),))
    found = schedule_prepared(prepare(loop, Machine("wide", "", slots)))
    assert found.table == (TableRow(0, 2, None, (("s64", 1),)),)


@pytest.mark.parametrize("name", ["four_op", "attention_forward", "pool_bound"])
def test_tables_survive_documents_and_modules(name: str) -> None:
    (loop,) = stretto.read(EXAMPLES / f"{name}.json")
    ready = prepare(loop)
    found = schedule_prepared(ready)
    entry = analysis_to_json(found, ready.loop, ready.machine)
    (again,) = parse_schedules("s.json", json.dumps({"schema": SCHEMA, "loops": [entry]}))
    assert again.table == found.table != ()
    (published,) = read_schedules("k.mlir", write_schedule(loop, found))
    assert published.analysis is not None
    assert published.analysis.table == found.table


def test_words_are_hexadecimal_and_rows_as_json_has_them() -> None:
    (loop,) = stretto.read(EXAMPLES / "four_op.json")
    ready = prepare(loop)
    found = schedule_prepared(ready)
    rows = analysis_to_json(found, ready.loop, ready.machine)["table"]
    assert rows[0] == {
        "cycle": 0,
        "cycles": 8,
        "word": "0x48c00",
        "held": {"tc_and_mma": 1, "tma": 1, "tp_smem_wr": 1, "tp_mma": 1},
        "drawn": {},
    }


@pytest.mark.parametrize("word", ['"8800"', '"0x"', '"0xg"', '"0x11112222333344445"', "34816"])
def test_a_word_that_is_none_is_told_at_its_place(word: str) -> None:
    (loop,) = stretto.read(EXAMPLES / "four_op.json")
    text = write_schedule(loop, schedule_prepared(prepare(loop)))
    with pytest.raises(MlirError, match=r"error: `nv_tile\.aws\.table\[0\]\.word` is"):
        read_schedules("k.mlir", text.replace('"0x48c00"', word))


def test_a_table_is_made_and_verified_when_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ready = prepare(FOUR, load_machine("blackwell", {}))
    asked: list[int] = []

    def shifted(
        problem: Compiled, ii: int, starts: list[int], fused: list[list[int]]
    ) -> ReservationTable:
        asked.append(ii)
        return apply(problem, ii, [start + len(asked) - 1 for start in starts], fused)

    monkeypatch.setattr(job, "apply", shifted)
    right, wrong = schedule_prepared(ready), schedule_prepared(ready)
    assert not asked
    assert right.table == right.table[:] == pickle.loads(pickle.dumps(right)).table
    assert len(asked) == 1
    with pytest.raises(job.IllegalScheduleError, match="the reservation table says"):
        len(wrong.table)


def test_a_table_of_other_starts_is_refused() -> None:
    (loop,) = stretto.read(EXAMPLES / "four_op.json")
    ready = prepare(loop)
    found = schedule_prepared(ready)
    moved = tuple(replace(row, held=row.held[1:], word=None) for row in found.table)
    told = verify(ready.loop, ready.machine, replace(found, table=moved))
    assert {violation.rule for violation in told} == {"slot"}
