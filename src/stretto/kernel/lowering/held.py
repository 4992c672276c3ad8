"""Left factors that no step of a loop changes, held in registers while it runs.

    q in shared memory                  q in shared memory
    for ...: s = q @ k                  held = read q
                                        for ...: s = held @ k

A product whose left factor is in shared memory reads it anew in every step, beside the right one,
and lanes that meet meanwhile wait for both. From registers it reads the right factor alone. That
takes registers for as long as the loop runs: a machine says how many a loop's products may have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stretto.kernel.tree import Attribute, Operation, Value
from stretto.kernel.types import Scalar, Tile, Type

GROUP_ROWS, GROUP_THREADS = 64, 128
"""Rows that a group of four warps multiplies at a time, and its threads."""
GROUPS = 2
"""Groups at most of an agent that has all rows."""
REGISTER_BITS = 32


def held_factors(
    products: Sequence[Operation], outside: Callable[[Value], bool], most: int
) -> list[Operation]:
    """Of a loop's products, one for each left factor that is to be held.

    `outside`: whether a value is in shared memory before the loop begins. Held are all of an
    agent, if they take at most so many registers of a thread with sums and other left factors.
    """
    found: list[Operation] = []
    agents = dict.fromkeys(op.attributes.get("agent") for op in products)
    for agent in agents:
        mine = [op for op in products if op.attributes.get("agent") == agent]
        lefts = {op.operands[0]: op for op in mine if outside(op.operands[0])}
        if lefts and _registers(mine, agent) <= most:
            found += lefts.values()
    return found


def groups_of(rows: int, *, alone: bool) -> int:
    """Groups of warps of an agent that multiplies so many rows: two where it is alone and may."""
    return max(1, min(GROUPS, rows // GROUP_ROWS)) if alone else 1


def _registers(products: Sequence[Operation], agent: Attribute | None) -> float:
    """Of a thread: sums of products, and their left factors."""
    rows = min(_tile(op.result.type).shape[0] for op in products)
    groups = groups_of(rows, alone=agent is None)
    values = dict.fromkeys(v for op in products for v in (op.result, op.operands[0]))
    bits = 0
    for value in values:
        tile = _tile(value.type)
        assert isinstance(tile.element, Scalar)
        bits += tile.elements * tile.element.bits
    return bits / (REGISTER_BITS * GROUP_THREADS * groups)


def _tile(type: Type) -> Tile:
    assert isinstance(type, Tile)
    return type
