"""The passes: what is published reads back equal; schedules made by hand are judged rightly."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.utils.exceptions import PassFailedException

from generated import Problem, problems
from stretto import schedule
from stretto.diagnostics import MlirError
from stretto.ir import read_mlir, read_schedules, write_mlir
from stretto.ir.loops import LoopInModule, read_loops
from stretto.ir.loops.writer import print_module
from stretto.ir.parsing import Parsed, parse_module
from stretto.ir.passes.generate_schedule import GenerateSchedule, verdict, why_not
from stretto.ir.passes.published import ON_LOOP, ON_OPS, publish, published, published_on, withdraw
from stretto.ir.passes.verify_schedule import VerifySchedule
from stretto.ir.telling import Listener, PassError, Speaker, listening
from stretto.loop import Dependence, Loop, Op, Use
from stretto.machine import Machine
from stretto.solution import Placement, ScheduleAnalysis, limit
from stretto.solve import prepare, schedule_prepared
from stretto.verification import verify

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.mlir"))

LOOP = """\
func.func @f(%n: index) {
  scf.for %i = %n to %n step %n {
    %load = nv_tileas.generic "load"()
      {stretto.uses = [{slot = "tma", duration = 4}], stretto.latency = 6} : () -> i32
    %read = nv_tileas.generic "read"(%load)
      {stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : (i32) -> i32
  }
  func.return
}
"""


def only_loop(parsed: Parsed, machine: Machine | None = None) -> LoopInModule:
    (found,) = read_loops(parsed, machine).loops
    return found


def kept(analysis: ScheduleAnalysis) -> ScheduleAnalysis:
    """What of an analysis is published: the rest is how it was found."""
    places = tuple(Placement(p.op, p.start, p.stage, p.order) for p in analysis.placements)
    return ScheduleAnalysis(
        loop=analysis.loop,
        machine=analysis.machine,
        success=True,
        ii=analysis.ii,
        placements=places,
        fused=analysis.fused,
        stage_count=analysis.stage_count,
        pipeline_depth=analysis.pipeline_depth,
        generator=analysis.generator,
        table=analysis.table,
    )


def ran(one: GenerateSchedule | VerifySchedule, parsed: Parsed) -> Listener:
    with listening(parsed) as listener:
        one.apply(Context(), parsed.module)
    return listener


# Publishing -------------------------------------------------------------------------------


@given(problems())
def test_what_is_published_reads_back_equal(problem: Problem):
    analysis = schedule(problem.loop, problem.machine)
    if not analysis.success:
        return
    parsed = parse_module(write_mlir(problem.loop), "k.mlir")
    found = only_loop(parsed, problem.machine)
    before = print_module(parsed.module)
    publish(found.for_op, found.ops, analysis)
    assert published(Speaker("p", parsed, found)) == kept(analysis)
    for generic in (False, True):
        again = parse_module(print_module(parsed.module, generic), "k.mlir")
        assert published(Speaker("p", again, only_loop(again, problem.machine))) == kept(analysis)
        assert only_loop(again, problem.machine).loop == problem.loop
    once = print_module(parsed.module)
    publish(found.for_op, found.ops, analysis)
    assert print_module(parsed.module) == once
    assert withdraw(found.for_op)
    assert not withdraw(found.for_op)
    if not analysis.fused:  # names of fused operations stay
        assert print_module(parsed.module) == before


def ranked(placements: tuple[Placement, ...]) -> tuple[Placement, ...]:
    """With the order as the number of those before in the stage, unless two claim one place."""
    places = [(p.stage, p.order) for p in placements]
    if len(set(places)) < len(places):
        return placements
    return tuple(
        replace(p, order=sum(s == p.stage and o < p.order for s, o in places)) for p in placements
    )


@given(problems(), st.data())
def test_a_schedule_edited_by_hand_is_judged_as_the_verifier_judges(
    problem: Problem, data: st.DataObject
):
    analysis = schedule(problem.loop, problem.machine)
    if not analysis.success:
        return
    parsed = parse_module(write_mlir(problem.loop), "k.mlir")
    found = only_loop(parsed, problem.machine)
    publish(found.for_op, found.ops, analysis)
    victim = data.draw(st.sampled_from(analysis.placements))
    name = data.draw(st.sampled_from(["start", "stage", "order"]))
    number = data.draw(st.integers(0, 20))
    found.ops[victim.op].attributes[f"nv_tile.aws.{name}"] = IntegerAttr(number, i64)
    speaker = Speaker("p", parsed, found)
    edited = published(speaker)
    expected = ranked(
        tuple(
            replace(p, **{name: number}) if p.op == victim.op else p
            for p in kept(analysis).placements
        )
    )
    assert edited.placements == expected
    ready = prepare(found.loop, problem.machine)
    for violation in verify(ready.loop, ready.machine, edited):
        told = speaker.violation(edited, violation)
        assert told.severity == "error"
        assert told.message.endswith(violation.message)
        assert told.line
        involved = {parsed.diagnose(found.ops[op], "note", "").line for op in violation.ops}
        assert {told.line, *(note.line for note in told.notes)} >= involved


def test_a_failure_is_not_published():
    found = only_loop(parse_module(LOOP, "k.mlir"))
    with pytest.raises(ValueError, match="`f` has no schedule to publish"):
        publish(found.for_op, found.ops, ScheduleAnalysis("f", "blackwell", success=False))


def test_an_inner_loop_has_both_kinds_of_attributes():
    text = """
    func.func @f() {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c9 = arith.constant 9 : index
      scf.for %i = %c0 to %c9 step %c1 {
        scf.for %j = %c0 to %c9 step %c1 {
          %a = nv_tileas.generic "a"()
            {stretto.uses = [{slot = "tma", duration = 4}], stretto.latency = 6} : () -> i32
        }
      }
      func.return
    }"""
    parsed = parse_module(text, "k.mlir")
    ran(GenerateSchedule(), parsed)
    outer, inner = read_loops(parsed).loops
    assert set(ON_OPS) < set(inner.for_op.attributes)
    assert not set(ON_OPS) & set(outer.for_op.attributes)
    assert {name for _, name in published_on(outer.for_op)} <= {*ON_OPS, *ON_LOOP}
    withdraw(outer.for_op)
    assert not set(ON_OPS) & set(inner.for_op.attributes)
    assert published_on(inner.for_op)
    assert not published_on(outer.for_op)


# Generating -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("machine", [None, "blackwell", "b200-pipes"])
def test_examples_are_scheduled_as_by_the_library(path: Path, machine: str | None):
    parsed = parse_module(path.read_text(encoding="utf-8"), path.name)
    listener = ran(GenerateSchedule(machine=machine), parsed)
    ran(VerifySchedule(), parsed)
    for found in read_loops(parsed, machine).loops:
        analysis = schedule_prepared(prepare(found.loop, found.machine))
        assert published(Speaker("p", parsed, found)) == kept(analysis)
        (remark,) = [r for r in listener.remarks if r.loop == found.loop.name]
        assert (remark.kind, remark.name) == ("Passed", "Scheduled")
        assert dict(remark.arguments)["II"] == analysis.ii
        assert f"II {analysis.ii}" in remark.message


def test_options_reach_the_scheduler():
    parsed = parse_module(LOOP, "k.mlir")
    ran(GenerateSchedule(generator="serial"), parsed)
    found = only_loop(parsed)
    expected = schedule(found.loop, found.machine, "serial")
    assert published(Speaker("p", parsed, found)) == kept(expected)
    assert expected.ii == 8
    ran(GenerateSchedule(max_stages=1), parsed)
    assert published(Speaker("p", parsed, found)).stage_count == 1


def test_a_bug_of_the_scheduler_is_let_out(monkeypatch: pytest.MonkeyPatch):
    """An illegal schedule is no fault of the input: the driver makes a reproducer of it."""
    from stretto.solve import IllegalScheduleError  # noqa: PLC0415

    def broken(*_: object) -> ScheduleAnalysis:
        raise IllegalScheduleError("f", "cost-based", ())

    monkeypatch.setattr("stretto.ir.passes.generate_schedule.schedule_prepared", broken)
    with pytest.raises(IllegalScheduleError):
        ran(GenerateSchedule(), parse_module(LOOP, "k.mlir"))


def test_without_a_listener_warnings_go_to_stderr(capsys: pytest.CaptureFixture[str]):
    module = parse_module(LOOP, "k.mlir").module
    GenerateSchedule(max_ii=3).apply(Context(), module)
    told = capsys.readouterr()
    assert "warning: f: left alone: no schedule exists up to II 3: below the MII 4" in told.err
    assert not told.out


def test_errors_are_failed_passes_for_xdsl():
    module = parse_module(LOOP, "k.mlir").module
    with pytest.raises(PassFailedException, match="no generator `magic`") as caught:
        GenerateSchedule(generator="magic").apply(Context(), module)
    assert isinstance(caught.value, PassError)
    assert pickle.loads(pickle.dumps(caught.value)).diagnostics == caught.value.diagnostics


# In words ---------------------------------------------------------------------------------


def resolved(name: str, slot: str, duration: int, latency: int = 1, **more: object) -> Op:
    return Op(name, name, uses=(Use(slot, duration),), latency=latency, **more)  # type: ignore[arg-type]


def test_verdicts():
    loop = Loop("f", (resolved("a", "tma", 4), resolved("b", "tma", 4)))
    analysis = schedule(loop, "blackwell")
    assert verdict(analysis).startswith("II 8 is the MII, limited by slot tma; ")
    worse = replace(analysis, ii=9)
    assert verdict(worse).startswith("II 9, proved optimal; the MII is 8, limited by slot tma")
    unproved = replace(worse, proof=None)
    assert verdict(unproved).startswith("II 9, not proved optimal; the MII is 8")


def test_limits_in_words():
    ops = (resolved("a", "tma", 1, 9), resolved("b", "tma", 1))
    back = (Dependence("a", "a", 9, 1, "order"),)
    analysis = schedule(Loop("f", ops, stated=back), "blackwell")
    assert analysis.bounds is not None
    assert limit(analysis.bounds.recurrence) == "the recurrence through a"
    assert limit(analysis.bounds.resource) == "slot tma"
    assert limit(analysis.bounds.fine) == ""
    assert "limited by the recurrence through a" in verdict(analysis)


def test_why_not():
    loop = Loop("f", (resolved("a", "tma", 4), resolved("b", "tma", 4)))
    failed = schedule(loop, "blackwell", max_ii=7)
    expected = "no schedule exists up to II 7: below the MII 8 (resource bound: slot tma)"
    assert why_not(failed) == expected
    assert why_not(replace(failed, refused=())) == (
        "no schedule was found; the loop is limited by slot tma"
    )


# Reading schedules, for the command line --------------------------------------------------


def text_of(module: ModuleOp) -> str:
    return print_module(module)


def test_read_schedules():
    parsed = parse_module(LOOP, "k.mlir")
    (one,) = read_schedules("k.mlir", LOOP)
    assert one.analysis is None
    ran(GenerateSchedule(), parsed)
    (one,) = read_schedules("k.mlir", text_of(parsed.module))
    assert one.analysis is not None
    assert one.analysis.ii == 4
    ready = prepare(one.loop, one.machine)
    assert verify(ready.loop, ready.machine, one.analysis) == ()


def test_read_schedules_takes_the_machine_that_is_named():
    path = next(path for path in EXAMPLES if path.stem == "gemm")
    parsed = parse_module(path.read_text(encoding="utf-8"), "gemm.mlir")
    ran(GenerateSchedule(machine="b200-pipes"), parsed)
    text = text_of(parsed.module)
    (one,) = read_schedules("gemm.mlir", text)
    assert one.machine.name == "b200-pipes"
    (other,) = read_schedules("gemm.mlir", text, "blackwell")
    assert other.machine.name == "blackwell"
    assert other.analysis is not None
    ready = prepare(other.loop, other.machine)
    rules = [v.rule for v in verify(ready.loop, ready.machine, other.analysis)]
    assert "order" in rules  # the schedule is said to be of another machine


def test_read_schedules_tells_every_fault():
    parsed = parse_module(LOOP, "k.mlir")
    ran(GenerateSchedule(), parsed)
    found = only_loop(parsed)
    del found.ops["load"].attributes["nv_tile.aws.stage"]
    found.for_op.attributes["nv_tile.aws.fused"] = StringAttr("soon")
    with pytest.raises(MlirError) as caught:
        read_schedules("k.mlir", text_of(parsed.module))
    assert sorted(d.message.partition(";")[0] for d in caught.value.diagnostics) == [
        '`nv_tile.aws.fused` is "soon"',
        "`nv_tile.aws.stage` is missing",
    ]
    lines = text_of(parsed.module).split("\n")
    at_loop, at_load = sorted(caught.value.diagnostics, key=lambda d: d.message)
    assert lines[at_loop.line - 1][at_loop.column - 1 :].startswith('nv_tile.aws.fused = "soon"')
    assert lines[at_load.line - 1][at_load.column - 1 :].startswith("nv_tileas.generic")


def test_read_schedules_of_a_loop_that_cannot_be_read():
    text = LOOP.replace(
        "  }\n  func.return",
        "    scf.for %j = %n to %n step %n {\n"
        '      %x = nv_tileas.generic "x"() : () -> i32\n'
        "    }\n  } {nv_tile.aws.ii = 4}\n  func.return",
    )
    with pytest.raises(MlirError, match=r"k.mlir:2:3: error: loop `f.0` is left alone"):
        read_schedules("k.mlir", text)
    names = [one.loop.name for one in read_schedules("k.mlir", text.replace("aws.ii", "other"))]
    assert names == ["f.1"]


def test_violations_have_places():
    parsed = parse_module(LOOP, "k.mlir")
    ran(GenerateSchedule(), parsed)
    text = text_of(parsed.module).replace("aws.start = 6", "aws.start = 5")
    (one,) = read_schedules("k.mlir", text)
    assert one.analysis is not None
    ready = prepare(one.loop, one.machine)
    told = verify(ready.loop, ready.machine, one.analysis)
    (violation,) = [v for v in told if v.rule == "dependence"]
    told = one.diagnose(violation)
    assert "`read` starts at 5; `load` is ready at 6" in told.message
    assert "%read = " in told.text
    assert [note.message for note in told.notes] == ["`load` starts at 0"]
    (bare,) = read_schedules("k.mlir", LOOP)
    with pytest.raises(ValueError, match="`f` has no schedule"):
        bare.diagnose(violation)


def test_the_solver_has_its_options_in_a_pass() -> None:
    parsed = parse_module(EXAMPLES[0].with_name("gemm.mlir").read_text("utf-8"), "gemm.mlir")
    asked = GenerateSchedule(
        prove=True, objective="bytes", work_limit=5.0, workers=1, seed=3, time_limit=30.0
    )
    ran(asked, parsed)
    found = only_loop(parsed)
    proved = schedule(
        found.loop, found.machine, prove=True, objective="bytes", work_limit=5.0, seed=3
    )
    assert proved.proved
    assert published(Speaker("p", parsed, found)) == kept(proved)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"objective": "bites"}, "no objective `bites`; known: ii, stages, bytes, registers"),
        ({"work_limit": 0.0}, "work-limit is 0; a number above 0 is needed"),
        ({"time_limit": -1.0}, "time-limit is -1; a number above 0 is needed"),
        ({"workers": 0}, "workers is 0; 1 to 1000 are possible"),
        ({"seed": -1}, "seed is -1; 0 to 2147483647 are possible"),
    ],
)
def test_what_the_solver_does_not_take_is_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        GenerateSchedule(**options)


def test_both_tools_read_the_same_dialects() -> None:
    """Such as memref, in its own form: operations of dialects that a loop does not use."""
    text = (
        "func.func @f(%x: memref<4xf32>, %i: index) {\n"
        "  %a = memref.load %x[%i] : memref<4xf32>\n  func.return\n}\n"
    )
    loops, notes = read_mlir("x.mlir", text)
    assert (loops, notes) == ((), ())
