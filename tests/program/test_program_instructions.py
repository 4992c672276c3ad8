"""Every instruction and every expression is spelled, run by clocks and run on values."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from stretto.emission.gluon.spelling import SPELLED
from stretto.emission.gluon.statements import LINES
from stretto.program.clocks.agents import ACTS
from stretto.program.expressions import Arithmetic, Expression, Given, Iteration, Name, number
from stretto.program.instructions import Instruction
from stretto.simulation.kernels.expressions import WAYS
from stretto.simulation.kernels.programs import ValueRun

STOPS = {"Wait", "NamedSync"}
CONTROL = {"For", "While", "If", "Step", "Pipelined", *STOPS}
"""Instructions with bodies, or that an agent may stop at."""
WITHOUT_EFFECT = {
    "ProductInit", "TraceBegin", "TraceEnd", "ReadClock", "TraceSteps",
    "TraceMark", "Remark", "Print",
}  # fmt: skip
"""Nothing in memory or on a barrier happens by them."""


@pytest.mark.parametrize("kind", get_args(Instruction), ids=lambda kind: kind.__name__)
def test_an_instruction_has_a_row_everywhere(kind: type[Any]) -> None:
    name = kind.__name__
    assert (kind in LINES) is (name not in CONTROL or name in STOPS)
    assert (kind in ACTS) is (name not in CONTROL | WITHOUT_EFFECT)
    if kind in ACTS:
        assert callable(getattr(ValueRun, ACTS[kind]))


@pytest.mark.parametrize("kind", get_args(Expression), ids=lambda kind: kind.__name__)
def test_an_expression_has_a_row_everywhere(kind: type[Any]) -> None:
    assert kind in SPELLED
    assert kind in WAYS


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Arithmetic("-", Arithmetic("+", Name("n"), number(1)), number(3)), "n + 1 - 3"),
        (Arithmetic("-", Name("n"), Arithmetic("-", Name("m"), number(3))), "n - (m - 3)"),
        (Arithmetic("%", Arithmetic("+", Name("s"), Name("n")), number(4)), "(s + n) % 4"),
        (Arithmetic("*", Arithmetic("//", Name("n"), number(8)), number(8)), "n // 8 * 8"),
        (Arithmetic("^", Name("phase"), number(1)), "phase ^ 1"),
        (Iteration("step", None, 2), "step - 2"),
        (Iteration("n", 1, 2), "n + 1 - 2"),
        (Iteration("", 3, 2), "1"),
        (Given("x", "strides", 1, pointer=True), "x.stride(1)"),
        (Given("x", "strides", 1), "x.strides[1]"),
    ],
)
def test_arithmetic_is_spelled_with_the_brackets_that_it_needs(
    value: Expression, text: str
) -> None:
    assert SPELLED[type(value)](value) == text
