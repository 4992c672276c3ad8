"""`@stretto.triton.pipeline` with Triton itself: from a @triton.jit function to numbers.

    launch ──► Triton's own specialization, TTIR ──► schedule ──► Gluon ──► Triton, for sm_90
                                                     numbers, from the emulator ◄── launcher

Only the GPU is not there: `fake_gpu` stands for it.
"""

# Triton has no types, and is not installed where the other tests run.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto.triton
from fake_gpu import FakeGpu, Tensor
from stretto.emission import Emitted
from stretto.errors import StrettoError
from stretto.launching import PipelineWarning, makers
from stretto.launching.compiling import Compiled, compile_emitted
from stretto.triton import hooks
from stretto.triton.specializing import Specializer

triton = pytest.importorskip("triton", reason="Triton is not installed: make test-gpu has it")
EXAMPLES = Path(__file__).parents[2] / "examples/triton"
TILES = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeGpu]:
    found = FakeGpu()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setenv("STRETTO_MAKERS", "0")
    monkeypatch.setattr(makers, "IDLE", 0.5)
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # 3.9 warns where nothing is said
    monkeypatch.setattr("stretto.launching.device._TARGETS", {})
    monkeypatch.setattr("stretto.triton.dispatch.device_events", lambda: None)
    # Since 3.8 a kernel asks for a driver once more as it goes, which may be after all tests.
    triton.runtime.driver._default = triton.runtime.driver._default or FakeGpu()
    monkeypatch.setattr(triton.runtime.driver, "_active", found)
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    yield found
    makers.makers().end()
    for thread in threading.enumerate():  # which close what they opened
        if thread.name == "stretto-maker":
            thread.join(20)
    makers._makers.clear()  # pyright: ignore[reportPrivateUsage]
    Tensor.memory.clear()


def pipelined(kernel: Any, **options: Any) -> Any:
    """A kernel whose launches are ours, untimed."""
    given: dict[str, Any] = {"trial": False, **options}
    return stretto.triton.pipeline(**given)(kernel)


def example(name: str, function: str = "") -> Any:
    """A kernel of the examples, compiled for nothing yet."""
    jitted = getattr(__import__(name), function or name)
    return type(jitted)(jitted.fn)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float16))


def product(kernel: Any, m: int, n: int, k: int, **options: Any) -> tuple[Any, Any]:
    """What a launch wrote, and what it should have."""
    a, b, c = numbers(m, k), numbers(k, n, seed=1), Tensor(np.zeros((m, n), np.float16))
    grid = lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"]))  # noqa: E731
    kernel[grid](a, b, c, m, n, k, **TILES, **options)
    return c.array, a.array.astype(np.float32) @ b.array.astype(np.float32)


@pytest.mark.parametrize("options", [{}, {"consumers": 1}])
def test_a_matrix_product_is_launched_as_ever_and_runs_as_gluon(
    gpu: FakeGpu, options: dict[str, Any]
) -> None:
    kernel = pipelined(example("matmul_descriptors"), strict=True, **options)
    for m, n, k in [(128, 128, 64), (256, 128, 192), (120, 136, 72)]:
        made, wanted = product(kernel, m, n, k, num_warps=4)
        np.testing.assert_allclose(made.astype(np.float32), wanted, rtol=2e-3, atol=3e-2)
    assert gpu.launches == ["matmul_descriptors_kernel"] * 3
    assert gpu.stock == []


def test_attention_makes_its_descriptors_itself(gpu: FakeGpu) -> None:
    kernel = pipelined(example("attention_forward"), strict=True)
    heads, length, d = 2, 256, 64
    q, k, v = (numbers(heads * length, d, seed=seed) for seed in range(3))
    o = Tensor(np.zeros((heads * length, d), np.float16))
    lse = Tensor(np.zeros(heads * length, np.float32))
    tiles = {"BLOCK_M": 128, "BLOCK_N": 64, "D": d, "CAUSAL": False}
    scale = 1.4426950408889634 / d**0.5
    kernel[length // 128, heads](q, k, v, o, lse, scale, length, heads * length, **tiles)
    each = [t.array.astype(np.float64).reshape(heads, length, d) for t in (q, k, v)]
    scores = each[0] @ each[1].transpose(0, 2, 1) * (scale * np.log(2))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ each[2]
    np.testing.assert_allclose(o.array.reshape(wanted.shape), wanted, rtol=1e-2, atol=1e-2)
    assert gpu.launches == ["attention_forward_kernel"]


def test_launches_are_specialized_as_triton_does(gpu: FakeGpu) -> None:
    """Divisibility, sizes of 1 and constants decide; other numbers do not."""
    jitted = example("matmul_descriptors")
    special = Specializer(jitted, ("cuda", 90))
    a, b, c = numbers(128, 64), numbers(64, 128), numbers(128, 128)
    one = special((a, b, c, 128, 128, 64), TILES)
    assert one.key == special((a, b, c, 256, 128, 192), TILES).key
    others = [
        special((a, b, c, 128, 128, 72), TILES),
        special((a, b, c, 128, 128, 1), TILES),
        special((Tensor(a.array, 1), b, c, 128, 128, 64), TILES),
        special((a, b, c, 128, 128, 64), {**TILES, "BLOCK_K": 128}),
        special((a, b, c, 128, 128, 64), {**TILES, "num_warps": 8}),
    ]
    assert len({one.key, *(other.key for other in others)}) == 6
    assert one.what.attributes[0,] == [["tt.divisibility", 16]]
    assert others[1].what.constexprs[5,] == 1
    with pytest.raises(StrettoError, match="asks for num_ctas=2, which is not emitted"):
        special((a, b, c, 128, 128, 64), {**TILES, "num_ctas": 2})
    assert gpu.launches == []


def test_another_address_needs_no_other_kernel_and_the_same_one_nothing(gpu: FakeGpu) -> None:
    gpu.emulate = False
    kernel = pipelined(example("matmul_descriptors"), strict=True)
    a, b, c = numbers(128, 64), numbers(64, 128), numbers(128, 128)
    first = kernel[1, 1](a, b, c, 128, 128, 64, **TILES)
    assert kernel[1, 1](a, b, c, 128, 128, 64, **TILES) is first
    assert kernel[1, 1](a, numbers(64, 128), c, 128, 128, 64, **TILES) is first
    assert len(gpu.launches) == 3


@pytest.mark.parametrize("trial", [False, True])
def test_a_decided_launch_asks_triton_nothing(gpu: FakeGpu, trial: bool) -> None:
    """Whoever runs it; another type, alignment or constant goes Triton's own way."""
    gpu.emulate = False
    jitted = example("matmul_descriptors")
    kernel = pipelined(jitted, strict=True)
    a, b, c = numbers(128, 64), numbers(64, 128), numbers(128, 128)
    kernel[1, 1](a, b, c, 128, 128, 64, **TILES)
    if trial:
        (dispatch,) = {d for r in hooks.DISPATCHES if (d := r()) and d.function is jitted}
        for kind in dispatch._settled:  # as if a trial had said so
            dispatch._settled[kind] = dispatch._stock
    kernel[1, 1](a, b, c, 128, 128, 64, **TILES)  # found once more, and kept
    gpu.launches.clear()
    gpu.stock.clear()
    binder = jitted.device_caches[0]
    jitted.device_caches[0] = None  # nothing is asked of it
    for rows in (a, numbers(128, 64, seed=3)):
        kernel[lambda _: (1, 1)](rows, b, c, 128, 128, 64, **TILES)
    ours, theirs = ["matmul_descriptors_kernel"] * 2, ["matmul_descriptors"] * 2
    assert (gpu.launches, gpu.stock) == (([], theirs) if trial else (ours, []))
    odd = Tensor(a.array, 1)
    others: list[tuple[Any, ...]] = [
        (a, b, c, 128, 128, 65),
        (a, b, c, True, 128, 64),
        (odd, b, c, 128, 128, 64),
        (Tensor(np.zeros((128, 64), np.float32)), b, c, 128, 128, 64),
    ]
    for given in others:
        with pytest.raises(TypeError):  # of what was taken away
            kernel[1, 1](*given, **TILES)
    with pytest.raises(TypeError):
        kernel[1, 1](a, b, c, 128, 128, 64, **{**TILES, "BLOCK_K": 32})
    jitted.device_caches[0] = binder
    seen: list[int] = []
    jitted.add_pre_run_hook(lambda *args, **_: seen.append(len(args)))
    kernel[1, 1](a, b, c, 128, 128, 64, **TILES)
    assert seen == [9]


def test_a_launch_that_overlaps_what_it_writes_is_tritons(gpu: FakeGpu) -> None:
    gpu.emulate = False
    kernel = pipelined(example("matmul_descriptors"))
    a, b, c = numbers(128, 128), numbers(128, 128), numbers(128, 128)
    for _ in range(3):
        kernel[1, 1](a, b, c, 128, 128, 128, **TILES)
    inside = Tensor(c.array)
    inside.address = a.data_ptr() + 64 * 128 * 2
    with pytest.warns(PipelineWarning, match="`c_ptr` is written and overlaps `a_ptr`"):
        kernel[1, 1](a, b, inside, 128, 128, 128, **TILES)
    assert (len(gpu.launches), len(gpu.stock)) == (3, 1)


def test_what_cannot_be_done_runs_as_triton_compiles_it(gpu: FakeGpu) -> None:
    kernel = pipelined(example("matmul_descriptors"))
    gpu.emulate = False
    with pytest.warns(PipelineWarning, match="asks for num_ctas=2"):
        product(kernel, 128, 128, 64, num_ctas=2)
    assert (gpu.launches, gpu.stock) == ([], ["matmul_descriptors"])
    # A row of 100 bytes is none that TMA can reach.
    with pytest.warns(PipelineWarning, match="strides must be 16-byte aligned"):
        product(kernel, 128, 128, 50)
    assert len(gpu.stock) == 2


def test_a_kernel_that_spills_where_tritons_own_does_not_is_left_to_triton(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triton's own kernel is compiled and assembled for it; ours is only said to spill."""

    def spilling(emitted: Emitted) -> Compiled:
        return replace(compile_emitted(emitted), spilled=8)

    monkeypatch.setattr("stretto.launching.compiling.compile_emitted", spilling)
    gpu.emulate = False
    kernel = pipelined(example("matmul_descriptors"), consumers=1)
    with pytest.warns(PipelineWarning, match=r"spills 8 bytes .* Triton's own kernel 0"):
        product(kernel, 128, 128, 64)
    assert (gpu.launches, gpu.stock) == ([], ["matmul_descriptors"])


def test_a_kernel_larger_than_the_gpus_shared_memory_is_left_to_triton(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A smaller GPU of the same kind: what was made for another does not run there."""
    monkeypatch.setattr("triton.compiler.compiler.max_shared_mem", lambda _: 166_912)
    gpu.emulate = False
    kernel = pipelined(example("matmul_descriptors"))
    with pytest.warns(PipelineWarning, match=r"OutOfResources: .*shared memory"):
        product(kernel, 128, 128, 64)
    assert (gpu.launches, gpu.stock) == ([], ["matmul_descriptors"])


def test_what_another_process_made_is_found_in_tritons_cache(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no launch waits for a compiler, but that of Triton's own kernel."""
    monkeypatch.setenv("STRETTO_MAKERS", "1")
    hits: dict[str, bool] = {}

    def listen(*, src: Any, cache_hit: bool, **_: Any) -> None:
        hits[src.fn.__name__] = cache_hit

    monkeypatch.setattr(triton.knobs.compilation, "listener", listen)
    gpu.emulate = False
    kernel = pipelined(example("matmul_descriptors"), wait=True, consumers=1, depth=3)
    product(kernel, 128, 128, 64)
    assert (gpu.launches, gpu.stock) == (["matmul_descriptors_kernel"], [])
    assert hits == {"matmul_descriptors": False, "matmul_descriptors_kernel": True}


def test_the_first_launch_does_not_wait(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_MAKERS", "1")
    gpu.emulate = False
    kernel = pipelined(example("matmul_descriptors"), consumers=1, depth=3)
    product(kernel, 128, 128, 64)
    assert (gpu.launches, gpu.stock) == ([], ["matmul_descriptors"])
    deadline = time.monotonic() + 60
    while not gpu.launches and time.monotonic() < deadline:
        time.sleep(0.1)
        product(kernel, 128, 128, 64)
    assert gpu.launches == ["matmul_descriptors_kernel"]


def test_autotuning_chooses_between_our_kernels(gpu: FakeGpu) -> None:
    gpu.emulate = False
    kernel = pipelined(example("matmul_descriptors"), strict=True)
    configs = [triton.Config({**TILES, "BLOCK_N": n}, num_warps=4) for n in (64, 128)]
    timed: list[int] = []

    def bench(call: Any, quantiles: Any) -> list[float]:
        del quantiles
        call()
        timed.append(len(timed))
        return [float(-len(timed))] * 3

    tuned = triton.autotune(configs, key=["M"], do_bench=bench)(kernel)
    a, b, c = numbers(128, 64), numbers(64, 128), numbers(128, 128)
    tuned[lambda meta: (1, 128 // meta["BLOCK_N"])](a, b, c, 128, 128, 64)
    assert timed == [0, 1]
    assert gpu.launches == ["matmul_descriptors_kernel"] * 3
    assert gpu.stock == []
    assert tuned.best_config.kwargs["BLOCK_N"] == 128


def test_the_model_chooses_tiles_of_a_kernel_that_triton_reads(gpu: FakeGpu) -> None:
    """Tiles that do not fit are left out; the numbers are those of the product."""
    configs = {"BLOCK_M": [128], "BLOCK_N": [64, 128], "BLOCK_K": [64, 4096]}
    options = {"tune": "model", "configs": configs, "depth": 2, "strict": True}
    kernel = pipelined(example("matmul_descriptors"), **options)
    a, b, c = numbers(128, 128), numbers(128, 128, seed=1), numbers(128, 128)
    kernel[lambda meta: (1, 128 // meta["BLOCK_N"])](a, b, c, 128, 128, 128)
    wanted = a.array.astype(np.float32) @ b.array.astype(np.float32)
    np.testing.assert_allclose(c.array.astype(np.float32), wanted, rtol=2e-3, atol=2e-2)
    assert gpu.launches == ["matmul_descriptors_kernel"]
    assert gpu.stock == []
