"""Orders between agents that no data carries: emitted as barriers, and kept to."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from test_emit import GEMM, SLOW, TRIPS, attention, part, without

import stretto
from gluon_cases import holds, near, shipped, traced
from gluon_emulator import EmulationError
from stretto.api.emitting import emit
from stretto.compile.candidates import STAGES
from stretto.compile.emitted import EmittedKernel
from stretto.emission import EmitError

COMPUTE, OTHER, COPY = "compute_agent", "compute_1_agent", "copy_agent"


class Order(NamedTuple):
    """One that a compiler engineer states on a loop."""

    src: str
    dst: str
    distance: int = 0
    latency: int = 0


PING_PONG = Order("total", "total_1"), Order("total_1", "total", 1)


def ordered(
    folder: Path, kernel: str, *orders: Order, machine: str = "h200", consumers: int = 2
) -> Path:
    """A kernel as a module, with orders on its innermost loop."""
    text, _ = stretto.import_kernel(shipped(kernel), machine, consumers=consumers)
    rows = ", ".join(
        f'{{src = "{o.src}", dst = "{o.dst}", latency = {o.latency}, distance = {o.distance}, '
        'kind = "order"}'
        for o in orders
    )
    said = f'{{stretto.machine = "{machine}"'
    file = folder / "ordered.mlir"
    file.write_text(text.replace(said, f"{said}, stretto.dependences = [{rows}]", 1))
    return file


def made(file: Path) -> EmittedKernel:
    """Of the first stage count that is tried."""
    with patch.dict(STAGES, {mode: stages[:1] for mode, stages in STAGES.items()}):
        return emit(file)


Events = list[tuple[str, str]]


def product(source: str, trips: int, naps: float = 0.0, slow: str = "") -> Events:
    """A product of so many steps does what NumPy does; what happened in which order."""
    rng = np.random.default_rng(trips)
    depth = 64 * trips
    a = rng.standard_normal((128, max(depth, 1))).astype(np.float16)
    b = rng.standard_normal((max(depth, 1), 128)).astype(np.float16)
    wanted = a[:, :depth].astype(np.float64) @ b[:depth].astype(np.float64)
    inputs = {"a_ptr": a, "b_ptr": b, "c_ptr": np.full((128, 128), np.nan, np.float16)}
    inputs |= {"M": 128, "N": 128, "K": depth}
    arrays, events = traced(source, inputs, (1, 1), naps, slow)
    near(arrays, {"c_ptr": wanted}, 0.1)
    return events


def when(events: Events, what: str, who: str) -> list[int]:
    return [n for n, event in enumerate(events) if event == (what, who)]


def in_turn(events: Events, trips: int) -> None:
    """One consumer's product, then the other's, and so on."""
    products = [who for what, who in events if what == "product"]
    assert products == [COMPUTE, OTHER] * trips


def test_two_consumers_multiply_in_turn(tmp_path: Path) -> None:
    source = made(ordered(tmp_path, GEMM, *PING_PONG)).source
    assert "mbarrier.init(total_then_total_1, count=1)" in source
    for trips in TRIPS:
        in_turn(product(source, trips, 0.5 if trips < 10 else 0.0), trips)


def test_turns_go_on_in_the_next_tile(tmp_path: Path) -> None:
    name = "triton/matmul_persistent"
    for orders in (PING_PONG, (Order("total_1", "total", 2),)):
        holds(name, made(ordered(tmp_path, name, *orders)).source)


@pytest.mark.parametrize("distance", [0, 1, 3])
def test_an_order_one_way_is_kept(distance: int, tmp_path: Path) -> None:
    """However many turns the holder is ahead, none is taken for another."""
    source = made(ordered(tmp_path, GEMM, Order("total", "total_1", distance))).source
    for trips in (0, 1, 2, 3, 5, 9):
        events = product(source, trips, 1.0)
        first, second = when(events, "product", COMPUTE), when(events, "product", OTHER)
        assert all(a < b for a, b in zip(first, second[distance:], strict=False))
        assert len(first) == len(second) == trips


def test_what_waits_for_a_product_may_hold(tmp_path: Path) -> None:
    """The other product comes when the first is done, not when it is issued."""
    held = Order("wgmma_wait_5", "total_1", 0, 42)
    source = made(ordered(tmp_path, GEMM, held)).source
    agent = source.partition("def compute_agent")[2].partition("@gluon")[0]
    waits = [n for n, line in enumerate(agent.splitlines()) if "warpgroup_mma_wait" in line]
    turns = [n for n, line in enumerate(agent.splitlines()) if "arrive(wgmma_wait_5_then" in line]
    assert [t - w for w, t in zip(waits, turns, strict=True)] == [3] * len(waits)
    for trips in (1, 2, 5):
        product(source, trips, 0.5)


def test_attention_takes_turns(tmp_path: Path) -> None:
    orders = Order("scores_2", "scores_3"), Order("scores_3", "scores_2", 1)
    source = made(ordered(tmp_path, "triton/attention_forward_d64", *orders)).source
    holds("triton/attention_forward_d64", source)
    for trips in (0, 1, 2, 3, 7):
        attention(source, trips, 64, 64)


@pytest.mark.parametrize(("latency", "by_turn"), [(100, True), (559, False)])
def test_a_product_that_says_itself_when_it_is_done_holds(
    latency: int, by_turn: bool, tmp_path: Path
) -> None:
    """A copy waits for a product two steps before: in turn, or since its ring has two slots."""
    late = Order("total", "b", 2, latency)
    file = ordered(tmp_path, GEMM, late, machine="b200", consumers=1)
    source = made(file).source
    assert ("tcgen05_commit(total_then_b" in source) == by_turn
    for trips in (0, 1, 2, 3, 9):
        events = product(source, trips, 0.5)
        done = [n for n, (what, _) in enumerate(events) if what == "product done"]
        copies = when(events, "copy to b_tile", COPY)
        assert len(done) == len(copies) == trips
        assert all(a < b for a, b in zip(done, copies[2:], strict=False))


# Bugs in the text ---------------------------------------------------------------------------------

BUGS: dict[str, Callable[[str], str]] = {
    "a turn is not waited for": lambda s: without(s, "mbarrier.wait(total_1_then_total,"),
    "a turn is never handed on": lambda s: without(s, "mbarrier.arrive(total_then_total_1"),
    "a turn begins in the wrong phase": lambda s: s.replace(
        "total_1_then_total_phase = 1", "total_1_then_total_phase = 0"
    ),
    "a turn stays in its phase": lambda s: without(s, "total_1_then_total_phase ^= 1"),
    "a turn is handed on before the product": lambda s: part(s, "compute_agent", _early),
}


def _early(lines: list[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        at = len(found)
        if "mbarrier.arrive(total_then_total_1" in line:
            at = max(n for n, one in enumerate(found) if "mbarrier.wait(b_tile_full" in one)
        found.insert(at, line)
    return found


def whoever_is_slow(source: str) -> None:
    for slow in (COMPUTE, OTHER):
        in_turn(product(source, 9, SLOW, slow), 9)


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_the_text_is_caught(bug: str, tmp_path: Path) -> None:
    source = made(ordered(tmp_path, GEMM, *PING_PONG)).source
    changed = BUGS[bug](source)
    assert changed != source
    with pytest.raises((EmulationError, AssertionError)):
        whoever_is_slow(changed)


def test_without_a_bug_nothing_is_caught(tmp_path: Path) -> None:
    whoever_is_slow(made(ordered(tmp_path, GEMM, *PING_PONG)).source)


# Other things -------------------------------------------------------------------------------------


def test_a_holder_that_nobody_waits_for_is_refused_at_its_place(tmp_path: Path) -> None:
    file = ordered(tmp_path, GEMM, Order("total", "total_1", 0, 320))
    with pytest.raises(EmitError) as error:
        emit(file, mode="specialized")  # unasked for, one warpgroup would run it
    assert re.match(
        r".*ordered\.mlir:\d+:\d+: error: `total` is ordered 320 cycles", str(error.value)
    )
    assert "state latency 0, which is right behind its issue" in str(error.value)


def test_one_group_of_warps_needs_no_turns(tmp_path: Path) -> None:
    source = emit(ordered(tmp_path, GEMM, *PING_PONG), mode="unspecialized").source
    assert "_then_" not in source


def test_turns_cost_what_waits_and_arrivals_cost(tmp_path: Path) -> None:
    """A prediction of agents in turn is no shorter than one of agents on their own."""
    sizes = {"M": 4096, "N": 4096, "K": 4096}
    free, held = (
        stretto.predict(ordered(tmp_path, GEMM, *orders), grid=(32, 32), arguments=sizes)
        for orders in ((), PING_PONG)
    )
    assert held.prediction.seconds > free.prediction.seconds
