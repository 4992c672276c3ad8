"""Tiles that a branch of a loop around products loads, or reads: each side counts what it did.

copy agent      if tile is odd: wait bias_free, copy     bias_phase flips where it was filled
compute agent   if tile is odd: wait bias_full, add it   and handed back there, not every time
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gluon_cases import launched, near
from stretto.api.emitting import emit
from stretto.compile.emitted import EmitMode
from stretto.emission import EmitError

LOAD = (
    "      %bias = tt.descriptor_load %c_desc[%row, %zero] :"
    " !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>"
)
TEXT = """module {
  tt.func public @branched(%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %M: i32 {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}) {
    %cst = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %long = arith.constant 1 : i64
    %width = arith.constant 64 : i64
    %depth = arith.extsi %K : i32 to i64
    %a_desc = tt.make_tensor_descriptor %a_ptr, [%M, %K], [%depth, %long] : <f16>, <tensor<128x64xf16>>
    %b_desc = tt.make_tensor_descriptor %b_ptr, [%K, %c64], [%width, %long] : <f16>, <tensor<64x64xf16>>
    %c_desc = tt.make_tensor_descriptor %c_ptr, [%M, %c64], [%width, %long] : <f16>, <tensor<128x64xf16>>
    %o_desc = tt.make_tensor_descriptor %o_ptr, [%M, %c64], [%width, %long] : <f16>, <tensor<128x64xf16>>
    %tiles = arith.divsi %M, %c128 : i32
    %first = tt.get_program_id x : i32
    %by = tt.get_num_programs x : i32
    scf.for %tile = %first to %tiles step %by  : i32 {
      %row = arith.muli %tile, %c128 : i32
OUTSIDE
      %total = scf.for %k = %zero to %K step %c64 iter_args(%sum = %cst) -> (tensor<128x64xf32>)  : i32 {
        %a = tt.descriptor_load %a_desc[%row, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
        %b = tt.descriptor_load %b_desc[%k, %zero] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
        %next = tt.dot %a, %b, %sum, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
        scf.yield %next : tensor<128x64xf32>
      }
      %rest = arith.remsi %tile, %two : i32
      %odd = arith.cmpi eq, %rest, %one : i32
      %chosen = scf.if %odd -> (tensor<128x64xf32>) {
INSIDE
        %wide = arith.extf %bias : tensor<128x64xf16> to tensor<128x64xf32>
        %added = arith.addf %total, %wide : tensor<128x64xf32>
        scf.yield %added : tensor<128x64xf32>
      } else {
        scf.yield %total : tensor<128x64xf32>
      }
      %narrow = arith.truncf %chosen : tensor<128x64xf32> to tensor<128x64xf16>
      tt.descriptor_store %o_desc[%row, %zero], %narrow : !tt.tensordesc<tensor<128x64xf16>>, tensor<128x64xf16>
    }
    tt.return
  }
}
"""  # noqa: E501


@pytest.mark.parametrize("mode", ["specialized", "unspecialized"])
@pytest.mark.parametrize("place", ["OUTSIDE", "INSIDE"])
def test_a_tile_for_some_steps_is_waited_for_in_those(
    place: str, mode: EmitMode, tmp_path: Path
) -> None:
    text = TEXT.replace(place, LOAD).replace("INSIDE\n", "").replace("OUTSIDE\n", "")
    file = tmp_path / "branched.ttir"
    file.write_text(text)
    source = emit(file, consumers=None if mode == "unspecialized" else 1, mode=mode).source
    rng = np.random.default_rng(0)
    for tiles, blocks, naps in ((6, 1, 0.0), (6, 1, 1.0), (5, 2, 0.5), (1, 1, 0.0)):
        rows, depth = 128 * tiles, 128
        shapes = (rows, depth), (depth, 64), (rows, 64)
        a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in shapes)
        odd = (np.arange(rows) // 128 % 2)[:, None]
        wanted = a.astype(np.float64) @ b.astype(np.float64) + odd * c.astype(np.float64)
        inputs: dict[str, Any] = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": rows, "K": depth}
        inputs["o_ptr"] = np.full((rows, 64), np.nan, np.float16)
        near(launched(source, inputs, (blocks,), naps), {"o_ptr": wanted}, 0.1)


def test_a_branch_that_two_consumers_share_is_refused_with_a_way_out(tmp_path: Path) -> None:
    file = tmp_path / "branch.ttir"
    file.write_text(TEXT.replace("INSIDE", LOAD).replace("OUTSIDE\n", ""))
    with pytest.raises(EmitError) as told:
        emit(file, consumers=2)
    assert f"{file}:" in str(told.value)
    assert "takes `total`, which another agent has in its registers" in str(told.value)
    assert "--consumers 1, or --mode unspecialized" in str(told.value)


def bounded(tmp_path: Path, written: str) -> Path:
    """The kernel with a loop whose end is loaded."""
    text = TEXT.replace("INSIDE", LOAD).replace("OUTSIDE\n", "")
    text = text.replace("to %K step %c64 iter_args", "to %bound step %c64 iter_args")
    loop = "      %total = scf.for"
    text = text.replace(loop, f"      %bound = tt.load %n_ptr : !tt.ptr<i32>\n{written}{loop}")
    file = tmp_path / "bound.ttir"
    file.write_text(text.replace("@branched(", "@branched(%n_ptr: !tt.ptr<i32>, ", 1))
    return file


def test_a_bound_is_loaded_by_each_agent_that_counts_to_it(tmp_path: Path) -> None:
    source = emit(bounded(tmp_path, ""), consumers=1).source
    assert source.count("bound = gl.load(n_ptr)") == 2
    rng = np.random.default_rng(0)
    a, b, c = (
        rng.standard_normal(n).astype(np.float16) for n in ((256, 192), (192, 64), (256, 64))
    )
    odd = (np.arange(256) // 128 % 2)[:, None]
    wanted = a[:, :128].astype(np.float64) @ b[:128].astype(np.float64) + odd * c.astype(np.float64)
    inputs: dict[str, Any] = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": 256, "K": 192}
    inputs |= {"o_ptr": np.full((256, 64), np.nan, np.float16), "n_ptr": np.array([128], np.int32)}
    near(launched(source, inputs, (1,), 0.5), {"o_ptr": wanted}, 0.1)


def test_a_bound_that_the_kernel_writes_is_refused_with_a_way_out(tmp_path: Path) -> None:
    """The agent that copies counts the loop too, and cannot see the other's registers."""
    file = bounded(tmp_path, "      tt.store %n_ptr, %bound : !tt.ptr<i32>\n")
    with pytest.raises(EmitError) as told:
        emit(file, consumers=1, mode="specialized")
    assert "`bound` is loaded by compute into its registers, and copy needs it too" in str(
        told.value
    )
    assert "hand the number to the kernel as an argument" in str(told.value)
