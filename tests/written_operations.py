"""Is what was read what the writer was asked for?

    encode_AddFOp(lhs=3, rhs=7, rounding_mode=ZERO, …)  ──►  bytes  ──►  `addf` of 3 and 7, zero

The JSON tells the arguments by the writer's own names (see cutile/write_operations.py); nothing
here asks the reader's rows for anything but the numbers of enumerations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from stretto.frontends.tileir import Block, Operation, Value, read_bytecode
from stretto.frontends.tileir.attributes import (
    ENUMERATIONS,
    Attribute,
    Bounded,
    Dense,
    DivBy,
    Scalar,
)
from stretto.frontends.tileir.rows import ROWS

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_ROWS = {row.name: row for row in ROWS.values()}


def differences(file: Path) -> tuple[int, list[str]]:
    """How many operations a pair of files has, and what was read otherwise than written."""
    module = read_bytecode(file.name, file.read_bytes())
    told: list[dict[str, Json]] = json.loads(file.with_suffix(".json").read_text("utf-8"))
    (function,) = module.functions
    operations = function.body.operations[:-1]
    if len(operations) != len(told):
        return len(told), [f"{len(operations)} operations, not {len(told)}"]
    numbers = dict(_numbered(function.body, 0))
    found: list[str] = []
    for operation, row in zip(operations, told, strict=True):
        for said in _unlike(operation, row, numbers):
            found.append(f"{file.name}: offset {operation.offset}: {operation.name}: {said}")
    return len(told), found


def _numbered(block: Block, first: int) -> Iterator[tuple[Value, int]]:
    """Values as the writer counts them: those of a block are forgotten at its end."""
    for value in block.arguments:
        yield value, first
        first += 1
    for operation in block.operations:
        for inner in operation.blocks:
            yield from _numbered(inner, first)
        for value in operation.results:
            yield value, first
            first += 1


def _unlike(operation: Operation, row: dict[str, Json], numbers: dict[Value, int]) -> Iterator[str]:
    named = str(row["name"]).lower()
    if named != operation.name.replace("_", ""):
        yield f"not {named}"
        return
    arguments = row["arguments"]
    assert isinstance(arguments, dict)
    types: list[Json] = []
    seen: set[str] = set()
    for key, wanted in arguments.items():
        if key.endswith(("_type", "_types")):
            types += wanted if isinstance(wanted, list) else [] if wanted is None else [wanted]
            continue
        seen.add(key)
        if key in operation.operands:
            made = [numbers[value] for value in operation.operands[key]]
            asked = wanted if isinstance(wanted, list) else [] if wanted is None else [wanted]
            if made != asked:
                yield f"operand {key} is {made}, not {asked}"
        elif key in operation.attributes:
            said = _told(operation, key, operation.attributes[key])
            if said != wanted and not (said == [] and _unset(wanted)):
                yield f"attribute {key} is {said!r}, not {wanted!r}"
        elif wanted is not None and not _unset(wanted):
            yield f"no {key}, which is {wanted!r}"
    more = {*operation.operands, *operation.attributes} - seen
    if more:
        yield f"more than was written: {sorted(more)}"
    if [str(value.type) for value in operation.results] != types:
        yield f"results {operation.results}, not {types}"
    blocks = [[str(value.type) for value in block.arguments] for block in operation.blocks]
    if blocks != row["blocks"]:
        yield f"blocks of {blocks}, not {row['blocks']}"
    yield from _misplaced(operation, row["line"])


def _unset(wanted: Json) -> bool:
    """Whether it is a list of nothing but false: an older version does not even write it."""
    return isinstance(wanted, list) and not any(wanted)


def _misplaced(operation: Operation, line: Json) -> Iterator[str]:
    assert isinstance(line, list)
    number, column, called = line
    frames = [(frame.file, frame.line, frame.column) for frame in operation.location]
    wanted = [("/tmp/a.py", number, column), ("/tmp/a.py", 3, 0)][: 2 if called else 1]
    if frames != wanted or any(frame.function != "kernel" for frame in operation.location):
        yield f"at {operation.location}, not {wanted}"


def _told(operation: Operation, key: str, attribute: Attribute) -> Json:
    """An attribute as the writer tells it."""
    match attribute:
        case Scalar():
            return [str(attribute.type), attribute.value]
        case Dense():
            return attribute.data.hex()
        case DivBy():
            return ["div_by", attribute.divisor, attribute.every, attribute.along]
        case Bounded():
            return ["bounded", attribute.low, attribute.high]
        case tuple():
            return [_told(operation, key, item) for item in attribute]
        case Mapping():
            return {name: _plain(item) for name, item in attribute.items()}
        case str():
            kinds = {field.name: field.kind for field in _ROWS[operation.name].attributes}
            names = ENUMERATIONS.get(kinds[key])
            return attribute if names is None else ["enum", names.index(attribute)]
        case bool() | int():
            return attribute
        case _:
            return str(attribute)


def _plain(attribute: Attribute) -> Json:
    if isinstance(attribute, Mapping):
        return {name: _plain(item) for name, item in attribute.items()}
    return attribute.value if isinstance(attribute, Scalar) else bool(attribute)


def written_names(file: Path) -> set[str]:
    """The operations that a JSON file tells of, without underscores."""
    told: list[dict[str, Json]] = json.loads(file.read_text("utf-8"))
    return {str(row["name"]).lower() for row in told}
