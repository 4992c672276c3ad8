"""Loops with scf.if and scf.while in them as programs: written, read back, run on values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from stretto.ir import read_mlir, read_programs
from stretto.ir.opt.__main__ import main
from stretto.materialization import Mode, materialize
from stretto.resources.prepare import prepare
from stretto.simulation.simulator import simulate_program

HEAD = """
!global = !nv_tileas.tensor<4096x64xf16, global>
!smem = !nv_tileas.smem_ref<64x64xf16>
!tile = tensor<64x64xf16>
func.func @k(%A: !global, %B: !global, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %rows = arith.constant 64 : i32
  %start = arith.constant dense<0.0> : !tile
"""
SUMS = """
  %sum = scf.for %row = %zero to %n step %rows iter_args(%acc = %start) -> (!tile) : i32 {
    %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] : !global -> !smem
    %big = arith.cmpi sgt, %row, %rows : i32
    %m = scf.if %big -> (!tile) {
      %read = nv_tileas.async.smem_read %load : !smem -> !tile
      %x = arith.addf %read, %read : !tile
      %y = arith.addf %x, %acc : !tile
      scf.yield %y : !tile
    } else {
      %two = arith.constant dense<2.0> : !tile
      %z = arith.addf %acc, %two : !tile
      scf.yield %z : !tile
    }
    %w = arith.mulf %m, %m : !tile
    nv_tileas.store %w to %B[%row, %zero] : !tile -> !global
    scf.yield %m : !tile
  }
  nv_tileas.store %sum to %A[%zero, %zero] : !tile -> !global
  func.return
}
"""
"""Which side runs depends on the counter; one side reads the tile, both the sum so far."""
ROUNDS = """
  scf.for %row = %zero to %n step %rows : i32 {
    %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] : !global -> !smem
    %often = arith.divsi %row, %rows : i32
    %read = nv_tileas.async.smem_read %load : !smem -> !tile
    %w, %k = scf.while (%a = %read, %i = %zero) : (!tile, i32) -> (!tile, i32) {
      %go = arith.cmpi slt, %i, %often : i32
      scf.condition(%go) %a, %i : !tile, i32
    } do {
    ^bb0(%b: !tile, %j: i32):
      %other = nv_tileas.async.tiled_tma_load %A[%j, %zero] : !global -> !smem
      %more = nv_tileas.async.smem_read %other : !smem -> !tile
      %x = arith.addf %b, %more : !tile
      %next = arith.addi %j, %one : i32
      scf.yield %x, %next : !tile, i32
    } attributes {stretto.trip_count = 3}
    nv_tileas.store %w to %B[%row, %zero] : !tile -> !global
  }
  func.return
}
"""
"""Another number of turns in each iteration; each turn loads into a buffer of the loop's own."""
FILLS = """
  %buffer = nv_tileas.alloc_tensor : !smem
  scf.for %row = %zero to %n step %rows : i32 {
    %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] : !global -> !smem
    %read = nv_tileas.async.smem_read %load : !smem -> !tile
    %first = arith.cmpi slt, %row, %one : i32
    %kept = scf.if %first -> (!smem) {
      %own = nv_tileas.alloc_tensor : !smem
      %put = nv_tileas.async.smem_write %read into %own : !tile -> !smem
      %got = nv_tileas.async.smem_read %put : !smem -> !tile
      %twice = arith.addf %got, %got : !tile
      %filled = nv_tileas.async.smem_write %twice into %buffer : !tile -> !smem
      scf.yield %filled : !smem
    } else {
      scf.yield %buffer : !smem
    }
    %held = nv_tileas.async.smem_read %kept : !smem -> !tile
    %w = arith.addf %held, %read : !tile
    nv_tileas.store %w to %B[%row, %zero] : !tile -> !global
  }
  func.return
}
"""
"""Only the first iteration fills the buffer that all of them read."""
PRODUCTS = """
!g = !nv_tileas.tensor<4096x64xf16, global>
!smem = !nv_tileas.smem_ref<64x64xf16>
!tmem = !nv_tileas.tmem_ref<64x64xf32>
!tile = tensor<64x64xf32>
func.func @k(%A: !g, %B: !g, %C: !nv_tileas.tensor<64x64xf32, global>, %n: i32) {
  %zero = arith.constant 0 : i32
  %rows = arith.constant 64 : i32
  %init = arith.constant dense<0.0> : !tile
  %acc1 = nv_tileas.alloc_tensor : !tmem
  %acc0 = nv_tileas.async.tmem_store %init into %acc1 : !tile -> !tmem
  %acc = scf.for %row = %zero to %n step %rows iter_args(%sum = %acc0) -> (!tmem) : i32 {
    %a = nv_tileas.async.tiled_tma_load %A[%row, %zero] : !g -> !smem
    %b = nv_tileas.async.tiled_tma_load %B[%row, %zero] : !g -> !smem
    %big = arith.cmpi sgt, %row, %rows : i32
    %s = scf.if %big -> (!tmem) {
      %t = nv_tileas.async.tcgen05_mma %a, %b acc %sum : !smem, !smem -> !tmem
      scf.yield %t : !tmem
    } else {
      scf.yield %sum : !tmem
    }
    scf.yield %s : !tmem
  }
  %out = nv_tileas.async.tmem_load %acc : !tmem -> !tile
  nv_tileas.store %out to %C[%zero, %zero] : !tile -> !nv_tileas.tensor<64x64xf32, global>
  func.return
}
"""
CASES = {"sums": SUMS, "rounds": ROUNDS, "fills": FILLS}
MODES: tuple[Mode, ...] = ("unspecialized", "specialized")


def expected(name: str, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What B holds afterwards, tile by tile, as one would write it down by hand."""
    tiles = [a[at : at + 64] for at in range(0, len(a), 64)]
    made: list[np.ndarray[Any, Any]] = []
    total = np.zeros((64, 64), np.float16)
    for n, tile in enumerate(tiles):
        if name == "sums":
            total = (tile + tile) + total if n > 1 else total + np.float16(2)
            made.append(total * total)
        elif name == "rounds":
            turn = tile
            for j in range(n):
                turn = turn + a[j : j + 64]
            made.append(turn)
        else:
            made.append(tiles[0] + tiles[0] + tile)
    return np.concatenate(made)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_a_program_with_control_flow_is_written_and_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, mode: Mode
) -> None:
    text = HEAD + CASES[name]
    file = tmp_path / "k.mlir"
    file.write_text(text, encoding="utf-8")
    passes = ("--tileas-generate-schedule", f"--tileas-materialize-schedule=mode={mode}")
    assert main([str(file), *passes]) == 0
    out = capsys.readouterr().out
    (program,) = read_programs("k.mlir", out)
    loop = read_mlir("k.mlir", text)[0][0]
    ready = prepare(loop, "blackwell")
    made = materialize(ready.loop, ready.machine, stretto.schedule(ready), mode)
    assert program == made
    ran = simulate_program(program, ready.machine, program.starts, 6)
    assert ran.equal
    assert not ran.violations
    assert ("scf.while" in out) is (name == "rounds")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_both_sides_run_on_real_values(tmp_path: Path, name: str, mode: Mode) -> None:
    file = tmp_path / "k.mlir"
    file.write_text(HEAD + CASES[name], encoding="utf-8")
    a = np.random.default_rng(1).standard_normal((320, 64)).astype(np.float16)
    inputs = {"A": a, "B": np.zeros_like(a), "n": 320}
    found = stretto.simulate_kernel(file, inputs, (1,), "blackwell", mode=mode)
    assert found.success, found.to_text()
    assert list(found.iterations.values()) == [5], "by its program, not as it stands"
    assert np.array_equal(found.arrays["B"], expected(name, a))


def test_a_region_that_takes_another_slot_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sum in the kernel, taken from a pipe, becomes the one from before the loop."""
    file = tmp_path / "k.mlir"
    file.write_text(HEAD + SUMS, encoding="utf-8")
    assert main([str(file), "--tileas-generate-schedule", "--tileas-materialize-schedule"]) == 0
    out = capsys.readouterr().out
    kernel = out.index("scf.for")
    at = out.index("arith.addf %x", kernel)
    end = out.index(" : ", at)
    wrong = out[:at] + out[at:end].rpartition("%")[0] + "%start" + out[end:]
    with pytest.raises(stretto.StrettoError, match="`m`: operand `m` comes from outside"):
        read_programs("k.mlir", wrong)


def test_a_loop_in_an_if_has_no_program_and_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        HEAD
        + """
  scf.for %row = %zero to %n step %rows : i32 {
    %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] : !global -> !smem
    %read = nv_tileas.async.smem_read %load : !smem -> !tile
    %first = arith.cmpi slt, %row, %one : i32
    scf.if %first {
      scf.for %j = %zero to %rows step %one : i32 {
        %x = arith.addf %read, %read : !tile
      }
    }
  }
  func.return
}
"""
    )
    file = tmp_path / "k.mlir"
    file.write_text(text, encoding="utf-8")
    passes = ("--tileas-generate-schedule", "--tileas-materialize-schedule")
    assert main([str(file), *passes]) == 0
    told = capsys.readouterr().err
    assert "is a loop inside it, or has one; materialize it alone, or unroll it" in told
    assert "k.mlir:16:7: note" in told


def test_a_comparison_keeps_its_schedule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The custom form of arith.cmpi has no place for attributes."""
    file = tmp_path / "k.mlir"
    file.write_text(HEAD + SUMS, encoding="utf-8")
    assert main([str(file), "--tileas-generate-schedule"]) == 0
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main([str(file), "--tileas-verify-schedule", "--remarks-filter=Passed"]) == 0
    assert "k: legal on blackwell" in capsys.readouterr().err


def test_a_product_under_a_condition_adds_up(tmp_path: Path) -> None:
    """One side adds to the sum that the loop carries, the other hands it on as it is."""
    file = tmp_path / "k.mlir"
    file.write_text(PRODUCTS, encoding="utf-8")
    numbers = np.random.default_rng(2)
    a, b = (numbers.standard_normal((320, 64)).astype(np.float16) for _ in range(2))
    inputs = {"A": a, "B": b, "C": np.zeros((64, 64), np.float32), "n": 320}
    tiles = [(x.astype(np.float32), y.astype(np.float32)) for x, y in zip(a, b, strict=True)]
    wanted = np.zeros((64, 64), np.float32)
    for at in range(128, 320, 64):
        left, right = (np.stack([t[n] for t in tiles[at : at + 64]]) for n in (0, 1))
        wanted = wanted + left @ right
    for mode in MODES:
        found = stretto.simulate_kernel(file, inputs, (1,), "blackwell", mode=mode)
        assert found.success, found.to_text()
        assert found.iterations == {"k": 5}
        assert np.array_equal(found.arrays["C"], wanted)
