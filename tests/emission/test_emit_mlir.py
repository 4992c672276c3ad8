"""Kernels in MLIR as Gluon: what `stretto import` wrote is emitted as the kernel itself is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import stretto
from gluon_cases import emitted, holds, shipped
from stretto.api.emitting import emit
from stretto.compile.candidates import STAGES
from stretto.compile.emitted import EmittedKernel
from stretto.emission import EmitError
from stretto.errors import StrettoError
from stretto.frontends.triton import read_ttir
from stretto.kernel import Kernel

GEMM = "triton/matmul_descriptors"
NAMES = [GEMM, "triton/matmul_persistent", "cutile/softmax", "cutile/matmul"]


def imported(folder: Path, kernel: Path | Kernel, consumers: int = 1) -> Path:
    file = folder / f"imported-{consumers}.mlir"
    file.write_text(stretto.import_kernel(kernel, "h200", consumers=consumers)[0])
    return file


def once(file: Path) -> EmittedKernel:
    """Of the first stage count that is tried."""
    with patch.dict(STAGES, {mode: stages[:1] for mode, stages in STAGES.items()}):
        return emit(file)


@pytest.mark.parametrize("name", NAMES)
def test_a_module_is_emitted_as_its_kernel_is(name: str, tmp_path: Path) -> None:
    products = "softmax" not in name
    found = once(imported(tmp_path, shipped(name)))
    direct = emitted(name, 1, "specialized" if products else "unspecialized")
    assert found.source == direct.source
    apart: dict[str, Any] = {"notes": [], "machine_why": ""}  # the module names its machine
    assert {**found.to_json(), **apart} == {**direct.to_json(), **apart}


def test_a_module_may_have_its_rows_split(tmp_path: Path) -> None:
    found = once(imported(tmp_path, shipped(GEMM), 2))
    assert found.source == emitted(GEMM, 2).source
    holds(GEMM, found.source)


def test_a_module_is_not_split_anew(tmp_path: Path) -> None:
    file = imported(tmp_path, shipped(GEMM))
    with pytest.raises(StrettoError) as error:
        emit(file, consumers=2)
    assert str(error.value) == (
        f"{file}: error: has its rows in 1 part, not in 2; "
        "stretto import --consumers 2 splits it between 2"
    )


def test_an_agent_that_runs_nothing_is_refused_at_its_place(tmp_path: Path) -> None:
    file = imported(tmp_path, shipped(GEMM), 2)
    file.write_text(file.read_text().replace('"compute.1"', '"compute.7"'))
    with pytest.raises(EmitError, match=r"imported-2.mlir:\d+:\d+: error: .* agent `compute.7`"):
        emit(file, mode="specialized")


def test_a_padding_that_tma_does_not_have_is_written_out(tmp_path: Path) -> None:
    file = imported(tmp_path, shipped("cutile/softmax"))
    holds("cutile/softmax", once(file).source)
    assert 'padding = "neg_inf"' not in file.read_text()


def test_a_padding_that_a_module_leaves_to_tma_is_refused_at_its_place(tmp_path: Path) -> None:
    file = imported(tmp_path, shipped("cutile/softmax"))
    file.write_text(file.read_text().replace('padding = "zero"', 'padding = "neg_inf"'))
    with pytest.raises(EmitError, match=r"mlir:\d+:\d+: error: it reads neg_inf outside of the"):
        emit(file)


def test_only_one_kernel_is_emitted_at_a_time(tmp_path: Path) -> None:
    file = imported(tmp_path, shipped(GEMM))
    file.write_text(file.read_text() * 2)
    with pytest.raises(StrettoError, match="has 2 kernels; give one at a time"):
        emit(file)


def test_what_is_not_lowered_for_the_machine_is_refused() -> None:
    with pytest.raises(StrettoError, match=r"gemm.mlir:\d+:\d+: error: .*h200 does not know"):
        emit(shipped("triton/x").parents[1] / "gemm.mlir", "h200")


# Names and warps ----------------------------------------------------------------------------------

NUMBERED = """module {
  tt.func public @put(%x_1: !tt.ptr<f32>, %x_2: !tt.ptr<f32>, %n: i32, %n_1: i32) {
    %sum = arith.addi %n, %n_1 : i32
    %at = tt.addptr %x_1, %n_1 : !tt.ptr<f32>, i32
    %to = tt.addptr %x_2, %sum : !tt.ptr<f32>, i32
    %v = tt.load %at : !tt.ptr<f32>
    tt.store %to, %v : !tt.ptr<f32>
    tt.return
  }
}
"""


def test_parameters_that_end_in_numbers_keep_their_names(tmp_path: Path) -> None:
    (kernel,) = read_ttir("put.ttir", NUMBERED, None)
    for source in (emit(kernel).source, emit(imported(tmp_path, kernel)).source):
        assert "def launch(x_1, x_2, n, n_1, grid):" in source
        assert "return (x_1, x_2, n, n_1)" in source


def test_a_module_says_how_many_warps_run_it(tmp_path: Path) -> None:
    (kernel,) = read_ttir("put.ttir", NUMBERED, ("put.json", '{"num_warps": 8}'))
    assert emit(imported(tmp_path, kernel)).emitted.warps == 8


# Schedules that stand in a module -----------------------------------------------------------------


def scheduled(folder: Path, *options: str) -> Path:
    """A module with a schedule on its loop."""
    file = folder / "scheduled.mlir"
    passes = f"tileas-generate-schedule{{{' '.join(options)}}}"
    command = [sys.executable, "-m", "stretto.ir.opt", "-p", passes, "-o", str(file)]
    subprocess.run([*command, str(imported(folder, shipped(GEMM)))], check=True)
    return file


def test_a_schedule_in_the_module_is_kept_to(tmp_path: Path) -> None:
    file = scheduled(tmp_path, "max-stages=2")
    (standing,) = stretto.ir.read_schedules(str(file), file.read_text())
    (kept,) = emit(file).analyses
    assert standing.analysis is not None
    assert kept.stage_count == standing.analysis.stage_count == 2
    assert kept.starts == standing.analysis.starts
    holds(GEMM, emit(file).source)


def test_a_schedule_that_is_not_legal_is_refused_at_its_place(tmp_path: Path) -> None:
    file = scheduled(tmp_path)
    text = file.read_text()
    product = re.search(r"async\.wgmma .*?nv_tile\.aws\.start = (\d+)", text)
    assert product is not None
    file.write_text(text[: product.start(1)] + "0" + text[product.end(1) :])
    with pytest.raises(StrettoError, match=r"scheduled\.mlir:\d+:\d+: error: dependence"):
        emit(file)
