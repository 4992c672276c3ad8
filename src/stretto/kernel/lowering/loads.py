"""Whether a load through pointers can be an asynchronous copy, and why it cannot.

addresses in runs of 8 halves, each run at a multiple of 16 bytes, masked run by run   copied
every address for itself                                                                by threads
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from stretto.kernel.accesses import fastest
from stretto.kernel.axes import Axis, nothing_known
from stretto.kernel.lowering.uses import Uses
from stretto.kernel.tree import Attribute, Operation, Value
from stretto.kernel.types import Pointer, Tile

LEAST_COPY = 4
"""Bytes: what an asynchronous copy moves at least at once, and a multiple of which it begins at."""


@dataclass(frozen=True, slots=True)
class Copying:
    """How a load is done, and why not otherwise."""

    copied: bool
    reason: str = ""


def copying(operation: Operation, wanted: bool, uses: Uses, axes: Mapping[Value, Axis]) -> Copying:
    """How a load through pointers is done; `wanted`: whether copying would be of any use."""
    addresses = operation.operands[0]
    type = addresses.type
    if not isinstance(type, Tile) or not isinstance(type.element, Pointer):
        return Copying(False)
    axis = axes.get(addresses) or nothing_known(type)
    size = type.element.pointee.bits // 8 or 1
    if not wanted:
        return Copying(False)
    best = fastest(axis, type.shape)
    run, divisor = axis.contiguity[best], axis.divisibility[best]
    if run * size < LEAST_COPY:
        told = f"it reads {run * size} bytes in a row; a copy takes at least {LEAST_COPY}"
        return Copying(False, told)
    if divisor % LEAST_COPY:
        told = f"of its addresses only multiples of {divisor} are known; a copy wants {LEAST_COPY}"
        return Copying(False, told)
    if len(operation.operands) > 1:
        masks = axes.get(operation.operands[1]) or nothing_known(operation.operands[1].type)
        together = gcd(masks.constancy[best], run) * size
        if together < LEAST_COPY:
            told = f"its mask may change inside of {LEAST_COPY} bytes"
            return Copying(False, told)
    if len(operation.operands) > 2 and not _zero(operation.operands[2], uses):
        return Copying(False, "where its mask is off it reads something else than zero")
    return Copying(True)


def _zero(value: Value, uses: Uses) -> bool:
    made = uses.maker.get(value)
    if made is None:
        return False
    if made.name in ("tile.splat", "tile.broadcast"):
        return _zero(made.operands[0], uses)
    number: Attribute = made.attributes.get("value", "")
    return made.name == "arith.constant" and isinstance(number, int | float) and number == 0
