"""The examples in both modes at many trip counts, and the numbers of their pipelines."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from importlib import resources
from typing import Any

import jsonschema
import pytest

import faults
import stretto
from programs import Ready, placed, ready
from stretto import build
from stretto.loop import Demand, Facts, Use
from stretto.machine import Machine, Pool, Slot
from stretto.machine.choice import ASKED
from stretto.materialization import MODES, Mode, materialize
from stretto.ops.opcodes import opcode
from stretto.report.simulation import SCHEMA, SimulationReport
from stretto.simulation import VIOLATION_NAMES, Symbolic, run_sequential, simulate, simulate_program
from stretto.simulation.outcome import Simulation
from stretto.simulation.space import barriers

BOTH = pytest.mark.parametrize("mode", MODES)
EXAMPLES = ["four_op", "gemm", "attention_forward", "attention_backward"]
FOLDER = resources.files("stretto.report").joinpath("schemas")
DOCUMENT: Any = json.loads(FOLDER.joinpath("simulation.schema.json").read_text(encoding="utf-8"))


@BOTH
@pytest.mark.parametrize("iterations", [0, 1, 2, 9, 40])
@pytest.mark.parametrize("name", EXAMPLES)
def test_equal_to_sequential_at_the_pace_of_the_ii(name: str, iterations: int, mode: Mode) -> None:
    case = ready(name)
    run = simulate(case.loop, case.machine, case.analysis, iterations, mode)
    assert run.equal
    assert not run.deadlock
    assert run.violations == ()
    assert run.cycles_per_iteration == run.ii == case.analysis.ii
    assert run.prologue_cycles == (case.analysis.stage_count - 1) * run.ii
    assert len(run.issued) == iterations * len(case.loop.ops)


@BOTH
@pytest.mark.parametrize("name", ["gemm", "recurrence_bound", "layernorm", "pool_bound"])
def test_serial_schedules_run_too(name: str, mode: Mode) -> None:
    case = ready(name)
    analysis = stretto.schedule(case.loop, case.machine, "serial")
    run = simulate(case.loop, case.machine, analysis, 5, mode)
    assert run.success
    assert run.cycles_per_iteration == analysis.ii
    assert run.prologue_cycles == 0


def test_prologue_and_epilogue_of_gemm() -> None:
    """3 stages of 256; the product of the last iteration starts at 653 and takes 559 cycles."""
    case = ready("gemm")
    run = simulate(case.loop, case.machine, case.analysis, 9, "specialized")
    assert run.prologue_cycles == 2 * 256
    assert run.epilogue_cycles == 653 + 559 - 256
    first = {(i.op, i.iteration): i.cycle for i in run.issued}
    assert first["mma", 0] == 653
    assert first["mma", 8] == 653 + 8 * 256
    assert [i.cycle for i in run.issued] == sorted(i.cycle for i in run.issued)


def test_iterations_default_to_a_steady_state() -> None:
    case = ready("gemm")
    run = simulate(case.loop, case.machine, case.analysis)
    assert run.iterations > case.analysis.stage_count
    assert run.mode == "unspecialized"


def test_fewer_than_no_iterations_are_refused() -> None:
    case = ready("gemm")
    with pytest.raises(stretto.StrettoError, match="gemm: -1 iterations; 0 or more are needed"):
        simulate(case.loop, case.machine, case.analysis, -1)


# Sequential execution ---------------------------------------------------------------------


def test_sequential_execution_follows_the_program() -> None:
    loop = build("chain")
    h = loop.carried("h")
    x = loop.live_in("x")
    loop.op("step", "f", h[-1], x, defines=h, uses=[Use("a", 1)], latency=1)
    case = placed(loop.finish(), 1, {"step": 0})
    domain = Symbolic()
    trace = run_sequential(case.loop, domain, 3)
    op = case.loop.op("step")
    before = domain.initial("h", -1)
    for iteration in range(3):
        live = domain.live_in("x", iteration)
        (before,) = domain.apply(op, iteration, [before, live], [])
        assert trace.results["step", iteration] == (before,)
    assert len(trace.results) == 3


def test_sequential_execution_keeps_each_copy_of_a_ring_and_one_of_a_fixed_storage() -> None:
    loop = build("rings")
    ring = loop.storage("ring", "smem", 4)
    box = loop.storage("box", "smem", 4, fixed=True)
    put = loop.op("put", "f", type="1xi32", into=ring, uses=[Use("a", 1)], latency=1)
    loop.op("add", "g", put[-1], type="1xi32", update=box, uses=[Use("b", 1)], latency=1)
    case = placed(loop.finish(), 2, {"put": 0, "add": 0})
    domain = Symbolic()
    trace = run_sequential(case.loop, domain, 2)
    add = case.loop.op("add")
    held = domain.content("box", -1)
    for iteration in range(2):
        old = domain.content("ring", -1) if not iteration else trace.writes["put", 0, "ring"]
        made = domain.apply(add, iteration, [old], [old, held])
        held = domain.stored(add, "box", made, held)
        assert trace.writes["add", iteration, "box"] == held
    assert trace.final == {"box": held}


# What a run counts ------------------------------------------------------------------------


def _busy(machine: Machine) -> tuple[str, ...]:
    """What a machine says of two operations that take turns on a roomier one."""
    loop = build("busy")
    loop.op("one", "x", uses=[Use("a", 3)], latency=1, demands=[Demand("p", 2)])
    loop.op("two", "y", uses=[Use("a", 3)], latency=1, demands=[Demand("p", 1)])
    prepared = stretto.prepare(loop.finish(), ROOMY)
    analysis = stretto.schedule(prepared.loop, ROOMY)
    assert analysis.ii == 3
    program = materialize(prepared.loop, ROOMY, analysis)
    run = simulate_program(program, machine, analysis.starts, 4)
    return tuple(v.name for v in run.violations)


ROOMY = Machine("roomy", "", (Slot(1, "a", 2),), (Pool("p", 3),))


def test_slots_and_pools_are_counted_in_every_cycle() -> None:
    assert _busy(ROOMY) == ()
    assert _busy(ROOMY.with_capacity("a", 1)) == ("overbooked",)
    assert _busy(ROOMY.with_cap("p", 2)) == ("overbooked",)


def test_fused_operations_hold_once() -> None:
    loop = build("fused", machine="blackwell")
    tile = loop.live_in("tile", "64x64xf16", loop.storage("tile_in", "smem", "64x64xf16"))
    fact = Facts(bank=0)
    for n in range(3):
        loop.op(f"read{n}", "async.smem_read", tile, type="64x64xf16", facts=fact)
    prepared = stretto.prepare(loop.finish())
    analysis = stretto.schedule(prepared.loop, prepared.machine, "cost-based")
    assert analysis.fused
    run = simulate(prepared.loop, prepared.machine, analysis, 6)
    assert run.success


# Reports ----------------------------------------------------------------------------------


def told(run: Simulation, case: Ready, notes: tuple[str, ...] = ()) -> SimulationReport:
    return SimulationReport(run, case.machine, ASKED, notes)


def _document(report: SimulationReport) -> dict[str, Any]:
    return {"schema": SCHEMA, "success": report.success, "loops": [report.to_json()]}


@BOTH
def test_json_keeps_its_schema(mode: Mode) -> None:
    jsonschema.Draft202012Validator.check_schema(DOCUMENT)
    case = ready("attention_forward")
    run = simulate(case.loop, case.machine, case.analysis, 9, mode)
    document = _document(told(run, case, ("a note",)))
    jsonschema.validate(json.loads(json.dumps(document)), DOCUMENT)
    entry = document["loops"][0]
    assert entry["equal"] is True
    assert entry["deadlock"] is False
    assert entry["ii"] == entry["cycles_per_iteration"] == 1325
    assert entry["prologue_cycles"] == (case.analysis.stage_count - 1) * 1325
    assert entry["violations"] == []
    assert entry["warnings"] == ["a note"]
    assert len(entry["timeline"]) == 9 * 28


def test_a_deadlock_is_told_in_json_and_text() -> None:
    case = ready("gemm")
    sound = materialize(case.loop, case.machine, case.analysis, "specialized")
    stuck = faults.other_phase(sound, "a_tile.load_a.put")
    run = simulate_program(stuck, case.machine, case.analysis.starts, 9)
    report = told(run, case)
    document = _document(report)
    jsonschema.validate(json.loads(json.dumps(document)), DOCUMENT)
    entry = document["loops"][0]
    assert entry["deadlock"] is True
    assert entry["success"] is entry["equal"] is False
    assert {row["agent"]: row["agents"] for row in entry["waiting"]} == {
        "tma": ["mma"],
        "mma": ["tma"],
    }
    text = " ".join(" ".join(report.to_text()).split())
    assert "not equal to sequential execution" in text
    assert "deadlock: agent tma waits at `load_a` of iteration 0 for Pipe_a_tile[0] to be" in text
    assert {v["name"] for v in entry["violations"]} <= set(VIOLATION_NAMES)
    assert set(VIOLATION_NAMES) == set(_violation_names())


def _violation_names() -> list[str]:
    return DOCUMENT["$defs"]["LoopViolation"]["properties"]["name"]["enum"]


def test_the_timeline_shows_who_issues_when() -> None:
    case = ready("gemm")
    run = simulate(case.loop, case.machine, case.analysis, 3, "specialized")
    lines = told(run, case).to_text()
    assert (
        lines[0] == "gemm on b200-pipes, specialized, 3 iterations: equal to sequential execution"
    )
    assert lines[1] == "  II 256: 256 cycles an iteration; prologue 512 cycles, epilogue 956"
    assert all(len(line) <= 100 for line in lines)
    # 1,165 is the last issue, of `mma` in iteration 2: 83 columns of 15 cycles would not do.
    assert "a column is 15 cycles" in lines[3]
    mma = next(line for line in lines if line.startswith("  mma"))
    row = mma.split()[-1]
    assert [row.index(digit) for digit in "012"] == [653 // 15, 909 // 15, 1165 // 15]


def test_nothing_issued_has_no_timeline() -> None:
    case = ready("gemm")
    lines = told(simulate(case.loop, case.machine, case.analysis, 0), case).to_text()
    assert len(lines) == 3
    assert not any("column" in line for line in lines)


def test_rings_and_barriers_are_counted() -> None:
    case = ready("gemm")
    run = simulate(case.loop, case.machine, case.analysis, 3, "specialized")
    smem, tmem, register = run.memory
    # Two tiles of 128 x 64 halves, five copies each, and a full and an empty barrier for each copy.
    assert (smem.rings, smem.barriers) == (2 * 5 * 128 * 64 * 2, 2 * 5 * 2 * 8)
    assert (tmem.rings, tmem.barriers) == (128 * 128 * 4, 0)
    assert register.used == 0
    assert "smem 164,000 of 232,448 bytes (160 for barriers)" in told(run, case).to_text()[2]


def test_values_that_wait_in_registers_are_counted() -> None:
    case = ready("attention_forward")
    run = simulate(case.loop, case.machine, case.analysis, 2)
    program = materialize(case.loop, case.machine, case.analysis)
    types = {value.name: value.type for value in case.loop.values}
    wanted = 0
    for ring in program.rings:
        if ring.value is not None:
            made = types[ring.value]
            wanted += 0 if made is None else made.bytes * ring.depth
    assert wanted > 0
    assert {space.space: space.rings for space in run.memory}["register"] == wanted


def test_threads_of_one_agent_need_no_barrier_among_themselves() -> None:
    case = ready("layernorm")
    program = materialize(case.loop, case.machine, case.analysis)
    assert {pipe.name for pipe in program.pipes}, "values wait from stage to stage"
    simt = {op.name for op in case.loop.ops if opcode(op.kind).issuer == "simt"}
    told = [p for p in program.pipes if not {*p.producers, *(c.op for c in p.consumers)} <= simt]
    assert len(told) < len(program.pipes)
    assert barriers(program) == sum(p.depth * (1 + p.reused) for p in told)


def test_barriers_that_do_not_fit_beside_the_rings_are_told() -> None:
    case = ready("gemm")
    program = materialize(case.loop, case.machine, case.analysis, "specialized")
    rings = 163_840

    def told(bytes: int) -> tuple[str, ...]:
        budgets = tuple(
            replace(b, bytes=bytes) if b.space == "smem" else b for b in case.machine.budgets
        )
        machine = replace(case.machine, budgets=budgets)
        run = simulate_program(program, machine, case.analysis.starts, 3)
        return tuple(v.message for v in run.violations)

    assert not told(rings + 160)
    (message,) = told(rings + 159)
    assert message.endswith("the rings take 163,840 and the barriers 160")


def test_results_are_picklable_and_always_the_same() -> None:
    case = ready("gemm")
    run = simulate(case.loop, case.machine, case.analysis, 4, "specialized")
    assert pickle.loads(pickle.dumps(run)) == run
    again = simulate(case.loop, case.machine, case.analysis, 4, "specialized")
    assert told(again, case).to_text() == told(run, case).to_text()
