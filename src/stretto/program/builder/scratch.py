"""Registers that a conversion takes: a vector as the threads of a product's tile want it.

    delta              rows_64                  as it was loaded: each thread has one element
    delta[None, :]     SliceLayout(0, mma_64)   8 lanes of every warp have the same columns: 64
                                                columns are 16 registers of a thread
    highest[:, None]   SliceLayout(1, mma_64)   4 lanes have the same rows: 64 rows are 2

The reader converts, so the registers are taken while it runs: schedules count them as its scratch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Scalar, Tile
from stretto.kernel.wiring import LoopWiring
from stretto.ops.opcodes import opcode
from stretto.program.builder.layouts import Layouts
from stretto.program.layouts import THREADS, Product, Slice

LANES = 4
"""Lanes of a warp whose columns of a product's tile differ; the others hold the same columns."""
WARP_ROWS = 16
"""Rows of a product's tile that a warp holds at a time: each thread two of them."""


def with_scratch(wiring: LoopWiring, kernel: Kernel, warps: int) -> LoopWiring:
    """A loop whose operations say what they take for vectors that they convert."""
    layouts = Layouts(kernel, warps)
    maker = {result: op for op in kernel.walk() for result in op.results}
    ops = list(wiring.loop.ops)
    for n, op in enumerate(ops):
        operation = wiring.operations[op.name]
        if not opcode(op.kind).view:
            taken = sum(_converted(v, layouts, maker, warps) for v in operation.operands)
            if taken:
                ops[n] = replace(op, facts=replace(op.facts, scratch=taken))
    return replace(wiring, loop=replace(wiring.loop, ops=tuple(ops)))


def _converted(value: Value, layouts: Layouts, maker: Mapping[Value, Operation], warps: int) -> int:
    """Bytes of registers of all threads for the vector that an operand is spread from."""
    made = maker.get(value)
    while made is not None and opcode(kind_of(made)).view and made.operands:
        source = made.operands[0]
        if kind_of(made) == "expand_dims" and isinstance(source.type, Tile):
            axis = made.integer("axis")
            tile, wanted = layouts.of(made.result), Slice(axis, layouts.of(made.result))
            if not isinstance(tile, Product) or layouts.of(source) == wanted:
                return 0
            return _held(source.type, axis, warps)
        made = maker.get(source)
    return 0


def _held(vector: Tile, axis: int, warps: int) -> int:
    """Bytes of a vector along the columns (axis 0) or the rows of a product's tile."""
    assert isinstance(vector.element, Scalar)
    threads = THREADS * warps
    along = 2 * -(-vector.elements // (WARP_ROWS * warps))
    each = along if axis else vector.elements // LANES
    return each * threads * vector.element.bits // 8
