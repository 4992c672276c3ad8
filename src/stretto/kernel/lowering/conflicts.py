"""Loops that read what they write, through pointers: their steps must not overlap.

store p[i + 1];  (next step) load p[i + 1]      one array, two operations: kept in order

Arrays that come in by different parameters are different arrays. Of an address that is computed
from a number, or read from memory, nothing is known: it may lead anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from stretto.kernel.tree import Kernel, Operation, Value

_LOADS = ("tile.load", "tile.view_load", "tile.view_gather")
_STORES = ("tile.store", "tile.view_store", "tile.view_scatter", "tile.view_reduce")
_BOTH = ("tile.atomic_rmw", "tile.atomic_cas")
_ADDED = ("add", "fadd", "max", "min", "umax", "umin", "and", "or", "xor")
"""Kinds of read-modify-write whose order does not matter among themselves."""


def conflict(
    loop: Operation, makers: Mapping[Value, Operation]
) -> tuple[Operation, Operation] | None:
    """Two operations of a loop that may touch the same element, of which one writes it."""
    touching = [op for op in loop.walk() if op.name in (*_LOADS, *_STORES, *_BOTH)]
    carried = _carried(loop)
    roots = {op: _root(op.operands[0], makers, carried) for op in touching}
    for i, first in enumerate(touching):
        for second in touching[i + 1 :]:
            if first.name in _LOADS and second.name in _LOADS:
                continue
            if _commute(first, second):
                continue
            one, other = roots[first], roots[second]
            if one is None or other is None or one is other:
                return first, second
    return None


def written(kernel: Kernel) -> tuple[str, ...]:
    """The parameters that a kernel writes through; all of them, where one cannot be told."""
    makers = {value: op for op in kernel.walk() for value in op.results}
    carried: dict[Value, Value] = {}
    for op in kernel.walk():
        if op.name == "scf.for":
            carried |= _carried(op)
    names = {parameter.value: parameter.name for parameter in kernel.parameters}
    roots = [
        _root(op.operands[0], makers, carried)
        for op in kernel.walk()
        if op.name in (*_STORES, *_BOTH)
    ]
    found = {names.get(root, "") if root is not None else "" for root in roots}
    everything = dict.fromkeys(names.values())
    return tuple(name for name in everything if "" in found or name in found)


def _commute(first: Operation, second: Operation) -> bool:
    both = first.name == second.name == "tile.atomic_rmw"
    return both and first.text("kind") == second.text("kind") and first.text("kind") in _ADDED


def _carried(loop: Operation) -> dict[Value, Value]:
    """What each carried argument of a loop, and of those in it, begins with."""
    found: dict[Value, Value] = {}
    for op in loop.walk():
        if op.name == "scf.for":
            found |= dict(zip(op.regions[0].arguments[1:], op.operands[3:], strict=True))
    return found


def _root(
    value: Value, makers: Mapping[Value, Operation], carried: Mapping[Value, Value]
) -> Value | None:
    """The parameter that an address or a view goes back to; None: it cannot be told."""
    seen: set[Value] = set()
    while value not in seen:
        seen.add(value)
        if value in carried:
            value = carried[value]
            continue
        made = makers.get(value)
        if made is None:
            return value
        if made.name == "scf.for":
            value = made.operands[3 + made.results.index(value)]
        elif made.name.startswith("tile.") and made.operands and made.name not in _OPAQUE:
            value = made.operands[0]
        else:
            return None
    return None


_OPAQUE = ("tile.int_to_pointer", "tile.load", "tile.join", "tile.cat", "tile.split", "tile.gather")
