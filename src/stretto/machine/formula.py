"""Costs and conditions as small formulas, so that they live in the machine file.

    duration = "ceil(bytes * 3 / 512)"        a cost: must come out whole
    when = 'buffer == "tmem"'                 a condition

The language is arithmetic (+ - * / // %), comparison, and/or/not, ceil, floor, min, max over
whole numbers, words and named variables. Division is exact: a cost that is not whole says so
instead of rounding behind the reader's back.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, cast

from stretto.limits import FORMULA_CHARACTERS, FORMULA_DIGITS

Scalar = int | str
"""What a variable of a formula may be."""

Kind = Literal["number", "word", "condition"]
"""What a part of a formula comes out as."""

FORMULA_VARIABLES: dict[str, Kind] = {
    "elements": "number",
    "element_bits": "number",
    "element": "word",
    "bytes": "number",
    "in_elements": "number",
    "in_bytes": "number",
    "m": "number",
    "n": "number",
    "k": "number",
    "contiguity": "number",
    "divisibility": "number",
    "constancy": "number",
    "bank": "number",
    "bank_width": "number",
    "bank_pairs": "number",
    "lower": "number",
    "upper": "number",
    "first_byte": "number",
    "last_byte": "number",
    "buffer": "word",
    "accumulates": "number",
    "cluster": "number",
}
"""Everything a formula of a machine file may name; `docs/machines.md` says what each is."""

_TOO_LARGE = 10**FORMULA_DIGITS

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: Fraction(a) / Fraction(b),
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "min": min,
    "max": max,
}
_ROUNDING = ("ceil", "floor")
"""Functions of one argument; the others take two or more."""


class FormulaError(Exception):
    """A formula that cannot be read, or cannot be computed from what is known."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of a machine file, kept as the text that stands there."""

    text: str

    @property
    def names(self) -> tuple[str, ...]:
        """The variables it needs, in order of appearance."""
        return _parse(self.text)[1]

    def known(self, variables: Mapping[str, Scalar]) -> bool:
        """Whether every variable it needs is given."""
        return all(name in variables for name in self.names)

    def cost(self, variables: Mapping[str, Scalar]) -> int:
        """Its value as a number of cycles or units."""
        value = self._value(variables)
        if isinstance(value, bool) or not isinstance(value, int | Fraction):
            raise FormulaError(f"`{self.text}` is {value!r}, not a number")
        if Fraction(value).denominator != 1:
            told = f"{told_number(value)}, not whole; say ceil(...) or floor(...)"
            raise FormulaError(f"`{self.text}` is {told}")
        if value < 0:
            raise FormulaError(f"`{self.text}` is {told_number(value)}, below 0")
        return int(value)

    def holds(self, variables: Mapping[str, Scalar]) -> bool:
        """Its value as a condition."""
        value = self._value(variables)
        if not isinstance(value, bool):
            told = value if isinstance(value, str) else told_number(value)
            raise FormulaError(f"`{self.text}` is {told!r}, not true or false")
        return value

    def _value(self, variables: Mapping[str, Scalar]) -> Any:
        missing = [name for name in self.names if name not in variables]
        if missing:
            raise FormulaError(f"`{self.text}` needs " + ", ".join(f"`{n}`" for n in missing))
        try:
            return _evaluate(_parse(self.text)[0], variables)
        except ZeroDivisionError:
            raise FormulaError(f"`{self.text}` divides by zero") from None
        except TypeError:
            raise FormulaError(f"`{self.text}` mixes words and numbers") from None
        except OverflowError:
            told = f"a number of more than {FORMULA_DIGITS:,} digits"
            raise FormulaError(f"`{self.text}` comes to {told}") from None

    def check(self, wanted: Literal["number", "condition"]) -> None:
        """Refuse what could never be computed, before any operation is at hand.

        Names that no operation has, words where numbers belong, a condition for a cost or a
        cost for a condition; a formula without names is computed at once.
        """
        tree, names = _parse(self.text)
        for name in names:
            if name not in FORMULA_VARIABLES:
                known = ", ".join(FORMULA_VARIABLES)
                raise FormulaError(f"`{self.text}` names `{name}`; known: {known}")
        found = _kind(tree, self.text)
        if found != wanted:
            raise FormulaError(f"`{self.text}` is a {found}, not a {wanted}")
        if not names:
            _ = self.cost({}) if wanted == "number" else self.holds({})

    @staticmethod
    def parse(text: str) -> Formula:
        """The formula, after a check that it can be read."""
        _parse(text)
        return Formula(text)


@lru_cache(maxsize=4096)
def _parse(text: str) -> tuple[ast.expr, tuple[str, ...]]:
    if len(text) > FORMULA_CHARACTERS:
        raise FormulaError(f"is {len(text)} characters long; the limit is {FORMULA_CHARACTERS}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(f"`{text}` is not a formula") from None
    names: dict[str, None] = {}
    _check(tree, text, names)
    return tree, tuple(names)


def _check(node: ast.expr, text: str, names: dict[str, None]) -> None:
    match node:
        case ast.Constant(value=int() | str()) if not isinstance(node.value, bool):
            return
        case ast.Name(id=name):
            names[name] = None
            return
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            parts = [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            parts = [operand]
        case ast.BoolOp(values=values):
            parts = values
        case ast.Compare(left=left, ops=ops, comparators=right) if all(
            type(op) in _COMPARE for op in ops
        ):
            parts = [left, *right]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            parts = args
            wrong = len(args) != 1 if name in _ROUNDING else len(args) < 2
            if wrong:
                takes = "one argument" if name in _ROUNDING else "two arguments or more"
                raise FormulaError(f"`{text}` gives {name} {len(args)}; it takes {takes}")
        case _:
            raise FormulaError(f"`{text}` uses `{ast.unparse(node)}`, which formulas do not have")
    for part in parts:
        _check(part, text, names)


def _kind(node: ast.expr, text: str) -> Kind:
    """What a formula over the known variables comes out as; FormulaError where parts do not fit."""

    def need(parts: list[ast.expr], kind: Kind) -> Kind:
        for part in parts:
            if (found := _kind(part, text)) != kind:
                told = ast.unparse(part)
                raise FormulaError(f"`{text}`: `{told}` is a {found} where a {kind} is needed")
        return kind

    match node:
        case ast.Constant(value=constant):
            return "word" if isinstance(constant, str) else "number"
        case ast.Name(id=name):
            return FORMULA_VARIABLES[name]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return need([operand], "condition")
        case ast.UnaryOp(operand=operand):
            return need([operand], "number")
        case ast.BinOp(left=left, right=right):
            return need([left, right], "number")
        case ast.BoolOp(values=values):
            return need(values, "condition")
        case ast.Compare(left=left, ops=ops, comparators=right):
            equal = all(isinstance(op, ast.Eq | ast.NotEq) for op in ops)
            need(right, _kind(left, text)) if equal else need([left, *right], "number")
            return "condition"
        case _:
            return need(cast("ast.Call", node).args, "number")


def told_number(value: int | Fraction) -> str:
    """A number for a message: of a long one, how long it is."""
    text = f"{value:,}" if isinstance(value, int) else str(value)
    digits = sum(c.isdigit() for c in text)
    return text if digits <= 30 else f"a number of {digits:,} digits"


def _bounded(value: int | Fraction) -> int | Fraction:
    """A result that can still be reckoned with; OverflowError where it grows without measure."""
    if max(abs(value.numerator), value.denominator) >= _TOO_LARGE:
        raise OverflowError
    return value


def _evaluate(node: ast.expr, variables: Mapping[str, Scalar]) -> Any:
    def value(part: ast.expr) -> Any:
        return _evaluate(part, variables)

    match node:
        case ast.Constant(value=constant):
            return constant
        case ast.Name(id=name):
            return variables[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _bounded(_BINARY[type(op)](value(left), value(right)))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not value(operand)
        case ast.UnaryOp(operand=operand):
            return -value(operand)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(value(v) for v in values)
        case ast.BoolOp(values=values):
            return any(value(v) for v in values)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            left_value = value(left)
            for op, right in zip(ops, comparators, strict=True):
                right_value = value(right)
                if not _COMPARE[type(op)](left_value, right_value):
                    return False
                left_value = right_value
            return True
        case _:
            call = cast("ast.Call", node)
            function = _FUNCTIONS[cast("ast.Name", call.func).id]
            return function(*(value(argument) for argument in call.args))
