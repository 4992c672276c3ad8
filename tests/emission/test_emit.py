"""Kernels as Gluon: what is emitted does in an emulator what NumPy does; bugs are caught."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cutile_cases
import gluon_emulator
import kernel_cases
import stretto
from gluon_cases import emitted, holds, launched, near, shipped
from gluon_emulator import EmulationError
from stretto.api.emitting import emit
from stretto.compile.emitted import EmitMode
from stretto.compile.sources import kernels_of
from stretto.emission import EmitError
from stretto.errors import StrettoError
from stretto.extraction.kernels import runnable_kernels
from stretto.frontends import read_input
from stretto.kernel import Kernel
from stretto.kernel.partition import partition
from stretto.machine import load_machine
from stretto.program.builder.layouts import Layouts
from stretto.program.layouts import Product, Rows

H200 = load_machine("h200")
AGENTS = ("compute", "compute.1")


def kernel_of(name: str) -> Kernel:
    return kernels_of(*read_input(str(shipped(name))))[0]


# Every kernel that ships --------------------------------------------------------------------------

TRITON = [f"triton/{name}" for name in kernel_cases.CASES]
CUTILE = [f"cutile/{name}" for name in cutile_cases.CASES]


ROWLESS = {"triton/layer_norm", "triton/softmax", "cutile/layer_norm", "cutile/softmax"}
"""Those without a product have no rows to split, and no use for agents."""


@pytest.mark.parametrize("name", [name for name in (*TRITON, *CUTILE) if name not in ROWLESS])
def test_two_consumers_do_what_numpy_does(name: str) -> None:
    holds(name, emitted(name, 2).source)


@pytest.mark.parametrize("name", TRITON)
def test_one_consumer_does_what_numpy_does(name: str) -> None:
    holds(name, emitted(name, 1).source)


@pytest.mark.parametrize("name", [*TRITON, "cutile/layer_norm", "cutile/softmax"])
def test_one_group_of_warps_does_what_numpy_does(name: str) -> None:
    holds(name, emitted(name, mode="unspecialized").source)


# Trip counts --------------------------------------------------------------------------------------

TRIPS = (*range(10), 40)


def gemm(source: str, trips: int, naps: float = 0.0) -> None:
    """A product of so many steps; the last one goes beyond the end of K."""
    rng = np.random.default_rng(trips)
    depth = max(0, 64 * trips - 24)
    a = rng.standard_normal((128, max(depth, 1))).astype(np.float16)
    b = rng.standard_normal((max(depth, 1), 128)).astype(np.float16)
    wanted = a[:, :depth].astype(np.float64) @ b[:depth].astype(np.float64)
    inputs = {"a_ptr": a, "b_ptr": b, "c_ptr": np.full((128, 128), np.nan, np.float16)}
    inputs |= {"M": 128, "N": 128, "K": depth}
    near(launched(source, inputs, (1, 1), naps), {"c_ptr": wanted}, 0.1)


def attention(source: str, trips: int, columns: int, d: int) -> None:
    """One head whose keys are so many tiles; queries beyond the last are nobody's."""
    rng = np.random.default_rng(trips)
    length = trips * columns
    q, k, v = (
        gluon_emulator.rounded(rng.standard_normal((max(length, 1), d)).astype(np.float32))
        for _ in "qkv"
    )
    scores = q.astype(np.float64) @ k.T / np.sqrt(d)
    p = np.exp(scores - scores.max(1, keepdims=True))
    wanted = p / p.sum(1, keepdims=True) @ v
    o, lse = np.full_like(q, np.nan), np.full(max(length, 1) + 128, np.nan, np.float32)
    scale = float(np.log2(np.e) / np.sqrt(d))
    inputs = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "o_ptr": o, "lse_ptr": lse, "scale": scale}
    inputs |= {"length": length, "total_rows": length}
    after = launched(source, inputs, (max(1, -(-length // 128)), 1))
    if length:
        near(after, {"o_ptr": wanted}, 0.03)


WAYS: list[tuple[int | None, EmitMode]] = [
    (1, "specialized"),
    (2, "specialized"),
    (None, "unspecialized"),
]


@pytest.mark.parametrize(("consumers", "mode"), WAYS)
def test_a_product_of_any_trip_count(consumers: int | None, mode: EmitMode) -> None:
    source = emitted("triton/matmul_descriptors", consumers, mode).source
    for trips in TRIPS:
        gemm(source, trips)


@pytest.mark.parametrize(("consumers", "mode"), WAYS)
def test_attention_of_any_trip_count(consumers: int | None, mode: EmitMode) -> None:
    source = emitted("triton/attention_forward_d64", consumers, mode).source
    for trips in TRIPS:
        attention(source, trips, 64, 64)


# Bugs in the text ---------------------------------------------------------------------------------

SLOW = 1.0
"""Every copy and every arrival tarries, so that whoever does not wait is ahead."""


def part(source: str, function: str, change: Callable[[list[str]], list[str]]) -> str:
    """The source with one function's lines changed."""
    lines = source.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith(f"def {function}("))
    last = next(n for n in range(first + 1, len(lines)) if lines[n].startswith("@gluon"))
    return "\n".join((*lines[:first], *change(lines[first:last]), *lines[last:])) + "\n"


def without(source: str, text: str, function: str = "compute_agent") -> str:
    return part(source, function, lambda lines: [line for line in lines if text not in line])


def twice(source: str, text: str) -> str:
    return part(
        source, "compute_agent", lambda lines: [t for x in lines for t in [x] * (1 + (text in x))]
    )


def instead(source: str, old: str, new: str, function: str = "compute_agent") -> str:
    return part(source, function, lambda lines: [line.replace(old, new) for line in lines])


def released_early(source: str) -> str:
    """Slots handed back before the wait for the product that reads them."""

    def change(lines: list[str]) -> list[str]:
        found: list[str] = []
        for line in lines:
            at = len(found)
            if "mbarrier.arrive" in line:
                at = max(n for n, before in enumerate(found) if "warpgroup_mma_wait" in before)
            found.insert(at, line)
        return found

    return part(source, "compute_agent", change)


def gone_round_early(source: str) -> str:
    return instead(source, f"b_tile_phase, {DEPTH})", f"b_tile_phase, {DEPTH - 1})")


DEPTH = 5
GEMM = "triton/matmul_descriptors"
BUGS: dict[str, Callable[[str], str]] = {
    "tiles are read before they have come": lambda s: without(s, "mbarrier.wait("),
    "slots are filled before they are free": lambda s: without(s, "mbarrier.wait(", "copy_agent"),
    "slots are handed back too early": released_early,
    "a slot is never handed back": lambda s: without(s, "mbarrier.arrive(b_tile_free"),
    "slots are handed back twice": lambda s: twice(s, "mbarrier.arrive("),
    "a reader begins in the wrong phase": lambda s: instead(
        s, "b_tile_phase = 0", "b_tile_phase = 1"
    ),
    "the copier begins in the wrong phase": lambda s: instead(
        s, "b_tile_phase = 1", "b_tile_phase = 0", "copy_agent"
    ),
    "a ring has a slot less than its agents count": lambda s: s.replace(
        f"[{DEPTH}, 64, 128]", f"[{DEPTH - 1}, 64, 128]"
    ),
    "an agent counts a slot less than there are": gone_round_early,
    "a product is read before it is waited for": lambda s: without(s, "warpgroup_mma_wait"),
    "a barrier asks for more arrivals than come": lambda s: s.replace(
        "mbarrier.init(b_tile_free.index(slot), count=1)",
        "mbarrier.init(b_tile_free.index(slot), count=2)",
    ),
    "a barrier expects more bytes than come": lambda s: s.replace(", 16384)", ", 16392)"),
    "a loop's variable is read after the loop": lambda s: instead(
        s, "total.to(", "(total + step * 0).to("
    ),
    "the copier is an iteration ahead": lambda s: instead(
        s, "[step * 64", "[(step + 1) * 64", "copy_agent"
    ),
    "a tile is stored that threads may still be writing": lambda s: without(s, "fence_async"),
    "a kernel ends while a tile is stored": lambda s: without(s, "tma.store_wait("),
    "agents begin before barriers are there": lambda s: "".join(
        s.rpartition("    fence_async_shared()\n")[::2]
    ),
}


def pipelined_gemm() -> str:
    """One consumer, with products in flight from step to step, and no slot to spare."""
    made = emitted(GEMM, 1, depth=DEPTH)
    assert made.emitted.rings["b_tile"] == DEPTH
    return made.source


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_the_text_is_caught(bug: str) -> None:
    source = pipelined_gemm()
    changed = BUGS[bug](source)
    assert changed != source
    with pytest.raises((EmulationError, AssertionError)):
        gemm(changed, 12, SLOW)


def test_without_a_bug_nothing_is_caught() -> None:
    gemm(pipelined_gemm(), 12, SLOW)


# Rows split between replicas ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["matmul_descriptors", "matmul_fused", "attention_forward_d64", "attention_backward_kv"]
)
def test_a_split_kernel_does_what_the_whole_does(name: str) -> None:
    case = kernel_cases.CASES[name]()
    split = partition(kernel_of(f"triton/{name}"), AGENTS)
    found = stretto.simulate_kernel(split, case.inputs, case.grid, H200, mode="specialized")
    assert found.success
    near(found.arrays, case.expected, case.tolerance)


def test_each_replica_has_half_the_rows() -> None:
    split = partition(kernel_of(GEMM), AGENTS)
    shapes = [
        (op.attributes["agent"], op.results[0].type) for op in split.walk() if op.name == "tile.dot"
    ]
    assert [(agent, str(type)) for agent, type in shapes] == [
        ("compute", "tile<64x128xf32>"),
        ("compute.1", "tile<64x128xf32>"),
    ]


def test_one_replica_is_the_kernel_itself() -> None:
    case = kernel_cases.CASES["matmul_descriptors"]()
    alone = partition(kernel_of(GEMM), AGENTS[:1])
    found = stretto.simulate_kernel(alone, case.inputs, case.grid, H200, mode="specialized")
    assert found.success
    near(found.arrays, case.expected, case.tolerance)


# Refusals -----------------------------------------------------------------------------------------


def refused(name: str, **asked: Any) -> str:
    with pytest.raises(StrettoError) as error:
        emit(shipped(name), **asked)
    return str(error.value)


def test_what_cannot_be_split_says_why() -> None:
    told = refused("triton/softmax", mode="specialized", consumers=2)
    assert told == (
        "softmax.py:9:1: error: it cannot be split between replicas; "
        "only a kernel with a product has rows to split"
    )


def test_more_consumers_than_the_machine_has_are_refused() -> None:
    assert refused(GEMM, consumers=5) == "5 consumers; h200 has 1 to 4"
    assert refused(GEMM, consumers=0) == "0 consumers; h200 has 1 to 4"
    assert refused(GEMM, depth=0) == "rings of 0 slots; at least 1 is needed"


def test_consumers_are_those_of_a_specialized_kernel() -> None:
    told = refused(GEMM, mode="unspecialized", consumers=2)
    assert told == "2 consumers in mode unspecialized, in which one warpgroup does everything"


def test_a_machine_without_agents_is_refused() -> None:
    told = refused(GEMM, machine="blackwell")
    assert told == (
        "machine blackwell does not say who issues what; emit for one with agents, such as h200"
    )


def test_what_is_no_kernel_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "loop.json"
    file.write_text('{"schema": "stretto.loop/1"}')
    with pytest.raises(StrettoError, match=r"is no kernel that can be emitted; expected a \.ttir"):
        emit(file)


POWER = """module {
  tt.func public @count(%counts_ptr: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %many: i32) {
    %one = arith.constant 3 : i32
    %power = math.ipowi %one, %many : i32
    tt.store %counts_ptr, %power : !tt.ptr<i32>
    tt.return
  }
}
"""


def test_what_has_no_gluon_is_refused_at_its_place(tmp_path: Path) -> None:
    file = tmp_path / "count.ttir"
    file.write_text(POWER)
    with pytest.raises(
        EmitError, match=r"count\.ttir:4:\d+: error: `math.ipowi` has no Gluon yet \(multiply"
    ):
        emit(file)


# Layouts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize("vector", [1, 2, 4, 8])
def test_rows_are_laid_out_over_all_threads(warps: int, vector: int) -> None:
    """32 threads a warp and every warp, as Gluon demands, whatever the shape."""
    sizes = [1, 2, 16, 64, 128, 1024]
    shapes = [(a,) for a in sizes] + [(a, b) for a in sizes for b in sizes] + [(4, 16, 64)]
    for shape in shapes:
        text = Rows(shape, warps, vector).text
        numbers = [list(map(int, t.split("]")[0].split(","))) for t in text.split("[")[1:]]
        size, threads, across, order = numbers
        assert len(size) == len(threads) == len(across) == len(order) == len(shape)
        assert np.prod(threads) == 32
        assert np.prod(across) == warps
        assert sorted(order) == list(range(len(shape)))


def test_attention_is_laid_out_as_its_products_are() -> None:
    kernel = kernel_of("triton/attention_forward_d64")
    (ready,) = runnable_kernels("attention.ttir", (kernel,), H200)
    layouts = Layouts(ready.kernel, 8)
    found: dict[str, str] = {}
    for op in ready.kernel.walk():
        if op.results and op.name.startswith(("math.", "nv_tileas.reduce.", "nv_tileas.async.wg")):
            found.setdefault(op.name.split(".")[-1], str(layouts.of(op.results[0])))
    assert found == {
        "wgmma": "mma_64",
        "wgmma_wait": "mma_64",
        "max": "gl.SliceLayout(1, mma_64)",
        "sum": "gl.SliceLayout(1, mma_64)",
        "exp2": "gl.SliceLayout(1, mma_64)",
        "fma": "mma_64",
        "log2": "gl.SliceLayout(1, mma_64)",
    }


def test_a_product_s_layout_follows_its_columns_and_elements() -> None:
    assert Product(64, 4, 16).text == "gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])"
    assert Product(512, 8, 8).text == "gl.NVMMADistributedLayout([3, 0], [8, 1], [16, 256, 32])"


# Global memory in order ---------------------------------------------------------------------------

SMOOTHED = """module {
  tt.func public @smooth(%x_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %w_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %rows: i32 {tt.divisibility = 16 : i32}) {
    %none = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %one = arith.constant 1 : i64
    %zero = arith.constant 0 : i32
    %width = arith.constant 64 : i64
    %size = arith.constant 64 : i32
    %x_desc = tt.make_tensor_descriptor %x_ptr, [%rows, %size], [%width, %one] : <f16>, <tensor<64x64xf16>>
    %y_desc = tt.make_tensor_descriptor %w_ptr, [%rows, %size], [%width, %one] : <f16>, <tensor<64x64xf16>>
    %w_desc = tt.make_tensor_descriptor %w_ptr, [%size, %size], [%width, %one] : <f16>, <tensor<64x64xf16>>
    %w = tt.descriptor_load %w_desc[%zero, %zero] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    scf.for %start = %zero to %rows step %size  : i32 {
      %x = tt.descriptor_load %x_desc[%start, %zero] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %y = tt.dot %x, %w, %none, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %next = arith.addi %start, %size : i32
      %narrow = arith.truncf %y : tensor<64x64xf32> to tensor<64x64xf16>
      tt.descriptor_store %x_desc[%next, %zero], %narrow : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
    }
    tt.return
  }
}
"""  # noqa: E501


@pytest.mark.parametrize("mode", ["specialized", "unspecialized"])
def test_a_step_that_reads_what_another_stored_by_tma_is_refused(
    mode: EmitMode, tmp_path: Path
) -> None:
    """In steps of one product each, the next tile would be read before it is written."""
    file = tmp_path / "smooth.ttir"
    file.write_text(SMOOTHED)
    with pytest.raises(EmitError) as error:
        emit(file, mode=mode)
    assert "smooth.ttir:17:" in str(error.value)
    assert "smooth.ttir:13:" in str(error.value)
    assert "may touch the same element before or after it (TMA keeps no order" in str(error.value)


def test_a_tile_is_stored_in_every_step(tmp_path: Path) -> None:
    """Into another array, by the agent that made it."""
    file = tmp_path / "smooth.ttir"
    text = SMOOTHED.replace("descriptor_store %x_desc", "descriptor_store %o_desc")
    text = text.replace(
        "%y_desc = tt.make_tensor_descriptor %w_ptr", "%o_desc = tt.make_tensor_descriptor %o_ptr"
    )
    file.write_text(
        text.replace("%rows: i32", "%o_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %rows: i32")
    )
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal((n, 64)).astype(np.float16) for n in (320, 64))
    wanted = np.full((320, 64), 7.0)
    wanted[64:] = x[:-64].astype(np.float64) @ w
    for consumers in (1, None):
        inputs = {"x_ptr": x, "w_ptr": w, "o_ptr": np.full((320, 64), 7, np.float16), "rows": 320}
        after = launched(emit(file, consumers=consumers).source, inputs, (1,), 0.5)
        near(after, {"o_ptr": wanted}, 0.1)


def test_layouts_of_one_shape_are_one_and_have_one_name() -> None:
    """Layer norm loads halves and floats: floats, four at once, say how wide both are."""
    source = emit(shipped("triton/layer_norm")).source
    assert [line for line in source.splitlines() if line.startswith("rows_1024 = ")] == [
        "rows_1024 = gl.constexpr(gl.BlockedLayout([4], [32], [4], [0]))"
    ]
    assert "convert_layout" not in source
