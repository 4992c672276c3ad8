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
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
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
from xdsl.dialects.scf import ForOp
from xdsl.ir import Attribute, Operation

from stretto.document import Cursor
from stretto.errors import DocumentError
from stretto.ir.dialect import name_of, text_of
from stretto.loop import Loop, Op
from stretto.loop.json import SCHEMA, read_loop

STATED = "stretto."
CONSTRAINT = "tileas.schedule.constraint."
FORCE_SERIAL = "force_serial_execution"
SCHEDULE = "nv_tile.aws."

CONSTRAINTS = ("gid", "leader_gid", "max_depth", "pending")
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
    "parent",
)
"""Fields of an operation that may be stated."""
LOOP_FIELDS = ("name", "machine", "slots", "values", "storages", "dependences")
"""Fields of a loop that may be stated."""
TRIP_COUNT, LENGTH = "trip_count", "length"
"""How often an inner loop runs, and how long it takes, where that cannot be computed."""
ON_LOOP = (*OP_FIELDS, *LOOP_FIELDS[1:], TRIP_COUNT, LENGTH)
AGENT = STATED + "agent"
"""Who issues an operation in a specialized program, where that is not left to the rules."""
PLACED = ("stage", "order", "start")
"""Where a schedule puts an operation: numbers, all three."""
COUNTED, NAMED, COMPOSED = (
    ("ii", "stage_count", "pipeline_depth"),
    ("generator", "machine"),
    ("bounds", "fused"),
)
"""What a schedule says of its loop: numbers of at least 1, names, and what is looked into later."""

Fault = tuple[str, str]
"""The name of an attribute, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class StatedOp:
    """What is stated of one operation: an `Op` of which the fields `given` count."""

    op: Op
    given: frozenset[str]


@dataclass(frozen=True, slots=True)
class StatedLoop:
    """What is stated of one loop: a `Loop` of which the fields `given` count."""

    loop: Loop
    given: frozenset[str]
    trip_count: int | None = None
    length: int | None = None


NOTHING = StatedOp(Op("", ""), frozenset())


def stated_op(op: Operation) -> StatedOp:
    """What is stated of an operation; DocumentError unless `verify_attributes` is content."""
    if not op.attributes:
        return NOTHING
    row, given = op_row(op)
    return StatedOp(_read(_document(row)).ops[0], given) if given else NOTHING


def stated_loop(op: ForOp) -> StatedLoop:
    """What is stated of a loop; DocumentError unless `verify_attributes` is content."""
    top, given = _loop_row(op)
    numbers = {
        name: _natural(op.attributes[STATED + name]) if STATED + name in op.attributes else None
        for name in (TRIP_COUNT, LENGTH)
    }
    return StatedLoop(_read(top), given, numbers[TRIP_COUNT], numbers[LENGTH])


def verify_attributes(op: Operation) -> list[Fault]:
    """Every fault of our attributes on one operation."""
    if not any(name.startswith((STATED, "tileas.", SCHEDULE)) for name in op.attributes):
        return []
    faults = [*_unknown(op), *_placed(op)]
    if not faults:
        faults = [*_refused(_document(op_row(op)[0]))]
    if isinstance(op, ForOp) and not faults:
        faults = [*_refused(_loop_row(op)[0]), *_numbers(op)]
    return faults


# Names ------------------------------------------------------------------------------------


def _unknown(op: Operation) -> Iterator[Fault]:
    loop = isinstance(op, ForOp)
    for name in op.attributes:
        if name == AGENT:
            yield from _not_a_name(name, op.attributes[name])
        elif name.startswith(STATED):
            fields = ON_LOOP if loop else OP_FIELDS
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


def _not_a_name(name: str, attribute: Attribute) -> Iterator[Fault]:
    if not isinstance(attribute, StringAttr | BytesAttr) or not text_of(attribute).strip():
        yield name, f"`{name}` is {attribute}; expected the name of an agent"


def _unknown_constraint(op: Operation, name: str) -> Iterator[Fault]:
    constraint = name.removeprefix(CONSTRAINT)
    if name.startswith(CONSTRAINT) and constraint == FORCE_SERIAL:
        if not isinstance(op, ForOp):
            yield name, f"`{FORCE_SERIAL}` belongs on a loop, not on `{name_of(op)}`"
        elif plain(op.attributes[name]) not in (True, False):
            yield name, f"`{name}` is {op.attributes[name]}; expected true or false, or no value"
    elif not name.startswith(CONSTRAINT) or constraint not in CONSTRAINTS:
        known = (*CONSTRAINTS, FORCE_SERIAL)
        yield name, f"unknown constraint `{constraint}`; {_nearest(constraint, known, '')}"


def _unknown_schedule(op: Operation, name: str) -> Iterator[Fault]:
    word, on_loop = name.removeprefix(SCHEDULE), (*COUNTED, *NAMED, *COMPOSED)
    if word in on_loop and not isinstance(op, ForOp):
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


def _placed(op: Operation) -> Iterator[Fault]:
    for word in PLACED:
        name = SCHEDULE + word
        if name in op.attributes:
            yield from _not_natural(name, op.attributes[name])


def _numbers(op: Operation) -> Iterator[Fault]:
    for word in (TRIP_COUNT, LENGTH):
        name = STATED + word
        if name in op.attributes:
            yield from _not_natural(name, op.attributes[name])


def _not_natural(name: str, attribute: Attribute) -> Iterator[Fault]:
    if _natural(attribute) is None:
        yield name, f"`{name}` is {attribute}; expected a whole number of at least 0"


def _natural(attribute: Attribute) -> int | None:
    number = plain(attribute)
    return number if type(number) is int and number >= 0 else None


# Rows as JSON has them --------------------------------------------------------------------


def op_row(op: Operation) -> tuple[dict[str, Any], frozenset[str]]:
    """What is stated of an operation as JSON has it, without its kind; and which fields."""
    row: dict[str, Any] = {"name": "-", "kind": "-"}
    constraint: dict[str, Any] = {}
    given: set[str] = set()
    for name, attribute in op.attributes.items():
        if name.startswith(STATED) and (field := name.removeprefix(STATED)) in OP_FIELDS:
            row[field] = plain(attribute)
            given.add(field)
        elif name.startswith(CONSTRAINT) and (field := name.removeprefix(CONSTRAINT)) in (
            CONSTRAINTS
        ):
            constraint[field] = plain(attribute)
    if constraint:
        row["constraint"] = constraint
        given.add("constraint")
    return row, frozenset(given)


def _loop_row(op: Operation) -> tuple[dict[str, Any], frozenset[str]]:
    row: dict[str, Any] = {"schema": SCHEMA, "name": "-", "ops": []}
    given: set[str] = set()
    for field in LOOP_FIELDS:
        if STATED + field in op.attributes:
            row[field] = plain(op.attributes[STATED + field])
            given.add(field)
    if CONSTRAINT + FORCE_SERIAL in op.attributes:
        row["force_serial"] = plain(op.attributes[CONSTRAINT + FORCE_SERIAL])
        given.add("force_serial")
    return row, frozenset(given)


def _document(row: dict[str, Any]) -> dict[str, Any]:
    return {"schema": SCHEMA, "name": "-", "ops": [row]}


def _read(document: dict[str, Any]) -> Loop:
    return read_loop(Cursor("", "$", document))


_PLACE = re.compile(r"\$\.(?:ops\[0\]\.)?(constraint\.)?(\w+)(.*)")


def _refused(document: dict[str, Any]) -> Iterator[Fault]:
    """What the JSON reader has against a row, said in terms of attributes."""
    try:
        _read(document)
    except DocumentError as error:
        place = _PLACE.fullmatch(error.path)
        told = error.message + (f"; {error.hint}" if error.hint else "")
        if place is None:
            yield "", told
            return
        prefix = CONSTRAINT if place[1] else STATED
        name = FORCE_SERIAL if place[2] == "force_serial" else place[2]
        name = (CONSTRAINT if name == FORCE_SERIAL else prefix) + name
        yield name, f"`{name}{place[3]}` {told}"


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
