"""Operations as Gluon expressions: one row each."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from stretto.errors import StrettoError
from stretto.kernel import Attribute, Operation
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Pointer, Scalar, Tile, Type

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

_ROWS = {
    "arith.addf": "{0} + {1}",
    "arith.subf": "{0} - {1}",
    "arith.mulf": "{0} * {1}",
    "arith.divf": "{0} / {1}",
    "arith.remf": "{0} % {1}",
    "arith.maxnumf": "gl.maximum({0}, {1})",
    "arith.minnumf": "gl.minimum({0}, {1})",
    "arith.maximumf": "gl.maximum({0}, {1}, propagate_nan=gl.PropagateNan.ALL)",
    "arith.minimumf": "gl.minimum({0}, {1}, propagate_nan=gl.PropagateNan.ALL)",
    "arith.addi": "{0} + {1}",
    "arith.subi": "{0} - {1}",
    "arith.muli": "{0} * {1}",
    "arith.divsi": "{0} // {1}",
    "arith.remsi": "{0} % {1}",
    "arith.floordivsi": "({0} - (({0} % {1} + {1}) % {1})) // {1}",
    "arith.ceildivsi": "gl.cdiv({0}, {1})",
    "arith.maxsi": "gl.maximum({0}, {1})",
    "arith.minsi": "gl.minimum({0}, {1})",
    "arith.andi": "{0} & {1}",
    "arith.ori": "{0} | {1}",
    "arith.xori": "{0} ^ {1}",
    "arith.shli": "{0} << {1}",
    "arith.shrsi": "{0} >> {1}",
    "arith.select": "gl.where({0}, {1}, {2})",
    "arith.negf": "-{0}",
    "math.exp2": "gl.exp2({0})",
    "math.exp": "gl.exp({0})",
    "math.log2": "gl.log2({0})",
    "math.log": "gl.log({0})",
    "math.sqrt": "gl.sqrt({0})",
    "math.rsqrt": "gl.rsqrt({0})",
    "math.sin": "gl.sin({0})",
    "math.cos": "gl.cos({0})",
    "math.erf": "gl.erf({0})",
    "math.floor": "gl.floor({0})",
    "math.ceil": "gl.ceil({0})",
    "math.absf": "gl.abs({0})",
    "math.absi": "gl.abs({0})",
    "math.fma": "gl.fma({0}, {1}, {2})",
    "offset": "{0} + {1}",
}
_UNSIGNED = {
    "arith.divui": "{0} // {1}",
    "arith.remui": "{0} % {1}",
    "arith.shrui": "{0} >> {1}",
    "arith.maxui": "gl.maximum({0}, {1})",
    "arith.minui": "gl.minimum({0}, {1})",
    "arith.ceildivui": "gl.cdiv({0}, {1})",
    "arith.mulhiui": "gl.umulhi({0}, {1})",
}
"""Of integers that are taken without a sign, which the types of Gluon tell and ours do not."""
_UNSIGNED_COMPARED = {"ult": "<", "ule": "<=", "ugt": ">", "uge": ">="}
ALONE = "--mode unspecialized"
"""What helps where agents cannot share the work: one group of warps that does everything."""
_INSTEAD = {
    "barrier": f"in one group of warps it has: {ALONE}",
    "reduce.with": "reduce by max, min or sum; an index follows from a second reduction",
    "scan": "sums on the way are left to Triton",
}
TRITONS = "at a launch, Triton's own kernel runs it"
"""What becomes of a kernel that is not emitted."""
_NUMBER = re.compile(r"-?\d[\w.+-]*")
_CASTS = frozenset(
    f"arith.{name}"
    for name in (
        "extf", "truncf", "sitofp", "uitofp", "fptosi", "fptoui", "extsi", "extui", "trunci",
        "index_cast",
    )
)  # fmt: skip
WIDTHS = frozenset(f"arith.{name}" for name in ("extsi", "extui", "trunci", "index_cast"))
"""Between integers of different widths, which are one to the host."""
_COMPARED = {
    "eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">=",
    "oeq": "==", "ogt": ">", "oge": ">=", "olt": "<", "ole": "<=", "une": "!=",
}  # fmt: skip
_REDUCED = {
    "reduce.max": "gl.max({0}, {axis})",
    "reduce.maximum": "gl.max({0}, {axis})",
    "reduce.min": "gl.min({0}, {axis})",
    "reduce.minimum": "gl.min({0}, {axis})",
    "reduce.sum": "gl.sum({0}, {axis})",
}


class EmitError(StrettoError):
    """A kernel that cannot be emitted, and why; at the user's place where it has one."""

    def __init__(self, why: str, operation: Operation | None = None, hint: str = "") -> None:
        where = "" if operation is None else f"{operation.location}: error: "
        super().__init__(f"{where}{why}" + (f" ({hint})" if hint else ""))
        self.hint = hint
        self._placed = operation is not None

    def lines(self, file: str) -> tuple[str, ...]:
        """Itself, where it begins with its place."""
        return (str(self),) if self._placed else (f"{file}: error: {self}",)


def dtype(type: Type) -> str:
    """The element type, as Gluon writes it."""
    element = type.element if isinstance(type, Tile) else type
    if isinstance(element, Scalar) and element.element in DTYPES:
        return DTYPES[element.element]
    raise EmitError(f"Gluon has no type {element}")


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


def _value(text: str) -> str:
    """A value of which Gluon can be asked for another type: a bare number is none."""
    return f"gl.to_tensor({text})" if _NUMBER.fullmatch(text) else text


def expression(operation: Operation, operands: Sequence[str]) -> str:  # noqa: PLR0912
    """An operation element by element, or a reduction; EmitError where Gluon has none."""
    kind = kind_of(operation)
    if kind in _ROWS:
        return _ROWS[kind].format(*operands)
    if kind == "int_to_pointer":
        return f"{_value(operands[0])}.to(gl.pointer_type({DTYPES[_pointee(operation)]}))"
    if kind == "pointer_to_int":
        return f"{_value(operands[0])}.to({dtype(operation.result.type)})"
    if kind == "arith.bitcast":
        return f"{_value(operands[0])}.to({dtype(operation.result.type)}, bitcast=True)"
    if kind in _CASTS:
        if isinstance(operation.result.type, Pointer):
            raise EmitError("an address cannot be cast", operation)
        return f"{_value(operands[0])}.to({dtype(operation.result.type)})"
    if kind in ("arith.cmpi", "arith.cmpf"):
        sign = _COMPARED.get(operation.text("predicate"))
        if sign is not None:
            return f"{operands[0]} {sign} {operands[1]}"
        sign = _UNSIGNED_COMPARED.get(operation.text("predicate"))
        if sign is not None and kind == "arith.cmpi":
            a, b = _without_signs(operation, operands)
            return f"{a} {sign} {b}"
    if kind in _UNSIGNED:
        text = _UNSIGNED[kind].format(*_without_signs(operation, operands))
        return f"({text}).to({dtype(operation.result.type)})"
    if kind in _REDUCED:
        return _REDUCED[kind].format(*operands, axis=operation.integer("axis"))
    if kind == "block_index":
        return f"gl.program_id({operation.integer('axis')})"
    if kind == "block_count":
        return f"gl.num_programs({operation.integer('axis')})"
    raise unwritten(operation)


def unwritten(operation: Operation, where: str = "") -> EmitError:
    """That an operation has no Gluon, and what to do."""
    kind = kind_of(operation)
    return EmitError(f"`{kind}`{where} has no Gluon yet", operation, _INSTEAD.get(kind, TRITONS))


def _without_signs(operation: Operation, operands: Sequence[str]) -> list[str]:
    """Integers of the same bits without a sign."""
    type = dtype(operation.operands[0].type).replace("gl.int", "gl.uint")
    numbers = [f"gl.to_tensor({text})" if _is_number(text) else text for text in operands]
    return [f"{_value(text)}.to({type})" for text in numbers]


def _is_number(text: str) -> bool:
    return text.strip("()").removeprefix("-").isdecimal()


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
