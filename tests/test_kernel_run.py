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
