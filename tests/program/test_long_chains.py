"""Chains of thousands of operations, which unrolled loops leave: written without deep recursion."""

from pathlib import Path

import numpy as np

from stretto.api.emitting import emit
from stretto.simulation.kernels.programs import run_program_of_kernel

LONG = 1500


def test_a_long_chain_is_written_and_run(tmp_path: Path) -> None:
    lines = ["%v0 = arith.addi %n, %n : i32"]
    lines += [f"%v{i} = arith.addi %v{i - 1}, %n : i32" for i in range(1, LONG)]
    file = tmp_path / "k.ttir"
    file.write_text(
        "module {\n  tt.func public @k(%p: !tt.ptr<i32>, %n: i32) {\n    "
        + "\n    ".join(lines)
        + f"\n    tt.store %p, %v{LONG - 1} : !tt.ptr<i32>\n    tt.return\n  }}\n}}\n"
    )
    made = emit(file, "h200")
    ran = run_program_of_kernel(made.emitted.program, {"p": np.zeros(1, np.int32), "n": 3}, (1,))
    assert ran.arrays["p"][0] == 3 * (LONG + 1)
