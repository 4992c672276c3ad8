"""Which product of a machine a `tile.dot` becomes.

    128x64xf16 x 64x64xf16    async.wgmma    a warpgroup multiplies 64 rows
    16x64xf16 x 64x32xf16     mma_sync       a warp multiplies 16
    16x16xf32 x 16x16xf32     dot_fma        all of their bits count: tensor cores drop some

The first that the machine states and that takes the dot as it is; else the first that takes its
factors as wider numbers, of which each is one of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stretto.kernel.errors import KernelError
from stretto.kernel.promotion import NARROW_BITS, imprecise
from stretto.kernel.tree import Operation, Value
from stretto.kernel.types import Scalar, Tile, Type, element_of, shape_of
from stretto.machine import Machine
from stretto.machine.machine import Product
from stretto.ops.spaces import REGISTERS

EITHER_BITS = 16
"""Of elements of factors that a product takes out of shared memory by rows and by columns."""
_TENSOR = "tf32"
"""What tensor cores make of f32, where the author lets them."""
_WIDER: Mapping[str, tuple[str, ...]] = {
    "f8E4M3FN": ("f16", "f32"),
    "f8E5M2": ("f16", "f32"),
    "f16": ("f32",),
    "bf16": ("f32",),
}
"""Types that have all numbers of another."""
_NAMES = ("tile.transpose", "tile.reshape", "tile.hint")


@dataclass(frozen=True)
class Chosen:
    """A product of a machine, and the elements that its factors are made of first."""

    product: Product
    left: str
    right: str

    @property
    def held(self) -> bool:
        """Whether it takes both factors from registers, and waits for nobody."""
        return self.product.b == (REGISTERS,)


def choose(operation: Operation, machine: Machine, maker: Mapping[Value, Operation]) -> Chosen:
    """The product that a `tile.dot` becomes; KernelError where the machine has none for it."""
    a, b = (_element(value.type) for value in operation.operands[:2])
    total = _element(operation.result.type)
    types: dict[str, str] = {}
    why: dict[str, str] = {}
    for left, right in _taken(a, b):
        for product in machine.products:
            if (left, right) != (a, b) and REGISTERS not in product.b:
                continue  # what is wider is in registers
            first, second = _seen(left, operation), _seen(right, operation)
            if product.types and (first, second, total) not in product.types:
                told = f"it takes no {first} by {second} summed up in {total}"
                types.setdefault(product.name, told)
                continue
            lacking = _lacking(product, Scalar(first).bits, operation, maker)
            if lacking is None:
                return Chosen(product, left, right)
            why.setdefault(product.name, lacking)
    shapes = " x ".join(_shown(value.type) for value in operation.operands[:2])
    reasons = "; ".join(
        f"{product.name}: {why.get(product.name) or types[product.name]}"
        for product in machine.products
    )
    message = f"{machine.name} has no product of {shapes}, summed up in {total}"
    raise KernelError(operation.location, message, reasons)


def copied_across(value: Value, maker: Mapping[Value, Operation], *, left: bool) -> bool:
    """Whether a factor comes through a view with K across its rows, not along them."""
    turned = not left
    made = maker.get(value)
    while made is not None and made.name in _NAMES:
        turned ^= made.name == "tile.transpose"
        made = maker.get(made.operands[0])
    return turned and made is not None and made.name == "tile.view_load"


def _taken(a: str, b: str) -> Iterator[tuple[str, str]]:
    """Elements of factors as they are, then as wider ones: of both the same."""
    yield a, b
    others = (*_WIDER.get(b, ()), b)
    yield from ((wide, wide) for wide in (*_WIDER.get(a, ()), a) if wide in others and wide != a)


def _seen(element: str, operation: Operation) -> str:
    """What an element counts as: f32 whose last bits do not matter is what tensor cores take."""
    if element == "f32" and operation.attributes.get("precision") == _TENSOR:
        return _TENSOR
    return element


def _lacking(
    product: Product,
    bits: int,
    operation: Operation,
    maker: Mapping[Value, Operation],
) -> str | None:
    """Why a product of elements that it takes cannot be had; None: it can."""
    a, b = operation.operands[:2]
    (*batch, rows, depth), columns = shape_of(a.type), shape_of(b.type)[-1]
    if batch and not product.batches:
        return "it multiplies two matrices, not batches of them"
    if rows % product.rows and not (product.repeats and rows < product.rows):
        return f"it multiplies {product.rows} rows at a time, not {rows}"
    if columns % product.columns and not (product.repeats and columns < product.columns):
        return f"it makes {product.columns} columns at a time, not {columns}"
    if depth * bits % product.depth:
        return f"it sums over {product.depth // bits} elements at a time, not {depth}"
    few = imprecise(operation)
    if product.wait and bits == NARROW_BITS and few is not None and few < depth:
        return f"its sums over {depth} elements are of fewer bits than f32, for at most {few} asked"
    if product.types and REGISTERS not in product.b and bits != EITHER_BITS:
        for value, which in ((a, "left"), (b, "right")):
            if copied_across(value, maker, left=which == "left"):
                return f"the {which} factor is copied with K across its rows"
    return None


def _element(type: Type) -> str:
    element = element_of(type)
    assert isinstance(element, Scalar)
    return element.element


def _shown(type: Type) -> str:
    assert isinstance(type, Tile)
    return f"{'x'.join(map(str, type.shape))}x{type.element}"
