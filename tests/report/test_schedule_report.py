"""Schedules for people: what stands where, in 100 columns; refusals as data and as text."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import given

import generated
import stretto
from documents import document, dump_document
from stretto import solve
from stretto.errors import DocumentError
from stretto.frontends.documents import read_source
from stretto.loop import (
    Access,
    Loop,
    LoopError,
    Note,
    Op,
    Operand,
    Place,
    Storage,
    TileType,
    Use,
    Value,
)
from stretto.machine import Budget, Machine, Slot
from stretto.report import page
from stretto.report.schedule import Report, tried
from stretto.solution import Bounds, Part, Proof, Refusal, Schedule, ScheduleAnalysis, Witness
from stretto.solution.json import (
    DERIVED,
    DERIVED_OF_OPS,
    DERIVED_OF_STORAGES,
    analysis_to_json,
    parse_schedules,
)
from stretto.solution.views import analyse

EXAMPLES = Path(__file__).parents[2] / "examples"
_TEXT = (resources.files("stretto.solution") / "schedule.schema.json").read_text("utf-8")
VALIDATOR: Any = jsonschema.Draft202012Validator(cast("dict[str, Any]", json.loads(_TEXT)))

MACHINE = Machine(
    "tiny",
    "two slots",
    (Slot(1, "copy", 1), Slot(2, "rd", 2, fusion_cap=5)),
    budgets=(Budget("smem", 1000), Budget("tmem", None), Budget("register", 2048, unit=512)),
    notes=("a budget is lifted",),
)
OPS = (
    Op("load", "load", (), ("v",), (), ("ring",), (Use("copy", 8),), latency=8),
    Op("read0", "read", (Operand("v"),), (), (Access("ring"),), uses=(Use("rd", 7),), latency=7),
    Op("read1", "read", (Operand("v"),), uses=(Use("rd", 6, 1, 2),), latency=7),
    Op("nop", "nop", results=("w",), uses=(), latency=0),
)
VALUES = (Value("v"), Value("w", TileType((128,), "f32")))
LOOP = Loop("gemm", OPS, VALUES, (Storage("ring", "smem", 64),))
BOUNDS = Bounds(
    Witness("slot", "copy", 8, 1, (Part(("load",), 8),), slot_id=1),
    Witness("none"),
    Witness("none"),
    Witness("none"),
)
LIFTED = tuple(Note(LOOP.at(), text) for text in MACHINE.notes)
STARTS = {"load": 0, "read0": 10, "read1": 10, "nop": 3}
FULL = Refusal(
    8,
    "`read0` finds no seat",
    through=9,
    proved=True,
    rung="rau",
    op="read0",
    uses=(Use("rd", 7, 1, 2),),
    window=(8, 15),
    rows=((0, 3), (1, 1 << 63)),
    limit="rd",
    group=("load", "read0"),
    stage=0,
    order=3,
)
SPARSE = Refusal(7, "no", stage=1, window=(-1, -2))


def made(ii: int = 9, fused: tuple[tuple[str, ...], ...] = (), **more: Any) -> ScheduleAnalysis:
    proof = Proof(ii == 8, 8, "bound" if ii == 8 else "none")
    usual: dict[str, Any] = {"bounds": BOUNDS, "proof": proof, "generator": "cost-based"}
    usual["warnings"] = LIFTED
    return analyse(LOOP, MACHINE, Schedule(ii, STARTS, fused), rule="by rule", **(usual | more))


def text(analysis: ScheduleAnalysis, verbose: bool = False) -> str:
    report = Report(analysis, LOOP, MACHINE, ("from the front end",), verbose)
    return "\n".join(report.to_text())


def failed(*refused: Refusal) -> ScheduleAnalysis:
    return ScheduleAnalysis(
        "gemm", "tiny", False, bounds=BOUNDS, generator="cost-based", rule="r", refused=refused
    )


# A schedule -------------------------------------------------------------------------------


def test_text() -> None:
    analysis = made(
        fused=(("read0", "read1"),),
        warnings=(*LIFTED, Note(Place("gemm"), "`pending` is not honoured")),
    )
    assert text(analysis) == (
        "gemm on tiny: II 9, 1 above the MII 8, limited by slot copy: not proved optimal\n"
        "  2 stages, pipeline depth 2; cost-based (by rule)\n"
        "  n iterations take 9 × n + 8 cycles\n"
        "  op     stage  cycle  start  slots held, cycles                  cycles 0 to 16\n"
        "  load       0      0      0  copy 8                              ████████\n"
        "  read0      1      1     10  rd 7; fused with read1                        ███████\n"
        "  read1      1      1     10  rd 6 × 2 from +1; fused with read0            ─██████\n"
        "  nop        0      3      3  none                                   ─\n"
        "  storage  space  bytes  ring  in all  lifetime, cycles\n"
        "  ring     smem      64   × 2     128  17\n"
        "  smem 128 of 1,000 bytes; register pressure 0 of 4 at cycle 0\n"
        "  to go faster:\n"
        "    II >= 8  `--prove` looks for a schedule below II 9, or proves there is none\n"
        "  note: a budget is lifted\n"
        "  note: `pending` is not honoured\n"
        "  note: from the front end"
    )


def test_optimal() -> None:
    assert text(made(8)).startswith("gemm on tiny: II 8 is the MII, limited by slot copy: optimal")
    proved = made(9, proof=Proof(True, 9, "solver"))
    assert "II 9: optimal, every smaller II is proved impossible (MII 8)" in text(proved)
    free = Bounds(*(Witness("none") for _ in range(4)))
    assert text(made(9, bounds=free)).startswith("gemm on tiny: II 9, 8 above the MII 1: not")
    assert text(made(9, bounds=None)).startswith("gemm on tiny: II 9\n")


def test_rungs_and_arms_when_verbose() -> None:
    analysis = made(seated_by={"load": ("rau", ""), "read0": ("initial", "permute")})
    assert "rau" not in text(analysis)
    lines = text(analysis, verbose=True).splitlines()
    assert lines[3].split()[:7] == ["op", "stage", "cycle", "start", "rung", "arm", "slots"]
    assert lines[5].split()[:6] == ["read0", "1", "1", "10", "initial", "permute"]


def test_spills_are_said() -> None:
    wide = replace(LOOP, values=(Value("v", TileType((128, 9), "f32")), VALUES[1]))
    analysis = analyse(wide, MACHINE, Schedule(9, STARTS))
    assert "14 registers too many, " in text(analysis)


def test_a_space_without_a_budget() -> None:
    loop = replace(LOOP, storages=(Storage("ring", "tmem", 2000),))
    assert "tmem 4,000 bytes, no limit" in text(analyse(loop, MACHINE, Schedule(9, STARTS)))


def test_long_names_are_cut_and_lines_fit() -> None:
    name = "a_very_long_name_" * 6
    ops = (replace(OPS[0], name=name), *OPS[1:])
    loop = replace(LOOP, ops=ops)
    starts = {name: 0, "read0": 10, "read1": 10, "nop": 3}
    analysis = analyse(loop, MACHINE, Schedule(9, starts), bounds=BOUNDS, rule="because " * 40)
    lines = Report(analysis, loop, MACHINE, ("many words " * 30,), True).to_text()
    assert max(map(len, lines)) <= 100
    assert any("a_very_long_name_a_very_long_name_a…" in line for line in lines)


@given(generated.problems(max_ops=8))
def test_every_report_fits(drawn: generated.Problem) -> None:
    analysis = stretto.schedule(drawn.loop, drawn.machine, "serial")
    for verbose in (False, True):
        report = Report(analysis, drawn.loop, drawn.machine, (), verbose)
        for columns in (60, 100, 200):
            with page(columns):
                assert max(map(len, report.to_text())) <= columns
        entry = {"schema": "stretto.schedule/1", "loops": [report.to_json()]}
        VALIDATOR.validate(entry)
        assert parse_schedules("s.json", json.dumps(entry)) == (analysis.analysis,)


def test_the_table_as_a_picture_says_what_the_table_says() -> None:
    """At one column a cycle a dot stands where nothing is held, a full block where all is."""
    found = stretto.schedule(stretto.read(EXAMPLES / "four_op.json")[0])
    lines = found.view().to_text()
    for slot in ("tma", "tp_smem_wr", "tp_smem_rd"):
        (line,) = [line for line in lines if line.split()[0] == slot]
        held = [dict(row.held).get(slot, 0) for row in found.table for _ in range(row.cycles)]
        assert line.split()[-1] == "".join("█" if amount else "·" for amount in held)
    assert "  tp_smem_wr *  100%  ██████████  ███████████████" in lines
    assert "  * sets the MII" in lines


def test_a_large_interval_is_compressed_and_nothing_held_is_lost() -> None:
    found = stretto.schedule(stretto.read(EXAMPLES / "attention_forward.mlir")[0])
    with page(60):
        lines = found.view().to_text()
    (line,) = [line for line in lines if line.split()[0] == "CUDA"]
    (head,) = [line for line in lines if line.split()[0] == "slot"]
    assert head.endswith("cycles 0 to 1,324, a column is 39")
    assert len(line) <= 60
    assert line.split()[1] == "91%"
    # A cycle is held wherever its column is no dot, for a column shows the least that is held.
    (sfu,) = [line.split()[-1] for line in lines if line.split()[0] == "SFU"]
    busy = [row for row in found.table if dict(row.held).get("SFU")]
    for row in busy:
        assert sfu[row.cycle * len(sfu) // 1325] != "·"
    assert all(f"{name} *" in "\n".join(lines) for name in ("load_o", "rescale_o", "store_o", "pv"))


def test_the_timeline_has_durations() -> None:
    loop = Loop("l", (Op("a", "k", uses=(Use("copy", 3, offset=2),), latency=9),))
    report = Report(analyse(loop, MACHINE, Schedule(9, {"a": 0})), loop, MACHINE)
    (line,) = [line for line in report.to_text() if line.startswith("  a ")]
    assert line.split()[-1] == "──███────"


# No schedule ------------------------------------------------------------------------------


def test_a_loop_that_was_not_prepared_holds_what_it_holds() -> None:
    """Not "none": what an operation holds is looked up where the loop does not say."""
    file = Path(__file__).parents[2] / "examples" / "gemm.json"
    (loop,) = read_source(str(file), file.read_text()).loops
    assert not loop.resolved
    ready = solve.prepare(loop)
    analysis = solve.schedule_prepared(ready)
    told, known = (Report(analysis, one, ready.machine) for one in (loop, ready.loop))
    assert told.to_text() == known.to_text()
    assert told.to_json() == known.to_json()
    assert any("TMA" in line for line in told.to_text())


def test_a_report_on_a_machine_that_does_not_know_an_operation() -> None:
    odd = replace(LOOP, ops=(replace(LOOP.ops[0], uses=None, kind="no.such"), *LOOP.ops[1:]))
    with pytest.raises(LoopError, match=r"no\.such"):
        Report(made(), odd, MACHINE).to_text()


def test_failure() -> None:
    analysis = failed(FULL, Refusal(10, "smem needs 2,000 bytes; the budget is 1,000"))
    assert text(analysis) == (
        "gemm on tiny: no schedule found up to II 10; the MII is 8, limited by slot copy\n"
        "  cost-based (r)\n"
        "  II 8 to 9  proved impossible: rau: `read0` finds no seat\n"
        "             footprint (rd, 1, 7); window 8 to 15; rows 0:0x3 1:0x8000000000000000; "
        "limit rd; group\n"
        "             load read0; stage 0; order 3\n"
        "  II 10      smem needs 2,000 bytes; the budget is 1,000\n"
        "  note: from the front end"
    )
    assert "no schedule exists up to II 9; the MII is 8" in text(failed(FULL))
    assert text(failed()).startswith("gemm on tiny: no schedule found; the MII is 8")


def test_a_failure_shows_the_last_few() -> None:
    many = [Refusal(ii, f"reason {ii}") for ii in range(8, 28)]
    shown = text(failed(*many))
    assert "  15 more before these (-v shows all)\n  II 23  reason 23\n" in shown
    assert "reason 22" not in shown
    assert "reason 8" in text(failed(*many), verbose=True)


def test_tried() -> None:
    assert tried(FULL) == "II 8 to 9: proved impossible: rau: `read0` finds no seat"
    assert tried(SPARSE) == "II 7: no"
    assert tried(9) == "II 9: a schedule"


# JSON -------------------------------------------------------------------------------------


def test_json() -> None:
    analysis = made()
    report = Report(analysis, LOOP, MACHINE, ("from the front end",))
    entry = analysis_to_json(analysis, LOOP, MACHINE)
    entry["warnings"] = ["a budget is lifted", "from the front end"]
    whole = report.to_json()
    # All that stands in it follows from the analysis, or is the analysis.
    assert whole.keys() - entry.keys() == set(DERIVED) - {"measured"}
    assert {**whole, "ops": entry["ops"], "storages": entry["storages"]} == {
        **entry,
        **{key: whole[key] for key in DERIVED if key in whole},
    }
    for name, more in (("ops", DERIVED_OF_OPS), ("storages", DERIVED_OF_STORAGES)):
        for row, plain in zip(whole[name], entry[name], strict=True):
            assert {key: row[key] for key in row if key not in more} == plain
            assert set(more) <= row.keys()
    VALIDATOR.validate({"schema": "stretto.schedule/1", "success": True, "loops": [whole]})
    told = Report(failed(FULL), LOOP, MACHINE).to_json()
    assert told["errors"] == [
        "gemm: no schedule exists up to II 9; the MII is 8, limited by slot copy"
    ]
    assert told["success"] is False


def test_refusals_round_trip() -> None:
    analysis = made(refused=(FULL, SPARSE))
    top = document([(analysis, LOOP, MACHINE)])
    VALIDATOR.validate(top)
    assert parse_schedules("s.json", dump_document(top)) == (analysis,)
    full, sparse = top["loops"][0]["refused"]
    keys = "ii reason through proved rung op uses window rows limit group stage order"
    assert " ".join(full) == keys
    assert sparse == {"ii": 7, "reason": "no", "window": [-1, -2], "stage": 1}


def entries() -> list[dict[str, Any]]:
    failing = Report(failed(FULL, SPARSE), LOOP, MACHINE).to_json()
    bare = {"name": "gemm", "success": False, "errors": ["gemm: not scheduled"]}
    return [failing, bare]


def _places(value: object, way: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    yield way
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _places(item, (*way, key))
    elif isinstance(value, list):
        for i, item in enumerate(cast("list[object]", value)):
            yield from _places(item, (*way, i))


PLACES = [
    (i, *way)
    for i, entry in enumerate(entries())
    for key in ("refused", "errors", "success")
    if key in entry
    for way in _places(entry[key], (key,))
]
WRONG: tuple[object, ...] = (None, True, False, -1, 1.5, "", "no word of ours", {}, [], [None])


@pytest.mark.parametrize("way", PLACES, ids=lambda way: ".".join(map(str, way)))
def test_schema_and_reader_agree_on_failures(way: tuple[str | int, ...]) -> None:
    edits: list[dict[str, Any]] = []
    for wrong in (*WRONG, "drop"):
        top = {"schema": "stretto.schedule/1", "loops": copy.deepcopy(entries())}
        at: Any = top["loops"]
        for step in way[:-1]:
            at = at[step]
        if wrong == "drop":
            del at[way[-1]]
        else:
            at[way[-1]] = wrong
        edits.append(top)
    taken = [_readable(top) for top in edits]
    assert taken == [bool(VALIDATOR.is_valid(top)) for top in edits]
    assert not all(taken)


def _readable(top: object) -> bool:
    try:
        parse_schedules("s.json", json.dumps(top))
    except DocumentError:
        return False
    return True


def test_errors_stand_beside_no_schedule() -> None:
    entry = Report(made(), LOOP, MACHINE).to_json() | {"errors": ["but why"]}
    top = {"schema": "stretto.schedule/1", "loops": [entry]}
    assert not VALIDATOR.is_valid(top)
    with pytest.raises(DocumentError, match=r"\$\.loops\[0\]\.errors: error: stands beside a"):
        parse_schedules("s.json", json.dumps(top))
