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
from stretto.simulate.kernels import run_kernel
from stretto.simulate.kernels.programs import run_program_of_kernel
from test_program_clocks import replaced

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


ORDINARY = Path(__file__).parent / "ttir" / "ordinary"


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
