"""What a writer states on operations and loops, beyond what their types and operands say.

    {tileas.schedule.constraint.max_depth = 1, stretto.latency = 8,
     stretto.uses = [{slot = "tma", duration = 8}]}
          │
          └──► the same row that loop JSON has: {"uses": [{"slot": "tma", "duration": 8}]}

`stretto.<field>` is that field of an operation or loop as JSON has it, read by the same reader.
What is stated stands in place of what the reader of loop bodies would derive. Attributes like
these are discardable, so xDSL verifies none of them; this module does.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseArrayBase,
    DictionaryAttr,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, WhileOp
from xdsl.ir import Attribute, Operation

from stretto.document import Cursor
from stretto.errors import DocumentError
from stretto.extraction.source import NOTHING, StatedLoop, StatedOp
from stretto.ir.dialect import name_of, row_of, text_of
from stretto.kernel.tree import ALIAS_SET, HIDDEN
from stretto.loop.json import SCHEMA, read_loop, read_op

STATED = "stretto."
CONSTRAINT = "tileas.schedule.constraint."
LOOPS = (ForOp, WhileOp, FuncOp)
"""What may have attributes of a loop: a function without loops is gone through like one."""
PROMISES = ("divisibility", "lower", "upper")
"""What may be stated of an argument of a function."""
FORCE_SERIAL = "force_serial_execution"
SCHEDULE = "nv_tile.aws."

CONSTRAINTS = (
    "gid",
    "leader_gid",
    "stage_offset",
    "max_depth",
    "pending",
    "same_depth",
    "structural",
    "start",
    "stage",
    "cycle",
    "before",
)
"""What may be asked of an operation's place."""
OP_FIELDS = (
    "name",
    "operands",
    "results",
    "reads",
    "writes",
    "uses",
    "demands",
    "latency",
    "encoding",
    "facts",
    "agent",
    "parent",
)
"""Fields of an operation that may be stated."""
LOOP_FIELDS = ("name", "machine", "slots", "values", "storages", "dependences")
"""Fields of a loop that may be stated."""
TRIP_COUNT, LENGTH = "trip_count", "length"
"""How often an inner loop runs, and how long it takes, where that cannot be computed."""
ON_LOOP = (*OP_FIELDS, *LOOP_FIELDS[1:], TRIP_COUNT, LENGTH, HIDDEN)
PLACED = ("stage", "order", "start")
"""Where a schedule puts an operation: numbers, all three."""
COUNTED, NAMED, COMPOSED = (
    ("ii", "stage_count", "pipeline_depth"),
    ("generator", "machine"),
    ("bounds", "table", "fused"),
)
"""What a schedule says of its loop: numbers of at least 1, names, and what is looked into later."""

AttributeFault = tuple[str, str]
"""The name of an attribute, and what is wrong with it."""


_OP: dict[str, Any] = {"name": "-", "kind": "-"}
_LOOP: dict[str, Any] = {"schema": SCHEMA, "name": "-", "ops": []}
"""What a row must have, whether it is stated or not."""


def stated_op(op: Operation) -> StatedOp:
    """What is stated of an operation; DocumentError unless `verify_attributes` is content."""
    row = op_row(op) if op.attributes else {}
    return StatedOp(read_op(Cursor("", "", {**_OP, **row})), frozenset(row)) if row else NOTHING


def stated_turns(op: Operation) -> tuple[int | None, int | None]:
    """How often a loop goes round, and its cycles in all, as far as they are stated."""
    turns, cycles = (
        _natural(op.attributes[STATED + name]) if STATED + name in op.attributes else None
        for name in (TRIP_COUNT, LENGTH)
    )
    return turns, cycles


def stated_loop(op: Operation) -> StatedLoop:
    """What is stated of a loop; DocumentError unless `verify_attributes` is content."""
    row: dict[str, Any] = {}
    for _, part in _loop_parts(op):
        row |= part
    trips, length = stated_turns(op)
    loop = read_loop(Cursor("", "", {**_LOOP, **row}))
    if serial_function(op):
        loop = replace(loop, force_serial=True)
    return StatedLoop(loop, frozenset(row), trips, length)


def alias_set(op: Operation) -> int | None:
    """The number of an operation's alias set, if it touches global memory and is in one."""
    if STATED + ALIAS_SET not in op.attributes or not row_of(op).far:
        return None
    return _natural(op.attributes[STATED + ALIAS_SET])


def serial_function(op: Operation) -> bool:
    """Whether an operation is, or is inside of, a function that forces serial execution."""
    at: Operation | None = op
    while at is not None and not isinstance(at, FuncOp):
        at = at.parent_op()
    serial = None if at is None else at.attributes.get(CONSTRAINT + FORCE_SERIAL)
    return serial is not None and plain(serial) is True


def verify_attributes(op: Operation) -> list[AttributeFault]:
    """Every fault of our attributes on one operation."""
    if isinstance(op, FuncOp):
        return [*_of_arguments(op), *_of_others(op)]
    return _of_others(op)


def _of_arguments(op: FuncOp) -> Iterator[AttributeFault]:
    """What is promised of a function's arguments."""
    for number, row in enumerate(op.arg_attrs or ()):
        for name, said in row.data.items():
            told = f"argument {number}: `{name}`"
            field, value = name.removeprefix(STATED), plain(said)
            if not name.startswith(STATED):
                continue
            if field not in (*PROMISES, "name"):
                yield name, f"{told} is unknown; {_nearest(field, (*PROMISES, 'name'), STATED)}"
            elif field == "name" and not _is_word(value):
                yield name, f"{told} is {said}; expected a string"
            elif field == "divisibility" and not _natural(said):
                yield name, f"{told} is {said}; expected a whole number of at least 1"
            elif field in PROMISES and type(value) is not int:
                yield name, f"{told} is {said}; expected a whole number"


def _of_others(op: Operation) -> list[AttributeFault]:
    if not any(name.startswith((STATED, "tileas.", SCHEDULE)) for name in op.attributes):
        return []
    faults = [*_unknown(op), *_not_naturals(op, SCHEDULE, PLACED)]
    faults += _not_naturals(op, STATED, (ALIAS_SET,))
    if not faults:
        faults = [*_refused(read_op, _OP, _op_parts(op))]
    if isinstance(op, LOOPS) and not faults:
        faults = [
            *_refused(read_loop, _LOOP, _loop_parts(op)),
            *_not_naturals(op, STATED, (TRIP_COUNT, LENGTH)),
            *_not_hidden(op),
        ]
    return faults


# Names ------------------------------------------------------------------------------------


def _unknown(op: Operation) -> Iterator[AttributeFault]:
    loop = isinstance(op, LOOPS)
    for name in op.attributes:
        if name.startswith(STATED):
            fields = ON_LOOP if loop else (*OP_FIELDS, ALIAS_SET)
            field = name.removeprefix(STATED)
            if field in fields:
                continue
            if field in ON_LOOP:
                yield name, f"`{name}` belongs on a loop, not on `{name_of(op)}`"
            else:
                yield name, f"unknown attribute `{name}`; {_nearest(field, fields, STATED)}"
        elif name.startswith("tileas."):
            yield from _unknown_constraint(op, name)
        elif name.startswith(SCHEDULE):
            yield from _unknown_schedule(op, name)


def _unknown_constraint(op: Operation, name: str) -> Iterator[AttributeFault]:
    constraint = name.removeprefix(CONSTRAINT)
    if name.startswith(CONSTRAINT) and constraint == FORCE_SERIAL:
        if not isinstance(op, ForOp | FuncOp):
            told = f"`{FORCE_SERIAL}` belongs on a loop or a function, not on `{name_of(op)}`"
            yield name, told
        elif plain(op.attributes[name]) not in (True, False):
            yield name, f"`{name}` is {op.attributes[name]}; expected true or false, or no value"
    elif not name.startswith(CONSTRAINT) or constraint not in CONSTRAINTS:
        known = (*CONSTRAINTS, FORCE_SERIAL)
        yield name, f"unknown constraint `{constraint}`; {_nearest(constraint, known, '')}"


def _unknown_schedule(op: Operation, name: str) -> Iterator[AttributeFault]:
    word, on_loop = name.removeprefix(SCHEDULE), (*COUNTED, *NAMED, *COMPOSED)
    if word in on_loop and not isinstance(op, LOOPS):
        yield name, f"`{name}` belongs on a loop, not on `{name_of(op)}`"
    elif word in COUNTED and not _natural(op.attributes[name]):
        yield name, f"`{name}` is {op.attributes[name]}; expected a whole number of at least 1"
    elif word in NAMED and not _is_word(plain(op.attributes[name])):
        yield name, f"`{name}` is {op.attributes[name]}; expected a string"
    elif word not in (*PLACED, *on_loop):
        yield name, f"unknown attribute `{name}`; {_nearest(word, (*PLACED, *on_loop), SCHEDULE)}"


def _is_word(said: object) -> bool:
    return isinstance(said, str) and said != ""


def _nearest(word: str, known: tuple[str, ...], prefix: str) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"did you mean `{prefix}{close[0]}`?"
    return "known: " + ", ".join(f"{prefix}{name}" for name in known)


def _not_naturals(op: Operation, prefix: str, words: Iterable[str]) -> Iterator[AttributeFault]:
    for name in (prefix + word for word in words):
        if name in op.attributes and _natural(op.attributes[name]) is None:
            told = f"`{name}` is {op.attributes[name]}; expected a whole number of at least 0"
            yield name, told


def _not_hidden(op: Operation) -> Iterator[AttributeFault]:
    """Steps that consumers leave out are numbers, one a consumer."""
    name = STATED + HIDDEN
    said = op.attributes.get(name)
    steps = said.get_values() if isinstance(said, DenseArrayBase) else None
    if said is not None and (steps is None or any(step < 0 for step in steps)):
        yield name, f"`{name}` is {said}; expected an array of whole numbers of at least 0"


def _natural(attribute: Attribute) -> int | None:
    number = plain(attribute)
    return number if type(number) is int and number >= 0 else None


# Rows as JSON has them --------------------------------------------------------------------


StatedPart = tuple[str, dict[str, Any]]
"""An attribute, and what it states as JSON has it."""


def op_row(op: Operation) -> dict[str, Any]:
    """What is stated of an operation as JSON has it."""
    row: dict[str, Any] = {}
    for name, part in _op_parts(op):
        if name.startswith(CONSTRAINT):
            row.setdefault("constraint", {}).update(part["constraint"])
        else:
            row |= part
    return row


def _op_parts(op: Operation) -> Iterator[StatedPart]:
    """In the order that JSON is read in."""
    said = op.attributes
    for field in (*OP_FIELDS[:-1], *CONSTRAINTS, OP_FIELDS[-1]):
        if field in CONSTRAINTS and CONSTRAINT + field in said:
            yield CONSTRAINT + field, {"constraint": {field: plain(said[CONSTRAINT + field])}}
        elif field not in CONSTRAINTS and STATED + field in said:
            yield STATED + field, {field: plain(said[STATED + field])}


def _loop_parts(op: Operation) -> Iterator[StatedPart]:
    """In the order that JSON is read in."""
    for field in ("name", "values", "storages", "dependences", "machine", "slots"):
        if STATED + field in op.attributes:
            yield STATED + field, {field: plain(op.attributes[STATED + field])}
    serial = CONSTRAINT + FORCE_SERIAL
    if serial in op.attributes:
        yield serial, {"force_serial": plain(op.attributes[serial])}


def _refused(
    read: Callable[[Cursor], object], row: dict[str, Any], parts: Iterable[StatedPart]
) -> Iterator[AttributeFault]:
    """The first attribute that the reader of JSON has something against, in its words."""
    for name, part in parts:
        try:
            read(Cursor("", STATED.removesuffix("."), {**row, **part}))
        except DocumentError as error:
            # A constraint is a number or a bit; of all else, the path says which part is wrong.
            where = name if name.startswith(CONSTRAINT) else error.path
            yield name, f"`{where}` {error.message}" + (f"; {error.hint}" if error.hint else "")
            return


def plain(attribute: Attribute) -> Any:
    """An attribute as JSON would have it; what JSON has not, as text no field accepts."""
    if isinstance(attribute, UnitAttr):
        return True
    if isinstance(attribute, IntegerAttr):
        whole = cast("IntegerAttr[IntegerType]", attribute)
        return bool(whole.value.data) if whole.type == i1 else whole.value.data
    if isinstance(attribute, StringAttr | BytesAttr):
        return text_of(attribute)
    if isinstance(attribute, FloatAttr):
        return cast("FloatAttr[Float32Type]", attribute).value.data
    if isinstance(attribute, ArrayAttr):
        return [plain(item) for item in cast("ArrayAttr[Attribute]", attribute).data]
    if isinstance(attribute, DictionaryAttr):
        return {key: plain(value) for key, value in attribute.data.items()}
    return {"attribute": str(attribute)}


def to_attribute(value: Any) -> Attribute:
    """A JSON value as an attribute: the way back of what is read above."""
    match value:
        case bool():
            return IntegerAttr(int(value), i1)
        case int():
            # A number that 64 bits do not hold states its width.
            wide = max(64, value.bit_length() + 1)
            return IntegerAttr(value, i64 if wide == 64 else IntegerType(wide))
        case str():
            return StringAttr(value)
        case list():
            return ArrayAttr([to_attribute(item) for item in cast("list[Any]", value)])
        case dict():
            table = cast("dict[str, Any]", value)
            return DictionaryAttr({key: to_attribute(item) for key, item in table.items()})
        case _:
            raise ValueError(f"{value!r} has no attribute")
