"""A product of elements and the one sum that takes it, as one operation.

    x = s * scale                   n = -m                 m has a number a row, s one an element
    y = x - spread(m)               y = fma(s, scale, spread(n))

Threads multiply and add in one instruction, and their compiler writes one wherever it finds the two
together; a schedule might set them apart. A difference is taken where what has to be negated has
fewer elements than the product.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from stretto.kernel.building import Builder
from stretto.kernel.tree import Kernel, Operation, Region, Value
from stretto.kernel.types import Scalar, Tile

_SPREADS = frozenset(("tile.splat", "tile.expand_dims", "tile.broadcast"))
"""Whose result has the numbers of their operand, more often."""
_NUMBERS = Scalar("f32")


def with_contracted_sums(kernel: Kernel) -> Kernel:
    """The kernel with such sums as one operation each."""
    uses = Counter(value for op in kernel.walk() for value in op.operands)
    makers = {value: op for op in kernel.walk() for value in op.results}
    written = _Writer(uses, makers).region(kernel.body)
    return replace(kernel, body=written) if written is not kernel.body else kernel


@dataclass(frozen=True)
class _Writer:
    uses: Counter[Value]
    makers: dict[Value, Operation]

    def region(self, region: Region) -> Region:
        """With its sums contracted; the same one where there are none."""
        inside = [self._inside(op) for op in region.operations]
        here = {value for op in region.operations for value in op.results}
        gone: set[Operation] = set()
        found: list[Operation] = []
        for operation in inside:
            product = self._product(operation, here)
            made = None if product is None else self._one(operation, product)
            if made is None or product is None:
                found.append(operation)
            else:
                gone.add(product)
                found += made
        if not gone and all(a is b for a, b in zip(inside, region.operations, strict=True)):
            return region
        return Region(_used([op for op in found if op not in gone]), region.arguments)

    def _inside(self, operation: Operation) -> Operation:
        regions = tuple(self.region(region) for region in operation.regions)
        same = all(a is b for a, b in zip(regions, operation.regions, strict=True))
        return operation if same else replace(operation, regions=regions)

    def _product(self, operation: Operation, here: set[Value]) -> Operation | None:
        """The product that a sum alone takes, made in the same region."""
        if operation.name not in ("arith.addf", "arith.subf") or not _of_numbers(operation.result):
            return None
        for value in operation.operands:
            maker = self.makers.get(value)
            if maker is None or maker.name != "arith.mulf":
                continue
            if value in here and self.uses[value] == 1:
                return maker
        return None

    def _one(self, operation: Operation, product: Operation) -> tuple[Operation, ...] | None:
        """What stands for both; None where it would take as much."""
        factors = product.operands
        left = operation.operands[0] is product.result
        added: Value | None = operation.operands[1 if left else 0]
        out = Builder(operation.location)
        if operation.name == "arith.subf" and left:
            added = self._negated(out, added)
        elif operation.name == "arith.subf":
            for n, factor in enumerate(factors):
                less = self._negated(out, factor)
                if less is not None:
                    factors = (less, factors[1 - n])
                    break
            else:
                return None
        if added is None:
            return None
        out.append(replace(operation, name="math.fma", operands=(*factors, added)))
        return out.finish().operations

    def _negated(self, out: Builder, value: Value) -> Value | None:
        """The same with the other sign, where it is spread from fewer numbers."""
        spreads: list[Operation] = []
        source = value
        while (maker := self.makers.get(source)) is not None and maker.name in _SPREADS:
            spreads.append(maker)
            source = maker.operands[0]
        if not isinstance(source.type, Tile | Scalar) or _count(source) == _count(value):
            return None
        found = out.op("arith.negf", (source,), source.type, source.name)
        for spread in reversed(spreads):
            kept = dict(spread.attributes)
            found = out.op(spread.name, (found,), spread.result.type, spread.result.name, **kept)
        return found


def _of_numbers(value: Value) -> bool:
    return isinstance(value.type, Tile) and value.type.element == _NUMBERS


def _count(value: Value) -> int:
    return value.type.elements if isinstance(value.type, Tile) else 1


def _used(operations: list[Operation]) -> tuple[Operation, ...]:
    """Without spreads that nobody reads any more."""
    read = {value for op in operations for one in op.walk() for value in one.operands}
    left = [op for op in operations if op.name not in _SPREADS or op.result in read]
    return tuple(left) if len(left) == len(operations) else _used(left)
