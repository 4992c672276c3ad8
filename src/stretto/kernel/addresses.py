"""Addresses, indices and masks of tiles as sums: what an analysis of addresses finds out.

    rows = block * 128 + range          base 128 * block, steps (1,)
    a + rows * stride + columns         array a, base 128 * block * stride, steps (stride, 1)
    rows < M                            dimension 0 ends below M - 128 * block

An element's index is `base + sum of step * place`. Pointers and numbers that a loop carries and
moves by the same amount in each step are written by the loop's counter. What is not such a sum is
`None`, and whoever asks says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from stretto.kernel.axes import Axis
from stretto.kernel.polynomials import ONE, ZERO, Polynomial, named, number, polynomial
from stretto.kernel.tree import Kernel, Operation, Value
from stretto.kernel.types import Pointer, Scalar, Tile, shape_of
from stretto.ops.operations import SAME_NUMBER

HOST = frozenset(
    (
        "arith.constant", "arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.extsi",
        "arith.trunci", "arith.index_cast", "tile.hint",
    )
)  # fmt: skip
"""What a host works out as a kernel does, of numbers that it knows."""
_BELOW = {"slt": 0, "ult": 0, "sle": 1, "ule": 1}
_ABOVE = {"sgt": 0, "ugt": 0, "sge": 1, "uge": 1}
"""Comparisons, and whether the two may be equal."""
_UNSIGNED = ("ult", "ule", "ugt", "uge")


@dataclass(frozen=True, slots=True)
class Wrapped:
    """An index that goes elsewhere where it is not below a size: `index % size`."""

    first: Polynomial
    """The index of place 0, as it was before."""
    size: Polynomial


@dataclass(frozen=True, slots=True)
class Tiled:
    """An integer at each place of a tile."""

    base: Polynomial
    steps: tuple[Polynomial, ...] = ()
    wrapped: tuple[tuple[int, Wrapped], ...] = ()
    """By dimension: indices that are what they seem only as far as a size goes."""

    @property
    def uniform(self) -> bool:
        """Whether it is one number everywhere."""
        return not any(self.steps)


@dataclass(frozen=True, slots=True)
class Address:
    """Where elements of a tile are: in the array of a parameter, so many elements behind it."""

    array: Value
    at: Tiled


@dataclass(frozen=True, slots=True)
class Bound:
    """A mask along one dimension: places below `end`, or places from `end` on."""

    dimension: int
    end: Polynomial
    upper: bool


@dataclass(frozen=True, slots=True)
class Mask:
    """What a mask asks for: bounds, all of which hold, and a rest that is no bound."""

    bounds: tuple[Bound, ...] = ()
    rest: bool = False


@dataclass
class Addresses:
    """The sums of one kernel; each is worked out once."""

    kernel: Kernel
    axes: Mapping[Value, Axis]
    maker: dict[Value, Operation] = field(default_factory=dict[Value, Operation])
    values: list[list[Value]] = field(default_factory=list[list[Value]])
    """What a name stands for: values that are equal wherever they are there."""
    _loop: dict[Value, Operation] = field(default_factory=dict[Value, Operation])
    _names: dict[object, int] = field(default_factory=dict[object, int])
    _numbers: dict[Value, Polynomial] = field(default_factory=dict[Value, Polynomial])
    _tiles: dict[Value, Tiled | None] = field(default_factory=dict[Value, Tiled | None])
    _addresses: dict[Value, Address | None] = field(default_factory=dict[Value, Address | None])
    _open: set[Value] = field(default_factory=set[Value])
    """Carried values that are being worked out: met again, they stand for what they begin with."""

    def __post_init__(self) -> None:
        self.parameters = {p.value for p in self.kernel.parameters}
        for operation in self.kernel.walk():
            for result in operation.results:
                self.maker[result] = operation
            if operation.name == "scf.for":
                for argument in operation.regions[0].arguments:
                    self._loop[argument] = operation

    # Numbers --------------------------------------------------------------------------------

    def number(self, value: Value) -> Polynomial:
        """A scalar as a sum of products."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = self._number(value)
        return found

    def _number(self, value: Value) -> Polynomial:
        made = self.maker.get(value)
        if made is None:
            return self._carried_number(value)
        if made.name == "arith.constant":
            held = made.attributes.get("value")
            return number(int(held)) if isinstance(held, int) else self._named(value, value)
        if made.name in SAME_NUMBER and made.name != "arith.extui":
            return self.number(made.operands[0])
        if made.name == "arith.extui" and self.at_least(self.number(made.operands[0]), 0):
            return self.number(made.operands[0])
        if made.name in ("arith.addi", "arith.subi", "arith.muli"):
            one, other = (self.number(operand) for operand in made.operands)
            return _combined(made.name, one, other)
        if made.name == "arith.shli":
            by = self.number(made.operands[1]).constant
            if by is not None and 0 <= by < 31:
                return self.number(made.operands[0]) * number(1 << by)
        if made.name.startswith("arith.") and len(made.results) == 1:
            of = tuple(self.number(operand) for operand in made.operands)
            said = tuple(sorted((k, str(v)) for k, v in made.attributes.items()))
            return self._named((made.name, of, said), value)
        if made.name in ("tile.block_index", "tile.block_count"):
            return self._named((made.name, made.integer("axis")), value)
        return self._named(value, value)

    def _named(self, key: object, value: Value) -> Polynomial:
        """A name; what is worked out alike from the same numbers has the same."""
        name = self._names.setdefault(key, len(self.values))
        if name == len(self.values):
            self.values.append([])
        if value not in self.values[name]:
            self.values[name].append(value)
        return named(name)

    def _carried_number(self, value: Value) -> Polynomial:
        """A parameter, a loop's counter, or what a loop carries and moves evenly."""
        loop = self._loop.get(value)
        if loop is None or value is loop.regions[0].arguments[0] or value in self._open:
            return self._named(value, value)
        number = loop.regions[0].arguments.index(value) - 1
        end = loop.regions[0].terminator.operands[number]
        self._open.add(value)
        here = self._named(value, value)
        moved = self._fresh(end) - here
        self._open.discard(value)
        steps = self._steps_of(loop, moved) if not here.names & moved.names else None
        if steps is None:
            return here
        return self.number(loop.operands[3 + number]) + steps

    def _fresh(self, value: Value) -> Polynomial:
        """A number whose carried values are still open: not to be remembered."""
        before = dict(self._numbers)
        found = self.number(value)
        self._numbers = before
        return found

    def _steps_of(self, loop: Operation, moved: Polynomial) -> Polynomial | None:
        """How far something has been moved until a step, if all steps move it alike."""
        inside = {v for op in loop.regions[0].walk() for v in op.results}
        inside |= set(loop.regions[0].arguments)
        for name in moved.names:
            if any(value in inside for value in self.values[name]):
                return None
        lower, _, step = (self.number(value) for value in loop.operands[:3])
        past = self.number(loop.regions[0].arguments[0]) - lower
        by = step.constant
        each = None if by is None or by <= 0 else moved.divided(by)
        return None if each is None else past * each

    # Tiles ----------------------------------------------------------------------------------

    def tile(self, value: Value) -> Tiled | None:
        """A tile of integers as base and steps."""
        if value not in self._tiles:
            self._tiles[value] = None  # whoever meets it again is made from itself
            self._tiles[value] = self._tile(value)
        return self._tiles[value]

    def _tile(self, value: Value) -> Tiled | None:
        if not isinstance(value.type, Tile):
            return Tiled(self.number(value)) if isinstance(value.type, Scalar) else None
        made = self.maker.get(value)
        if made is None:
            return self._carried_tile(value)
        rank = len(value.type.shape)
        match made.name:
            case "tile.range":
                return Tiled(number(made.integer("start")), (ONE,))
            case "arith.constant":
                held = made.attributes.get("value")
                return Tiled(number(held), (ZERO,) * rank) if isinstance(held, int) else None
            case "tile.splat":
                return Tiled(self.number(made.operands[0]), (ZERO,) * rank)
            case "arith.addi" | "arith.subi" | "arith.muli":
                one, other = (self.tile(operand) for operand in made.operands)
                return None if one is None or other is None else _elementwise(made.name, one, other)
            case "arith.remsi" | "arith.remui":
                return self._remainder(made)
            case "arith.select":
                return self._clamped(made)
            case _ if made.name in SAME_NUMBER and made.name != "arith.extui":
                return self.tile(made.operands[0])
            case "tile.expand_dims" | "tile.broadcast" | "tile.transpose" | "tile.reshape":
                source = self.tile(made.operands[0])
                return None if source is None else _reshaped(made, source)
            case _:
                return None

    def _carried_tile(self, value: Value) -> Tiled | None:
        """A tile of numbers that a loop carries and moves evenly."""
        loop = self._loop.get(value)
        if loop is None or value in self._open:
            return None
        number = loop.regions[0].arguments.index(value) - 1
        end = self.maker.get(loop.regions[0].terminator.operands[number])
        if end is None or end.name != "arith.addi" or value not in end.operands:
            return None
        others = [operand for operand in end.operands if operand is not value]
        moved = self.tile(others[0]) if len(others) == 1 else None
        begun = self.tile(loop.operands[3 + number])
        return None if moved is None or begun is None else self._moved(loop, begun, moved)

    def _moved(self, loop: Operation, begun: Tiled, moved: Tiled) -> Tiled | None:
        steps = self._steps_of(loop, moved.base) if moved.uniform else None
        return None if steps is None else replace(begun, base=begun.base + steps)

    def _remainder(self, made: Operation) -> Tiled | None:
        index, size = (self.tile(operand) for operand in made.operands)
        return None if size is None or not size.uniform else _wrapped(index, size.base)

    def _clamped(self, made: Operation) -> Tiled | None:
        """`where(index < size, index, 0)`: the index, as far as the size goes."""
        index = self.tile(made.operands[1])
        mask = self.mask(made.operands[0])
        along = _only(index)
        if index is None or along is None or mask.rest or len(mask.bounds) != 1:
            return None
        (bound,) = mask.bounds
        if not bound.upper or bound.dimension != along:
            return None
        return _wrapped(index, bound.end + index.base)

    # Addresses ------------------------------------------------------------------------------

    def address(self, value: Value) -> Address | None:
        """An address, or a tile of such."""
        if value not in self._addresses:
            self._addresses[value] = None
            self._addresses[value] = self._address(value)
        return self._addresses[value]

    def _address(self, value: Value) -> Address | None:
        made = self.maker.get(value)
        if made is None:
            if value in self.parameters and isinstance(value.type, Pointer):
                return Address(value, Tiled(ZERO))
            return self._carried_address(value)
        match made.name:
            case "tile.offset":
                array, offset = self.address(made.operands[0]), self.tile(made.operands[1])
                if array is None or offset is None:
                    return None
                both = _elementwise("arith.addi", array.at, offset)
                return None if both is None else replace(array, at=both)
            case "tile.splat":
                array = self.address(made.operands[0])
                zeros = (ZERO,) * len(shape_of(value.type))
                return None if array is None else replace(array, at=replace(array.at, steps=zeros))
            case "tile.hint":
                return self.address(made.operands[0])
            case "tile.expand_dims" | "tile.broadcast" | "tile.transpose" | "tile.reshape":
                array = self.address(made.operands[0])
                seen = None if array is None else _reshaped(made, array.at)
                return None if array is None or seen is None else replace(array, at=seen)
            case _:
                return None

    def _carried_address(self, value: Value) -> Address | None:
        loop = self._loop.get(value)
        if loop is None:
            return None
        number = loop.regions[0].arguments.index(value) - 1
        begun = self.address(loop.operands[3 + number])
        end = loop.regions[0].terminator.operands[number]
        moved = Tiled(ZERO)
        while end is not value:
            made = self.maker.get(end)
            if made is None or made.name not in ("tile.offset", "tile.hint"):
                return None
            if made.name == "tile.offset":
                by = self.tile(made.operands[1])
                if by is None or not by.uniform:
                    return None
                moved = Tiled(moved.base + by.base)
            end = made.operands[0]
        at = None if begun is None else self._moved(loop, begun.at, moved)
        return None if begun is None or at is None else replace(begun, at=at)

    # Masks ----------------------------------------------------------------------------------

    def mask(self, value: Value) -> Mask:
        """A mask as bounds, as far as it is such."""
        made = self.maker.get(value)
        if made is None:
            return Mask(rest=True)
        match made.name:
            case "arith.andi":
                one, other = (self.mask(operand) for operand in made.operands)
                return Mask(one.bounds + other.bounds, one.rest or other.rest)
            case "arith.constant":
                return Mask(rest=made.attributes.get("value") not in (True, 1))
            case "tile.splat" | "tile.broadcast" | "tile.hint":
                return self.mask(made.operands[0])
            case "tile.expand_dims":
                at, inner = made.integer("axis"), self.mask(made.operands[0])
                return _renumbered(inner, lambda d: d + (d >= at))
            case "tile.transpose":
                order, inner = made.integers("order"), self.mask(made.operands[0])
                return _renumbered(inner, order.index)
            case "arith.cmpi":
                return self._comparison(made)
            case _:
                return Mask(rest=True)

    def _comparison(self, made: Operation) -> Mask:
        left, right = (self.tile(operand) for operand in made.operands)
        predicate = made.text("predicate")
        if left is None or right is None or left.wrapped or right.wrapped:
            return Mask(rest=True)
        if predicate in _ABOVE:
            left, right = right, left
        elif predicate not in _BELOW:
            return Mask(rest=True)
        equal = {**_BELOW, **_ABOVE}[predicate]
        # left - right - equal < 0
        told = _elementwise("arith.subi", left, right)
        if told is None:
            return Mask(rest=True)
        told = replace(told, base=told.base - number(equal))
        if told.uniform:
            # Bounds that always hold ask for nothing.
            always = self.at_least(-told.base, 1) and predicate not in _UNSIGNED
            return Mask(rest=not always)
        along = _only(told)
        if predicate in _UNSIGNED and not self._natural(made):
            return Mask(rest=True)
        if along is not None and told.steps[along] == ONE:
            return Mask((Bound(along, -told.base, upper=True),))
        if along is not None and told.steps[along] == -ONE:
            return Mask((Bound(along, told.base + ONE, upper=False),))
        return Mask(rest=True)

    def _natural(self, made: Operation) -> bool:
        """Whether no number that is compared is negative."""
        for operand in made.operands:
            tile = self.tile(operand)
            if tile is None or not all(self.at_least(p, 0) for p in (tile.base, *tile.steps)):
                return False
        return True

    # What numbers are -----------------------------------------------------------------------

    def from_host(self, of: Polynomial) -> bool:
        """Whether a host knows it before any block runs."""
        return all(any(self._known(v) for v in self.values[name]) for name in of.names)

    def _known(self, value: Value) -> bool:
        made = self.maker.get(value)
        if made is None:
            return value in self.parameters and isinstance(value.type, Scalar)
        return made.name in HOST and all(self._known(operand) for operand in made.operands)

    def at_least(self, of: Polynomial, least: int) -> bool:
        """Whether a number is at least another, as far as signs and ends of loops tell."""
        total = 0
        of = self._lowest(of)
        for monomial, factor in of:
            if not monomial:
                total += factor
            elif factor < 0 or not all(self._not_negative(name) for name in monomial):
                return False
        return total >= least

    def _lowest(self, of: Polynomial) -> Polynomial:
        """With counters that are taken away as large as they get: `n - 1 - i` is 0 at the least."""
        for monomial, factor in of:
            for name in monomial if factor < 0 else ():
                end = self._end(name)
                if end is None or monomial.count(name) > 1 or name in end.names:
                    continue
                others = polynomial({tuple(n for n in monomial if n != name): factor})
                if all(self._not_negative(n) for n in monomial if n != name):
                    of += others * (end - ONE - named(name))
        return of

    def _end(self, name: int) -> Polynomial | None:
        """Where a counter's loop ends, if it is one that goes up."""
        for value in self.values[name]:
            loop = self._loop.get(value)
            if loop is not None and value is loop.regions[0].arguments[0]:
                return self.number(loop.operands[1])
        return None

    def _not_negative(self, name: int) -> bool:
        return any(self._natural_value(value) for value in self.values[name])

    def _natural_value(self, value: Value) -> bool:
        axis = self.axes.get(value)
        if axis is not None and axis.lower is not None and axis.lower >= 0:
            return True
        if value in self.parameters:
            return True  # the host looks at each launch
        loop = self._loop.get(value)
        if loop is not None and value is loop.regions[0].arguments[0]:
            lower, step = self.number(loop.operands[0]), self.number(loop.operands[2])
            return self.at_least(lower, 0) and self.at_least(step, 0)
        made = self.maker.get(value)
        if made is None:
            return False
        least = [self.at_least(self.number(v), 0) for v in made.operands if v.type == value.type]
        match made.name:
            case "tile.block_index" | "tile.block_count":
                return True
            case "arith.divsi" | "arith.floordivsi" | "arith.ceildivsi" | "arith.remsi":
                # Whoever divides a number of blocks divides it by a positive one.
                return least[0]
            case "arith.minsi" | "arith.select" | "arith.divui" | "arith.remui":
                return all(least)
            case "arith.maxsi":
                return any(least)
            case _:
                return False


def _combined(name: str, one: Polynomial, other: Polynomial) -> Polynomial:
    match name:
        case "arith.addi":
            return one + other
        case "arith.subi":
            return one - other
        case _:
            return one * other


def _elementwise(name: str, one: Tiled, other: Tiled) -> Tiled | None:
    """Two tiles of one shape together; a product needs one that is uniform."""
    if not one.steps or not other.steps:  # a scalar beside a tile, or two scalars
        rank = max(len(one.steps), len(other.steps))
        one, other = (t if t.steps else replace(t, steps=(ZERO,) * rank) for t in (one, other))
    if name == "arith.muli":
        if not other.uniform:
            one, other = other, one
        if not other.uniform or other.wrapped:
            return None
        steps = tuple(step * other.base for step in one.steps)
        return Tiled(one.base * other.base, steps, one.wrapped)
    if name == "arith.subi" and other.wrapped:
        return None
    taken = {dimension for dimension, _ in one.wrapped}
    if any(dimension in taken for dimension, _ in other.wrapped):
        return None
    # What is added along a dimension that was wrapped would have to be told apart from it.
    for here, there in ((one, other), (other, one)):
        if any(there.steps[dimension] for dimension, _ in here.wrapped):
            return None
    steps = tuple(_combined(name, a, b) for a, b in zip(one.steps, other.steps, strict=True))
    return Tiled(_combined(name, one.base, other.base), steps, one.wrapped + other.wrapped)


def _wrapped(index: Tiled | None, size: Polynomial) -> Tiled | None:
    along = _only(index)
    if index is None or along is None or index.wrapped or index.steps[along] != ONE:
        return None
    return replace(index, wrapped=((along, Wrapped(index.base, size)),))


def _only(index: Tiled | None) -> int | None:
    """The one dimension along which a tile changes."""
    changing = [] if index is None else [d for d, step in enumerate(index.steps) if step]
    return changing[0] if len(changing) == 1 else None


def _reshaped(made: Operation, source: Tiled) -> Tiled | None:
    """The same numbers at other places of a tile."""
    steps = source.steps
    match made.name:
        case "tile.expand_dims":
            at = made.integer("axis")
            steps = (*steps[:at], ZERO, *steps[at:])
            kept = tuple((d + (d >= at), wrapped) for d, wrapped in source.wrapped)
            return Tiled(source.base, steps, kept)
        case "tile.transpose":
            order = made.integers("order")
            kept = tuple((order.index(d), wrapped) for d, wrapped in source.wrapped)
            return Tiled(source.base, tuple(steps[d] for d in order), kept)
        case "tile.broadcast":
            before, after = shape_of(made.operands[0].type), shape_of(made.result.type)
            spread = [a != b for a, b in zip(before, after, strict=True)]
            if any(spread[d] for d, _ in source.wrapped):
                return None
            return replace(
                source, steps=tuple(ZERO if s else p for s, p in zip(spread, steps, strict=True))
            )
        case _:
            return _regrouped(made, source)


def _regrouped(made: Operation, source: Tiled) -> Tiled | None:
    """A reshape that only puts in dimensions of size 1, or takes them out."""
    before, after = shape_of(made.operands[0].type), shape_of(made.result.type)
    if [n for n in before if n != 1] != [n for n in after if n != 1] or source.wrapped:
        return None
    kept = iter([step for n, step in zip(before, source.steps, strict=True) if n != 1])
    return replace(source, steps=tuple(ZERO if n == 1 else next(kept) for n in after))


def _renumbered(mask: Mask, to: Callable[[int], int]) -> Mask:
    return replace(mask, bounds=tuple(replace(b, dimension=to(b.dimension)) for b in mask.bounds))
