"""Real arrays: what the operations of the examples compute, with NumPy.

    Real(loop, live_ins={"k": lambda i: i}, loads={"load_a": lambda i: a[i], ...})

    ops/opcodes.py   "reduce.max" ... "greatest_of_row"   ──►   FUNCTIONS["greatest_of_row"](call)

Arrays are kept in float32 and rounded to the element type of their value. NumPy is loaded with this
module, which nothing else imports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.loop import Loop, Op, TileType
from stretto.ops.opcodes import opcode
from stretto.ops.operations import OPERATIONS
from stretto.simulation.domains import Datum
from stretto.simulation.values import value_of

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


def _product_sum(call: Call) -> Array:
    """In registers: what it adds to is an operand like the others."""
    a, b, *total = call.operands
    product = np.matmul(a, b)
    return product + total[0] if total else product


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


def _elementwise(call: Call) -> Array:
    """As the operation's row says; constants that the loop leaves out do not matter."""
    wanted = OPERATIONS[call.op.kind].operands[0]
    given = call.operands
    return np.asarray(value_of(call.op.kind)(*given)) if len(given) == wanted else given[0]


FUNCTIONS: dict[str, Function] = {
    "broadcast": _broadcast,
    "elementwise": _elementwise,
    "greatest_of_row": _reduce(np.max),
    "load": lambda call: call.load(),
    "product": _product,
    "product_sum": _product_sum,
    "reshape": _shaped,
    "same": lambda call: call.operands[0],
    "sum_of_row": _reduce(np.sum),
    "transpose": lambda call: np.swapaxes(call.operands[0], -1, -2),
}
"""What the rows of opcodes name."""

Given = Array | float | int | Callable[[int], Array | float | int]
"""A value, or a function from the iteration to one."""


def rounded(array: Array, element: str) -> Array:
    """The nearest numbers of an element type, as float32."""
    if element == "f16":
        return array.astype(np.float16).astype(np.float32)
    if element == "bf16":
        bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
        tie = (bits >> np.uint32(16)) & np.uint32(1)
        upper = (bits + np.uint32(0x7FFF) + tie) & np.uint32(0xFFFF0000)
        return upper.view(np.float32)
    return array


class Real:
    """A domain of arrays."""

    def __init__(
        self,
        loop: Loop,
        *,
        live_ins: Mapping[str, Given] | None = None,
        initial: Mapping[str, Given] | None = None,
        contents: Mapping[str, Given] | None = None,
        loads: Mapping[str, Callable[[int], Array]] | None = None,
        functions: Mapping[str, Function] | None = None,
    ) -> None:
        self._types = {value.name: value.type for value in loop.values}
        self._reads = loop.reads
        self._live_ins = dict(live_ins or {})
        self._initial = dict(initial or {})
        self._contents = dict(contents or {})
        self._loads = dict(loads or {})
        self._functions = dict(functions or {})

    @staticmethod
    def _given(what: str, name: str, known: Mapping[str, Given], iteration: int) -> Array:
        if name not in known:
            raise StrettoError(f"no real value is given for {what} `{name}`")
        given = known[name]
        found = given(iteration) if callable(given) else given
        return np.asarray(found, dtype=np.float32)

    def live_in(self, value: str, iteration: int) -> Datum:
        """As it was given."""
        return self._given("live-in", value, self._live_ins, iteration)

    def initial(self, value: str, iteration: int) -> Datum:
        """As it was given."""
        return self._given("carried value", value, self._initial, iteration)

    def content(self, storage: str, iteration: int) -> Datum:
        """As it was given; a storage that is written before it is read needs nothing."""
        if storage not in self._contents:
            return np.float32(np.nan)
        return self._given("storage", storage, self._contents, iteration)

    def apply(
        self, op: Op, iteration: int, operands: Sequence[Datum], reads: Sequence[Datum]
    ) -> tuple[Datum, ...]:
        """The function of its opcode, rounded to the type of its result."""
        function = self._function(op)
        held = [
            content
            for access, content in zip(self._reads[op.name], reads, strict=bool(reads))
            if access.storage in op.writes
        ]
        kind = self._types[op.results[0]] if op.results else None
        call = Call(
            op,
            tuple(operands),
            kind,
            held[0] if held else None,
            lambda: self._loads[op.name](iteration),
        )
        made = np.asarray(function(call), dtype=np.float32)
        return (made if kind is None else rounded(made, kind.element),)

    def _function(self, op: Op) -> Function:
        """As it was given for the opcode, or as the opcode's row says."""
        if op.kind in self._functions:
            return self._functions[op.kind]
        named = opcode(op.kind).computes
        if not named:
            raise StrettoError(f"`{op.name}`: nothing is known of what `{op.kind}` computes")
        return FUNCTIONS[named]

    def alias(self, op: Op, iteration: int) -> Datum:
        """A name has no value of its own."""
        del op, iteration
        return np.float32(0)

    def stored(self, op: Op, storage: str, made: tuple[Datum, ...], before: Datum | None) -> Datum:
        """The operations of the examples fill their storage."""
        del op, storage, before
        return made[0]

    def same(self, a: Datum, b: Datum) -> bool:
        """The same numbers: both executions do the same arithmetic."""
        return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))
