"""Sums of 8-bit floats that are added up in f32 as often as their author asks.

    total = dot a, b, total        part = dot a, b, 0
      (128 elements of K)          total = total + part

Tensor cores keep fewer bits of such a sum than f32 has, for as long as they add to it. A product
says over how many elements they may (`max_num_imprecise_acc`): where that is what one product sums
over, threads add what it made. Where it is fewer, such tensor cores are not taken at all
(`lowering/product_choice.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stretto.kernel.tree import Kernel, Operation, Region, Value
from stretto.kernel.types import Scalar, element_of, shape_of

NARROW_BITS = 8
"""Of floats whose sums tensor cores keep in fewer bits."""


def imprecise(dot: Operation) -> int | None:
    """Elements over which a product's sum may be of fewer bits; None: any number, or none are."""
    element = element_of(dot.operands[0].type)
    few = dot.attributes.get("imprecise")
    if not isinstance(element, Scalar) or not element.is_float or element.bits != NARROW_BITS:
        return None
    return few if isinstance(few, int) else None


def with_promoted_sums(kernel: Kernel) -> Kernel:
    """The kernel whose threads add such products up."""
    if not any(_is_promoted(op) for op in kernel.walk()):
        return kernel
    return replace(kernel, body=_region(kernel.body))


def _is_promoted(operation: Operation) -> bool:
    if operation.name != "tile.dot":
        return False
    return imprecise(operation) == shape_of(operation.operands[0].type)[-1]


def _region(region: Region) -> Region:
    made = (new for operation in region.operations for new in _operation(operation))
    return Region(tuple(made), region.arguments)


def _operation(operation: Operation) -> Iterator[Operation]:
    if not _is_promoted(operation):
        regions = tuple(_region(inner) for inner in operation.regions)
        yield replace(operation, regions=regions) if regions else operation
        return
    a, b, total = operation.operands
    result, place = operation.result, operation.location
    zero, part = Value(result.type), Value(result.type, f"{result.name}_part")
    told = {name: said for name, said in operation.attributes.items() if name == "agent"}
    yield Operation("arith.constant", (), (zero,), {**told, "value": 0.0}, (), place)
    yield replace(operation, operands=(a, b, zero), results=(part,))
    yield Operation("arith.addf", (total, part), (result,), told, (), place)
