"""Which parameter of the user's function each parameter of the bytecode belongs to.

    def matmul(a, b, scale)      %0 %1 %2 %3 %4 │ %5 %6 %7 %8 %9 │ %10
                                 address, two sizes, two strides │ ...

cuTile hands an array over as its address, then its sizes, then its strides. Bytecode says that only
by what it makes of them: `make_tensor_view` of the one with the others.
"""

from __future__ import annotations

from stretto.frontends.tileir import Function, Operation, Value
from stretto.frontends.tileir.types import TensorView


def user_parameters(function: Function) -> list[int]:
    """The number of the user's parameter, for each parameter of the bytecode."""
    parameters = function.body.arguments
    at = {value: index for index, value in enumerate(parameters)}
    for operation in function.body.operations:
        if operation.name == "assume" and operation["value"] in at:
            at[operation.results[0]] = at[operation["value"]]
    ranks: dict[int, int] = {}
    for operation in function.body.walk():
        if operation.name == "make_tensor_view" and operation["base"] in at:
            base = at[operation["base"]]
            rank = _rank(operation, base, at)
            if rank is not None and base + 2 * rank < len(parameters):
                ranks[base] = rank
    found: list[int] = []
    number = 0
    while len(found) < len(parameters):
        found += [number] * (1 + 2 * ranks.get(len(found), 0))
        number += 1
    return found[: len(parameters)]


def _rank(operation: Operation, base: int, at: dict[Value, int]) -> int | None:
    """How many dimensions an array has, if its sizes and strides stand where cuTile puts them."""
    type = operation.results[0].type if operation.results else None
    if not isinstance(type, TensorView):
        return None
    rank = len(type.shape)
    for name, extents, first in (
        ("dynamic_shape", type.shape, base + 1),
        ("dynamic_strides", type.strides, base + 1 + rank),
    ):
        wanted = [first + k for k, extent in enumerate(extents) if extent is None]
        if [at.get(value) for value in operation.operands[name]] != wanted:
            return None
    return rank
