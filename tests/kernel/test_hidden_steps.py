"""Steps that a mask hides from a consumer: found where they are, and left out without a trace."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from test_program_clocks import changed

import kernel_cases
import stretto
from stretto.api.emitting import emit
from stretto.api.kernels import kernels_of
from stretto.compile import loop_schedules
from stretto.compile.candidates import STAGES
from stretto.compile.emitted import EmittedKernel
from stretto.diagnostics import MlirError
from stretto.ir import runnable_text
from stretto.kernel import Kernel
from stretto.kernel.configuration import Configuration
from stretto.kernel.hidden_steps import HIDDEN
from stretto.kernel.pipeline import lower
from stretto.machine import load_machine
from stretto.machine.replicas import crowded
from stretto.program.clocks import FaultError, check_program
from stretto.program.instructions import Arrive, For, Wait
from stretto.program.walk import walk
from stretto.simulation.kernels import run_kernel
from stretto.simulation.kernels.programs import run_program_of_kernel

TTIR = Path(__file__).parents[1] / "ttir"
NARROW = TTIR.parents[1] / "examples" / "triton" / "attention_forward_d64_causal.ttir"
"""Tiles of 128 x 64."""
WIDE = TTIR / "wide" / "attention_forward_d64_256_causal.ttir"
"""Of 256 x 64."""
MASK = "dense<0xFF800000> : tensor<128x64xf32>"


def lowered(text: str, consumers: int) -> Kernel:
    (kernel,) = kernels_of("kernel.ttir", text)
    machine = crowded(load_machine("h200"), consumers)
    return lower(kernel, machine, Configuration(consumers)).kernel


def hidden(text: str, consumers: int) -> list[object]:
    """Of each loop."""
    loops = [op for op in lowered(text, consumers).walk() if op.name == "scf.for"]
    return [op.attributes.get(HIDDEN) for op in loops]


@pytest.mark.parametrize(
    ("file", "consumers", "steps"),
    [(NARROW, 2, (1, 0)), (WIDE, 2, (2, 0)), (WIDE, 4, (3, 2, 1, 0))],
)
def test_steps_behind_the_diagonal_are_hidden(
    file: Path, consumers: int, steps: tuple[int, ...]
) -> None:
    assert hidden(file.read_text(), consumers) == [None, steps]


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        (MASK, "dense<-1.000000e+06> : tensor<128x64xf32>"),
        ("arith.cmpi sge", "arith.cmpi sle"),
        ("arith.cmpi sge", "arith.cmpi ne"),
    ],
)
def test_what_may_be_seen_is_not_hidden(before: str, behind: str) -> None:
    """A finite number in place of -inf, the other half of the scores, no half at all."""
    text = NARROW.read_text()
    assert before in text
    assert hidden(text.replace(before, behind), 2) == [None, None]


@pytest.mark.parametrize(
    ("rows", "keys", "predicate", "steps"),
    [(128, 64, "sgt", (1, 0)), (128, 64, "sge", (1, 0)), (192, 64, "sge", (2, 1))],
)
def test_as_many_as_no_place_of_a_mask_sees(
    rows: int, keys: int, predicate: str, steps: tuple[int, ...]
) -> None:
    """The loop goes so far behind the block's begin; counted place by place."""
    text = NARROW.read_text().replace("arith.cmpi sge", f"arith.cmpi {predicate}")
    further = [line for line in text.split("\n") if "%c128_i32" in line and "addi" in line]
    assert len(further) == 1
    text = text.replace(further[0], further[0].replace("%c128_i32", "%further"))
    constant = next(line for line in text.split("\n") if "%c128_i32 = " in line)
    added = constant.replace("%c128_i32 =", "%further =")
    added = added.replace("constant 128", f"constant {rows}")
    text = text.replace(constant, f"{constant}\n{added}")
    counted: list[int] = []
    for first in (0, 64):
        rows_of = np.arange(first, first + 64)[:, None]
        many = 0
        for start in reversed(range(0, rows, keys)):
            seen = np.arange(start, start + keys)[None, :]
            if (rows_of > seen if predicate == "sgt" else rows_of >= seen).any():
                break
            many += 1
        counted.append(many)
    assert tuple(counted) == steps
    assert hidden(text, 2) == [None, steps]


@cache
def emitted(file: Path, consumers: int) -> EmittedKernel:
    few = patch.dict(STAGES, {"specialized": STAGES["specialized"][2:3]})
    with few, patch.object(loop_schedules, "SOLVED_WORK", 0):
        return emit(file, "h200", consumers=consumers)


def test_a_consumer_hands_back_what_it_leaves_out() -> None:
    program = emitted(NARROW, 2).emitted.program
    first, second = program.agents[:2]
    loops = [one for one in walk(first.body) if isinstance(one, For) and one.hands_back]
    assert len(loops) == 1
    assert [type(one) for one in loops[0].body if isinstance(one, Wait | Arrive)] == 2 * [
        Wait,
        Arrive,
    ]
    assert not any(isinstance(one, For) and one.hands_back for one in walk(second.body))
    for _, mutant in changed(program, For, lambda loop: None if loop.hands_back else loop):
        if mutant != program:
            with pytest.raises(FaultError):
                check_program(mutant)


def test_nothing_else_changes() -> None:
    """Bit by bit: what was left out would have added zeros, and multiplied by ones."""
    program = emitted(NARROW, 2).emitted.program
    case = kernel_cases.attention_forward(64, causal=True)
    plain = run_kernel(program.kernel, case.inputs, case.grid)
    found = run_program_of_kernel(program, case.inputs, case.grid)
    for array, wanted in plain.arrays.items():
        assert np.array_equal(found.arrays[array], wanted, equal_nan=True), array


def test_they_stand_in_mlir() -> None:
    """And come back; what is no number of steps is refused."""
    text, _ = stretto.import_kernel(NARROW, "h200", consumers=2)
    assert text.count("stretto.hidden = array<i32: 1, 0>") == 1
    (again,) = runnable_text("again.mlir", text, load_machine("h200"))
    said = [loop.operation.attributes.get(HIDDEN) for loop in again.loops]
    assert said == [None, (1, 0)]
    for wrong in ("array<i32: -1, 0>", "2 : i64"):
        broken = text.replace("array<i32: 1, 0>", wrong)
        with pytest.raises(MlirError, match="expected an array of whole numbers of at least 0"):
            runnable_text("again.mlir", broken, load_machine("h200"))


def test_a_launch_is_asked_for_a_positive_factor() -> None:
    assert "if not (scale > 0.0):" in emitted(NARROW, 2).source
