"""What expressions of a program come to, with the numbers of one agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stretto.kernel.types import Pointer, Scalar, element_of
from stretto.program.expressions import (
    Arithmetic,
    Assembly,
    Combined,
    Computed,
    Converted,
    Counter,
    Everywhere,
    Expanded,
    Expression,
    Given,
    Halves,
    Held,
    Histogram,
    Iteration,
    Joined,
    Literal,
    Name,
    Permuted,
    Range,
    Reshaped,
    RowScaled,
    Spread,
    Trips,
    Zeros,
)
from stretto.simulation.kernels.arrays import Array, constant, dtype_of
from stretto.simulation.kernels.evaluator import Evaluator
from stretto.simulation.kernels.memory import Address


class Values:
    """Works expressions out."""

    def __init__(
        self, evaluator: Evaluator, variables: Mapping[str, Any], given: Callable[[Given], Any]
    ) -> None:
        self._evaluator = evaluator
        self._variables = variables
        self._given = given

    def of(self, value: Expression) -> Any:
        """An array, a number, an address, or tiles of such."""
        return WAYS[type(value)](self, value)

    def name(self, value: Name) -> Any:
        """A variable."""
        return self._variables[value.name]

    def given(self, value: Given) -> Any:
        """What the host has."""
        return self._given(value)

    def literal(self, value: Literal) -> Any:
        """A number; in a tile, one that is everywhere."""
        return constant(value.value, element_of(value.type) or value.type)

    def computed(self, value: Computed) -> Any:
        """An operation of the kernel."""
        operands = [self.of(one) for one in value.operands]
        return self._evaluator.apply(value.operation, operands)[0]

    def combined(self, value: Combined) -> Any:
        """Tiles reduced or scanned together: of several, all results."""
        operands = [np.asarray(self.of(one)) for one in value.operands]
        made = self._evaluator.apply(value.operation, operands)
        return made if len(operands) > 1 else made[0]

    def assembly(self, value: Assembly) -> Any:
        """What the evaluator says of assembly: that it has no value here, at its place."""
        operands = [self.of(one) for one in value.operands]
        return self._evaluator.apply(value.operation, operands)

    def histogram(self, value: Histogram) -> Any:
        """How often each number from 0 on is there, where the mask is set."""
        numbers = np.asarray(self.of(value.value))
        counted = (numbers >= 0) & (numbers < value.bins)
        if value.mask is not None:
            counted = counted & np.asarray(self.of(value.mask))
        return np.bincount(numbers[counted], minlength=value.bins).astype(np.int32)

    def converted(self, value: Converted | Held) -> Any:
        """The same numbers."""
        return self.of(value.value)

    def row_scaled(self, value: RowScaled) -> Any:
        """A product of floats."""
        return np.asarray(self.of(value.value)) * np.asarray(self.of(value.factor))

    def reshaped(self, value: Reshaped) -> Any:
        """In another shape."""
        return _moved(self.of(value.value), lambda a: a.reshape(value.shape))

    def permuted(self, value: Permuted) -> Any:
        """Axes in another order."""
        return _moved(self.of(value.value), lambda a: a.transpose(value.order))

    def expanded(self, value: Expanded) -> Any:
        """An axis more."""
        return _moved(self.of(value.value), lambda a: np.expand_dims(a, value.axis))

    def everywhere(self, value: Everywhere | Spread) -> Any:
        """In each place of a tile."""
        made = _moved(self.of(value.value), lambda a: np.broadcast_to(a, value.type.shape))
        element = value.type.element
        return made.astype(dtype_of(element)) if isinstance(element, Scalar) else made

    def zeros(self, value: Zeros) -> Any:
        """A tile of zeros; what addresses are added to counts elements."""
        element = value.type.element
        wanted = np.int64 if isinstance(element, Pointer) else dtype_of(element)
        return np.zeros(value.type.shape, wanted)

    def range(self, value: Range) -> Any:
        """Numbers one after the other."""
        return np.arange(value.start, value.end, dtype=np.int32)

    def joined(self, value: Joined) -> Any:
        """Two tiles as one of pairs."""
        return np.stack([np.asarray(self.of(value.first)), np.asarray(self.of(value.second))], -1)

    def halves(self, value: Halves) -> Any:
        """The two."""
        pairs = self.of(value.value)
        return pairs[..., 0], pairs[..., 1]

    def iteration(self, value: Iteration) -> int:
        """Which it is."""
        counted = int(self._variables[value.counter]) if value.counter else 0
        return counted + (value.ahead or 0) - value.behind

    def counter(self, value: Counter) -> Any:
        """The loop's own."""
        lower = np.asarray(self.of(value.lower))
        made = int(lower) + int(self.of(value.iteration)) * int(self.of(value.step))
        return np.asarray(made).astype(lower.dtype)[()]

    def trips(self, value: Trips) -> int:
        """How often a loop goes round."""
        lower, upper, step = (int(self.of(v)) for v in (value.lower, value.upper, value.step))
        return max(0, -((lower - upper) // step) - value.fewer)

    def arithmetic(self, value: Arithmetic) -> Any:
        """Of the pipeline itself."""
        left, right = self.of(value.left), self.of(value.right)
        if isinstance(right, Address):
            left, right = right, left
        if isinstance(left, Address):
            return left.plus(np.asarray(right))
        return _SIGNS[value.sign](left, right)


def _moved(value: Any, how: Callable[[Array], Array]) -> Any:
    if isinstance(value, Address):
        return value.with_offsets(how(np.asarray(value.offsets)))
    return how(np.asarray(value))


def _added(a: Any, b: Any) -> Any:
    """A sum; of truths, the second beside zeros of its shape."""
    if getattr(a, "dtype", None) == np.bool_:
        return np.logical_or(a, b)
    return a + b


_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _added,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "^": lambda a, b: a ^ b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}


WAYS: dict[type[Any], Callable[[Values, Any], Any]] = {
    Name: Values.name,
    Given: Values.given,
    Literal: Values.literal,
    Computed: Values.computed,
    Converted: Values.converted,
    Combined: Values.combined,
    Assembly: Values.assembly,
    Histogram: Values.histogram,
    Held: Values.converted,
    RowScaled: Values.row_scaled,
    Reshaped: Values.reshaped,
    Permuted: Values.permuted,
    Expanded: Values.expanded,
    Everywhere: Values.everywhere,
    Spread: Values.everywhere,
    Zeros: Values.zeros,
    Range: Values.range,
    Joined: Values.joined,
    Halves: Values.halves,
    Iteration: Values.iteration,
    Counter: Values.counter,
    Trips: Values.trips,
    Arithmetic: Values.arithmetic,
}
"""How each kind is worked out."""
