"""Loops over work tiles: made around the work of one block, and told by what arrives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from kernel_cases import CASES
from stretto.ir.opt.__main__ import main as opt

EXAMPLES = Path(__file__).parents[1] / "examples"


def ran(capsys: pytest.CaptureFixture[str], code: int, *argv: str) -> tuple[str, str]:
    assert opt(list(argv)) == code
    told = capsys.readouterr()
    return told.out, told.err


# Made -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("mode", ["sequential", "unspecialized", "specialized"])
def test_a_kernel_made_persistent_computes_the_same(
    blocks: int, mode: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES["matmul_descriptors"]()
    triton = EXAMPLES / "triton" / "matmul_descriptors.ttir"
    text, _ = stretto.import_kernel(triton, "b200-pipes")
    before, after = tmp_path / "before.mlir", tmp_path / "after.mlir"
    before.write_text(text)
    shape = f"problem=256,128 tile=128,128 blocks={blocks}"
    made, _ = ran(capsys, 0, str(before), "-p", f"tileas-make-persistent{{{shape}}}")
    assert f"%blocks = arith.constant {blocks} : i64" in made
    assert "scf.for %tile = %first to %tiles step %blocks : i64 {" in made
    after.write_text(made)
    found = stretto.simulate_kernel(after, case.inputs, (blocks,), mode=mode)
    assert found.success, found.to_text()
    for array, expected in case.expected.items():
        got = found.arrays[array].reshape(expected.shape)
        assert np.allclose(got, expected, rtol=0, atol=case.tolerance), array


def test_what_was_made_is_pipelined_and_materialized(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    triton = EXAMPLES / "triton" / "matmul_descriptors.ttir"
    text, _ = stretto.import_kernel(triton, "b200-pipes")
    file = tmp_path / "k.mlir"
    file.write_text(text)
    passes = (
        "tileas-make-persistent{problem=256,128 tile=128,128 cluster=2,1 blocks=2},"
        "tileas-generate-schedule,tileas-materialize-schedule"
    )
    made, _ = ran(capsys, 0, str(file), "-p", passes)
    assert "cluster = array<i64: 2, 1>" in made
    assert "nv_tileas.async.pipeline.program" in made
    assert "arith.trunci" in made


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ("problem=256,128 tile=128,100", "axis 1: the problem's 128 is no multiple of the tile's"),
        ("problem=256 tile=128,128", "the shapes must have the same number of axes"),
        ("problem=256 tile=128 cluster=2 blocks=3", "a multiple of 2 is needed"),
    ],
)
def test_shapes_must_agree(
    shape: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "k.mlir"
    file.write_text("func.func @k() {\n  func.return\n}\n")
    assert opt([str(file), "-p", f"tileas-make-persistent{{{shape}}}"]) != 0
    assert told in capsys.readouterr().err


def test_what_cannot_go_over_tiles_is_told_at_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "k.mlir"
    file.write_text(
        "func.func @deep() {\n  %z = nv_tileas.block_index {axis = 2} : i32\n  func.return\n}\n"
        "func.func @gives(%x: i32) -> i32 {\n  func.return %x : i32\n}\n"
    )
    _, told = ran(capsys, 1, str(file), "-p", "tileas-make-persistent{problem=8 tile=2}")
    assert "k.mlir:2:8: error: `deep` cannot go over work tiles" in told
    assert "asks for a grid of axis 2; tiles have 1 axes" in told
    assert "k.mlir:5:1: error: `gives` cannot go over work tiles: it returns" in told


def test_what_goes_over_tiles_already_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(EXAMPLES / "persistent_gemm.mlir")
    passes = "tileas-make-persistent{problem=4096,4096 tile=128,128}"
    made, told = ran(capsys, 0, file, "-p", passes)
    assert "warning: `persistent_gemm` goes over work tiles already" in told
    assert made.count("work_tile_info") == 1


def test_counts_of_blocks_become_counts_of_tiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "k.mlir"
    file.write_text(
        "func.func @k() {\n  %n = nv_tileas.block_count {axis = 0} : i32\n"
        "  %m = arith.addi %n, %n : i32\n  func.return\n}\n"
    )
    made, _ = ran(capsys, 0, str(file), "-p", "tileas-make-persistent{problem=24 tile=2}")
    assert "%n = arith.constant 12 : i32" in made
    assert "block_count" not in made


# Arrived --------------------------------------------------------------------------------------

ARRIVES = """
!ptrs = tensor<3x!nv_tileas.ptr<i32>>
func.func @arrives(%table: !nv_tileas.ptr<i32>, %out: !nv_tileas.ptr<i32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %hundred = arith.constant 100 : i32
  %lanes = nv_tileas.range {start = 0 : i64, end = 3 : i64} : tensor<3xi32>
  scf.for %i = %zero to %n step %one : i32 {
    %first = arith.muli %i, %three : i32
    %row = nv_tileas.offset %table, %first : !nv_tileas.ptr<i32>, i32 -> !nv_tileas.ptr<i32>
    %rows = nv_tileas.splat %row : !nv_tileas.ptr<i32> -> !ptrs
    %at = nv_tileas.offset %rows, %lanes : !ptrs, tensor<3xi32> -> !ptrs
    %info = nv_tileas.pointer.load %at : !ptrs -> tensor<3xi32>
    %m, %k, %valid = nv_tileas.work_tile_info %info
        {tile = array<i64: 1, 1>, cluster = array<i64: 1, 1>} : tensor<3xi32> -> i32, i32, i1
    %far = arith.muli %m, %hundred : i32
    %sum = arith.addi %far, %k : i32
    %there = arith.select %valid, %sum, %zero : i32
    %place = nv_tileas.offset %out, %i : !nv_tileas.ptr<i32>, i32 -> !nv_tileas.ptr<i32>
    nv_tileas.pointer.store %place, %there : !nv_tileas.ptr<i32>, i32
  }
  func.return
}
"""


def test_info_that_arrives_is_what_was_read(tmp_path: Path) -> None:
    file = tmp_path / "k.mlir"
    file.write_text(ARRIVES)
    table = np.array([[4, 2, 1], [7, 9, 0], [1, 3, 1]], dtype=np.int32)
    inputs = {"table": table.reshape(-1), "out": np.zeros(3, dtype=np.int32), "n": 3}
    found = stretto.simulate_kernel(file, inputs, mode="sequential")
    assert found.arrays["out"].tolist() == [402, 0, 103]


OUTER = """
!a = !nv_tileas.tensor<4096x?xf16, global>
!t = !nv_tileas.smem_ref<128x64xf16>
!info = !nv_tileas.smem_ref<3xi32>
!next = !nv_tileas.tensor<?xi32, global>
func.func @dynamic(%A: !a, %next: !next, %steps: i32, %most: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %extent = arith.constant 128 : i32
  scf.for %turn = %zero to %most step %one : i32 {
    %fetched = nv_tileas.async.tiled_tma_load %next[%turn] : !next -> !info
    %arrived = nv_tileas.async.smem_read %fetched : !info -> tensor<3xi32>
    %m, %n, %valid = nv_tileas.work_tile_info %arrived
        {tile = array<i64: 128, 128>, cluster = array<i64: 1, 1>} : tensor<3xi32> -> i32, i32, i1
    %row = arith.muli %m, %extent : i32
    scf.for %k = %zero to %steps step %one : i32 {
      %load = nv_tileas.async.tiled_tma_load %A[%row, %k] : !a -> !t
      %read = nv_tileas.async.smem_read %load : !t -> tensor<128x64xf16>
    }
  }
  func.return
}
"""


def test_a_loop_is_one_over_tiles_where_their_info_arrives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loop inside is pipelined; what arrives is widened, as an index would be."""
    file = tmp_path / "k.mlir"
    file.write_text(OUTER)
    passes = "tileas-generate-schedule,tileas-materialize-schedule"
    made, told = ran(capsys, 0, str(file), "-p", passes)
    assert "error" not in told
    assert "nv_tileas.arith.extsi %arrived : tensor<3xi32> -> tensor<3xi64>" in made
    assert "work_tile_info %arrived" in made
    assert ": tensor<3xi64> -> i64, i64, i1" in made
    assert "scf.for %turn = %zero to %most step %one : i32 {" in made
    assert "nv_tileas.async.pipeline.program" in made


@pytest.mark.parametrize(
    ("arrived", "results", "told"),
    [
        ("tensor<2xi32>", "i32, i32, i1", "arrives as tensor<2xi32>; a tile of 2 axes takes 3"),
        ("tensor<3xf32>", "f32, f32, i1", "arrives as tensor<3xf32>; a tile of 2 axes takes 3"),
        ("tensor<3xi32>", "i32, i64, i1", "coordinate 1 is i64, the index i32"),
        ("tensor<3xi32>", "i32, i1", "has 2 results; a problem of 2 axes needs 3"),
        ("tensor<3xi32>", "i32, i32, i8", "the validity is i8; it must be i1"),
    ],
)
def test_what_arrives_must_be_in_one_representation(
    arrived: str, results: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ", ".join(f"%r{i}" for i in range(results.count(",") + 1))
    shape = "{tile = array<i64: 1, 1>, cluster = array<i64: 1, 1>}"
    file = tmp_path / "k.mlir"
    file.write_text(
        f"func.func @k(%x: {arrived}) {{\n"
        f"  {names} = nv_tileas.work_tile_info %x {shape} : {arrived} -> {results}\n"
        "  func.return\n}\n"
    )
    _, said = ran(capsys, 1, str(file))
    assert told in said
