"""JSON Schemas out of types.

int                       {"type": "integer"}
list[X], X | None         {"type": "array", "items": X}, {"anyOf": [X, {"type": "null"}]}
Annotated[int, Where(minimum=0), "Cycles."]      with these keywords, and a description
class X(TypedDict)        an object of these keys and no others, under `$defs`
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from stretto.schemas.values import RULES, Where

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def schema_of(kind: Any, id: str) -> dict[str, Any]:
    """The schema of a type; each class that it needs stands in it once."""
    named: dict[str, dict[str, Any]] = {}
    found = _schema(kind, named)
    if is_typeddict(kind):  # the whole is no part of itself
        found = named.pop(kind.__name__)
    told = {"$schema": DIALECT, "$id": id, **found}
    return {**told, "$defs": dict(sorted(named.items()))} if named else told


def _schema(kind: Any, named: dict[str, dict[str, Any]]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if isinstance(kind, type) and kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if is_typeddict(kind):
        if kind.__name__ not in named:
            named[kind.__name__] = {}  # those inside may refer to it
            named[kind.__name__] = _object(kind, named)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if origin is Annotated:
        found = _schema(arguments[0], named)
        for said in arguments[1:]:
            found |= said.keywords if isinstance(said, Where) else {"description": said}
        return found
    if origin is Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(one, named) for one in arguments]}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], named)}
    assert origin is dict, kind
    return {"type": "object", "additionalProperties": _schema(arguments[1], named)}


def _object(kind: Any, named: dict[str, dict[str, Any]]) -> dict[str, Any]:
    required: list[str] = []
    properties: dict[str, Any] = {}
    for name, type in get_type_hints(kind, include_extras=True).items():
        optional = get_origin(type) is NotRequired
        properties[name] = _schema(get_args(type)[0] if optional else type, named)
        if not optional:
            required.append(name)
    return {
        "type": "object",
        **({"description": kind.__doc__} if kind.__doc__ else {}),
        "required": required,
        "additionalProperties": False,
        "properties": properties,
        **RULES.get(kind, {}),
    }
