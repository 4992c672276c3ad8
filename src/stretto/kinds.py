"""What the arguments of public functions may be: whole numbers, texts, lists of them.

    @checked
    def schedule(loop, ..., max_ii: int | None = None, without: Iterable[str] = ()): ...

    schedule(loop, max_ii="9")   ──►  max_ii is '9'; a whole number or None is expected

The signature says it, and nothing else does. A positional argument that takes a class of ours is
left to its function, which knows what to give instead; whether a number is in its range is too.
"""

from __future__ import annotations

import collections.abc
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, wraps
from itertools import chain
from numbers import Real
from operator import index
from os import PathLike
from reprlib import Repr
from typing import Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin

from stretto.errors import StrettoError
from stretto.limits import WHOLE

P = ParamSpec("P")
R = TypeVar("R")
WIDTH = 60
"""Characters of an argument that are told."""
LOOKED_AT = 1000
"""Elements of a list that are looked at."""
OURS = "stretto."
NAMES: Mapping[object, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a text",
    types.NoneType: "None",
    PathLike: "a path",
}
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = WIDTH
_FUNCTION: Any = get_origin(Callable[..., object])
_UNIONS = (Union, types.UnionType)
_TEXTS = (str, bytes, bytearray)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Has a function refuse arguments of a wrong kind: StrettoError with what is expected."""

    @wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> R:
        require(function, args, options)
        return function(*args, **options)

    return called


def require(
    function: Callable[..., object], args: tuple[object, ...], options: Mapping[str, object]
) -> None:
    """StrettoError where an argument is of a kind that its function does not take."""
    places, kinds = _kinds(function)
    for name, given in chain(zip(places, args, strict=False), options.items()):
        if name in kinds and not _is(given, kinds[name]):
            if isinstance(given, int) and abs(given) > WHOLE:
                raise StrettoError(f"{name} is {_SHORT.repr(given)}; at most {WHOLE:,} is possible")
            raise StrettoError(f"{name} is {_SHORT.repr(given)}; {_told(kinds[name])} is expected")


@cache
def _kinds(function: Callable[..., object]) -> tuple[tuple[str, ...], Mapping[str, object]]:
    """The names of positional parameters, and of every parameter that is checked its kinds."""
    function = inspect.unwrap(function)
    parameters = inspect.signature(function).parameters.values()
    found: dict[str, object] = {}
    for one in parameters:
        if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) or one.annotation is one.empty:
            continue
        with suppress(NameError):  # known to type checkers alone
            kind = eval(one.annotation, function.__globals__)
            if one.kind is one.KEYWORD_ONLY or not any(map(_ours, _either(kind))):
                found[one.name] = kind
    places = (one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD)
    return tuple(places), found


def _either(kind: object) -> Iterator[object]:
    """The kinds of which it is one."""
    if get_origin(kind) in _UNIONS:
        for one in get_args(kind):
            yield from _either(one)
    else:
        yield kind


def _ours(kind: object) -> bool:
    return isinstance(kind, type) and kind.__module__.startswith(OURS)


def _is(given: object, kind: object) -> bool:
    """Whether something is of a kind."""
    origin: Any = get_origin(kind) or kind
    if kind is Any:
        return True
    if origin in _UNIONS:
        return any(_is(given, one) for one in get_args(kind))
    if origin is Literal:  # of another text the function says which there are
        return isinstance(given, str) or given in get_args(kind)
    if origin in (int, float):
        if isinstance(given, bool):
            return False
        if hasattr(given, "__index__"):
            return abs(index(cast("Any", given))) <= WHOLE
        return origin is float and isinstance(given, Real)
    if not isinstance(origin, type):
        return True
    if origin is _FUNCTION:
        return callable(given)
    if getattr(origin, "_is_protocol", False):
        return all(hasattr(given, name) for name in vars(origin) if not name.startswith("_"))
    if not isinstance(given, _takes(origin)) or (origin is not str and isinstance(given, _TEXTS)):
        return False
    return _has(given, origin, get_args(kind))


def _takes(origin: type) -> type:
    """What stands for a kind: a list for a tuple too, an array for a list."""
    listed = (tuple, list, collections.abc.Sequence)
    return collections.abc.Iterable if origin in listed else origin


def _has(given: object, origin: type, inside: tuple[object, ...]) -> bool:
    """Whether what something has inside is of the kinds that it should be."""
    if not inside or not isinstance(given, collections.abc.Sized):
        return True
    if issubclass(origin, Mapping):
        known = cast("Mapping[object, object]", given)
        return all(_is(k, inside[0]) and _is(v, inside[1]) for k, v in known.items())
    if not isinstance(given, collections.abc.Iterable) or len(given) > LOOKED_AT:
        return True
    elements = list(cast("collections.abc.Iterable[Any]", given))
    if origin is tuple and inside[-1] is not Ellipsis:
        return len(elements) == len(inside) and all(map(_is, elements, inside))
    return all(_is(one, inside[0]) for one in elements)


def _told(kind: object) -> str:
    """A kind in words."""
    return " or ".join(dict.fromkeys(_named(one) for one in _either(kind)))


def _each(kind: object) -> str:
    return re.sub(r"\ba (whole number|\w+)", r"\1s", _told(kind))


def _named(kind: object) -> str:
    origin: Any = get_origin(kind) or kind
    inside = get_args(kind)
    if origin in NAMES:
        return NAMES[origin]
    if origin is Literal:
        return " or ".join(map(repr, inside))
    if origin is _FUNCTION:
        return "a function"
    if not isinstance(origin, type):
        return str(origin)
    if issubclass(origin, Mapping):
        return f"a dict of {_each(inside[0])} to {_each(inside[1])}" if inside else "a dict"
    if origin is tuple and inside[-1:] != (Ellipsis,):
        return f"a tuple ({', '.join(map(_told, inside))})"
    if issubclass(_takes(cast("type", origin)), collections.abc.Iterable) and inside:
        return f"a list of {_each(inside[0])}"
    return origin.__name__
