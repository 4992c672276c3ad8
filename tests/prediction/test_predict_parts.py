"""Predictions, piece by piece: stretches of arithmetic, products mixed with them, shared copies."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import stretto
from stretto.api.predicting import KernelPrediction
from stretto.cli.main import main
from stretto.compile.candidates import Emitter
from stretto.compile.emitted import EmittedKernel
from stretto.machine import load_machine
from stretto.prediction.blocks import LANES, Part, stretches
from stretto.prediction.copying import at_clock, loads, once, shared_rate, sources
from stretto.prediction.flow import product_of
from stretto.prediction.instructions import Product, Work, both
from stretto.prediction.kernel_time import Watched, predict_kernel, watch_kernel
from stretto.prediction.numbers import Numbers
from stretto.prediction.prediction import LoopTime, Prediction
from stretto.prediction.running import Subject
from stretto.prediction.score import LoopScore, scores_of
from stretto.prediction.timings import timings_of
from stretto.report import page
from stretto.report.prediction import prediction_to_text, ranking_to_text

ATTENTION = Path(__file__).parents[2] / "examples/triton/attention_forward_d128.ttir"
H200 = load_machine("h200")
TIMINGS = timings_of(H200)
MEETING = 76.0


def part(name: str, arithmetic: float, special: float = 0.0, *inputs: str) -> Part:
    return Part(name, arithmetic, special, 0.0, 5.0, whole=False, inputs=inputs, outputs=(name,))


def reduction(name: str, arithmetic: float, *inputs: str) -> Part:
    return replace(part(name, arithmetic, 0.0, *inputs), whole=True, tail=MEETING)


SOFTMAX = (
    reduction("highest", 128, "scores"),
    part("shifted", 64, 0.0, "scores", "highest"),
    part("p", 64, 512, "shifted"),
    reduction("sum", 64, "p"),
)


def test_work_ends_where_lanes_meet_and_what_needs_them_follows() -> None:
    first, second = stretches(SOFTMAX, 5.0, 1)
    assert first == Work(128 + MEETING, 128, 0, 1)
    assert (second.arithmetic, second.special, second.meetings) == (192, 512, 1)
    assert second.cycles >= 512 + MEETING


def test_what_does_not_need_the_lanes_is_mixed_with_what_does() -> None:
    (only,) = stretches((part("a", 64), part("b", 0, 128)), 5.0, 1)
    assert only.cycles == pytest.approx(both(64, 128), abs=10)


def test_groups_of_warps_fill_the_pipes_for_each_other() -> None:
    one = stretches(SOFTMAX, 5.0, 1)
    (two,) = stretches([replace(p, arithmetic=2 * p.arithmetic, special=2 * p.special)
                        for p in SOFTMAX], 5.0, 2)  # fmt: skip
    assert two.special == 2 * 512
    assert two.cycles < 2 * sum(work.cycles for work in one)
    assert two.cycles >= max(sum(work.cycles for work in one), both(two.arithmetic, two.special))


def test_lanes_meet_for_each_two_rows_of_a_thread() -> None:
    tall = replace(SOFTMAX[0], rows=128.0, further=29.0)
    (one,) = stretches([tall], 5.0, 1)
    assert one == Work(128 + MEETING + 29, 128, 0, 2)
    # Two warpgroups have half of the rows each, and so two a thread.
    (two,) = stretches([tall], 5.0, 2)
    assert two.cycles == max(64 + MEETING, 128)


def test_what_is_one_number_a_row_is_computed_by_all_lanes_of_the_row() -> None:
    costing = watched().costing
    loop = costing.programs[0].loop
    types = {value.name: value.type for value in loop.values}
    exponents = [op for op in loop.ops if op.kind == "math.exp2"]
    found = {
        len(kind.shape): costing.inside(0, op.name).special / kind.elements
        for op in exponents
        if (kind := types[op.results[0]]) is not None
    }
    assert found == {2: 1 / 16, 1: LANES / 16}


# Products -----------------------------------------------------------------------------------------


@cache
def made() -> EmittedKernel:
    return Emitter(ATTENTION).candidates(2, 2, stages=(3,))[0]


@cache
def watched() -> Watched:
    one = made()
    assert one.kernel is not None
    subject = Subject(one.kernel, one.emitted, one.programs, one.emitted.rings)
    return watch_kernel(subject, H200, (64, 16), {"length": 8192})


def test_a_product_of_few_columns_waits_for_what_it_reads() -> None:
    tensor = 64 * 32 * 128 / 2048
    staged = product_of(tensor, 64, (128, 32), True, TIMINGS)
    assert staged.cycles == (64 + 32) * 128 * 2 / 128 == 192
    assert product_of(tensor, 64, (128, 32), False, TIMINGS).cycles == tensor
    assert product_of(2 * tensor, 64, (128, 64), True, TIMINGS).cycles == 2 * tensor
    assert product_of(2 * tensor, 128, (128, 32), True, TIMINGS).cycles == 2 * staged.cycles


def test_work_behind_a_product_delays_some_of_it_and_takes_nothing_away() -> None:
    products: list[float] = []
    for agent in ("compute", "compute.1"):
        _, program = watched().programs[agent]
        for one in program:
            if isinstance(one, Product) and not one.rest:
                products.append(one.cycles)
            elif isinstance(one, Product):
                products[-1] += one.cycles
    assert set(products) == {64 * 64 * 128 / 2048}
    rests = [one for _, program in watched().programs.values() for one in program
             if isinstance(one, Product) and one.rest]  # fmt: skip
    assert rests


def test_a_product_from_registers_reads_less_of_shared_memory() -> None:
    reads = {
        staged: product_of(256, 64, (128, 64), staged, TIMINGS).smem for staged in (True, False)
    }
    assert reads == {True: 128.0, False: 64.0}
    # Queries are held in registers, and what is multiplied with values is computed there.
    _, program = watched().programs["compute"]
    assert {one.smem for one in program if isinstance(one, Product)} == {64.0}


def test_factors_of_sums_in_the_same_step_cost_nothing() -> None:
    costing = watched().costing
    score = scores_of(made().emitted.program)[0]
    (loop,) = [one for one in score.parts if isinstance(one, LoopScore)]
    free = costing.contracted(loop)
    kinds = {op.name: op.kind for op in costing.programs[0].loop.ops}
    assert all(kinds[name] == "arith.mulf" for name in free)
    stages = {beat.op: beat.stage for beat in loop.kernel if beat.kind == "work"}
    for op in costing.programs[0].loop.ops:
        taken = [o.value for o in op.operands if o.value in free]
        for value in taken:
            assert op.kind in ("arith.addf", "arith.subf")
            assert stages[op.name] == stages[value]


# Copies -------------------------------------------------------------------------------------------


def test_shared_tiles_come_from_hbm_once_and_then_from_the_cache() -> None:
    rates = [shared_rate(n, TIMINGS) for n in (1, 2, 4, 16)]
    assert rates[0] == TIMINGS.alone["hbm"]
    assert rates == sorted(rates)
    assert rates[-1] == TIMINGS.together
    assert shared_rate(16, TIMINGS, narrow=True) < TIMINGS.together


def test_what_is_outside_of_the_sms_takes_as_long_whatever_their_clock_is() -> None:
    slow = at_clock(TIMINGS, TIMINGS.memory / 2)
    assert at_clock(TIMINGS, TIMINGS.memory) == TIMINGS
    assert once(1, slow) == 2 * once(1, TIMINGS)
    assert slow.apart == 2 * TIMINGS.apart
    assert slow.costs.latency == {s: late / 2 for s, late in TIMINGS.costs.latency.items()}
    # What several load at once goes through a port that has the clock of the SMs.
    assert TIMINGS.together < slow.together < 2 * TIMINGS.together
    assert slow.costs.port == TIMINGS.costs.port


def sources_of(blocks: int, turns: int, different: int) -> set[str]:
    """Where the keys and values of attention come from, of so many different heads at a time."""
    one = made()
    assert one.kernel is not None
    groups = [group for score in scores_of(one.emitted.program) for group in loads(score.parts)]
    copies = [(loop, beat.operation) for loop, beats in groups for beat in beats if beat.operation]
    shared = dict.fromkeys((op for _, op in copies), TIMINGS.sms / different)

    def numbers(block: int) -> Numbers:
        raise AssertionError(f"it is said how many share, and nobody asks of block {block}")

    _, found = sources(
        one.kernel, scores_of(one.emitted.program), lambda _: 1e9, lambda _: turns, TIMINGS,
        blocks, numbers, TIMINGS.memory, shared,
    )  # fmt: skip
    return {found[op].partition(",")[0] for loop, op in copies if loop is not None}


def test_blocks_that_follow_others_find_what_those_beside_them_load() -> None:
    sms, long = TIMINGS.sms, 1 << 12
    assert sources_of(sms, long, different=2) == {"hbm"}
    assert sources_of(8 * sms, long, different=2) == {"l2"}
    # Nobody else loads what each block has of its own.
    assert sources_of(8 * sms, long, different=sms) == {"hbm"}
    # What fits into the cache stays there.
    assert sources_of(sms, 16, different=2) == {"l2"}


# Blocks -------------------------------------------------------------------------------------------


def test_a_block_begins_some_time_after_the_one_before_it_in_its_place() -> None:
    one = made()
    assert one.kernel is not None
    subject = Subject(one.kernel, one.emitted, one.programs, one.emitted.rings)
    sms = TIMINGS.sms
    single, double, triple = (
        predict_kernel(subject, H200, (sms * waves,), {"length": 2048}) for waves in (1, 2, 3)
    )
    (gap,) = H200.timing("agents_follow") or (0,)
    assert gap > 0
    assert single.cycles == single.block
    assert double.cycles == pytest.approx(2 * double.block + gap)
    assert triple.cycles == pytest.approx(3 * triple.block + 2 * gap)


# What adds up -------------------------------------------------------------------------------------

LAUNCHES = {
    "attention_forward_d128": {"scale": 0.1, "length": 2048, "total_rows": 65536},
    "attention_forward_d128_causal": {"scale": 0.1, "length": 2048, "total_rows": 65536},
    "matmul_descriptors": {"M": 2048, "N": 2048, "K": 2048},
    "matmul_persistent": {"M": 2048, "N": 2048, "K": 2048},
    "layer_norm": {"columns": 4096},
}


def adds_up(prediction: Prediction) -> None:
    """Parts of every agent are an iteration, and what a loop is bound by stands in its table."""
    assert prediction.loops
    for loop in prediction.loops:
        if not loop.spent:
            assert (loop.bound, loop.cycles) == ("few trips", loop.ii)
            continue
        for parts in (*loop.spent.values(), loop.kinds):
            assert sum(parts.values()) == pytest.approx(loop.cycles, abs=1.0), loop.name
        assert loop.agent in loop.spent
        assert loop.bound in {**loop.units, **loop.kinds}


def table(lines: list[str], loop: LoopTime) -> list[str]:
    """What the rows below the line of a loop begin with."""
    (at,) = (i for i, line in enumerate(lines) if line.startswith(f"  {loop.name}: "))
    return [lines[at], *(re.split(r"  +", line.strip())[0] for line in lines[at + 1 :])]


@pytest.mark.parametrize("name", LAUNCHES)
def test_parts_add_up_and_the_bound_stands_in_the_table(name: str) -> None:
    file = ATTENTION.with_name(f"{name}.ttir")
    found = stretto.predict(file, grid=(8, 16), arguments=LAUNCHES[name], depth=3)
    adds_up(found.prediction)
    for loop in found.prediction.loops:
        assert "other" not in loop.kinds or abs(loop.kinds["other"]) < 0.02 * loop.cycles
        told = "few for steps that are steady" if not loop.spent else loop.bound
        assert told in " ".join(table(found.to_text(), loop))


def test_a_row_says_what_tells_it_from_the_next_and_that_it_spills() -> None:
    file = ATTENTION.with_name("matmul_descriptors.ttir")
    ranked = stretto.rank(
        [(file, (8, 16))], arguments=LAUNCHES["matmul_descriptors"], consumers=[2], depths=[2, 3]
    )
    rows = {
        (one.made.consumers, one.depth, tuple((a.ii, a.stage_count) for a in one.made.analyses))
        for one in ranked.found
    }
    with page(120):
        lines = ranking_to_text([one.told for one in ranked.found], ())
    assert "  II  " in lines[0]
    assert "stages" in lines[0]
    assert len({line[4:] for line in lines[1:]}) == len(rows) == len(ranked.found) > 1
    first, second = ranked.found[:2]
    # The faster one spills, and stands behind: its row says why, with how much.
    fast = replace(first.prediction, seconds=1e-6 * 323.9, spilled=8)
    slow = replace(second.prediction, seconds=1e-6 * 343.0)
    order = sorted((replace(first, prediction=fast), replace(second, prediction=slow)), key=_worth)
    assert [one.prediction for one in order] == [slow, fast]
    with page(120):
        _, top, bottom, note = ranking_to_text([one.told for one in order], ())
    assert "343.0 µs" in top
    assert "spills" not in top
    assert "323.9 µs" in bottom
    assert bottom.endswith("; spills 8 registers")
    assert "ranked as if it took 1.25 times as long" in note
    told = " ".join(prediction_to_text(order[1].told))
    assert "8 registers of each thread are too many by our count" in told
    assert "stores what has none to local memory" in " ".join(told.split())
    row = order[1].to_json()["predictions"][0]
    said = [row[name] for name in ("spills", "spilled", "assembled", "setback")]
    assert said == [True, 8, False, 1.25]


def _worth(one: KernelPrediction) -> tuple[float, int, int]:
    return one.worth


def test_the_page_of_a_prediction_shows_it(tmp_path: Path) -> None:
    sizes = [f"--argument={name}=2048" for name in "MNK"]
    page = tmp_path / "page.html"
    file = ATTENTION.with_name("matmul_descriptors.ttir")
    words = ["predict", str(file), "--grid", "16,16", "--consumers", "2", "--depth", "3", *sizes]
    assert main([*words, "--format", "html", "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script[^>]*id="report"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert found
    document = json.loads(found[1])
    (one,) = document["prediction"]["predictions"]
    asked = stretto.predict(
        file, grid=(16, 16), arguments=dict.fromkeys("MNK", 2048), consumers=2, depth=3
    )
    assert one["seconds"] == asked.prediction.seconds
    assert one["bound"] == asked.prediction.bound
    assert "predicted-title" in text  # the part of the page that shows it
