"""The loop of a persistent block: over the tiles that it works on, one after the other.

    for tile in range(program_id(0), tiles, num_programs(0)):        tile 2 of 7 for block 2 of 4,
        for k in range(steps): ...                                   then tile 6, and no more

Its index says which tile it is at, and nothing else. The loops inside are the ones to be pipelined;
a loop like this without one inside is itself the innermost, and no loop over work tiles.
"""

from __future__ import annotations

from collections.abc import Mapping

from stretto.kernel.axes import Axis
from stretto.kernel.tree import Operation, Value
from stretto.ops.operations import SAME_NUMBER

LOOPS = ("scf.for", "scf.while")


def has_loop_inside(loop: Operation) -> bool:
    """Whether a loop is not an innermost one."""
    return any(inner.name in LOOPS for region in loop.regions for inner in region.walk())


def goes_over_work_tiles(
    loop: Operation, makers: Mapping[Value, Operation], axes: Mapping[Value, Axis]
) -> bool:
    """Whether a loop begins at the block's number and goes on by as many as there are blocks.

    How many there are may be a constant, as where they are as many as the processor has units.
    """
    lower, _, step, *_ = loop.operands
    first = _made(lower, makers)
    if first is None or first.name != "tile.block_index" or not has_loop_inside(loop):
        return False
    by = _made(step, makers)
    if by is not None and by.name == "tile.block_count":
        return by.attributes["axis"] == first.attributes["axis"]
    known = axes.get(step)
    return known is not None and known.constant is not None and known.constant > 1


def _made(value: Value, makers: Mapping[Value, Operation]) -> Operation | None:
    made = makers.get(value)
    while made is not None and made.name in SAME_NUMBER:
        made = makers.get(made.operands[0])
    return made
