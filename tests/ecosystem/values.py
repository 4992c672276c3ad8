"""Values for a recorded launch, and its first block run on them: the program that is printed, and
the kernel as it was read.

shapes, strides, what short arrays of integers hold ──► NumPy ──┬► the kernel's own order
                                                                └► instructions of all agents
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.program import KernelProgram
from stretto.simulation.kernels import run_kernel
from stretto.simulation.kernels.programs import run_program_of_kernel

LARGEST = 1 << 26
"""Elements of all arrays together; a launch of more is not run here."""
SCALE = 0.25
"""Standard deviation of floats."""
PERIOD = 8191
"""Elements after which drawn numbers come again: a prime, so that no two rows are alike."""
BEHIND = 1 << 14
"""Elements behind an array, for kernels that read on."""
FAR = 2e-3
"""Difference, by the greatest value, that comes of another order of sums."""


def drawn(launch: Any) -> dict[str, Any] | None:
    """Arrays and numbers by the names of parameters; None where they are not all recorded."""
    found: dict[str, Any] = {}
    elements = 0
    for place, (name, kind) in enumerate(launch.signature.items()):
        if kind == "constexpr" or str(place) in launch.constexprs:
            continue
        if name in launch.tensors:
            shape, strides, element = launch.tensors[name]
            size = max(1, 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))
            elements += size
            if kind.startswith("tensordesc") or name.endswith("_ptrs") or elements > LARGEST:
                return None
            held = launch.integers.get(name)
            found[name] = _array(place, element, shape, strides, size + BEHIND, held)
        elif name in launch.numbers:
            found[name] = launch.numbers[name]
        else:
            return None
    return found


def _array(
    seed: int, element: str, shape: list[int], strides: list[int], size: int, held: Any
) -> NDArray[Any]:
    random = np.random.default_rng(seed)
    if held is None and "float" in element:
        some = random.standard_normal(PERIOD).astype(np.float32) * np.float32(SCALE)
        return np.resize(some.astype(np.float16).astype(np.float32), size)
    if held is None or isinstance(held, dict):
        bounds = {"int8": (-128, 127), "uint8": (0, 255), "bool": (0, 1)}.get(element, (0, 0))
        least, greatest = bounds if held is None else (held["least"], held["greatest"])  # pyright: ignore[reportUnknownVariableType]
        made = random.integers(least, greatest + 1, PERIOD)  # pyright: ignore[reportUnknownArgumentType]
        return np.resize(made.astype(np.int64 if held else element.replace("uint8", "int8")), size)
    whole = np.zeros(size, np.int64)
    at = sum(np.indices(shape)[d] * s for d, s in enumerate(strides)) if shape else 0
    whole[np.ravel(at)] = held
    return whole


def differs(program: KernelProgram, launch: Any) -> str | None:
    """How what the first block leaves behind differs; empty where it does not, None where it is
    not run."""
    inputs = drawn(launch)
    if inputs is None:
        return None
    wanted = run_kernel(program.kernel, inputs, (1,)).arrays
    found = run_program_of_kernel(program, inputs, (1,)).arrays
    for name, array in wanted.items():
        if not near(found[name], array):
            return f"`{name}` differs from what the kernel leaves there, step after step"
    return ""


def near(found: NDArray[Any], wanted: NDArray[Any]) -> bool:
    """Whether two arrays are equal, but for the order in which sums were made."""
    if np.array_equal(found, wanted, equal_nan=True):
        return True
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    sound = np.isfinite(wanted)
    if not np.array_equal(sound, np.isfinite(found)):
        return False
    most = np.abs(wanted[sound]).max(initial=1e-30)
    return bool(np.abs(found[sound] - wanted[sound]).max(initial=0.0) <= FAR * most)
