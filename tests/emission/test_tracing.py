"""Kernels that read clocks: they compute what they did, and write down when they did it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gluon_cases import Tensor
from gluon_emulator import Emulator
from stretto.api.emitting import emit
from stretto.compile.emitted import EmitMode, EmittedKernel
from stretto.prediction.score import scores_of
from stretto.program.traces import MARKS, RECORD, STEPS, Tracing, size

KERNEL = Path(__file__).parents[2] / "examples/triton/matmul_descriptors.ttir"
TRIPS = 9


@cache
def traced(tracing: Tracing | None, mode: EmitMode = "specialized") -> EmittedKernel:
    consumers = 2 if mode == "specialized" else None
    return emit(KERNEL, mode=mode, consumers=consumers, tracing=tracing)


def run(made: EmittedKernel, tracing: Tracing) -> tuple[Any, Any, Any]:
    """The product, what NumPy makes of it, and the trace: one record an agent."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((128, 64 * TRIPS)).astype(np.float16)
    b = rng.standard_normal((64 * TRIPS, 128)).astype(np.float16)
    c = np.full((128, 128), np.nan, np.float16)
    agents = len(made.emitted.program.agents)
    trace = np.zeros(agents * size(tracing), np.int64)
    tensors = [array.view(Tensor) for array in (a, b, c)]
    Emulator(made.source).launch(*tensors, 128, 128, 64 * TRIPS, trace, grid=(1, 1))
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    return c, wanted, trace.reshape(agents, -1)


@pytest.mark.parametrize("mode", ["specialized", "unspecialized"])
@pytest.mark.parametrize("tracing", ["loops", "marks"])
def test_a_traced_kernel_computes_what_it_did_and_counts_its_steps(
    tracing: Tracing, mode: EmitMode
) -> None:
    made = traced(tracing, mode)
    found, wanted, trace = run(made, tracing)
    assert np.allclose(found, wanted, atol=0.1)
    for score, record in zip(scores_of(made.emitted.program), trace, strict=True):
        (loop,) = [part for part in score.parts if hasattr(part, "kernel")]
        begin, end, early, late, cycles, steps = record[:6]
        assert begin < end
        assert early < late
        assert 0 < cycles < end - begin
        assert steps == TRIPS + loop.ahead - loop.first  # type: ignore[union-attr]


def test_marks_stand_in_the_order_of_the_program_in_every_step() -> None:
    made = traced("marks")
    _, _, trace = run(made, "marks")
    for score, record in zip(scores_of(made.emitted.program), trace, strict=True):
        marks = made.emitted.marks[score.agent]["0"]
        steps = int(record[5])
        clocks = record[RECORD:].reshape(STEPS, MARKS)[:steps, : len(marks)]
        assert (clocks > 0).all()
        assert (np.diff(clocks.reshape(-1)) > 0).all()
        assert {mark.what for mark in marks} == {"before", "behind"}
        waits = [mark.thing for mark in marks if mark.what == "before"]
        assert waits == [
            mark.thing for mark in marks if mark.what == "behind" and mark.thing in waits
        ]


@pytest.mark.parametrize("file", ["layer_norm", "matmul_descriptors"])
def test_a_loop_that_runs_once_loads_nothing_of_its_record(file: str) -> None:
    """A kernel of loads would wait for one more: of a loop in another, cycles are added up."""
    kernel = KERNEL.with_stem(file)
    alone = emit(kernel, mode="unspecialized", tracing="loops").source
    assert "gl.store(trace_at + 4, trace_out - trace_in)" in alone
    assert "gl.load(trace_at" not in alone
    around = KERNEL.with_stem("matmul_persistent")
    assert "gl.load(trace_at + 4)" in emit(around, mode="unspecialized", tracing="loops").source


def test_nothing_of_it_is_left_where_it_is_not_asked_for() -> None:
    plain = traced(None).source
    assert "trace" not in plain
    assert "clock" not in plain
