"""What operations compute with real values, by the names that the rows of opcodes give.

    vocabulary/opcodes.py   "arith.mulf" ... "multiply"   ──►   FUNCTIONS["multiply"](call)

Loaded with NumPy by `real.py`, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.loop import Op, TileType

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Call:
    """One operation as its function sees it."""

    op: Op
    operands: tuple[Array, ...]
    type: TileType | None
    """Of the result."""
    accumulator: Array | None
    """What the storage that it updates in place held."""
    load: Callable[[], Array]
    """What it brings from outside."""


Function = Callable[[Call], Array]


def _product(call: Call) -> Array:
    product = np.matmul(call.operands[0], call.operands[1])
    return product if call.accumulator is None else product + call.accumulator


def _reduce(combine: Callable[..., Any]) -> Function:
    """Over the last axis."""
    return lambda call: np.asarray(combine(call.operands[0], axis=-1), dtype=np.float32)


def _shaped(call: Call) -> Array:
    shape = call.type.shape if call.type is not None else call.operands[0].shape
    return call.operands[0].reshape(shape)


def _broadcast(call: Call) -> Array:
    array, shape = call.operands[0], call.type.shape if call.type is not None else ()
    if array.ndim < len(shape) and array.shape == shape[: array.ndim]:
        array = array.reshape(array.shape + (1,) * (len(shape) - array.ndim))
    return np.broadcast_to(array, shape)


def _folded(combine: Callable[[Any, Any], Any]) -> Function:
    """All operands, from the left; constants that the loop leaves out do not matter."""

    def function(call: Call) -> Array:
        result = call.operands[0]
        for operand in call.operands[1:]:
            result = combine(result, operand)
        return result

    return function


FUNCTIONS: dict[str, Function] = {
    "add": _folded(np.add),
    "broadcast": _broadcast,
    "exp2": lambda call: np.exp2(call.operands[0]),
    "fma": lambda call: call.operands[0] * call.operands[1] + call.operands[2],
    "greatest": _folded(np.maximum),
    "greatest_of_row": _reduce(np.max),
    "least": _folded(np.minimum),
    "load": lambda call: call.load(),
    "multiply": _folded(np.multiply),
    "product": _product,
    "reshape": _shaped,
    "rsqrt": lambda call: np.float32(1) / np.sqrt(call.operands[0]),
    "same": lambda call: call.operands[0],
    "subtract": _folded(np.subtract),
    "sum_of_row": _reduce(np.sum),
    "transpose": lambda call: np.swapaxes(call.operands[0], -1, -2),
}
"""What the rows of opcodes name."""
