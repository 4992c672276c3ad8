"""Ordinary kernels that once failed on the way out: tests/ttir/ordinary/, emitted and run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    TensorType,
)

import stretto
from gluon_cases import launched, near
from stretto.api.emitting import emit
from stretto.cli.main import main
from stretto.compile import loop_schedules, versions
from stretto.compile.candidates import STAGES
from stretto.compile.emitted import EmitMode
from stretto.compile.scheduled import ScheduledLoop, scheduled
from stretto.emission import EmitError
from stretto.extraction import kernels
from stretto.generate import SERIAL
from stretto.ir.loops.module import is_one_number
from stretto.kernel import Kernel, KernelError, pipeline
from stretto.kernel.configuration import Configuration
from stretto.kernel.tree import Lowered
from stretto.machine import Machine

Array = NDArray[Any]
ORDINARY = Path(__file__).parents[1] / "ttir" / "ordinary"
ONE: list[tuple[int | None, EmitMode]] = [(1, "specialized"), (None, "unspecialized")]
"""Ways to run a kernel of 64 rows."""
MACHINES = ("h200", "b200-pipes", "blackwell")


@cache
def source(name: str, consumers: int | None = None, mode: EmitMode | None = None) -> str:
    """A kernel as Gluon, of the first stage count that is tried: any has to be right."""
    first = {mode: stages[:1] for mode, stages in STAGES.items()}
    with patch.dict(STAGES, first), patch.object(loop_schedules, "SOLVED_WORK", 0):
        return emit(ORDINARY / f"{name}.ttir", "h200", consumers=consumers, mode=mode).source


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def run(text: str, inputs: Mapping[str, Any], *grid: int) -> dict[str, Array]:
    return launched(text, inputs, grid or (1,), 0.2)


# Operations with several results ------------------------------------------------------------------


def test_a_tile_becomes_two_and_two_become_one() -> None:
    for rows in (0, 1, 2, 5, 8):
        x = normal(rows, 8, 256).astype(np.float32)
        inputs = {"x_ptr": x, "y_ptr": np.zeros(128, np.float32), "z_ptr": np.zeros_like(x)}
        found = run(source("pairs"), {**inputs, "rows": rows})
        assert np.allclose(found["y_ptr"], (x[:rows, ::2] * x[:rows, 1::2]).sum(0), atol=1e-5)
        turned = x.reshape(8, 128, 2)[:, :, ::-1].reshape(8, 256)
        assert np.array_equal(found["z_ptr"][:rows], turned[:rows])
        assert not found["z_ptr"][rows:].any()


def test_a_tile_is_split_outside_of_loops() -> None:
    x = normal(1, 1024).astype(np.float32)
    found = run(source("halves"), {"x_ptr": x, "y_ptr": np.zeros(512, np.float32)})
    assert np.array_equal(found["y_ptr"], x[::2] + x[1::2])


# Loops in loops -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(), (3,), (2, 0, 5, 1), (0, 0), (1, 9, 4)])
def test_tiles_of_groups_are_dealt_out_while_there_are_any(sizes: tuple[int, ...]) -> None:
    out = np.full(16, -1, np.int32)
    given = np.array([*sizes, 7], np.int32)
    inputs = {"sizes_ptr": given, "out_ptr": out, "groups": len(sizes)}
    found = run(source("grouped"), inputs, 4)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    assert np.array_equal(found["out_ptr"][: len(groups)], groups)
    assert (found["out_ptr"][len(groups) :] == -1).all()


@pytest.mark.parametrize(("consumers", "mode"), ONE)
def test_products_of_groups(consumers: int | None, mode: EmitMode) -> None:
    sizes, depth = (2, 0, 1), 96
    a, b = normal(1, sum(sizes) * 64, depth), normal(2, len(sizes), depth, 64)
    inputs: dict[str, Any] = {"a_ptr": a, "b_ptr": b, "sizes_ptr": np.array(sizes, np.int32)}
    inputs |= {"c_ptr": np.zeros((sum(sizes) * 64, 64), np.float32), "groups": 3, "K": depth}
    of = np.repeat(np.arange(len(sizes)), [64 * size for size in sizes])
    wanted = np.einsum("rk,rkn->rn", a.astype(np.float64), b.astype(np.float64)[of])
    for blocks in (1, 2):
        found = run(source("grouped_product", consumers, mode), inputs, blocks)
        near(found, {"c_ptr": wanted}, 0.01)


@pytest.mark.parametrize(("consumers", "mode"), ONE)
def test_offsets_that_a_loop_carries(consumers: int | None, mode: EmitMode) -> None:
    text = source("carried", consumers, mode)
    for steps in (0, 3, 4, 5, 9, 14):
        trips = len(range(3, steps, 2))
        x, w = normal(1, 64, 6 * 64), normal(2, 7 * 64, 64)
        inputs = {"x_desc": x, "w_desc": w, "y_desc": np.zeros((128, 64), np.float16)}
        found = run(text, {**inputs, "begin": 64, "steps": steps})
        used = x[:, : 64 * trips].astype(np.float64), w[64 : 64 + 64 * trips].astype(np.float64)
        total = used[0] @ used[1]
        near(found, {"y_desc": np.concatenate((total, total + 64 * trips))}, 0.3)


def test_offsets_around_loops_that_carry_several_tiles() -> None:
    for strips, steps in ((0, 2), (1, 1), (3, 0), (3, 4)):
        x = normal(strips, 64 * max(1, strips), 256)
        inputs = {"x_desc": x, "y_desc": np.ones((x.shape[0], 64), np.float16)}
        found = run(source("strips"), {**inputs, "strips": strips, "steps": steps})
        tiles = x.astype(np.float64).reshape(-1, 4, 64)[:, :steps]
        wanted = tiles.sum(1) + tiles.max(1, initial=0.0) if strips else inputs["y_desc"]
        near(found, {"y_desc": np.asarray(wanted)}, 0.02)


@pytest.mark.parametrize(("consumers", "mode"), ONE)
def test_descriptors_that_begin_where_a_block_s_head_does(
    consumers: int | None, mode: EmitMode
) -> None:
    text = source("heads", consumers, mode)
    assert "x_ptr, [2147483647, 2147483647, N, 64]" in text
    length, batches, count = 160, 2, 3
    x, w = (normal(seed, batches, count, length, 64) for seed in (1, 2))
    inputs = {"x_ptr": x, "w_ptr": w, "y_ptr": np.zeros_like(x), "N": length, "H": count}
    found = run(text, inputs, -(-length // 64), batches * count)
    padded = np.pad(w.astype(np.float64), [(0, 0), (0, 0), (0, 32), (0, 0)])
    added = padded.reshape(batches, count, 3, 64, 64).sum(2)
    near(found, {"y_ptr": x.astype(np.float64) @ added.swapaxes(-1, -2)}, 0.1)
    told = stretto.simulate_kernel(
        ORDINARY / "heads.ttir", inputs, (3, batches * count), machine="h200"
    )
    near(told.arrays, {"y_ptr": x.astype(np.float64) @ added.swapaxes(-1, -2)}, 0.1)


# Products by addresses ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["specialized", "unspecialized"])
@pytest.mark.parametrize(
    ("name", "columns", "added"),
    [
        ("product_columns", True, False),
        ("product_columns_moving", True, False),
        ("product_added", False, True),
        ("product_columns_added", True, True),
        ("product_8", False, False),
        ("product_8_columns", True, False),
    ],
)
def test_products_by_addresses(name: str, columns: bool, added: bool, mode: EmitMode) -> None:
    narrow = name.startswith("product_8")
    width = 64 if narrow else 128
    rng = np.random.default_rng(7)
    for steps in (1, 2, 3, 6):
        depth = 64 * steps
        a, b = (
            rng.integers(-3, 4, shape).astype(np.float16)
            for shape in ((128, depth), (depth, width))
        )
        c = normal(3, 128, width).astype(np.float32 if narrow else np.float16)
        stored = np.ascontiguousarray(b.T) if columns else b
        inputs = {"a_ptr": a, "b_ptr": stored, "c_ptr": c, "K": depth}
        found = run(source(name, mode=mode), {**inputs, "stride": depth if columns else width})
        wanted = a.astype(np.float64) @ b.astype(np.float64) + (c if added else 0)
        near(found, {"c_ptr": wanted}, 0.01 if narrow else 0.2)


@pytest.mark.parametrize("consumers", [1, 2])
def test_steps_of_a_product_have_scales(consumers: int) -> None:
    depth = 64 * 5
    a, b, s = normal(1, 128, depth), normal(2, 128, depth), normal(3, 5).astype(np.float32)
    inputs = {"a_ptr": a, "b_ptr": b, "s_ptr": s, "c_ptr": np.zeros((128, 128), np.float32)}
    parts = zip(
        np.split(a.astype(np.float64), 5, 1), np.split(b.astype(np.float64), 5, 1), strict=True
    )
    wanted = sum(scale * (x @ y.T) for scale, (x, y) in zip(s, parts, strict=True))
    near(
        run(source("scaled", consumers), {**inputs, "K": depth}),
        {"c_ptr": np.asarray(wanted)},
        0.01,
    )


def test_what_neighbours_in_memory_lie_along_is_how_threads_lie() -> None:
    """Eight elements of K at once, where B is stored by columns and threads load it."""
    with patch.object(pipeline, "with_views_of_addresses", Lowered):
        columns, rows = (
            emit(ORDINARY / f"{name}.ttir", "h200", consumers=1, mode="unspecialized").source
            for name in ("product_columns", "product_added")
        )
    assert "columns_64_128_along_0 = gl.constexpr(gl.BlockedLayout([8, 1]" in columns
    assert "along_0" not in rows


def test_what_is_loaded_is_converted_and_not_the_sum() -> None:
    text = source("product_added", 1)
    (line,) = [line for line in text.splitlines() if ".to(gl.float32)" in line]
    assert "gl.convert_layout" in line
    assert "convert_layout(acc_ready" not in text


def test_factors_of_8_bits_have_k_in_one_piece() -> None:
    text = source("product_8")
    assert "get_default_for([64, 64], gl.float8e4nv, transposed=True)" in text
    assert "get_default_for([128, 64], gl.float8e4nv)" in text
    assert "DotOperandLayout" not in text


# Descriptors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("consumers", "mode"), [*ONE, (2, "specialized"), (None, "specialized")])
def test_tiles_lack_the_leading_dimensions_of_their_view(
    consumers: int | None, mode: EmitMode
) -> None:
    x, w = normal(1, 9, 200, 160), normal(2, 9, 136, 160)
    inputs = {"x_ptr": x, "w_ptr": w, "y_ptr": np.zeros((9, 200, 136), np.float16)}
    found = run(
        source("layers", consumers, mode),
        {**inputs, "layer": 7, "M": 200, "N": 136, "K": 160},
        2,
        2,
    )
    wanted = np.zeros((9, 200, 136))
    wanted[7] = x[7].astype(np.float64) @ w[7].astype(np.float64).T
    near(found, {"y_ptr": wanted}, 0.1)


def test_what_cannot_be_split_has_one_consumer() -> None:
    made = emit(ORDINARY / "folded.ttir", "h200", time_limit=5)
    assert made.consumers == 1
    x, w = normal(1, 256, 160), normal(2, 96, 160)
    inputs: dict[str, Any] = {"x_ptr": x, "w_ptr": w, "y_ptr": np.zeros((256, 96), np.float16)}
    found = run(made.source, {**inputs, "M": 256, "N": 96, "K": 160}, 2)
    halves = x.astype(np.float64).reshape(2, 2, 64, 160).swapaxes(0, 1).reshape(256, 160)
    near(found, {"y_ptr": halves @ w.astype(np.float64).T}, 0.1)
    told = refused("folded", consumers=2)
    assert told.startswith("kernels.py:")
    assert told.endswith(
        "`reshape` of tile<2x64x64xf16> cannot be tile<64x64xf16> there; "
        "ask for one replica: --consumers 1"
    )


def refused(name: str, **asked: Any) -> str:
    with pytest.raises((EmitError, KernelError)) as raised:
        emit(ORDINARY / f"{name}.ttir", "h200", **asked)
    return str(raised.value)


def test_a_split_that_is_no_kernel_is_not_tried_further(monkeypatch: pytest.MonkeyPatch) -> None:
    lower = kernels.lower

    def broken(kernel: Kernel, machine: Machine, asked: Configuration) -> Lowered:
        """Of a kernel that is split, the first operation is missing."""
        made = lower(kernel, machine, asked)
        body = made.kernel.body
        if asked.consumers == 1:
            return made
        return Lowered(replace(made.kernel, body=replace(body, operations=body.operations[1:])))

    monkeypatch.setattr(kernels, "lower", broken)
    source.cache_clear()
    assert "compute_1_agent" not in source("layers")
    source.cache_clear()
    told = refused("layers", consumers=2)
    assert told.startswith("kernels.py:")
    assert "error: it cannot be lowered: `" in told
    assert told.endswith(", which is not made before it")


@pytest.mark.parametrize("count", [1, 2])
def test_views_that_a_branch_makes_and_a_loop_carries_are_split(count: int, tmp_path: Path) -> None:
    """They are no launch's to make, but what the kernel is split into does the same."""
    told = "kernels.py:225:12: error: a view that is made in the kernel's course cannot be emitted"
    assert refused("remade", consumers=count).startswith(told)
    file = tmp_path / "remade.mlir"
    file.write_text(stretto.import_kernel(ORDINARY / "remade.ttir", "h200", consumers=count)[0])
    assert ("compute.1" in file.read_text()) == (count == 2)
    x, w = normal(1, 3, 128, 128), normal(2, 3, 128, 128)
    inputs: dict[str, Any] = {"x_ptr": x, "w_ptr": w, "y_ptr": np.zeros((128, 128), np.float32)}
    after = stretto.simulate_kernel(file, {**inputs, "steps": 2, "count": 3}, machine="h200")
    wanted = np.einsum("cmk,cnk->mn", x.astype(np.float64), w.astype(np.float64))
    near(after.arrays, {"y_ptr": wanted}, 0.05)


def searched(*given: Any, **asked: Any) -> ScheduledLoop:
    """A loop in order, which is no search."""
    assert SERIAL in given
    return scheduled(*given, **asked)


@pytest.mark.parametrize("asked", [{}, {"consumers": 1}, {"consumers": 2}])
@pytest.mark.parametrize("mode", ["specialized", "unspecialized", None])
@pytest.mark.parametrize("name", ["picked", "picked_product"])
def test_rows_that_are_gathered_are_refused_before_any_search(
    name: str, mode: EmitMode | None, asked: Mapping[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if asked.get("consumers") == 2 and (name == "picked" or mode == "unspecialized"):
        asked = {}
    for module in (versions, loop_schedules):
        monkeypatch.setattr(module, "scheduled", searched)
    told = "`async.tma_gather` has no Gluon yet (at a launch, Triton's own kernel runs it)"
    assert refused(name, mode=mode, **asked).endswith(told)


@pytest.mark.parametrize("mode", ["unspecialized", None])
def test_sums_on_the_way_are_scanned(mode: EmitMode | None) -> None:
    made = emit(ORDINARY / "running.ttir", "h200", mode=mode)
    assert "gl.associative_scan(" in made.source


@pytest.mark.parametrize("consumers", [1, 2])
@pytest.mark.parametrize("stages", [2, 6])
def test_a_column_that_is_made_outside_is_spread_in_the_loop(consumers: int, stages: int) -> None:
    with (
        patch.dict(STAGES, specialized=(stages,)),
        patch.object(loop_schedules, "SOLVED_WORK", 0),
    ):
        text = emit(ORDINARY / "centred.ttir", "h200", consumers=consumers).source
    x, w = 0.1 * normal(1, 128, 128), normal(2, 96, 128)
    m = normal(3, 128).astype(np.float32)
    inputs = {"x_ptr": x, "w_ptr": w, "m_ptr": m, "y_ptr": np.zeros((128, 128), np.float32)}
    powers = np.exp2(x.astype(np.float64) @ w.astype(np.float64).T - m[:, None])
    wanted = {"y_ptr": powers @ w.astype(np.float64)}
    near(run(text, {**inputs, "N": 96}), wanted, 1.0)
    told = stretto.simulate_kernel(
        ORDINARY / "centred.ttir", {**inputs, "N": 96}, (1,), machine="h200"
    )
    near(told.arrays, wanted, 1.0)


# Numbers ------------------------------------------------------------------------------------------


def test_truth_values_and_numbers_without_a_sign() -> None:
    x, keep = normal(1, 300).astype(np.float32), np.random.default_rng(2).random(300) < 0.5
    inputs: dict[str, Any] = {"x_ptr": x, "keep_ptr": keep.astype(np.int8), "seed": 12345, "n": 300}
    inputs |= {"y_ptr": np.zeros(300, np.float32), "z_ptr": np.zeros(300, np.float32)}
    found = run(source("dropped"), inputs, 2)
    assert np.array_equal(found["y_ptr"], np.where(keep, 2 * x, 0))
    told = stretto.simulate_kernel(ORDINARY / "dropped.ttir", inputs, (2,), machine="h200")
    assert np.allclose(found["z_ptr"], told.arrays["z_ptr"])
    assert 0 <= found["z_ptr"].min() < 0.05
    assert 0.95 < found["z_ptr"].max() < 1


def test_numbers_that_are_none() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-3, 4, (5, 256)).astype(np.float16)
    found = run(source("marked"), {"x_ptr": x, "y_ptr": np.zeros_like(x), "rows": 4})
    wanted = np.select([x > 1, x < -1, x == 0], [np.inf, -np.inf, np.nan], x)
    assert np.array_equal(found["y_ptr"][:4], wanted[:4], equal_nan=True)
    assert not found["y_ptr"][4:].any()


@pytest.mark.parametrize("number", [math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0])
@pytest.mark.parametrize("element", [Float16Type, BFloat16Type, Float32Type, Float64Type])
def test_constants_are_one_number_where_their_bits_are(number: float, element: Any) -> None:
    type = TensorType(element(), (2, 64))
    same = DenseIntOrFPElementsAttr.from_list(type, [number] * 128)
    assert is_one_number(same)
    assert is_one_number(DenseIntOrFPElementsAttr.from_list(type, [number]))
    assert not is_one_number(DenseIntOrFPElementsAttr.from_list(type, [number] * 127 + [-number]))


# All commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", sorted(ORDINARY.glob("*.ttir")), ids=lambda file: file.stem)
def test_no_command_fails_in_a_way_that_nobody_foresaw(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An error that nobody foresaw would be raised here; one that is told has its place."""
    for command in ("bounds", "schedule", "simulate", "import"):
        for machine in MACHINES:
            code = main([command, str(file), "--machine", machine])
            told = capsys.readouterr()
            assert code == 0 or "error: " in told.err or "no schedule found" in told.out, told
            assert "bug of Stretto" not in told.err + told.out
    assert main(["convert", str(file), str(tmp_path / "out.json"), "--machine", "h200"]) in (0, 1)


def test_steps_that_write_where_they_read_overlap_where_each_has_a_place_of_its_own():
    x = np.arange(5 * 256, dtype=np.float32)
    made = emit(ORDINARY / "in_place.ttir", "h200")
    assert max(analysis.stage_count or 0 for analysis in made.analyses) > 1
    (analysis,) = made.analyses
    (read, write) = (o.name for o in analysis.problem.loop.ops if o.kind.startswith("pointer."))
    assert analysis.starts[read] < analysis.starts[write]
    total, wanted = np.float32(0), x.copy()
    for at in range(0, len(x), 256):
        wanted[at : at + 256] = x[at : at + 256] * 2 + total
        total += x[at : at + 256].sum()
    result = run(made.source, {"x_ptr": x, "n": len(x)})
    near(result, {"x_ptr": wanted}, 1e-2)


def test_a_tile_of_one_element_is_a_tile():
    x = np.random.default_rng(0).standard_normal((9, 128)).astype(np.float32)
    rows = np.array([3, 1, 7, 0, 0], np.int32)
    inputs = {"x_ptr": x, "at_ptr": rows, "y_ptr": np.zeros(129, np.float32), "n": len(rows)}
    result = run(source("single"), inputs)
    near(result, {"y_ptr": np.array([*x[rows].sum(0), x[rows].sum()])}, 1e-4)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_products_of_two_branches_begin_with_zeros_of_their_own(first: int):
    x, y = normal(1, 64, 64), normal(2, 3, 64, 64)
    wanted = y.astype(np.float32)
    if first > 0:
        wanted = (x.astype(np.float32) @ wanted).astype(np.float16).astype(np.float32)
    if first < 2:
        wanted = wanted @ x.astype(np.float32)
    result = run(source("branched"), {"x_ptr": x, "y_ptr": y, "n": 3, "first": first})
    assert np.abs(result["y_ptr"] - wanted).max() < 0.05 * np.abs(wanted).max()


def test_what_no_registers_hold_is_refused_before_any_search(tmp_path: Path):
    text = (ORDINARY / "in_place.ttir").read_text("utf-8").replace("256", "65536")
    (tmp_path / "wide.ttir").write_text(text, "utf-8")
    with pytest.raises(EmitError, match="takes 512 registers in each of 128 threads") as refused:
        emit(tmp_path / "wide.ttir", "h200")
    assert "a smaller block, or more num_warps" in refused.value.hint
