"""The whole report as data: what it says besides the analysis follows from the schedule."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest

import stretto
from stretto.api.solving import ScheduleResult
from stretto.solution.json import parse_schedules
from stretto.solution.views import prediction, slot_loads

_TEXT = (resources.files("stretto.solution") / "schedule.schema.json").read_text("utf-8")
VALIDATOR: Any = jsonschema.Draft202012Validator(json.loads(_TEXT))
EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("four_op.json", "gemm.mlir", "attention_forward.mlir", "layernorm.json", "pool_bound.json")


def scheduled(name: str, **options: Any) -> ScheduleResult:
    return stretto.schedule(stretto.read(EXAMPLES / name)[0], **options)


@pytest.fixture(scope="module", params=NAMES)
def found(request: pytest.FixtureRequest) -> ScheduleResult:
    return scheduled(cast("str", request.param))


def test_the_schema_has_it_and_it_reads_back(found: ScheduleResult) -> None:
    document = {"schema": "stretto.schedule/1", "success": True, "loops": [found.to_json()]}
    VALIDATOR.validate(document)
    loop = found.problem.loop
    (again,) = parse_schedules("s.json", json.dumps(document), {loop.name: loop})
    assert again.starts == found.starts
    assert again.table == found.table


def test_held_is_what_the_operations_hold(found: ScheduleResult) -> None:
    assert not found.fused
    entry = found.to_json()
    for row in entry["slots"]:
        uses = [use for op in entry["ops"] for use in op["uses"] if use["slot"] == row["name"]]
        assert row["held"] == sum(use["duration"] * use["occupancy"] for use in uses)
        assert row["utilization"] == pytest.approx(
            row["held"] / (row["capacity"] * entry["ii"]), abs=1e-4
        )
    bounds = found.bounds
    assert bounds is not None
    limiting = [load.name for load in slot_loads(found, found.problem.machine) if load.limiting]
    assert (bounds.resource.limit in limiting) == (bounds.resource.bound == bounds.mii)


def test_slack_is_what_moving_alone_leaves(found: ScheduleResult) -> None:
    """An operation moved by its slack keeps every dependence; by one more it breaks one."""
    entry = found.to_json()
    ii, starts = entry["ii"], {op["name"]: op["start"] for op in entry["ops"]}

    def kept(name: str, moved: int) -> bool:
        at = {**starts, name: starts[name] + moved}
        return all(
            at[d["dst"]] >= at[d["src"]] + d["latency"] - ii * d["distance"]
            for d in entry["dependences"]
        )

    for op in entry["ops"]:
        name, free = op["name"], op["slack"]
        assert kept(name, -free["earlier"])
        assert not kept(name, -free["earlier"] - 1) or free["earlier"] == op["start"]
        if free["later"] is None:
            assert kept(name, 10**6)
        else:
            assert kept(name, free["later"])
            assert not kept(name, free["later"] + 1)
            assert op["bound_by"]["later"]
    for d in entry["dependences"]:
        assert d["slack"] == starts[d["dst"]] + ii * d["distance"] - starts[d["src"]] - d["latency"]


def test_the_critical_steps_are_a_cycle_of_the_recurrence_bound() -> None:
    entry = scheduled("attention_forward.mlir").to_json()
    steps = {(d["src"], d["dst"]): d for d in entry["dependences"] if d["critical"]}
    assert sum(d["latency"] for d in steps.values()) == entry["bounds"]["recurrence"]
    assert sorted(a for a, _ in steps) == sorted(b for _, b in steps)


def test_the_prediction_is_what_the_simulator_counts(found: ScheduleResult) -> None:
    for iterations in (1, 2, 9):
        ran = stretto.simulate(found.problem, found, iterations=iterations)
        told = prediction(found.problem.loop, found)
        assert told.cycles(iterations) == iterations * found.schedule.ii + ran.epilogue_cycles
    assert prediction(found.problem.loop, found).cycles(0) == 0


def test_occupancy_counts_the_copies_alive_in_each_cycle(found: ScheduleResult) -> None:
    entry = found.to_json()
    ii = entry["ii"]
    rows = {row["space"]: row for row in entry["occupancy"]}
    for space in entry["memory"]:
        steps = rows[space]["steps"]
        for k, step in enumerate(steps):
            end = steps[k + 1]["cycle"] if k + 1 < len(steps) else ii
            for cycle in {step["cycle"], end - 1}:
                alive = 0
                for s in entry["storages"]:
                    begin = s["begin"] or 0
                    if s["space"] == space:
                        copies = [
                            i
                            for i in range(-8, 9)
                            if begin + i * ii <= cycle < begin + i * ii + s["lifetime"]
                        ]
                        alive += s["bytes"] * len(copies)
                assert step["live"] == alive
        assert max(step["live"] for step in steps) <= entry["memory"][space]["used"]
    if entry["pressure"] is not None:
        peak = max(step["live"] for step in rows["register"]["steps"])
        assert peak == entry["pressure"]["peak"]


def test_what_was_asked_for_and_on_what_stands_beside_the_answer() -> None:
    entry = scheduled("four_op.json", seed=7, max_stages=3).to_json()
    assert entry["options"]["seed"] == 7
    assert entry["options"]["max_stages"] == 3
    other = scheduled("four_op.json").to_json()
    assert entry["machine_digest"] == other["machine_digest"]
    assert entry["machine_digest"] != scheduled("gemm.mlir").to_json()["machine_digest"]


def test_every_operation_has_its_agent_and_every_pipe_its_ends() -> None:
    entry = scheduled("attention_forward.mlir").to_json()
    program = entry["program"]
    assert {op["name"]: op["agent"] for op in entry["ops"]} == {
        name: agent["name"] for agent in program["agents"] for name in agent["ops"]
    }
    names = {op["name"] for op in entry["ops"]}
    for pipe in program["pipes"]:
        assert names.issuperset(pipe["producers"])
        assert names.issuperset(end["op"] for end in pipe["consumers"])


def test_remedies_are_data_ranked_by_effort() -> None:
    rows = scheduled("attention_forward.mlir").to_json()["remedies"]
    assert [row["effort"] for row in rows] == sorted(row["effort"] for row in rows)
    latency = next(row for row in rows if row["kind"] == "latency")
    assert (latency["mii"], latency["next"]) == (1210, "slot CUDA")
    assert latency["before"] - latency["after"] == 1325 - 1210


def test_a_schedule_that_was_not_found_says_why_and_nothing_of_a_schedule() -> None:
    entry = scheduled("four_op.json", max_ii=14).to_json()
    VALIDATOR.validate({"schema": "stretto.schedule/1", "success": False, "loops": [entry]})
    assert entry["errors"]
    assert "slots" not in entry
