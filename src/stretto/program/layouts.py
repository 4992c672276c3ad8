"""How a tile's elements are laid out: which register of which thread of which warp holds each.

Product(64, 4, 16)               as the tensor cores leave a sum of 64 columns
Slice(1, Product(64, 4, 16))     one of its columns: a dimension less
Factor(Product(64, 4, 16), 2)    the left factor of such a product, in registers
WarpProduct((2, 2))              a sum of products of warps: two along its rows, two along columns
Factor(WarpProduct((2, 2)), 2, 1)   the right factor of such
Rows((64, 128), 4, 8)            in rows over all threads, eight elements at once
Lanes(128, 64, 4)                as warps read it out of tensor memory
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.kernel.types import Scalar, Tile, Type

THREADS = 32
"""Of a warp."""
WARPGROUP = 4
"""Warps that multiply together; an agent of fewer has layouts of its own."""
WARP_ROWS, WARP_COLUMNS = 16, 8
"""Of a sum: what a warp makes at a time."""


@dataclass(frozen=True, slots=True)
class Product:
    """Of the result of a product of warpgroups."""

    columns: int
    warps: int
    bits: int
    """Of an element of the factors."""

    @property
    def name(self) -> str:
        """The constant that holds it."""
        return f"mma_{self.columns}" if self.bits == 16 else f"mma_{self.columns}_{self.bits}"

    def __str__(self) -> str:
        return self.name

    @property
    def text(self) -> str:
        """As Gluon writes it."""
        shape = [16, min(self.columns, 256), 256 // self.bits]
        return f"gl.NVMMADistributedLayout([3, 0], [{self.warps}, 1], {shape})"


@dataclass(frozen=True, slots=True)
class WarpProduct:
    """Of the result of products of single warps."""

    warps: tuple[int, ...]
    """Along its rows, and along its columns, behind those along batches: warps that find nothing
    left hold what others do."""

    @property
    def name(self) -> str:
        """The constant that holds it."""
        return f"mma_sync_{'x'.join(map(str, self.warps))}"

    def __str__(self) -> str:
        return self.name

    @property
    def text(self) -> str:
        """As Gluon writes it."""
        shape = [1] * (len(self.warps) - 2) + [WARP_ROWS, WARP_COLUMNS]
        return f"gl.NVMMADistributedLayout([2, 0], {list(self.warps)}, {shape})"


@dataclass(frozen=True, slots=True)
class Blocked:
    """Elements of a thread, threads of a warp and warps along each axis."""

    size: tuple[int, ...]
    threads: tuple[int, ...]
    warps: tuple[int, ...]
    order: tuple[int, ...]
    """Along which axes they are counted, the first of them first."""

    @property
    def text(self) -> str:
        """As Gluon writes it."""
        parts = [list(part) for part in (self.size, self.threads, self.warps, self.order)]
        return f"gl.BlockedLayout({', '.join(map(str, parts))})"


@dataclass(frozen=True, slots=True)
class Rows:
    """In rows over all threads, so many elements at once; or in columns, along another dimension
    than the last."""

    shape: tuple[int, ...]
    warps: int
    vector: int
    along: int | None = None
    """The dimension along which neighbours lie in memory; None: the last."""

    @property
    def name(self) -> str:
        """The constant that holds it."""
        sizes = "_".join(map(str, self.shape))
        name = f"rows_{sizes}" if self.along is None else f"columns_{sizes}_along_{self.along}"
        return name if self.warps >= WARPGROUP else f"{name}_of_{self.warps}"

    def __str__(self) -> str:
        return self.name

    @property
    def blocked(self) -> Blocked:
        """Which thread has what."""
        rank = len(self.shape)
        order = list(reversed(range(rank)))
        if self.along is not None:
            order.remove(self.along)
            order.insert(0, self.along)
        first, last = order[-1], order[0]
        size = [1] * rank
        size[last] = min(self.vector, self.shape[last])
        threads, left = [1] * rank, THREADS
        for i in order:
            threads[i] = min(left, max(1, self.shape[i] // size[i]))
            left //= threads[i]
        threads[first] *= left
        warps = [1] * rank
        warps[first] = max(1, min(self.warps, self.shape[first] // threads[first]))
        # What is left of them repeats the tile, or goes on along it.
        rest = last if self.shape[last] > size[last] * threads[last] else first
        warps[rest] *= self.warps // warps[first]
        return Blocked(tuple(size), tuple(threads), tuple(warps), tuple(order))

    @property
    def text(self) -> str:
        """As Gluon writes it."""
        return self.blocked.text


@dataclass(frozen=True, slots=True)
class Slice:
    """Another layout without one of its dimensions."""

    dimension: int
    parent: Layout

    def __str__(self) -> str:
        return f"gl.SliceLayout({self.dimension}, {self.parent})"


@dataclass(frozen=True, slots=True)
class Lanes:
    """As four warps, or eight, read a tile out of tensor memory: a thread has a row of it."""

    rows: int
    columns: int
    warps: int

    @property
    def name(self) -> str:
        """The constant that holds it."""
        return f"lanes_{self.rows}_{self.columns}"

    def __str__(self) -> str:
        return self.name

    @property
    def blocked(self) -> Blocked:
        """Which thread has what: two threads share a row where there are 64."""
        groups = self.warps // 4
        beside = 2 if self.rows == 64 else 1
        size = (1, self.columns // (groups * beside))
        return Blocked(size, (THREADS // beside, beside), (4, groups), (0, 1))

    @property
    def text(self) -> str:
        """As Gluon writes it."""
        return self.blocked.text


@dataclass(frozen=True, slots=True)
class Factor:
    """Of a factor of a product, in registers."""

    product: Product | WarpProduct | Rows
    """How its sum lies; of threads that multiply and add, a thread has all of K."""
    width: int
    """Elements of a register; 0 where threads multiply and add."""
    side: int = 0
    """Of the left factor; 1: of the right one."""

    def __str__(self) -> str:
        return f"gl.DotOperandLayout({self.side}, {self.product}, {self.width})"


Named = Product | WarpProduct | Rows | Lanes
"""Those that are no part of another, and have a constant of their own."""
Layout = Named | Slice | Factor


def root(layout: Layout) -> Named:
    """The layout that a slice is one of, or the product that a factor is of."""
    while not isinstance(layout, Product | WarpProduct | Rows | Lanes):
        layout = layout.parent if isinstance(layout, Slice) else layout.product
    return layout


def factor(type: Type, layout: Layout, side: int = 0) -> Factor:
    """How a product whose sum has some layout takes a factor from registers."""
    assert isinstance(type, Tile)
    assert isinstance(type.element, Scalar)
    assert isinstance(layout, Product | WarpProduct | Rows)
    # Of 64 bits, a register of the instruction is two of a thread.
    width = 0 if isinstance(layout, Rows) else max(1, 32 // type.element.bits)
    return Factor(layout, width, side)
