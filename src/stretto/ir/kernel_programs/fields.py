"""What the fields of an instruction are in MLIR: operands, regions or attributes, by their types.

Wait.barrier: Barrier                    operand
CopyIn.coordinates: tuple[Expression]    operands, as many as there are
For.body: tuple[Instruction, ...]        region
CopyIn.bytes: int                        attribute
"""

from __future__ import annotations

import builtins
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from stretto.kernel import Kernel, Operation
from stretto.program.expressions import Barrier, Expression, Slot
from stretto.program.instructions import (
    Arrive,
    Commit,
    Expect,
    Instruction,
    NamedArrive,
    NamedSync,
    Wait,
)
from stretto.program.kernel_program import (
    AgentProgram,
    Argument,
    Barriers,
    Declaration,
    Descriptor,
    KernelProgram,
)

DIALECT = "stretto."
_VALUES: frozenset[type] = frozenset((*get_args(Expression), Slot, Barrier))
"""Classes that are operands of others."""
_STATEMENTS: frozenset[type] = frozenset(
    (*get_args(Instruction), *get_args(Declaration), Descriptor, Argument, AgentProgram)
)
"""Classes that stand in regions."""
MEANS = "means"
PIPES: Mapping[tuple[type, str], tuple[str, str]] = {
    (Wait, "full"): ("consumer_wait", "mbarrier"),
    (Wait, "free"): ("producer_acquire", "mbarrier"),
    (Wait, "turn"): ("await", "mbarrier"),
    (Expect, "full"): ("producer_commit", "bytes"),
    (Arrive, "full"): ("producer_commit", "mbarrier"),
    (Commit, "full"): ("producer_commit", "products"),
    (Arrive, "free"): ("consumer_release", "mbarrier"),
    (Commit, "free"): ("consumer_release", "products"),
    (Arrive, "turn"): ("arrive", "mbarrier"),
    (Commit, "turn"): ("arrive", "products"),
    (NamedSync, "named"): ("await", "named barrier"),
    (NamedArrive, "named"): ("arrive", "named barrier"),
    (Barriers, "turn"): ("create_mutex", "mbarrier"),
}
"""What pipes and mutexes call a wait or an arrival, and by what it comes about: of a class and the
role of the barrier."""
_OF_PIPES: Mapping[tuple[str, str], type] = {called: kind for (kind, _), called in PIPES.items()}

Place = Literal["operands", "region", "attribute"]


@dataclass(frozen=True)
class NamedField:
    """One field of a class, and where it stands."""

    name: str
    place: Place
    many: bool
    """Whether it is a tuple."""
    default: object
    """What is left out; MISSING: nothing."""


@cache
def fields_of(kind: type) -> tuple[NamedField, ...]:
    """The fields of a class in their order, but for the kernel, which is a function of its own."""
    hints = get_type_hints(kind)
    return tuple(
        NamedField(one.name, _place(hints[one.name]), _is_tuple(hints[one.name]), _default(one))
        for one in fields(kind)
        if hints[one.name] is not Kernel
    )


def _default(field: Field[Any]) -> object:
    made = field.default_factory
    return field.default if made is MISSING else made()


def _place(hint: Any) -> Place:
    inside = _members(hint)
    if inside & _VALUES:
        return "operands"
    return "region" if inside & _STATEMENTS else "attribute"


def _members(hint: Any) -> frozenset[Any]:
    """The classes that a type names at first hand: of a union, of what a tuple holds."""
    if get_origin(hint) is None:
        return frozenset((hint,))
    return frozenset(one for inner in get_args(hint) for one in _members(inner))


def _is_tuple(hint: Any) -> bool:
    found = [one for one in (hint, *get_args(hint)) if one is not NoneType]
    return any(get_origin(one) is tuple for one in found)


def misfit(kind: type, values: Mapping[str, object]) -> str:
    """The field whose value is of another type than it says; "": none."""
    hints = get_type_hints(kind)
    return next((name for name, value in values.items() if not _fits(value, hints[name])), "")


def _fits(value: Any, hint: Any) -> bool:
    inside = get_args(hint)
    match get_origin(hint):
        case None:
            known = isinstance(hint, type) or hint is None
            return not known or _is_of(value, NoneType if hint is None else hint)
        case typing.Literal:
            return value in inside
        case builtins.tuple:
            return isinstance(value, tuple) and _all_fit(cast("tuple[Any, ...]", value), inside)
        case origin if isinstance(origin, type) and issubclass(origin, Mapping):
            return isinstance(value, dict) and all(
                _fits(one, inside[1]) for one in cast("dict[str, Any]", value).values()
            )
        case _:
            return any(_fits(value, one) for one in inside)


def _all_fit(values: tuple[Any, ...], inside: tuple[Any, ...]) -> bool:
    if inside[-1:] == (...,):
        return all(_fits(one, inside[0]) for one in values)
    return len(values) == len(inside) and all(map(_fits, values, inside))


def _is_of(value: object, kind: type) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


# Names -------------------------------------------------------------------------------------------


def called(kind: type, role: str = "") -> tuple[str, str]:
    """What an operation is called, and by what it comes about, where it is one of a pipe."""
    name, means = PIPES.get((kind, role), (_snake(kind.__name__), ""))
    return DIALECT + name, means


def kind_of_operation(name: str, means: str) -> type | None:
    """The class that an operation stands for; None: none."""
    plain = name.removeprefix(DIALECT)
    return _OF_PIPES.get((plain, means)) or _nodes().get(plain)


@cache
def _nodes() -> dict[str, type]:
    kinds = (*_VALUES, *_STATEMENTS, KernelProgram)
    found = {_snake(kind.__name__): kind for kind in kinds}
    assert len(found) == len(kinds), "two classes of a program have one name"
    return found


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


# What stands in attributes -----------------------------------------------------------------------


@cache
def records() -> Mapping[str, type]:
    """The classes that stand in attributes, by name."""
    found: dict[str, type] = {}
    seen: set[Any] = set()
    queue: list[Any] = [KernelProgram]
    while queue:
        at = queue.pop()
        for hint in _hints(at):
            for one in _members(hint):
                if one not in seen and one is not Kernel and one is not Operation:
                    seen.add(one)
                    queue.append(one)
                    if is_dataclass(one) and one not in _VALUES | _STATEMENTS:
                        assert isinstance(one, type)
                        assert one.__name__ not in found, f"two records are called {one.__name__}"
                        found[one.__name__] = one
    return found


def _hints(kind: Any) -> Iterator[Any]:
    if is_dataclass(kind):
        assert isinstance(kind, type)
        hints = get_type_hints(kind)
        yield from (hints[one.name] for one in fields(kind))
