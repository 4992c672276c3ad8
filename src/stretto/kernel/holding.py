"""A left factor that no step of a loop changes, held in registers while the loop runs.

    q = load                           q = load
    for ...: s = q @ k                 held = q in registers
                                       for ...: s = held @ k

A product that has its left factor in shared memory reads it anew in every step, beside the right
one, and lanes that meet there meanwhile wait. From registers it reads the right factor alone; what
that costs is registers, for as long as the loop runs.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from stretto.kernel.tree import Kernel, Operation, Region, Value

HELD = "held"
"""The attribute of a product whose left factor is in registers before its loop begins."""


def with_held_factors(kernel: Kernel) -> Kernel:
    """The kernel with such products marked; the same one where there are none."""
    body = _region(kernel.body, frozenset(), inside=False)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _region(region: Region, outside: frozenset[Value], *, inside: bool) -> Region:
    """With products of loops marked; `outside`: what was made before the loop began."""
    known = set(outside)
    found: list[Operation] = []
    for operation in region.operations:
        made = operation
        if inside and operation.name == "tile.dot" and operation.operands[0] in outside:
            said = MappingProxyType({**operation.attributes, HELD: True})
            made = replace(operation, attributes=said)
        elif operation.regions:
            loop = operation.name == "scf.for"
            before = frozenset(known) if loop else outside
            regions = tuple(_region(r, before, inside=loop or inside) for r in operation.regions)
            if any(a is not b for a, b in zip(regions, operation.regions, strict=True)):
                made = replace(operation, regions=regions)
        found.append(made)
        known.update(operation.results)
    if all(a is b for a, b in zip(found, region.operations, strict=True)):
        return region
    return Region(tuple(found), region.arguments)
