"""More consumers than a machine usually has: each overlaps its products."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import kernel_cases
from gluon_cases import launched, near
from stretto.compile import loop_schedules
from stretto.compile.candidates import Emitter
from stretto.compile.emitted import EmittedKernel
from stretto.errors import StrettoError
from stretto.machine import load_machine
from stretto.machine.replicas import crowded

WIDE = Path(__file__).parents[1] / "ttir" / "wide"
"""Attention forward by tiles of 256 rows, fp16."""


@cache
def by_four(causal: bool) -> EmittedKernel:
    file = WIDE / f"attention_forward_d64_256{'_causal' if causal else ''}.ttir"
    with patch.object(loop_schedules, "SOLVED_WORK", 0):
        return Emitter(file, "h200", blocks="persistent").candidates(4, stages=(3,))[0]


def agents(source: str) -> list[str]:
    """The functions of those that compute."""
    return [
        part for part in source.split("@gluon.jit") if re.match(r"\ndef compute\w*_agent", part)
    ]


@pytest.mark.parametrize("causal", [False, True])
def test_four_consumers_do_what_one_does(causal: bool) -> None:
    asked = kernel_cases.attention_forward(64, causal)
    source = by_four(causal).source.replace("min(132, ", "min(1, ")
    near(launched(source, asked.inputs, (1, 2)), asked.expected, asked.tolerance)


def test_each_has_the_next_product_in_flight_when_it_adds_to_its_sum() -> None:
    """In the steady part: the first product, the one that adds, and only then a wait."""
    parts = agents(by_four(False).source)
    assert len(parts) == 4
    for part in parts:
        steady = part[part.index("# kernel") : part.index("# epilogue")]
        order = re.findall(r"(scores|total)\w* = warpgroup_mma\(|(warpgroup_mma_wait)\(", steady)
        assert [a or b for a, b in order][:3] == ["scores", "total", "warpgroup_mma_wait"]


def test_registers_are_those_that_are_left() -> None:
    machine = load_machine("h200")
    for consumers, registers in ((1, 240), (2, 240), (3, 160), (4, 112)):
        agent = crowded(machine, consumers).agents_of_products()
        assert (agent.replicas, agent.registers) == (max(2, consumers), registers)
    assert crowded(machine, 2) is machine
    assert crowded(machine, 5) is machine
    assert "[112, 112, 112, 24]" in by_four(False).source
    with pytest.raises(StrettoError, match="5 consumers; h200 has 1 to 4"):
        Emitter(WIDE / "attention_forward_d64_256.ttir", "h200").candidates(5)


def test_the_case_has_more_keys_than_a_tile() -> None:
    assert np.shape(kernel_cases.attention_forward(64, False).inputs["q_ptr"])[0] > 256
