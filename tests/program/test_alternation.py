"""Consumers that issue products in turns: who goes when, and what is found where a turn is missing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import kernel_cases
from gluon_cases import launched, near
from stretto.api import emitting
from stretto.api.emitting import STAGES, EmittedKernel, emit
from stretto.emit.gluon.source import source
from stretto.program import KernelProgram
from stretto.program.alternation import alternating
from stretto.program.clocks import FaultError, check_program
from stretto.program.instructions import NamedArrive, NamedSync, Product, Settle, Step
from stretto.program.rescaling import with_rescaling
from stretto.program.walk import walk
from stretto.simulate.kernels.programs import run_program_of_kernel
from test_program_clocks import changed, unfound

EXAMPLES = Path(__file__).parents[2] / "examples" / "triton"
KERNELS = ("attention_forward_d64", "attention_forward_d64_causal")


@cache
def emitted(name: str) -> EmittedKernel:
    few = patch.dict(STAGES, {"specialized": STAGES["specialized"][2:3]})
    with few, patch.object(emitting, "SOLVED_WORK", 0):
        return emit(EXAMPLES / f"{name}.ttir", "h200", consumers=2)


@cache
def in_turns(name: str) -> KernelProgram:
    return alternating(with_rescaling(emitted(name).emitted.program))


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
    case = kernel_cases.attention_forward(64, causal=name.endswith("causal"))
    before = run_program_of_kernel(emitted(name).emitted.program, case.inputs, case.grid)
    behind = run_program_of_kernel(in_turns(name), case.inputs, case.grid)
    for array, wanted in before.arrays.items():
        assert np.array_equal(behind.arrays[array], wanted, equal_nan=True), array
    near(launched(source(in_turns(name)), case.inputs, case.grid), case.expected, case.tolerance)


def test_barriers_of_the_hardware_have_numbers_that_nobody_else_has() -> None:
    """Triton numbers its own from 0: one for all, one to hand out work, one for each agent."""
    whole = in_turns(KERNELS[0])
    numbers = [one.number for one in whole.named]
    assert numbers == [15, 14]
    assert min(numbers) > 1 + len(whole.agents)
    assert all(one.threads == 256 for one in whole.named)
    many = replace(whole, named=(), agents=whole.agents * 5)
    assert alternating(many) is many


@pytest.mark.parametrize("name", ["matmul_descriptors", "matmul_persistent"])
def test_a_kernel_of_one_product_has_no_turns(name: str) -> None:
    program = emit(EXAMPLES / f"{name}.ttir", "h200", consumers=2).emitted.program
    assert alternating(program) is program
    assert with_rescaling(program) == program
