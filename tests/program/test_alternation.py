"""Consumers that issue products in turns: who goes when, and a turn that is missing is found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from test_program_clocks import changed, unfound

import kernel_cases
from gluon_cases import launched, near
from stretto.api.emitting import emit
from stretto.compile import loop_schedules
from stretto.compile.candidates import STAGES
from stretto.compile.emitted import EmittedKernel
from stretto.emission.gluon.source import source
from stretto.program import KernelProgram, alternation
from stretto.program.alternation import LONG, alternating
from stretto.program.clocks import FaultError, check_program
from stretto.program.instructions import NamedArrive, NamedSync, Pipelined, Product, Settle, Step
from stretto.program.walk import walk
from stretto.simulation.kernels import run_kernel
from stretto.simulation.kernels.programs import run_program_of_kernel

EXAMPLES = Path(__file__).parents[2] / "examples" / "triton"
WIDE = Path(__file__).parents[1] / "ttir" / "wide" / "attention_forward_d64_256.ttir"
KERNELS = ("attention_forward_d64", "attention_forward_d64_causal")


@cache
def emitted(name: str) -> EmittedKernel:
    few = patch.dict(STAGES, {"specialized": STAGES["specialized"][:1]})
    any_step = patch.object(alternation, "LONG", 1)
    with few, patch.object(loop_schedules, "SOLVED_WORK", 0), any_step:
        return emit(EXAMPLES / f"{name}.ttir", "h200", consumers=2)


def in_turns(name: str) -> KernelProgram:
    return emitted(name).emitted.program


@pytest.mark.parametrize("name", KERNELS)
def test_a_turn_that_is_not_waited_for_or_not_handed_on_is_found(name: str) -> None:
    whole = in_turns(name)
    check_program(whole)
    assert unfound(changed(whole, (NamedSync, NamedArrive), lambda _: None)) == []


def test_a_turn_that_comes_twice_is_found() -> None:
    whole = in_turns(KERNELS[0])
    first = whole.agents[0]
    twice = replace(first, body=(*first.body, first.body[-1]))
    assert isinstance(first.body[-1], NamedSync)
    with pytest.raises(FaultError, match="nobody goes on"):
        check_program(replace(whole, agents=(twice, *whole.agents[1:])))
    last = whole.agents[1]
    begun = replace(last, body=(last.body[0], *last.body))
    assert isinstance(last.body[0], NamedArrive)
    with pytest.raises(FaultError, match="second of its agent"):
        check_program(replace(whole, agents=(first, begun, *whole.agents[2:])))


@pytest.mark.parametrize("name", KERNELS)
def test_no_product_waits_for_another_inside_a_turn(name: str) -> None:
    for agent in in_turns(name).agents[:2]:
        for step in walk(agent.body):
            if not isinstance(step, Step):
                continue
            inside = False
            for one in step.body:
                inside = (inside or isinstance(one, NamedSync)) and not isinstance(one, NamedArrive)
                assert not (inside and isinstance(one, Settle))
            assert not inside
            turns = sum(isinstance(one, NamedSync) for one in step.body)
            assert turns <= sum(isinstance(one, Product) for one in step.body)


@pytest.mark.parametrize("name", KERNELS)
def test_what_it_works_out_is_what_it_was(name: str) -> None:
    whole, case = in_turns(name), kernel_cases.attention_forward(64, causal=name.endswith("causal"))
    plain = run_kernel(whole.kernel, case.inputs, case.grid)
    found = run_program_of_kernel(whole, case.inputs, case.grid)
    for array, wanted in plain.arrays.items():
        assert np.array_equal(found.arrays[array], wanted, equal_nan=True), array
    near(launched(source(whole), case.inputs, case.grid), case.expected, case.tolerance)


def test_a_step_that_is_too_short_has_no_turns() -> None:
    whole = in_turns(KERNELS[0])
    bare = replace(whole, named=())
    assert not alternating(bare, [LONG - 1]).named
    assert alternating(bare, [LONG]).named


def test_consumers_that_leave_steps_out_go_by_themselves() -> None:
    """The loop with the mask has no turns, the one before it has."""
    for agent in in_turns(KERNELS[1]).agents[:2]:
        loops = [one for one in walk(agent.body) if isinstance(one, Pipelined)]
        turns = [sum(isinstance(one, NamedSync) for one in walk(loop.body)) for loop in loops]
        assert [bool(turn) for turn in turns] == [True, False]


def test_barriers_of_the_hardware_have_numbers_that_nobody_else_has() -> None:
    """Triton numbers its own from 0: one for all, one to hand out work, one for each agent."""
    whole = in_turns(KERNELS[0])
    numbers = [one.number for one in whole.named]
    assert numbers == [15, 14]
    assert min(numbers) > 1 + len(whole.agents)
    assert all(one.threads == 256 for one in whole.named)
    many = replace(whole, named=(), agents=whole.agents * 5)
    assert not alternating(many, [LONG]).named


@pytest.mark.parametrize("name", ["matmul_descriptors", "matmul_persistent"])
def test_a_kernel_of_one_product_has_no_turns(name: str) -> None:
    program = emit(EXAMPLES / f"{name}.ttir", "h200", consumers=2).emitted.program
    assert not program.named


def test_four_consumers_leave_multiplications_by_one_out() -> None:
    """Two do not: they wait for products anyway."""
    assert "row_scaled" not in emitted(KERNELS[0]).source
    few = patch.dict(STAGES, {"specialized": STAGES["specialized"][:1]})
    with few, patch.object(loop_schedules, "SOLVED_WORK", 0):
        made = emit(WIDE, "h200", consumers=4)
    assert made.source.count("= row_scaled_32(total_") >= 4
    whole, case = made.emitted.program, kernel_cases.attention_forward(64, causal=False)
    grid = (case.grid[0] // 2, *case.grid[1:])
    plain = run_kernel(whole.kernel, case.inputs, grid)
    found = run_program_of_kernel(whole, case.inputs, grid)
    for array, wanted in plain.arrays.items():
        assert np.array_equal(found.arrays[array], wanted, equal_nan=True), array
    near(launched(made.source, case.inputs, grid), plain.arrays, case.tolerance)
