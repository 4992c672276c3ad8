"""Agents chosen with the schedule: known answers, brute force, and an independent checker."""

from __future__ import annotations

import importlib.util
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import stretto
from stretto.agents import chosen
from stretto.agents.groups import merged, with_groups
from stretto.agents.handover import Flows, with_agents
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.loop import Loop, Op, Operand, TileType, Use, Value
from stretto.machine import load_machine
from stretto.resources.prepare import prepare

ROOT = Path(__file__).parents[2]
FORWARD = ROOT / "examples" / "attention_forward.mlir"
BACKWARD = ROOT / "examples" / "attention_backward.mlir"


def _checker() -> Callable[[Any], list[str]]:
    spec = importlib.util.spec_from_file_location("checker", ROOT / "benchmarks/joint/check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.check


check = _checker()


@pytest.fixture(scope="module", name="forward")
def _forward() -> stretto.AssignResult:
    (loop,) = stretto.read(FORWARD)
    return stretto.assign(loop, "b200")


def test_the_correction_of_attention_has_a_warpgroup_of_its_own(
    forward: stretto.AssignResult,
) -> None:
    """As FlashAttention 4 has it: only the factor goes from the softmax to the correction."""
    assert (forward.ii, forward.lower, forward.optimal) == (1325, 1325, True)
    correction = {forward.agents[name] for name in ("load_o", "rescale_o", "store_o")}
    softmax = {forward.agents[name] for name in ("load_s", "shift", "p", "row_sum", "store_p")}
    assert len(correction) == len(softmax) == 1
    assert correction != softmax
    assert forward.found.choice.handed == ("alpha",)
    assert stretto.verify(forward.problem, forward.schedule).legal
    assert "handed over: alpha, 512 bytes" in forward.report()
    (loop,) = stretto.read(FORWARD)
    alone = stretto.schedule(loop, "b200", effort="quick")
    assert alone.ii is not None
    assert alone.ii > forward.ii


def test_backward_is_proved_by_a_bound_that_the_solver_raises() -> None:
    """The MII of all choices is 946; four loads beside a reduction leave no room below 1,026."""
    (loop,) = stretto.read(BACKWARD)
    found = stretto.assign(loop, "b200")
    assert (found.ii, found.lower, found.optimal) == (1026, 1026, True)
    assert stretto.verify(found.problem, found.schedule).legal


def test_the_checker_accepts_it_and_no_mutant(forward: stretto.AssignResult) -> None:
    (entry,) = forward.to_document()["loops"]
    assert check(entry) == []

    def mutant(change: Callable[[Any], None]) -> list[str]:
        copy = json.loads(json.dumps(entry))
        change(copy)
        return check(copy)

    def op(copy: Any, name: str) -> Any:
        return next(row for row in copy["loop"]["ops"] if row["name"] == name)

    def start(copy: Any, name: str, by: int) -> None:
        row = next(row for row in copy["schedule"]["ops"] if row["name"] == name)
        row["start"] += by

    assert "too early" in mutant(lambda c: start(c, "rescale_o", -1))[0]
    assert "starts once" in mutant(lambda c: c["schedule"]["ops"].pop())[0]
    whole = {"slot": "CUDA", "duration": entry["ii"]}
    assert "CUDA is held 2 times" in mutant(lambda c: op(c, "p")["uses"].append(whole))[0]
    wrong = mutant(lambda c: op(c, "rescale_l").update(agent=forward.agents["load_o"]))
    assert any("holds compute" in told for told in wrong)
    assert any("in registers of" in told for told in wrong)
    tight = dict.fromkeys(entry["resources"]["registers"], 1000)
    assert "bytes of tiles" in mutant(lambda c: c["resources"]["registers"].update(tight))[0]
    assert "of smem" in mutant(lambda c: c["resources"]["bytes"].update(smem=1000))[0]
    lives = max(entry["schedule"]["storages"], key=lambda row: row["ring_depth"])

    def shallow(copy: Any) -> None:
        for row in copy["schedule"]["storages"]:
            if row["name"] == lives["name"]:
                row["ring_depth"] -= 1

    assert any(lives["name"] in told for told in mutant(shallow))


def test_published_answers_pass_the_checker() -> None:
    results = json.loads((ROOT / "benchmarks/joint/results.json").read_text())["rows"]
    for row in results:
        path = ROOT / "benchmarks/joint/answers" / f"{row['graph']}.json"
        (entry,) = json.loads(path.read_text())["loops"]
        assert check(entry) == []
        assert entry["ii"] == row["chosen"]["ii"] <= row["by_rule"]["ii"]
        assert entry["optimal"] == row["chosen"]["optimal"]


# Brute force --------------------------------------------------------------------------------------


PIPES = {"b200": ("CUDA", "SFU", "TC"), "h200": ("FMA", "sums", "TC")}
"""Of the H200 each warpgroup has its own `sums`."""


def _random_loop(seed: int, machine: str) -> Loop:
    """A few operations on tiles, some of them carried, that hold an issue slot and a pipe."""
    draw = random.Random(seed)
    ops: list[Op] = []
    values: list[Value] = []
    for number in range(draw.randint(3, 5)):
        size = draw.choice([16, 64, 512])
        cycles, pipe = draw.randint(4, 60), draw.choice(PIPES[machine])
        taken = [Operand(v.name, draw.choice([0, 0, 1])) for v in values if draw.random() < 0.5]
        if number and draw.random() < 0.2:
            taken.append(Operand(f"v{number}", 1))
        values.append(Value(f"v{number}", TileType((size,), "f32")))
        uses = (Use("compute", cycles), Use(pipe, draw.randint(1, cycles)))
        name = f"op{number}"
        latency = cycles + draw.randint(0, 20)
        made = (f"v{number}",)
        ops.append(Op(name, "arith.addf", tuple(taken), made, uses=uses, latency=latency))
    return Loop(f"random{seed}", tuple(ops), tuple(values), machine=machine)


@pytest.mark.parametrize("name", PIPES)
@pytest.mark.parametrize("seed", range(12))
def test_no_choice_is_better_by_brute_force(seed: int, name: str) -> None:
    loop, machine = _random_loop(seed, name), load_machine(name)
    best: int | None = None
    for count in (1, 2):
        on = with_groups(machine, count)
        flows = Flows(loop, on)
        names = ["compute", "compute.1"][:count]
        for agents in itertools.product(names, repeat=len(flows.free)):
            choice = dict(zip(flows.free, agents, strict=True))
            ready = prepare(with_agents(flows, choice), on)
            found = stretto.schedule(ready, prove=True, objective="ii")
            assert found.proof is not None
            assert found.proof.optimal
            assert found.ii is not None
            best = found.ii if best is None else min(best, found.ii)
            assert prepare(loop, merged(machine, count)).loop.ops
    found = chosen(loop, machine, groups=2)
    assert found.optimal
    assert found.lower <= (best or 0)
    assert found.analysis.ii == best


@pytest.mark.parametrize(("groups", "ii"), [(1, 150), (2, 100), (3, 50), (4, 50)])
def test_what_each_warpgroup_has_to_itself_is_not_shared(groups: int, ii: int) -> None:
    """Three operations take all `sums` of a warpgroup of an H200 for 50 cycles."""
    ops = tuple(
        Op(f"op{n}", "arith.addf", (), (f"v{n}",), uses=uses, latency=50)
        for n in range(3)
        for uses in [(Use("compute", 10), Use("sums", 50, occupancy=4))]
    )
    values = tuple(Value(f"v{n}", TileType((64,), "f32")) for n in range(3))
    found = chosen(Loop("three", ops, values, machine="h200"), load_machine("h200"), groups=groups)
    assert (found.analysis.ii, found.optimal) == (ii, True)
    assert found.lower <= ii


# The doors ----------------------------------------------------------------------------------------


def test_registers_of_warpgroups_share_the_file() -> None:
    for name, registers in (("b200", (240, 240, 160, 120)), ("h200", (240, 240, 160, 112))):
        machine = load_machine(name)
        for count, own in enumerate(registers, 1):
            agent = with_groups(machine, count).agent_for("simt")
            assert agent is not None
            assert (agent.replicas, agent.registers) == (count, own)
        assert with_groups(machine, 3).has_slot("compute.2")
    assert with_groups(machine, 3).has_slot("sums.2")


def test_the_command_answers_in_text_and_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["assign", str(FORWARD), "--machine", "b200"]) == 0
    text = capsys.readouterr().out
    assert "2 warpgroups for arithmetic, II 1325: optimal among all choices of agents" in text
    out = tmp_path / "answer.json"
    asked = ["assign", str(FORWARD), "--machine", "b200", "--groups", "2", "--json", "-o", str(out)]
    assert main(asked) == 0
    document = json.loads(out.read_text())
    schema = ROOT / "src/stretto/report/schemas/assignment.schema.json"
    jsonschema.validate(document, json.loads(schema.read_text()))
    assert document["loops"][0]["searches"][-1]["groups"] == 2
    assert check(document["loops"][0]) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([str(FORWARD), "--machine", "b200-pipes"], "does not say who issues what"),
        ([str(FORWARD), "--machine", "b200", "--groups", "9"], "1 to 8 can be asked for"),
        (
            [str(ROOT / "examples/layernorm.mlir"), "--machine", "b200", "--groups", "1"],
            "smaller tiles take fewer",
        ),
    ],
)
def test_what_cannot_be_chosen_is_told(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assign", *arguments]) == 1
    assert told in capsys.readouterr().err


def test_a_deadline_leaves_the_best_so_far(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["assign", str(BACKWARD), "--machine", "b200", "--time-limit", "0.000001"])
    assert code != 0
    assert "Traceback" not in capsys.readouterr().err


def test_ctrl_c_leaves_the_best_so_far() -> None:
    (loop,) = stretto.read(FORWARD)

    def stop(found: object) -> None:
        raise KeyboardInterrupt(found)

    stopped = chosen(loop, load_machine("b200"), progress=stop)
    assert stopped.stopped
    assert not stopped.optimal
    assert stopped.analysis.success


def test_groups_out_of_range_are_an_error() -> None:
    (loop,) = stretto.read(FORWARD)
    with pytest.raises(StrettoError, match="0 warpgroups"):
        stretto.assign(loop, "b200", groups=0)
