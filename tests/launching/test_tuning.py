"""Configurations that are chosen at the launch: ranked, measured, remembered.

Triton is a stub that has the TTIR of one example for any BLOCK_K; the emulator is the GPU.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from test_launching import ROOT, TTIR, Jit, Stub, check_product, matrices

import stretto
import stretto.triton
from fake_gpu import Tensor
from stretto.compile.candidates import Emitter
from stretto.errors import StrettoError
from stretto.frontends.triton import read_ttir
from stretto.kernel import Kernel
from stretto.launching import Asked, PipelineWarning
from stretto.launching.tuning import configurations, measured_of, ranked
from stretto.prediction.floor import floor_of
from stretto.triton.reading import Specialization, Ttir
from stretto.triton.specializing import Specialized
from stretto.verification import verify as violations_of

EXAMPLES = ROOT / "examples/triton"
OPEN = [{"BLOCK_K": 32}, {"BLOCK_K": 64}, {"BLOCK_K": 128}]


def _text(k: int) -> str:
    """The matrix product with other steps; those of 7 cannot be."""
    if k == 7:
        return "nonsense"
    found = TTIR.replace("128x64x", f"128x{k}x").replace("64x128x", f"{k}x128x")
    return found.replace("constant 64 :", f"constant {k} :")


class TilingStub(Stub):
    """Has a TTIR for each BLOCK_K."""

    asked = 0
    """How often."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        super().__init__(monkeypatch, tmp_path)
        monkeypatch.setattr("stretto.triton.tuning.Specializer", self.specializer)
        monkeypatch.setattr("stretto.triton.tuning.found_triton", self.reader)

    def specializer(self, *_: Any) -> Any:
        return self.specialize

    def specialize(self, args: Any, kwargs: Any) -> Specialized:
        given = dict(Jit().signature.bind(*args, **kwargs).arguments)
        step = {"BLOCK_K": given.get("BLOCK_K", 64)}
        ones = [v for v in given.values() if isinstance(v, int) and v == 1]
        return Specialized(Specialization({}, {}, {}, step), given, f"{ones} {step}")

    def reader(self) -> Any:
        return SimpleNamespace(ttir=self.read)

    def read(self, *given: Any) -> Ttir:
        self.asked += 1
        return Ttir(_text(given[1].options["BLOCK_K"]), 4, 3, "cuda:90")

    def ttir(self, given: Mapping[str, Any]) -> str:
        return _text(given["BLOCK_K"])


@pytest.fixture
def tiling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TilingStub]:
    monkeypatch.setattr("stretto.triton.tuning.current_device", lambda: (0, ("cuda", 90)))
    yield TilingStub(monkeypatch, tmp_path)
    Tensor.memory.clear()


def tuned(**options: Any) -> Callable[[Any], Any]:
    """Launches are ours as soon as they are chosen."""
    given: dict[str, Any] = {"trial": False, **options}
    return stretto.triton.pipeline(**given)


def _kernel(text: str) -> Kernel:
    (found,) = read_ttir("matmul", text)
    return found


def _steps(loaded: Any) -> int:
    """BLOCK_K of a kernel that was loaded."""
    (found,) = {k for k in (32, 64, 128) if f", {k}, 128]" in loaded.kernel.source}
    return found


class Clock:
    """Tells the times that it was given, after it has called what it is to time."""

    def __init__(self, *times: float) -> None:
        self.times = list(times)

    def __call__(self, call: Callable[[], Any]) -> float:
        call()
        return self.times.pop(0)


# What is asked for --------------------------------------------------------------------------------


def test_tune_says_model_or_how_many_are_measured() -> None:
    assert [measured_of(text) for text in ("model", "measure:1", "measure:12")] == [0, 1, 12]


@pytest.mark.parametrize("text", ["", "Model", "measure", "measure:0", "measure:-1", "measure:x"])
def test_another_tune_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(StrettoError, match=r'is not known; give tune="model" .* tune="measure:5"'):
        tuned(tune=text)(Jit())


def test_configurations_are_a_list_or_all_combinations() -> None:
    grid = configurations({"M": [1, 2], "N": [3, 4]}, ["M", "N"])
    assert grid == ({"M": 1, "N": 3}, {"M": 1, "N": 4}, {"M": 2, "N": 3}, {"M": 2, "N": 4})
    assert configurations(OPEN, ["BLOCK_K"]) == tuple(OPEN)


@pytest.mark.parametrize(
    ("configs", "told"),
    [
        ([], "configs has no configuration"),
        ({"BLOCK_K": []}, "configs has no configuration"),
        ([{"BLOCK_X": 1}], "`BLOCK_X`, which is no parameter of the kernel; it has a_ptr, b_ptr"),
        ([{"BLOCK_K": 1}, {}], "`BLOCK_K` in some configurations and not in others"),
    ],
)
def test_configurations_that_cannot_be_meant_are_refused(configs: Any, told: str) -> None:
    with pytest.raises(StrettoError, match=told):
        tuned(tune="model", configs=configs)(Jit())


def test_warps_and_stages_of_a_launch_may_be_open() -> None:
    options = {"num_warps": [4, 8], "num_stages": [2, 3]}
    found = configurations({"BLOCK_K": [32], **options}, ["BLOCK_K"])
    assert [one["num_warps"] for one in found] == [4, 4, 8, 8]


def test_of_configurations_that_are_emitted_alike_one_is_ranked() -> None:
    options = {"num_warps": [4, 8], "num_stages": [2, 3]}
    counts: list[tuple[int, int]] = []
    for name, text in (("product", TTIR), ("norm", (EXAMPLES / "layer_norm.ttir").read_text())):
        configs = configurations(options, [name])
        asked = Asked("h200", None, None, 1).on("cuda:90")
        read: list[int] = []

        def one(number: int, text: str = text, read: list[int] = read) -> tuple[Kernel, list[int]]:
            read.append(number)
            warps = configs[number]["num_warps"]  # noqa: B023 - called before the next
            return replace(_kernel(text), warps=warps), [132]

        given = {"M": 512, "N": 512, "K": 512, "columns": 8192}
        found = ranked(configs, one, asked, given, None).found
        counts.append((len(read), len({made.name for made in found})))
    assert counts == [(1, 1), (2, 2)]


def test_configurations_without_a_way_to_choose_are_refused() -> None:
    with pytest.raises(StrettoError, match=r'tune is not; give tune="model"'):
        stretto.triton.pipeline(configs=OPEN)(Jit())


def test_what_is_open_is_not_given_by_the_launch(tiling: TilingStub) -> None:
    del tiling
    kernel = tuned(tune="model", configs=OPEN)(Jit())
    with pytest.raises(StrettoError, match="`BLOCK_K` is given by the launch and by configs"):
        kernel[(1, 1)](*matrices(), 128, 128, 128, BLOCK_K=64)


# At the launch ------------------------------------------------------------------------------------


def test_the_model_takes_the_first_of_the_ranking(tiling: TilingStub) -> None:
    """And the grid is a function of the configuration that was chosen."""
    problems = [(_kernel(_text(one["BLOCK_K"])), (1, 1)) for one in OPEN]
    names = [str(one["BLOCK_K"]) for one in OPEN]
    sizes = {"M": 128, "N": 128, "K": 256}
    best = stretto.rank(problems, "h200", arguments=sizes, names=names).best
    seen: list[int] = []

    def grid(meta: dict[str, int]) -> tuple[int, int]:
        seen.append(meta["BLOCK_K"])
        return 1, 1

    jit = Jit(tiling)
    kernel = tuned(tune="model", configs=OPEN, strict=True)(jit)
    a, b, c = matrices(256)
    kernel[grid](a, b, c, 128, 128, 256)
    check_product(a, b, c)
    (loaded,) = tiling.loaded
    assert str(_steps(loaded)) == best.name == str(seen[-1])
    assert f"{best.made.consumers} consumer" in loaded.kernel.source
    asked = tiling.asked
    kernel[grid](a, b, c, 128, 128, 256)
    assert (tiling.asked, len(tiling.loaded), jit.launched) == (asked, 1, [])


def test_the_fastest_of_those_measured_is_taken_and_remembered(tiling: TilingStub) -> None:
    a, b, c = matrices(256)
    clock = Clock(3.0, 1.0, 2.0)
    kernel = tuned(tune="measure:3", configs=OPEN, do_bench=clock)(Jit(tiling))
    kernel[(1, 1)](a, b, c, 128, 128, 256)
    assert clock.times == []
    first, second, third, chosen = (one.kernel.source for one in tiling.loaded)
    assert chosen == second
    assert len({first, second, third}) == 3
    again = tuned(tune="measure:3", configs=OPEN, do_bench=Clock())(Jit(tiling))
    c.array[...] = 0
    again[(1, 1)](a, b, c, 128, 128, 256)
    check_product(a, b, c)
    assert tiling.loaded[-1].kernel.source == second
    # For other numbers another process measures anew.
    clock = Clock(1.0, 2.0, 3.0)
    other = tuned(tune="measure:3", configs=OPEN, do_bench=clock)(Jit(tiling))
    other[(1, 1)](*matrices(128), 128, 128, 128)
    assert clock.times == []


def test_what_cannot_be_measured_is_left_out(tiling: TilingStub) -> None:
    def bench(call: Callable[[], Any]) -> float:
        call()
        if len(tiling.loaded) == 1:
            raise RuntimeError("out of memory")
        return 1.0

    kernel = tuned(tune="measure:2", configs=OPEN, do_bench=bench)(Jit(tiling))
    kernel[(1, 1)](*matrices(256), 128, 128, 256)
    sources = [one.kernel.source for one in tiling.loaded]
    assert sources[-1] == sources[1] != sources[0]


def test_a_choice_is_made_anew_for_arguments_that_are_named(tiling: TilingStub) -> None:
    for key, measured in (((), 1), (("K",), 2)):
        clock = Clock(1.0, 1.0)
        kernel = tuned(
            tune="measure:1", configs=[{"BLOCK_K": 64}], key=key, do_bench=clock, depth=len(key) + 2
        )(Jit(tiling))
        for k in (128, 256):
            kernel[(1, 1)](*matrices(k), 128, 128, k)
        assert len(clock.times) == 2 - measured
    assert tiling.loaded
    with pytest.raises(StrettoError, match="key has `Q`, which is no parameter of the kernel"):
        tuned(tune="model", key=["Q"])(Jit(tiling))


def test_a_configuration_that_cannot_be_is_left_out_and_reported(
    tiling: TilingStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRETTO_REPORT", str(tmp_path / "reports"))
    configs = [{"BLOCK_K": 7}, {"BLOCK_K": 64}]
    kernel = tuned(tune="model", configs=configs, strict=True)(Jit(tiling))
    kernel[(1, 1)](*matrices(), 128, 128, 128)
    assert _steps(tiling.loaded[0]) == 64
    (file,) = (tmp_path / "reports").glob("*.tuned.json")
    document = json.loads(file.read_text())
    schemas = ROOT / "src/stretto/report/schemas"
    jsonschema.validate(document, json.loads((schemas / "tuned.schema.json").read_text()))
    ranking = json.loads((schemas / "prediction.schema.json").read_text())
    jsonschema.validate(document["ranking"], ranking)
    assert document["chosen"]["config"] == 1
    assert document["ranking"]["refused"][0].startswith("BLOCK_K=7: <matmul_descriptors>")
    assert "BLOCK_K=64 on h200" in file.with_suffix(".txt").read_text()


def test_where_none_is_left_the_first_runs_as_stock_with_one_warning(tiling: TilingStub) -> None:
    jit = Jit(tiling)
    kernel = tuned(tune="model", configs=[{"BLOCK_K": 7}])(jit)
    a, b, c = matrices()
    with pytest.warns(PipelineWarning) as told:
        _ = [kernel[(n,)](a, b, c, 128, 128, 128) for n in (1, 2)]
    assert jit.launched == [(1, 1, 1), (2, 1, 1)]
    (warning,) = told
    assert "no configuration can be emitted: BLOCK_K=7: " in str(warning.message)
    assert warning.filename == __file__


def test_a_choice_that_was_damaged_is_made_anew(tiling: TilingStub, tmp_path: Path) -> None:
    for text in ("{", "[]", '{"chosen": {"config": 9, "consumers": 1, "depth": 2}}'):
        kernel = tuned(tune="model", configs=OPEN[:1], depth=2)(Jit(tiling))
        kernel[(1, 1)](*matrices(), 128, 128, 128)
        (file,) = tmp_path.rglob("tuned/*.json")
        assert json.loads(file.read_text())["schema"] == "stretto.tuned/1"
        file.write_text(text)


# The bound ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "grid", "given"),
    [
        ("matmul_descriptors", (32, 32), {"M": 4096, "N": 4096, "K": 4096}),
        ("matmul_descriptors", (3, 1), {"M": 384, "N": 128, "K": 256}),
        ("matmul_persistent", (132,), {"M": 4096, "N": 4096, "K": 4096}),
        ("attention_forward_d128", (32, 16), {"length": 4096}),
        ("attention_forward_d64_causal", (32, 16), {"length": 4096}),
    ],
)
def test_no_depth_goes_below_the_floor(
    file: str, grid: tuple[int, ...], given: dict[str, int]
) -> None:
    path = str(EXAMPLES / f"{file}.ttir")
    emitter = Emitter(path, "h200")
    every = stretto.rank([(path, grid)], "h200", arguments=given, depths=(1, 3, 6)).found
    for count in emitter.counts:
        ready = emitter.lowered(count)
        loops = [(loop.operation, loop.wiring.loop) for loop in ready.loops]
        floor = floor_of(ready.kernel, loops, emitter.machine, grid, given, None, {})
        least = min(one.prediction.seconds for one in every if one.made.consumers == count)
        assert 0.3 * least < floor <= least


@pytest.mark.parametrize("clock", [300.0, 1000.0, 3000.0, 6000.0])
def test_no_clock_brings_a_kernel_below_its_floor(clock: float) -> None:
    """Not even one at which copies take the longest, and blocks fall out of step."""
    product = str(EXAMPLES / "matmul_persistent.ttir")
    emitter = Emitter(product, "h200")
    given = {"M": 8192, "N": 8192, "K": 8192}
    for count in emitter.counts:
        ready = emitter.lowered(count)
        loops = [(loop.operation, loop.wiring.loop) for loop in ready.loops]
        floor = floor_of(ready.kernel, loops, emitter.machine, (132,), given, clock, {})
        found = stretto.rank(
            [(product, (132,))], "h200", arguments=given, clock=clock, consumers=[count]
        )
        least = found.best.prediction.seconds
        assert 0.8 * least < floor <= least


def test_arithmetic_counts_in_the_floor() -> None:
    """Products of 512 cycles an iteration leave a part of the pipes to the softmax."""
    emitter = Emitter(str(EXAMPLES / "attention_forward_d64.ttir"), "h200")
    ready = emitter.lowered(2)
    loops = [(loop.operation, loop.wiring.loop) for loop in ready.loops]
    floor = floor_of(ready.kernel, loops, emitter.machine, (132, 1), {"length": 128 * 64}, 1e3, {})
    launch = 1e-9 * {t.name: t.values[0] for t in emitter.machine.timings}["launch"]
    assert (floor - launch) * 1e9 / 128 > 1.05 * 512


@pytest.mark.parametrize("file", ["matmul_descriptors", "attention_forward_d64"])
def test_rings_of_a_ranking_are_no_longer_than_asked_and_its_schedules_legal(file: str) -> None:
    emitter = Emitter(str(EXAMPLES / f"{file}.ttir"), "h200", effort="quick")
    for depth in (6, 5, 3, 2, 1):
        for made in emitter.candidates(2, depth):
            assert max(made.emitted.rings.values()) <= depth
            for analysis in made.analyses:
                loop, machine = analysis.problem.loop, analysis.problem.machine
                short = tuple(
                    replace(s, depth=min(depth, s.depth or depth))
                    if s.space == "smem" and not s.fixed
                    else s
                    for s in loop.storages
                )
                assert not violations_of(replace(loop, storages=short), machine, analysis)


def test_what_is_scheduled_for_long_rings_stands_for_short_ones() -> None:
    emitter = Emitter(str(EXAMPLES / "matmul_descriptors.ttir"), "h200", effort="quick")
    long, short = (emitter.candidates(2, depth)[0] for depth in (6, 4))
    assert long.slots <= 4
    assert short.analyses == long.analyses
    assert (set(long.emitted.rings.values()), set(short.emitted.rings.values())) == ({6}, {4})
    assert emitter.candidates(2, 5)[0] is not long
    assert emitter.candidates(2, 6)[0] is long


def test_one_group_of_warps_is_ranked_by_the_schedule_that_a_launch_takes() -> None:
    path = str(EXAMPLES / "layer_norm.ttir")
    (found,) = stretto.rank([(path, (16384,))], "h200", arguments={"columns": 8192}).found
    every = Emitter(path, "h200", effort="quick").candidates()
    assert found.made.order == min(made.order for made in every) < max(m.order for m in every)


def test_rows_for_less_than_a_group_of_warps_are_refused() -> None:
    text = TTIR.replace("128x64x", "64x64x").replace("128x128x", "64x128x")
    emitter = Emitter(_kernel(text), "h200")
    assert emitter.candidates(1, 2)
    with pytest.raises(StrettoError, match=r"2 consumers would multiply 32 rows each .*64"):
        emitter.candidates(2, 2)


def test_a_ranking_of_the_first_few_has_those_of_the_whole() -> None:
    """The second problem is the first in blocks of which an SM has one more than it need have."""
    kernel = _kernel(_text(64))
    problems = [(kernel, (132,)), (kernel, (133,))]
    names, sizes = ("even", "odd"), {"M": 4096, "N": 4096, "K": 4096}
    whole = stretto.rank(problems, "h200", arguments=sizes, names=names, depths=(1, 2, 4))
    few = stretto.rank(problems, "h200", arguments=sizes, names=names, depths=(1, 2, 4), keep=2)
    assert few.best.worth == whole.best.worth
    assert [one.name for one in few.found] == ["even"] * 2
    assert few.skipped > 0
    assert any(
        "more are no faster by their bounds or by longer rings" in one for one in few.to_text()
    )
