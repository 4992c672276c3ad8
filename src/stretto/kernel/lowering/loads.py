"""Which loads through pointers are asynchronous copies into shared memory, and why others are not.

addresses in runs of 8 halves, each run at a multiple of 16 bytes, masked run by run   copied
every address for itself, or tiles that the kernel changes in the same loop            by threads

A machine that says who issues what has agents that wait for products: there tiles beside products
are worth a ring. Elsewhere all that stands in a loop is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd

from stretto.kernel.accesses import fastest
from stretto.kernel.axes import Axis, nothing_known
from stretto.kernel.lowering.conflicts import changed_beside
from stretto.kernel.lowering.uses import Uses
from stretto.kernel.tree import Attribute, Kernel, Operation, Value
from stretto.kernel.types import Pointer, Tile

LEAST_COPY = 4
"""Bytes: what an asynchronous copy moves at least at once, and a multiple of which it begins at."""
LEAST_ROW, LEAST_ROWS = 16, 8
"""Bytes that follow one another in a tile in shared memory, and rows of it, at least."""
_COPIED_BITS = (8, 16, 32)
_EITHER_BITS = 16
"""Of elements that a product takes with its sum along any dimension."""


@dataclass(frozen=True, slots=True)
class Copying:
    """How a load is done, and why not otherwise."""

    copied: bool
    reason: str = ""


@dataclass
class Loads:
    """The loads through pointers of one kernel."""

    kernel: Kernel
    uses: Uses
    axes: Mapping[Value, Axis]
    copies: bool
    """Whether there are asynchronous copies."""
    beside_products: bool
    """Whether only tiles beside products are worth one."""
    _known: dict[Operation, Copying] = field(default_factory=dict[Operation, Copying])
    _loops: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    """Of what stands in an innermost loop with products: that loop."""

    def __post_init__(self) -> None:
        for loop in self.kernel.walk():
            if loop.name != "scf.for":
                continue
            inside = list(loop.walk())[1:]
            if any(op.name in ("scf.for", "scf.while") for op in inside):
                continue
            if any(op.name == "tile.dot" for op in inside):
                self._loops |= dict.fromkeys(loop.regions[0].operations, loop)

    def how(self, operation: Operation, in_loop: bool) -> Copying:
        """How a load is done; `in_loop`: whether it stands in one."""
        known = self._known.get(operation)
        if known is None:
            known = self._known[operation] = self._how(operation, in_loop)
        return known

    def _how(self, operation: Operation, in_loop: bool) -> Copying:
        addresses = operation.operands[0].type
        if not self.copies or not isinstance(addresses, Tile):
            return Copying(False)
        if not isinstance(addresses.element, Pointer):
            return Copying(False)
        if not self.beside_products:
            useful = in_loop or self.uses.multiplied_only(operation.results[0])
            return self._copying(operation) if useful else Copying(False)
        loop = self._loops.get(operation)
        if loop is None or len(addresses.shape) != 2 or 1 in addresses.shape:
            return Copying(False)
        reason = self._not_in_ring(operation, addresses, loop)
        return Copying(False, reason) if reason else self._copying(operation)

    def _not_in_ring(self, operation: Operation, addresses: Tile, loop: Operation) -> str:
        """Why a tile beside products cannot lie in a ring; empty where it can."""
        assert isinstance(addresses.element, Pointer)
        element = addresses.element.pointee
        if element.bits not in _COPIED_BITS:
            return f"it has elements of {element}"
        if operation.attributes.get("volatile"):
            return "the load is volatile"
        best = fastest(self._axis(operation.operands[0]), addresses.shape)
        if (
            addresses.shape[best] * element.bits < LEAST_ROW * 8
            or min(addresses.shape) < LEAST_ROWS
        ):
            return "its tile is too small for shared memory"
        summed = self.uses.summed(operation.results[0])
        if element.bits != _EITHER_BITS and summed not in (None, best):
            return f"its product wants elements of {element.bits} bits with their sum along a row"
        if changed_beside(self.kernel, loop, operation):
            return "its loop may change what it reads"
        return ""

    def _axis(self, value: Value) -> Axis:
        return self.axes.get(value) or nothing_known(value.type)

    def _copying(self, operation: Operation) -> Copying:
        """Whether addresses and masks let threads copy."""
        addresses = operation.operands[0]
        type, axis = addresses.type, self._axis(addresses)
        assert isinstance(type, Tile)
        assert isinstance(type.element, Pointer)
        size = type.element.pointee.bits // 8 or 1
        best = fastest(axis, type.shape)
        run, divisor = axis.contiguity[best], axis.divisibility[best]
        if run * size < LEAST_COPY:
            told = f"it reads {run * size} bytes in a row; a copy takes at least {LEAST_COPY}"
            return Copying(False, told)
        if divisor % LEAST_COPY:
            told = f"of its addresses only multiples of {divisor} are known"
            return Copying(False, f"{told}; a copy wants {LEAST_COPY}")
        if len(operation.operands) > 1:
            masks = self._axis(operation.operands[1])
            together = gcd(masks.constancy[best], run) * size
            if together < LEAST_COPY:
                return Copying(False, f"its mask may change inside of {LEAST_COPY} bytes")
        chosen = self.beside_products and not self.uses.multiplied(operation.results[0])
        if self.fills(operation) and not chosen:
            return Copying(False, "where its mask is off it reads something else than zero")
        return Copying(True)

    def beside(self, operation: Operation) -> bool:
        """Whether it stands beside products, in an innermost loop."""
        return operation in self._loops

    def fills(self, operation: Operation) -> bool:
        """Whether it says what stands where its mask is off, and that is not zero."""
        return len(operation.operands) > 2 and not self._zero(operation.operands[2])

    def _zero(self, value: Value) -> bool:
        made = self.uses.maker.get(value)
        if made is None:
            return False
        if made.name in ("tile.splat", "tile.broadcast"):
            return self._zero(made.operands[0])
        number: Attribute = made.attributes.get("value", "")
        return made.name == "arith.constant" and isinstance(number, int | float) and number == 0
