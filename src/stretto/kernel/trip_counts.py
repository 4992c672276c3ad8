"""How the trip counts of a kernel's loops change with the index of its block.

    for i in range(0, begin + 128, 64)      begin = block * 128      grows with the block
    for i in range(begin, length, 64)                                shrinks
    for i in range(begin, begin + 128, 64)                           stays
    for i in range(0, load(lengths + block))                         nobody knows

A bound is taken as a sum of block indices, each times a number, and of what is the same in all
blocks; minima and maxima keep the direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from stretto.kernel.tree import Kernel, Operation, Region, Value
from stretto.kernel.types import Scalar
from stretto.ops.operations import SAME_NUMBER

_LOOPS = ("scf.for", "scf.while")
_QUOTIENTS = ("arith.divsi", "arith.ceildivsi", "arith.floordivsi", "arith.divui")
_EXTREMES = ("arith.minsi", "arith.maxsi")


class _UnknownError(Exception):
    """A number that follows from a block in a way that is not seen."""


@dataclass(frozen=True)
class _Form:
    """Of a number: what one block further along an axis adds to it."""

    slopes: Mapping[int, Fraction]
    """By axis; 0 where there is none."""
    bent: bool = False
    """Whether a slope holds on a part of the way only, and is 0 on the rest."""

    @property
    def flat(self) -> bool:
        return not any(self.slopes.values())

    def times(self, factor: Fraction) -> _Form:
        return _Form({axis: s * factor for axis, s in self.slopes.items()}, self.bent)

    def plus(self, other: _Form) -> _Form:
        if (self.bent and not other.flat) or (other.bent and not self.flat):
            raise _UnknownError
        total = dict(self.slopes)
        for axis, slope in other.slopes.items():
            total[axis] = total.get(axis, _ZERO) + slope
        return _Form(total, self.bent or other.bent)


_ZERO = Fraction(0)
_NONE = _Form({})


def growth(kernel: Kernel) -> Mapping[int, int] | None:
    """By axis of the grid: 1 where loops go round more often the further a block is, -1 where less.

    Empty where trip counts are the same in all blocks; None where they cannot be told.
    """
    makers = {value: op for op in kernel.walk() for value in op.results}
    found: dict[int, set[int]] = {}
    try:
        for loop in outermost_loops(kernel.body):
            if loop.name != "scf.for":
                return None
            lower, upper, step = (_form(value, makers) for value in loop.operands[:3])
            if not step.flat:
                return None
            for axis, slope in upper.plus(lower.times(Fraction(-1))).slopes.items():
                if slope:
                    found.setdefault(axis, set()).add(1 if slope > 0 else -1)
    except _UnknownError:
        return None
    if any(len(ways) > 1 for ways in found.values()):
        return None
    return {axis: way for axis, (way,) in found.items()}


def outermost_loops(region: Region) -> Iterator[Operation]:
    """Loops that stand in no other, as the text has them."""
    for operation in region.operations:
        if operation.name in _LOOPS:
            yield operation
        else:
            for inner in operation.regions:
                yield from outermost_loops(inner)


def _form(value: Value, makers: Mapping[Value, Operation]) -> _Form:
    """What is known of a number; _UnknownError where it may follow from the block unseen."""
    made = makers.get(value)
    if made is None:
        return _NONE  # a parameter; what a loop carries is no bound of an outermost one
    if made.name == "tile.block_index":
        return _Form({made.integer("axis"): Fraction(1)})
    if made.name in SAME_NUMBER:
        return _form(made.operands[0], makers)
    if made.regions or not made.name.startswith(("arith.", "tile.block_count")):
        raise _UnknownError
    forms = [_form(operand, makers) for operand in made.operands]
    return _NONE if all(form.flat for form in forms) else _arithmetic(made, forms, makers)


def _arithmetic(
    made: Operation, forms: Sequence[_Form], makers: Mapping[Value, Operation]
) -> _Form:
    """Of what is computed with numbers, some of which change from block to block."""
    match made.name:
        case "arith.addi":
            return forms[0].plus(forms[1])
        case "arith.subi":
            return forms[0].plus(forms[1].times(Fraction(-1)))
        case "arith.muli":
            for factor, other in ((1, 0), (0, 1)):
                number = constant(made.operands[factor], makers)
                if number is not None:
                    return forms[other].times(Fraction(number))
        case _ if made.name in _QUOTIENTS:
            number = constant(made.operands[1], makers)
            if number is not None and number > 0:
                return _Form(forms[0].times(Fraction(1, number)).slopes, forms[0].bent)
        case _ if made.name in _EXTREMES:
            moving = [form for form in forms if not form.flat]
            if len(moving) == 1:
                return _Form(moving[0].slopes, bent=True)
        case _:
            pass
    raise _UnknownError


def constant(value: Value, makers: Mapping[Value, Operation]) -> int | None:
    """A whole number that stands in the text."""
    made = makers.get(value)
    if made is None or made.name != "arith.constant" or not isinstance(value.type, Scalar):
        return None
    number = made.attributes["value"]
    return number if isinstance(number, int) else None
