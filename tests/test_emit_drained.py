"""Loops that are drained: iterations that run together to their end, and what is left over."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from gluon_cases import launched, near, shipped
from stretto.api.emitting import Emitter
from stretto.emit import EmitError

EPSILON = 1e-5


@cache
def drained(name: str, *together: int) -> str:
    return Emitter(shipped(f"triton/{name}")).drained(together).source


def norm(source: str, columns: int) -> None:
    """Layer norm of three rows is what NumPy says."""
    rng = np.random.default_rng(columns)
    x = rng.standard_normal((3, columns)).astype(np.float16)
    gamma, beta = rng.standard_normal((2, columns)).astype(np.float32)
    wide = x.astype(np.float64)
    mean = wide.mean(1)
    rstd = 1 / np.sqrt(wide.var(1) + EPSILON)
    y = (wide - mean[:, None]) * rstd[:, None] * gamma + beta
    inputs = {
        "x_ptr": x, "y_ptr": np.zeros_like(x), "gamma_ptr": gamma, "beta_ptr": beta,
        "mean_ptr": np.zeros(3, np.float32), "rstd_ptr": np.zeros(3, np.float32),
        "stride": columns, "columns": columns, "epsilon": EPSILON,
    }  # fmt: skip
    after = launched(source, inputs, (3,))
    near(after, {"y_ptr": y}, 2e-2)
    near(after, {"mean_ptr": mean, "rstd_ptr": rstd}, 1e-3)


@pytest.mark.parametrize("columns", [1, 1000, 1024, 3000, 4096, 8192, 8193, 12000])
@pytest.mark.parametrize("together", [(8, 4), (8, 2), (2, 1), (4, 8)])
def test_a_drained_layer_norm_is_what_numpy_says(together: tuple[int, int], columns: int) -> None:
    """Trips below, at and above how many run together, and no multiple of it."""
    norm(drained("layer_norm", *together), columns)


def test_so_many_iterations_stand_in_a_step_and_nothing_else_does() -> None:
    """Of eight iterations eight loads stand before the first of them is used."""
    lines = drained("layer_norm", 8, 1).splitlines()
    begin = next(n for n, line in enumerate(lines) if " in range(0, done, 8):" in line)
    inside = lines[begin + 1 :]
    used = next(n for n, line in enumerate(inside) if ".to(gl.float32)" in line)
    assert sum("gl.load(" in line for line in inside[:used]) == 8
    assert any(" in range(done, n):" in line for line in inside)


def test_one_iteration_together_is_the_loop_as_it_stands() -> None:
    source = drained("layer_norm", 1, 1)
    assert "done" not in source
    norm(source, 3000)


def test_products_and_rings_are_not_drained() -> None:
    with pytest.raises(EmitError, match="it is not drained"):
        Emitter(shipped("triton/matmul_pointers"), mode="unspecialized").drained((4,))
    with pytest.raises(EmitError, match="it is not drained"):
        Emitter(shipped("cutile/layer_norm")).drained((3, 3, 3))
