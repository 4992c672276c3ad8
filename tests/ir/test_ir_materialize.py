"""Programs as nv_tileas text: written, read back, run; and what a hand does to them is seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stretto
from generated import Problem, problems
from stretto.diagnostics import MlirError
from stretto.ir import read_programs as programs_of_text
from stretto.ir.loops import read_loops
from stretto.ir.loops.writer import print_module
from stretto.ir.opt.__main__ import main
from stretto.ir.opt.pass_text import options_of
from stretto.ir.parsing import Parsed, make_context, parse_module, verify_module
from stretto.ir.passes.generate_schedule import GenerateSchedule
from stretto.ir.passes.materialize_schedule import MaterializeSchedule
from stretto.ir.programs import read_programs, write_program
from stretto.ir.telling import listening
from stretto.materialization import MODES, Mode, Program, materialize
from stretto.simulation import Simulation, simulate_program

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNELS = ("four_op", "gemm", "attention_forward", "attention_backward")


def through_passes(text: str, mode: Mode) -> str:
    """A module scheduled and materialized."""
    parsed = parse_module(text, "k.mlir")
    with listening(parsed):
        for one in (GenerateSchedule(), MaterializeSchedule(mode)):
            one.apply(make_context(), parsed.module)
    assert verify_module(parsed) == ()
    return print_module(parsed.module)


@cache
def kernel(name: str, mode: Mode) -> str:
    """The text of a shipped kernel, materialized."""
    return through_passes((EXAMPLES / f"{name}.mlir").read_text(encoding="utf-8"), mode)


@cache
def in_python(name: str, mode: Mode) -> tuple[Program, dict[str, int]]:
    """The program of a shipped kernel that never was text, and its schedule."""
    parsed = parse_module((EXAMPLES / f"{name}.mlir").read_text(encoding="utf-8"), name)
    (found,) = read_loops(parsed).loops
    ready = stretto.prepare(found.loop, found.machine)
    analysis = stretto.schedule(found.loop, found.machine)
    return materialize(ready.loop, ready.machine, analysis, mode), analysis.starts


def read_program(parsed: Parsed) -> Program:
    """The one program of a module."""
    (program,) = read_programs(parsed)
    return program


def run(text: str, iterations: int, name: str = "gemm") -> Simulation:
    """Run a program from its text; starts are those the schedule promised."""
    program = read_program(parse_module(text))
    _, starts = in_python(name, "unspecialized")
    machine = stretto.prepare(program.loop, program.machine).machine
    return simulate_program(program, machine, starts, iterations)


both = pytest.mark.parametrize("mode", MODES)


# There and back ---------------------------------------------------------------------------


@both
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_reads_back_and_prints_the_same(name: str, mode: Mode):
    text = kernel(name, mode)
    parsed = parse_module(text)
    assert print_module(parsed.module) == text
    generic = print_module(parsed.module, generic=True)
    again = parse_module(generic)
    assert print_module(again.module) == text
    expected, starts = in_python(name, mode)
    assert read_program(parsed) == expected
    assert read_program(again) == expected
    assert expected.starts == starts


@both
@pytest.mark.parametrize("name", KERNELS)
def test_the_text_runs_as_the_loop_does(name: str, mode: Mode):
    program = read_program(parse_module(kernel(name, mode)))
    machine = stretto.prepare(program.loop, program.machine).machine
    _, starts = in_python(name, mode)
    for iterations in (0, 1, 2, 9, 40):
        done = simulate_program(program, machine, starts, iterations)
        assert done.violations == ()
        assert done.equal
        assert done.cycles_per_iteration == program.ii


@both
def test_a_persistent_loop_reads_back(mode: Mode):
    program = read_program(parse_module(kernel("persistent_gemm", mode)))
    around = program.persistent
    assert around is not None
    assert (around.problem, around.tile, around.cluster) == ((4096, 4096), (128, 128), (2, 1))
    assert (around.blocks, around.index, around.info) == (128, "i64", ("i64", "i64", "i1"))
    assert around.check() == ()


@settings(max_examples=12, deadline=None)
@given(problems(max_ops=5), st.sampled_from(["serial", "cost-based"]), st.data())
def test_any_program_is_the_same_after_its_text(
    problem: Problem, generator: str, data: st.DataObject
):
    loop, machine = problem.loop, problem.machine
    analysis = stretto.schedule(loop, machine, generator)
    if not analysis.success:
        return
    agents = {op.name: data.draw(st.sampled_from(["tma", "mma", "simt"])) for op in loop.ops}
    for mode in MODES:
        given_agents = agents if mode == "specialized" else None
        program = materialize(loop, machine, analysis, mode, agents=given_agents)
        text = print_module(write_program(program))
        parsed = parse_module(text)
        assert print_module(parsed.module) == text
        assert read_program(parsed) == program


def test_several_programs_of_one_module():
    loop = (EXAMPLES / "four_op.mlir").read_text(encoding="utf-8")
    types, function = loop[: loop.index("func.func")], loop[loop.index("func.func") :]
    text = through_passes(types + function + function.replace("@four_op", "@other"), "specialized")
    found = programs_of_text("k.mlir", text)
    assert [program.loop.name for program in found] == ["four_op", "other"]


# What leaves a loop -----------------------------------------------------------------------

CARRIED = """
func.func @f(%x: f32, %y: f32, %n: i32) -> (f32, f32, f32, i32) {
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %r:5 = scf.for %i = %c2 to %n step %c3
      iter_args(%p = %x, %q = %y, %s = %x, %k = %c2, %same = %y)
      -> (f32, f32, f32, i32, f32) : i32 {
    %a = nv_tileas.generic "a"(%s, %same) {stretto.uses = [], stretto.latency = 4}
      : (f32, f32) -> f32
    %b = nv_tileas.generic "b"(%a, %k) {stretto.uses = [], stretto.latency = 9} : (f32, i32) -> f32
    scf.yield %b, %p, %q, %i, %same : f32, f32, f32, i32, f32
  }
  func.return %r#0, %r#1, %r#2, %r#3 : f32, f32, f32, i32
}
"""


@both
def test_carried_values_leave_through_cells(mode: Mode):
    text = through_passes(CARRIED, mode)
    program = read_program(parse_module(text))
    machine = stretto.prepare(program.loop, program.machine).machine
    for iterations in range(6):
        done = simulate_program(program, machine, program.starts, iterations)
        assert done.success, done.violations
    # One cell a result, begun as the loop did; the older ones move on before the newest comes.
    cells = re.findall(r"(%\S+) = \S+create_ring\((%\w+) : f32\)", text)
    assert [first for _, first in cells] == ["%x", "%y", "%x"]
    newest, middle, oldest = (cell for cell, _ in cells)
    moves = re.findall(r"fill (%\S+) into (%\S+) ", text)
    assert [cell for _, cell in moves[:3]] == [oldest, middle, newest]
    # The induction variable of the last iteration, or the constant if there was none.
    assert re.search(r"arith\.select %\S+, %\S+, %c2 : i32", text)


SUM = """
!a = tensor<64x64xf16>
!s = !nv_tileas.smem_ref<64x64xf16>
!c = tensor<64x64xf32>
func.func @f(%A: !nv_tileas.tensor<?x64xf16, global>, %b: !s, %c: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %last = scf.for %i = %c0 to %n step %c64 iter_args(%sum = %c) -> (!c) : i32 {
    %a = nv_tileas.async.tiled_tma_load %A[%i, %c0] : !nv_tileas.tensor<?x64xf16, global> -> !s
    %d = nv_tileas.async.wgmma %a, %b acc %sum : !s, !s -> !c
    scf.yield %d : !c
  }
  func.return %last : !c
}
"""


@both
def test_a_sum_in_registers_stays_in_its_ring(mode: Mode):
    text = through_passes(SUM, mode)
    program = read_program(parse_module(text))
    machine = stretto.prepare(program.loop, program.machine).machine
    assert simulate_program(program, machine, program.starts, 7).success
    assert "create_ring(%c : tensor<64x64xf32>)" in text
    assert re.search(r"into %a_\d+ \{stretto.name = \"a\"|into %a \{stretto.name = \"a\"", text)
    assert re.search(r"fill %d\S* into %\S+ : tensor<64x64xf32>", text)
    assert re.search(r"func.return %last : tensor<64x64xf32>", text)


# By hand ----------------------------------------------------------------------------------

Edit = Callable[[str], str]


def drop(pattern: str, where: int = 0) -> Edit:
    """Take out a line, and whoever waits for the token it makes does no more."""

    def edit(text: str) -> str:
        lines = text.splitlines()
        at = [n for n, line in enumerate(lines) if re.search(pattern, line)][where]
        made = re.match(r"\s*(%\w+) = ", lines.pop(at))
        text = "\n".join(lines)
        return re.sub(rf" after {made[1]}\b", "", text) if made else text

    return edit


def swap(first: str, where: int = 0) -> Edit:
    """A commit before the write that it hands over."""

    def edit(text: str) -> str:
        lines = text.splitlines()
        write = [n for n, line in enumerate(lines) if re.search(first, line)][where]
        commit = next(n for n in range(write, len(lines)) if "producer_commit" in lines[n])
        line = re.sub(r" after %\d+", "", lines.pop(commit))
        return "\n".join([*lines[:write], line, *lines[write:]])

    return edit


def sub(pattern: str, new: str) -> Edit:
    def edit(text: str) -> str:
        found, count = re.subn(pattern, new, text)
        assert count, pattern
        return found

    return edit


MMA_TAKES = r'(side = "consumer", phase = )0'
LOAD_PUTS = r'(op = "load_a", side = "producer", phase = )1'
FAULTS: dict[str, tuple[str, Edit, set[str]]] = {
    "dropped wait": ("gemm", drop(r"consumer_wait %Pipe_a_tile"), {"unwritten"}),
    "dropped acquire": ("gemm", drop(r"producer_acquire %Pipe_a_tile"), {"overwritten"}),
    "dropped release": ("gemm", drop(r"consumer_release %Pipe_a_tile"), {"deadlock"}),
    "dropped commit": ("gemm", drop(r"producer_commit %Pipe_a_tile"), {"deadlock"}),
    "commit before write": ("gemm", swap(r"producer_write %Pipe_a_tile"), {"unwritten"}),
    "wrong phase of the consumer": ("gemm", sub(MMA_TAKES, r"\g<1>1"), {"deadlock"}),
    "wrong phase of the producer": ("gemm", sub(LOAD_PUTS, r"\g<1>0"), {"deadlock"}),
    "a ring one too small": ("gemm", sub(r"pipeline<5, ", "pipeline<4, "), {"stall"}),
    "a late cycle": ("gemm", sub(r"cycle = 141", "cycle = 142"), {"stall"}),
    "a stage off by one": ("gemm", sub(r"stage = 2(.*141)", r"stage = 1\1"), {"early"}),
    "a latency too short": ("gemm", sub(r"latency = 556(.*own)", r"latency = 1\1"), {"unwritten"}),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_text_is_seen_when_it_runs(fault: str):
    name, edit, expected = FAULTS[fault]
    text = kernel(name, "specialized")
    assert run(text, 9).success
    done = run(edit(text), 9)
    assert expected & {violation.name for violation in done.violations}, done.violations


def test_a_dropped_order_is_seen():
    text = kernel("attention_forward", "unspecialized")
    assert run(text, 9, "attention_forward").success
    for pattern in (r"await %Order_load_k", r"consumer_wait %Pipe_s_acc"):
        lines = text.splitlines()
        for _ in range(sum(bool(re.search(pattern, line)) for line in lines)):
            text = drop(pattern)(text)
        done = run(text, 9, "attention_forward")
        found = {violation.name for violation in done.violations}
        assert found & {"unwritten", "overwritten", "unordered"}, found
        text = kernel("attention_forward", "unspecialized")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (drop(r"inc_iter %a_tile.mma.take_2"), "is not defined"),
        (sub(r"(inc_iter %a_tile.mma.take)_2", r"\1"), "where it has been, not where it is"),
        (sub(r"ops = \[\"offset\", ", "ops = ["), "`offset` is no operation"),
        (sub(r"\"mma\"\], sequence", '"mma", "x"], sequence'), "`x` is issued by no kernel"),
        (sub(r"mode = \"specialized\"", 'mode = "odd"'), "mode odd"),
        (sub(r", \{name = \"mma\", role = \"mma\"\}", ""), "1 agents are named; there are 2"),
        (sub(r"side = \"producer\"", 'side = "left"'), "side left"),
        (sub(r"name = \"Pipe_a_tile\", ", ""), "is not what a program declares"),
        (sub(r"storages = \[.*\]", "storages = []"), "cannot be read|not what a program declares"),
        (sub(r"= %c2 to %\d+ step", "= %tiles to %trips step"), "does not go from a stage"),
    ],
)
def test_what_is_no_program_is_refused_at_its_place(edit: Edit, message: str):
    with pytest.raises(MlirError, match=message) as caught:
        read_program(parse_module(edit(kernel("gemm", "specialized")), "k.mlir"))
    assert re.match(r"k\.mlir:\d+:\d+: error: ", str(caught.value))


def test_a_guard_that_asks_for_nothing_is_refused():
    text = sub(r"arith.cmpi sge, %trips", "arith.cmpi slt, %trips")(kernel("gemm", "unspecialized"))
    with pytest.raises(MlirError, match="does not ask for a least trip count"):
        read_program(parse_module(text))


# The pass ---------------------------------------------------------------------------------


def test_options_are_checked_and_documented():
    with pytest.raises(ValueError, match="mode is sideways"):
        MaterializeSchedule("sideways")
    with pytest.raises(ValueError, match="simt-groups is 0"):
        MaterializeSchedule(simt_groups=0)
    text = (EXAMPLES.parent / "docs" / "stretto-opt.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name, _, _ in options_of(MaterializeSchedule))


def test_the_tool_writes_the_same_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source = tmp_path / "k.mlir"
    source.write_text((EXAMPLES / "gemm.mlir").read_text(encoding="utf-8"), encoding="utf-8")
    passes = "tileas-generate-schedule,tileas-materialize-schedule{mode=specialized}"
    assert main([str(source), "-p", passes]) == 0
    assert capsys.readouterr().out == kernel("gemm", "specialized")


def test_more_groups_make_more_agents():
    parsed = parse_module((EXAMPLES / "attention_backward.mlir").read_text(encoding="utf-8"))
    with listening(parsed) as heard:
        GenerateSchedule().apply(make_context(), parsed.module)
        MaterializeSchedule("specialized", simt_groups=2).apply(make_context(), parsed.module)
    program = read_program(parse_module(print_module(parsed.module)))
    names = [agent.name for agent in program.agents]
    assert names[:3] == ["tma", "mma", "simt"]
    told = next(remark for remark in heard.remarks if remark.name == "Materialized")
    assert dict(told.arguments)["Agents"] == len(names)
