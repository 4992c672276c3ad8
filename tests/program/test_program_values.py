"""Programs that are printed, run on real values, leave what the kernel's tree leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from test_program_clocks import replaced

import kernel_cases
import stretto
from gluon_cases import EXAMPLES
from kernel_cases import Case
from stretto.cli.main import main
from stretto.kernel.types import Pointer
from stretto.program import KernelProgram
from stretto.program.clocks import FaultError
from stretto.program.expressions import Combined
from stretto.program.instructions import Wait
from stretto.program.walk import expressions_in, walk
from stretto.simulation.kernels import run_kernel
from stretto.simulation.kernels.programs import run_program_of_kernel

CASES: dict[str, tuple[str, str, Callable[[], Case]]] = {
    "descriptors": ("matmul_descriptors", "h200", kernel_cases.matmul_descriptors),
    "persistent": ("matmul_persistent", "h200", kernel_cases.matmul_persistent),
    "tensor memory": ("matmul_persistent", "b200", kernel_cases.matmul_persistent),
    "pointers": ("matmul_pointers", "h200", kernel_cases.matmul_pointers),
    "fused": ("matmul_fused", "h200", kernel_cases.matmul_fused),
    "fused in tensor memory": ("matmul_fused", "b200", kernel_cases.matmul_fused),
    "softmax": ("softmax", "h200", kernel_cases.softmax),
    "layer norm": ("layer_norm", "h200", kernel_cases.layer_norm),
    "attention": (
        "attention_forward_d64",
        "h200",
        lambda: kernel_cases.attention_forward(64, causal=False),
    ),
}


def program(name: str) -> tuple[KernelProgram, Case]:
    file, machine, case = CASES[name]
    consumers = 2 if name == "attention" else None
    made = stretto.emit(EXAMPLES / "triton" / f"{file}.ttir", machine, consumers=consumers)
    return made.emitted.program, case()


@pytest.mark.parametrize("name", CASES)
def test_a_program_leaves_what_the_kernel_leaves(name: str) -> None:
    whole, case = program(name)
    plain = run_kernel(whole.kernel, case.inputs, case.grid)
    found = run_program_of_kernel(whole, case.inputs, case.grid)
    assert plain.arrays.keys() == found.arrays.keys()
    changed = 0
    for array, wanted in plain.arrays.items():
        assert np.array_equal(found.arrays[array], wanted, equal_nan=True), array
        changed += not np.array_equal(wanted, case.inputs[array], equal_nan=True)
    assert changed
    assert found.blocks == np.prod(case.grid) or "persistent" in CASES[name][0]


def test_a_program_that_lacks_a_wait_is_not_run_to_its_end() -> None:
    whole, case = program("descriptors")
    body = whole.agents[0].body
    victim = next(one for one in walk(body) if isinstance(one, Wait))
    agent = replace(whole.agents[0], body=replaced(body, victim, None))
    broken = replace(whole, agents=(agent, *whole.agents[1:]))
    with pytest.raises(FaultError, match=r"block 0, 0, 0"):
        run_program_of_kernel(broken, case.inputs, case.grid)


def test_the_command_says_what_it_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = kernel_cases.matmul_persistent()
    file = tmp_path / "in.npz"
    np.savez(file, **case.inputs)
    kernel = str(EXAMPLES / "triton" / "matmul_persistent.ttir")
    grid = ",".join(map(str, case.grid))
    asked = ["simulate", kernel, "--machine", "h200", "--mode", "emitted"]
    assert main([*asked, "--inputs", str(file), "--grid", grid]) == 0
    out = capsys.readouterr().out
    assert "equal to sequential execution" in out
    assert "agents: compute (4 warps), compute.1 (4 warps), copy (1 warp)" in out
    assert "slots: a_0_tile 6" in out
    assert "by clocks: 7 runs" in out
    assert "on values: trips 3" in out
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    schema = resources.files("stretto.report").joinpath("schemas/kernel-simulation.schema.json")
    jsonschema.validate(told, json.loads(schema.read_text()))
    assert told["equal"] is None
    assert told["program"]["trips_by_clocks"] == [0, 1, 2, 3, 7, 13]


ORDINARY = Path(__file__).parents[1] / "ttir" / "ordinary"


def test_what_a_region_puts_together_is_worked_out() -> None:
    """A scan."""
    whole = stretto.emit(ORDINARY / "running.ttir", "h200").emitted.program
    assert any(isinstance(one, Combined) for one in expressions_in(whole.agents[0].body))
    random = np.random.default_rng(5)
    inputs = {
        p.name: random.standard_normal(1 << 16).astype(np.float32)
        if isinstance(p.value.type, Pointer)
        else 64
        for p in whole.kernel.parameters
    }
    plain = run_kernel(whole.kernel, inputs, (2,))
    found = run_program_of_kernel(whole, inputs, (2,))
    for array, wanted in plain.arrays.items():
        assert np.array_equal(found.arrays[array], wanted, equal_nan=True), array


def test_a_slot_that_is_copied_out_is_handed_back_once_it_was_read() -> None:
    """Found by clocks: the next copy in would have come while TMA still read."""
    file = ORDINARY.parent / "unusual" / "skipping.ttir"
    whole = stretto.emit(file, "h200", consumers=1).emitted.program
    random, steps = np.random.default_rng(7), 12
    a, b = (random.standard_normal(shape) for shape in ((64, 64 * steps), (64 * steps, 64)))
    flags = random.integers(0, 2, steps)
    kept = np.full((64, 64 * (steps + 1)), 5.0)
    inputs = {"a_desc": a, "b_desc": b, "c_desc": kept, "flags_ptr": flags, "steps": steps}
    plain = run_kernel(whole.kernel, inputs, (1,))
    found = run_program_of_kernel(whole, inputs, (1,))
    assert found.trips == (steps,)
    assert np.array_equal(found.arrays["c_desc"], plain.arrays["c_desc"], equal_nan=True)


PUT = """
module {
  tt.func public @squared(%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32},
                          %o_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %width = arith.constant dense<64> : tensor<64x1xi32>
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %down = arith.muli %rows, %width : tensor<64x1xi32>
    %down_2 = tt.broadcast %down : tensor<64x1xi32> -> tensor<64x64xi32>
    %along = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %at = arith.addi %down_2, %along : tensor<64x64xi32>
    %a_tile = tt.splat %a_ptr : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %a_at = tt.addptr %a_tile, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %a = tt.load %a_at : tensor<64x64x!tt.ptr<f16>>
    %twice = arith.addf %a, %a : tensor<64x64xf16>
    %total = tt.dot %a, %twice, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %o_tile = tt.splat %o_ptr : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %o_at = tt.addptr %o_tile, %at : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %o_at, %total : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
"""


def test_a_factor_that_threads_put_into_shared_memory_is_fenced(tmp_path: Path) -> None:
    """Found by clocks: products would have read it by another way, before it was there."""
    file = tmp_path / "squared.ttir"
    file.write_text(PUT)
    made = stretto.emit(file, "h200", mode="unspecialized")
    lines = [line.strip() for line in made.source.split("\n")]
    put = next(n for n, line in enumerate(lines) if "_tile.store(" in line or ".store(" in line)
    assert "fence_async_shared()" in lines[put : put + 2]
    a = np.random.default_rng(3).standard_normal(64 * 64)
    inputs = {"a_ptr": a, "o_ptr": np.zeros(64 * 64)}
    whole = made.emitted.program
    plain = run_kernel(whole.kernel, inputs, (1,))
    found = run_program_of_kernel(whole, inputs, (1,))
    assert np.array_equal(found.arrays["o_ptr"], plain.arrays["o_ptr"])
