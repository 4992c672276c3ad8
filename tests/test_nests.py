"""Nests: a loop of any length inside is scheduled around; one loop never costs the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stretto
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.ir import read_mlir
from stretto.ir.parsing import parse_module
from stretto.ir.passes.generate_schedule import GenerateSchedule
from stretto.ir.telling import PassError
from stretto.limits import CYCLES
from stretto.machine import load_machine
from stretto.verification import verify

NEST = """
!smem = !nv_tileas.smem_ref<64x64xf16>
!global = !nv_tileas.tensor<4096x64xf16, global>
func.func @nest(%A: !global, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %k = arith.constant TRIPS : i32
  scf.for %t = %zero to %n step %one : i32 {
    %p = nv_tileas.async.tiled_tma_load %A[%t, %zero] : !global -> !smem
    scf.for %i = %zero to %k step %one : i32 {
      %0 = nv_tileas.async.tiled_tma_load %A[%i, %zero] : !global -> !smem
      %1 = nv_tileas.async.smem_read %0 : !smem -> tensor<64x64xf16>
    }
    %q = nv_tileas.async.smem_read %p : !smem -> tensor<64x64xf16>
  }
  func.return
}
"""
UNKNOWN = """
func.func @two(%n: index, %x: f32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one { %a = arith.negf %x : f32 }
  scf.for %i = %zero to %n step %one {
    %b = arith.negf %x
        {stretto.latency = 1, stretto.uses = [{slot = "nowhere", duration = 1}]} : f32
  }
  func.return
}
"""


def nest(trips: int) -> str:
    return NEST.replace("TRIPS", str(trips))


@settings(max_examples=25, deadline=None)
@given(trips=st.integers(1, 100_000), machine=st.sampled_from(["blackwell", "b200-pipes", "h200"]))
def test_a_loop_of_any_length_inside_is_scheduled_around(trips: int, machine: str) -> None:
    target = load_machine(machine)
    (outer, inner), notes = read_mlir("nest.mlir", nest(trips), target)
    assert notes == ()
    found = [stretto.schedule(loop, target) for loop in (outer, inner)]
    assert all(one.success for one in found)
    around, turn = found
    assert around.ii is not None
    assert turn.bounds is not None
    assert around.ii >= (trips - 1) * turn.bounds.mii
    ready = stretto.prepare(outer, target)
    assert not verify(ready.loop, ready.machine, around)


def test_a_loop_inside_that_is_too_long_leaves_alone_the_one_around_it() -> None:
    (loop,), (note,) = read_mlir("nest.mlir", nest(CYCLES))
    assert loop.name == "nest.1"
    assert "warning: loop `nest.0` is left alone: inner loop `nest.1` takes " in note.text
    assert f"at most {CYCLES:,} are allowed" in note.text


def test_stated_lengths_that_add_up_to_too_much_leave_one_loop_alone() -> None:
    stated = f"{{stretto.latency = {CYCLES}, stretto.uses = []}}"
    read = "%q = nv_tileas.async.smem_read %p : !smem -> tensor<64x64xf16>"
    long = "\n".join(
        f"%l{n} = nv_tileas.async.smem_read %p {stated} : !smem -> tensor<64x64xf16>"
        for n in range(4)
    )
    costs = "{stretto.latency = 8, stretto.uses = []}"
    text = nest(10).replace(read, long)
    text = text.replace("[%t, %zero] :", f"[%t, %zero] {costs} :").replace(
        "    }\n", f"    }} {costs}\n", 1
    )
    (loop,), (note,) = read_mlir("nest.mlir", text)
    assert loop.name == "nest.1"
    assert "nest.0` is left alone: one after the other, the operations take 40,000," in note.text


def test_one_loop_that_does_not_run_on_the_machine_leaves_the_other() -> None:
    (loop,), (note,) = read_mlir("two.mlir", UNKNOWN, "blackwell")
    assert loop.name == "two.0"
    assert note.text.startswith("two.mlir:8:")
    assert "warning: loop `two.1` is left alone: `b` uses slot `nowhere`" in note.text
    alone = UNKNOWN.replace("scf.for %i = %zero to %n step %one { %a = arith.negf %x : f32 }", "")
    with pytest.raises(StrettoError, match="error: `b` uses slot `nowhere`"):
        read_mlir("two.mlir", alone, "blackwell")


def test_the_command_schedules_what_it_can(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.mlir"
    file.write_text(UNKNOWN)
    assert main(["schedule", str(file), "--machine", "blackwell"]) == 0
    told = capsys.readouterr()
    assert "two.0 on blackwell: II " in told.out
    assert "loop `two.1` is left alone" in told.out + told.err


def test_the_pass_publishes_on_the_loops_that_have_a_schedule(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(text: str, strict: bool = False) -> str:
        module = parse_module(text, "two.mlir").module
        GenerateSchedule(machine="blackwell", strict=strict).apply(None, module)  # type: ignore[arg-type]
        return str(module)

    assert run(UNKNOWN).count("nv_tile.aws.ii") == 1
    assert "warning: two.1: left alone: `b` uses slot `nowhere`" in capsys.readouterr().err
    with pytest.raises(PassError):
        run(UNKNOWN, strict=True)


def test_far_dependences_of_the_loop_inside_still_have_their_ceiling() -> None:
    slow = "{stretto.latency = 5000, stretto.uses = []}"
    text = nest(10).replace("[%i, %zero] :", f"[%i, %zero] {slow} :")
    with pytest.raises(StrettoError, match="5000 cycles from far memory"):
        read_mlir("nest.mlir", text, "blackwell")
    (outer, _), _ = read_mlir("nest.mlir", nest(10), "blackwell")
    free = replace(load_machine("blackwell"), ceilings=())
    assert len(read_mlir("nest.mlir", text, free)[0]) == 2
    assert outer.name == "nest.0"
