"""Whether a kernel is well formed: every operation as its row says, on values of the right types.

%c = arith.addf %a, %b     `arith.addf` of tile<128xf32> and tile<64xf32>: of one type

Front ends call it last, so that nobody behind them has to ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from stretto.kernel.errors import KernelError
from stretto.kernel.tree import Kernel, Operation, Region
from stretto.kernel.types import (
    Pointer,
    Scalar,
    Tile,
    Token,
    Type,
    View,
    element_of,
    like,
    shape_of,
)
from stretto.ops.operations import OPERATIONS
from stretto.ops.predicates import PREDICATES
from stretto.ops.rows import NONE

_FALSE = Scalar("i1")
_TERMINATORS = ("scf.yield", "scf.condition", "tile.return", "tile.yield")


def check_kernel(kernel: Kernel) -> None:
    """KernelError at the first operation that is not as it should be."""
    _region(kernel.body, "tile.return")
    for operation in kernel.walk():
        _signature(operation)
    for operation in kernel.walk():
        row = OPERATIONS[operation.name]
        if row.elementwise:
            _elementwise(operation)
        elif row.types != NONE:
            RULES[row.types](operation)


def _region(region: Region, ends: str) -> None:
    if not region.operations or region.terminator.name != ends:
        place = region.operations[-1].location if region.operations else None
        if place is not None:
            raise KernelError(place, f"a region that does not end in `{ends}`")
    for operation in region.operations[:-1]:
        if operation.name in _TERMINATORS:
            told = f"`{operation.name}` in the middle of a region"
            raise KernelError(operation.location, told)


def _signature(operation: Operation) -> None:
    row = OPERATIONS.get(operation.name)
    if row is None:
        raise KernelError(operation.location, f"`{operation.name}` is no operation of a kernel")
    for what, number, (least, most) in (
        ("operands", len(operation.operands), row.operands),
        ("results", len(operation.results), row.results),
    ):
        if number < least or (most is not None and number > most):
            raise _wrong(operation, f"has {number} {what}", row.says)
    if len(operation.regions) != row.regions:
        raise _wrong(operation, f"has {len(operation.regions)} regions, not {row.regions}")
    for name in row.attributes:
        if name not in operation.attributes:
            raise _wrong(operation, f"has no `{name}`")


def _wrong(operation: Operation, told: str, hint: str = "") -> KernelError:
    return KernelError(operation.location, f"`{_spoken(operation.name)}` {told}", hint)


def _spoken(name: str) -> str:
    return name.removeprefix("tile.")


def _refuse(operation: Operation, hint: str = "") -> KernelError:
    given = ", ".join(str(value.type) for value in operation.operands) or "nothing"
    made = ", ".join(str(value.type) for value in operation.results)
    return _wrong(operation, f"of {given}" + (f" cannot be {made}" if made else ""), hint)


def _want(operation: Operation, holds: bool, hint: str = "") -> None:
    if not holds:
        raise _refuse(operation, hint)


def _is(type: Type, integer: bool) -> bool:
    element = element_of(type)
    return isinstance(element, Scalar) and element.is_integer == integer


def _numbers(type: Type) -> bool:
    return isinstance(element_of(type), Scalar)


# Rules --------------------------------------------------------------------------------------


_FLOATS = "fg"
_INTEGERS = "ij"
_LETTERS = "fgijpxy"
_SPOKEN = {"f": "floats", "g": "floats", "i": "integers", "j": "integers", "p": "addresses"}


def _fits(letter: str, element: Scalar | Pointer) -> bool:
    """Whether a letter of a row's types may be an element."""
    if letter in _FLOATS or letter in _INTEGERS:
        return isinstance(element, Scalar) and element.is_integer == (letter in _INTEGERS)
    return letter != "p" or isinstance(element, Pointer)


def _elementwise(operation: Operation) -> None:
    """Types as its row says: of one shape, of one type where the letter is one."""
    row = OPERATIONS[operation.name]
    pattern, _, relation = row.types.partition(" ; ")
    taken, _, made = pattern.partition(" -> ")
    letters = (*taken.split(), made)
    types = [value.type for value in (*operation.operands, *operation.results)]
    shape = shape_of(types[-1])
    known: dict[str, Scalar | Pointer] = {}
    for letter, type in zip(letters, types, strict=True):
        element = element_of(type)
        if element is None:
            raise _refuse(operation)
        if letter == "c":
            _want(operation, type in (_FALSE, like(types[-1], _FALSE)), "the condition is i1")
            continue
        _want(operation, shape_of(type) == shape, "they are to be of one shape")
        if letter not in _LETTERS:
            _want(operation, str(element) == letter, f"it wants {letter}")
            continue
        _want(operation, _fits(letter, element), f"it takes {_SPOKEN.get(letter, 'numbers')}")
        _want(operation, known.setdefault(letter, element) == element, "they are to be of one type")
    if relation:
        told = "of one width" if relation == "bits" else f"the result is to be {relation}"
        _want(operation, _related(relation, known[letters[0]], known[made]), told)
    predicates = PREDICATES.get(operation.name)
    if predicates is not None and operation.text("predicate") not in predicates:
        raise _wrong(operation, f"has no predicate `{operation.text('predicate')}`")


def _related(relation: str, before: Scalar | Pointer, after: Scalar | Pointer) -> bool:
    """Whether the element of the result is to that of the operand as a row says."""
    if relation == "bits":
        same = isinstance(before, Pointer) == isinstance(after, Pointer)
        return same and before.bits == after.bits
    return before.bits < after.bits if relation == "wider" else before.bits > after.bits


def _constant(operation: Operation) -> None:
    type, value = operation.result.type, operation.attributes["value"]
    _want(operation, _numbers(type), "a constant is a number or a tile of numbers")
    many = value if isinstance(value, tuple) else (value,)
    wanted = prod(shape_of(type)) if isinstance(value, tuple) else 1
    numbers = all(isinstance(v, int | float) for v in many)
    _want(operation, len(many) == wanted and numbers, "of as many numbers as it has elements")
    element = element_of(type)
    if isinstance(element, Scalar) and element.is_integer:
        lower, upper = -(1 << element.bits - 1), 1 << element.bits
        fits = all(isinstance(v, int) and lower <= v < upper for v in many)
        _want(operation, fits, f"whole numbers of {element.bits} bits")


def _grid(operation: Operation) -> None:
    axis = operation.attributes["axis"]
    _want(operation, isinstance(axis, int) and 0 <= axis <= 2, "a grid has axes 0, 1 and 2")
    _want(operation, isinstance(operation.result.type, Scalar) and _is(operation.result.type, True))


def _splat(operation: Operation) -> None:
    source, target = operation.operands[0].type, operation.result.type
    _want(operation, isinstance(target, Tile) and target.element == source)


def _range(operation: Operation) -> None:
    start, end = operation.attributes["start"], operation.attributes["end"]
    type = operation.result.type
    _want(operation, isinstance(start, int) and isinstance(end, int) and _is(type, True))
    if isinstance(start, int) and isinstance(end, int):
        _want(operation, shape_of(type) == (end - start,) and end > start)


def _broadcast(operation: Operation) -> None:
    source, target = operation.operands[0].type, operation.result.type
    _same_element(operation)
    before, after = shape_of(source), shape_of(target)
    _want(
        operation,
        len(before) == len(after) and all(n in (1, w) for n, w in zip(before, after, strict=True)),
        "only dimensions of size 1 are repeated",
    )


def _same_element(operation: Operation) -> None:
    elements = {element_of(v.type) for v in (*operation.operands, *operation.results)}
    _want(operation, len(elements) == 1 and None not in elements, "of one element")


def _expand(operation: Operation) -> None:
    _same_element(operation)
    axis, before = operation.attributes["axis"], shape_of(operation.operands[0].type)
    _want(operation, isinstance(axis, int) and 0 <= axis <= len(before))
    if isinstance(axis, int):
        _want(operation, (*before[:axis], 1, *before[axis:]) == shape_of(operation.result.type))


def _reshape(operation: Operation) -> None:
    _same_element(operation)
    a, b = shape_of(operation.operands[0].type), shape_of(operation.result.type)
    _want(operation, prod(a) == prod(b), "as many elements")


def _transpose(operation: Operation) -> None:
    _same_element(operation)
    before = shape_of(operation.operands[0].type)
    order = operation.attributes["order"] or tuple(reversed(range(len(before))))
    whole = isinstance(order, tuple) and sorted(map(str, order)) == sorted(
        map(str, range(len(before)))
    )
    _want(operation, whole, "`order` names every dimension once")
    if isinstance(order, tuple):
        picked = tuple(before[i] for i in order if isinstance(i, int))
        _want(operation, picked == shape_of(operation.result.type))


def _join(operation: Operation) -> None:
    _same_element(operation)
    a, b = (shape_of(value.type) for value in operation.operands)
    _want(operation, a == b and shape_of(operation.result.type) == (*a, 2))


def _split(operation: Operation) -> None:
    _same_element(operation)
    before = shape_of(operation.operands[0].type)
    halves = {shape_of(value.type) for value in operation.results}
    _want(operation, before[-1:] == (2,) and halves == {before[:-1]})


def _cat(operation: Operation) -> None:
    _same_element(operation)
    a, b = (shape_of(value.type) for value in operation.operands)
    whole = shape_of(operation.result.type)
    axis = operation.integer("axis")
    fits = len(a) == len(b) and 0 <= axis < len(a)
    _want(operation, fits and whole == (*a[:axis], a[axis] + b[axis], *a[axis + 1 :]))
    _want(operation, all(x == y for k, (x, y) in enumerate(zip(a, b, strict=True)) if k != axis))


def _pointed(operation: Operation) -> Scalar | Tile:
    """What stands at the addresses of an operation."""
    type = operation.operands[0].type
    element = element_of(type)
    if not isinstance(element, Pointer):
        raise _refuse(operation, "it takes addresses first")
    return Tile(type.shape, element.pointee) if isinstance(type, Tile) else element.pointee


def _masked(operation: Operation, position: int) -> None:
    if len(operation.operands) > position:
        wanted = like(operation.operands[0].type, _FALSE)
        _want(operation, operation.operands[position].type == wanted, "its mask is of i1")


def _offset(operation: Operation) -> None:
    _pointed(operation)
    address, by = (value.type for value in operation.operands)
    _want(operation, _is(by, True) and shape_of(by) == shape_of(address), "one offset an address")
    _want(operation, operation.result.type == address)


def _load(operation: Operation) -> None:
    wanted = _pointed(operation)
    _masked(operation, 1)
    if len(operation.operands) > 2:
        _want(operation, operation.operands[2].type == wanted, "what else is read is of one type")
    _want(operation, operation.results[0].type == wanted)


def _store(operation: Operation) -> None:
    _want(operation, operation.operands[1].type == _pointed(operation), "a value an address")
    _masked(operation, 2)


def _atomic(operation: Operation) -> None:
    wanted = _pointed(operation)
    taken = 1 if operation.name == "tile.atomic_rmw" else 2
    _masked(operation, 1 + taken)
    values = [value.type for value in operation.operands[1 : 1 + taken]]
    _want(operation, all(type == wanted for type in values), "a value an address")
    _want(operation, operation.results[0].type == wanted)


def _view(operation: Operation) -> None:
    base, *numbers = (value.type for value in operation.operands)
    type = operation.result.type
    if not isinstance(type, View) or not isinstance(base, Pointer):
        raise _refuse(operation, "it takes an address and makes a view")
    _want(operation, base.pointee == type.element, "of one element")
    open_sizes = type.shape.count(None) if type.shape else len(type.tile)
    open_strides = type.strides.count(None) if type.strides else len(type.tile)
    _want(operation, len(numbers) == open_sizes + open_strides, "a size and a stride a dimension")
    _want(operation, all(isinstance(n, Scalar) and n.is_integer for n in numbers))


def _through(operation: Operation) -> None:
    """A load or a store through a view."""
    view, *rest = (value.type for value in operation.operands)
    if not isinstance(view, View):
        raise _refuse(operation, "it goes through a view")
    stored = operation.name != "tile.view_load"
    tile = rest.pop(0) if stored else operation.results[0].type
    _want(operation, isinstance(tile, Tile) and tile.element == view.element, "of one element")
    _want(operation, prod(shape_of(tile)) == prod(view.tile), "a whole tile")
    rank = len(view.shape) or len(view.tile)
    whole = all(isinstance(n, Scalar) and n.is_integer for n in rest)
    _want(operation, len(rest) == rank and whole, "an integer coordinate a dimension")


def _rows(operation: Operation) -> None:
    """Rows of a matrix that are picked through a view."""
    view, *rest = (value.type for value in operation.operands)
    tile = rest.pop(0) if operation.name == "tile.view_scatter" else operation.results[0].type
    rows, column = rest
    if not isinstance(view, View) or len(view.tile) != 2:
        raise _refuse(operation, "it goes through a view of a matrix")
    _want(operation, _is(rows, True) and _is(column, True), "rows and a column are integers")
    _want(operation, len(shape_of(rows)) == 1 and shape_of(column) == (), "one row an index")
    whole = Tile((*shape_of(rows), view.tile[1]), view.element)
    _want(operation, tile == whole, f"a tile of {whole}")


def _gather(operation: Operation) -> None:
    source, indices = (value.type for value in operation.operands)
    _want(operation, operation.result.type == _with_shape(source, shape_of(indices)))
    _want(operation, _is(indices, True), "indices are integers")
    axis, before, after = operation.attributes["axis"], shape_of(source), shape_of(indices)
    _want(operation, isinstance(axis, int) and 0 <= axis < len(before) == len(after))
    pairs = enumerate(zip(before, after, strict=True))
    _want(operation, all(a == b for i, (a, b) in pairs if i != axis), "all else of one size")


def _with_shape(type: Type, shape: tuple[int, ...]) -> Type:
    element = element_of(type)
    return type if element is None else Tile(shape, element)


def _histogram(operation: Operation) -> None:
    source, *mask = (value.type for value in operation.operands)
    made = operation.result.type
    _want(operation, _is(source, True) and _is(made, True), "it counts integers")
    _want(operation, len(shape_of(source)) == len(shape_of(made)) == 1, "of a row, to a row")
    _want(operation, all(type == like(source, _FALSE) for type in mask), "its mask is of i1")


def _dot(operation: Operation) -> None:
    a, b, c = (value.type for value in operation.operands)
    _want(operation, c == operation.result.type, "the accumulator is of the result's type")
    x, y, z = shape_of(a), shape_of(b), shape_of(c)
    fits = len(x) == len(y) == len(z) in (2, 3) and x[-1] == y[-2] and x[:-2] == y[:-2] == z[:-2]
    _want(operation, fits and z[-2:] == (x[-2], y[-1]), "rows of the one by columns of the other")
    _want(operation, _numbers(a) and _numbers(b) and _is(a, True) == _is(b, True) == _is(c, True))


def _reduce(operation: Operation) -> None:
    axis = operation.attributes["axis"]
    shapes = {shape_of(value.type) for value in operation.operands}
    _want(operation, len(shapes) == 1 and len(operation.operands) == len(operation.results))
    (shape,) = shapes
    _want(operation, isinstance(axis, int) and 0 <= axis < len(shape), "an axis that it has")
    if isinstance(axis, int):
        kept = shape if operation.name == "tile.scan" else (*shape[:axis], *shape[axis + 1 :])
        for source, result in zip(operation.operands, operation.results, strict=True):
            same = element_of(source.type) == element_of(result.type)
            _want(operation, shape_of(result.type) == kept and same)
    (body,) = operation.regions
    elements = [element_of(value.type) for value in operation.operands]
    given = [value.type for value in body.arguments]
    _want(operation, given == [*elements, *elements], "two elements of each are combined")
    _ends(operation, body, "tile.yield", elements)


def _ends(operation: Operation, region: Region, name: str, types: Sequence[Type | None]) -> None:
    _region(region, name)
    if not region.operations:
        raise _wrong(operation, "has an empty region")
    made: list[Type] = [value.type for value in region.terminator.operands]
    if made != list(types):
        told = ", ".join(map(str, made)) or "nothing"
        wanted = ", ".join(map(str, types)) or "nothing"
        raise KernelError(
            region.terminator.location, f"{told} is handed on where {wanted} is wanted"
        )


def _types_of(operation: Operation) -> list[Type]:
    return [value.type for value in operation.results]


def _for(operation: Operation) -> None:
    lower, upper, step, *initial = (value.type for value in operation.operands)
    index = isinstance(lower, Scalar) and lower.is_integer
    _want(operation, index and lower == upper == step, "bounds and step are integers of one type")
    (body,) = operation.regions
    given = [value.type for value in body.arguments]
    types = _types_of(operation)
    _want(operation, given == [lower, *initial] and initial == types, "carried values of one type")
    _ends(operation, body, "scf.yield", types)


def _if(operation: Operation) -> None:
    _want(operation, operation.operands[0].type == _FALSE, "its condition is i1")
    for region in operation.regions:
        _want(operation, not region.arguments)
        _ends(operation, region, "scf.yield", _types_of(operation))


def _while(operation: Operation) -> None:
    initial: list[Type] = [value.type for value in operation.operands]
    before, after = operation.regions
    types = _types_of(operation)
    _want(operation, [v.type for v in before.arguments] == initial)
    _want(operation, [v.type for v in after.arguments] == types)
    _ends(operation, before, "scf.condition", [_FALSE, *types])
    _ends(operation, after, "scf.yield", initial)


def _condition(operation: Operation) -> None:
    (type,) = (value.type for value in operation.operands)
    if operation.name == "tile.assume":
        _want(operation, type == _FALSE, "a condition is i1")
    _want(operation, element_of(type) == _FALSE, "a condition is of i1")


def _hint(operation: Operation) -> None:
    _want(operation, operation.operands[0].type == operation.result.type)


def _token(operation: Operation) -> None:
    _want(
        operation, all(isinstance(v.type, Token) for v in (*operation.operands, *operation.results))
    )


RULES: dict[str, Callable[[Operation], None]] = {
    "atomic": _atomic,
    "broadcast": _broadcast,
    "cat": _cat,
    "condition": _condition,
    "constant": _constant,
    "dot": _dot,
    "expand_dims": _expand,
    "for": _for,
    "gather": _gather,
    "grid": _grid,
    "hint": _hint,
    "histogram": _histogram,
    "if": _if,
    "join": _join,
    "load": _load,
    "offset": _offset,
    "range": _range,
    "reduce": _reduce,
    "reshape": _reshape,
    "rows": _rows,
    "splat": _splat,
    "split": _split,
    "store": _store,
    "through": _through,
    "token": _token,
    "transpose": _transpose,
    "view": _view,
    "while": _while,
}
"""What rows name that are not computed element by element."""
