"""Operations as Gluon expressions: one row each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from stretto.kernel import Attribute, Operation
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Pointer, Scalar, Tile, Type, element_of
from stretto.ops.operations import OPERATIONS
from stretto.ops.predicates import PREDICATES
from stretto.ops.products import GLUON as PRODUCTS
from stretto.ops.reductions import GLUON
from stretto.ops.rows import reason_of
from stretto.program.errors import EmitError, unwritten

DTYPES = {
    "f16": "gl.float16",
    "bf16": "gl.bfloat16",
    "f32": "gl.float32",
    "f64": "gl.float64",
    "f8E4M3FN": "gl.float8e4nv",
    "f8E5M2": "gl.float8e5",
    "i1": "gl.int1",
    "i8": "gl.int8",
    "i16": "gl.int16",
    "i32": "gl.int32",
    "i64": "gl.int64",
    "index": "gl.int64",
}

_EXPRESSIONS: dict[str, str] = {
    **{
        row.name if row.elementwise else row.mlir.removeprefix("nv_tileas."): row.gluon
        for row in OPERATIONS.values()
        if "{" in row.gluon
    },
    **GLUON,
    **PRODUCTS,
}
"""By the opcode: what its row says."""


def dtype(type: Type) -> str:
    """The element type, as Gluon writes it."""
    element = type.element if isinstance(type, Tile) else type
    if isinstance(element, Scalar) and element.element in DTYPES:
        return DTYPES[element.element]
    raise EmitError(f"Gluon has no type {element}")


def pointer_type(element: str) -> str:
    """The type of an address, as Gluon writes it."""
    return f"gl.pointer_type({DTYPES[element]})"


def everywhere(text: str, type: Tile, layout: object) -> str:
    """A number, or an address, in each place of a tile."""
    if isinstance(type.element, Pointer):
        return f"{zeros(type, layout)} + {wrapped(text)}"
    return f"gl.full({list(type.shape)}, {text}, {dtype(type)}, {layout})"


def zeros(type: Tile, layout: object) -> str:
    """What a part of a tile is added to, to have its full shape; addresses take offsets."""
    element = "gl.int32" if isinstance(type.element, Pointer) else dtype(type)
    return f"gl.zeros({list(type.shape)}, {element}, {layout})"


def literal(value: Attribute, type: Type) -> str:
    """A number."""
    element = type.element if isinstance(type, Tile) else type
    if isinstance(value, tuple):
        raise EmitError("a constant of several numbers cannot be emitted")
    if isinstance(value, bool) or element == Scalar("i1"):  # which a module writes as -1
        return str(bool(value))
    if isinstance(element, Scalar) and element.is_integer:
        return str(int(value))  # pyright: ignore[reportArgumentType]
    number = float(value)  # pyright: ignore[reportArgumentType]
    if math.isinf(number) or math.isnan(number):
        return f'float("{number}")'
    return repr(number)


def expression(operation: Operation, operands: Sequence[str]) -> str:
    """An operation element by element, or a reduction; EmitError where Gluon has none."""
    kind = kind_of(operation)
    form = _EXPRESSIONS.get(kind, "")
    if kind in PREDICATES:
        form = PREDICATES[kind][operation.text("predicate")].gluon
    if not form or reason_of(form) is not None:
        raise unwritten(operation)
    if form.startswith("{0}.to("):
        operands = [_tensor(operands[0]), *operands[1:]]
    given = dict(_forms(operation, operands, form))
    text = form.format(*operands, **given)
    if "{u" in form and kind not in PREDICATES:
        return f"({text}).to({dtype(operation.result.type)})"
    if "{f0}" in form and _is_narrow(operation.operands[0].type):
        return f"{text}.to({dtype(operation.result.type)})"
    return text


def modules_of(operation: Operation) -> tuple[str, ...]:
    """Modules and functions that its expression names, beside Gluon's own."""
    form = _EXPRESSIONS.get(kind_of(operation), "")
    modules = tuple(name for name in ("libdevice", "tl") if f"{name}." in form)
    return (*modules, "mma_v2") if form.startswith("mma_v2(") else modules


def _forms(operation: Operation, operands: Sequence[str], form: str) -> Iterator[tuple[str, str]]:
    """What a row's form asks for beside operands as they are."""
    result = operation.result.type
    if "{u" in form:
        yield from ((f"u{i}", text) for i, text in enumerate(_without_signs(operation, operands)))
    if "{f0}" in form:
        for i, (text, value) in enumerate(zip(operands, operation.operands, strict=True)):
            yield f"f{i}", f"{text}.to(gl.float32)" if _is_narrow(value.type) else text
    if "{type}" in form:
        pointer = isinstance(element_of(result), Pointer)
        yield "type", pointer_type(_pointee(operation)) if pointer else dtype(result)
    if "{bits}" in form:
        element = element_of(operation.operands[0].type)
        yield "bits", str(element.bits if element is not None else 0)
    if "{axis}" in form:
        yield "axis", str(operation.integer("axis"))
    if "{precision}" in form:
        element = element_of(operation.operands[0].type)
        yield "precision", ', input_precision="tf32"' if element == Scalar("f32") else ""
    if "{pointee}" in form:
        yield "pointee", DTYPES[_pointee(operation)]


def _is_narrow(type: Type) -> bool:
    """Whether numbers have fewer bits than functions take."""
    element = element_of(type)
    return isinstance(element, Scalar) and element.is_float and element.bits < 32


def _without_signs(operation: Operation, operands: Sequence[str]) -> list[str]:
    """Integers of the same bits without a sign."""
    type = dtype(operation.operands[0].type).replace("gl.int", "gl.uint")
    return [f"{_tensor(text)}.to({type})" for text in operands]


def _tensor(text: str) -> str:
    """A value that can be asked for another type, which a bare number cannot."""
    return f"gl.to_tensor({text})" if _is_number(text) else text


def _is_number(text: str) -> bool:
    """Whether a text is arithmetic of numbers alone."""
    return not text.strip("()0123456789+-*/% ")


def _pointee(operation: Operation) -> str:
    type = operation.result.type
    element = type.element if isinstance(type, Tile) else type
    assert isinstance(element, Pointer)
    return element.pointee.element


def wrapped(text: str) -> str:
    """In brackets, unless it is one thing already."""
    simple = text.replace("_", "a").replace(".", "a").isalnum()
    called = text.endswith(")") and _closes_last(text)
    return text if simple or called else f"({text})"


def _closes_last(text: str) -> bool:
    """Whether the bracket that ends a text is the call's that begins it."""
    first = text.find("(")
    if first < 1 or not text[:first].replace("_", "a").replace(".", "a").isalnum():
        return False
    depth = 0
    for i in range(first, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i == len(text) - 1
    return False
