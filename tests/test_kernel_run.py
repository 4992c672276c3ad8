"""Kernels run whole, on real values, as NumPy says; pipelined they leave the very same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from kernel_cases import CASES
from stretto.api.kernels import KernelMode
from stretto.errors import StrettoError

EXAMPLES = Path(__file__).parents[1] / "examples" / "triton"
RUNS: list[tuple[str, KernelMode]] = [
    ("b200-pipes", "specialized"),
    ("blackwell", "unspecialized"),
]


def _run(name: str, machine: str, mode: KernelMode, **changed: Any) -> stretto.KernelSimulation:
    case = CASES[name]()
    inputs = {**case.inputs, **changed}
    return stretto.simulate_kernel(EXAMPLES / f"{name}.ttir", inputs, case.grid, machine, mode=mode)


@pytest.mark.parametrize(("machine", "mode"), RUNS)
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_equal_to_numpy_and_to_itself(
    name: str, machine: str, mode: KernelMode
) -> None:
    found = _run(name, machine, mode)
    assert found.success, found.to_text()
    assert found.iterations
    case = CASES[name]()
    for array, expected in case.expected.items():
        got = found.arrays[array].reshape(expected.shape)
        assert np.allclose(got, expected, rtol=0, atol=case.tolerance), array


def test_a_printed_kernel_runs_as_the_dump_does(tmp_path: Path) -> None:
    for name in ("softmax", "matmul_descriptors"):
        case = CASES[name]()
        text, _ = stretto.import_kernel(EXAMPLES / f"{name}.ttir", "b200-pipes")
        path = tmp_path / f"{name}.mlir"
        path.write_text(text)
        again = stretto.simulate_kernel(path, case.inputs, case.grid)
        first = _run(name, "b200-pipes", "sequential")
        assert again.success
        for array in case.expected:
            assert np.array_equal(again.arrays[array], first.arrays[array])


def test_inputs_stay_as_they_are() -> None:
    case = CASES["softmax"]()
    stretto.simulate_kernel(EXAMPLES / "softmax.ttir", case.inputs, case.grid, "b200-pipes")
    assert not case.inputs["y_ptr"].any()


def test_reaching_behind_an_array_is_told() -> None:
    case = CASES["softmax"]()
    short = case.inputs["x_ptr"][:5]
    with pytest.raises(StrettoError, match=r"`x_ptr`: the kernel reads element 3885; it has 3885"):
        _run("softmax", "b200-pipes", "sequential", x_ptr=short)


def test_a_missing_parameter_is_told() -> None:
    with pytest.raises(StrettoError, match="has a parameter `y_ptr`: give a value"):
        stretto.simulate_kernel(EXAMPLES / "softmax.ttir", {}, machine="b200-pipes")


_BRANCH = """module {
  tt.func public @k(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32>,
                    %n: i32, %m: i32) {
    %z = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %w = arith.constant 64 : i32
    %two = arith.constant dense<2.0> : tensor<64xf32>
    %sum = arith.constant dense<0.0> : tensor<64xf32>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %all = scf.for %i = %z to %n step %one iter_args(%s = %sum) -> (tensor<64xf32>) : i32 {
      %at = arith.muli %i, %w : i32
      %q = tt.addptr %p, %at : !tt.ptr<f32>, i32
      %t = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %a = tt.addptr %t, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %x = tt.load %a : tensor<64x!tt.ptr<f32>>
      %c = arith.cmpi sge, %i, %m : i32
      %y = scf.if %c -> (tensor<64xf32>) {
        %d = arith.mulf %x, %two : tensor<64xf32>
        scf.yield %d : tensor<64xf32>
      } else {
        scf.yield %x : tensor<64xf32>
      }
      %u = arith.addf %s, %y : tensor<64xf32>
      scf.yield %u : tensor<64xf32>
    }
    %ot = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %oa = tt.addptr %ot, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %oa, %all : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
"""


def test_a_branch_inside_a_loop_is_gone_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "k.ttir"
    path.write_text(_BRANCH)
    x = np.arange(7 * 64, dtype=np.float32).reshape(7, 64)
    inputs = {"p": x, "o": np.zeros(64), "n": 7, "m": 4}
    found = stretto.simulate_kernel(path, inputs, machine="b200-pipes", mode="specialized")
    assert found.success
    expected = (x * np.where(np.arange(7) >= 4, 2, 1)[:, None]).sum(0)
    assert np.array_equal(found.arrays["o"], expected)


_ARGMAX = """module {
  tt.func public @k(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i32>,
                    %t: !tt.ptr<f32>, %n: i32) {
    %z = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %w = arith.constant 64 : i32
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    scf.for %i = %z to %n step %one : i32 {
      %at = arith.muli %i, %w : i32
      %q = tt.addptr %p, %at : !tt.ptr<f32>, i32
      %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %a = tt.addptr %qs, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %x = tt.load %a : tensor<64x!tt.ptr<f32>>
      %v:2 = "tt.reduce"(%x, %r) <{axis = 0 : i32}> ({
      ^bb0(%l: f32, %li: i32, %g: f32, %gi: i32):
        %c = arith.cmpf ogt, %l, %g : f32
        %m = arith.select %c, %l, %g : f32
        %k = arith.select %c, %li, %gi : i32
        tt.reduce.return %m, %k : f32, i32
      }) : (tensor<64xf32>, tensor<64xi32>) -> (f32, i32)
      %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
      ^bb0(%l: f32, %g: f32):
        %m = arith.addf %l, %g : f32
        tt.scan.return %m : f32
      }) : (tensor<64xf32>) -> tensor<64xf32>
      %oa = tt.addptr %o, %i : !tt.ptr<i32>, i32
      tt.store %oa, %v#1 : !tt.ptr<i32>
      %u = tt.addptr %t, %at : !tt.ptr<f32>, i32
      %us = tt.splat %u : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %ua = tt.addptr %us, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      tt.store %ua, %s : tensor<64x!tt.ptr<f32>>
    }
    tt.return
  }
}
"""


def test_reductions_and_scans_combine_as_their_regions_say(tmp_path: Path) -> None:
    path = tmp_path / "k.ttir"
    path.write_text(_ARGMAX)
    x = np.random.default_rng(5).permutation(5 * 64).reshape(5, 64).astype(np.float32)
    inputs = {"p": x, "o": np.zeros(5), "t": np.zeros((5, 64)), "n": 5}
    found = stretto.simulate_kernel(path, inputs, machine="b200-pipes", mode="specialized")
    assert found.success
    assert np.array_equal(found.arrays["o"], x.argmax(1))
    assert np.array_equal(found.arrays["t"], np.cumsum(x[:, ::-1], 1)[:, ::-1])


def test_a_loop_may_run_fewer_times_than_it_has_stages(tmp_path: Path) -> None:
    path = tmp_path / "k.ttir"
    path.write_text(_BRANCH)
    x = np.ones((1, 64), dtype=np.float32)
    for trips in (0, 1):
        inputs = {"p": x, "o": np.full(64, 9.0), "n": trips, "m": 4}
        found = stretto.simulate_kernel(path, inputs, machine="b200-pipes")
        assert found.success
        assert np.array_equal(found.arrays["o"], np.full(64, trips))


_PREFIX = """module {
  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
    %z = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %inc = arith.constant 1.0 : f32
    scf.for %i = %z to %n step %one : i32 {
      %q = tt.addptr %p, %i : !tt.ptr<f32>, i32
      %x = tt.load %q : !tt.ptr<f32> loc("k.py":7:3)
      %y = arith.addf %x, %inc : f32
      %u = tt.addptr %q, %one : !tt.ptr<f32>, i32
      tt.store %u, %y : !tt.ptr<f32> loc("k.py":8:3)
    }
    tt.return
  }
}
"""


def test_steps_that_read_what_others_write_do_not_overlap(tmp_path: Path) -> None:
    path = tmp_path / "k.ttir"
    path.write_text(_PREFIX)
    source = stretto.read(path, "b200-pipes")
    assert source[0].force_serial
    assert any("k.py:8:4 may touch the same element" in note.text for note in source.notes)
    inputs = {"p": np.zeros(9), "n": 8}
    for mode in ("unspecialized", "specialized"):
        found = stretto.simulate_kernel(path, inputs, machine="b200-pipes", mode=mode)
        assert found.success
        assert np.array_equal(found.arrays["p"], np.arange(9))
