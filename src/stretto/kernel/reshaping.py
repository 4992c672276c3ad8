"""Tiles that are narrowed before they are seen in another shape, not behind it.

    y = reshape x                   n = truncf x
    z = truncf y                    z = reshape n

What is stored is seen in the shape of its view then, which costs nothing in shared memory; else the
threads would exchange the wide numbers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from stretto.kernel.tree import Kernel, Operation, Region, Value
from stretto.kernel.types import Tile

_NARROWS = frozenset(("arith.truncf", "arith.trunci"))


def with_reshapes_last(kernel: Kernel) -> Kernel:
    """The kernel with tiles narrowed first."""
    uses = Counter(value for op in kernel.walk() for value in op.operands)
    body = _Writer(uses).region(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body)


@dataclass(frozen=True)
class _Writer:
    uses: Counter[Value]

    def region(self, region: Region) -> Region:
        """The same one where nothing changes."""
        operations = [self._inside(op) for op in region.operations]
        reshapes = {
            op.result: op
            for op in operations
            if op.name == "tile.reshape"
            and isinstance(op.operands[0].type, Tile)
            and self.uses[op.result] == 1
        }
        narrowed = {
            op: reshapes[op.operands[0]]
            for op in operations
            if op.name in _NARROWS and op.operands[0] in reshapes
        }
        if not narrowed and all(a is b for a, b in zip(operations, region.operations, strict=True)):
            return region
        gone = set(narrowed.values())
        found: list[Operation] = []
        for op in operations:
            found += [op] if op not in narrowed else _swapped(op, narrowed[op])
        return Region(tuple(op for op in found if op not in gone), region.arguments)

    def _inside(self, operation: Operation) -> Operation:
        regions = tuple(self.region(region) for region in operation.regions)
        same = all(a is b for a, b in zip(regions, operation.regions, strict=True))
        return operation if same else replace(operation, regions=regions)


def _swapped(narrowing: Operation, reshape: Operation) -> list[Operation]:
    (source,), (result,) = reshape.operands, narrowing.results
    assert isinstance(source.type, Tile)
    assert isinstance(result.type, Tile)
    narrow = Value(replace(source.type, element=result.type.element), result.name)
    return [
        replace(narrowing, operands=(source,), results=(narrow,)),
        replace(reshape, operands=(narrow,), results=(result,)),
    ]
