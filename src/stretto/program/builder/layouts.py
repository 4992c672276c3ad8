"""Where the elements of a tile are: which register of which thread of the warps that hold it.

    s = product            mma_64                     as the tensor cores leave it
    m = max of s's rows    SliceLayout(1, mma_64)     one dimension less
    p = exp2(s - m)        mma_64                     element by element: the same

A layout begins at a product and goes from tile to tile, forward and back, until nothing new is
found out. Tiles that no product reaches are laid out in rows over all threads. A reader that wants
another layout than the tile has converts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.accesses import Accesses
from stretto.kernel.axes import analyse
from stretto.kernel.lowering.written import COPY, LOAD, STORE
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Pointer, Tile, shape_of
from stretto.ops.opcodes import opcode
from stretto.ops.products import DOT_FMA
from stretto.ops.spaces import SPACES, STAGING
from stretto.program.builder.sums import SUM_READ
from stretto.program.layouts import (
    THREADS,
    WARP_ROWS,
    WARPGROUP,
    Lanes,
    Layout,
    Named,
    Product,
    Rows,
    Slice,
    WarpProduct,
    factor,
    root,
)

SPLIT, JOIN, HALVES = "split", "join", 2
REDUCE, SCAN = "reduce.with", "scan"
ASSEMBLY, HISTOGRAM = "inline_asm", "histogram"
"""A tile whose last dimension has two elements, which becomes two tiles, or is made of two."""
VECTOR_BITS = 128
"""What a thread moves at once."""
HALF, MATRIX = 16, 2
"""Bits of elements of which four threads that have two each fill half of a sector of 32 bytes."""


class Layouts:
    """The layouts of a lowered kernel's tiles in registers."""

    def __init__(self, kernel: Kernel, warps: int, *, in_rows: bool = False) -> None:
        """`in_rows`: narrow elements are stored by rows, though a product made them otherwise."""
        self._warps = warps
        self._of: dict[Value, Layout] = {}
        self._loaded: dict[Value, Layout] = {}
        """What is loaded, and the addresses."""
        operations = list(kernel.walk())
        # Tiles of one shape meet: a narrower load for one is less than a conversion of the other.
        self._vectors: dict[tuple[int, ...], int] = {}
        loads = [
            op for op in operations if kind_of(op) in (LOAD, COPY) and _is_tile(op.operands[0])
        ]
        together = copied_at_once(kernel, [op for op in loads if kind_of(op) == COPY])
        for operation in loads:
            made = operation.operands[0].type
            assert isinstance(made, Tile)
            known = self._vectors.get(made.shape, VECTOR_BITS)
            self._vectors[made.shape] = min(
                known, self._vector(made), together.get(operation, known)
            )
        for operation in operations:
            if kind_of(operation) in (SPLIT, JOIN):  # a thread has both halves
                pairs = operation.operands[0] if kind_of(operation) == SPLIT else operation.result
                self._vectors[shape_of(pairs.type)] = HALVES
        along = _along(kernel, loads)
        self._sums(operations)
        self._factors(operations)
        for operation in loads:
            # Neighbouring threads read neighbouring elements, and each is held once.
            addresses = operation.operands[0]
            assert isinstance(addresses.type, Tile)
            layout = self.rows(addresses.type, along.get(operation))
            self._loaded[addresses] = layout
            if kind_of(operation) == LOAD:
                self._loaded[operation.results[0]] = layout
        self._store_in_rows(operations if in_rows else ())
        # What meets a product is laid out as it is: what is loaded is converted, not the sum.
        self._alike(operations)
        self._of.update(self._loaded)
        self._spread(operations)
        # The largest first: a column that is spread over a tile is laid out as the tile is.
        tiles = dict.fromkeys(v for op in operations for v in (*op.operands, *op.results))
        left = [(v, v.type) for v in tiles if isinstance(v.type, Tile)]
        for value, type in sorted(left, key=lambda pair: -pair[1].elements):
            if value not in self._of:
                self._of[value] = self.rows(type)
                self._spread(operations)

    def _store_in_rows(self, operations: Sequence[Operation]) -> None:
        """Neighbouring threads write neighbouring elements, where a product leaves them apart."""
        for operation in operations:
            if kind_of(operation) == STORE and _is_narrow(operation.operands[0].type):
                address, _, *mask = operation.operands
                assert isinstance(address.type, Tile)
                layout = self._loaded.setdefault(address, self.rows(address.type))
                self._loaded.update((one, layout) for one in mask if one not in self._loaded)

    def of(self, value: Value) -> Layout:
        """The layout of a tile in registers."""
        return self._of[value]

    def roots(self) -> list[Named]:
        """Those that others are slices of, each once."""
        found = dict.fromkeys(root(layout) for layout in self._of.values())
        return sorted(found, key=lambda layout: layout.name)

    def _sums(self, operations: Sequence[Operation]) -> None:
        """Sums lie as the product leaves them. Fewer warps than a warpgroup have none."""
        for operation in operations:
            row = opcode(kind_of(operation))
            if row.multiplies:
                self._of[operation.result] = self._in_registers(operation)
            elif self._warps < WARPGROUP:
                continue
            elif row.accumulator is not None and isinstance(operation.results[0].type, Tile):
                self._product(operation)
            elif kind_of(operation) == SUM_READ:
                rows, columns = shape_of(operation.result.type)
                self._of[operation.result] = Lanes(rows, columns, self._warps)
            elif row.awaits and operation.operands[0] in self._of:  # the product's own registers
                self._of[operation.results[0]] = self._of[operation.operands[0]]

    def _product(self, operation: Operation) -> None:
        result, factor = operation.results[0], operation.operands[1]
        assert isinstance(result.type, Tile)
        bits = getattr(factor.type, "element").bits  # noqa: B009
        self._of[result] = Product(result.type.shape[1], self._warps, bits)

    def _in_registers(self, operation: Operation) -> Layout:
        """Of the sum of a product that threads make: warps along its rows first, since reductions
        and further products go along them."""
        type = operation.result.type
        assert isinstance(type, Tile)
        if kind_of(operation) == DOT_FMA:
            return self.rows(type)
        *batch, rows, _ = type.shape
        apart: list[int] = []
        left = self._warps
        for size in (*batch, rows // WARP_ROWS):
            apart.append(min(left, max(1, size)))
            left //= apart[-1]
        return WarpProduct((*apart, left))

    def _factors(self, operations: Sequence[Operation]) -> None:
        """Tiles that are read out of shared memory as factors only, of one side.

        Products of other widths hold them in the same registers, under another name.
        """
        wanted: dict[Value, list[tuple[Layout, int] | None]] = {
            op.result: [] for op in operations if kind_of(op) == SPACES[STAGING].read
        }
        used = {value for op in operations for value in op.operands}
        for operation in operations:
            if operation.results and used.isdisjoint(operation.results):
                continue  # a view of what is in registers too, where only the buffer is seen by it
            row = opcode(kind_of(operation))
            sides = 2 if row.multiplies else int(row.accumulator is not None)
            for n, value in enumerate(operation.operands):
                if value in wanted:
                    layout = self._of.get(operation.results[0]) if n < sides else None
                    wanted[value].append(None if layout is None else (layout, n))
        for value, uses in wanted.items():
            if not uses or None in uses or len({use and use[1] for use in uses}) > 1:
                continue
            layout, side = uses[0] or (None, 0)
            if isinstance(layout, Product | WarpProduct):
                self._of[value] = factor(value.type, layout, side)

    def _vector(self, type: Tile) -> int:
        """Elements that a thread moves at once."""
        bits = type.element.pointee.bits if isinstance(type.element, Pointer) else type.element.bits
        each = max(1, type.elements // (THREADS * self._warps))
        return min(max(1, VECTOR_BITS // max(bits, 8)), each)

    def rows(self, type: Tile, along: int | None = None) -> Layout:
        """Rows of neighbouring threads."""
        vector = self._vectors.get(type.shape) or self._vector(type)
        return Rows(type.shape, self._warps, vector, along)

    def _spread(self, operations: Sequence[Operation]) -> None:
        """Among tiles of one shape first, then to those with a dimension more or less."""
        while True:
            before = len(self._of)
            self._alike(operations)
            for operation in operations:
                self._sliced(operation)
            if len(self._of) == before:
                return

    def _alike(self, operations: Sequence[Operation]) -> None:
        """Among tiles of one shape."""
        before = -1
        while len(self._of) != before:
            before = len(self._of)
            for operation in operations:
                for values in _alike(operation):
                    known = next((self._of[v] for v in values if v in self._of), None)
                    if known is not None:
                        for value in values:
                            self._put(value, known)

    def _put(self, value: Value, layout: Layout) -> None:
        if isinstance(value.type, Tile) and value not in self._loaded:
            self._of.setdefault(value, layout)

    def _sliced(self, operation: Operation) -> None:
        kind = kind_of(operation)
        if kind.startswith("reduce."):
            axis = operation.integer("axis")
            for source, result in zip(operation.operands, operation.results, strict=True):
                self._pair(source, result, axis)
        elif kind == "expand_dims":
            axis = operation.integer("axis")
            self._pair(operation.results[0], operation.operands[0], axis)
        elif kind == "broadcast":
            source, result = operation.operands[0], operation.results[0]
            for one, other in ((result, source), (source, result)):
                if one in self._of:
                    self._put(other, self._of[one])

    def _pair(self, larger: Value, smaller: Value, axis: int) -> None:
        if larger in self._of:
            self._put(smaller, Slice(axis, self._of[larger]))
        found = self._of.get(smaller)
        if isinstance(found, Slice) and found.dimension == axis:
            self._put(larger, found.parent)


def copied_at_once(kernel: Kernel, copies: Sequence[Operation]) -> dict[Operation, int]:
    """Elements that copies by threads bring at once at most: those in a row, aligned."""
    if not copies:
        return {}
    accesses, found = Accesses(kernel, analyse(kernel)), dict[Operation, int]()
    for operation in copies:
        type, facts = operation.operands[0].type, accesses.facts(operation)
        assert isinstance(type, Tile)
        assert isinstance(type.element, Pointer)
        size = max(1, type.element.pointee.bits // 8)
        found[operation] = max(1, min(facts.contiguity or 1, (facts.divisibility or size) // size))
    return found


def _is_narrow(type: object) -> bool:
    """Whether a tile of addresses is of elements of which a product leaves half a sector a row."""
    if not isinstance(type, Tile) or len(type.shape) < MATRIX:
        return False
    assert isinstance(type.element, Pointer)
    return type.element.pointee.bits <= HALF


def _is_tile(value: Value) -> bool:
    return isinstance(value.type, Tile)


def _along(kernel: Kernel, loads: Sequence[Operation]) -> dict[Operation, int]:
    """Loads whose neighbours in memory lie along another dimension than the last, and along which.

    A right factor that is stored with its rows of K in one piece is such a one.
    """
    deep = [op for op in loads if len(shape_of(op.operands[0].type)) > 1]
    if not deep:
        return {}
    axes = analyse(kernel)
    found: dict[Operation, int] = {}
    for operation in deep:
        shape = shape_of(operation.operands[0].type)
        axis = axes.get(operation.operands[0])
        runs = [1] * len(shape) if axis is None else list(map(min, axis.contiguity, shape))
        if max(runs) > runs[-1]:
            found[operation] = runs.index(max(runs))
    return found


def copied_by_columns(kernel: Kernel) -> list[Operation]:
    """Copies by threads whose neighbours in memory lie along columns."""
    copies = [op for op in kernel.walk() if kind_of(op) == COPY]
    along = _along(kernel, copies)
    return [op for op in copies if along.get(op) == 0]


def _alike(operation: Operation) -> Iterator[Sequence[Value]]:
    """Tiles that are laid out alike."""
    kind = kind_of(operation)
    match kind:
        case "scf.for":
            (body,) = operation.regions
            yield from zip(
                operation.operands[3:],
                body.arguments[1:],
                body.terminator.operands,
                operation.results,
                strict=True,
            )
        case "scf.while":
            before, after = operation.regions
            yield from zip(
                operation.operands, before.arguments, after.terminator.operands, strict=True
            )
            handed = before.terminator.operands[1:]
            yield from zip(handed, after.arguments, operation.results, strict=True)
        case "scf.if":
            ends = [region.terminator.operands for region in operation.regions]
            yield from zip(*ends, operation.results, strict=True)
        case "scf.yield" | "scf.condition" | "combined" | "tile.return":
            pass
        case (
            "splat"
            | "range"
            | "expand_dims"
            | "broadcast"
            | "transpose"
            | "view"
            | "arith.constant"
        ):
            pass
        case _ if opcode(kind).accumulator is not None or opcode(kind).multiplies:
            # The sum; factors have layouts of their own.
            yield (*operation.operands[2:], operation.results[0])
        case _ if kind == REDUCE:
            yield operation.operands
        case _ if kind.startswith("reduce.") or kind in (
            "join",
            "split",
            "cat",
            "extract",
            HISTOGRAM,
        ):
            pass
        case _:
            tiles = [*operation.results, *operation.operands]
            yield [v for v in tiles if isinstance(v.type, Tile)]
