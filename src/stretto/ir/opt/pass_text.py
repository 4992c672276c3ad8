"""A pass pipeline as text, read and written.

    builtin.module(canonicalize,tileas-generate-schedule{machine=b200-pipes max-ii=40})
    canonicalize,tileas-generate-schedule{machine="my machine.toml"}         the same without anchor
         │                    │              └── options: key=value, several values by comma
         └── passes, in the order they run

xDSL has a parser of the second form; this one also takes the anchor, bare paths as values, and says
where in the text a fault is.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ParameterListType, ParameterType
from xdsl.utils.hints import isa, type_repr

from stretto.errors import StrettoError, nearest

Available = Mapping[str, Callable[[], type[ModulePass]]]
"""Pass name to what loads the pass."""

ANCHOR = "builtin.module"
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|\'([^\']*)\'')
_BARE = re.compile(r"[^\s,{}\"']+")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?")


class PipelineError(StrettoError):
    """A pipeline that cannot be read, with the place in its text."""

    def __init__(self, text: str, at: int, message: str) -> None:
        self.text = text
        self.at = at
        shown = re.sub(r"\s", " ", text)
        super().__init__(f"pass pipeline: {message}\n  {shown}\n  {' ' * at}^")
        self.message = message

    def __reduce__(self) -> tuple[type[PipelineError], tuple[str, int, str]]:
        return PipelineError, (self.text, self.at, self.message)


def read_pipeline(
    text: str, available: Available, only: Container[str] | None = None
) -> tuple[ModulePass, ...]:
    """The passes a text names, with their options; PipelineError where it is wrong.

    A pass that is not in `only`, where that is given, is refused before it is loaded.
    """
    return _PipelineReader(text, available, only).pipeline()


def write_pipeline(passes: Iterable[ModulePass]) -> str:
    """The text of a pipeline; options that have their default are left out."""
    return f"{ANCHOR}({','.join(_element(p.spec()) for p in passes)})"


def options_of(kind: type[ModulePass]) -> tuple[tuple[str, str, str], ...]:
    """Name, type and default (or "") of every option of a pass."""
    hints = get_type_hints(kind)
    rows: list[tuple[str, str, str]] = []
    for field in _options(kind):
        default = "" if field.default is dataclasses.MISSING else _value(field.default)
        rows.append((_dashed(field.name), type_repr(hints[field.name]), default))
    return tuple(rows)


def _options(kind: type[ModulePass]) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(kind) if field.init and field.name != "name"]


# Writing ----------------------------------------------------------------------------------


def _element(spec: ArgSpec) -> str:
    options = " ".join(
        _dashed(key) + ("=" + ",".join(map(_value, values)) if values else "")
        for key, values in spec.parameters.items()
    )
    return spec.name + (f"{{{options}}}" if options else "")


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or not isinstance(value, str):
        return "" if value is None else str(value)
    if _BARE.fullmatch(value) and _typed(value) == value:
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Reading ----------------------------------------------------------------------------------


def _typed(text: str) -> ParameterType:
    """A bare value as what it looks like."""
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


@dataclass
class _PipelineReader:
    """A cursor in the text of a pipeline."""

    text: str
    available: Available
    only: Container[str] | None = None
    at: int = 0

    def fail(self, message: str, at: int | None = None) -> PipelineError:
        return PipelineError(self.text, self.at if at is None else at, message)

    def spaces(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def takes(self, token: str) -> bool:
        self.spaces()
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def pipeline(self) -> tuple[ModulePass, ...]:
        anchored = re.match(r"\s*(builtin\.module|any)\s*\(", self.text)
        self.at = anchored.end() if anchored else 0
        passes = self.elements(")" if anchored else "")
        if anchored and not self.takes(")"):
            raise self.fail(f"expected `)` to close `{anchored[1]}(`")
        self.spaces()
        if self.at < len(self.text):
            raise self.fail(f"expected the end, found `{self.text[self.at :]}`")
        return passes

    def elements(self, closing: str) -> tuple[ModulePass, ...]:
        passes: list[ModulePass] = []
        self.spaces()
        if self.at == len(self.text) or (closing and self.text[self.at] == closing):
            return ()
        while True:
            passes.append(self.element())
            if not self.takes(","):
                return tuple(passes)

    def element(self) -> ModulePass:
        self.spaces()
        began = self.at
        name = self.match(_NAME)
        if name is None:
            raise self.fail("expected a pass")
        if self.text.startswith("(", self.at):
            raise self.fail(f"nested in `{name[0]}`: every pass here runs on {ANCHOR}", began)
        if name[0] not in self.available:
            near = get_close_matches(name[0], self.available, 1)
            hint = f"; did you mean `{near[0]}`?" if near else "; --list-passes shows all"
            raise self.fail(f"no pass `{name[0]}`{hint}", began)
        if self.only is not None and name[0] not in self.only:
            hint = "if you trust it, give the pipeline with -p, without --run-reproducer"
            refused = "is not run from a file, since it is not known to start no process"
            raise self.fail(f"`{name[0]}` {refused}; {hint}", began)
        kind = self.available[name[0]]()
        options = self.options(kind) if self.takes("{") else {}
        try:
            return kind.from_spec(ArgSpec(name[0], options))
        except (ValueError, StrettoError) as error:
            raise self.fail(f"{name[0]}: {error}", began) from None

    def options(self, kind: type[ModulePass]) -> dict[str, ParameterListType]:
        types = get_type_hints(kind)
        names = [field.name for field in _options(kind)]
        found: dict[str, ParameterListType] = {}
        while not self.takes("}"):
            self.spaces()
            began = self.at
            key = self.match(_NAME)
            if key is None:
                raise self.fail("expected an option or `}`")
            name = key[0].replace("-", "_")
            if name not in names:
                known = list(map(_dashed, names))
                hint = nearest(key[0], known, f"it has: {', '.join(known) or 'none'}")
                raise self.fail(f"{kind.name} has no option `{key[0]}`; {hint}", began)
            if name in found:
                raise self.fail(f"option `{key[0]}` stands twice", began)
            found[name] = self.typed(key[0], self.values(), types[name], began)
        return found

    def values(self) -> list[tuple[str, bool]]:
        """The texts of the values, and whether each was in quotes."""
        found: list[tuple[str, bool]] = []
        separator = "="
        while self.text.startswith(separator, self.at):
            self.at += 1
            if quoted := self.match(_QUOTED):
                inner: str | None = quoted[1]
                plain = quoted[2] if inner is None else re.sub(r"\\(.)", r"\1", inner)
                found.append((plain, True))
            elif bare := self.match(_BARE):
                found.append((bare[0], False))
            else:
                raise self.fail("expected a value")
            separator = ","
        return found

    def typed(
        self, key: str, values: list[tuple[str, bool]], expected: Any, began: int
    ) -> ParameterListType:
        """Values as the option wants them: one, or a tuple; a flag alone is true."""
        if not values and expected is bool:
            return (True,)
        texts = tuple(text for text, _ in values)
        plain = tuple(t if quoted else _typed(t) for t, quoted in values)
        # A whole number is a number: `time-limit=5` says what `time-limit=5.0` says.
        real = tuple(float(value) if type(value) is int else value for value in plain)
        for found in (plain, real, texts):
            one = len(found) == 1 and isa(found[0], expected)
            if one or isa(found, expected) or (not found and isa(None, expected)):
                return found
        given = f"`{','.join(texts)}`" if values else "given no value"
        raise self.fail(f"option `{key}` is {given}; expected {type_repr(expected)}", began)
