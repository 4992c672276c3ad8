"""Operations of Triton's language in loops: read, simulated, emitted and run, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

import stretto
from gluon_cases import launched
from stretto.api.emitting import emit
from stretto.compile import loop_schedules
from stretto.compile.candidates import STAGES
from stretto.errors import StrettoError

Array = NDArray[Any]
KERNELS = Path(__file__).parents[1] / "ttir" / "language"
B = 128
LENGTH = 5 * B


@cache
def source(name: str) -> str:
    """A kernel as Gluon, of the first stage count that is tried."""
    first = {mode: stages[:1] for mode, stages in STAGES.items()}
    with patch.dict(STAGES, first), patch.object(loop_schedules, "SOLVED_WORK", 0):
        return emit(KERNELS / f"{name}.ttir", "h200").source


X = np.random.default_rng(0).standard_normal(16 * B).astype(np.float32)
ROWS = X[:LENGTH].reshape(-1, B)


def at_rows(first: Array, second: Array | None = None) -> Array:
    """Numbers at the beginning of each row."""
    y = np.zeros((LENGTH // B, B), np.float32)
    y[:, 0] = first
    if second is not None:
        y[:, 1] = second
    return y.reshape(-1)


def scanned_back(row: Array) -> Array:
    """What a linear recurrence has come to, from the end."""
    a, b = row.astype(np.float64), row * 0.5
    out = np.zeros(B)
    out[-1], so_far = b[-1], a[-1]
    for i in range(B - 2, -1, -1):
        so_far, out[i] = so_far * a[i], out[i + 1] * a[i] + b[i]
    return out


def with_libdevice(v: Array) -> Array:
    wide = v.astype(np.float64)
    erf = np.vectorize(math.erf)(wide)
    made = np.tanh(wide) + erf + 1 / np.sqrt(wide * wide + 1) + np.abs(wide) ** 1.5 + np.exp(wide)
    made += np.exp(wide) + 1 / (1 + np.exp(-wide)) + np.sqrt(np.abs(wide)) + wide / 3
    return made + np.log1p(np.abs(wide))


def with_bits(v: Array) -> Array:
    u = v.view(np.int32)
    w = (u >> 3) ^ (u << 5) | (u & 255)
    return ((np.bitwise_xor.reduce(w) + w) & 0x3F7FFFFF).view(np.float32)


def totals() -> Array:
    """Of all rows up to each."""
    return np.array([ROWS[: n + 1].sum() for n in range(len(ROWS))])


def condition_of_rows() -> Array:
    acc = np.zeros(B, np.float32)
    for n, row in enumerate(ROWS):
        acc = acc + row if n % 2 == 0 else acc * np.float32(0.5) - (row if n > 4 else 0)
    return acc


def largest(products: Array) -> Array:
    """What is left where the greater magnitude of two is taken, again and again."""
    return np.abs(products).max()


def with_wide_numbers() -> Array:
    """What a number of 64 bits that is carried round comes to in each row, set anew in two."""
    far = [((n + 1) if n < 3 else 1) * 2**33 + 7 * (n >= 3) for n in range(len(ROWS))]
    return np.concatenate([row + np.float32(n // 3) for row, n in zip(ROWS, far, strict=True)])


WANTED: dict[str, Callable[[], Array]] = {
    "argmax": lambda: at_rows(ROWS.argmax(1), ROWS.argmin(1)),
    "welford": lambda: at_rows(ROWS.sum(1), (ROWS * ROWS).sum(1)),
    "prod": lambda: np.array([ROWS.prod(1).prod(), np.abs(ROWS).max(1).sum()]),
    "cumsum": lambda: X[:LENGTH].astype(np.float64).cumsum(),
    "scan2": lambda: np.concatenate([scanned_back(row) for row in ROWS]),
    "libdevice": lambda: with_libdevice(X[:LENGTH]),
    "bits": lambda: np.concatenate([with_bits(row) for row in ROWS]),
    "ptrcast": lambda: X[:LENGTH].view(np.int32).astype(np.float32),
    "while": lambda: ROWS.sum(0),
    "condloop": condition_of_rows,
    "nested": lambda: np.array([totals().sum(), 15]),
    "histogram": lambda: np.bincount(X[:LENGTH].astype(np.int32).reshape(-1) & 15, minlength=16),
    "cat": lambda: np.concatenate([ROWS, ROWS + 1], 1).reshape(-1),
    "barrier": lambda: X[:LENGTH],
    "wide": with_wide_numbers,
    "gather": lambda: np.roll(ROWS, -1, 1).reshape(-1),
    "join": lambda: np.stack([X[:LENGTH], -X[:LENGTH]], 1).reshape(-1),
    "split": lambda: X[: 2 * LENGTH : 2] * X[1 : 2 * LENGTH : 2],
}


def close(made: Array, wanted: Array) -> None:
    np.testing.assert_allclose(made[: wanted.size], wanted, rtol=2e-5, atol=2e-5)
    assert not made[wanted.size :].any()


@pytest.mark.parametrize("name", WANTED)
def test_it_is_simulated_as_numpy_has_it(name: str) -> None:
    given = {"x": X, "y": np.zeros(16 * B, np.float32), "N": LENGTH}
    run = stretto.simulate_kernel(KERNELS / f"{name}.ttir", given, (1,), "h200")
    assert run.success
    close(run.arrays["y"], WANTED[name]())


@pytest.mark.parametrize("name", WANTED)
def test_it_is_emitted_as_numpy_has_it(name: str) -> None:
    given = {"x": X, "y": np.zeros(16 * B, np.float32), "N": LENGTH}
    close(launched(source(name), given, (1,))["y"], WANTED[name]())


def test_a_number_that_is_carried_round_has_its_type_from_the_start() -> None:
    """Triton takes a bare 0 for one of 32 bits, and refuses a variable that changes its type."""
    text = source("wide")
    assert "far = gl.to_tensor(0).to(gl.int64)" in text


def test_prints_stay_where_they_are() -> None:
    assert "gl.device_print(' v: ', " in source("print")
    given = {"x": X, "y": np.zeros(16 * B, np.float32), "N": LENGTH}
    close(launched(source("print"), given, (1,))["y"], X[:LENGTH])


def test_assembly_is_handed_on_as_it_is() -> None:
    assert """gl.inline_asm_elementwise('add.f32 $0, $1, $1;', '=f,f', [""" in source("asm")
    given = {"x": X, "y": np.zeros(16 * B, np.float32), "N": LENGTH}
    with pytest.raises(StrettoError, match=r"kernels.py:\d+:\d+: error: `inline_asm` cannot"):
        stretto.simulate_kernel(KERNELS / "asm.ttir", given, (1,), "h200")


def test_atomics_of_every_kind_are_those_of_numpy() -> None:
    wide = 5 * B
    begun = np.zeros(8 * B, np.int32)
    begun[2 * B : 3 * B] = -1
    given = {"x": X, "y": np.zeros(4 * B, np.float32), "c": begun, "N": wide}
    n = (ROWS * 8).astype(np.int32)
    c = np.zeros((8, B), np.int32)
    c[0], c[1] = np.maximum(n.max(0), 0), np.minimum(n.min(0), 0)
    c[2], c[3] = np.bitwise_and.reduce(n), np.bitwise_or.reduce(n)
    c[4], c[5] = np.bitwise_xor.reduce(n), n[-1]
    for row in n:
        c[6] = np.where(c[6] == 0, row, c[6])
    y = np.zeros((4, B), np.float32)
    y[0], y[1] = np.where(np.arange(B) < B - 1, ROWS.sum(0), 0), np.maximum(ROWS.max(0), 0)
    run = stretto.simulate_kernel(KERNELS / "atomics.ttir", given, (1,), "h200")
    for found in (run.arrays, launched(source("atomics"), given, (1,))):
        np.testing.assert_array_equal(found["c"], c.reshape(-1))
        np.testing.assert_allclose(found["y"], y.reshape(-1), rtol=1e-5, atol=1e-6)
