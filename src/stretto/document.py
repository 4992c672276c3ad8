"""Reading documents that people write, with the path of every fault.

    {"ops": [{"name": 3}]}   ──►   loop.json: $.ops[0].name: error: is 3; expected a string

One cursor walks TOML and JSON alike. Nothing is guessed: a missing key, a wrong type and an
unknown key are each an error that says what was expected.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from stretto.errors import DocumentError
from stretto.limits import NUMBER_DIGITS, TEXT_CHARACTERS

T = TypeVar("T")

_MISSING = object()

_TOO_LONG = 10**NUMBER_DIGITS

_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""Half of a surrogate pair: JSON lets it stand alone, but it is no character."""


@dataclass(slots=True)
class Cursor:
    """One place in a document: a value, and the way to it."""

    file: str
    path: str
    value: Any
    _keys: dict[str, bool] | None = None
    """Keys that were asked for, given or not, and whether each was read; most values have none."""

    def fail(self, message: str, hint: str = "") -> DocumentError:
        """An error at this place, for the caller to raise."""
        return DocumentError(self.file, self.path, message, hint)

    def _child(self, key: str, value: Any) -> Cursor:
        return Cursor(self.file, f"{self.path}.{key}" if self.path else key, value)

    def _expected(self, what: str) -> DocumentError:
        value = cast("object", self.value)
        if isinstance(value, list | dict):
            items = cast("list[Any]", value)
            kind = "list" if isinstance(value, list) else "table"
            if len(items) > 4:
                return self.fail(f"is a {kind} of {len(items):,}", f"expected {what}")
        try:
            shown = json.dumps(value[:60] if isinstance(value, str) else value, default=str)
        except ValueError:
            return self._too_long()
        if len(shown) > 60:
            shown = shown[:57] + "..."
        return self.fail(f"is {shown}", f"expected {what}")

    def _too_long(self) -> DocumentError:
        return self.fail("a number is too long", f"at most {NUMBER_DIGITS} digits")

    # Tables -------------------------------------------------------------------------------

    def table(self) -> dict[str, Any]:
        """The keys and values of a table, as they stand."""
        value = cast("object", self.value)
        if not isinstance(value, dict):
            raise self._expected("a table of keys")
        return cast("dict[str, Any]", value)

    def _asked(self) -> dict[str, bool]:
        if self._keys is None:
            self._keys = {}
        return self._keys

    def has(self, key: str) -> bool:
        """Whether an optional key is given."""
        self._asked().setdefault(key, False)
        return key in self.table()

    def get(self, key: str) -> Cursor:
        """A required key."""
        table = self.table()
        self._asked()[key] = True
        value = table.get(key, _MISSING)
        if value is _MISSING:
            asked = self._asked()
            others = [k for k in self.table() if not asked.get(k)]
            near = difflib.get_close_matches(key, others, n=1)
            hint = f"there is `{near[0]}`; is that meant?" if near else "this key is required"
            raise self._child(key, None).fail("is missing", hint)
        return self._child(key, value)

    def opt(self, key: str, read: Callable[[Cursor], T], default: T) -> T:
        """An optional key read by `read`, or its documented default."""
        return read(self.get(key)) if self.has(key) else default

    def pass_over(self, *keys: str) -> None:
        """Let keys stand that say nothing to whoever reads."""
        self._asked().update(dict.fromkeys(keys, True))

    def entries(self) -> Iterator[tuple[str, Cursor]]:
        """Every key of a table whose keys are names chosen by the writer."""
        for key, value in self.table().items():
            self._asked()[key] = True
            yield key, self._child(key, value)

    def done(self) -> None:
        """Refuse keys that nobody asked for: they are typing errors, not wishes."""
        asked = self._asked()
        for key in self.table():
            if not asked.get(key):
                close = difflib.get_close_matches(key[:60], sorted(asked), n=1)
                known = ", ".join(sorted(asked))
                hint = f"did you mean `{close[0]}`?" if close else f"known keys: {known}"
                raise self._child(key[:60], None).fail("unknown key", hint)

    def record(
        self, make: Callable[..., T], required: str, **readers: Callable[[Cursor], object]
    ) -> T:
        """A value of a class: its keys, each with how it is read, and no others.

        Those that must be given are named in one string; of the others the class has a default.
        """
        needed = required.split()
        given = {
            key: read(self.get(key))
            for key, read in readers.items()
            if key in needed or self.has(key)
        }
        self.done()
        return make(**given)

    # Lists and scalars --------------------------------------------------------------------

    def items(self) -> Iterator[Cursor]:
        """The elements of a list, one at a time: there may be millions."""
        value = cast("object", self.value)
        if not isinstance(value, list):
            raise self._expected("a list")
        elements = cast("list[Any]", value)
        return (Cursor(self.file, f"{self.path}[{i}]", v) for i, v in enumerate(elements))

    def text(self) -> str:
        """A string that is not empty."""
        if not isinstance(self.value, str) or not self.value:
            raise self._expected("a string that is not empty")
        if len(self.value) > TEXT_CHARACTERS:
            told = f"is a string of {len(self.value):,} characters"
            raise self.fail(told, f"at most {TEXT_CHARACTERS:,} are allowed")
        return self.value

    def integer(self, minimum: int | None = None) -> int:
        """A whole number, at least `minimum`."""
        wanted = "a whole number" + ("" if minimum is None else f" of at least {minimum}")
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self._expected(wanted)
        if abs(self.value) >= _TOO_LONG:
            raise self._too_long()
        if minimum is not None and self.value < minimum:
            raise self._expected(wanted)
        return self.value

    def natural(self) -> int:
        """A whole number of at least 0."""
        return self.integer(0)

    def positive(self) -> int:
        """A whole number of at least 1."""
        return self.integer(1)

    def number(self) -> float:
        """Any number that is not negative."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self._expected("a number")
        if not 0 <= self.value < float("inf"):
            raise self._expected("a number of at least 0")
        try:
            return float(self.value)
        except OverflowError:
            raise self._too_long() from None

    def boolean(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self._expected("true or false")
        return self.value

    def choice(self, options: tuple[str, ...]) -> str:
        """One of a few words."""
        if self.value not in options:
            raise self._expected("one of " + ", ".join(f'"{o}"' for o in options))
        return cast("str", self.value)

    def refuse_half_characters(self) -> None:
        """Refuse half of a surrogate pair, in keys and strings: nobody could print it."""
        waiting: list[Iterator[Cursor]] = [iter((self,))]
        while waiting:
            at = next(waiting[-1], None)
            if at is None:
                waiting.pop()
                continue
            value = cast("object", at.value)
            texts: list[str] = [value] if isinstance(value, str) else []
            if isinstance(value, list):
                waiting.append(at.items())
            elif isinstance(value, dict):
                texts = list(at.table())
                waiting.append(at._children())
            for text in texts:
                half = _HALF.search(text)
                if half is not None:
                    shown = json.dumps(text[:40])
                    hint = f"\\u{ord(half[0]):04x} alone is half of a surrogate pair"
                    raise at.fail(f"{shown} is not text", hint)

    def _children(self) -> Iterator[Cursor]:
        return (self._child(key, value) for key, value in self.table().items())


def each(read: Callable[[Cursor], T]) -> Callable[[Cursor], tuple[T, ...]]:
    """Reads a list, element by element."""
    return lambda cursor: tuple(read(item) for item in cursor.items())


def nullable(read: Callable[[Cursor], T]) -> Callable[[Cursor], T | None]:
    """Reads null too."""
    return lambda cursor: None if cursor.value is None else read(cursor)


def reader(made: type[T], **special: Callable[[Cursor], object]) -> Callable[[Cursor], T]:
    """Reads a value of a frozen dataclass: each field by its type, but for those that say how.

    Text is not empty and whole numbers are at least 0. A field without a default must be given;
    what is no part of a value (``compare=False``) is not read.
    """

    @cache
    def found() -> tuple[str, Mapping[str, Callable[[Cursor], object]]]:
        types, own = get_type_hints(made), [f for f in fields(cast("Any", made)) if f.compare]
        needed = [f.name for f in own if f.default is MISSING and f.default_factory is MISSING]
        return " ".join(needed), {f.name: _by_type(types[f.name]) for f in own} | special

    def read(row: Cursor) -> T:
        needed, readers = found()
        return row.record(made, needed, **readers)

    return read


def _by_type(type: Any) -> Callable[[Cursor], object]:
    """How a field of this type is read."""
    if isinstance(type, UnionType):  # or left out
        (type,) = [one for one in get_args(type) if one is not NoneType]
    if get_origin(type) is Literal:
        return one_of(*get_args(type))
    if get_origin(type) is tuple:
        return each(_by_type(get_args(type)[0]))
    plain = {str: Cursor.text, int: Cursor.natural, bool: Cursor.boolean}.get(type)
    return plain or reader(type)


def one_of(*options: str) -> Callable[[Cursor], str]:
    """Reads one of a few words."""
    return lambda cursor: cursor.choice(options)


_SCHEMA = re.compile(r"(?:stretto\.[a-z]+/|ddg-)[0-9.]{1,9}")


def unknown_schema(cursor: Cursor, expected: str) -> DocumentError:
    """A document of another kind: named where it is a near one, and never quoted else."""
    value = cast("object", cursor.value)
    near = isinstance(value, str) and _SCHEMA.fullmatch(value)
    return cursor.fail(f"is {value!r}" if near else "is that of no document known here", expected)


def parse_toml(file: str, text: str) -> Cursor:
    """The top of a TOML document."""
    try:
        return Cursor(file, "", tomllib.loads(_without_bom(text)))
    except tomllib.TOMLDecodeError as error:
        raise DocumentError(file, "", f"not TOML: {error}") from None
    except RecursionError:
        raise DocumentError(file, "", "not TOML: nested too deeply") from None
    except ValueError:  # all that is left: more digits than Python converts
        raise DocumentError(file, "", "not TOML: a number is too long") from None


def _without_bom(text: str) -> str:
    """Without the mark that some editors put before the first character."""
    return text.removeprefix("\ufeff")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise _DuplicateKeyError(key)
        table[key] = value
    return table


class _DuplicateKeyError(Exception):
    """A key that stands twice in one object."""


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _whole(digits: str) -> int:
    if len(digits) > sys.get_int_max_str_digits() > 0:
        raise ValueError(f"a number is too long ({len(digits)} digits)")
    return int(digits)


def parse_json(file: str, text: str) -> Cursor:
    """The top of a JSON document."""
    text = _without_bom(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constant,
            parse_int=_whole,
        )
    except json.JSONDecodeError as error:
        place = f"{file}:{error.lineno}:{error.colno}"
        raise DocumentError(place, "", f"not JSON: {error.msg}") from None
    except RecursionError:
        raise DocumentError(file, "", "not JSON: nested too deeply") from None
    except _DuplicateKeyError as error:
        # Not recognized yet: a document of another kind is not quoted.
        key = f"the key {json.dumps(error.args[0][:60])}" if _SCHEMA.search(text) else "a key"
        raise DocumentError(file, "", f"not JSON: {key} stands twice in one object") from None
    except ValueError as error:
        raise DocumentError(file, "", f"not JSON: {error}") from None
    top = Cursor(file, "$", value)
    if _ESCAPED_HALF.search(text):
        top.refuse_half_characters()
    return top
