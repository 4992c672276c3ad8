"""Predictions: what an engine of one SM must hold to, and what is said of whole kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cli import Run

import stretto
from kernel_cases import CASES
from stretto.compile.candidates import Emitter
from stretto.compile.emitted import EmittedKernel
from stretto.errors import StrettoError
from stretto.kernel import Operation
from stretto.machine import load_machine
from stretto.prediction import copying, engine
from stretto.prediction.engine import Ring
from stretto.prediction.instructions import (
    Arrive,
    Copy,
    Costs,
    Delay,
    Free,
    Full,
    Instruction,
    Product,
    Settle,
    Step,
    Work,
    both,
)
from stretto.prediction.kernel_time import predict_kernel
from stretto.prediction.prediction import Prediction
from stretto.prediction.running import StuckError, Subject
from stretto.prediction.timings import timings_of

EXAMPLES = Path(__file__).parents[2] / "examples/triton"
GEMM = str(EXAMPLES / "matmul_persistent.ttir")
ATTENTION = str(EXAMPLES / "attention_forward_d128.ttir")
SIZES = {"M": 4096, "N": 4096, "K": 4096}
H200 = load_machine("h200")
NOTHING = Costs(
    wait=0, wait_warp=0, arrive=0, arrive_warp=0, wake=0, expect=0, copy_issue=0,
    latency={"hbm": 0.0}, queue=1e9, port=1e9, rate={"hbm": 1e9}, product_latency=0, settle=0,
    beside=1, special=1, meeting=((0.0, 0.0),),
)  # fmt: skip
"""An SM on which only products and arithmetic take time."""
REAL = timings_of(H200).costs
TURNS = 24

# The engine ---------------------------------------------------------------------------------------


def pipeline(
    tensor: float, issue: float, work: Work, bytes: float, depth: int, ahead: int, costs: Costs
) -> float:
    """Cycles a turn of a copier and one who multiplies and computes, `ahead` products in flight."""
    copier: list[Instruction] = []
    computer: list[Instruction] = []
    for turn in range(TURNS):
        copier += [Free("tile", turn), Copy("tile", turn, bytes, "hbm")]
        computer += [Full("tile", turn), Product(tensor, issue), Settle(min(ahead, turn))]
        if turn >= ahead:
            computer.append(Arrive("tile", turn - ahead))
        computer += [work, Step(0)]
    programs = {"copy": (1, copier), "compute": (4, computer)}
    outcome = engine.run(programs, {"tile": Ring(depth, 1)}, costs)
    assert not outcome.stuck
    times = outcome.steps["compute"][0]
    return (times[-1] - times[TURNS // 2 - 1]) / (TURNS // 2)


cycles = st.floats(1, 2000)


def stretch(total: float, part: float, special: float, meetings: int) -> Work:
    arithmetic, units = total * part, total * special
    return Work(max(total, both(arithmetic, units)), arithmetic, units, meetings)


works = st.builds(stretch, cycles, st.floats(0, 1), st.floats(0, 1), st.integers(0, 2))


@given(cycles, st.floats(0, 200), works, st.floats(0, 65536), st.integers(2, 6))
def test_no_turn_is_shorter_than_what_any_unit_takes(
    tensor: float, issue: float, work: Work, bytes: float, depth: int
) -> None:
    found = pipeline(tensor, issue, work, bytes, depth, 1, REAL)
    rate = REAL.rate["hbm"]
    assert found >= tensor - 1e-6
    assert found >= issue + work.cycles - 1e-6
    backlog = REAL.queue / (TURNS // 2)
    assert found >= (bytes - backlog) / rate - 1e-6
    latency = REAL.latency["hbm"] + bytes / REAL.port
    assert found * depth >= latency - 1e-6


@given(cycles, st.floats(0, 200), works, st.floats(0, 65536), st.integers(2, 5), st.integers(0, 1))
def test_a_deeper_ring_is_never_slower(
    tensor: float, issue: float, work: Work, bytes: float, depth: int, ahead: int
) -> None:
    shallow = pipeline(tensor, issue, work, bytes, depth, ahead, REAL)
    deep = pipeline(tensor, issue, work, bytes, depth + 1, ahead, REAL)
    # What runs beside a product may fall otherwise, by less than it is slowed down; and a deeper
    # ring fills the memory's queue sooner.
    assert deep <= shallow * 1.01 + work.cycles * 2


@given(cycles, works, st.integers(2, 6))
def test_where_nothing_is_late_a_turn_takes_what_its_longest_unit_takes(
    tensor: float, work: Work, depth: int
) -> None:
    found = pipeline(tensor, 0, work, 1, depth, 1, NOTHING)
    assert found == pytest.approx(max(tensor, work.cycles))


def test_products_of_two_agents_take_turns_on_the_tensor_core() -> None:
    program = [x for _ in range(8) for x in (Product(100, 0), Settle(0), Step(0))]
    outcome = engine.run({"a": (4, program), "b": (4, program)}, {}, NOTHING)
    assert outcome.cycles == 1600
    assert outcome.tensor == 1600


def test_arithmetic_beside_a_product_gets_the_part_of_the_pipes_that_is_left() -> None:
    work = Work(100, 100, 0)
    costs = replace(NOTHING, beside=0.25)
    busy = {"a": (4, [Product(1000, 0), Settle(0)]), "b": (4, [work])}
    assert engine.run(busy, {}, costs).ends["b"] == pytest.approx(400)
    assert engine.run({"b": (4, [work])}, {}, costs).ends["b"] == pytest.approx(100)


def test_special_functions_beside_a_product_get_a_part_of_their_own() -> None:
    costs = replace(NOTHING, beside=0.25, special=0.5)
    busy = {"a": (4, [Product(1000, 0), Settle(0)]), "b": (4, [Work(100, 0, 100)])}
    assert engine.run(busy, {}, costs).ends["b"] == pytest.approx(200)


def test_pipes_that_are_both_busy_take_a_little_longer_than_the_busier() -> None:
    assert both(100, 0) == pytest.approx(100)
    assert 100 < both(100, 50) < 105
    assert both(100, 100) == pytest.approx(126, abs=0.1)


def test_lanes_meet_later_beside_a_product_the_more_so_the_more_it_reads() -> None:
    costs = replace(NOTHING, meeting=((64.0, 20.0), (96.0, 50.0), (128.0, 300.0)))
    ends = {
        smem: engine.run(
            {"a": (4, [Product(1000, 0, smem), Settle(0)]), "b": (4, [Work(76, 0, 0, 1)])},
            {},
            costs,
        ).ends["b"]
        for smem in (0.0, 64.0, 80.0, 96.0, 128.0, 200.0)
    }
    later = {0.0: 96, 64.0: 96, 80.0: 111, 96.0: 126, 128.0: 376, 200.0: 376}
    assert ends == pytest.approx(later)


def test_whoever_issues_a_product_waits_for_those_of_others_but_not_for_its_own() -> None:
    one = [Product(1000, 10), Product(1000, 10), Step(0), Settle(0)]
    outcome = engine.run({"a": (4, one)}, {}, NOTHING)
    assert outcome.steps["a"][0] == [20]
    other = [Delay(100, "later"), Product(50, 10), Step(0), Settle(0)]
    outcome = engine.run({"a": (4, one), "b": (4, other)}, {}, NOTHING)
    assert outcome.steps["b"][0] == [2010]


def test_what_is_left_of_a_product_is_done_with_it() -> None:
    program = [Product(60, 0), Delay(500, "work"), Product(40, 0, rest=True), Settle(0), Step(0)]
    assert engine.run({"a": (4, program)}, {}, NOTHING).steps["a"][0] == [540]
    later = [Product(60, 0), Product(40, 0, rest=True), Product(100, 0), Settle(1), Step(0)]
    assert engine.run({"a": (4, later)}, {}, NOTHING).steps["a"][0] == [100]


def test_an_agent_meets_what_others_ask_for_on_average() -> None:
    half = [x for _ in range(40) for x in (Work(50, 0, 50), Delay(50, "waits"), Step(0))]
    outcome = engine.run({"a": (4, half), "b": (4, half)}, {}, NOTHING)
    times = outcome.steps["a"][0]
    # Half of the time the other is at it as well; in step, it were 150, and out of step 100.
    assert 110 < (times[-1] - times[20]) / (len(times) - 21) < 140


def test_agents_that_wait_for_each_other_are_told() -> None:
    copier = [
        Free("tile", 0),
        Copy("tile", 0, 1, "hbm"),
        Free("tile", 1),
        Copy("tile", 1, 1, "hbm"),
    ]
    computer = [Full("tile", 0), Full("tile", 1), Arrive("tile", 0), Arrive("tile", 1)]
    programs = {"copy": (1, copier), "compute": (4, computer)}
    assert "compute at Full" in engine.run(programs, {"tile": Ring(1, 1)}, NOTHING).stuck
    assert not engine.run(programs, {"tile": Ring(2, 1)}, NOTHING).stuck


# Whole kernels ------------------------------------------------------------------------------------


@cache
def made(kernel: str, consumers: int) -> EmittedKernel:
    return Emitter(kernel).candidates(consumers, stages=(6,))[0]


def predicted(depth: int | None = None, **more: int) -> Prediction:
    one = made(GEMM, 2)
    assert one.kernel is not None
    depths = {name: depth or slots for name, slots in one.emitted.rings.items()}
    subject = Subject(one.kernel, one.emitted, one.programs, depths)
    return predict_kernel(subject, H200, (132,), {**SIZES, **more})


def test_a_product_is_no_faster_than_the_tensor_core() -> None:
    found = predicted()
    (loop,) = found.loops
    assert loop.units["tensor core"] == 128 * 128 * 64 / 2048
    assert loop.cycles >= loop.units["tensor core"]
    assert found.flops == 2 * 4096**3
    tiles = (4096 // 128) ** 2
    steps = -(-tiles // 132) * 4096 // 64
    assert found.cycles > steps * loop.units["tensor core"]
    assert found.seconds > found.cycles / (found.clock * 1e6)


def test_a_starved_ring_is_slower_and_one_of_no_room_is_refused() -> None:
    times = [predicted(depth).loops[0].cycles for depth in (2, 3, 4)]
    assert times == sorted(times, reverse=True)
    assert times[0] > times[-1]


def test_narrow_tiles_gain_little_by_being_shared_and_lose_little_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cycles(shared: int, alone: int) -> float:
        one = made(GEMM, 2)
        assert one.kernel is not None
        figures = tuple(
            replace(figure, values=(shared, alone)) if figure.name == "copy_narrow" else figure
            for figure in H200.timings
        )
        subject = Subject(one.kernel, one.emitted, one.programs, one.emitted.rings)
        found = predict_kernel(subject, replace(H200, timings=figures), (132,), SIZES)
        return found.loops[0].cycles

    def narrow(_: Operation) -> int:
        return 64

    wide = cycles(55, 96)
    monkeypatch.setattr(copying, "row_bytes", narrow)
    # Copies are the longest: blocks fall out of step, and one of two tiles comes to each alone.
    assert wide < cycles(55, 96) < cycles(55, 48)
    assert cycles(55, 96) < cycles(40, 96)


def test_twice_the_work_takes_about_twice_as_long() -> None:
    once, twice = predicted(), predicted(K=8192)
    assert 1.8 < twice.seconds / once.seconds < 2.1


def test_a_ring_that_is_too_short_for_its_program_is_refused() -> None:
    one = made(GEMM, 1)  # a product in flight holds its slots while the next one waits for its own
    assert one.kernel is not None
    short = dict.fromkeys(one.emitted.rings, 1)
    subject = Subject(one.kernel, one.emitted, one.programs, short)
    with pytest.raises(StuckError, match="wait for each other: compute at Full"):
        predict_kernel(subject, H200, (1,), SIZES)


def test_the_front_door_ranks_what_it_predicts() -> None:
    ranked = stretto.rank([(GEMM, (132,))], arguments=SIZES, depths=(1, 4), consumers=(2,))
    times = [one.worth for one in ranked.found]
    assert times == sorted(times)
    best = ranked.best.prediction
    assert max(best.rings.values()) == 4
    alone = stretto.predict(GEMM, grid=(132,), arguments=SIZES, consumers=2, depth=4)
    assert alone.prediction.seconds == pytest.approx(best.seconds, rel=0.05)


@pytest.mark.parametrize("name", CASES)
def test_what_is_predicted_is_what_is_emitted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, case = str(EXAMPLES / f"{name}.ttir"), CASES[name]()
    # Both choose of the same, which need not be searched for long.
    found = Emitter(kernel, effort="quick").candidates()

    def candidates(*_: Any, **__: Any) -> list[EmittedKernel]:
        return found

    monkeypatch.setattr(Emitter, "candidates", candidates)
    emitted = stretto.emit(kernel)
    numbers = {n: v for n, v in case.inputs.items() if isinstance(v, int | float)}
    told = stretto.predict(kernel, grid=case.grid, arguments=numbers)
    assert told.made.source == emitted.source
    prediction = told.prediction
    assert [(one.ii, one.stages) for one in prediction.loops] == [
        (one.ii, one.stage_count) for one in emitted.analyses
    ]
    assert (prediction.consumers, prediction.mode) == (emitted.consumers, emitted.mode)
    assert prediction.rings == emitted.emitted.rings
    assert prediction.spilled >= emitted.over


def test_where_nobody_copies_consumers_are_counted_too() -> None:
    product = str(EXAMPLES / "matmul_pointers.ttir")
    numbers = {"M": 4096, "N": 8192, "K": 4096}
    for count in (1, 2):
        told = stretto.predict(product, grid=(32, 64), arguments=numbers, consumers=count)
        assert told.prediction.consumers == count
        assert f"specialized, {count} consumer" in told.to_text()[0]


def test_a_ranking_has_what_each_configuration_emits() -> None:
    """Not a candidate that nobody gets who asks for that depth and number of consumers."""
    product = str(EXAMPLES / "matmul_pointers.ttir")
    ranked = stretto.rank([(product, (32, 64))], arguments=SIZES, depths=(2, None))
    rows = [(one.made.consumers, one.depth) for one in ranked.found]
    assert len(set(rows)) == len(rows) > 1
    assert "note: a ranking schedules each configuration with little effort" in "\n".join(
        ranked.to_text()
    )
    assert "little effort" not in "\n".join(replace(ranked, effort="normal").to_text())
    for one in ranked.found:
        candidates = Emitter(product, effort="quick").candidates(one.made.consumers, one.depth)
        assert one.made.over == min(other.over for other in candidates)


# The command line ---------------------------------------------------------------------------------


def sizes() -> list[str]:
    return [word for name, n in SIZES.items() for word in ("--argument", f"{name}={n}")]


Capture = pytest.CaptureFixture[str]
WORDS = ("predict", GEMM, "--grid", "132", "--consumers", "2", "--depth", "4")


def test_a_prediction_says_what_a_kernel_is_bound_by(capsys: Capture) -> None:
    document = Run(capsys, *WORDS, *sizes(), "--json").json("prediction")
    (one,) = document["predictions"]
    assert one["machine"] == "h200"
    assert one["loops"][0]["bound"] == one["bound"]
    text = Run(capsys, *WORDS, *sizes()).out
    assert f"bound by {one['bound']}" in text
    assert "TFLOPS" in text


def test_a_faster_clock_is_faster_and_waits_for_memory_in_more_cycles(capsys: Capture) -> None:
    slow, fast = (
        Run(capsys, *WORDS, *sizes(), "--clock", clock, "--json").json("prediction")["predictions"][
            0
        ]
        for clock in ("1000", "2000")
    )
    assert slow["cycles"] <= fast["cycles"]
    assert slow["seconds"] > 1.5 * fast["seconds"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((GEMM, "--grid", "132"), "give the numbers that it is launched with: M=N N=N K=N"),
        ((GEMM, "--grid", "132", "--argument", "X=1"), "has no parameter `X`"),
        ((GEMM, "--grid", "132", "--argument", "a_desc=3"), "is a tensor: give its shape"),
        ((GEMM, GEMM, GEMM, "--grid", "1", "--grid", "2"), "3 kernels and 2 grids"),
        ((GEMM, "--grid", "132", "--argument", "M"), "is not of the form NAME=N"),
        ((GEMM, "--grid", "132", "--argument", "M=many"), "neither a number nor a shape"),
        ((GEMM, "--grid", "132", "--argument", "M=x"), "'x' is neither a number nor a shape"),
        ((GEMM, "--grid", "132", "--argument", "M=nan"), "neither a number nor a shape"),
        ((GEMM, "--grid", "132", "--argument", "M=1e400"), "neither a number nor a shape"),
        ((GEMM, "--grid", "132", *sizes(), "--clock", "1e308"), "give one of 1 to 100,000 MHz"),
        ((GEMM, "--grid", "132", *sizes(), "--clock", "1e-300"), "give one of 1 to 100,000 MHz"),
        ((GEMM, "--grid", "2147483647", *sizes()), "give a grid of at most 131,072"),
        ((GEMM, "--grid", "132", "--machine", "blackwell"), "does not say who issues what"),
    ],
)
def test_what_cannot_be_predicted_says_why(
    capsys: Capture, words: tuple[str, ...], told: str
) -> None:
    found = Run(capsys, "predict", *words)
    assert found.code in (1, 2)
    assert told in found.err.replace("\n", " ")
    assert "Traceback" not in found.err


def test_blocks_that_are_all_the_same_may_be_as_many_as_one_likes() -> None:
    product = str(EXAMPLES / "matmul_descriptors.ttir")
    few, many = (
        stretto.predict(product, "h200", grid=(n,), arguments=SIZES).prediction
        for n in (132 * 1000, 132 * 10_000_000)
    )
    assert many.cycles == pytest.approx(10_000 * few.cycles, rel=0.01)


def test_a_machine_without_timings_is_refused() -> None:
    bare = replace(H200, timings=())
    with pytest.raises(StrettoError, match="states no timings"):
        stretto.predict(GEMM, bare, grid=(132,), arguments=SIZES, consumers=2, depth=4)


def test_a_kernel_whose_threads_load_is_emitted_for_a_machine_without_timings() -> None:
    assert "by Stretto for b200" in stretto.emit(EXAMPLES / "softmax.ttir", "b200").source


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("wait", (82,), "timings.wait has 1 values; it takes 2"),
        ("meeting", (1, 2), "timings.meeting has 2 values; it takes 4"),
        ("sms", (0,), "timings.sms has 0 in it; give a number above 0"),
        ("copy_clock", (0,), "timings.copy_clock has 0 in it"),
        ("copy_rate_apart", (0,), "timings.copy_rate_apart has 0 in it"),
        ("pipes", (98, 99), "timings.pipes names slots by their ids; it has"),
    ],
)
def test_timings_that_cannot_be_are_refused(name: str, values: tuple[int, ...], told: str) -> None:
    every = (replace(f, values=values) if f.name == name else f for f in H200.timings)
    with pytest.raises(StrettoError, match=told):
        timings_of(replace(H200, timings=tuple(every)))
