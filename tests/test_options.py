"""Options never make a schedule worse, and what the verifier refuses is never the end.

default        II 1325
--max-stages   no larger an II where the default has no more stages; none for a larger limit
--prove, --effort, --time-limit        none for more of it
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import stretto
from absolute import disagreements
from agent_loops import agent_problem
from rich_loops import Rich, features, rich_problem
from soundness import Outcome, examine
from stretto.cli.main import main
from stretto.generate.problem import Problem
from stretto.generate.search import Found
from stretto.loop import Dependence, Loop, Op, Operand, TileType, Use, Value, check
from stretto.machine import Machine, Slot, load_machine
from stretto.machine.machine import Agent
from stretto.solution import ScheduleAnalysis
from stretto.solution.json import parse_schedules
from stretto.solve import IllegalScheduleError
from stretto.solve.scheduling import lifted
from stretto.verification import Violation, verify

EXAMPLES = Path(__file__).parent.parent / "examples"
CASES = Path(__file__).parent / "cases"
LOOPS = ("attention_forward", "attention_backward", "layernorm", "gemm", "four_op", "pool_bound")


def _ii(analysis: ScheduleAnalysis) -> int:
    assert analysis.ii is not None
    return analysis.ii


# Limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOOPS)
def test_no_limit_that_is_met_already_makes_it_worse(name: str) -> None:
    (loop,) = stretto.read(EXAMPLES / f"{name}.json")
    best = stretto.schedule(loop)
    met = [
        stretto.schedule(loop, max_stages=best.stage_count),
        stretto.schedule(loop, max_stages=best.stage_count + 1),
        stretto.schedule(loop, max_ii=best.ii),
        stretto.schedule(loop, pins=[f"{loop.ops[0].name}=start:{best.starts[loop.ops[0].name]}"]),
        stretto.schedule(loop, prove=True, objective="ii", time_limit=20),
    ]
    if not best.fused:
        met.append(stretto.schedule(loop, fuse=False))
    assert [_ii(one) <= _ii(best) for one in met] == [True] * len(met)
    for one, limit in zip(met, (best.stage_count, best.stage_count + 1), strict=False):
        assert one.stage_count <= limit


def _problems(count: int) -> list[Rich]:
    return [agent_problem(seed) for seed in range(count)] + [
        replace(rich_problem(seed), max_stages=None) for seed in range(count)
    ]


def test_a_larger_limit_has_no_larger_ii() -> None:
    """Of stages and of effort, on loops in which that is not the bound's doing."""
    seen: Counter[str] = Counter()
    for rich in _problems(12):
        if len(rich.loop.ops) > 12:
            continue
        found: list[int] = []
        for stages in (1, 2, 3, 5, None):
            one = stretto.schedule(rich.loop, rich.machine, fuse=rich.fuse, max_stages=stages)
            if one.success and not one.spilled:
                found.append(_ii(one))
                seen["above the bound"] += not (one.proof and one.proof.optimal)
        assert found == sorted(found, reverse=True), rich.loop.name
        seen["falling"] += len(set(found)) > 1
        efforts = [
            _ii(one)
            for effort in ("quick", "normal", "thorough")
            if (one := stretto.schedule(rich.loop, rich.machine, fuse=rich.fuse, effort=effort)).ii
            and not one.spilled
        ]
        assert efforts == sorted(efforts, reverse=True), rich.loop.name
        seen["effort helps"] += len(set(efforts)) > 1
    assert seen["falling"] > 3, seen


def test_the_solver_closes_what_the_search_leaves() -> None:
    """Attention backward on `h200`: registers of agents and groups, which moves hardly see."""
    (loop,) = stretto.read(EXAMPLES / "triton" / "attention_backward_q.ttir", machine="h200")
    found = stretto.schedule(loop)
    searched = stretto.schedule(loop, without=["retries"])
    assert found.proof is not None
    assert found.proof.optimal
    assert _ii(found) < _ii(searched)
    assert found.stage_count <= searched.stage_count + 1


def test_small_loops_get_the_solver() -> None:
    """No II up to the serial one has a schedule: the two are to stand two stages apart."""
    seen = 0
    for seed in range(400):
        rich = rich_problem(seed)
        if len(rich.loop.ops) > 4:
            continue
        proved = stretto.schedule(
            rich.loop, rich.machine, fuse=rich.fuse, max_stages=rich.max_stages, prove=True
        )
        plain = stretto.schedule(
            rich.loop, rich.machine, fuse=rich.fuse, max_stages=rich.max_stages
        )
        assert plain.success == proved.success, seed
        assert not proved.success or _ii(plain) >= _ii(proved)
        seen += 1
    assert seen > 40


@pytest.mark.parametrize(("name", "optimum"), [("no_serial", 11), ("tiny_serial", 21)])
def test_small_loops_get_it_where_nothing_is_worth_pipelining(name: str, optimum: int) -> None:
    """One has no serial schedule; of the other the serial II is 90."""
    (loop,) = stretto.read(CASES / f"{name}.json")
    proved = stretto.schedule(loop, prove=True)
    assert (_ii(proved), proved.proof and proved.proof.optimal) == (optimum, True)
    assert _ii(stretto.schedule(loop)) == optimum
    serial = stretto.schedule(loop, without=["retries"])
    assert serial.generator == ("exact" if name == "no_serial" else "serial")
    assert _ii(serial) == (11 if name == "no_serial" else 90)


# Registers ------------------------------------------------------------------------------------


def _spilling() -> tuple[Loop, Machine]:
    """Two tiles of 4 registers live at once, and the agent has six."""
    tile = TileType((128,), "f32")
    load = Op("a", "arith.addf", results=("x",), uses=(Use("g", 2),), latency=2)
    also = Op("b", "arith.addf", results=("y",), uses=(Use("g", 2),), latency=2)
    both = Op("c", "arith.addf", (Operand("x"), Operand("y")), uses=(Use("g", 2),), latency=2)
    values = (Value("x", tile), Value("y", tile))
    agents = (Agent("g", ("simt",), 1, 6),)
    machine = Machine("m", "", (Slot(1, "g", 1),), agents=agents)
    return Loop("l", (load, also, both), values), machine


def test_where_none_keeps_to_the_registers_one_spills_and_says_so() -> None:
    loop, machine = _spilling()
    found = stretto.schedule(loop, machine)
    assert (found.success, found.ii, found.spilled) == (True, 6, 2)
    assert found.proof is not None
    assert not found.proof.optimal
    assert found.report().startswith("l on m: spills: 2 registers of a thread more than its agent")
    assert "optimal" not in found.report().replace("not proved optimal", "")
    ready = found.problem
    assert verify(ready.loop, ready.machine, found) == ()
    assert disagreements(ready.loop, ready.machine, found) == []
    for wrong in (1, 3):
        (told,) = verify(ready.loop, ready.machine, replace(found.analysis, spilled=wrong))
        assert told.rule == "registers"
    assert not stretto.schedule(loop, machine, strict=True).success
    (again,) = parse_schedules("s.json", json.dumps(found.to_document()))
    assert again.spilled == 2


@pytest.mark.parametrize("seed", [1590, 5948])
@pytest.mark.parametrize("limit", [0.5, 2])
def test_a_proof_cut_short_keeps_what_spills(seed: int, limit: float) -> None:
    """These took all of the time to refute II after II, and had nothing in the end."""
    rich = agent_problem(seed)
    plain = stretto.schedule(rich.loop, rich.machine, fuse=rich.fuse, effort="quick")
    found = stretto.schedule(
        rich.loop, rich.machine, fuse=rich.fuse, effort="quick", prove=True, time_limit=limit
    )
    assert plain.spilled
    assert _ii(found) <= _ii(plain)
    told = [note.text for note in found.warnings]
    if told[0] != "no schedule keeps to the registers of its agents":  # it was proved in time
        assert told[0].startswith("no schedule was found that keeps to the registers")
        assert "the time limit came while a better schedule was sought" in told[-1]


def test_that_none_keeps_to_the_registers_is_said_where_it_is_proved() -> None:
    loop, machine = _spilling()
    found = stretto.schedule(loop, machine, prove=True)
    told = [note.text for note in found.warnings]
    assert told == ["no schedule keeps to the registers of its agents"]


def test_what_keeps_to_the_registers_is_preferred() -> None:
    loop, machine = _spilling()
    roomy = replace(machine, agents=(replace(machine.agents[0], registers=8),))
    found = stretto.schedule(loop, roomy)
    assert (found.ii, found.spilled) == (6, 0)
    assert found.proof is not None
    assert found.proof.optimal


# Refused by the verifier ----------------------------------------------------------------------


def test_the_loop_that_had_an_illegal_schedule_has_a_legal_one() -> None:
    """A move of `polish` undid what `fit` had moved before it, in three stages.

    Beside the loop the kernel needs 33,792 bytes of shared memory, and registers are not counted.
    """
    (loop,) = stretto.read(CASES / "softcap.json")
    machine = lifted(load_machine("h200"))
    room = tuple(replace(b, bytes=198_656) if b.space == "smem" else b for b in machine.budgets)
    machine = replace(machine, budgets=room)
    for stages in (2, 3):
        found = stretto.schedule(loop, machine, max_stages=stages, without=["retries"])
        assert found.success
        assert verify(found.problem.loop, found.problem.machine, found) == ()


def test_what_the_verifier_refuses_is_not_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from stretto.generate import search as module  # noqa: PLC0415

    real = module.search
    (loop,) = stretto.read(EXAMPLES / "four_op.json")
    refuse: set[str] = {"all"}

    def wrong(problem: Problem, *rest: object) -> Found:
        found = real(problem, *rest)  # type: ignore[arg-type]
        if "all" in refuse or not refuse & problem.options.without:
            assert found.placement is not None
            starts = dict.fromkeys(range(problem.size), 0)
            bad = type(found.placement).of(problem, found.placement.ii, list(starts), (), "rau")
            return replace(found, placement=bad)
        return found

    monkeypatch.setattr(module, "search", wrong)
    monkeypatch.setenv("STRETTO_CACHE", str(tmp_path))
    with pytest.raises(IllegalScheduleError):
        stretto.schedule(loop)
    monkeypatch.delenv("STRETTO_REFUSED")
    serial = stretto.schedule(loop, without=["retries"])
    assert (serial.success, serial.generator) == (True, "serial")
    solved = stretto.schedule(loop)  # what is better than that says so too
    assert (_ii(solved), solved.generator) == (15, "exact")
    assert [note.text for note in solved.warnings if "bug of Stretto" in note.text]
    refuse = {"improve"}
    best = stretto.schedule(loop)
    assert (best.ii, best.generator) == (15, "cost-based")
    (told,) = [note.text for note in best.warnings if "bug of Stretto" in note.text]
    assert "refused by the verifier" in told
    file = next((tmp_path / "refused").iterdir())
    assert str(file) in told
    (kept,) = stretto.read(file)
    assert kept.machine == "blackwell"
    assert check(kept, best.problem.machine) == ()
    assert main(["schedule", str(EXAMPLES / "four_op.json")]) == 0
    assert "bug of Stretto" in "".join(capsys.readouterr())


def test_nor_is_a_serial_schedule_that_it_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real, refused = verify, {"serial"}

    def wrong(loop: Loop, machine: Machine, analysis: ScheduleAnalysis, **rest: int) -> object:
        if analysis.generator in refused:
            return (Violation("slot", "made up"),)
        return real(loop, machine, analysis, **rest)

    monkeypatch.setattr("stretto.solve.job.verify", wrong)
    monkeypatch.setenv("STRETTO_CACHE", str(tmp_path))
    (loop,) = stretto.read(EXAMPLES / "four_op.json")
    with pytest.raises(IllegalScheduleError):
        stretto.schedule(loop, generator="serial")
    monkeypatch.delenv("STRETTO_REFUSED")
    found = stretto.schedule(loop, generator="serial")
    assert (_ii(found), found.generator) == (15, "cost-based")
    assert any("bug of Stretto" in note.text for note in found.warnings)
    refused |= {"cost-based", "exact"}
    nothing = stretto.schedule(loop)
    assert not nothing.success
    assert any("bug of Stretto" in note.text for note in nothing.warnings)
    assert nothing.refused[-1].reason == "the verifier refuses the serial schedule"


# Loops as kernels are lowered to --------------------------------------------------------------


@pytest.mark.parametrize("seed", [1590, 3158, 5948, 5957])
def test_what_spills_is_below_no_bound_of_what_does_not(seed: int) -> None:
    assert [str(finding) for finding in examine(seed, agents=True).findings] == []


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_loops_with_agents_all_agree_and_none_is_refused(first: int) -> None:
    outcome = Outcome()
    for seed in range(first, first + 20):
        outcome.add(examine(seed, agents=True))
    assert [str(finding) for finding in outcome.findings] == []
    assert outcome.counts["refused by the verifier"] == 0
    assert outcome.counts["schedules all agree on"] >= 18
    assert outcome.counts["changed schedules both refuse"] > 0


def test_loops_with_agents_have_what_kernels_have() -> None:
    seen: Counter[str] = Counter()
    for seed in range(150):
        rich = agent_problem(seed)
        seen.update(features(rich))
        seen["waits"] += any(op.kind == "async.wgmma_wait" for op in rich.loop.ops)
        seen["two replicas"] += len({op.agent for op in rich.loop.ops}) > 2
        slots = {slot.name for slot in rich.machine.slots}
        assert all(op.agent in slots for op in rich.loop.ops)
        assert all(any(u.slot == op.agent for u in op.uses or ()) for op in rich.loop.ops)
    for name in ("waits", "two replicas", "group", "ring", "max_stages", "tight memory"):
        assert seen[name] > 20, (name, seen[name])


def test_orders_stay_orders() -> None:
    """A dependence that is only stated counts in the freed loop as well."""
    loop, machine = _spilling()
    stated = replace(loop, stated=(Dependence("c", "a", 9, 1, "order"),))
    assert _ii(stretto.schedule(stated, machine, max_stages=4)) >= 9
