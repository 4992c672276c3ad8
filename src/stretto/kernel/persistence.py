"""Kernels of independent blocks, made persistent: as many blocks as there are SMs, each of which
goes over several tiles.

    launch (8, 16)                     launch (132,)
    block x, y:                        for k in range(rounds of this block):
        load q, loop, store                x, y = place of tile number(k)
                                           load q, loop, store

While a block stores one tile, its copies for the next are under way already. A tile is what a block
was. Where all have as much to do, they come as they were numbered, one a block and round. Where
trip counts change with an index (`trip_counts.py`), tiles come longest first, and blocks take turns
there and back: who has the longest in one round has the shortest in the next. Every other section
is gone through from its shortest on. So what blocks have to do in all differs by a tile at most.

    tiles by trip count      8 7 6 | 5 4 3 | 2 1                block 0: 8 3 2
    of three blocks          0 1 2   2 1 0   0 1                block 1: 7 4 1      block 2: 6 5
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stretto.kernel.block_order import (
    NUMBER,
    Order,
    Places,
    independent,
    order_of,
    others,
    placed,
    section_of,
)
from stretto.kernel.building import Builder
from stretto.kernel.neighbours import counted_together, without_mark
from stretto.kernel.tree import Kernel, Lowered, Operation, Value
from stretto.kernel.trip_counts import outermost_loops
from stretto.kernel.types import Pointer, Scalar, View

_ROUNDS = 4
"""Of all blocks: how many tiles a section has at least; with fewer, the turns there and back and
those of sections fall together."""
_STEADY = ("arith.", "tile.view", "tile.offset", "tile.hint")
"""What is worked out once where it does not follow from the block: numbers and descriptors."""


def with_work_tiles(kernel: Kernel, blocks: int, cache: int | None = None) -> Kernel | Lowered:
    """The kernel as a loop over tiles, run by at most so many blocks; the kernel itself where its
    blocks may know of each other, or have no loop."""
    axes = sorted({op.integer("axis") for op in kernel.walk() if op.name == "tile.block_index"})
    counted = any(op.name == "tile.block_count" for op in kernel.walk())
    if not axes or counted or not independent(kernel) or not any(outermost_loops(kernel.body)):
        return kernel
    out = Builder(kernel.location)
    inside = _steady(out, kernel)
    out.location = kernel.location
    together = counted_together(kernel)
    counts: dict[int, Value] = {}
    for axis in axes:
        if axis in together:
            asked, many = together[axis]
            both = (asked.result, out.constant(many, NUMBER))
            counts[axis] = out.op("arith.ceildivsi", both, NUMBER, "tiles")
        else:
            said = {"axis": axis, "blocks": blocks}
            counts[axis] = out.op("tile.tile_count", (), NUMBER, "tiles", **said)
    tiles = counts[axes[0]]
    for axis in axes[1:]:
        tiles = out.op("arith.muli", (tiles, counts[axis]), NUMBER, "tiles")
    block = out.op("tile.block_index", (), NUMBER, "block", axis=0)
    running = out.op("tile.block_count", (), NUMBER, "blocks", axis=0)
    order = order_of(kernel)
    section = None if order is None else _section(out, kernel, order, counts, running, cache)
    zero, one = out.constant(0, NUMBER), out.constant(1, NUMBER)
    rounds = _rounds(out, tiles, block, running, back=order is not None)
    index = Value(NUMBER, "round")
    with out.region((index,)) as body:
        number = _number(out, index, block, running, back=order is not None)
        if order is None:
            places = _in_order(out, number, counts)
        else:
            places = Places(out, order, counts, section, turning=True).of(number)
        placed(out, inside[:-1], places, {})
        out.location = kernel.location
        out.add("scf.yield")
    out.add("scf.for", (zero, rounds, one), (), {}, (body.region,))
    out.append(inside[-1])
    told = f"at most {blocks} blocks go over its tiles"
    if order is not None:
        told += f", longest first: trip counts change with block index {order.axis}"
    return Lowered(replace(kernel, body=out.finish()), ((kernel.location, told),))


def _steady(out: Builder, kernel: Kernel) -> list[Operation]:
    """Write what is the same in all blocks; the operations that are left."""
    known = {parameter.value for parameter in kernel.parameters}
    left: list[Operation] = []
    for operation in kernel.body.operations:
        if operation.name == "tile.tile_count":
            out.append(without_mark(operation))
            known.update(operation.results)
            continue
        moves = operation.name.startswith(_STEADY) and not operation.name.endswith(
            ("_load", "_store", "_gather", "_scatter", "_reduce")
        )
        numbers = all(isinstance(v.type, Scalar | Pointer | View) for v in operation.results)
        if moves and numbers and known.issuperset(operation.operands):
            out.append(operation)
            known.update(operation.results)
        else:
            left.append(operation)
    return left


def _section(
    out: Builder,
    kernel: Kernel,
    order: Order,
    counts: Mapping[int, Value],
    blocks: Value,
    cache: int | None,
) -> Value | None:
    """How many neighbours along the other axes make up a section, in tiles for a few rounds."""
    if not order.others:
        return None
    wanted = out.op("arith.muli", (blocks, out.constant(_ROUNDS, NUMBER)), NUMBER)
    least = out.op("arith.ceildivsi", (wanted, counts[order.axis]), NUMBER)
    least = out.op("arith.minsi", (least, others(out, order, counts)), NUMBER)
    return section_of(out, kernel, order, counts, cache, least)


def _rounds(out: Builder, tiles: Value, block: Value, blocks: Value, *, back: bool) -> Value:
    """How many tiles a block goes over: the last round may not have one for each."""
    full = out.op("arith.divsi", (tiles, blocks), NUMBER)
    left = out.op("arith.remsi", (tiles, blocks), NUMBER)
    turn = _turn(out, full, block, blocks) if back else block
    # 1 where turn < left: blocks + left - 1 - turn is at least `blocks` then, and less than twice.
    more = out.op("arith.addi", (blocks, left), NUMBER)
    more = out.op("arith.subi", (more, out.constant(1, NUMBER)), NUMBER)
    more = out.op("arith.subi", (more, turn), NUMBER)
    more = out.op("arith.divsi", (more, blocks), NUMBER)
    return out.op("arith.addi", (full, more), NUMBER, "rounds")


def _number(out: Builder, index: Value, block: Value, blocks: Value, *, back: bool) -> Value:
    """Which tile a block has in a round."""
    first = out.op("arith.muli", (index, blocks), NUMBER)
    turn = _turn(out, index, block, blocks) if back else block
    return out.op("arith.addi", (first, turn), NUMBER, "tile")


def _turn(out: Builder, index: Value, block: Value, blocks: Value) -> Value:
    """A block's place in a round: every other one goes from the last block to the first."""
    one, two = out.constant(1, NUMBER), out.constant(2, NUMBER)
    odd = out.op("arith.remsi", (index, two), NUMBER)
    twice = out.op("arith.muli", (block, two), NUMBER)
    last = out.op("arith.subi", (blocks, one), NUMBER)
    way = out.op("arith.subi", (last, twice), NUMBER)
    more = out.op("arith.muli", (odd, way), NUMBER)
    return out.op("arith.addi", (block, more), NUMBER)


def _in_order(out: Builder, number: Value, counts: Mapping[int, Value]) -> dict[int, Value]:
    """The index of a tile along each axis, as hardware numbers blocks."""
    found: dict[int, Value] = {}
    axes = sorted(counts)
    for axis in axes[:-1]:
        found[axis] = out.op("arith.remsi", (number, counts[axis]), NUMBER)
        number = out.op("arith.divsi", (number, counts[axis]), NUMBER)
    found[axes[-1]] = number
    return found
