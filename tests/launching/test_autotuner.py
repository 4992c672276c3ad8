"""Triton's autotuner over decorated kernels: Triton itself, and a driver that launches nothing."""

# Triton has no types, and is not installed where the other tests run.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from test_pipeline_triton import example, gpu, numbers

import stretto.triton
from fake_gpu import FakeGpu, Tensor
from fake_triton import FakeEvents
from stretto.launching import making
from stretto.launching.verdicts import forget
from stretto.triton import autotuner

triton = pytest.importorskip("triton", reason="Triton is not installed: make test-gpu has it")
__all__ = ["gpu"]


class Bench:
    """The user's `do_bench`, and how long each kernel takes by it."""

    def __init__(self, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
        gpu.emulate = False
        self.gpu = gpu
        self.ours, self.theirs = 1.0, 2.0
        self.ran: list[str] = []
        self.asked: list[making.Request] = []
        monkeypatch.setattr(autotuner, "SHARE", 1e6)
        monkeypatch.setattr("stretto.triton.production.answer", self.answered)
        monkeypatch.setattr("stretto.triton.dispatch.device_events", FakeEvents)
        self.given = numbers(256, 64), numbers(64, 256), Tensor(np.ones((256, 256), np.float16))

    def answered(self, request: making.Request) -> Any:
        self.asked.append(request)
        return making.answer(request)

    def __call__(self, call: Any, quantiles: Any) -> list[float]:
        assert len(quantiles) == 3
        before = len(self.gpu.launches)
        call()
        self.ran.append("ours" if len(self.gpu.launches) > before else "theirs")
        return [self.ours if self.ran[-1] == "ours" else self.theirs] * 3

    def tuner(self, tiles: list[tuple[int, int]], **more: Any) -> Any:
        configs = [
            triton.Config(
                {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64}, num_warps=warps, num_stages=stages
            )
            for m, n in tiles
            for warps, stages in ((4, 2), (4, 3), (8, 3))
        ]
        kernel = stretto.triton.pipeline(example("matmul_descriptors"))
        return triton.autotune(configs, key=["M"], do_bench=self, **more)(kernel)

    def launch(self, tuner: Any) -> None:
        def grid(meta: Any) -> tuple[int, int]:
            return 256 // meta["BLOCK_M"], 256 // meta["BLOCK_N"]

        tuner[grid](*self.given, 256, 256, 64)


@pytest.fixture
def bench(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    forget()
    yield Bench(gpu, monkeypatch)
    assert autotuner.OPEN == autotuner.RUNNING == []


def test_what_differs_in_warps_and_stages_is_one_and_the_faster_is_tuned_to(bench: Bench) -> None:
    tuner = bench.tuner([(128, 128), (64, 128)])
    bench.launch(tuner)
    assert bench.ran == ["theirs"] * 6 + ["ours"] * 2
    assert sorted(one.sketch for one in bench.asked) == [False, False, True, True]
    bench.gpu.launches.clear()
    bench.launch(tuner)
    assert bench.gpu.launches == ["matmul_descriptors_kernel"]
    assert {v.why for v in stretto.triton.verdicts()} == {"measured by the autotuner"}
    assert {v.gained for v in stretto.triton.verdicts()} == {2.0}
    assert len(bench.ran) == 8  # tuned once


def test_a_slower_kernel_of_ours_leaves_the_choice_to_triton(bench: Bench) -> None:
    bench.ours = 1.99
    tuner = bench.tuner([(128, 128)])
    bench.launch(tuner)
    assert bench.ran == ["theirs"] * 3 + ["ours"]
    assert tuner.best_config.num_warps == 4
    bench.gpu.launches.clear()
    bench.launch(tuner)
    assert bench.gpu.launches == []


def test_no_more_than_a_few_are_made_the_first_by_the_model(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autotuner, "FEW", 1)
    monkeypatch.setattr(autotuner, "EARLY", 1.0)
    bench.launch(bench.tuner([(64, 64), (128, 128)]))
    assert [one.sketch for one in bench.asked] == [True, True, False]
    times = {one.key: making.answer(one).seconds for one in bench.asked[:2]}  # pyright: ignore
    assert bench.asked[2].key == min(times, key=lambda key: times[key])


def test_what_is_not_made_in_time_is_triton_s(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autotuner, "SHARE", 0.0)
    bench.launch(bench.tuner([(128, 128)]))
    assert bench.ran == ["theirs"] * 3


def test_tuning_takes_no_more_than_half_as_long_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that takes a minute to make is not waited for."""
    monkeypatch.setattr(autotuner, "SHARE", 0.5)
    waited: list[float] = []

    def slow(_: Any, __: Any, seconds: float) -> bool:
        waited.append(seconds)
        time.sleep(max(0.0, seconds))
        return False

    monkeypatch.setattr("stretto.triton.dispatch.Dispatch.made", slow)
    monkeypatch.setattr("stretto.triton.dispatch.Dispatch.sketch", lambda *_: None)
    begun = time.monotonic()
    tuner = bench.tuner([(128, 128), (64, 128)])
    bench.launch(tuner)
    assert sum(each for each in waited if each > 0) <= 0.5 * (time.monotonic() - begun)


def test_hooks_and_what_the_tuner_restores_are_kept_to(bench: Bench) -> None:
    hooked: list[str] = []
    tuner = bench.tuner(
        [(128, 128)],
        pre_hook=lambda *_, **__: hooked.append("pre"),
        post_hook=lambda *_, exception: hooked.append(f"post {exception}"),
    )
    bench.launch(tuner)
    assert hooked == ["pre", "post None"] * 4 + ["pre"]


def test_configurations_that_are_pruned_are_not_looked_at(bench: Bench) -> None:
    def some(configs: Any, named: Any, **_: Any) -> Any:
        assert named["M"] == 256
        return [one for one in configs if one.kwargs["BLOCK_M"] == 64 and one.num_warps == 4]

    bench.launch(
        bench.tuner([(128, 128), (64, 128)], prune_configs_by={"early_config_prune": some})
    )
    assert bench.ran == ["theirs"] * 2 + ["ours"]


def test_warming_up_tunes_nothing(bench: Bench) -> None:
    tuner = bench.tuner([(128, 128)])
    tuner.warmup(*bench.given, 256, 256, 64, grid=(2, 2))
    assert (bench.ran, bench.asked, autotuner.OPEN) == ([], [], [])
