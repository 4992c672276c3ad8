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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from stretto.errors import DocumentError

T = TypeVar("T")

_MISSING = object()

MAX_DIGITS = 1000
"""A longer number is a mistake; up to here, whatever is computed from it can be printed."""
_TOO_LONG = 10**MAX_DIGITS

_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""Half of a surrogate pair: JSON lets it stand alone, but it is no character."""


@dataclass
class Cursor:
    """One place in a document: a value, and the way to it."""

    file: str
    path: str
    value: Any
    _seen: set[str] = field(default_factory=set[str])
    """Keys that were read."""
    _known: set[str] = field(default_factory=set[str])
    """Keys that were asked for, given or not."""

    def fail(self, message: str, hint: str = "") -> DocumentError:
        """An error at this place, for the caller to raise."""
        return DocumentError(self.file, self.path, message, hint)

    def _child(self, key: str, value: Any) -> Cursor:
        return Cursor(self.file, f"{self.path}.{key}" if self.path else key, value)

    def _expected(self, what: str) -> DocumentError:
        try:
            shown = json.dumps(self.value, default=str)
        except ValueError:
            return self._too_long()
        if len(shown) > 60:
            shown = shown[:57] + "..."
        return self.fail(f"is {shown}", f"expected {what}")

    def _too_long(self) -> DocumentError:
        return self.fail("a number is too long", f"at most {MAX_DIGITS} digits")

    # Tables -------------------------------------------------------------------------------

    def table(self) -> dict[str, Any]:
        """The keys and values of a table, as they stand."""
        value = cast("object", self.value)
        if not isinstance(value, dict):
            raise self._expected("a table of keys")
        return cast("dict[str, Any]", value)

    def has(self, key: str) -> bool:
        """Whether an optional key is given."""
        self._known.add(key)
        return key in self.table()

    def get(self, key: str) -> Cursor:
        """A required key."""
        table = self.table()
        self._seen.add(key)
        self._known.add(key)
        value = table.get(key, _MISSING)
        if value is _MISSING:
            raise self._child(key, None).fail("is missing", "this key is required")
        return self._child(key, value)

    def opt(self, key: str, read: Callable[[Cursor], T], default: T) -> T:
        """An optional key read by `read`, or its documented default."""
        return read(self.get(key)) if self.has(key) else default

    def entries(self) -> Iterator[tuple[str, Cursor]]:
        """Every key of a table whose keys are names chosen by the writer."""
        for key, value in self.table().items():
            self._seen.add(key)
            yield key, self._child(key, value)

    def done(self) -> None:
        """Refuse keys that nobody asked for: they are typing errors, not wishes."""
        for key in self.table():
            if key not in self._seen:
                close = difflib.get_close_matches(key, sorted(self._known), n=1)
                known = ", ".join(sorted(self._known))
                hint = f"did you mean `{close[0]}`?" if close else f"known keys: {known}"
                raise self._child(key, None).fail("unknown key", hint)

    # Lists and scalars --------------------------------------------------------------------

    def items(self) -> list[Cursor]:
        """The elements of a list."""
        value = cast("object", self.value)
        if not isinstance(value, list):
            raise self._expected("a list")
        elements = cast("list[Any]", value)
        return [Cursor(self.file, f"{self.path}[{i}]", v) for i, v in enumerate(elements)]

    def text(self) -> str:
        """A string that is not empty."""
        if not isinstance(self.value, str) or not self.value:
            raise self._expected("a string that is not empty")
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
        waiting: list[Cursor] = [self]
        while waiting:
            at = waiting.pop()
            value = cast("object", at.value)
            texts: list[str] = [value] if isinstance(value, str) else []
            if isinstance(value, list):
                waiting += reversed(at.items())
            elif isinstance(value, dict):
                texts = list(at.table())
                waiting += [at._child(k, v) for k, v in reversed(at.table().items())]
            for text in texts:
                half = _HALF.search(text)
                if half is not None:
                    shown = json.dumps(text[:40])
                    hint = f"\\u{ord(half[0]):04x} alone is half of a surrogate pair"
                    raise at.fail(f"{shown} is not text", hint)


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
            raise ValueError(f"the key {json.dumps(key)} stands twice in one object")
        table[key] = value
    return table


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
    except ValueError as error:
        raise DocumentError(file, "", f"not JSON: {error}") from None
    top = Cursor(file, "$", value)
    if _ESCAPED_HALF.search(text):
        top.refuse_half_characters()
    return top
