"""Control flow in bodies, functions without loops, and schedules from elsewhere."""

from __future__ import annotations

import random
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from xdsl.dialects.builtin import IntegerAttr, i64

import stretto
from stretto.cli.main import main as command_line
from stretto.diagnostics import MlirError
from stretto.ir import read_mlir, read_programs, read_schedules
from stretto.ir.loops import read_loops
from stretto.ir.loops.writer import print_module
from stretto.ir.opt.__main__ import main
from stretto.ir.parsing import parse_module
from stretto.ir.passes.published import ORDER, STAGE, publish
from stretto.loop import Loop
from stretto.materialization import materialize
from stretto.materialization.program import TRIVIAL
from stretto.resources.prepare import prepare
from stretto.simulation.simulator import simulate_program
from stretto.verification import verify

EXAMPLES = Path(__file__).parents[1] / "examples"


def around(body: str, *, before: str = "", function: str = "", loop: str = "") -> str:
    return f"""
!global = !nv_tileas.tensor<4096x64xf16, global>
!smem = !nv_tileas.smem_ref<64x64xf16>
!tile = tensor<64x64xf16>
func.func @k(%A: !global, %n: i32, %c: i1) {function} {{
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %rows = arith.constant 64 : i32
  {before}
  scf.for %row = %zero to %n step %rows : i32 {{
    %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] : !global -> !smem
    {body}
  }} {loop}
  func.return
}}
"""


def outer(text: str) -> Loop:
    return read_mlir("k.mlir", text)[0][0]


def opt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, *options: str
) -> tuple[int, str, str]:
    file = tmp_path / "k.mlir"
    file.write_text(text, encoding="utf-8")
    code = main([str(file), *options])
    told = capsys.readouterr()
    return code, told.out, told.err.replace(str(file), "k.mlir")


# Control flow in a body -------------------------------------------------------------------


def chain(value: str, count: int, name: str) -> str:
    rows = [f"%{name}0 = arith.addf {value}, {value} : !tile"]
    rows += [f"%{name}{i} = arith.addf %{name}{i - 1}, {value} : !tile" for i in range(1, count)]
    return "\n".join(rows)


@pytest.mark.parametrize(("then", "other"), [(1, 3), (4, 2), (2, 2)])
def test_an_if_takes_as_long_as_its_longer_side(then: int, other: int) -> None:
    loop = outer(
        around(f"""
    %read = nv_tileas.async.smem_read %load : !smem -> !tile
    %m = scf.if %c -> (!tile) {{
      {chain("%read", then, "x")}
      scf.yield %x{then - 1} : !tile
    }} else {{
      {chain("%read", other, "y")}
      scf.yield %y{other - 1} : !tile
    }}
    nv_tileas.store %m to %A[%row, %zero] : !tile -> !global""")
    )
    ready = prepare(loop, "blackwell")
    op = ready.loop.op("m")
    single = prepare(outer(around(READ + "%x = arith.addf %read, %read : !tile")), "blackwell")
    assert op.ready == max(then, other) * single.loop.op("x").ready
    assert {use.slot for use in op.uses or ()} >= {"fp32x2_fp16ultra"}
    assert {operand.value for operand in op.operands} == {"c", "read"}
    found = stretto.schedule(ready)
    assert found.starts["m"] >= found.starts["read"] + ready.loop.op("read").ready
    assert stretto.simulate(loop, found).equal


READ = "%read = nv_tileas.async.smem_read %load : !smem -> !tile\n"


def test_what_a_side_reads_is_read_by_the_if() -> None:
    """The tile is not written over before the side that reads it is done."""
    loop = outer(
        around("""
    %m = scf.if %c -> (!tile) {
      %read = nv_tileas.async.smem_read %load : !smem -> !tile
      %inner = scf.if %c -> (!tile) {
        %x = arith.addf %read, %read : !tile
        scf.yield %x : !tile
      } else {
        scf.yield %read : !tile
      }
      scf.yield %inner : !tile
    } else {
      %other = arith.constant dense<0.0> : !tile
      scf.yield %other : !tile
    }""")
    )
    op = prepare(loop, "blackwell").loop.op("m")
    assert [read.storage for read in op.reads] == [loop.op("load").writes[0]]
    assert "tp_smem_rd" in {use.slot for use in op.uses or ()}
    assert op.ready == 7 + 4


def test_a_loop_in_an_if_counts_with_all_its_turns() -> None:
    loop = outer(
        around(f"""{READ}
    %eight = arith.constant 8 : i32
    scf.if %c {{
      scf.for %j = %zero to %eight step %one : i32 {{
        %x = arith.addf %read, %read : !tile
      }}
    }}""")
    )
    op = next(op for op in loop.ops if op.kind == "scf.if")
    assert op.latency == 8 * 4


@pytest.mark.parametrize("same", [True, False])
def test_a_buffer_that_an_if_hands_out_has_to_be_known(same: bool) -> None:
    text = around(
        """%t = scf.if %c -> (!smem) {
      scf.yield %load : !smem
    } else {
      scf.yield %OTHER : !smem
    }
    %read = nv_tileas.async.smem_read %t : !smem -> !tile""".replace(
            "OTHER", "load" if same else "b"
        ),
        before="%b = nv_tileas.alloc_tensor : !smem",
    )
    if same:
        assert [r.storage for r in outer(text).op("read").reads] == [
            outer(text).op("load").writes[0]
        ]
        return
    loops, notes = read_mlir("k.mlir", text)
    assert not loops
    (note,) = notes
    assert note.text.startswith("k.mlir:10:3: warning")
    assert "in which buffer result 0 lives is not known before" in note.text


_WHILE = """
    %read = nv_tileas.async.smem_read %load : !smem -> !tile
    %w, %k = scf.while (%a = %read, %i = %zero) : (!tile, i32) -> (!tile, i32) {
      %go = arith.cmpi slt, %i, %n : i32
      scf.condition(%go) %a, %i : !tile, i32
    } do {
    ^bb0(%b: !tile, %j: i32):
      %x = arith.addf %b, %b : !tile
      %more = arith.addi %j, %one : i32
      scf.yield %x, %more : !tile, i32
    } ATTRIBUTES
    nv_tileas.store %w to %A[%row, %zero] : !tile -> !global"""


def test_a_while_costs_the_turns_that_are_stated() -> None:
    def length(attributes: str) -> int | None:
        said = f"attributes {{{attributes}}}" if attributes else ""
        return outer(around(_WHILE.replace("ATTRIBUTES", said))).op("w").latency

    never, twice = length("stretto.trip_count = 0"), length("stretto.trip_count = 2")
    assert never is not None
    assert twice == 3 * never, "it asks once more than it goes round"
    assert length("stretto.length = 70") == 70
    assert length("stretto.uses = [], stretto.latency = 9") == 9


def test_a_while_whose_turns_nobody_states_is_told_of() -> None:
    loops, notes = read_mlir("k.mlir", around(_WHILE.replace("ATTRIBUTES", "")))
    assert not loops
    assert "how often an scf.while inside goes round is not known" in notes[0].text
    assert "k.mlir:14:14: note" in notes[0].text
    assert "`stretto.trip_count`" in notes[0].text


# Functions without loops ------------------------------------------------------------------

STRAIGHT = """
!global = !nv_tileas.tensor<4096x64xf16, global>
!smem = !nv_tileas.smem_ref<64x64xf16>
func.func @once(%A: !global, %row: i32, %c: i1) {
  %zero = arith.constant 0 : i32
  %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] : !global -> !smem
  %more = nv_tileas.async.tiled_tma_load %A[%zero, %zero] : !global -> !smem
  %read = nv_tileas.async.smem_read %load : !smem -> tensor<64x64xf16>
  %m = scf.if %c -> (tensor<64x64xf16>) {
    %x = arith.addf %read, %read : tensor<64x64xf16>
    scf.yield %x : tensor<64x64xf16>
  } else {
    scf.yield %read : tensor<64x64xf16>
  }
  nv_tileas.store %m to %A[%row, %zero] : tensor<64x64xf16> -> !global
  func.return
}
"""


def test_a_function_without_loops_gets_a_serial_schedule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, told = opt(
        tmp_path,
        capsys,
        STRAIGHT,
        "--tileas-generate-schedule",
        "--tileas-verify-schedule",
        "--remarks-filter=Passed",
    )
    assert code == 0
    assert "once: scheduled on blackwell" in told
    assert "once: legal on blackwell" in told
    (found,) = read_schedules("k.mlir", out)
    assert found.analysis is not None
    starts = found.analysis.starts
    assert found.analysis.stage_count == 1
    assert [p.order for p in found.analysis.placements] == list(range(5))
    assert starts["more"] >= 8, "both loads hold the TMA"
    code, after, told = opt(
        tmp_path, capsys, out, "--tileas-materialize-schedule", "--remarks-filter=Missed"
    )
    assert code == 0
    assert after == out
    assert "nothing goes round" in told


def test_functions_that_move_no_tiles_are_nobodys_business() -> None:
    text = "func.func @sum(%a: i32) {\n  %b = arith.addi %a, %a : i32\n  func.return\n}"
    assert not read_loops(parse_module(text)).loops


def test_what_cannot_be_read_of_a_function_is_left_alone() -> None:
    text = STRAIGHT.replace("%zero = arith", '"test.region"() ({\n }) : () -> ()\n  %zero = arith')
    found = read_loops(parse_module(text, "k.mlir"))
    assert not found.loops
    (left,) = found.left_alone
    assert "function `once` is left alone: `test.region` is a region" in left.reason.message
    assert (left.reason.severity, left.reason.line) == ("remark", 4)


# Serial functions -------------------------------------------------------------------------

_SERIAL = "attributes {tileas.schedule.constraint.force_serial_execution"


@pytest.mark.parametrize(("said", "serial"), [("}", True), (" = false}", False)])
def test_a_function_forces_its_loops(said: str, serial: bool) -> None:
    loop = outer(around(READ, function=_SERIAL + said))
    assert loop.force_serial is serial
    found = stretto.schedule(loop, "blackwell")
    assert (found.generator == "serial") is serial
    assert (found.stage_count == 1) is serial


def test_an_operation_cannot_force_it() -> None:
    text = READ.replace(" :", " {tileas.schedule.constraint.force_serial_execution} :", 1)
    with pytest.raises(MlirError, match="belongs on a loop or a function, not on"):
        outer(around(text))


# Orders of other numberings ---------------------------------------------------------------


def _scheduled(name: str) -> str:
    parsed = parse_module((EXAMPLES / f"{name}.mlir").read_text(encoding="utf-8"), "k.mlir")
    (found,) = read_loops(parsed).loops
    ready = prepare(found.loop, found.machine)
    publish(found.for_op, found.ops, stretto.schedule(ready))
    return print_module(parsed.module)


@pytest.mark.parametrize("globally", [True, False])
@pytest.mark.parametrize("name", ["gemm", "attention_forward", "layernorm"])
def test_orders_may_have_gaps_and_go_through_all_stages(name: str, globally: bool) -> None:
    numbers = random.Random(name)
    text = _scheduled(name)
    parsed = parse_module(text, "k.mlir")
    (found,) = read_loops(parsed).loops
    placed = [
        (op, *(_number(op.attributes[key]) for key in (STAGE, ORDER))) for op in found.ops.values()
    ]
    at = 0
    last = -1
    for op, stage, _ in sorted(placed, key=lambda one: one[1:]):
        if stage != last and not globally:
            at = 0
        last = stage
        at += numbers.randrange(1, 9)
        op.attributes[ORDER] = IntegerAttr(at, i64)
    (before,), (after,) = (
        read_schedules("k.mlir", said) for said in (text, print_module(parsed.module))
    )
    assert after.analysis == before.analysis
    assert after.analysis is not None
    ready = prepare(after.loop, after.machine)
    assert verify(ready.loop, ready.machine, after.analysis) == ()


def _number(attribute: object) -> int:
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def test_a_wrong_rank_stays_wrong() -> None:
    text = _scheduled("gemm")
    (found,) = read_schedules("k.mlir", text)
    assert found.analysis is not None
    first = [p for p in found.analysis.placements if p.stage == 0]
    low, high = (f"{STAGE} = 0 : i64, {ORDER} = {n} : i64" for n in (0, len(first) - 1))
    assert len(first) > 1
    swapped = text.replace(low, "LOW").replace(high, low).replace("LOW", high)
    (again,) = read_schedules("k.mlir", swapped)
    assert again.analysis is not None
    ready = prepare(again.loop, again.machine)
    assert {v.rule for v in verify(ready.loop, ready.machine, again.analysis)} == {"order"}


# Buffers of one bank ----------------------------------------------------------------------

_BANKS = """
!smem = !nv_tileas.smem_ref<64x64xf16>
func.func @two(%n: i32, %v: tensor<64x64xf16>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = nv_tileas.alloc_tensor {stretto.facts = {bank = FIRST}} : !smem
  %b = nv_tileas.alloc_tensor {stretto.facts = {bank = SECOND}} : !smem
  %wa = nv_tileas.async.smem_write %v into %a : tensor<64x64xf16> -> !smem
  %wb = nv_tileas.async.smem_write %v into %b : tensor<64x64xf16> -> !smem
  scf.for %i = %zero to %n step %one : i32 {
    %ra = nv_tileas.async.smem_read %wa : !smem -> tensor<64x64xf16>
    %rb = nv_tileas.async.smem_read %wb : !smem -> tensor<64x64xf16>
  }
  func.return
}
"""


@pytest.mark.parametrize(("first", "second", "fused"), [(3, 3, True), (3, 5, False)])
def test_reads_of_two_buffers_of_one_bank_may_share_a_hold(
    first: int, second: int, fused: bool
) -> None:
    text = _BANKS.replace("FIRST", str(first)).replace("SECOND", str(second))
    (loop,), _ = read_mlir("k.mlir", text)
    assert [loop.op(name).facts.bank for name in ("ra", "rb")] == [first, second]
    found = stretto.schedule(loop, "blackwell")
    assert (bool(found.fused), found.ii) == (fused, 7 if fused else 14)
    ready = prepare(loop, "blackwell")
    shared = replace(found, fused=(("ra", "rb"),))
    wrong = verify(ready.loop, ready.machine, shared)
    assert any(v.rule == "fusion" and "bank" in v.message for v in wrong) is not fused


# Work tiles that arrive -------------------------------------------------------------------

_DESCRIPTOR = """
!a = !nv_tileas.tensor<4096x4096xf16, global>
!smem = !nv_tileas.smem_ref<128x64xf16>
func.func @clc(%A: !a, %first: tensor<4xi32>, %steps: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %extent = arith.constant 128 : i32
  %last = scf.while (%tile = %first) : (tensor<4xi32>) -> (tensor<4xi32>) {
    %m, %n, %l, %valid = nv_tileas.work_tile_info %tile
        {tile = array<i64: 128, 128, 1>, cluster = array<i64: CLUSTER>}
        : tensor<4xi32> -> i32, i32, i32, i1
    scf.condition(%valid) %tile : tensor<4xi32>
  } do {
  ^bb0(%work: tensor<4xi32>):
    %m, %n, %l, %valid = nv_tileas.work_tile_info %work
        {tile = array<i64: 128, 128, 1>, cluster = array<i64: CLUSTER>}
        : tensor<4xi32> -> i32, i32, i32, i1
    %row = arith.muli %m, %extent : i32
    scf.for %k = %zero to %steps step %one : i32 {
      %load = nv_tileas.async.tiled_tma_load %A[%row, %k] : !a -> !smem
      %read = nv_tileas.async.smem_read %load : !smem -> tensor<128x64xf16>
    }
    %slot = nv_tileas.generic "fetch_next_work"(%work) : (tensor<4xi32>) -> !nv_tileas.smem_ref<4xi32>
    %next = nv_tileas.async.smem_read %slot : !nv_tileas.smem_ref<4xi32> -> tensor<4xi32>
    scf.yield %next : tensor<4xi32>
  }
  func.return
}
"""  # noqa: E501 - one operation


def test_a_descriptor_of_m_n_l_and_valid_goes_round_a_while(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _DESCRIPTOR.replace("CLUSTER", "2, 1, 1")
    passes = ("--tileas-generate-schedule", "--tileas-materialize-schedule")
    code, out, _ = opt(tmp_path, capsys, text, *passes)
    assert code == 0
    assert out.count("-> i64, i64, i64, i1") == 2, "one representation, wide, in both regions"
    (program,) = read_programs("k.mlir", out)
    assert program.persistent is not None
    assert program.persistent.tile == (128, 128, 1)
    assert program.persistent.cluster == (2, 1, 1)
    assert program.persistent.info == ("i64", "i64", "i64", "i1")
    text = _DESCRIPTOR.replace("CLUSTER", "2, 1")
    code, _, told = opt(tmp_path, capsys, text, *passes)
    assert code == 1
    assert re.search(r"k\.mlir:15:26: error: clc\.1: the schedule is invalid", told)


_CUTLASS = """
!a = !nv_tileas.tensor<4096x4096xf16, global>
!smem = !nv_tileas.smem_ref<128x64xf16>
!work = !llvm.struct<(MEMBERS)>
func.func @clc(%A: !a, %first: !work, %steps: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %last = scf.while (%tile = %first) : (!work) -> (!work) {
    %valid = llvm.extractvalue %tile[3] : !work
    scf.condition(%valid) %tile : !work
  } do {
  ^bb0(%work: !work):
    %m, %n, %l, %valid = nv_tileas.work_tile_info %work
        {tile = array<i64: 128, 128, 1>, cluster = array<i64: 2, 1, 1>}
        : !work -> i32, i32, i32, i1
    scf.for %k = %zero to %steps step %one : i32 {
      %load = nv_tileas.async.tiled_tma_load %A[%m, %k] : !a -> !smem
      %read = nv_tileas.async.smem_read %load : !smem -> tensor<128x64xf16>
    }
    %next = nv_tileas.generic "fetch_next_work"(%work) : (!work) -> !work
    scf.yield %next : !work
  }
  func.return
}
"""


def test_a_work_tile_may_be_a_descriptor_of_cutlass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _CUTLASS.replace("MEMBERS", "i32, i32, i32, i1")
    passes = ("--tileas-generate-schedule", "--tileas-materialize-schedule")
    code, out, _ = opt(tmp_path, capsys, text, *passes)
    assert code == 0
    wide = "!llvm.struct<(i64, i64, i64, i1)>"
    assert f": {wide} -> i64, i64, i64, i1" in out
    assert out.count("arith.extsi") == 3, "the coordinates, not the validity"
    (program,) = read_programs("k.mlir", out)
    assert program.persistent is not None
    assert program.persistent.tile == (128, 128, 1)
    assert program.persistent.info == ("i64", "i64", "i64", "i1")
    code, again, _ = opt(tmp_path, capsys, out)
    assert (code, again) == (0, out)


@pytest.mark.parametrize("members", ["i32, i32, i1", "i32, i64, i32, i1", "f32, f32, f32, i1", ""])
def test_a_descriptor_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], members: str
) -> None:
    text = _CUTLASS.replace("MEMBERS", members).replace("extractvalue %tile[3]", "undefined %tile")
    text = text.replace("%valid = llvm.undefined %tile : !work", "%valid = arith.constant true")
    code, _, told = opt(tmp_path, capsys, text)
    assert code == 1
    assert "a tile of 3 axes takes 4 whole numbers" in told


# The trivial flag -------------------------------------------------------------------------

_TRIVIAL = """
!smem = !nv_tileas.smem_ref<64x64xf16>
func.func @k(%n: i32, %v: tensor<64x64xf16>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %given = nv_tileas.async.smem_write %v : tensor<64x64xf16> -> !smem
  scf.for %i = %zero to %n step %one : i32 {
    %read = nv_tileas.async.smem_read %given : !smem -> tensor<64x64xf16>
    %own = nv_tileas.async.smem_write %read : tensor<64x64xf16> -> !smem
  }
  func.return
}
"""


def test_a_consumer_that_nobody_produces_for_makes_the_schedule_trivial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passes = ("--tileas-generate-schedule", "--tileas-materialize-schedule=mode=specialized")
    code, out, _ = opt(tmp_path, capsys, _TRIVIAL, *passes)
    assert code == 0
    (program,) = read_programs("k.mlir", out)
    trivial = [pipe.name for pipe in program.pipes if pipe.trivial]
    assert bool(trivial) == (program.flags == TRIVIAL)
    assert trivial, "what is read comes from before the loop"
    assert f"flags = {TRIVIAL} : i64" in out
    with pytest.raises(MlirError, match=r"its flags are 0; its pipes make them 4 \(4: trivial\)"):
        read_programs("k.mlir", out.replace(f", flags = {TRIVIAL} : i64", ""))


def test_a_program_whose_pipes_are_all_filled_has_no_flag() -> None:
    (loop,) = stretto.read(EXAMPLES / "gemm.mlir")
    ready = prepare(loop)
    program = materialize(ready.loop, ready.machine, stretto.schedule(ready), "specialized")
    assert program.flags == 0


# On trust ---------------------------------------------------------------------------------


def _given(*, read: int, starts: bool = True, machine: str = "") -> str:
    """Two loads at once, on the one TMA there is."""

    def at(stage: int, order: int, start: int) -> str:
        said = f"nv_tile.aws.stage = {stage}, nv_tile.aws.order = {order}"
        return f"{{{said}, nv_tile.aws.start = {start}}}" if starts else f"{{{said}}}"

    stage = read // 8
    first = 0 if stage else 2
    of = f', nv_tile.aws.machine = "{machine}"' if machine else ""
    return around(
        f"""%more = nv_tileas.async.tiled_tma_load %A[%row, %zero] {at(0, 1, 0)} : !global -> !smem
    %x = nv_tileas.async.smem_read %load {at(stage, first, read)} : !smem -> tensor<64x64xf16>
    %y = nv_tileas.async.smem_read %more {at(stage, first + 1, read)} : !smem -> tensor<64x64xf16>
""",
        loop=f"{{nv_tile.aws.ii = 8{of}}}",
    ).replace("%A[%row, %zero] :", f"%A[%row, %zero] {at(0, 0, 0)} :", 1)


_MATERIALIZE = "--tileas-materialize-schedule"


@pytest.mark.parametrize("starts", [True, False])
def test_what_the_machine_refuses_is_made_on_trust(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], starts: bool
) -> None:
    text = _given(read=8, starts=starts)
    code, _, told = opt(tmp_path, capsys, text, _MATERIALIZE)
    assert code == 1
    code, out, told = opt(tmp_path, capsys, text, _MATERIALIZE, "--trust-schedule")
    assert code == 0
    assert "k.mlir:10:3: warning: k: materialized on trust; blackwell refuses the schedule" in told
    assert "slot `tma` (capacity 1), 2 is held" in told
    (program,) = read_programs("k.mlir", out)
    ready = prepare(program.loop, "blackwell")
    ran = simulate_program(program, ready.machine, program.starts, 6)
    assert ran.equal
    assert not ran.blocked


def test_dependences_are_checked_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, told = opt(tmp_path, capsys, _given(read=7), _MATERIALIZE, "--trust-schedule")
    assert code == 1
    assert "error: dependence: `x` starts at 7; `load` is ready at 8" in told
    assert "warning" not in told


def test_storages_are_checked_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ring of 30 tiles of 8 KiB is more than shared memory holds."""
    text = _given(read=8 * 29)
    code, _, told = opt(tmp_path, capsys, text, _MATERIALIZE, "--trust-schedule")
    assert code == 1
    assert "error: storage: " in told


def test_a_schedule_for_another_machine_is_no_matter_of_dependences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _given(read=8, machine="b200-pipes")
    on = f"{_MATERIALIZE}=machine=blackwell"
    code, _, told = opt(tmp_path, capsys, text, on)
    assert code == 1
    assert "said to be of machine `b200-pipes`" in told
    code, _, told = opt(tmp_path, capsys, text, on, "--trust-schedule")
    assert code == 0


def test_a_legal_schedule_needs_no_trust(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, told = opt(tmp_path, capsys, _scheduled("gemm"), _MATERIALIZE)
    trusted = opt(tmp_path, capsys, _scheduled("gemm"), _MATERIALIZE, "--trust-schedule")
    assert (code, out, told) == trusted


def test_trust_without_materialization_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, told = opt(tmp_path, capsys, _given(read=8), "--trust-schedule")
    assert code == 2
    assert "--trust-schedule is of tileas-materialize-schedule, which is not run" in told


@pytest.mark.parametrize("starts", [True, False])
def test_simulate_runs_on_trust_what_the_machine_refuses(tmp_path: Path, starts: bool) -> None:
    file = tmp_path / "k.mlir"
    file.write_text(_given(read=8, starts=starts), encoding="utf-8")
    refused = _simulated(file)
    assert refused[0] == 1
    assert ("no starts at II 8" if not starts else "--trust-schedule") in refused[1]
    code, told = _simulated(file, "--trust-schedule")
    assert code == 0
    assert "equal to sequential execution" in told
    assert "note: on trust; blackwell refuses it, 3 violations: of slot `tma`" in " ".join(
        told.split()
    )


@pytest.mark.parametrize(("read", "rule"), [(7, "dependence"), (8 * 29, "storage")])
def test_simulate_trusts_no_wrong_dependence_or_storage(
    tmp_path: Path, read: int, rule: str
) -> None:
    file = tmp_path / "k.mlir"
    file.write_text(_given(read=read), encoding="utf-8")
    code, told = _simulated(file, "--trust-schedule")
    assert code == 1
    assert f"\n  {rule}: " in told
    assert "\n  slot: " not in told


def test_simulate_has_to_have_a_schedule_to_trust(tmp_path: Path) -> None:
    file = tmp_path / "k.mlir"
    file.write_text(around(READ), encoding="utf-8")
    assert _simulated(file)[0] == 0
    code, told = _simulated(file, "--trust-schedule")
    assert code == 1
    assert "has no schedule to trust" in told


def test_python_trusts_as_the_command_line_does() -> None:
    (found,) = read_schedules("k.mlir", _given(read=8))
    assert found.analysis is not None
    with pytest.raises(stretto.StrettoError, match=r"is not legal.*\n  slot"):
        stretto.simulate(found.loop, found.analysis)
    ran = stretto.simulate(found.loop, found.analysis, trust_schedule=True)
    assert ran.success
    assert "on trust; blackwell refuses it, 3 violations" in ran.warnings[-1].text
    program = stretto.materialize(found.loop, found.analysis, trust_schedule=True)
    assert program.starts == {"load": 0, "more": 0, "x": 8, "y": 8}


def _simulated(file: Path, *options: str) -> tuple[int, str]:
    told, wrong = StringIO(), StringIO()
    with redirect_stdout(told), redirect_stderr(wrong):
        code = command_line(["simulate", str(file), *options])
    return code, told.getvalue() + wrong.getvalue()
