"""Kernels for a machine whose products add up in tensor memory: what is emitted does what NumPy
does, and bugs are caught."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from test_emit import GEMM, SLOW, TRIPS, gemm, instead, part, without

from gluon_cases import holds, launched, near, shipped
from gluon_emulator import EmulationError
from stretto.api.emitting import emit
from stretto.compile.candidates import STAGES
from stretto.compile.emitted import EmitMode, EmittedKernel
from stretto.emission import EmitError
from stretto.errors import StrettoError
from stretto.program.builder.sums import Sum, fit
from stretto.program.layouts import Lanes

KERNELS = [
    *("triton/matmul_descriptors", "triton/matmul_persistent", "triton/matmul_fused"),
    *("cutile/matmul", "cutile/matmul_persistent", "cutile/matmul_bias_silu"),
]
MODES: list[EmitMode] = ["specialized", "unspecialized"]


@cache
def made(name: str, mode: EmitMode = "specialized", depth: int | None = None) -> EmittedKernel:
    """Of the first stage count that is tried: any has to be right."""
    with patch.dict(STAGES, {mode: STAGES[mode][:1]}):
        return emit(shipped(name), "b200", mode=mode, depth=depth)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("mode", MODES)
def test_products_in_tensor_memory_do_what_numpy_does(name: str, mode: EmitMode) -> None:
    holds(name, made(name, mode).source)


def test_one_group_of_warps_may_load_by_addresses() -> None:
    holds("triton/matmul_pointers", made("triton/matmul_pointers", "unspecialized").source)


@pytest.mark.parametrize("mode", MODES)
def test_a_product_of_any_trip_count(mode: EmitMode) -> None:
    for trips in TRIPS:
        gemm(made(GEMM, mode).source, trips)


def persistent(
    source: str, trips: int, naps: float = 0.0, tiles: int = 3, first: float = 0.0
) -> None:
    """Some tiles by one block, so that sums are begun again."""
    columns = 128 * tiles
    rng = np.random.default_rng(trips)
    depth = max(1, 64 * trips - 24)
    a, b = (rng.standard_normal((n, depth)).astype(np.float16) for n in (128, columns))
    used = depth if trips else 0
    wanted = first + a[:, :used].astype(np.float64) @ b[:, :used].astype(np.float64).T
    inputs = {"a_desc": a, "b_desc": b, "c_desc": np.full((128, columns), np.nan, np.float16)}
    after = launched(source, {**inputs, "M": 128, "N": columns, "K": used}, (1,), naps)
    near(after, {"c_desc": wanted}, 0.1)


@pytest.mark.parametrize("mode", MODES)
def test_a_persistent_product_of_any_trip_count(mode: EmitMode) -> None:
    for trips in TRIPS:
        persistent(made("triton/matmul_persistent", mode).source, trips)


def test_products_wait_for_nobody_and_threads_for_the_sum_alone() -> None:
    source = made("triton/matmul_persistent").source
    agent = source.partition("def product_agent(")[2].partition("\n@gluon")[0]
    assert "mbarrier.arrive" not in agent
    assert agent.count("tcgen05_commit(") == 3  # slots of a and b, and the sum
    assert "allocate_tensor_memory(gl.float32, [2, 128, 128]" in source
    assert "warpgroup_mma" not in source


# Bugs in the text ---------------------------------------------------------------------------------

DEPTH = 3
BUGS: dict[str, Callable[[str], str]] = {
    "slots are handed back while products read them": lambda s: part(
        s,
        "product_agent",
        lambda lines: [
            x.replace("tcgen05_commit(", "mbarrier.arrive(") if "_tile_free" in x else x
            for x in lines
        ],
    ),
    "a slot is never handed back": lambda s: without(
        s, "tcgen05_commit(a_tile_free", "product_agent"
    ),
    "products begin before their tiles have come": lambda s: without(
        s, "_tile_full.index", "product_agent"
    ),
    "slots are filled before they are free": lambda s: without(s, "mbarrier.wait(", "copy_agent"),
    "a sum is read before it is whole": lambda s: without(s, "mbarrier.wait(total_full"),
    "a sum is told to be whole too early": lambda s: instead(
        s, "tcgen05_commit(total_full", "mbarrier.arrive(total_full", "product_agent"
    ),
    "a sum is begun anew before it was read": lambda s: without(
        s, "mbarrier.wait(total_free", "product_agent"
    ),
    "a sum is handed back before it was read": lambda s: instead(
        s, "total_phase = 0", "total_phase = 1"
    ),
    "a sum is never handed back": lambda s: without(s, "mbarrier.arrive(total_free"),
    "the first product adds to what was there": lambda s: re.sub(r", use_acc=.*\)", ")", s),
    "every product begins anew": lambda s: re.sub(r"use_acc=.*\)", "use_acc=False)", s),
    "products count a copy of the sum less than there are": lambda s: instead(
        s, "total_phase, 2)", "total_phase, 1)", "product_agent"
    ),
    "one warp reads tensor memory": lambda s: s.replace('"num_warps": 4', '"num_warps": 1'),
}


def both(source: str) -> None:
    """Five sums one after the other, of one product each, then of four."""
    for trips in (1, 4):
        persistent(source, trips, SLOW, tiles=5)


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_the_text_is_caught(bug: str) -> None:
    source = made("triton/matmul_persistent", depth=DEPTH).source
    changed = BUGS[bug](source)
    assert changed != source
    with pytest.raises((EmulationError, AssertionError)):
        both(changed)


def test_without_a_bug_nothing_is_caught() -> None:
    both(made("triton/matmul_persistent", depth=DEPTH).source)


# Where a sum begins -------------------------------------------------------------------------------

BEGUN = """module {
  tt.func public @begun(%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}) {
    %first = arith.constant dense<FIRST> : tensor<ROWSx64xf32>
    %one = arith.constant 1 : i64
    %zero = arith.constant 0 : i32
    %width = arith.constant 64 : i64
    %size = arith.constant 64 : i32
    %rows = arith.constant ROWS : i32
    %long = arith.extsi %K : i32 to i64
    %a_desc = tt.make_tensor_descriptor %a_ptr, [%rows, %K], [%long, %one] : <f16>, <tensor<ROWSx64xf16>>
    %b_desc = tt.make_tensor_descriptor %b_ptr, [%K, %size], [%width, %one] : <f16>, <tensor<64x64xf16>>
    %c_desc = tt.make_tensor_descriptor %c_ptr, [%rows, %size], [%width, %one] : <f16>, <tensor<ROWSx64xf16>>
    %c = scf.for %k = %zero to %K step %size iter_args(%total = %first) -> (tensor<ROWSx64xf32>)  : i32 {
      %a = tt.descriptor_load %a_desc[%zero, %k] : !tt.tensordesc<tensor<ROWSx64xf16>> -> tensor<ROWSx64xf16>
      %b = tt.descriptor_load %b_desc[%k, %zero] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %next = tt.dot %a, %b, %total, inputPrecision = tf32 : tensor<ROWSx64xf16> * tensor<64x64xf16> -> tensor<ROWSx64xf32>
      scf.yield %next : tensor<ROWSx64xf32>
    }
    %narrow = arith.truncf %c : tensor<ROWSx64xf32> to tensor<ROWSx64xf16>
    tt.descriptor_store %c_desc[%zero, %zero], %narrow : !tt.tensordesc<tensor<ROWSx64xf16>>, tensor<ROWSx64xf16>
    tt.return
  }
}
"""  # noqa: E501


def begun(folder: Path, rows: int, first: float) -> Path:
    file = folder / "begun.ttir"
    file.write_text(BEGUN.replace("ROWS", str(rows)).replace("FIRST", f"{first:e}"))
    return file


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("rows", "first"), [(128, 2.5), (64, 0.0), (64, -1.0)])
def test_a_sum_begins_with_what_the_kernel_says(
    rows: int, first: float, mode: EmitMode, tmp_path: Path
) -> None:
    source = emit(begun(tmp_path, rows, first), "b200", mode=mode).source
    assert (".store(" in source.partition("warp_specialize")[0]) or mode == "unspecialized"
    for depth in (0, 64, 320):
        rng = np.random.default_rng(depth)
        a = rng.standard_normal((rows, max(depth, 1))).astype(np.float16)
        b = rng.standard_normal((max(depth, 1), 64)).astype(np.float16)
        wanted = first + a[:, :depth].astype(np.float64) @ b[:depth]
        inputs: dict[str, Any] = {"a_ptr": a, "b_ptr": b, "K": depth}
        inputs["c_ptr"] = np.full((rows, 64), np.nan, np.float16)
        near(launched(source, inputs, (1,), 0.5), {"c_ptr": wanted}, 0.1)


def alone(text: str) -> str:
    """One product instead of a loop of them."""
    head, _, loop = text.partition("    %c = scf.for")
    steps, _, end = loop.partition("    }\n")
    lines = [x.strip() for x in steps.splitlines()[1:-1]]
    body = "\n".join(lines).replace("%k", "%zero").replace("%total", "%first")
    return head + body.replace("%next", "%c") + "\n" + end


def twice(text: str) -> str:
    """A second loop that goes on where the first ends."""
    head, _, loop = text.partition("    %c = scf.for")
    steps, _, end = loop.partition("    }\n")
    again = "    %d = scf.for" + steps.replace("%total = %first", "%total = %c") + "    }\n"
    return head + "    %c = scf.for" + steps + "    }\n" + again + end.replace("f %c :", "f %d :")


def perhaps(text: str) -> str:
    """Only where there is something to add."""
    text = text.replace("    %c = scf.for", "    scf.if %go {\n    %c = scf.for")
    text = text.replace("    scf.if", "    %go = arith.cmpi sgt, %K, %zero : i32\n    scf.if")
    return text.replace("    tt.return", "    }\n    tt.return")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [alone, twice, perhaps])
def test_a_sum_grows_wherever_it_stands(
    shape: Callable[[str], str], mode: EmitMode, tmp_path: Path
) -> None:
    file = begun(tmp_path, 128, 0.0)
    file.write_text(shape(file.read_text()))
    source = emit(file, "b200", mode=mode).source
    for depth in (64,) if shape is alone else (0, 64, 192):
        rng = np.random.default_rng(depth)
        a = rng.standard_normal((128, max(depth, 1))).astype(np.float16)
        b = rng.standard_normal((max(depth, 1), 64)).astype(np.float16)
        wanted = (1 + (shape is twice)) * (a[:, :depth].astype(np.float64) @ b[:depth])
        inputs: dict[str, Any] = {"a_ptr": a, "b_ptr": b, "K": depth}
        inputs["c_ptr"] = np.zeros((128, 64), np.float16)
        near(launched(source, inputs, (1,), 0.3), {"c_ptr": wanted}, 0.2)


@pytest.mark.parametrize("mode", MODES)
def test_sums_that_are_filled_are_begun_again(mode: EmitMode, tmp_path: Path) -> None:
    file = tmp_path / "persistent.ttir"
    text = shipped("triton/matmul_persistent").read_text()
    file.write_text(text.replace("dense<0.000000e+00>", "dense<1.500000e+00>"))
    source = emit(file, "b200", mode=mode).source
    for trips in (0, 1, 3):
        persistent(source, trips, 0.5, tiles=5, first=1.5)


# Refusals -----------------------------------------------------------------------------------------


def refused(kernel: Path, **asked: Any) -> str:
    with pytest.raises(StrettoError) as error:
        emit(kernel, "b200", **asked)
    return str(error.value)


def test_a_sum_that_steps_read_is_refused_at_its_place() -> None:
    told = refused(shipped("triton/attention_forward_d64"))
    assert told.startswith("attention_forward.py:29:28: error: `async.tcgen05_mma` of a sum that")


def test_rows_that_tensor_memory_does_not_have_are_refused(tmp_path: Path) -> None:
    told = refused(begun(tmp_path, 32, 0.0))
    assert "begun.ttir:13:" in told
    assert "a sum of 32 x 64 f32 has no Gluon yet (64 or 128 rows of f32 have)" in told


def test_threads_hand_no_tile_to_another_agent() -> None:
    told = refused(Path(__file__).parents[1] / "ttir" / "views" / "ones.ttir", mode="specialized")
    assert (
        "to another agent, which has no Gluon yet (--mode unspecialized has one warpgroup" in told
    )


def test_a_store_that_has_no_gluon_is_not_left_out() -> None:
    told = refused(shipped("triton/x").parents[1] / "gemm.mlir")
    assert "gemm.mlir:27:3: error: `store` has no Gluon yet" in told


def test_there_is_one_consumer() -> None:
    assert refused(shipped(GEMM), consumers=2) == "2 consumers; b200 has 1"


def test_more_tensor_memory_than_there_is_is_refused() -> None:
    """64 rows take as many columns as 128 do."""
    sums = [Sum("s", (64, 256), "product", "compute", None, True, (), (), True) for _ in range(3)]
    with pytest.raises(EmitError, match="768 columns of tensor memory are needed, there are 512"):
        fit(sums, 262144)
    fit(sums[:1], 262144)
    assert sums[0].depth == 2


def test_a_sum_is_laid_out_as_warps_reach_it() -> None:
    assert Lanes(128, 256, 8).text == "gl.BlockedLayout([1, 128], [32, 1], [4, 2], [0, 1])"
    assert Lanes(64, 128, 4).text == "gl.BlockedLayout([1, 64], [16, 2], [4, 1], [0, 1])"
