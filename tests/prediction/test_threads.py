"""Kernels whose threads load for themselves: what they touch, and how long that takes."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stretto
from stretto.api.predicting import KernelPrediction
from stretto.compile.candidates import Emitter
from stretto.compile.emitted import EmittedKernel
from stretto.emission import Emitted
from stretto.kernel import pipeline
from stretto.kernel.tree import Lowered
from stretto.launching.compiling import Compiled
from stretto.machine import Machine, load_machine
from stretto.prediction import timeline
from stretto.prediction.kernel_time import predict_kernel
from stretto.prediction.memory import Curve, memory_of
from stretto.prediction.numbers import Numbers, arguments
from stretto.prediction.prediction import Prediction
from stretto.prediction.running import Subject
from stretto.prediction.touching import Access, accesses

EXAMPLES = Path(__file__).parents[2] / "examples/triton"
ROWS, COLUMNS = 16384, 8192
H200 = load_machine("h200")


def changed(name: str, *values: int) -> Machine:
    """The machine with another timing."""
    assert H200.timing(name) is not None
    rows = tuple(replace(f, values=values) if f.name == name else f for f in H200.timings)
    return replace(H200, timings=rows)


@cache
def norm(machine: Machine = H200, columns: int = COLUMNS) -> KernelPrediction:
    return stretto.predict(
        EXAMPLES / "layer_norm.ttir", machine, grid=(ROWS,), arguments={"columns": columns}
    )


def touched(file: str, grid: tuple[int, int, int], **numbers: int) -> list[Access]:
    kernel = Emitter(EXAMPLES / f"{file}.ttir", H200).lowered(1).kernel
    makers = {result: op for op in kernel.walk() for result in op.results}
    known = arguments(kernel, numbers)

    def numbers_of(block: int) -> Numbers:
        return Numbers(makers, known, grid, (block, 0, 0))

    return list(accesses(kernel, range(min(132, grid[0])), numbers_of).values())


# What is touched ----------------------------------------------------------------------------------


def test_layer_norm_loads_its_row_twice_and_what_all_rows_share() -> None:
    found = touched("layer_norm", (ROWS, 1, 1), columns=COLUMNS)
    x, _mean, _rstd, again, gamma, beta, y = found
    assert [a.bytes for a in (x, again, gamma, beta, y)] == [2048, 2048, 4096, 4096, 2048]
    assert [a.again for a in (x, again, gamma, beta)] == [False, True, False, False]
    assert [a.common for a in (x, again, gamma, beta, y)] == [False, False, True, True, False]
    assert [a.stores for a in found] == [False, True, True, False, False, False, True]
    assert x.sharing == 1


def test_blocks_of_a_product_share_the_tiles_of_their_rows_and_columns() -> None:
    """Eight rows of tiles are taken together: 132 blocks have 8 of A, and 17 of B."""
    with patch.object(pipeline, "with_views_of_addresses", Lowered):
        a, b, _ = touched("matmul_pointers", (4096, 1, 1), M=8192, N=8192, K=8192, stride_am=8192,
                          stride_bk=8192)  # fmt: skip
    assert (a.sharing, b.sharing) == (132 / 8, 132 / 17)
    assert not a.common
    assert not b.common


def test_what_cannot_be_told_of_an_address_is_another_in_each_block() -> None:
    x, *_ = touched("layer_norm", (ROWS, 1, 1))
    assert (x.sharing, x.common) == (1, False)


# Latency by rate ----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 4000), min_size=2, max_size=8, unique=True), st.data())
def test_a_curve_rises_through_what_was_measured(rates: list[int], data: st.DataObject) -> None:
    some = sorted(rates)
    cycles = sorted(data.draw(st.lists(st.integers(1, 9999), min_size=len(some),
                                       max_size=len(some))))  # fmt: skip
    curve = Curve(tuple(zip(map(float, some), map(float, cycles), strict=True)))
    assert [curve.latency(rate) for rate in some] == cycles
    low, high = sorted(data.draw(st.tuples(st.floats(0, 5000), st.floats(0, 5000))))
    assert curve.latency(low) <= curve.latency(high)
    assert curve.most == some[-1]


def test_memory_has_a_clock_of_its_own() -> None:
    (clock,) = H200.timing("load_clock") or (0,)
    fast, slow = memory_of(H200, clock), memory_of(H200, clock / 2)
    assert fast is not None
    assert slow is not None
    assert slow.far.most == pytest.approx(2 * fast.far.most)
    assert slow.far.latency(0) == pytest.approx(fast.far.latency(0) / 2)


# Whole kernels ------------------------------------------------------------------------------------


def test_layer_norm_takes_no_less_than_memory_takes_for_its_bytes() -> None:
    found = norm().prediction
    (rate,), (clock,) = H200.timing("load_store_hbm") or (0,), H200.timing("load_clock") or (0,)
    least = 2 * ROWS * COLUMNS * 2 / (132 * rate / 100 * clock * 1e6)
    assert least <= found.seconds < 1.5 * least
    assert found.bound in ("memory", "latency")


def test_a_few_rows_take_what_their_loads_wait_for() -> None:
    """One block alone: of its eight steps so many are in flight, and x comes once more."""

    def alone(*together: int) -> Prediction:
        made = Emitter(EXAMPLES / "layer_norm.ttir", H200).drained(together)
        assert made.kernel is not None
        subject = Subject(made.kernel, made.emitted, made.programs, made.emitted.rings)
        return predict_kernel(subject, H200, (1,), {"columns": COLUMNS})

    eight, four, two = (alone(together, 1) for together in (8, 4, 2))
    memory = memory_of(H200, eight.clock)
    assert memory is not None
    idle = memory.beside.latency(0)
    assert idle < eight.block < 10 * idle
    # What waits once for all of them, twice for a half each, or four times: the rest is the same,
    # and of fewer the last is there a little sooner.
    assert 0.9 * idle < four.block - eight.block < 1.2 * idle
    assert 1.6 * idle < two.block - four.block < 2.2 * idle
    assert two.bound == "latency"


def test_what_is_left_over_of_a_drained_loop_waits_for_each_half() -> None:
    """Four iterations wait once, three twice, seven three times; in either loop."""

    def alone(together: int, trips: int) -> float:
        made = Emitter(EXAMPLES / "layer_norm.ttir", H200).drained((together, together))
        assert made.kernel is not None
        subject = Subject(made.kernel, made.emitted, made.programs, made.emitted.rings)
        return predict_kernel(subject, H200, (1,), {"columns": 1024 * trips}).block

    memory = memory_of(H200, norm().prediction.clock)
    assert memory is not None
    idle = memory.beside.latency(0)
    one, two, four, eight = (alone(8, trips) for trips in (1, 2, 4, 8))
    assert one < two < four < eight < one + 3 * idle
    for trips, halves in ((3, 2), (5, 2), (6, 2), (7, 3)):
        waits = alone(8, trips) - (two if trips == 3 else four)
        assert (halves - 1) * idle < waits < (halves - 1) * 2 * idle
    # A loop of four together runs four as one of eight does, and waits twice for eight.
    assert alone(4, 4) == pytest.approx(four, rel=0.01)
    assert alone(4, 8) > eight + 0.9 * idle


def test_two_trips_are_written_out_and_load_at_once(tmp_path: Path) -> None:
    """They are too few for three stages. Written out, both load before either is waited for: they
    take less than half of what they take one by one."""
    text = (EXAMPLES / "layer_norm.ttir").read_text()
    known = "%c1024_i32 = arith.constant 1024 : i32"
    assert text.count(known) == 1
    text = text.replace(known, f"{known}\n%known = arith.constant 2048 : i32")
    (tmp_path / "layer_norm.ttir").write_text(text.replace("to %columns step", "to %known step"))
    (tmp_path / "layer_norm.json").write_text((EXAMPLES / "layer_norm.json").read_text())
    emitter = Emitter(tmp_path / "layer_norm.ttir", H200)
    written = emitter.candidates(stages=(3,))[0].pace
    apart = emitter.drained((1, 1)).pace
    assert written is not None
    assert apart is not None
    assert written.cycles < apart.cycles / 2


def test_what_is_emitted_is_what_is_predicted_to_be_fastest_whatever_its_ii() -> None:
    emitter = Emitter(EXAMPLES / "layer_norm.ttir", H200)
    every = emitter.candidates()
    made = stretto.emit(EXAMPLES / "layer_norm.ttir", H200)
    paces = [one.pace.cycles for one in every if one.pace is not None]
    assert len(paces) == len(every)
    assert made.pace is not None
    assert made.pace.cycles <= 1.01 * min(paces)
    slow = replace(H200, timings=tuple(f for f in H200.timings if f.name != "load_l1"))
    (first, *rest) = Emitter(EXAMPLES / "layer_norm.ttir", slow).candidates()
    assert all(one.pace is None for one in (first, *rest))
    assert stretto.emit(EXAMPLES / "layer_norm.ttir", slow).length == min(
        one.length for one in (first, *rest)
    )


@pytest.mark.parametrize(
    ("name", "worse"),
    [
        ("load_store_hbm", (800,)),
        ("load_latency_mixed", (11260, 14320, 14990, 17240, 18340, 21320, 29780, 35910)),
        ("load_last", (60,)),
        ("meet", (9999,) * 5),
        ("instruction", (1660, 136)),
        ("instruction", (166, 400)),
        ("pass", (9000, 151)),
        ("pass", (338, 4000)),
        ("registers", (16384,)),
        ("keep_hits", (0,) * 11),
        ("load_l1", (37, 16)),
    ],
)
def test_a_machine_that_is_worse_makes_layer_norm_slower(name: str, worse: tuple[int, ...]) -> None:
    assert norm(changed(name, *worse)).prediction.seconds > norm().prediction.seconds


def test_registers_say_how_many_blocks_an_sm_has() -> None:
    few, many = norm(changed("registers", 16384)).prediction, norm().prediction
    assert 1 <= few.resident < many.resident <= 16


def test_a_machine_that_does_not_tell_of_such_loads_has_a_lower_bound_and_says_so() -> None:
    silent = replace(H200, timings=tuple(f for f in H200.timings if f.name != "load_l1"))
    found, told = norm(silent), "threads load, and the model takes what they load to be there"
    assert found.prediction.seconds < norm().prediction.seconds
    assert told in "\n".join(found.to_text())
    assert told not in "\n".join(norm().to_text())


def test_rows_of_twice_the_length_take_twice_as_long_or_more_where_caches_keep_less() -> None:
    once, twice = norm().prediction.seconds, norm(columns=2 * COLUMNS).prediction.seconds
    assert 1.6 * once < twice < 4 * once


def test_a_product_of_pointers_takes_no_less_than_its_products() -> None:
    sizes = dict.fromkeys("MNK", 8192)
    path = EXAMPLES / "matmul_pointers.ttir"
    found = stretto.predict(path, H200, grid=(4096,), arguments=sizes).prediction
    assert found.loops[0].cycles >= 512
    assert found.tflops is not None
    assert found.tflops < 2 * 128 * 128 * 64 / 512 * 132 * found.clock * 1e6 / 1e12


# What a block waits for ---------------------------------------------------------------------------


def by_warps(folder: Path, warps: int) -> Emitter:
    """Layer norm by so many warps."""
    beside = json.loads((EXAMPLES / "layer_norm.json").read_text())
    beside["num_warps"] = warps
    (folder / "layer_norm.json").write_text(json.dumps(beside))
    (folder / "layer_norm.ttir").write_text((EXAMPLES / "layer_norm.ttir").read_text())
    return Emitter(folder / "layer_norm.ttir", H200)


def told(made: EmittedKernel, machine: Machine = H200, blocks: int = ROWS) -> Prediction:
    return predict_kernel(made.subject, machine, (blocks,), {"columns": COLUMNS})


def test_a_scheduler_has_a_fourth_of_the_registers(tmp_path: Path) -> None:
    """Two warps of 184 registers have room with each, not 2.8: an SM has 4 blocks of two warps."""
    made = by_warps(tmp_path, 2).drained((8, 4))
    assert told(replace(made, registers=184)).resident == 4
    assert told(replace(made, registers=168)).resident == 6
    assert told(replace(made, registers=255)).resident == 4
    assert told(replace(made, registers=32)).resident == 32


def test_warps_that_issue_more_than_there_are_slots_take_longer(tmp_path: Path) -> None:
    """By 16 warps each loads two elements at once, and has as much to do for them as for four."""
    eight, sixteen = (
        replace(by_warps(tmp_path, warps).drained((8, 2)), registers=32) for warps in (8, 16)
    )
    assert told(sixteen).seconds > 1.2 * told(eight).seconds
    quick = changed("instruction", 1, 1)
    assert told(sixteen, quick).seconds == pytest.approx(told(eight, quick).seconds, rel=0.05)


def test_loads_beyond_those_that_the_assembler_has_on_their_way_wait_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One warp has 64 loads of eight iterations: a fourth at a time."""
    made = by_warps(tmp_path, 1).drained((8, 1))
    memory = memory_of(H200, 1700)
    assert memory is not None
    some = told(made, blocks=1).block
    monkeypatch.setattr(timeline, "AHEAD", 64)
    at_once = told(made, blocks=1).block
    idle = memory.beside.latency(0)
    assert 1.5 * idle < some - at_once < 3 * idle


@given(st.floats(0, 1), st.floats(1, 500), st.floats(1, 500))
def test_the_last_of_more_loads_is_there_no_sooner(hits: float, some: float, others: float) -> None:
    memory = memory_of(H200, 1700)
    assert memory is not None
    latency = timeline.Latency(300.0, 900.0, 40.0, hits)
    few, many = sorted((some, others))
    assert 40 <= latency.of(few, memory) <= latency.of(many, memory) + 1e-6


def test_a_block_waits_for_a_miss_if_there_is_one_among_its_loads() -> None:
    memory = memory_of(H200, 1700)
    assert memory is not None
    assert timeline.Latency(300.0, 900.0, 40.0, 1.0).of(96, memory) == 40
    assert timeline.Latency(300.0, 900.0, 40.0, 0.0).of(16, memory) == pytest.approx(1200)
    assert timeline.Latency(300.0, 0.0, 40.0, 0.97).of(96, memory) > 280


def test_the_last_blocks_of_an_sm_are_fewer_and_take_less() -> None:
    made = Emitter(EXAMPLES / "layer_norm.ttir", H200).drained((8, 4))
    full = told(made)
    one_more = told(made, blocks=132 * full.resident + 1)
    assert full.block < one_more.cycles < 1.8 * full.block
    assert one_more.cycles > full.block + told(made, blocks=1).block * 0.9


def test_reductions_over_a_block_take_what_they_were_measured_to_take() -> None:
    made = Emitter(EXAMPLES / "layer_norm.ttir", H200).drained((8, 4))
    slow = changed("meet", *(cycles + 1000 for cycles in H200.timing("meet") or ()))
    # Two of them; a block that takes longer asks for less at a time.
    assert 1700 < told(made, slow, 1).block - told(made, blocks=1).block <= 2000


# Registers as the assembler has them --------------------------------------------------------------


def test_of_kernels_that_the_assembler_gives_many_registers_another_is_taken() -> None:
    kernel = EXAMPLES / "layer_norm.ttir"
    asked: list[str] = []

    def with_registers(count: int) -> Compiled:
        return Compiled(0, (), 0, count)

    def many_for_four(emitted: Emitted) -> Compiled:
        asked.append(emitted.source)
        return with_registers(255 if "# step 0 of 7\n" in emitted.source else 40)

    few = stretto.emit(kernel, H200, assemble=lambda _: with_registers(40))
    other = stretto.emit(kernel, H200, assemble=many_for_four)
    assert few.registers == other.registers == 40
    assert 1 < len(asked) < len(Emitter(kernel, H200).candidates())
    spread = stretto.emit(kernel, H200, assemble=lambda _: with_registers(255))
    assert spread.pace is not None
    assert few.pace is not None
    assert spread.pace.cycles > few.pace.cycles


def test_a_ranking_asks_the_assembler_of_the_first(tmp_path: Path) -> None:
    problems: list[tuple[Path, tuple[int, ...]]] = []
    for warps in (4, 8):
        (tmp_path / str(warps)).mkdir()
        by_warps(tmp_path / str(warps), warps)
        problems.append((tmp_path / str(warps) / "layer_norm.ttir", (ROWS,)))

    def first(heavy: int) -> str:
        ranking = stretto.rank(
            problems, H200, arguments={"columns": COLUMNS}, depths=(None,), names=("4", "8"),
            assemble=lambda emitted: Compiled(0, (), 0, 255 if emitted.warps == heavy else 48),
        )  # fmt: skip
        return ranking.best.name

    assert (first(4), first(8)) == ("8", "4")
