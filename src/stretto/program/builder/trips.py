"""How often a loop goes round: a number where nothing decides it, else an expression.

for start in range(0, length, 64)            max(ceildiv(length, 64), 0)
for start in range(begin, begin + 128, 64)   2
"""

from __future__ import annotations

from collections.abc import Mapping

from stretto.kernel import Operation, Value
from stretto.kernel.tree import kind_of
from stretto.program.expressions import Expression, Trips, number


def known_trips(loop: Operation, maker: Mapping[Value, Operation]) -> int | None:
    """The trip count of a loop whose bounds are a number apart; None where they may be any."""
    lower, upper, step = loop.operands[:3]
    by, first, last = (_constant(value, maker) for value in (step, lower, upper))
    made = maker.get(upper)
    if first is None and made is not None and kind_of(made) == "arith.addi":
        further = [value for value in made.operands if value is not lower]
        if len(further) == 1:
            first, last = 0, _constant(further[0], maker)
    if by is None or first is None or last is None:
        return None
    return max(0, -((first - last) // by))


def trips(
    lower: Expression, upper: Expression, step: Expression, known: int | None, fewer: int = 0
) -> Expression:
    """The trip count without so many of the last: a number where it is known."""
    if known is None:
        return Trips(lower, upper, step, fewer)
    return number(max(0, known - fewer))


def sizes(most: int, trips: int | None) -> tuple[int, ...]:
    """Of iterations that run together: so many, then powers of two below, down to one.

    Where the trips are known, those of which there is a group.
    """
    found: list[int] = []
    many = most
    while many:
        if trips is None:
            found.append(many)
        elif trips >= many:
            found.append(many)
            trips %= many
        many = 1 << (many - 1).bit_length() >> 1
    return tuple(found)


def _constant(value: Value, maker: Mapping[Value, Operation]) -> int | None:
    made = maker.get(value)
    if made is None or kind_of(made) != "arith.constant":
        return None
    stated = made.attributes["value"]
    return stated if isinstance(stated, int) else None
