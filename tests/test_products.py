"""Products that are not for warpgroups: tests/ttir/products/, chosen, emitted and run."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from gluon_cases import launched
from stretto.api.emitting import emit
from stretto.api.kernels import kernels_of, simulate_kernel
from stretto.compile import loop_schedules
from stretto.compile.candidates import STAGES
from stretto.compile.emitted import EmitMode
from stretto.emission import EmitError
from stretto.kernel import KernelError
from stretto.kernel.lowering.product_choice import Chosen, choose
from stretto.machine import load_machine

Array = NDArray[Any]
PRODUCTS = Path(__file__).parent / "ttir" / "products"
MODES: tuple[EmitMode, ...] = ("specialized", "unspecialized")


@cache
def source(name: str, mode: EmitMode = "specialized") -> str:
    """A kernel as Gluon, of the first stage count that is tried: any has to be right."""
    first = {mode: stages[:1] for mode, stages in STAGES.items()}
    with patch.dict(STAGES, first), patch.object(loop_schedules, "SOLVED_WORK", 0):
        return emit(PRODUCTS / f"{name}.ttir", "h200", mode=mode).source


def choices(name: str) -> list[Chosen]:
    """The products that a kernel's dots become on the H200."""
    path = PRODUCTS / f"{name}.ttir"
    (kernel,) = kernels_of(str(path), path.read_text("utf-8"))
    operations = list(kernel.walk())
    maker = {value: op for op in operations for value in op.results}
    machine = load_machine("h200")
    return [choose(op, machine, maker) for op in operations if op.name == "tile.dot"]


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("rows_16_f16", "mma_sync"),
        ("rows_8_f16", "mma_sync"),  # half of what it multiplies is there twice
        ("rows_32_bf16", "mma_sync"),
        ("rows_16_f16_sum", "mma_sync"),
        ("rows_32_tf32", "mma_sync"),
        ("rows_16_i8", "mma_sync"),
        ("rows_16_e4m3", "mma_sync"),
        ("rows_16_e5m2", "mma_sync"),
        ("decode", "mma_sync"),
        ("batches", "mma_sync"),
        ("rows_64_i8_across", "mma_sync"),  # K across the rows that TMA brings
        ("rows_64_i8", "wgmma"),
        ("rows_64_tf32", "wgmma"),
        ("rows_64_e4m3", "wgmma"),
        ("rows_64_e4m3_in_128", "wgmma"),
        ("rows_64_e4m3_in_32", "mma_sync"),  # warpgroups keep fewer bits over more elements
        ("inverse", "dot_fma"),  # all bits of f32 count
        ("rows_32_tf32x3", "dot_fma"),
    ],
)
def test_a_product_is_the_first_that_takes_it(name: str, product: str) -> None:
    assert {made.product.name for made in choices(name)} == {product}


def test_8_bit_floats_are_multiplied_as_f16() -> None:
    for name in ("rows_16_e4m3", "rows_16_e5m2"):
        (made,) = choices(name)
        assert (made.left, made.right) == ("f16", "f16")


def test_what_no_product_takes_is_refused_with_what_each_lacks() -> None:
    h200 = load_machine("h200")
    by_groups, by_warps, by_threads = h200.products
    given = {
        "rows_16_i8": (by_groups, by_threads),
        "rows_64_i8_across": (by_groups,),
        "batches": (by_groups,),
        "rows_16_e4m3": (
            replace(by_warps, columns=128, repeats=False),
            replace(by_warps, name="deep", depth=4096),
        ),
    }
    told: list[str] = []
    for name, products in given.items():
        with pytest.raises(KernelError) as error:
            emit(PRODUCTS / f"{name}.ttir", replace(h200, products=products))
        told.append(f"{error.value.message} ({error.value.hint})")
        assert str(error.value).startswith("kernels.py:")
    assert told == [
        f"h200 has no product of {shapes}, summed up in {total} ({'; '.join(why)})"
        for shapes, total, *why in (
            (
                "16x64xi8 x 64x64xi8", "i32",
                "wgmma: it multiplies 64 rows at a time, not 16",
                "dot_fma: it takes no i8 by i8 summed up in i32",
            ),
            (
                "64x64xi8 x 64x64xi8", "i32",
                "wgmma: the right factor is copied with K across its rows",
            ),
            (
                "4x16x16xf16 x 4x16x16xf16", "f32",
                "wgmma: it multiplies two matrices, not batches of them",
            ),
            (
                "16x64xf8E4M3FN x 64x64xf8E4M3FN", "f32",
                "mma_sync: it makes 128 columns at a time, not 64",
                "deep: it sums over 256 elements at a time, not 64",
            ),
        )
    ]  # fmt: skip


# Values -------------------------------------------------------------------------------------------


def numbers(seed: int, type: str, *shape: int) -> Array:
    """Numbers that every type holds, of which no sum is rounded."""
    drawn = np.random.default_rng(seed).integers(-4, 5, shape)
    return drawn.astype(type)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "type", "tile"),
    [
        ("rows_8_f16", "float16", (8, 64, 64)),
        ("rows_16_f16", "float16", (16, 64, 64)),
        ("rows_16_f16_sum", "float16", (16, 64, 64)),
        ("rows_32_tf32", "float32", (32, 64, 32)),
        ("rows_16_i8", "int8", (16, 64, 64)),
        ("rows_64_i8_across", "int8", (64, 64, 64)),
        ("rows_64_i8", "int8", (64, 128, 128)),
        ("rows_64_tf32", "float32", (64, 128, 32)),
    ],
)
def test_a_product_has_its_values_at_every_trip_count(
    name: str, type: str, tile: tuple[int, int, int], mode: EmitMode
) -> None:
    rows, columns, depth = tile
    turned = "tt.trans" in (PRODUCTS / f"{name}.ttir").read_text("utf-8")
    total = {"int8": "int32"}.get(type, "float16" if name.endswith("_sum") else "float32")
    for trips in (1, 2, 3, 6):
        m, n, k = rows - 3, columns, depth * trips - 16
        a, b = numbers(trips, type, m, k), numbers(trips + 9, type, k, n)
        given = np.ascontiguousarray(b.T) if turned else b
        c = np.full((m, n), 77, total)
        inputs = {"a_ptr": a, "b_ptr": given, "c_ptr": c, "M": m, "N": n, "K": k}
        found = launched(source(name, mode), inputs, (1, 1))
        wide = np.float64 if type != "int8" else np.int64
        assert np.array_equal(found["c_ptr"], a.astype(wide) @ b.astype(wide))


def test_a_nan_stays_in_its_row_and_its_column() -> None:
    a, b = numbers(1, "float16", 16, 128), numbers(2, "float16", 128, 64)
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    a[3, 70] = np.nan
    b[70, 5] = np.inf
    c = np.zeros((16, 64), np.float32)
    inputs = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": 16, "N": 64, "K": 128}
    found = launched(source("rows_16_f16"), inputs, (1, 1))["c_ptr"]
    assert np.isnan(found[3]).all()
    rest, column = np.delete(found, 3, 0), np.delete(a[:, 70], 3).astype(np.float32)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(rest[:, 5], wanted[[*range(3), *range(4, 16)], 5] + column * np.inf,
                              equal_nan=True)  # fmt: skip
    assert np.array_equal(np.delete(rest, 5, 1), np.delete(np.delete(wanted, 3, 0), 5, 1))


@pytest.mark.parametrize("mode", MODES)
def test_decode_reads_its_pages(mode: EmitMode) -> None:
    random = np.random.default_rng(7)
    heads, d, page, pages = 16, 64, 32, 8
    lengths = np.array([1, 31, 64, 97, 200], np.int32)
    batch = len(lengths)
    q = random.standard_normal((batch, heads, d)).astype(np.float16)
    k, v = (random.standard_normal((pages * batch * page, d)).astype(np.float16) for _ in "kv")
    table = random.permutation(pages * batch).astype(np.int32).reshape(batch, pages)
    o = np.zeros((batch, heads, d), np.float32)
    inputs = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "pages_ptr": table, "lengths_ptr": lengths,
              "o_ptr": o, "scale": 0.125}  # fmt: skip
    found = launched(source("decode", mode), inputs, (batch,))["o_ptr"]
    for one, length in enumerate(lengths):
        rows = (table[one][:, None] * page + np.arange(page)).ravel()[:length]
        s = q[one].astype(np.float32) @ k[rows].astype(np.float32).T * 0.125
        p = np.exp(s - s.max(1, keepdims=True))
        wanted = (p / p.sum(1, keepdims=True)) @ v[rows].astype(np.float32)
        assert np.allclose(found[one], wanted, atol=4e-3)


@pytest.mark.parametrize("mode", MODES)
def test_batches_of_small_matrices(mode: EmitMode) -> None:
    a, b = numbers(3, "float16", 4, 16, 48), numbers(4, "float16", 4, 48, 16)
    inputs = {"a_ptr": a, "b_ptr": b, "c_ptr": np.zeros((4, 16, 16), np.float32), "K": 48}
    found = launched(source("batches", mode), inputs, (1,))["c_ptr"]
    assert np.array_equal(found, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("mode", MODES)
def test_all_bits_of_f32_count(mode: EmitMode) -> None:
    random = np.random.default_rng(5)
    a = (np.eye(16) + 0.02 * random.standard_normal((3, 16, 16))).astype(np.float32)
    x = np.tile(np.eye(16, dtype=np.float32), (3, 1, 1))
    found = launched(source("inverse", mode), {"a_ptr": a, "x_ptr": x, "steps": 8}, (3,))["x_ptr"]
    assert np.abs(found @ a - np.eye(16)).max() < 2e-6  # tf32 would leave 5e-4


def test_sums_of_8_bits_are_added_up_by_threads_where_their_author_asks() -> None:
    """By as many elements as one product sums over; `rows_64_e4m3` lets them add up for ever."""
    promoted, plain = source("rows_64_e4m3_in_128"), source("rows_64_e4m3")
    assert "use_acc=False" in promoted
    assert "use_acc=False" not in plain
    assert re.search(r"total\w* = total\w* \+ total\w*_part", promoted)


@pytest.mark.parametrize(
    ("name", "columns"),
    [("rows_16_e4m3", 64), ("rows_16_e5m2", 32), ("rows_64_e4m3_in_128", 128)],
)
def test_8_bit_floats_have_their_values(name: str, columns: int) -> None:
    file = PRODUCTS / f"{name}.ttir"
    turned = "tt.trans" in file.read_text("utf-8")
    a, b = numbers(6, "float32", 64, 384), numbers(7, "float32", 384, columns)
    a[5, 9] = np.nan
    given = np.ascontiguousarray(b.T) if turned else b
    inputs = {"a_ptr": a, "b_ptr": given, "c_ptr": np.zeros((64, columns), np.float32)}
    inputs |= {"M": 64, "N": columns, "K": 384}
    rows = 64 if "64" in name else 16
    made = simulate_kernel(file, inputs, (64 // rows, 1), "h200", mode="emitted")
    assert made.success
    assert np.array_equal(made.arrays["c_ptr"], a @ b, equal_nan=True)


@pytest.mark.parametrize("mode", MODES)
def test_loops_that_count_by_numbers_of_two_types(mode: EmitMode) -> None:
    for few, many in ((0, 3), (2, 0), (5, 6)):
        a = numbers(few, "float16", 8, 16, 16) / 16
        x = numbers(many, "float32", 16, 16)
        wanted = x
        for step in (*range(few), *range(many)):
            wanted = a[step].astype(np.float32) @ wanted.astype(np.float16).astype(np.float32)
        inputs = {"a_ptr": a, "x_ptr": x, "few": few, "many": np.int64(many)}
        found = launched(source("counted", mode), inputs, (1,))["x_ptr"]
        assert np.allclose(found, wanted, rtol=1e-2, atol=1e-2)
    text = source("counted", mode)
    assert "for step in range(" in text
    assert "for step_i64 in range(" in text


# Source -------------------------------------------------------------------------------------------


def test_factors_are_read_out_of_rings_as_the_tensor_cores_take_them() -> None:
    text = source("rows_16_f16")
    assert "mma_sync_1x4 = gl.constexpr(gl.NVMMADistributedLayout([2, 0], [1, 4], [16, 8]))" in text
    for side in (0, 1):
        assert re.search(rf"\.load\(gl\.DotOperandLayout\({side}, mma_sync_1x4, 2\)\)", text)
    assert "warpgroup_mma(" not in text
    assert "convert_layout" not in text.partition("# kernel")[2].partition("# epilogue")[0]


def test_a_factor_that_no_step_changes_is_laid_out_once() -> None:
    text = source("decode")
    begins = text.index("# kernel")
    assert len(re.findall(r"q\w* = q\w*\.load\(gl\.DotOperandLayout\(0, ", text[:begins])) == 1
    assert re.search(r"mma_v2\(q\w*, ", text[begins:])


def test_consumers_that_would_multiply_too_few_rows_are_refused() -> None:
    with pytest.raises(EmitError, match=r"2 consumers would multiply 16 rows each"):
        emit(PRODUCTS / "rows_32_tf32.ttir", "h200", consumers=2)
