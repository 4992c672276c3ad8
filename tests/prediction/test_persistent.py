"""Kernels whose blocks go over tiles are predicted tile by tile."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto.compile import loop_schedules
from stretto.compile.candidates import Emitter
from stretto.compile.choice import chosen
from stretto.compile.emitted import EmittedKernel
from stretto.compile.scheduled import ScheduledLoop
from stretto.kernel.configuration import Blocks
from stretto.loop import Loop
from stretto.machine import load_machine
from stretto.prediction.kernel_time import _Whole, predict_kernel  # pyright: ignore[reportPrivateUsage]

ROOT = Path(__file__).parents[2]
FORWARD = ROOT / "examples" / "triton" / "attention_forward_d128.ttir"
CAUSAL = ROOT / "examples" / "triton" / "attention_forward_d128_causal.ttir"
RESULTS = ROOT / "benchmarks" / "gpu" / "results"
MODEL = RESULTS / "attention-model-h200-2026-11-19.jsonl"
H200 = load_machine("h200")
LENGTH, HEADS, ROWS, KEYS = 1024, 64, 128, 64
GRID = (LENGTH // ROWS, HEADS)
GIVEN = {"length": LENGTH, "total_rows": LENGTH * HEADS}


def made(file: Path, blocks: Blocks) -> EmittedKernel:
    emitter = Emitter(str(file), "h200", blocks=blocks, effort="quick")
    return chosen(emitter.candidates(2, None), emitter.machine)


@pytest.fixture(scope="module")
def causal() -> EmittedKernel:
    return made(CAUSAL, "persistent")


def work(kernel: EmittedKernel) -> list[tuple[tuple[int, ...], ...]]:
    whole = _Whole(kernel.subject, H200, GRID, GIVEN, None)
    return [whole._work(block) for block in range(132)]  # pyright: ignore[reportPrivateUsage]


def test_blocks_go_over_all_tiles_each_with_its_own_trips(causal: EmittedKernel) -> None:
    every = Counter(tile for tiles in work(causal) for tile in tiles)
    diagonal = ROWS // KEYS
    assert every == {(1, n * diagonal, diagonal): HEADS for n in range(LENGTH // ROWS)}


def test_tiles_told_at_once_are_those_told_one_by_one(causal: EmittedKernel) -> None:
    whole = _Whole(causal.subject, H200, GRID, GIVEN, None)
    for block in (0, 57, 131):
        assert tuple(whole._walked(block)) == whole._work(block)  # pyright: ignore[reportPrivateUsage]


def test_a_block_takes_as_long_as_its_tiles(causal: EmittedKernel) -> None:
    found = predict_kernel(causal.subject, H200, GRID, GIVEN)
    assert found.grid == (*GRID, 1)
    assert found.waves == 1
    # As many operations as the tiles have: 4 of each place on or below the diagonal's tiles.
    tiles = LENGTH // ROWS
    places = sum(n * ROWS * ROWS for n in range(1, tiles + 1))
    assert found.flops == 4.0 * HEADS * places * 128
    assert found.block < found.cycles * 1.01
    assert found.tail < 0.2 * found.cycles


def test_persistent_blocks_pay_where_blocks_are_short() -> None:
    found = stretto.rank(
        [(str(FORWARD), GRID)],
        "h200",
        arguments=GIVEN,
        consumers=(2,),
        depths=(None,),
        blocks=("given", "persistent"),
    ).found
    assert [one.blocks for one in found] == ["persistent", "given"]
    assert found[0].prediction.cycles < 0.97 * found[1].prediction.cycles


def test_one_wave_has_no_persistent_blocks() -> None:
    found = stretto.rank(
        [(str(FORWARD), (8, 16))],
        "h200",
        arguments={"length": 1024, "total_rows": 16_384},
        consumers=(2,),
        depths=(None,),
        blocks=("given", "persistent"),
    ).found
    assert [one.blocks for one in found] == ["given"]


def test_what_the_rule_takes_is_near_the_fastest_in_every_cell() -> None:
    text = MODEL.read_text(encoding="utf-8")
    lost: list[float] = []
    for row in map(json.loads, text.splitlines()):
        cycles = {name: n for name, n in row["cycles"].items() if "256x128" not in name}
        times = {name: statistics.median(row["ms"][name]) for name in cycles}
        lost.append(times[min(cycles, key=cycles.__getitem__)] / min(times.values()))
    assert len(lost) == 20
    assert statistics.geometric_mean(lost) == pytest.approx(1.004, abs=5e-4)
    assert max(lost) == pytest.approx(1.025, abs=5e-4)


def test_the_table_is_of_what_the_rule_takes() -> None:
    rows = [json.loads(line) for line in MODEL.read_text(encoding="utf-8").splitlines()]
    peers = RESULTS / "attention-h200-2026-11-19.jsonl"
    ran = [json.loads(line) for line in peers.read_text(encoding="utf-8").splitlines()]
    size = ("d", "causal", "length")
    taken = {tuple(row[key] for key in size): row["Stretto"] for row in ran}
    for row in rows:
        cycles = {name: n for name, n in row["cycles"].items() if "256x128" not in name}
        assert min(cycles, key=cycles.__getitem__) == taken[tuple(row[key] for key in size)]


def test_a_ranking_searches_a_loop_once_whatever_blocks_it_is_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor does it look at shorter rings by which no more blocks share an SM."""
    asked: list[object] = []
    search = loop_schedules.scheduled

    def scheduled(loop: Loop, *args: Any, **more: Any) -> ScheduledLoop:
        asked.append((replace(loop, name=""), args, more["max_stages"], more["effort"]))
        return search(loop, *args, **more)

    monkeypatch.setattr(loop_schedules, "scheduled", scheduled)

    def ranked(keep: int | None) -> stretto.KernelRanking:
        return stretto.rank(
            [(str(FORWARD), GRID)],
            "h200",
            arguments=GIVEN,
            consumers=(2,),
            depths=(3, 1),
            blocks=("given", "persistent"),
            keep=keep,
        )

    few = ranked(1)
    assert asked
    assert len(asked) == len(set(asked))
    assert few.skipped == 2
    whole = ranked(None)
    assert {one.blocks for one in whole.found} == {"given", "persistent"}
    assert few.best.worth[0] <= 1.01 * whole.best.worth[0]
