"""Emitted source on the shipped kernels' inputs: launched in the emulator as a caller would."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import cutile_cases
import kernel_cases
from gluon_emulator import Descriptor, Emulator
from stretto.api.emitting import emit
from stretto.compile import loop_schedules
from stretto.compile.candidates import STAGES
from stretto.compile.emitted import EmitMode, EmittedKernel

Array = NDArray[Any]
EXAMPLES = Path(__file__).parents[1] / "examples"


class Tensor(np.ndarray[Any, Any]):
    """An array that says its strides in elements, as a caller's tensor does."""

    def stride(self, axis: int) -> int:
        return self.strides[axis] // self.itemsize

    def data_ptr(self) -> int:
        return self.ctypes.data


def shipped(name: str) -> Path:
    """`triton/softmax` or `cutile/softmax`, as the file that ships."""
    ending = ".ttir" if name.startswith("triton/") else ".tileirbc"
    return EXAMPLES / (name + ending)


@cache
def emitted(
    name: str,
    consumers: int | None = None,
    mode: EmitMode = "specialized",
    depth: int | None = None,
) -> EmittedKernel:
    """A shipped kernel as Gluon, of the first stage count that is tried: any has to be right."""
    with (
        patch.dict(STAGES, {mode: STAGES[mode][:1]}),
        patch.object(loop_schedules, "SOLVED_WORK", 0),
    ):
        return emit(shipped(name), consumers=consumers, mode=mode, depth=depth)


def _given(value: Any, view: bool) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    copy = np.array(cast("Array", value)).view(Tensor)
    if not view:
        return copy
    rows = [copy.stride(axis) for axis in range(copy.ndim)]
    return Descriptor(copy, copy.shape, rows, list(copy.shape), None)


def launched(
    source: str, inputs: Mapping[str, Any], grid: tuple[int, ...], naps: float = 0.0
) -> dict[str, Array]:
    """What is in the caller's arrays after a run."""
    return traced(source, inputs, grid, naps)[0]


def _any_launch(*_: Any) -> str:
    """What `fits` would say of a launch that is fit."""
    return ""


def traced(
    source: str, inputs: Mapping[str, Any], grid: tuple[int, ...], naps: float = 0.0, slow: str = ""
) -> tuple[dict[str, Array], list[tuple[str, str]]]:
    """The same, and what was begun or done, in its order."""
    given = {name: _given(value, name.endswith("_desc")) for name, value in inputs.items()}
    emulator = Emulator(source, naps=naps, slow=slow)
    if 0 in [value for value in given.values() if isinstance(value, int)]:
        # No descriptor is made of an empty array; no trip at all has to be right all the same.
        emulator.space["fits"] = _any_launch
    emulator.launch(**given, grid=grid)
    arrays = {
        name: value.base.reshape(value.shape) if isinstance(value, Descriptor) else value
        for name, value in given.items()
    }
    return arrays, emulator.events


def case(name: str) -> kernel_cases.Case:
    """The shipped inputs of a kernel, those of cuTile's by their number."""
    kind, _, kernel = name.partition("/")
    if kind == "triton":
        return kernel_cases.CASES[kernel]()
    found = cutile_cases.CASES[kernel]()
    inputs = {f"arg{n}": value for n, value in enumerate(found.arguments)}
    wanted = {f"arg{n}": array for n, array in found.expected.items()}
    return kernel_cases.Case(inputs, found.grid, wanted, found.tolerance)


def holds(name: str, source: str) -> None:
    """The source does on the shipped inputs what NumPy does."""
    asked = case(name)
    near(launched(source, asked.inputs, asked.grid), asked.expected, asked.tolerance)


def near(after: Mapping[str, Array], wanted: Mapping[str, Array], tolerance: float) -> None:
    """What is there is what is wanted; AssertionError where it is not."""
    for name, array in wanted.items():
        there = np.asarray(after[name], dtype=np.float64)
        np.testing.assert_allclose(there, array.reshape(there.shape), atol=tolerance, rtol=0)
