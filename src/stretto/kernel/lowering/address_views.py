"""Loads by addresses as loads through views, so that TMA copies them.

    load a + rows * stride + k, rows < M and k < K      view a, sizes [M, K], strides [stride, 1]
                                                  ──►   load view, [first row, first k]

A tile becomes one of a view only where it is shown to have the same values: each dimension's mask
is `0 <= index < size` with the index that the address has, and the size is known to the host. What
moves with the block or the step is a coordinate, or a dimension more: of heads, of batches. What
only a launch knows (alignment, signs, sizes) is asked there.

Only tiles that feed products are worth it: what threads load for themselves they also load at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from stretto.kernel.addresses import HOST, Address, Addresses, Bound, Mask
from stretto.kernel.axes import analyse
from stretto.kernel.building import Builder
from stretto.kernel.lowering.conflicts import ACQUIRING, written
from stretto.kernel.lowering.loads import Loads
from stretto.kernel.lowering.unused import without_unused
from stretto.kernel.lowering.uses import Uses
from stretto.kernel.lowering.views import ALIGNED, ANY, MOST_DIMENSIONS
from stretto.kernel.lowering.wrapped_rows import reach_no_store
from stretto.kernel.lowering.written import SELECT
from stretto.kernel.polynomials import ONE, ZERO, Polynomial, named, number, polynomial
from stretto.kernel.tree import Kernel, Location, Lowered, Operation, Region, Value
from stretto.kernel.types import Pointer, Scalar, Tile, View

MOST_ELEMENTS = 256
"""Of a tile, along a dimension of a descriptor."""
LEAST_ROW = 32
"""Bytes that follow one another in a tile: fewer are not laid out as products read them."""
LEAST_ROWS = 8
_INDEX, _STRIDE, _BIT = Scalar("i32"), Scalar("i64"), Scalar("i1")
_COPIED = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8", "i16", "i32")
_TURNED = 16
"""Bits of elements that a product takes with its sum along any dimension."""
_NAMES = frozenset(("tile.transpose", "tile.reshape", "tile.hint"))
"""Other names of a tile, which a product may have."""


class _NoViewError(Exception):
    """Why a tile is not one of a view."""


def with_views_of_addresses(kernel: Kernel) -> Lowered:
    """The kernel with tiles of views where addresses and masks are such."""
    loads = list(_feeding_products(kernel))
    if not loads:
        return Lowered(kernel)
    reader = _Reader(kernel, Addresses(kernel, analyse(kernel)))
    found: dict[Operation, _Tile] = {}
    notes: list[tuple[Location, str]] = []
    for load in loads:
        try:
            found[load] = reader.tile(load)
        except _NoViewError as why:
            notes.append((load.location, f"not copied by TMA: {why}"))
        except RecursionError:
            notes.append((load.location, "not copied by TMA: its addresses are too long a sum"))
    if not found:
        return Lowered(kernel, tuple(notes))
    made = _Writer(reader.addresses, found, Builder(kernel.location)).kernel(kernel)
    return Lowered(without_unused(made), tuple(notes))


def _feeding_products(kernel: Kernel) -> Iterator[Operation]:
    """Loads of tiles beside products in a loop, and those that only products read."""
    uses = Uses(kernel)
    beside: set[Operation] = set()
    for loop in kernel.walk():
        if loop.name == "scf.for" and any(op.name == "tile.dot" for op in loop.walk()):
            beside |= set(loop.walk())
    for operation in kernel.walk():
        if operation.name != "tile.load" or len(operation.results) != 1:
            continue
        type = operation.result.type
        if not isinstance(type, Tile) or sum(n > 1 for n in type.shape) < 2:
            continue
        read = bool(uses.of(operation.result))
        if operation in beside or (read and uses.multiplied_only(operation.result)):
            yield operation


@dataclass(frozen=True)
class _Tile:
    """A tile of a view."""

    array: Value
    sizes: tuple[Polynomial, ...]
    strides: tuple[Polynomial, ...]
    coordinates: tuple[Polynomial, ...]
    box: tuple[int, ...]
    order: tuple[int, ...]
    """Which dimension of the tile each of the last of the view is."""
    natural: frozenset[Value]
    """Parameters that are not negative."""
    chosen: bool = False
    """Whether the mask lets through a part of what is copied."""


@dataclass
class _Reader:
    kernel: Kernel
    addresses: Addresses

    def __post_init__(self) -> None:
        self._written = set(written(self.kernel))
        self._uses = Uses(self.kernel)
        self._loads = Loads(
            self.kernel, self._uses, self.addresses.axes, copies=True, beside_products=True
        )
        self._acquired = _after_acquiring(self.kernel)
        self._branched = _in_branches(self.kernel)

    def tile(self, load: Operation) -> _Tile:
        """What view a load goes through; _NoViewError: why there is none."""
        type = load.result.type
        assert isinstance(type, Tile)
        element = type.element
        if not isinstance(element, Scalar) or element.element not in _COPIED:
            raise _NoViewError(f"it has no elements of {type.element}")
        if load.attributes.get("volatile"):
            raise _NoViewError("the load is volatile")
        if load in self._acquired:
            raise _NoViewError("an atomic operation before it may acquire what it reads")
        address = self.addresses.address(load.operands[0])
        if address is None:
            raise _NoViewError("its addresses are no sum of indices times strides of a parameter")
        if address.array.name in self._written:
            raise _NoViewError(f"the kernel also writes `{address.array.name}`")
        mask = self.addresses.mask(load.operands[1]) if len(load.operands) > 1 else Mask()
        address = _unwrapped(address, mask)
        self._require_rows(load, address)
        shaper = _Shaper(self.addresses, address, mask.bounds, type, self._summed(load))
        try:
            if mask.rest:
                raise _NoViewError("its mask is more than bounds of its indices")
            tile = shaper.tile()
            if self._loads.fills(load):
                raise _NoViewError("where its mask is off it reads something else than zero")
        except _NoViewError:
            tile = self._chosen(load, shaper)
            if tile is None:
                raise
        if load in self._branched and number(ANY) in tile.sizes:
            raise _NoViewError("it stands in a branch, and an index of it has no bound")
        return tile

    def _summed(self, load: Operation) -> int | None:
        return self._uses.summed(load.result)

    def _chosen(self, load: Operation, exact: _Shaper) -> _Tile | None:
        """A tile that stays inside of the array, of which the mask lets through a part; None where
        there is none, or threads copy just that part."""
        if len(load.operands) < 2 or exact.address.at.wrapped:
            return None
        if not self._loads.beside(load) or self._loads.how(load, in_loop=True).copied:
            return None
        bounds = tuple(exact.from_host(range(len(exact.type.shape))))
        try:
            tile = replace(exact, bounds=bounds, coordinates={}, sizes={}).tile()
        except _NoViewError:
            return None
        bounded = number(ANY) not in tile.sizes[-len(tile.order) :]
        return replace(tile, chosen=True) if bounded else None

    def _require_rows(self, load: Operation, address: Address) -> None:
        for dimension, wrapped in address.at.wrapped:
            why = reach_no_store(load.result, dimension, wrapped, self.addresses, self._uses)
            if why:
                raise _NoViewError(f"its index wraps around, and {why}")


def _unwrapped(address: Address, mask: Mask) -> Address:
    """Without indices that go elsewhere only where the mask is off: `where(rows < M, rows, 0)`."""
    off = {(b.dimension, b.end) for b in mask.bounds if b.upper}
    kept = tuple((d, w) for d, w in address.at.wrapped if (d, w.size - w.first) not in off)
    return replace(address, at=replace(address.at, wrapped=kept))


def _in_branches(kernel: Kernel) -> set[Operation]:
    """Loads in branches of loops, which are copied either way: without a bound, from anywhere."""
    return {
        op
        for loop in kernel.walk()
        if loop.name in ("scf.for", "scf.while")
        for branch in loop.walk()
        if branch.name == "scf.if"
        for op in branch.walk()
        if op.name == "tile.load"
    }


def _after_acquiring(kernel: Kernel) -> set[Operation]:
    """Loads that an acquiring atomic operation comes before: in the text, or in a loop's steps."""
    found: set[Operation] = set()
    acquired = False
    for top in kernel.body.operations:
        here = any(
            op.name in ("tile.atomic_rmw", "tile.atomic_cas")
            and op.text("semantics", "acq_rel") in ACQUIRING
            for op in top.walk()
        )
        acquired = acquired or here
        if acquired:
            found |= {op for op in top.walk() if op.name == "tile.load"}
    return found


@dataclass
class _Shaper:
    """Finds sizes, strides and coordinates for one tile."""

    addresses: Addresses
    address: Address
    bounds: tuple[Bound, ...]
    type: Tile
    summed: int | None
    coordinates: dict[int, Polynomial] = field(default_factory=dict[int, Polynomial])
    sizes: dict[int, Polynomial] = field(default_factory=dict[int, Polynomial])

    def tile(self) -> _Tile:
        """The view's tile; _NoViewError: why it is none."""
        at, shape = self.address.at, self.type.shape
        kept = [d for d, n in enumerate(shape) if n > 1]
        self._strides(kept)
        for dimension in kept:
            self._bounded(dimension)
        rest = at.base
        for dimension, coordinate in self.coordinates.items():
            rest -= coordinate * at.steps[dimension]
        for dimension in kept:
            self.coordinates.setdefault(dimension, ZERO)
        more = self._more(rest, kept)
        (last,) = [d for d in kept if at.steps[d] == ONE]
        order = (*(d for d in kept if d != last), last)
        self._require_layout(order, last)
        if len(more) + len(order) > MOST_DIMENSIONS:
            told = f"it takes {len(more) + len(order)} dimensions; a descriptor has at most"
            raise _NoViewError(f"{told} {MOST_DIMENSIONS}")
        coordinates = (*(i for _, i in more), *(self.coordinates[d] for d in order))
        sizes = (number(ANY),) * len(more)
        sizes += tuple(self.sizes.get(d, number(ANY)) for d in order)
        return _Tile(
            self.address.array,
            sizes,
            (*(stride for stride, _ in more), *(at.steps[d] for d in order)),
            coordinates,
            (*(1 for _ in more), *(shape[d] for d in order)),
            order,
            self._natural(coordinates),
        )

    def from_host(self, dimensions: Iterable[int]) -> Iterator[Bound]:
        """Of the bounds above, one for each dimension whose size a host knows."""
        for dimension in dimensions:
            for bound in self.bounds:
                if bound.dimension == dimension and bound.upper:
                    size, _ = self._divided(bound.end, self.address.at.steps[dimension])
                    if self.addresses.from_host(size):
                        yield bound
                        break

    def _strides(self, kept: Sequence[int]) -> None:
        steps = self.address.at.steps
        for dimension in kept:
            if not steps[dimension]:
                raise _NoViewError("elements are repeated: a stride is 0")
            if not self.addresses.from_host(steps[dimension]):
                raise _NoViewError("a stride is not known before the launch")
            self._require_aligned(steps[dimension])
        if sum(steps[d] == ONE for d in kept) != 1:
            raise _NoViewError("no stride is known to be 1; at a launch with 1 Triton says so")

    def _require_aligned(self, stride: Polynomial) -> None:
        """What is known of a stride at once; the rest is asked at each launch."""
        known = stride.constant
        assert isinstance(self.type.element, Scalar)
        bytes = self.type.element.bits // 8
        if known is not None and known != 1 and (known < 0 or known * bytes % ALIGNED):
            told = f"a stride is {known * bytes} bytes, no positive multiple of {ALIGNED}"
            raise _NoViewError(told)

    def _bounded(self, dimension: int) -> None:
        """Where a tile begins along a dimension, as its mask says it, and where that ends."""
        here = [b for b in self.bounds if b.dimension == dimension]
        wrapped = dict(self.address.at.wrapped).get(dimension)
        uppers = list(dict.fromkeys(b.end for b in here if b.upper))
        lowers = list(dict.fromkeys(b.end for b in here if not b.upper))
        if wrapped is not None:
            if here:
                raise _NoViewError("its index wraps around and has a mask as well")
            if not self.addresses.at_least(wrapped.first, 0):
                raise _NoViewError("its index wraps around and may be negative")
            self._from(dimension, wrapped.first, wrapped.size)
            return
        if len(uppers) > 1 or len(lowers) > 1:
            raise _NoViewError("its mask has two bounds along one dimension")
        if lowers:
            first = -lowers[0]
            size = uppers[0] + first if uppers else number(ANY)
            self._from(dimension, first, size)
        elif uppers:
            size, first = self._divided(uppers[0], self.address.at.steps[dimension])
            if not self.addresses.at_least(first, 0):
                raise _NoViewError("its mask does not say that its index is not negative")
            self._from(dimension, first, size)

    def _from(self, dimension: int, first: Polynomial, size: Polynomial) -> None:
        if not self.addresses.from_host(size):
            raise _NoViewError("its mask has a bound that is not known before the launch")
        self.coordinates[dimension], self.sizes[dimension] = first, size

    def _divided(self, end: Polynomial, step: Polynomial) -> tuple[Polynomial, Polynomial]:
        """The size that a bound comes from, and what the tile begins with: `size - first`.

        What moves with the block, and what the address has too, is where the tile begins.
        """
        at = dict(self.address.at.base)
        size: dict[tuple[int, ...], int] = {}
        first: dict[tuple[int, ...], int] = {}
        for monomial, factor in end:
            begun = _alone(monomial) * number(-factor) * step
            addressed = all(at.get(of) == by for of, by in begun)
            if addressed or not self.addresses.from_host(_alone(monomial)):
                first[monomial] = -factor
            else:
                size[monomial] = factor
        return polynomial(size), polynomial(first)

    def _more(self, rest: Polynomial, kept: Sequence[int]) -> list[tuple[Polynomial, Polynomial]]:
        """What is left of where a tile begins: coordinates, or dimensions more, with strides."""
        steps = self.address.at.steps
        free = [d for d in kept if d not in self.sizes]
        for dimension in free:
            rest = self._taken(rest, dimension, steps[dimension])
        found: dict[tuple[int, ...], list[tuple[int, Polynomial]]] = {}
        for monomial, factor in rest:
            stride, index = self._apart(monomial)
            found.setdefault(stride, []).append((factor, index))
        more: list[tuple[Polynomial, Polynomial]] = []
        for stride, parts in found.items():
            by = min(abs(factor) for factor, _ in parts)
            if any(factor % by for factor, _ in parts):
                by = 1
            index = ZERO
            for factor, of in parts:
                index += of * number(factor // by)
            self._require_aligned(polynomial({stride: by}))
            if not stride and by == 1:
                raise _NoViewError("it begins at a place that is no multiple of 16 bytes")
            more.append((polynomial({stride: by}), index))
        for _, index in more:
            if self._falls(index):
                raise _NoViewError("its index is not the one that its mask asks for")
        if any(self._falls(self.coordinates[dimension]) for dimension in free):
            raise _NoViewError("it may begin before its array does")
        return more

    def _falls(self, index: Polynomial) -> bool:
        """Whether something is taken away, so that it may be negative."""
        taken = any(factor < 0 for _, factor in index)
        return taken and not self.addresses.at_least(index, 0)

    def _apart(self, monomial: tuple[int, ...]) -> tuple[tuple[int, ...], Polynomial]:
        """The part of a product that the host knows, and the other."""
        stride = tuple(n for n in monomial if self.addresses.from_host(named(n)))
        return stride, polynomial({tuple(n for n in monomial if n not in stride): 1})

    def _taken(self, rest: Polynomial, dimension: int, step: Polynomial) -> Polynomial:
        """What is left once the multiples of a stride are a coordinate."""
        (first, by), *_ = step.terms
        for monomial, factor in rest:
            stride, index = self._apart(monomial)
            if stride == first and factor % by == 0:
                index *= number(factor // by)
                left = rest - index * step
                if len(left.terms) < len(rest.terms):
                    self.coordinates[dimension] += index
                    rest = left
        return rest

    def _require_layout(self, order: Sequence[int], last: int) -> None:
        shape = self.type.shape
        assert isinstance(self.type.element, Scalar)
        bits = self.type.element.bits
        for dimension in order:
            if shape[dimension] > MOST_ELEMENTS:
                told = f"its tile has {shape[dimension]} elements along a dimension"
                raise _NoViewError(f"{told}, more than {MOST_ELEMENTS}")
        if shape[last] * bits // 8 < LEAST_ROW:
            told = f"{shape[last] * bits // 8} bytes follow one another"
            raise _NoViewError(f"{told}, fewer than {LEAST_ROW}")
        if shape[order[-2]] < LEAST_ROWS:
            raise _NoViewError(f"it has {shape[order[-2]]} rows, fewer than {LEAST_ROWS}")
        if bits != _TURNED and self.summed is not None and self.summed != last:
            told = f"its product wants elements of {bits} bits with their sum along what follows"
            raise _NoViewError(f"{told} one another in memory")

    def _natural(self, coordinates: Sequence[Polynomial]) -> frozenset[Value]:
        """Parameters that coordinates are made of, which a launch asks not to be negative."""
        found: set[Value] = set()
        todo = [v for c in coordinates for n in c.names for v in self.addresses.values[n][:1]]
        seen: set[Value] = set()
        while todo:
            value = todo.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self.addresses.parameters and isinstance(value.type, Scalar):
                found.add(value)
            made = self.addresses.maker.get(value)
            if made is not None and made.name.startswith("arith."):
                todo += made.operands
        return frozenset(found)


def _alone(monomial: tuple[int, ...]) -> Polynomial:
    return polynomial({monomial: 1})


# Writing --------------------------------------------------------------------------------------


@dataclass
class _Writer:
    addresses: Addresses
    tiles: dict[Operation, _Tile]
    out: Builder
    _views: dict[tuple[object, ...], Value] = field(default_factory=dict[tuple[object, ...], Value])
    _cloned: dict[Value, Value] = field(default_factory=dict[Value, Value])
    _there: list[set[Value]] = field(default_factory=list[set[Value]])
    """Values that have been made, in each region that is open."""

    def kernel(self, kernel: Kernel) -> Kernel:
        """The kernel with views at its beginning."""
        self._there.append({p.value for p in kernel.parameters})
        self._assume(kernel)
        for load, tile in self.tiles.items():
            self._view(load, tile)
            for name in (n for coordinate in tile.coordinates for n in coordinate.names):
                if self.addresses.from_host(named(name)):
                    self._early(name)
        for operation in kernel.body.operations:
            self._operation(operation)
        return replace(kernel, body=self.out.finish())

    def _assume(self, kernel: Kernel) -> None:
        natural = {value for tile in self.tiles.values() for value in tile.natural}
        for parameter in kernel.parameters:
            if parameter.value in natural and (parameter.lower is None or parameter.lower < 0):
                zero = self.out.constant(0, _scalar(parameter.value))
                both = (parameter.value, zero)
                holds = self.out.op("arith.cmpi", both, _BIT, predicate="sge")
                self.out.add("tile.assume", (holds,))

    def _view(self, load: Operation, tile: _Tile) -> None:
        key = (tile.array, tile.sizes, tile.strides, tile.box)
        if key in self._views:
            return
        self.out.location = load.location
        assert isinstance(tile.array.type, Pointer)
        sizes = [self._host(size, _INDEX) for size in tile.sizes]
        strides = [self._host(stride, _STRIDE) for stride in tile.strides]
        type = View(tile.box, tile.array.type.pointee)
        name = f"{tile.array.name.removesuffix('_ptr')}_desc"
        self._views[key] = self.out.op("tile.view", (tile.array, *sizes, *strides), type, name)

    def _operation(self, operation: Operation) -> None:
        self.out.location = operation.location
        if operation in self.tiles:
            self._load(operation, self.tiles[operation])
        else:
            regions = tuple(self._region(region) for region in operation.regions)
            self.out.append(replace(operation, regions=regions) if regions else operation)
        self._there[-1] |= set(operation.results)

    def _region(self, region: Region) -> Region:
        self._there.append(set(region.arguments))
        with self.out.region(region.arguments) as opened:
            for operation in region.operations:
                self._operation(operation)
        self._there.pop()
        return opened.region

    def _load(self, load: Operation, tile: _Tile) -> None:
        view = self._views[tile.array, tile.sizes, tile.strides, tile.box]
        at = [self._number(coordinate) for coordinate in tile.coordinates]
        result = load.result
        assert isinstance(result.type, Tile)
        element, shape = result.type.element, result.type.shape
        short = tuple(shape[d] for d in tile.order)
        ordered = tuple(sorted(tile.order))
        last = Value(Tile(tile.box, element), result.name)
        steps: list[tuple[str, tuple[int, ...], dict[str, tuple[int, ...]]]] = []
        if tile.box != short:
            steps.append(("tile.reshape", short, {}))
        if tile.order != ordered:
            order = tuple(tile.order.index(d) for d in ordered)
            turned = tuple(shape[d] for d in ordered)
            steps.append(("tile.transpose", turned, {"order": order}))
        if tuple(shape[d] for d in ordered) != shape:
            steps.append(("tile.reshape", shape, {}))
        copied = Value(result.type, result.name) if tile.chosen else result
        made = last if steps else copied
        self.out.append(replace(load, name="tile.view_load", operands=(view, *at), results=(made,)))
        for number_, (kind, into, said) in enumerate(steps):
            end = number_ == len(steps) - 1
            value = copied if end else Value(Tile(into, element), result.name)
            step = Operation(kind, (made,), (value,), said, location=load.location)
            self.out.append(step)
            made = value
        if tile.chosen:
            _, mask, *other = load.operands
            assert isinstance(element, Scalar)
            none = 0.0 if element.is_float else 0
            zero = other[0] if other else self.out.constant(none, result.type)
            choice = Operation(SELECT, (mask, copied, zero), (result,))
            self.out.append(replace(choice, location=load.location))

    def _number(self, of: Polynomial) -> Value:
        """A number of the block or the step, of values that are there."""
        return self._summed(of, _INDEX, self._present)

    def _host(self, of: Polynomial, type: Scalar) -> Value:
        """A number of the launch, worked out at the beginning of the kernel."""
        return self._summed(of, type, self._early)

    def _summed(self, of: Polynomial, type: Scalar, get: Callable[[int], Value]) -> Value:
        total: Value | None = None
        for monomial, factor in of:
            product: Value | None = None
            for name in monomial:
                value = self._as(get(name), type)
                product = (
                    value if product is None else self.out.op("arith.muli", (product, value), type)
                )
            if product is None:
                product = self.out.constant(factor, type)
            elif factor != 1:
                by = self.out.constant(factor, type)
                product = self.out.op("arith.muli", (product, by), type)
            total = product if total is None else self.out.op("arith.addi", (total, product), type)
        return self.out.constant(0, type) if total is None else total

    def _present(self, name: int) -> Value:
        values = self.addresses.values[name]
        for value in values:
            if any(value in there for there in self._there):
                return value
        return self._early(name)

    def _early(self, name: int) -> Value:
        for value in self.addresses.values[name]:
            found = self._clone(value)
            if found is not None:
                return found
        raise AssertionError("a number of the launch that is worked out in the kernel's course")

    def _clone(self, value: Value) -> Value | None:
        """A number of the launch, worked out once more."""
        if value in self.addresses.parameters or value in self._cloned:
            return self._cloned.get(value, value)
        made = self.addresses.maker.get(value)
        if made is None or made.name not in HOST:
            return None
        operands = [self._clone(operand) for operand in made.operands]
        if any(operand is None for operand in operands):
            return None
        known = tuple(operand for operand in operands if operand is not None)
        again = Value(value.type, value.name)
        self.out.append(replace(made, operands=known, results=(again,)))
        self._cloned[value] = again
        return again

    def _as(self, value: Value, type: Scalar) -> Value:
        own = _scalar(value)
        if own == type:
            return value
        kind = "arith.extsi" if own.bits < type.bits else "arith.trunci"
        return self.out.op(kind, (value,), type)


def _scalar(value: Value) -> Scalar:
    assert isinstance(value.type, Scalar)
    return value.type
