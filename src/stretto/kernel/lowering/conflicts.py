"""Loops that read what they write, through pointers: who may touch the same element.

store p[i + 1];  (next step) load p[i + 1]      one array, two operations: kept in order, in each
                                                step and from step to step

store p[i];  load p[i + 4096], i < 4096         bytes apart: steps may overlap

x = load p[i..i + 63];  store p[i..i + 63]      one place, and i grows by 64: steps may overlap,
                                                each loads before it stores

Arrays that come in by different parameters are different arrays. Of an address that is computed
from a number, or read from memory, nothing is known: it may lead anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from stretto.kernel.addresses import Addresses
from stretto.kernel.tree import Kernel, Operation, Value, carried_from, root_of
from stretto.kernel.types import shape_of
from stretto.ops.atomics import COMMUTING

_LOADS = ("tile.load", "tile.view_load", "tile.view_gather")
_STORES = ("tile.store", "tile.view_store", "tile.view_scatter", "tile.view_reduce")
_BOTH = ("tile.atomic_rmw", "tile.atomic_cas")
ACQUIRING = ("acquire", "acq_rel")
"""Atomic operations after which a block sees what others wrote."""


Range = tuple[int, int]
"""First and last byte of an array."""


def conflicts(
    loop: Operation,
    makers: Mapping[Value, Operation],
    touched: Callable[[Operation], Range | None],
    addresses: Addresses | None = None,
) -> Iterator[tuple[Operation, Operation]]:
    """Pairs of operations of a loop that may touch the same element in different steps, of which
    one writes it.

    `touched`: what of its array an operation touches in all steps together, where that is known.
    """
    touching = [op for op in loop.walk() if op.name in (*_LOADS, *_STORES, *_BOTH)]
    carried = carried_from(loop.walk())
    roots = {op: root_of(op.operands[0], makers, carried, _through) for op in touching}
    for i, first in enumerate(touching):
        for second in touching[i + 1 :]:
            if first.name in _LOADS and second.name in _LOADS:
                continue
            if _commute(first, second):
                continue
            one, other = roots[first], roots[second]
            if one is None or other is None:
                yield first, second
                continue
            if one is not other or _apart(touched(first), touched(second)):
                continue
            same = first.operands[0] is second.operands[0]
            if not (same and _moves_on(first.operands[0], loop, addresses)):
                yield first, second


def alias_sets(pairs: Iterable[tuple[Operation, Operation]]) -> dict[Operation, int]:
    """Operations that pairs lead from one to the other, numbered alike."""
    found: dict[Operation, int] = {}
    for number, (first, second) in enumerate(pairs):
        old = {found.get(first, number), found.get(second, number)}
        found |= {op: number for op, set in found.items() if set in old}
        found[first] = found[second] = number
    return found


def _moves_on(value: Value, loop: Operation, addresses: Addresses | None) -> bool:
    """Whether the tile at an address is another one, all of it, in each step of a loop."""
    address = None if addresses is None else addresses.address(value)
    if addresses is None or address is None or address.at.wrapped or loop.name != "scf.for":
        return False
    counter = loop.regions[0].arguments[0]
    inside = {v for op in loop.walk() for v in op.results} | set(loop.regions[0].arguments)
    step = addresses.number(loop.operands[2]).constant
    moved = 0
    for monomial, factor in address.at.base:
        stands_for = [addresses.values[name] for name in monomial]
        if len(monomial) == 1 and counter in stands_for[0]:
            moved = factor * (step or 0)
        elif any(v in inside for values in stands_for for v in values):
            return False
    widths = [step.constant for step in address.at.steps]
    shape = shape_of(value.type)
    if any(width is None for width in widths):
        return False
    reach = sum(abs(w or 0) * (n - 1) for w, n in zip(widths, shape, strict=True))
    return abs(moved) > reach


def written(kernel: Kernel) -> tuple[str, ...]:
    """The parameters that a kernel writes through; all of them, where one cannot be told."""
    makers = {value: op for op in kernel.walk() for value in op.results}
    carried = carried_from(kernel.walk())
    names = {parameter.value: parameter.name for parameter in kernel.parameters}
    roots = [
        root_of(op.operands[0], makers, carried, _through)
        for op in kernel.walk()
        if op.name in (*_STORES, *_BOTH)
    ]
    found = {names.get(root, "") if root is not None else "" for root in roots}
    everything = dict.fromkeys(names.values())
    return tuple(name for name in everything if "" in found or name in found)


def changed_beside(kernel: Kernel, loop: Operation, load: Operation) -> bool:
    """Whether a loop may change what a load in it reads, or waits for others who do."""
    makers = {value: op for op in kernel.walk() for value in op.results}
    carried = carried_from(kernel.walk())
    root = root_of(load.operands[0], makers, carried, _through)
    for op in loop.walk():
        if op.name in _BOTH and op.text("semantics", "acq_rel") in ACQUIRING:
            return True
        if op.name in (*_STORES, *_BOTH):
            other = root_of(op.operands[0], makers, carried, _through)
            if root is None or other is None or root is other:
                return True
    return False


def _apart(first: Range | None, second: Range | None) -> bool:
    if first is None or second is None:
        return False
    return first[1] < second[0] or second[1] < first[0]


def _commute(first: Operation, second: Operation) -> bool:
    both = first.name == second.name == "tile.atomic_rmw"
    return both and first.text("kind") == second.text("kind") and first.text("kind") in COMMUTING


def _through(made: Operation, value: Value) -> Value | None:
    if made.name == "scf.for":
        return made.operands[3 + made.results.index(value)]
    tile = made.name.startswith("tile.") and made.name not in _OPAQUE
    return made.operands[0] if tile and made.operands else None


_OPAQUE = ("tile.int_to_pointer", "tile.load", "tile.join", "tile.cat", "tile.split", "tile.gather")
