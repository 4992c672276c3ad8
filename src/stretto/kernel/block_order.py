"""Blocks that have most to do come first.

    grid (8, 16): block x has x + 1 steps       dispatched     x: 0 1 2 ... 7, 0 1 2 ... 7, ...
    (causal attention: 8 tiles, 16 heads)       with this pass x: 7 7 7 ... 7, 6 6 6 ... 6, ...

A launch promises no order of its blocks, so a kernel that is right is right in any. Where the trip
counts of its loops grow or shrink with one index (`trip_counts.py`), the last blocks should be
short: they fill what the others leave free. The hardware starts blocks by their number; the pass
gives each number another place.

Along the other axes come as many neighbours, a *section*, as find what they load in half of the L2
cache together; then the next section begins with its longest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from stretto.kernel.building import Builder
from stretto.kernel.tree import Kernel, Lowered, Operation, Region, Value
from stretto.kernel.trip_counts import growth, outermost_loops
from stretto.kernel.types import Scalar, Tile, Type

NUMBER = Scalar("i32")
"""Of a block, as hardware counts them."""
_BITS = 8
_HALF = 2
"""What one section loads takes this part of the L2 cache: the rest is what others leave there."""
_ORDERED = ("tile.atomic_rmw", "tile.atomic_cas", "tile.view_reduce", "scf.while")
"""By these a block may wait for another, or see that it came first."""


def independent(kernel: Kernel) -> bool:
    """Whether no block can know of another: none combines numbers in memory, or waits."""
    return not any(op.name in _ORDERED for op in kernel.walk())


def with_longest_first(kernel: Kernel, cache: int | None = None) -> Kernel | Lowered:
    """The kernel whose blocks come longest first, where that makes a difference.

    `cache` is the L2 cache in bytes; left out, there are no sections.
    """
    order = order_of(kernel)
    if order is None or not (order.others or order.grows):
        return kernel
    out = Builder(kernel.location)
    axes = sorted((order.axis, *order.others))
    counts = {axis: out.op("tile.block_count", (), NUMBER, "blocks", axis=axis) for axis in axes}
    number = out.op("tile.block_index", (), NUMBER, "block", axis=axes[-1])
    for axis in reversed(axes[:-1]):
        number = out.op("arith.muli", (number, counts[axis]), NUMBER)
        index = out.op("tile.block_index", (), NUMBER, axis=axis)
        number = out.op("arith.addi", (number, index), NUMBER, "block")
    section = section_of(out, kernel, order, counts, cache)
    places = Places(out, order, counts, section).of(number)
    placed(out, kernel.body.operations, places, {})
    told = f"blocks come longest first: trip counts change with block index {order.axis}"
    return Lowered(replace(kernel, body=out.finish()), ((kernel.location, told),))


@dataclass(frozen=True, slots=True)
class Order:
    """What the order of a kernel's blocks follows from."""

    axis: int
    """Along which trip counts change."""
    grows: bool
    """Whether the last block along it has most to do, not the first."""
    others: tuple[int, ...]
    """The other axes that the kernel asks for."""


def order_of(kernel: Kernel) -> Order | None:
    """How trip counts change with the block; None where they do not, or cannot be told, or the
    kernel goes by the number of blocks itself."""
    operations = tuple(kernel.walk())
    if not independent(kernel) or any(op.name == "tile.block_count" for op in operations):
        return None
    found = growth(kernel)
    if found is None or len(found) != 1:
        return None
    ((axis, way),) = found.items()
    used = {op.integer("axis") for op in operations if op.name == "tile.block_index"}
    return Order(axis, way > 0, tuple(sorted(used - {axis})))


@dataclass(frozen=True)
class Places:
    """Where the block of a number lies in the grid, longest first section by section."""

    out: Builder
    order: Order
    counts: Mapping[int, Value]
    section: Value | None
    """How many neighbours along the other axes; None: all of them."""
    turning: bool = False
    """Whether every other section is gone through from its shortest on, so that neither the begin
    nor the end of a section is a jump; the last one ends with its shortest."""

    def of(self, number: Value) -> dict[int, Value]:
        """The index of a block along each axis, by its number in the order."""
        out, order = self.out, self.order
        many = self.counts[order.axis]
        if not order.others:
            return {order.axis: self._index(number, many)}
        rows = others(out, order, self.counts)
        if self.section is None:
            rank = out.op("arith.divsi", (number, rows), NUMBER)
            row = out.op("arith.remsi", (number, rows), NUMBER)
        else:
            rank, row = self._in_section(number, rows, self.section)
        found = {order.axis: self._index(rank, many)}
        for axis in order.others[:-1]:
            found[axis] = out.op("arith.remsi", (row, self.counts[axis]), NUMBER)
            row = out.op("arith.divsi", (row, self.counts[axis]), NUMBER)
        found[order.others[-1]] = row
        return found

    def _in_section(self, number: Value, rows: Value, section: Value) -> tuple[Value, Value]:
        """How many longer blocks there are, and the place along the other axes."""
        out, many = self.out, self.counts[self.order.axis]
        whole = out.op("arith.muli", (many, section), NUMBER)
        which = out.op("arith.divsi", (number, whole), NUMBER, "section")
        inside = out.op("arith.remsi", (number, whole), NUMBER)
        begun = out.op("arith.muli", (which, section), NUMBER)
        left = out.op("arith.subi", (rows, begun), NUMBER)
        width = out.op("arith.minsi", (section, left), NUMBER)  # the last one may be narrow
        rank = out.op("arith.divsi", (inside, width), NUMBER)
        row = out.op("arith.remsi", (inside, width), NUMBER)
        row = out.op("arith.addi", (begun, row), NUMBER)
        if self.turning:
            one, two = out.constant(1, NUMBER), out.constant(2, NUMBER)
            sections = out.op("arith.ceildivsi", (rows, section), NUMBER)
            later = out.op("arith.subi", (sections, which), NUMBER)
            later = out.op("arith.subi", (later, one), NUMBER)
            odd = out.op("arith.remsi", (later, two), NUMBER)
            # rank, or many - 1 - rank
            twice = out.op("arith.muli", (rank, two), NUMBER)
            last = out.op("arith.subi", (many, one), NUMBER)
            way = out.op("arith.subi", (last, twice), NUMBER)
            more = out.op("arith.muli", (odd, way), NUMBER)
            rank = out.op("arith.addi", (rank, more), NUMBER)
        return rank, row

    def _index(self, rank: Value, many: Value) -> Value:
        """The index of the block that so many longer ones come before."""
        if not self.order.grows:
            return rank
        last = self.out.op("arith.subi", (many, self.out.constant(1, NUMBER)), NUMBER)
        return self.out.op("arith.subi", (last, rank), NUMBER)


def others(out: Builder, order: Order, counts: Mapping[int, Value]) -> Value:
    """How many blocks there are along the other axes together."""
    rows = counts[order.others[0]]
    for axis in order.others[1:]:
        rows = out.op("arith.muli", (rows, counts[axis]), NUMBER)
    return rows


def section_of(
    out: Builder,
    kernel: Kernel,
    order: Order,
    counts: Mapping[int, Value],
    cache: int | None,
    least: Value | None = None,
) -> Value | None:
    """How many neighbours find what their loops load in half of the cache, at least one, or
    `least`; None where that cannot be told."""
    if cache is None or not order.others:
        return None
    one = out.constant(1, NUMBER)
    longest = out.constant(0, NUMBER)
    if order.grows:
        longest = out.op("arith.subi", (counts[order.axis], one), NUMBER)
    makers = {value: op for op in kernel.walk() for value in op.results}
    zero = out.constant(0, NUMBER)
    bounds = _Bounds(out, makers, {order.axis: longest, **dict.fromkeys(order.others, zero)})
    bytes: Value | None = None
    for loop in outermost_loops(kernel.body):
        loaded = _loaded(loop)
        if not loaded:
            continue
        found = [bounds.of(value) for value in loop.operands[:3]]
        if any(value is None for value in found):
            return None
        lower, upper, step = (value for value in found if value is not None)
        way = out.op("arith.subi", (upper, lower), NUMBER)
        trips = out.op("arith.ceildivsi", (way, step), NUMBER)
        more = out.op("arith.muli", (trips, out.constant(loaded, NUMBER)), NUMBER)
        bytes = more if bytes is None else out.op("arith.addi", (bytes, more), NUMBER)
    if bytes is None:
        return None
    bytes = out.op("arith.maxsi", (bytes, one), NUMBER)
    room, rows = out.constant(cache // _HALF, NUMBER), others(out, order, counts)
    section = out.op("arith.divsi", (room, bytes), NUMBER)
    section = out.op("arith.maxsi", (section, one if least is None else least), NUMBER)
    section = out.op("arith.minsi", (section, rows), NUMBER, "section")
    return _alike(out, rows, section)


def _alike(out: Builder, rows: Value, section: Value) -> Value:
    """Sections of one length, where the last would be less than three quarters of the others."""
    many = out.op("arith.ceildivsi", (rows, section), NUMBER)
    even = out.op("arith.ceildivsi", (rows, many), NUMBER)
    whole = out.op("arith.muli", (many, section), NUMBER)
    missing = out.op("arith.subi", (whole, rows), NUMBER)
    four = out.op("arith.muli", (missing, out.constant(4, NUMBER)), NUMBER)
    short = out.op("arith.cmpi", (four, section), Scalar("i1"), predicate="sgt")
    return out.op("arith.select", (short, even, section), NUMBER, "section")


def _loaded(loop: Operation) -> int:
    """Bytes of the tiles that a step of a loop loads."""
    tiles = [
        result.type
        for op in loop.regions[0].walk()
        if op.name in ("tile.view_load", "tile.load")
        for result in op.results
    ]
    return sum(prod(t.shape) * t.element.bits // _BITS for t in tiles if isinstance(t, Tile))


@dataclass
class _Bounds:
    """Bounds of loops, worked out for one place in the grid."""

    out: Builder
    makers: Mapping[Value, Operation]
    places: Mapping[int, Value]
    _known: dict[Value, Value | None] = field(default_factory=dict[Value, "Value | None"])

    def of(self, value: Value) -> Value | None:
        """A number as it is there; None where it cannot be told before the kernel runs."""
        if value not in self._known:
            found = self._made(value)
            self._known[value] = None if found is None else as_type(self.out, found, NUMBER)
        return self._known[value]

    def _made(self, value: Value) -> Value | None:
        made = self.makers.get(value)
        if made is None:
            return value
        if made.name == "tile.block_index":
            return self.places[made.integer("axis")]
        if made.name == "tile.hint":
            return self.of(made.operands[0])
        if not made.name.startswith("arith.") or not isinstance(value.type, Scalar):
            return None
        if made.name == "arith.constant":
            return self.out.constant(made.attributes["value"], NUMBER)
        if made.name in ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast"):
            return self.of(made.operands[0])
        operands = [self.of(operand) for operand in made.operands]
        if made.name in ("arith.cmpi", "arith.select") or any(v is None for v in operands):
            return None
        taken = [operand for operand in operands if operand is not None]
        return self.out.op(made.name, taken, NUMBER, value.name, **made.attributes)


def as_type(out: Builder, value: Value, type: Type) -> Value:
    """A whole number in another width."""
    assert isinstance(type, Scalar)
    assert isinstance(value.type, Scalar)
    if value.type == type:
        return value
    if "index" in (value.type.element, type.element):
        return out.op("arith.index_cast", (value,), type, value.name)
    kind = "arith.extsi" if value.type.bits < type.bits else "arith.trunci"
    return out.op(kind, (value,), type, value.name)


def placed(
    out: Builder,
    operations: Sequence[Operation],
    places: Mapping[int, Value],
    counts: Mapping[int, Value],
) -> None:
    """Write operations whose blocks lie at other places, in a grid of other counts."""
    _Placed(out, places, counts).region(operations)


@dataclass
class _Placed:
    out: Builder
    places: Mapping[int, Value]
    counts: Mapping[int, Value]
    _new: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def region(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            self._operation(operation)

    def _operation(self, operation: Operation) -> None:
        self.out.location = operation.location
        known = {"tile.block_index": self.places, "tile.block_count": self.counts}
        if operation.name in known and operation.integer("axis") in known[operation.name]:
            at = known[operation.name][operation.integer("axis")]
            number, name = as_type(self.out, at, operation.result.type), operation.result.name
            hinted = self.out.op("tile.hint", (number,), number.type, name, lower=0)
            self._new[operation.result] = hinted
            return
        operands = tuple(self._new.get(value, value) for value in operation.operands)
        regions = tuple(self._inner(region) for region in operation.regions)
        self.out.append(replace(operation, operands=operands, regions=regions))

    def _inner(self, region: Region) -> Region:
        with self.out.region(region.arguments) as opened:
            self.region(region.operations)
        return opened.region
