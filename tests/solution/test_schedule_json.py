"""Schedule JSON: written and read back equal; schema and reader agree; faults have a path."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import resources
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import document, dump_document
from generated import Problem, problems
from stretto.errors import DocumentError
from stretto.loop import Access, Facts, Loop, Note, Op, Operand, Place, Storage, Use, Value
from stretto.machine import Budget, Machine, Slot
from stretto.solution import (
    Bounds,
    Objective,
    Part,
    Proof,
    Refusal,
    Schedule,
    ScheduleAnalysis,
    Witness,
)
from stretto.solution.json import (
    analysis_to_json,
    bounds_to_json,
    parse_schedules,
)
from stretto.solution.views import analyse
from stretto.verification import verify

_TEXT = (resources.files("stretto.solution") / "schedule.schema.json").read_text("utf-8")
SCHEMA = cast("dict[str, Any]", json.loads(_TEXT))
VALIDATOR: Any = jsonschema.Draft202012Validator(SCHEMA)

MACHINE = Machine(
    "tiny",
    "two slots",
    (Slot(1, "copy", 1), Slot(15, "rd", 1, fusion_cap=5)),
    budgets=(Budget("smem", 1000), Budget("tmem", None)),
    notes=("a note",),
)
LOOP = Loop(
    "gemm",
    (
        Op("load", "load", (), ("v",), (), ("ring",), (Use("copy", 8),), latency=8),
        Op(
            "read0",
            "read",
            (Operand("v"),),
            (),
            (Access("ring"),),
            uses=(Use("rd", 7),),
            latency=7,
            facts=Facts(bank=0),
        ),
        Op("read1", "read", (Operand("v"),), uses=(Use("rd", 6),), latency=7, facts=Facts(bank=0)),
        Op("nop", "nop", uses=(), latency=0),
    ),
    (Value("v"),),
    (Storage("ring", "smem", 64),),
)
BOUNDS = Bounds(
    Witness("slot", "copy", 8, 1, (Part(("load",), 8),), slot_id=1),
    Witness("cycle", "", 15, 2, (Part(("load",), 8, 0), Part(("read0", "read1"), 7, 2))),
    Witness("none"),
    Witness("depth", "read0", 9, 2, (Part(("load",), 8), Part(("read0",), 0))),
    Witness("group", "load", 9, 2, (Part(("load",), 8, 2), Part(("read0", "load"), 1, 0))),
)
PROOF = Proof(
    False, 8, "solver", (Objective("stages", 2, 1, False), Objective("bytes", 64, 64, True))
)
FULL = analyse(
    LOOP,
    MACHINE,
    Schedule(9, {"load": 0, "read0": 10, "read1": 10, "nop": 3}, (("read0", "read1"),)),
    seated_by={"load": ("initial", "permute"), "read0": ("retry", "fuse")},
    bounds=BOUNDS,
    proof=PROOF,
    generator="cost-based",
    rule="async",
    refused=(Refusal(8, "`read0` has no seat"),),
    warnings=(Note(Place("gemm"), "`pending` is not honoured"),),
    seconds=0.125,
)
FAILED = ScheduleAnalysis("gemm", "tiny", False, refused=(Refusal(8, "no"),), generator="exact")
LOOPS = {"gemm": LOOP}
DOCUMENT = document([(FULL, LOOP, MACHINE), (FAILED, LOOP, MACHINE)])


def valid(top: object) -> bool:
    return bool(VALIDATOR.is_valid(top))


def read(top: object) -> tuple[ScheduleAnalysis, ...]:
    return parse_schedules("s.json", json.dumps(top), LOOPS)


def readable(top: object) -> bool:
    try:
        read(top)
    except DocumentError:
        return False
    return True


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_round_trip() -> None:
    assert verify(LOOP, MACHINE, FULL) == ()
    VALIDATOR.validate(DOCUMENT)
    assert parse_schedules("s.json", dump_document(DOCUMENT)) == (FULL, FAILED)
    assert parse_schedules("s.json", dump_document(DOCUMENT), LOOPS) == (FULL, FAILED)


def test_what_stands_in_an_entry() -> None:
    entry = analysis_to_json(FULL, LOOP, MACHINE)
    assert " ".join(entry) == (
        "name machine generator rule success ii bounds stage_count pipeline_depth proof ops "
        "storages memory pressure spilled table refused warnings seconds"
    )
    assert entry["ops"][1] == {
        "name": "read0",
        "kind": "read",
        "start": 10,
        "stage": 1,
        "cycle": 1,
        "order": 0,
        "uses": [{"slot": "rd", "offset": 0, "duration": 7, "occupancy": 1}],
        "rung": "retry",
        "arm": "fuse",
        "fused_with": ["read1"],
    }
    assert entry["memory"] == {
        "smem": {"used": 128, "budget": 1000},
        "tmem": {"used": 0, "budget": None},
    }
    assert entry["storages"] == [
        {"name": "ring", "space": "smem", "bytes": 64, "lifetime": 17, "ring_depth": 2}
    ]


def test_bounds() -> None:
    entry = bounds_to_json(BOUNDS)
    figures = ("resource", "recurrence", "fine", "dependence", "mii", "limiter")
    assert [entry[name] for name in figures] == [8, 8, 1, 5, 8, "resource"]
    assert entry["witness"] == {
        "kind": "slot",
        "limit": "copy",
        "slot_id": 1,
        "total": 8,
        "capacity": 1,
        "bound": 8,
        "parts": [{"ops": ["load"], "amount": 8, "distance": 0}],
    }
    assert list(entry["witnesses"]) == ["resource", "recurrence", "fine", "dependence", "group"]
    assert "slot_id" not in entry["witnesses"]["recurrence"]


def test_a_document_may_say_why_there_is_nothing_in_it() -> None:
    failure: dict[str, Any] = {
        "schema": "stretto.schedule/1",
        "success": False,
        "loops": [],
        "error": "no such file",
    }
    VALIDATOR.validate(failure)
    assert read(failure) == ()


# By hand ----------------------------------------------------------------------------------

BY_HAND: dict[str, Any] = {
    "schema": "stretto.schedule/1",
    "loops": [
        {
            "name": "gemm",
            "ii": 14,
            "ops": [
                {"name": "nop", "start": 8},
                {"name": "read1", "start": 15},
                {"name": "load", "start": 0},
                {"name": "read0", "start": 8},
            ],
        }
    ],
}


def test_a_schedule_by_hand() -> None:
    VALIDATOR.validate(BY_HAND)
    (analysis,) = read(BY_HAND)
    places = [(p.op, p.start, p.stage, p.order) for p in analysis.placements]
    # `nop` waits for nothing, so it comes before `read0`, which starts in the same cycle.
    assert places == [("load", 0, 0, 0), ("read0", 8, 0, 2), ("read1", 15, 1, 0), ("nop", 8, 0, 1)]
    assert verify(LOOP, MACHINE, analysis) == ()


def test_a_schedule_by_hand_needs_its_loop() -> None:
    with pytest.raises(DocumentError, match=r"\$\.loops\[0\]\.ops\[0\]\.order: error: is missing"):
        parse_schedules("s.json", json.dumps(BY_HAND))
    unresolved = replace(LOOP, ops=(replace(LOOP.ops[0], uses=None), *LOOP.ops[1:]))
    with pytest.raises(DocumentError, match="`gemm` is not classified"):
        parse_schedules("s.json", json.dumps(BY_HAND), {"gemm": unresolved})


def test_a_schedule_of_other_operations_is_for_the_verifier() -> None:
    top = copy.deepcopy(BY_HAND)
    top["loops"][0]["ops"][0] = {"name": "ghost", "start": -2}
    (analysis,) = read(top)
    messages = [v.message for v in verify(LOOP, MACHINE, analysis)]
    assert messages[:3] == [
        "`nop` has no place",
        "`ghost` is placed, but loop `gemm` has no such operation",
        "`ghost` starts at -2; no start is below 0",
    ]


def test_what_is_stated_is_kept_and_the_rest_filled_in() -> None:
    top = copy.deepcopy(BY_HAND)
    top["loops"][0]["ops"][2] |= {"stage": 3, "order": 7}
    (analysis,) = read(top)
    assert (analysis.placements[0].stage, analysis.placements[0].order) == (3, 7)
    assert {v.rule for v in verify(LOOP, MACHINE, analysis)} == {"order"}


# Faults -----------------------------------------------------------------------------------

Edit = Callable[[dict[str, Any]], None]


def _set(key: str, value: object) -> Edit:
    def edit(entry: dict[str, Any]) -> None:
        at: Any = entry
        *way, last = key.split("/")
        for step in way:
            at = at[int(step)] if step.isdigit() else at[step]
        at[last] = value

    return edit


FAULTS: dict[str, tuple[Edit, str]] = {
    "cycle": (_set("ops/1/cycle", -2), "$.loops[0].ops[1].cycle: error: is -2; expected a"),
    "kind": (_set("ops/0/kind", "store"), '$.loops[0].ops[0].kind: error: is "store"; the loop'),
    "uses": (
        _set("ops/0/uses", [{"slot": "copy", "duration": 9}]),
        "$.loops[0].ops[0].uses: error: differs from the loop; `load` holds copy 8 there",
    ),
    "fused alone": (
        _set("ops/1/fused_with", []),
        "$.loops[0].ops[2].fused_with: error: names `read0`, which does not agree",
    ),
    "fused with itself": (_set("ops/0/fused_with", ["load"]), "$.loops[0].ops[0].fused_with"),
    "fused with a ghost": (_set("ops/0/fused_with", ["ghost"]), "names `ghost`"),
    "bound": (
        _set("bounds/resource", 9),
        "$.loops[0].bounds.resource: error: is 9; its witnesses say 8",
    ),
    "mii": (_set("bounds/mii", 9), "$.loops[0].bounds.mii: error: is 9"),
    "limiter": (_set("bounds/limiter", "fine"), '$.loops[0].bounds.limiter: error: is "fine"'),
    "witness": (_set("bounds/witness/limit", "rd"), "$.loops[0].bounds.witness: error: is not"),
    "witness bound": (
        _set("bounds/witnesses/recurrence/bound", 7),
        "$.loops[0].bounds.witnesses.recurrence.bound: error: is 7; total over capacity is 8",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_does_not_agree(name: str) -> None:
    edit, said = FAULTS[name]
    top = copy.deepcopy(DOCUMENT)
    edit(top["loops"][0])
    with pytest.raises(DocumentError) as caught:
        read(top)
    assert said in str(caught.value)


def test_other_schema() -> None:
    with pytest.raises(DocumentError, match=r"s\.json: \$\.schema: error: is 'stretto\.loop/1'"):
        read({"schema": "stretto.loop/1", "loops": []})


def _places(value: object, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place inside a document."""
    if way:
        yield way
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _places(item, (*way, key))
    elif isinstance(value, list):
        for i, item in enumerate(cast("list[object]", value)):
            yield from _places(item, (*way, i))


def _edited(way: tuple[str | int, ...], edit: Callable[[Any, str | int], None]) -> dict[str, Any]:
    top = copy.deepcopy(DOCUMENT)
    at: Any = top
    for step in way[:-1]:
        at = at[step]
    edit(at, way[-1])
    return top


def _drop(at: Any, key: str | int) -> None:
    del at[key]


def _unknown(at: Any, key: str | int) -> None:
    if isinstance(at[key], dict):
        at[key]["nonsense"] = 1


PLACES = list(_places(DOCUMENT))
WRONG: tuple[object, ...] = (None, True, -1, 1.5, "", "no word of ours", {}, [None])


@pytest.mark.parametrize("way", PLACES, ids=lambda way: ".".join(map(str, way)))
def test_schema_and_reader_agree(way: tuple[str | int, ...]) -> None:
    """They differ only where one field must agree with another, which a schema cannot say."""
    edits = [_edited(way, _drop), _edited(way, _unknown)]
    for wrong in WRONG:
        edits.append(_edited(way, lambda at, key, wrong=wrong: at.__setitem__(key, wrong)))
    refused = 0
    for top in edits:
        if readable(top):
            assert valid(top), f"the reader takes {way}, the schema does not"
        elif valid(top):
            with pytest.raises(DocumentError) as caught:
                read(top)
            assert _cross_checked(caught.value), caught.value
        else:
            refused += 1
    assert refused >= 4


def _cross_checked(error: DocumentError) -> bool:
    """Whether a fault is one of agreement between fields."""
    words = (
        "total over capacity is",
        "its witnesses say",
        "is not the witness of the limiter",
        "which does not agree",
        "differs from the loop",
        "the loop has",
        "start 0 at II 9",
        "start -1 at II 9",
    )
    return any(word in str(error) for word in words)


@given(problems(), st.data())
def test_generated_round_trip(problem: Problem, data: st.DataObject) -> None:
    loop, machine = problem.loop, problem.machine
    ii = data.draw(st.integers(1, 9))
    starts = {op.name: data.draw(st.integers(0, 30)) for op in loop.ops}
    analysis = analyse(loop, machine, Schedule(ii, starts), seconds=data.draw(st.floats(0, 10)))
    top = document([(analysis, loop, machine)])
    assert valid(top)
    text = dump_document(top)
    assert parse_schedules("s.json", text) == (analysis,)
    assert dump_document(document([(parse_schedules("s.json", text)[0], loop, machine)])) == text
    bare = {
        "schema": top["schema"],
        "loops": [
            {
                "name": loop.name,
                "ii": ii,
                "ops": [{"name": name, "start": start} for name, start in reversed(starts.items())],
            }
        ],
    }
    (by_hand,) = parse_schedules("s.json", json.dumps(bare), {loop.name: loop})
    assert by_hand.placements == analysis.placements
