"""Loops that carry what they never change, in both sides of a branch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stretto.api.emitting import emit
from stretto.compile.sources import kernels_of
from stretto.kernel.fixed_arguments import with_fixed_arguments
from stretto.simulation.kernels.programs import run_program_of_kernel

LOOP = """
      %NAME:2 = scf.for %i = %c0 to %n step %c1 iter_args(%kept = %at, %sum = %zero)
          -> (tensor<64xi32>, tensor<64xf32>)  : i32 {
        %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
        %far = arith.muli %i, %c64 : i32
        %more = tt.splat %far : i32 -> tensor<64xi32>
        %here = arith.addi %kept, %more : tensor<64xi32>
        %q = tt.addptr %p, %here : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
        %v = tt.load %q : tensor<64x!tt.ptr<f32>>
        %s = arith.OP %sum, %v : tensor<64xf32>
        scf.yield END, %s : tensor<64xi32>, tensor<64xf32>
      }
      scf.yield %NAME#0, %NAME#1 : tensor<64xi32>, tensor<64xf32>
""".replace("\n          ->", " ->")
KERNEL = """module {
  tt.func public @k(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32, %which: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32>
    %at = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %c = arith.cmpi eq, %which, %c0 : i32
    %r:2 = scf.if %c -> (tensor<64xi32>, tensor<64xf32>) {ONE    } else {OTHER    }
    %op = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %oq = tt.addptr %op, %r#0 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %oq, %r#1 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
"""


@pytest.mark.parametrize("end", ["%at", "%kept"])
def test_what_never_changes_is_not_carried(tmp_path: Path, end: str) -> None:
    loop = LOOP.replace("END", end)
    text = KERNEL.replace("ONE", loop.replace("NAME", "a").replace("OP", "addf"))
    text = text.replace("OTHER", loop.replace("NAME", "b").replace("OP", "subf"))
    file = tmp_path / "k.ttir"
    file.write_text(text)
    (kernel,) = kernels_of(str(file), text)
    made = with_fixed_arguments(kernel)
    assert [len(op.results) for op in made.walk() if op.name == "scf.for"] == [1, 1]
    assert with_fixed_arguments(made) is made
    program = emit(file, "h200").emitted.program
    x = np.random.default_rng(5).standard_normal((5, 64)).astype(np.float32)
    for which, sign in ((0, 1), (1, -1)):
        inputs = {"x": x, "o": np.zeros(64, np.float32), "n": 5, "which": which}
        found = run_program_of_kernel(program, inputs, (1,)).arrays["o"]
        assert np.allclose(found, sign * x.sum(axis=0), atol=1e-5)
