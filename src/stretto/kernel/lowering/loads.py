"""Whether a load through pointers can be an asynchronous copy, and what is known of addresses.

addresses in runs of 8 halves, each run at a multiple of 16 bytes, masked run by run   copied
every address for itself                                                                by threads
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from stretto.kernel.axes import Axis, nothing_known
from stretto.kernel.lowering.uses import Uses
from stretto.kernel.tree import Attribute, Operation, Value
from stretto.kernel.types import Pointer, Tile, View

LEAST_COPY = 4
"""Bytes: what an asynchronous copy moves at least at once, and a multiple of which it begins at."""
DESCRIPTOR = 16
"""Bytes: what a descriptor's address and strides are multiples of, as whoever makes it promises."""
Facts = tuple[tuple[str, Attribute], ...]


@dataclass(frozen=True, slots=True)
class Copying:
    """How a load is done, and why not otherwise."""

    copied: bool
    facts: Facts = ()
    reason: str = ""


def copying(operation: Operation, wanted: bool, uses: Uses, axes: Mapping[Value, Axis]) -> Copying:
    """How a load through pointers is done; `wanted`: whether copying would be of any use."""
    addresses = operation.operands[0]
    type = addresses.type
    if not isinstance(type, Tile) or not isinstance(type.element, Pointer):
        return Copying(False)
    axis = axes.get(addresses) or nothing_known(type)
    size = type.element.pointee.bits // 8 or 1
    best = max(range(len(type.shape)), key=lambda d: min(axis.contiguity[d], type.shape[d]))
    run, divisor = axis.contiguity[best], axis.divisibility[best]
    facts: Facts = (
        ("contiguity", run),
        ("divisibility", divisor),
        ("constancy", max(axis.constancy)),
    )
    if not wanted:
        return Copying(False, facts)
    if run * size < LEAST_COPY:
        told = f"it reads {run * size} bytes in a row; a copy takes at least {LEAST_COPY}"
        return Copying(False, facts, told)
    if divisor % LEAST_COPY:
        told = f"of its addresses only multiples of {divisor} are known; a copy wants {LEAST_COPY}"
        return Copying(False, facts, told)
    if len(operation.operands) > 1:
        masks = axes.get(operation.operands[1]) or nothing_known(operation.operands[1].type)
        together = gcd(masks.constancy[best], run) * size
        if together < LEAST_COPY:
            told = f"its mask may change inside of {LEAST_COPY} bytes"
            return Copying(False, facts, told)
    if len(operation.operands) > 2 and not _zero(operation.operands[2], uses):
        return Copying(False, facts, "where its mask is off it reads something else than zero")
    return Copying(True, facts)


def _zero(value: Value, uses: Uses) -> bool:
    made = uses.maker.get(value)
    if made is None:
        return False
    if made.name in ("tile.splat", "tile.broadcast"):
        return _zero(made.operands[0], uses)
    number: Attribute = made.attributes.get("value", "")
    return made.name == "arith.constant" and isinstance(number, int | float) and number == 0


def descriptor_facts(
    view: Value, coordinates: Sequence[Value], uses: Uses, axes: Mapping[Value, Axis]
) -> Facts:
    """What is known of a tile that is read or written through a view."""
    type = view.type
    assert isinstance(type, View)
    facts: list[tuple[str, Attribute]] = [("contiguity", type.tile[-1]), ("constancy", 1)]
    facts.append(("divisibility", _aligned(view, uses, axes)))
    known = [axes.get(value) or nothing_known(value.type) for value in coordinates]
    lowest = [axis.lower for axis in known if axis.lower is not None]
    highest = [axis.upper for axis in known if axis.upper is not None]
    if len(lowest) == len(highest) == len(known) > 0:
        facts.append(("bounds", (min(lowest), max(highest))))
    return tuple(facts)


def _aligned(view: Value, uses: Uses, axes: Mapping[Value, Axis]) -> int:
    """What a view's address and strides are multiples of; at least what every descriptor has."""
    made = uses.maker.get(view)
    if made is None or made.name != "tile.view":
        return DESCRIPTOR
    base = axes.get(made.operands[0])
    return max(DESCRIPTOR, gcd(base.divisibility[0], 128) if base else DESCRIPTOR)
