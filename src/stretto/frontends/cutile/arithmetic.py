"""Element by element: what an operation of Tile IR is called in a kernel.

addf              arith.addf
divi signed, rounding<negative_inf>    arith.floordivsi
ftof to the same width                 arith.extf to f32, then arith.truncf
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from stretto.frontends.cutile.names import (
    CONSTANT,
    FROM_SIGNED,
    NARROW_FLOAT,
    POWER,
    SUBTRACT,
    WIDEN_FLOAT,
)
from stretto.frontends.cutile.scope import Number, Scope, kernel_type
from stretto.frontends.tileir import Operation
from stretto.frontends.tileir import types as tileir
from stretto.frontends.tileir.attributes import Dense
from stretto.kernel import Attribute, Pointer, Scalar, Tile, Value
from stretto.kernel.types import element_of, like, shape_of
from stretto.limits import DENSE_ELEMENTS
from stretto.ops.operations import OPERATIONS, of_tileir
from stretto.ops.predicates import PREDICATES
from stretto.ops.rows import NONE

_USUAL = ("nearest_even", "full", "nearest_int_to_zero")


def _word(operation: Operation, name: str) -> str:
    found = operation.attributes.get(name, "")
    return found if isinstance(found, str) else ""


def _is_float(type: Number) -> bool:
    element = element_of(type)
    return isinstance(element, Scalar) and element.is_float


def _is_integer(type: Number) -> bool:
    element = element_of(type)
    return isinstance(element, Scalar) and element.is_integer


def _exactness(operation: Operation) -> dict[str, Attribute]:
    """Rounding and flushing, where they are not the usual ones."""
    said: dict[str, Attribute] = {}
    rounding = _word(operation, "rounding_mode")
    if rounding and rounding not in _USUAL:
        said["rounding"] = rounding
    if operation.attributes.get("flush_to_zero"):
        said["flush_to_zero"] = True
    return said


def computed(scope: Scope, operation: Operation) -> None:
    """Element by element: the row whose words are those of its attributes."""
    said = [_word(operation, name) for name in ("signedness", "rounding", "rounding_mode")]
    said += ["propagate_nan"] if operation.attributes.get("propagate_nan") else []
    words = [word for word in said if word]
    name = next((row for row in _spelled(operation.name, words) if row), "")
    if not name:
        raise scope.refuse(operation, f"there is none that is {' '.join(words)}")
    scope.emit(operation, name, scope.numbers(operation, operation.values), **_exactness(operation))


def _spelled(name: str, words: list[str]) -> Iterator[str]:
    """Rows of an operation of Tile IR: with all that is said of it, then with less."""
    for left in range(len(words), -1, -1):
        yield of_tileir(name, *words[:left])


def negate(scope: Scope, operation: Operation) -> None:
    """Zero minus it."""
    (value,) = scope.numbers(operation, operation.values)
    if not isinstance(value.type, Scalar | Tile):
        raise scope.fail(operation, f"`{operation.name}` of {value.type}")
    zero = scope.builder.constant(0, value.type)
    scope.emit(operation, SUBTRACT, (zero, value))


def power(scope: Scope, operation: Operation) -> None:
    """A power with an integer exponent, by way of a float one."""
    base, exponent = scope.value(operation, "source"), scope.value(operation, "exponent")
    if not _is_integer(_number(exponent)) or shape_of(base.type) != shape_of(exponent.type):
        raise scope.fail(operation, f"`fpowi` of {base.type} and {exponent.type}")
    converted = scope.builder.op(FROM_SIGNED, (exponent,), base.type)
    scope.emit(operation, POWER, (base, converted))


def compare(scope: Scope, operation: Operation) -> None:
    """Integers or floats of one type, to truths of their shape."""
    left, right = scope.value(operation, "lhs"), scope.value(operation, "rhs")
    floats = operation.name == "cmpf"
    said = _word(operation, "comparison_predicate")
    way = _word(operation, "comparison_ordering" if floats else "signedness")
    name = of_tileir(operation.name)
    predicate = next(
        row.name for row in PREDICATES[name].values() if row.tileir in (said, f"{said} {way}")
    )
    scope.emit(operation, name, (left, right), predicate=predicate)


def select(scope: Scope, operation: Operation) -> None:
    """One of two values of a type, by truths of their shape."""
    condition = scope.value(operation, "cond")
    yes, no = scope.value(operation, "val_if_true"), scope.value(operation, "val_if_false")
    scope.emit(operation, of_tileir("select"), (condition, yes, no))


def _number(value: Value) -> Number:
    assert isinstance(value.type, Scalar | Pointer | Tile)
    return value.type


def cast(scope: Scope, operation: Operation) -> None:
    """To another element type, in the same shape."""
    source = scope.number(operation, operation.values[0])
    made = scope.made(operation)
    before, after = element_of(source.type), element_of(made)
    if shape_of(source.type) != shape_of(made) or before is None or after is None:
        raise scope.fail(operation, f"`{operation.name}` from {source.type} to {made}")
    if operation.name == "ftof":
        _float_cast(scope, operation, source, made)
        return
    name = _cast_name(operation, before, after)
    if name is None:
        raise scope.fail(operation, f"`{operation.name}` from {source.type} to {made}")
    scope.emit(operation, name, (source,), **_exactness(operation))


def _float_cast(scope: Scope, operation: Operation, source: Value, made: Number) -> None:
    if not _is_float(_number(source)) or not _is_float(made):
        raise scope.fail(operation, f"`ftof` from {source.type} to {made}")
    if source.type == made:
        scope.bind(operation.results, (source,))
        return
    before, after = element_of(source.type), element_of(made)
    assert before is not None
    assert after is not None
    if before.bits == after.bits:
        wide = scope.builder.op(WIDEN_FLOAT, (source,), like(made, Scalar("f32")))
        scope.emit(operation, NARROW_FLOAT, (wide,), **_exactness(operation))
        return
    name = WIDEN_FLOAT if before.bits < after.bits else NARROW_FLOAT
    scope.emit(operation, name, (source,), **_exactness(operation))


def _cast_name(
    operation: Operation, before: Scalar | Pointer, after: Scalar | Pointer
) -> str | None:
    """The name in a kernel; None: the types do not fit it."""
    signed = _word(operation, "signedness") == "signed"
    into = isinstance(before, Scalar) and before.is_integer
    out = isinstance(after, Scalar) and after.is_integer
    floats = (
        isinstance(before, Scalar) and before.is_float,
        isinstance(after, Scalar) and after.is_float,
    )
    addresses = (isinstance(before, Pointer), isinstance(after, Pointer))
    fits = {
        "exti": into and out and before.bits < after.bits,
        "trunci": into and out and before.bits > after.bits,
        "itof": into and floats[1],
        "ftoi": floats[0] and out,
        "bitcast": not any(addresses) and before.bits == after.bits,
        "ptr_to_ptr": all(addresses),
        "ptr_to_int": addresses[0] and out,
        "int_to_ptr": into and addresses[1],
    }
    sign = "signed" if signed else "unsigned"
    found = of_tileir(operation.name, sign) or of_tileir(operation.name)
    return found if fits[operation.name] else None


def constant(scope: Scope, operation: Operation) -> None:
    """A number everywhere, or all numbers."""
    value = operation.attributes["value"]
    assert isinstance(value, Dense)
    type = kernel_type(value.type)
    if not isinstance(value.type.element, tileir.Number) or isinstance(type, Pointer):
        raise scope.fail(operation, f"a constant of {value.type}")
    if value.is_splat or value.type.elements == 1:
        (number,) = islice(value.values(), 1)
        made = scope.emit(operation, CONSTANT, (), value=number)
        if isinstance(number, int) and isinstance(type, Scalar):
            scope.constants[made] = number
        return
    if value.type.elements > DENSE_ELEMENTS:
        told = f"a constant of {value.type.elements:,} elements"
        raise scope.fail(operation, told, f"at most {DENSE_ELEMENTS:,} are read")
    scope.emit(operation, CONSTANT, (), value=tuple(value.values()))


HANDLERS: dict[str, Callable[[Scope, Operation], None]] = {
    **dict.fromkeys(
        (
            spelled.partition(" ")[0]
            for row in OPERATIONS.values()
            if row.elementwise
            for spelled in row.tileir
            if spelled != NONE
        ),
        computed,
    ),
    **dict.fromkeys(("ftof", "exti", "trunci", "itof", "ftoi", "bitcast"), cast),
    **dict.fromkeys(("ptr_to_ptr", "ptr_to_int", "int_to_ptr"), cast),
    "cmpf": compare,
    "cmpi": compare,
    "constant": constant,
    "fpowi": power,
    "negi": negate,
    "select": select,
}
