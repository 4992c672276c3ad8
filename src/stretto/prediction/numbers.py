"""A kernel's own numbers in one block: trip counts, coordinates, how many tiles it works on.

    length = 4096, block (3, 0)    ──►   n = cdiv(length, 64) = 64,  rows 384 ...

Whatever cannot be told from the arguments (a number that is loaded, say) is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from stretto.errors import StrettoError
from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Scalar
from stretto.ops.opcodes import OPCODES
from stretto.simulation.kernels.evaluator import Evaluator

Grid = tuple[int, int, int]
Number = int | float
Array = Any
"""NumPy's, of numbers of several blocks."""


def arguments(kernel: Kernel, given: Mapping[str, Number | tuple[int, ...]]) -> dict[Value, Number]:
    """Parameters by what they are given; a tensor's sizes and strides follow from its shape."""
    by_name: dict[str, list[Value]] = {}
    for parameter in kernel.parameters:
        by_name.setdefault(parameter.name, []).append(parameter.value)
    unknown = [name for name in given if name not in by_name]
    if unknown:
        known = ", ".join(by_name)
        raise StrettoError(f"`{kernel.name}` has no parameter `{unknown[0]}`; it has {known}")
    found: dict[Value, Number] = {}
    for name, stated in given.items():
        first, *rest = by_name[name]
        if isinstance(stated, tuple):
            strides = [prod(stated[n + 1 :]) for n in range(len(stated))]
            sizes = [*stated, *strides]
            if len(sizes) != len(rest):
                told = f"`{name}` has {len(rest) // 2} dimensions"
                raise StrettoError(f"{told}, and is given {len(stated)}")
            found.update(zip(rest, sizes, strict=True))
        elif isinstance(first.type, Scalar):
            found[first] = stated
        else:
            raise StrettoError(f"`{name}` is a tensor: give its shape, as {name}=4096x128")
    return found


class Numbers:
    """Numbers of one block."""

    def __init__(
        self,
        maker: Mapping[Value, Operation],
        given: Mapping[Value, Number],
        grid: Grid,
        block: Grid,
        tiles: Grid | None = None,
    ) -> None:
        self._maker = maker
        self._known: dict[Value, Number | None] = dict(given)
        self._evaluator = Evaluator(grid, block, tiles=tiles)

    def bind(self, value: Value, number: Number | None) -> None:
        """A loop's counter; what was computed with another is forgotten."""
        stale = [v for v in self._known if v in self._maker]
        for one in stale:
            del self._known[one]
        self._known[value] = number

    def of(self, value: Value) -> Number | None:
        """The number, if it can be told."""
        if value in self._known:
            return self._known[value]
        found = self._computed(value)
        self._known[value] = found
        return found

    def _computed(self, value: Value) -> Number | None:
        made = self._maker.get(value)
        if made is None or made.regions or not isinstance(value.type, Scalar):
            return None
        operands = [self.of(v) for v in made.operands]
        if any(n is None for n in operands) or _touches_memory(made):
            return None
        try:
            results = self._evaluator.apply(made, operands)
        except (StrettoError, TypeError, ValueError, KeyError):
            return None
        number = results[made.results.index(value)]
        return number.item() if hasattr(number, "item") and not np.ndim(number) else number

    def trips(self, lower: Value | None, upper: Value | None, step: Value | None) -> int | None:
        """How often a loop goes round."""
        bounds = [None if v is None else self.of(v) for v in (lower, upper, step)]
        if any(n is None for n in bounds):
            return None
        begin, end, by = (int(n) for n in bounds if n is not None)
        return max(0, -(-(end - begin) // by)) if by > 0 else None


def trips_of_turns(
    numbers_at: Callable[[Array], Numbers],
    around: Sequence[Value],
    counter: Value,
    loops: Sequence[Sequence[Value] | None],
    blocks: int,
) -> list[list[tuple[int, ...]]] | None:
    """Of each block and each turn of the loop around them, how often loops go round, all at once;
    None where it cannot be told. The bounds of a loop are given, or None for one turn.

    `numbers_at` has the numbers of several blocks, which are then arrays.
    """
    every = np.arange(blocks)
    numbers = numbers_at(every)
    lower, upper, step = (numbers.of(value) for value in around)
    if lower is None or upper is None or step is None:
        return None
    turns = np.maximum(0, -(-(np.asarray(upper) - lower) // step)) + 0 * every
    first = np.cumsum(turns) - turns
    block = np.repeat(every, turns)
    turn = np.arange(len(block)) - first[block]
    numbers = numbers_at(block)
    counted: Any = lower + turn * step
    numbers.bind(counter, counted)
    found: list[Array] = []
    for loop in loops:
        bounds = [1] * 3 if loop is None else [numbers.of(value) for value in loop]
        if any(bound is None for bound in bounds):
            return None
        begin, end, by = (np.asarray(bound) for bound in bounds)
        trips = np.ones_like(block) if loop is None else np.maximum(0, -(-(end - begin) // by))
        found.append(trips + 0 * block)
    rows = [tuple(map(int, row)) for row in zip(*found, strict=True)]
    return [rows[at : at + many] for at, many in zip(first, turns, strict=True)]


def _touches_memory(made: Operation) -> bool:
    row = OPCODES.get(kind_of(made))
    return row is not None and row.memory
