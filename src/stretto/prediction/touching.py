"""What threads load and store themselves: how much, by how many blocks, for the how-manieth time.

x      16 KB of its own a block, twice      memory, then a cache if all blocks' rows fit there
gamma  32 KB, the same for every block      a cache
y      16 KB of its own, stored             memory
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.lowering.written import COPY, LOAD, STORE
from stretto.kernel.tree import carried_from, kind_of, root_of
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile
from stretto.prediction.numbers import Number, Numbers

ROOTED = frozenset(("offset", "splat", "broadcast", "expand_dims", "view"))
"""What makes an address of another, its first operand."""


@dataclass(frozen=True)
class Access:
    """A load or a store by threads."""

    operation: Operation
    bytes: float
    """Of one time."""
    elements: float
    stores: bool
    sharing: float
    """Blocks of a wave that touch the same at once."""
    again: bool
    """Whether its block has loaded the same before."""
    common: bool
    """Whether it is the same for every block."""


def accesses(
    kernel: Kernel, wave: range, numbers_of: Callable[[int], Numbers]
) -> dict[Operation, Access]:
    """All of a kernel's, in the order of its text."""
    makers = {result: op for op in kernel.walk() for result in op.results}
    carried = carried_from(kernel.walk())
    loops = [op for op in kernel.walk() if op.name == "scf.for"]
    varying = _varying(kernel)
    found: dict[Operation, Access] = {}
    loaded: set[Value] = set()
    for op in kernel.walk():
        kind = kind_of(op)
        if kind not in (LOAD, COPY, STORE):
            continue
        type = (op.operands[1] if kind == STORE else op.results[0]).type
        tiled = isinstance(type, Tile | Buffer)
        count = float(prod(type.shape)) if tiled else 1.0
        size = count * type.element.bits / 8 if tiled else 4.0
        root = root_of(op.operands[0], makers, carried, _through)
        told = list(dict.fromkeys(_numbers_in(op.operands[0], makers, carried)))
        stores = kind == STORE
        sharing = 1.0 if stores else _sharing(told, varying, loops, wave, numbers_of)
        again = kind != STORE and root in loaded
        common = not stores and root is not None and not any(v in varying for v in told)
        found[op] = Access(op, size, count, stores, sharing, again, common)
        if kind != STORE and root is not None:
            loaded.add(root)
    return found


def _through(made: Operation, _: Value) -> Value | None:
    return made.operands[0] if kind_of(made) in ROOTED else None


def _numbers_in(
    address: Value, makers: dict[Value, Operation], carried: dict[Value, Value]
) -> Iterator[Value]:
    """Numbers that an address is made of, as far back as there are tiles and pointers."""
    seen: set[Value] = set()
    waiting = [address]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.type, Scalar):
            yield value
        elif value in carried:
            waiting.append(carried[value])
        elif value in makers and isinstance(value.type, Tile | Pointer):
            waiting += makers[value].operands


def _sharing(
    told: Sequence[Value],
    varying: set[Value],
    loops: Sequence[Operation],
    wave: range,
    numbers_of: Callable[[int], Numbers],
) -> float:
    """Blocks of a wave for each different address."""
    different: set[tuple[Number | None, ...]] = set()
    for block in wave:
        numbers = numbers_of(block)
        for loop in loops:
            numbers.bind(loop.regions[0].arguments[0], numbers.of(loop.operands[0]))
        values = [(v, numbers.of(v)) for v in told]
        # What depends on the block and cannot be told is taken to be another in each.
        different.add(tuple(block if n is None and v in varying else n for v, n in values))
    return len(wave) / max(1, len(different))


def _varying(kernel: Kernel) -> set[Value]:
    """All that depends on which block it is."""
    found: set[Value] = set()
    for op in kernel.walk():
        if op.name == "scf.for" and op.operands[0] in found:
            found.add(op.regions[0].arguments[0])
        if kind_of(op) == "block_index" or any(v in found for v in op.operands):
            found.update(op.results)
    return found
