"""The II search through the public function: legal, bounded, deterministic, and seldom beaten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stretto
from brute_force import optimum
from generated import Problem, problems
from stretto import LoopError, StrettoError, prepare
from stretto.exact import Event
from stretto.lower_bounds import compute_bounds
from stretto.solution import Refusal
from stretto.verification import verify

EXAMPLES = Path(__file__).parents[2] / "examples"


@given(problems(), st.booleans(), st.sampled_from([None, 1, 2]), st.integers(0, 20))
def test_every_answer_is_legal_and_bounded(
    problem: Problem, fuse: bool, max_stages: int | None, more: int
) -> None:
    ready = prepare(problem.loop, problem.machine)
    bounds = compute_bounds(ready.loop, ready.machine, fuse=fuse, max_stages=max_stages)
    limit = bounds.mii + more
    analysis = stretto.schedule(
        problem.loop, problem.machine, fuse=fuse, max_stages=max_stages, max_ii=limit
    )
    if not analysis.success:
        assert analysis.refused
        return
    assert analysis.ii is not None
    assert bounds.mii <= analysis.ii <= limit
    assert verify(ready.loop, ready.machine, analysis, max_stages=max_stages) == ()
    assert fuse or not analysis.fused


@given(problems(max_ops=4, max_duration=3))
@settings(max_examples=30)
def test_proved_is_never_wrong(problem: Problem) -> None:
    """An II that is called optimal is the optimum; a refusal that is called proved is true."""
    analysis = stretto.schedule(problem.loop, problem.machine)
    if analysis.ii is None or analysis.proof is None:
        return
    best = optimum(problem.loop, problem.machine, True, analysis.ii)
    assert best is not None
    assert best <= analysis.ii
    assert analysis.proof.lower_bound <= best
    if analysis.proof.optimal:
        assert best == analysis.ii


@given(problems())
def test_refusals_lie_below_the_answer_and_in_order(problem: Problem) -> None:
    told: list[Refusal | int | Event] = []
    analysis = stretto.schedule(problem.loop, problem.machine, progress=told.append)
    seen = [refusal.ii for refusal in analysis.refused]
    assert seen == sorted(set(seen))
    if analysis.ii is not None and analysis.generator == "cost-based":
        assert all((r.through or r.ii) < analysis.ii for r in analysis.refused)
        assert analysis.ii in told


def test_the_same_bytes_whatever_the_hash_seed() -> None:
    def run(seed: str) -> object:
        stretto_command = str(Path(sys.executable).parent / "stretto")
        done = subprocess.run(
            [stretto_command, "schedule", "--json", str(EXAMPLES / "attention_backward.json")],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
        document = json.loads(done.stdout)
        for loop in document["loops"]:
            assert loop.pop("seconds") >= 0
        return document

    assert run("0") == run("1") == run("12345")


def test_memory_that_never_suffices_is_a_reason() -> None:
    loop = stretto.build("l", machine="b200-pipes")
    tile = loop.storage("tile", "smem", 1 << 20)
    a = loop.op("load", "async.tiled_tma_load", type="128x64xf16", into=tile)
    loop.op("read", "async.smem_read", a, type="128x64xf16")
    with pytest.raises(LoopError, match="1,048,576"):
        stretto.schedule(loop.finish())


def test_unknown_parts_are_refused() -> None:
    loop = stretto.build("l", machine="blackwell")
    loop.op("load", "async.tiled_tma_load")
    loop.op("read", "async.smem_read")
    with pytest.raises(StrettoError, match=r"no part `magic`; known: rau, .*arm:fuse"):
        stretto.schedule(loop.finish(), without=["magic"])
