"""Axis analysis: what is known of integers and addresses along each dimension of a tile.

    %r = range 0 to 128            contiguity 128   divisibility 2^k of 0   constancy 1     0 .. 127
    %b = splat %block * 128        contiguity 1     divisibility 128        constancy 128
    %r + %b                        contiguity 128   divisibility 128        constancy 1

*Contiguity* along a dimension: in runs of so many, each element is one more than the one before.
*Divisibility*: the first element of every such run is a multiple of it (addresses: in bytes).
*Constancy*: in runs of so many, all elements are equal. Runs begin at multiples of their length.
*Bounds*: no element is below the one or above the other. Nothing is guessed: 1, and no bound, are
always true. Lengths are powers of two, except where a whole dimension is one run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from stretto.kernel.tree import Kernel, Operation, Region, Value
from stretto.kernel.types import Pointer, Scalar, Type, element_of, shape_of
from stretto.ops.operations import OPERATIONS

MOST = 1 << 30
"""The divisibility of zero, and the most that is told."""
_ROUNDS = 8
"""How often a loop is gone round before what still changes is given up."""
Bound = int | None


@dataclass(frozen=True, slots=True)
class Axis:
    """What is known of one value; one number a dimension, a scalar has one."""

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    lower: Bound = None
    upper: Bound = None

    @property
    def constant(self) -> int | None:
        """The value, if there is only one it can be."""
        return self.lower if self.lower is not None and self.lower == self.upper else None

    def __str__(self) -> str:
        told = [
            f"contiguity {list(self.contiguity)}",
            f"divisibility {list(self.divisibility)}",
            f"constancy {list(self.constancy)}",
        ]
        if self.lower is not None or self.upper is not None:
            low = "" if self.lower is None else str(self.lower)
            told.append(f"bounds {low}..{'' if self.upper is None else self.upper}")
        return ", ".join(told)


def analyse(kernel: Kernel, grid: Sequence[int | None] = ()) -> Mapping[Value, Axis]:
    """What is known of every integer, address and condition of a kernel."""
    known = _Analysis(grid)
    for parameter in kernel.parameters:
        axis = _divisible(parameter.value.type, parameter.divisibility)
        known.define(parameter.value, bounded(axis, parameter.lower, parameter.upper))
    known.region(kernel.body)
    return known.axes


def power_of_two(number: int) -> int:
    """The largest power of two that divides a number."""
    return MOST if number == 0 else min(MOST, number & -number)


def _dimensions(type: Type) -> tuple[int, ...]:
    return shape_of(type) or (1,)


def nothing_known(type: Type) -> Axis:
    """Of a value that could be anything; a condition is at least 0 or 1."""
    ones = (1,) * len(_dimensions(type))
    element = element_of(type)
    narrow = isinstance(element, Scalar) and element.element == "i1"
    return Axis(ones, ones, ones, 0 if narrow else None, 1 if narrow else None)


def _divisible(type: Type, by: int) -> Axis:
    return replace(nothing_known(type), divisibility=(max(1, power_of_two(by)),))


def bounded(axis: Axis, lower: int | None, upper: int | None) -> Axis:
    """What is known, and bounds that are promised."""
    if lower is not None and (axis.lower is None or axis.lower < lower):
        axis = replace(axis, lower=lower)
    if upper is not None and (axis.upper is None or axis.upper > upper):
        axis = replace(axis, upper=upper)
    return axis


def _number(type: Type, value: int) -> Axis:
    shape = _dimensions(type)
    ones = (1,) * len(shape)
    return Axis(ones, (power_of_two(value),) * len(shape), shape, value, value)


def _starts(axis: Axis, runs: Sequence[int], size: int = 1) -> tuple[int, ...]:
    """The divisibility of the first elements, where runs are taken to be shorter than they are."""
    return tuple(
        divisor if run == whole else gcd(divisor, run * size)
        for divisor, run, whole in zip(axis.divisibility, runs, axis.contiguity, strict=True)
    )


def _join(a: Axis, b: Axis, size: int = 1) -> Axis:
    """What holds of both."""
    runs = tuple(map(gcd, a.contiguity, b.contiguity))
    return Axis(
        runs,
        tuple(map(gcd, _starts(a, runs, size), _starts(b, runs, size))),
        tuple(map(gcd, a.constancy, b.constancy)),
        None if a.lower is None or b.lower is None else min(a.lower, b.lower),
        None if a.upper is None or b.upper is None else max(a.upper, b.upper),
    )


class _Analysis:
    def __init__(self, grid: Sequence[int | None]) -> None:
        self.axes: dict[Value, Axis] = {}
        self._grid = grid
        self._made_by: dict[Value, Operation] = {}

    def define(self, value: Value, axis: Axis) -> None:
        if isinstance(element_of(value.type), Pointer) or _is_integer(value.type):
            whole = len(axis.contiguity) == len(_dimensions(value.type))  # no scalar was spread
            self.axes[value] = _fit(axis if whole else nothing_known(value.type), value.type)

    def of(self, value: Value) -> Axis:
        found = self.axes.get(value)
        return nothing_known(value.type) if found is None else found

    def region(self, region: Region) -> None:
        for operation in region.operations:
            for result in operation.results:
                self._made_by[result] = operation
            self._operation(operation)

    def _operation(self, operation: Operation) -> None:
        match operation.name:
            case "scf.for":
                self._for(operation)
            case "scf.if":
                self._if(operation)
            case "scf.while":
                self._while(operation)
            case "tile.assume" | "nv_tileas.assume":
                self._assume(operation.operands[0])
            case _:
                for region in operation.regions:
                    self.region(region)
                row = OPERATIONS.get(_plain(operation.name))
                rule = None if row is None else RULES.get(row.axis)
                operands = [self.of(value) for value in operation.operands]
                alike = operands[1:] if _plain(operation.name) == "arith.select" else operands
                spread = len({len(axis.contiguity) for axis in alike}) > 1
                if rule is not None and len(operation.results) == 1 and not spread:
                    self.define(operation.result, rule(operation, operands))
                elif _plain(operation.name) in _GRID:
                    self.define(operation.result, self._block(operation))
                else:
                    for result in operation.results:
                        self.define(result, nothing_known(result.type))

    def _block(self, operation: Operation) -> Axis:
        axis = operation.integer("axis")
        count = self._grid[axis] if axis < len(self._grid) else None
        if operation.name.endswith("count"):
            if count is not None and not operation.name.endswith("tile_count"):
                return _number(operation.result.type, count)
            return replace(nothing_known(operation.result.type), lower=1)
        upper = (1 << 31) - 2 if count is None else count - 1
        return replace(nothing_known(operation.result.type), lower=0, upper=upper)

    # Control flow -------------------------------------------------------------------------

    def _for(self, operation: Operation) -> None:
        lower, upper, step, *initial = operation.operands
        (body,) = operation.regions
        index, *carried = body.arguments
        first, last, by = self.of(lower), self.of(upper), self.of(step)
        divisor = gcd(first.divisibility[0], by.divisibility[0])
        top = None if last.upper is None else last.upper - 1
        if top is not None and by.constant and by.constant > 0 and first.constant is not None:
            # The last turn begins where the steps lead, not just below the end.
            top -= max(0, top - first.constant) % by.constant
        ones = (1,)
        self.define(index, Axis(ones, (divisor,), ones, first.lower, top))
        ends = self._round(body, carried, [self.of(value) for value in initial])
        for result, axis in zip(operation.results, ends, strict=True):
            self.define(result, axis)

    def _round(self, body: Region, carried: Sequence[Value], states: list[Axis]) -> list[Axis]:
        """The carried values of a loop, gone round until nothing changes."""
        for number in range(_ROUNDS):
            for value, axis in zip(carried, states, strict=True):
                self.define(value, axis)
            self.region(body)
            made = [self.of(value) for value in body.terminator.operands]
            after = [_join(old, new) for old, new in zip(states, made, strict=True)]
            if after == states:
                return states
            # Bounds may move for ever; lengths only ever halve.
            states = [
                _widened(old, new) if number else new
                for old, new in zip(states, after, strict=True)
            ]
        states = [nothing_known(value.type) for value in carried]
        for value, axis in zip(carried, states, strict=True):
            self.define(value, axis)
        self.region(body)
        return states

    def _if(self, operation: Operation) -> None:
        for region in operation.regions:
            self.region(region)
        ends = [region.terminator.operands for region in operation.regions]
        for result, values in zip(operation.results, zip(*ends, strict=False), strict=False):
            one, other = values
            self.define(result, _join(self.of(one), self.of(other)))

    def _while(self, operation: Operation) -> None:
        for region in operation.regions:
            for argument in region.arguments:
                self.define(argument, nothing_known(argument.type))
            self.region(region)
        for result in operation.results:
            self.define(result, nothing_known(result.type))

    # Promises -----------------------------------------------------------------------------

    def _assume(self, condition: Value) -> None:
        """`x >= 8`, `x % 16 == 0`, and several of such."""
        made = self._made_by.get(condition)
        if made is None:
            return
        if made.name == "arith.andi":
            for operand in made.operands:
                self._assume(operand)
        if made.name != "arith.cmpi":
            return
        left, right = made.operands
        self._compare(made.text("predicate"), left, self.of(right))
        self._compare(_MIRRORED.get(made.text("predicate"), ""), right, self.of(left))

    def _compare(self, predicate: str, value: Value, other: Axis) -> None:
        axis = self.of(value)
        low, high = other.lower, other.upper
        match predicate:
            case "sge" | "eq" | "sgt" if low is not None:
                least = low + (predicate == "sgt")
                axis = replace(axis, lower=least if axis.lower is None else max(axis.lower, least))
            case _:
                pass
        match predicate:
            case "sle" | "eq" | "slt" if high is not None:
                most = high - (predicate == "slt")
                axis = replace(axis, upper=most if axis.upper is None else min(axis.upper, most))
            case _:
                pass
        made = self._made_by.get(value)
        remainder = made is not None and made.name in ("arith.remsi", "arith.remui")
        if predicate == "eq" and other.constant == 0 and made is not None and remainder:
            self._divides(made.operands[0], self.of(made.operands[1]).constant)
        self.define(value, axis)

    def _divides(self, value: Value, by: int | None) -> None:
        if by:
            axis = self.of(value)
            divisor = power_of_two(by)
            more = tuple(max(d, divisor) for d in axis.divisibility)
            self.define(value, replace(axis, divisibility=more))


_GRID = ("tile.block_index", "tile.block_count", "tile.tile_count")
_LOWERED = "nv_tileas."


def _plain(name: str) -> str:
    """What an operation is called before it is lowered."""
    if not name.startswith(_LOWERED):
        return "arith.extui" if name == "arith.index_castui" else name  # which modules may have
    kind = name.removeprefix(_LOWERED)
    return kind if kind.startswith(("arith.", "math.", "libdevice.")) else f"tile.{kind}"


_MIRRORED = {"sge": "sle", "sle": "sge", "sgt": "slt", "slt": "sgt", "eq": "eq"}


def _is_integer(type: Type) -> bool:
    element = element_of(type)
    return isinstance(element, Scalar) and element.is_integer


def _fit(axis: Axis, type: Type) -> Axis:
    """Bounds that its type could not hold say nothing: the value may have gone round."""
    element = element_of(type)
    if not isinstance(element, Scalar) or element.element == "i1":
        return axis
    most = 1 << (element.bits - 1)
    if (axis.lower is not None and axis.lower < -most) or (
        axis.upper is not None and axis.upper >= most
    ):
        return replace(axis, lower=None, upper=None)
    return axis


def _widened(old: Axis, new: Axis) -> Axis:
    lower = new.lower if new.lower == old.lower else None
    upper = new.upper if new.upper == old.upper else None
    return replace(new, lower=lower, upper=upper)


# Rules --------------------------------------------------------------------------------------

Rule = Callable[[Operation, Sequence[Axis]], Axis]


def _constant(operation: Operation, _: Sequence[Axis]) -> Axis:
    value = operation.attributes.get("value")
    if isinstance(value, tuple):
        whole = [v for v in value if isinstance(v, int)]
        axis = nothing_known(operation.result.type)
        return replace(axis, lower=min(whole), upper=max(whole)) if whole else axis
    return (
        _number(operation.result.type, int(value))
        if isinstance(value, int)
        else nothing_known(operation.result.type)
    )


def _range(operation: Operation, _: Sequence[Axis]) -> Axis:
    start, end = operation.integer("start"), operation.integer("end")
    return Axis((end - start,), (power_of_two(start),), (1,), start, end - 1)


def _splat(operation: Operation, operands: Sequence[Axis]) -> Axis:
    (a,) = operands
    shape = _dimensions(operation.result.type)
    return Axis((1,) * len(shape), a.divisibility[:1] * len(shape), shape, a.lower, a.upper)


def _same(operation: Operation, operands: Sequence[Axis]) -> Axis:  # noqa: ARG001
    return operands[0]


def _expand(operation: Operation, operands: Sequence[Axis]) -> Axis:
    (a,) = operands
    at = operation.integer("axis")
    if not shape_of(operation.operands[0].type):
        return _splat(operation, operands)
    least = min(a.divisibility)

    def put(row: tuple[int, ...], number: int) -> tuple[int, ...]:
        return (*row[:at], number, *row[at:])

    # A dimension of one element begins a run at every element.
    divisor = least if max(a.contiguity) == 1 else 1
    return Axis(
        put(a.contiguity, 1), put(a.divisibility, divisor), put(a.constancy, 1), a.lower, a.upper
    )


def _broadcast(operation: Operation, operands: Sequence[Axis]) -> Axis:
    (a,) = operands
    before, after = _dimensions(operation.operands[0].type), _dimensions(operation.result.type)
    if len(before) != len(after):
        return nothing_known(operation.result.type)
    spread = [old != new for old, new in zip(before, after, strict=True)]
    # (A dimension of size 1 has runs of 1: nothing becomes shorter.)
    return Axis(
        tuple(1 if s else c for s, c in zip(spread, a.contiguity, strict=True)),
        a.divisibility,
        tuple(n if s else c for s, n, c in zip(spread, after, a.constancy, strict=True)),
        a.lower,
        a.upper,
    )


def _transpose(operation: Operation, operands: Sequence[Axis]) -> Axis:
    (a,) = operands
    said = operation.integers("order") or operation.integers("permutation")
    order = said or tuple(reversed(range(len(a.contiguity))))
    if len(order) != len(a.contiguity):  # a buffer, of which nothing is known
        return nothing_known(operation.result.type)
    return Axis(
        tuple(a.contiguity[i] for i in order),
        tuple(a.divisibility[i] for i in order),
        tuple(a.constancy[i] for i in order),
        a.lower,
        a.upper,
    )


def _reshape(operation: Operation, operands: Sequence[Axis]) -> Axis:
    (a,) = operands
    axis = nothing_known(operation.result.type)
    return replace(axis, lower=a.lower, upper=a.upper)


def _ends(operation: Operation, operands: Sequence[Axis]) -> list[tuple[int, int]]:
    """The least and the greatest that each operand can be: at the most what its type holds.

    What then does not fit the result's type may have gone round, and `_fit` forgets it.
    """
    found: list[tuple[int, int]] = []
    for value, axis in zip(operation.operands, operands, strict=True):
        element = element_of(value.type)
        most = 1 << ((element.bits if isinstance(element, Scalar) else 64) - 1)
        found.append(
            (
                -most if axis.lower is None else axis.lower,
                most - 1 if axis.upper is None else axis.upper,
            )
        )
    return found


def _constancy(a: Axis, b: Axis) -> tuple[int, ...]:
    return tuple(map(gcd, a.constancy, b.constancy))


def _sum(a: Axis, b: Axis, size: int = 1) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Contiguity and divisibility of a + b; where a is an address, b counts elements of a size."""
    runs: list[int] = []
    divisors: list[int] = []
    scaled = [min(MOST, d * size) for d in b.divisibility]
    for i, (contiguous, run) in enumerate(zip(a.contiguity, b.contiguity, strict=True)):
        one, other = gcd(contiguous, b.constancy[i]), gcd(a.constancy[i], run)
        best = max(one, other)
        runs.append(best)
        # Whoever is not constant in a run starts anew in it, as far as it is contiguous.
        left = a.divisibility[i] if best == contiguous else gcd(a.divisibility[i], best * size)
        right = scaled[i] if best == run else gcd(scaled[i], best * size)
        if contiguous == 1:
            left = a.divisibility[i]
        if run == 1:
            right = scaled[i]
        divisors.append(gcd(left, right))
    return tuple(runs), tuple(divisors)


def _add(operation: Operation, operands: Sequence[Axis]) -> Axis:
    a, b = operands
    (low, high), (least, most) = _ends(operation, operands)
    return Axis(
        *_sum(a, b),
        _constancy(a, b),
        low + least,
        high + most,
    )


def _subtract(operation: Operation, operands: Sequence[Axis]) -> Axis:
    a, b = operands
    (low, high), (least, most) = _ends(operation, operands)
    runs = tuple(map(gcd, a.contiguity, b.constancy))
    others = tuple(1 if c > 1 else d for c, d in zip(b.contiguity, b.divisibility, strict=True))
    return Axis(
        runs,
        tuple(map(gcd, _starts(a, runs), others)),
        _constancy(a, b),
        low - most,
        high - least,
    )


def _multiply(operation: Operation, operands: Sequence[Axis]) -> Axis:
    a, b = operands
    if a.constant == 1:
        return b
    if b.constant == 1:
        return a
    # Inside a run not every element has the divisor of the first.
    left = [1 if c > 1 else d for c, d in zip(a.contiguity, a.divisibility, strict=True)]
    right = [1 if c > 1 else d for c, d in zip(b.contiguity, b.divisibility, strict=True)]
    first, second = _ends(operation, operands)
    corners = [x * y for x in first for y in second]
    return Axis(
        (1,) * len(a.contiguity),
        tuple(min(MOST, x * y) for x, y in zip(left, right, strict=True)),
        _constancy(a, b),
        min(corners),
        max(corners),
    )


def _divide(operation: Operation, operands: Sequence[Axis]) -> Axis:  # noqa: ARG001
    a, b = operands
    by = b.constant
    if by == 1:
        return a
    runs, divisors = list(_constancy(a, b)), [1] * len(a.contiguity)
    if by is not None and by > 0:
        for i, (contiguous, divisor) in enumerate(zip(a.contiguity, a.divisibility, strict=True)):
            if contiguous > 1:
                runs[i] = max(runs[i], gcd(contiguous, gcd(divisor, by)))
            elif divisor % by == 0:
                divisors[i] = divisor // by
    lower = upper = None
    if by is not None and by > 0 and a.lower is not None and a.lower >= 0:
        lower, upper = a.lower // by, None if a.upper is None else a.upper // by
    elif a.lower is not None and a.lower >= 0 and b.lower is not None and b.lower > 0:
        lower, upper = 0, a.upper
    return Axis((1,) * len(runs), tuple(divisors), tuple(runs), lower, upper)


def _divide_up(operation: Operation, operands: Sequence[Axis]) -> Axis:
    """What divides without a rest divides alike; else one more at the most."""
    a, b = operands
    down, by = _divide(operation, operands), b.constant
    exact = (
        by is not None
        and by > 0
        and all(c == 1 and d % by == 0 for c, d in zip(a.contiguity, a.divisibility, strict=True))
    )
    if exact:
        return down
    ones = (1,) * len(a.contiguity)
    upper = None if down.upper is None else down.upper + 1
    return Axis(ones, ones, _constancy(a, b), down.lower, upper)


def _unsigned(operation: Operation, operands: Sequence[Axis]) -> Axis:
    """A wider number, filled up with zeros: the same, where it is not negative."""
    (a,) = operands
    return a if a.lower is not None and a.lower >= 0 else _cut(operation, a)


def _narrowed(operation: Operation, operands: Sequence[Axis]) -> Axis:
    """The same number as another type: what it has no room for is cut off."""
    (a,) = operands
    before, after = (element_of(v.type) for v in (operation.operands[0], operation.result))
    wider = isinstance(before, Scalar) and isinstance(after, Scalar) and before.bits <= after.bits
    known = a.lower is not None and a.upper is not None and _fit(a, operation.result.type) == a
    return a if wider or known else _cut(operation, a)


def _cut(operation: Operation, a: Axis) -> Axis:
    """A multiple of a power of two stays one, as far as the narrower of both types goes."""
    elements = [element_of(v.type) for v in (operation.operands[0], operation.result)]
    bits = min(e.bits if isinstance(e, Scalar) else 1 for e in elements)
    first = [1 if c > 1 else d for c, d in zip(a.contiguity, a.divisibility, strict=True)]
    return Axis((1,) * len(first), tuple(gcd(d, 1 << bits) for d in first), a.constancy)


def _remainder(operation: Operation, operands: Sequence[Axis]) -> Axis:  # noqa: ARG001
    a, b = operands
    contiguity = tuple(
        gcd(c, gcd(d, e)) if e > 1 and f >= c else 1
        for c, d, e, f in zip(
            a.contiguity, a.divisibility, b.divisibility, b.constancy, strict=True
        )
    )
    lower = 0 if a.lower is not None and a.lower >= 0 else None
    upper = b.upper - 1 if b.upper is not None and lower == 0 else None
    if a.upper is not None and upper is not None:
        upper = min(upper, a.upper)
    others = [1 if c > 1 else d for c, d in zip(b.contiguity, b.divisibility, strict=True)]
    divisors = tuple(map(gcd, _starts(a, contiguity), others))
    return Axis(contiguity, divisors, _constancy(a, b), lower, upper)


def _compared(operation: Operation, operands: Sequence[Axis]) -> Axis:
    """Whole runs fall on one side where both sides are multiples of their length."""
    a, b = operands
    runs = list(_constancy(a, b))
    predicate = operation.text("predicate")
    for i in range(len(runs)):
        both = gcd(a.divisibility[i], b.divisibility[i])
        if predicate in ("slt", "sge", "ult", "uge"):
            runs[i] = max(runs[i], gcd(gcd(a.contiguity[i], both), b.constancy[i]))
        if predicate in ("sgt", "sle", "ugt", "ule"):
            runs[i] = max(runs[i], gcd(gcd(b.contiguity[i], both), a.constancy[i]))
    return Axis((1,) * len(runs), (1,) * len(runs), tuple(runs), 0, 1)


def _logic(operation: Operation, operands: Sequence[Axis]) -> Axis:
    a, b = operands
    axis = nothing_known(operation.result.type)
    return replace(axis, constancy=_constancy(a, b))


def _select(operation: Operation, operands: Sequence[Axis]) -> Axis:
    condition, a, b = operands
    joined = _join(a, b)
    if not shape_of(operation.operands[0].type):
        return joined
    runs = condition.constancy
    contiguity = tuple(map(gcd, joined.contiguity, runs))
    return replace(
        joined,
        contiguity=contiguity,
        divisibility=_starts(joined, contiguity),
        constancy=tuple(map(gcd, joined.constancy, runs)),
    )


def _shift(operation: Operation, operands: Sequence[Axis]) -> Axis:
    a, b = operands
    by = b.constant
    if by is None or not 0 <= by < 31:
        return _logic(operation, operands)
    power = replace(b, lower=1 << by, upper=1 << by, divisibility=(1 << by,) * len(b.divisibility))
    rule = _multiply if operation.name == "arith.shli" else _divide
    return rule(operation, (a, power))


def _least(operation: Operation, operands: Sequence[Axis]) -> Axis:
    a, b = operands
    smaller = operation.name.startswith("arith.min")
    pick = min if smaller else max

    def bound(x: Bound, y: Bound, certain: bool) -> Bound:
        if x is None or y is None:
            return (x if y is None else y) if certain else None
        return pick(x, y)

    return Axis(
        (1,) * len(a.contiguity),
        tuple(map(gcd, a.divisibility, b.divisibility))
        if max(*a.contiguity, *b.contiguity) == 1
        else (1,) * len(a.contiguity),
        _constancy(a, b),
        bound(a.lower, b.lower, not smaller),
        bound(a.upper, b.upper, smaller),
    )


def _offset(operation: Operation, operands: Sequence[Axis]) -> Axis:
    a, b = operands
    element = element_of(operation.result.type)
    size = max(1, element.pointee.bits // 8) if isinstance(element, Pointer) else 1
    return Axis(*_sum(a, b, size), _constancy(a, b))


def _hint(operation: Operation, operands: Sequence[Axis]) -> Axis:
    (a,) = operands
    found = {
        name: tuple(max(x, y) for x, y in zip(getattr(a, name), said, strict=False))
        for name in ("contiguity", "divisibility", "constancy")
        if len(said := operation.integers(name)) == len(a.contiguity)
    }
    lower, upper = (
        said if isinstance(said := operation.attributes.get(name), int) else None
        for name in ("lower", "upper")
    )
    return bounded(replace(a, **found), lower, upper)


RULES: dict[str, Rule] = {
    "add": _add,
    "broadcast": _broadcast,
    "compared": _compared,
    "constant": _constant,
    "divide": _divide,
    "divide_up": _divide_up,
    "expand": _expand,
    "hint": _hint,
    "least": _least,
    "logic": _logic,
    "multiply": _multiply,
    "narrowed": _narrowed,
    "offset": _offset,
    "range": _range,
    "remainder": _remainder,
    "reshape": _reshape,
    "same": _same,
    "select": _select,
    "shift": _shift,
    "splat": _splat,
    "subtract": _subtract,
    "transpose": _transpose,
    "unsigned": _unsigned,
}
"""By the names that rows have for them."""
