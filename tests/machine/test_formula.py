"""Formulas: exact, closed, and honest about what they cannot compute."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stretto.loop import Facts, Op, Operand, TileType, Value
from stretto.machine.formula import FORMULA_VARIABLES, Formula, FormulaError
from stretto.resources.prepare import variables


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("ceil(bytes * 3 / 512)", 96),
        ("460 + ceil(bytes * 3 / 512)", 556),
        ("floor(7 / 2)", 3),
        ("max(1, 5, 3) - min(2, 4)", 3),
        ("bytes // 1000 % 7", 2),
        ("(1 / 3) * 3", 1),
        ("-(2 - 5)", 3),
    ],
)
def test_costs(text: str, value: int) -> None:
    assert Formula.parse(text).cost({"bytes": 16384}) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('buffer == "smem"', True),
        ('buffer != "smem" or n > 3', True),
        ("1 < n <= 4 and not n == 3", True),
        ("n >= 5", False),
    ],
)
def test_conditions(text: str, value: bool) -> None:
    assert Formula.parse(text).holds({"buffer": "smem", "n": 4}) is value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bytes / 3", "not whole; say ceil"),
        ("0 - 5", "below 0"),
        ("missing + 1", "needs `missing`"),
        ("1 // (bytes - bytes)", "divides by zero"),
        ("bytes < 3", "not a number"),
        ('bytes + "a"', "mixes words and numbers"),
        ('"a"', "not a number"),
    ],
)
def test_what_a_cost_cannot_be(text: str, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        Formula.parse(text).cost({"bytes": 1000})


def test_a_number_is_no_condition() -> None:
    with pytest.raises(FormulaError, match="not true or false"):
        Formula.parse("1 + 1").holds({})


@pytest.mark.parametrize(
    "text",
    [
        "2 ** 9",
        "__import__('os')",
        "a.b",
        "[1]",
        "lambda: 1",
        "f(1)",
        "1.5",
        "True",
        "max(x=1)",
        "a:=1",
    ],
)
def test_the_language_is_closed(text: str) -> None:
    with pytest.raises(FormulaError):
        Formula.parse(text)


def test_long_formulas_are_refused() -> None:
    with pytest.raises(FormulaError, match="limit is 200"):
        Formula.parse("1" + "+1" * 200)


def test_what_formulas_may_name_is_what_operations_have() -> None:
    values = {"a": "8x4xf16", "b": "4x2xf16", "c": "8x2xf32"}
    op = Op(
        "op",
        "k",
        operands=(Operand("a"), Operand("b")),
        results=("c",),
        facts=Facts(1, 2, 3, (-4, 5), "tmem", 6, 7, 8, 9, True, 10, False, None, (0, 31)),
    )
    typed = {name: Value(name, TileType.parse(text)) for name, text in values.items()}
    known = variables(op, typed, {})
    assert set(known) == set(FORMULA_VARIABLES)
    for name, value in known.items():
        assert FORMULA_VARIABLES[name] == ("word" if isinstance(value, str) else "number")


def test_what_formulas_may_name_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "machines.md"
    table = page.read_text(encoding="utf-8").split("| variable | is |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == list(FORMULA_VARIABLES)
