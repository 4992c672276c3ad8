"""How often a loop goes round: a number where nothing decides it, else an expression.

for start in range(0, length, 64)            gl.maximum(gl.cdiv(length, 64), 0)
for start in range(begin, begin + 128, 64)   2
"""

from __future__ import annotations

from collections.abc import Mapping

from stretto.emit.gluon.expressions import wrapped
from stretto.kernel import Operation, Value
from stretto.kernel.tree import kind_of


def known_trips(loop: Operation, maker: Mapping[Value, Operation]) -> int | None:
    """The trip count of a loop whose bounds are a number apart; None where they may be any."""
    lower, upper, step = loop.operands[:3]
    by, first, last = (_number(value, maker) for value in (step, lower, upper))
    made = maker.get(upper)
    if first is None and made is not None and kind_of(made) == "arith.addi":
        further = [value for value in made.operands if value is not lower]
        if len(further) == 1:
            first, last = 0, _number(further[0], maker)
    if by is None or first is None or last is None:
        return None
    return max(0, -((first - last) // by))


def trips(lower: str, upper: str, step: str, known: int | None) -> str:
    """The trip count as Gluon writes it."""
    if known is not None:
        return str(known)
    span = upper if lower == "0" else f"{wrapped(upper)} - {wrapped(lower)}"
    return f"gl.maximum(gl.cdiv({span}, {step}), 0)"


def _number(value: Value, maker: Mapping[Value, Operation]) -> int | None:
    made = maker.get(value)
    if made is None or kind_of(made) != "arith.constant":
        return None
    number = made.attributes["value"]
    return number if isinstance(number, int) else None
