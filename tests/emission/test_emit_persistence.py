"""Kernels of blocks that go over several tiles, emitted: right, and tiles come back early."""

from __future__ import annotations

from functools import cache
from unittest.mock import patch

import pytest

from gluon_cases import case, launched, near, shipped
from stretto.api.emitting import emit
from stretto.compile import loop_schedules
from stretto.compile.candidates import STAGES
from stretto.compile.emitted import EmittedKernel

CASES = (
    "triton/attention_forward_d64",
    "triton/attention_forward_d64_causal",
    "triton/attention_backward_kv_causal",
    "triton/matmul_descriptors",
)


@cache
def persistent(name: str) -> EmittedKernel:
    few = patch.dict(STAGES, {"specialized": STAGES["specialized"][2:3]})
    with few, patch.object(loop_schedules, "SOLVED_WORK", 0):
        return emit(shipped(name), consumers=2, blocks="persistent")


@pytest.mark.parametrize("blocks", [1, 3, 132])
@pytest.mark.parametrize("name", CASES)
def test_blocks_that_go_over_tiles_do_what_blocks_did(name: str, blocks: int) -> None:
    asked = case(name)
    source = persistent(name).source.replace("min(132, ", f"min({blocks}, ")
    near(launched(source, asked.inputs, asked.grid), asked.expected, asked.tolerance)


def test_the_host_asks_for_as_many_blocks_as_there_are_units() -> None:
    made = persistent("triton/attention_forward_d64")
    assert made.emitted.parameters["tiles_x"] == made.emitted.parameters["tiles_y"] == "i32"
    assert "do_not_specialize=['tiles_x', 'tiles_y']" in made.source
    assert "return (min(132, grid[0] * grid[1]),), (grid[0], grid[1])" in made.source


def test_a_tile_is_handed_back_behind_its_last_reader() -> None:
    """Held in registers: at once, so that the next tile's copy is under way while this one runs."""
    lines = [line.strip() for line in persistent("triton/attention_forward_d64").source.split("\n")]
    for number in (0, 1):
        read = next(n for n, line in enumerate(lines) if f"= q_{number}_tile.load(" in line)
        assert lines[read + 1] == "fence_async_shared()"
        assert lines[read + 2] == f"mbarrier.arrive(q_{number}_tile_free, count=1)"
