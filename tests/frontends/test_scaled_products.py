"""Block-scaled products, unpacked: floats of 4 and 8 bits, a scale for 32, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from stretto.compile.sources import kernels_of
from stretto.kernel import KernelError
from stretto.simulation.real import rounded

FOLDER = Path(__file__).parents[1] / "ttir" / "scaled"
FOUR_BITS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
ROWS, COLUMNS, DEEP, BLOCK = 64, 64, 256, 32
Array = np.ndarray[Any, Any]


def bytes_of(random: np.random.Generator, *shape: int) -> Array:
    """Any two 4-bit floats a byte."""
    return random.integers(-128, 128, shape).astype(np.int8)


def scales_of(random: np.random.Generator, *shape: int) -> tuple[Array, Array]:
    """Exponents about 127, and the powers of two."""
    exponents = random.integers(120, 134, shape)
    return exponents.astype(np.int8), np.repeat(2.0 ** (exponents - 127), BLOCK, axis=1)


def unpacked(bytes: Array, axis: int) -> Array:
    """The low half of each byte first."""
    both = [FOUR_BITS[bytes.view(np.uint8) & 15], FOUR_BITS[bytes.view(np.uint8) >> 4]]
    pairs = np.stack(both, axis=axis + 1)
    shape = list(bytes.shape)
    shape[axis] *= 2
    return pairs.reshape(shape)


def run(name: str, given: dict[str, Any], rows: int) -> Array:
    out = np.zeros((rows, COLUMNS), dtype=np.float32)
    found = stretto.simulate_kernel(
        FOLDER / f"{name}.ttir", {**given, "o_ptr": out, "K": DEEP}, (1,), "h200"
    )
    assert found.success
    return found.arrays["o_ptr"].reshape(out.shape)


def test_weights_of_four_bits() -> None:
    """Plain factors of 16 bits, and weights of which two lie in a byte along K."""
    random = np.random.default_rng(1)
    a = rounded(random.standard_normal((ROWS, DEEP)).astype(np.float32), "bf16")
    b = bytes_of(random, DEEP // 2, COLUMNS)
    scales, powers = scales_of(random, COLUMNS, DEEP // BLOCK)
    found = run("bf16fp4", {"a_ptr": a, "b_ptr": b, "sb_ptr": scales}, ROWS)
    wanted = a.astype(np.float64) @ (unpacked(b, 0) * powers.T)
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-3 * np.abs(wanted).max())


def test_both_factors_of_four_bits() -> None:
    random = np.random.default_rng(2)
    a, b = bytes_of(random, 2 * ROWS, DEEP // 2), bytes_of(random, COLUMNS, DEEP // 2)
    (sa, left), (sb, right) = (scales_of(random, n, DEEP // BLOCK) for n in (2 * ROWS, COLUMNS))
    found = run("fp4fp4", {"a_ptr": a, "b_ptr": b, "sa_ptr": sa, "sb_ptr": sb}, 2 * ROWS)
    wanted = (unpacked(a, 1) * left) @ (unpacked(b, 1) * right).T
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-3 * np.abs(wanted).max())


def test_both_factors_of_eight_bits_and_a_scale_that_is_no_number() -> None:
    random = np.random.default_rng(3)
    a, b = (random.integers(-4, 5, (n, DEEP)).astype(np.float32) / 2 for n in (ROWS, COLUMNS))
    (sa, left), (sb, right) = (scales_of(random, n, DEEP // BLOCK) for n in (ROWS, COLUMNS))
    sa[5, 1] = -1  # 255
    found = run("fp8fp8", {"a_ptr": a, "b_ptr": b, "sa_ptr": sa, "sb_ptr": sb}, ROWS)
    wanted = (a.astype(np.float64) * left) @ (b.astype(np.float64) * right).T
    assert np.isnan(found[5]).all()
    others = np.arange(ROWS) != 5
    atol = 1e-3 * np.abs(wanted).max()
    assert np.allclose(found[others], wanted[others], rtol=1e-4, atol=atol)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("lhs = e2m1", "lhs = e3m2", "a block-scaled product of e3m2; known: e4m3"),
        ("lhs = e2m1", "lhs = e5m2", "a block-scaled product of e5m2 in i8"),
        ("{fastMath = false}", "{lhs_k_pack = false}", "into 128 rows or columns"),
    ],
)
def test_what_is_no_such_product_is_refused_at_its_place(old: str, new: str, told: str) -> None:
    text = (FOLDER / "fp4fp4.ttir").read_text("utf-8").replace(old, new)
    with pytest.raises(KernelError, match=told) as refused:
        kernels_of("k.ttir", text)
    assert str(refused.value).startswith("k.ttir:")
