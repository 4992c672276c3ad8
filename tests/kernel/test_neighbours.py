"""Neighbouring blocks that share a loop: each is done once, also where the last has fewer."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import kernel_cases
from gluon_cases import launched, near
from stretto.api.emitting import emit
from stretto.api.kernels import kernels_of
from stretto.compile import loop_schedules
from stretto.compile.candidates import STAGES
from stretto.compile.emitted import EmittedKernel
from stretto.kernel import Kernel
from stretto.kernel.configuration import Configuration
from stretto.kernel.errors import KernelError
from stretto.kernel.pipeline import lower
from stretto.machine import load_machine
from stretto.machine.replicas import crowded
from stretto.simulation.kernels import run_kernel
from stretto.simulation.kernels.programs import run_program_of_kernel

NARROW = Path(__file__).parents[1] / "ttir" / "narrow"
PLAIN, CAUSAL = (
    NARROW / "attention_forward_d64_64.ttir",
    NARROW / "attention_forward_d64_64_causal.ttir",
)
"""Tiles of 64 x 64."""
WIDE = NARROW.parent / "wide" / "attention_forward_d64_256.ttir"
"""Of 256 x 64."""


def lowered(file: Path, consumers: int) -> Kernel:
    (kernel,) = kernels_of(str(file), file.read_text())
    machine = crowded(load_machine("h200"), consumers)
    return lower(kernel, machine, Configuration(consumers, "persistent")).kernel


@cache
def emitted(consumers: int, file: Path = PLAIN) -> EmittedKernel:
    few = patch.dict(STAGES, {"specialized": STAGES["specialized"][:1]})
    with few, patch.object(loop_schedules, "SOLVED_WORK", 0):
        return emit(file, "h200", consumers=consumers, blocks="persistent")


def test_what_all_load_is_loaded_once() -> None:
    kernel = lowered(PLAIN, 3)
    copies = [op for op in kernel.walk() if op.name.endswith("tiled_tma_load")]
    # Lowering leaves numbers behind names out: whoever prints them numbers them anew.
    assert [op.result.name for op in copies] == ["q", "q", "q", "k", "v"]
    assert len({op.result for op in copies}) == 5
    assert sum(op.name.endswith("tiled_tma_store") for op in kernel.walk()) == 3


@pytest.mark.parametrize("consumers", [2, 3])
def test_each_block_is_done_once(consumers: int) -> None:
    """Of four blocks along the axis, three consumers do three and one."""
    made, case = emitted(consumers), kernel_cases.attention_forward(64, causal=False)
    grid = (case.grid[0] * 2, *case.grid[1:])
    program = made.emitted.program
    plain = run_kernel(program.kernel, case.inputs, grid)
    found = run_program_of_kernel(program, case.inputs, grid)
    for array, wanted in plain.arrays.items():
        assert np.array_equal(found.arrays[array], wanted, equal_nan=True), array
    near(found.arrays, case.expected, case.tolerance)
    near(launched(made.source, case.inputs, grid), case.expected, case.tolerance)


def test_a_tile_that_loops_read_to_their_end_has_two_slots() -> None:
    """So the copy of the next does not wait for the last product of this one."""
    made, case = emitted(4, WIDE), kernel_cases.attention_forward(64, causal=False)
    program, grid = made.emitted.program, (case.grid[0] // 2, *case.grid[1:])
    assert {program.rings[f"q_{n}_tile"] for n in range(4)} == {2}
    assert "q_0_tile_slot, q_0_tile_phase = next_slot(" in made.source
    source = made.source.replace("min(132, ", "min(1, ")
    plain = run_kernel(program.kernel, case.inputs, grid)
    near(launched(source, case.inputs, grid), plain.arrays, case.tolerance)


def test_blocks_whose_loops_differ_are_not_put_together() -> None:
    with pytest.raises(KernelError, match="goes round differently often"):
        lowered(CAUSAL, 3)


def test_blocks_that_go_over_one_tile_are_not_put_together() -> None:
    (kernel,) = kernels_of(str(PLAIN), PLAIN.read_text())
    with pytest.raises(KernelError, match="do not go into 3 parts"):
        lower(kernel, crowded(load_machine("h200"), 3), Configuration(3))
