"""A machine that is almost another: what differs is said, and nothing is copied.

    extends = "h200"                with_settings("h200", {"budgets.smem.bytes": 65536})
    [budgets.smem]                      ──►  the Machine: the same
    bytes = 65536                   settings_toml("h200", {"budgets.smem.bytes": 65536})
                                        ──►  this text

Tables are laid over each other key by key; a list or a number replaces what stood there. The whole
is then read as any machine file is, so that a fault has its place: `h200.toml: budgets.smem.bytes`.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, cast

from stretto.document import Cursor, parse_toml
from stretto.errors import DocumentError, StrettoError
from stretto.files import read_text
from stretto.limits import MACHINE_BYTES
from stretto.machine.load import (
    WRITTEN,
    find_machine,
    machine_beside,
    machine_names,
    machine_of,
)
from stretto.machine.machine import Machine

Setting = int | bool | str
EXTENDS = "extends"
DEEPEST = 16
"""Files that extend each other; more is a mistake, or a circle."""

_NUMBER = re.compile(r"-?\d{1,18}")
_STEP = re.compile(r"\[(\d{1,6})\]")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def parse_setting(text: str) -> tuple[str, Setting]:
    """`budgets.smem.bytes=65536` as its path and its value; StrettoError where it is none."""
    path, equals, value = text.partition("=")
    path, value = path.strip(), value.strip()
    if not (equals and path and value):
        raise StrettoError(f"`{text}` is no setting; it should be PATH=VALUE")
    if value in ("true", "false"):
        return path, value == "true"
    return path, int(value) if _NUMBER.fullmatch(value) else value


def with_settings(
    name: str, settings: Mapping[str, Setting], environment: Mapping[str, str] | None = None
) -> Machine:
    """A machine, by name, path or text, with settings of its file changed.

    A path goes through the tables of the file: `slots.tma.capacity`,
    `encodings.mma.uses[0].duration`.
    """
    file, document = _document(name)
    for path, value in settings.items():
        _set(file, document, path, value)
    return machine_of(
        Cursor(file, "", document), os.environ if environment is None else environment
    )


def extended(top: Cursor) -> Cursor:
    """The document of a file that extends another, laid over that one."""
    return Cursor(top.file, "", _over(top, 0))


def settings_toml(name: str, settings: Mapping[str, Setting], called: str = "") -> str:
    """A machine file that makes `with_settings(name, settings)`; `called`: its own name.

    It extends the other, unless that one has no name to extend: then it has all of it.
    """
    file, document = _document(name)
    for path, value in settings.items():
        _set(file, document, path, value)
    if called:
        document["machine"]["name"] = called
    if file == WRITTEN:
        return "".join(_written((), document))
    changed: dict[str, Any] = {"machine": {"name": called}} if called else {}
    for path in settings:
        keys = _keys(file, document, path)
        # A list is replaced as a whole, so it is written as a whole.
        keys = keys[: next((i for i, key in enumerate(keys) if isinstance(key, int)), len(keys))]
        _lay(changed, [str(key) for key in keys], _at(document, keys))
    base = name if name in machine_names() else os.path.abspath(name)
    return f"{EXTENDS} = {json.dumps(base, ensure_ascii=False)}\n" + "".join(_written((), changed))


def machine_toml(name: str) -> str:
    """The whole file of a machine, with what it extends: it loads back equal."""
    return "".join(_written((), _document(name)[1]))


# Documents --------------------------------------------------------------------------------


def _document(name: str, depth: int = 0) -> tuple[str, dict[str, Any]]:
    """What a machine file says, with what it extends under it."""
    if "\n" in name:
        file, text = WRITTEN, name
    elif name in machine_names():
        target = resources.files("stretto.machine").joinpath("targets", f"{name}.toml")
        file, text = f"{name}.toml", target.read_text(encoding="utf-8")
    else:
        file, text = find_machine(name), read_text(name, MACHINE_BYTES)[1]
    return file, _over(parse_toml(file, text), depth)


def _over(top: Cursor, depth: int) -> dict[str, Any]:
    own = dict(top.table())
    if EXTENDS not in own:
        return own
    place = top.get(EXTENDS)
    base = place.text()
    if depth >= DEEPEST:
        raise place.fail(f"{DEEPEST} files extend each other", "is it a circle?")
    try:
        _, under = _document(machine_beside(top.file, base), depth + 1)
    except DocumentError as error:
        if error.path == EXTENDS or error.file == top.file:
            raise
        raise place.fail(f"`{base}` cannot be extended: {error}") from None
    except StrettoError as error:
        raise place.fail(str(error)) from None
    del own[EXTENDS]
    return _merged(under, own)


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(under)
    for key, value in over.items():
        below = found.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            tables = cast("dict[str, Any]", below), cast("dict[str, Any]", value)
            found[key] = _merged(*tables)
        else:
            found[key] = value
    return found


# Paths ------------------------------------------------------------------------------------


def _set(file: str, document: dict[str, Any], path: str, value: Setting) -> None:
    keys = _keys(file, document, path)
    holder = _at(document, keys[:-1])
    if isinstance(keys[-1], int) or isinstance(holder.get(keys[-1]), dict | list):
        raise DocumentError(file, path, "is no single value", "a setting changes one of its values")
    holder[keys[-1]] = value


def _keys(file: str, document: dict[str, Any], path: str) -> list[str | int]:
    """The steps of a path; names may have dots of their own, so that the longest name counts."""
    keys: list[str | int] = []
    here: Any = document
    rest = path
    while rest:
        step = _STEP.match(rest)
        if step is not None and isinstance(here, list):
            rows = cast("list[Any]", here)
            key: str | int = int(step[1])
            if int(step[1]) >= len(rows):
                last = f"the last is {len(rows) - 1}"
                raise DocumentError(file, path, f"there is no row {step[1]}", last)
            rest = rest[step.end() :].removeprefix(".")
        elif isinstance(here, dict):
            table = cast("dict[str, Any]", here)
            names = [n for n in table if re.match(re.escape(n) + r"(?:$|[.\[])", rest)]
            key = max(names, key=len, default="")
            if not key:
                if "." in rest or "[" in rest:
                    raise _unknown(file, path, rest, table)
                return [*keys, rest]  # a key that may be given; who reads the machine knows
            rest = rest[len(key) :].removeprefix(".")
        else:
            raise DocumentError(file, path, "goes on below a single value")
        keys.append(key)
        here = _at(document, keys)
    if not keys:
        raise DocumentError(file, "", "a setting needs a path", "such as budgets.smem.bytes")
    return keys


def _unknown(file: str, path: str, rest: str, table: dict[str, Any]) -> DocumentError:
    from difflib import get_close_matches  # noqa: PLC0415 - where something is misspelt

    name = re.split(r"[.\[]", rest)[0]
    close = get_close_matches(name, table, n=1)
    hint = f"did you mean `{close[0]}`?" if close else "there are " + ", ".join(list(table)[:20])
    return DocumentError(file, path, f"there is no `{name}`", hint)


def _at(document: Any, keys: list[str | int]) -> Any:
    for key in keys:
        document = document[key]
    return document


def _lay(table: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        table = table.setdefault(key, {})
    table[keys[-1]] = value


# TOML -------------------------------------------------------------------------------------


def _written(way: tuple[str, ...], table: dict[str, Any]) -> Iterator[str]:
    """A table and those in it, as TOML."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if way and plain:
        yield f"\n[{'.'.join(_key(key) for key in way)}]\n"
    for key, value in plain.items():
        yield f"{_key(key)} = {_value(value)}\n"
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _written((*way, key), cast("dict[str, Any]", value))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in cast('list[Any]', value))}]"
    if isinstance(value, dict):
        rows = cast("dict[str, Any]", value).items()
        return f"{{ {', '.join(f'{_key(key)} = {_value(each)}' for key, each in rows)} }}"
    return _text(value) if isinstance(value, str) else str(value)
