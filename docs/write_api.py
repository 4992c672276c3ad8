"""Writes `api.md` from the signatures and docstrings of the public names.

stretto.__all__, parts of loops  ──►  functions, results, errors  ──►  docs/api.md
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import stretto
import stretto.cutile
import stretto.loop
import stretto.triton
from stretto.api import Result

PARTS_OF_LOOPS = [
    "Op",
    "Operand",
    "Use",
    "Demand",
    "Dependence",
    "Value",
    "Storage",
    "Access",
    "TileType",
    "Constraint",
    "Facts",
]
"""Of `stretto.loop`: what a loop is made of, for whoever writes a generator or a front end."""
PAGE = Path(__file__).parent / "api.md"
HEAD = """# The Python functions

*Written from the docstrings by `make docs`.*

"""
RESULTS = """Each prints as a line, and has `report()`, the text that the command line prints, and
`to_json()`, its entry in a JSON document."""


def page() -> str:
    """The whole page."""
    found = {name: getattr(stretto, name) for name in stretto.__all__}
    functions = {name: one for name, one in found.items() if inspect.isfunction(one)}
    classes = {name: one for name, one in found.items() if inspect.isclass(one)}
    results = {name: one for name, one in classes.items() if issubclass(one, Result)}
    errors = {name: one for name, one in classes.items() if issubclass(one, BaseException)}
    others = {n: one for n, one in classes.items() if n not in results and n not in errors}
    doc = inspect.getdoc(stretto) or ""
    parts = [HEAD + "\n".join(_fenced(doc.splitlines())), "## Functions"]
    parts += [_function(name, one) for name, one in functions.items()]
    parts.append("## Functions for kernels of Triton and cuTile")
    for module in (stretto.triton, stretto.cutile):
        known = {name: getattr(module, name) for name in module.__all__}
        name = module.__name__.removeprefix("stretto.")
        parts += [_function(f"{name}.{n}", f) for n, f in known.items() if inspect.isfunction(f)]
    parts += ["## Results", RESULTS]
    parts += [_class(name, one) for name, one in results.items()]
    parts.append("## Problems and parts of results")
    parts += [_class(name, one) for name, one in others.items()]
    parts += ["## Parts of loops", "These are in `stretto.loop`. All are frozen dataclasses."]
    parts += [_class(name, getattr(stretto.loop, name)) for name in PARTS_OF_LOOPS]
    parts.append("## Errors")
    rows = [f"| `{name}` | {_first(one)} |" for name, one in errors.items()]
    parts.append("\n".join(["| error | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _fenced(lines: list[str]) -> Iterator[str]:
    """Lines that are indented, as code."""
    inside = False
    for i, line in enumerate(lines):
        code = line.startswith("    ") or (inside and not line and _more(lines[i + 1 :]))
        if code != inside:
            yield "```python" if code else "```\n" if line else "```"
            inside = code
        yield line.removeprefix("    ") if code else line


def _more(lines: list[str]) -> bool:
    return next((line for line in lines if line), "").startswith("    ")


def _function(name: str, function: Callable[..., Any], level: int = 3) -> str:
    signature = _signature(name.rpartition(".")[2], function)
    return f"{'#' * level} `{name}`\n\n```python\n{signature}\n```\n\n{_doc(function)}"


def _signature(name: str, function: Callable[..., Any]) -> str:
    """A parameter a line, once there are several."""
    signature = inspect.signature(function)
    rows: list[str] = []
    starred = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            rows.append("*")
        starred |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        rows.append(str(parameter))
    rows = [_unquoted(row) for row in rows]
    result = _unquoted(str(signature.return_annotation))
    line = f"def {name}({', '.join(rows)}) -> {result}: ..."
    if len(rows) < 3 and len(line) <= 100:
        return line
    return f"def {name}(\n" + "".join(f"    {row},\n" for row in rows) + f") -> {result}: ..."


def _unquoted(row: str) -> str:
    """Without the quotes that an annotation is kept in."""
    name, colon, rest = row.partition(": ")
    if not colon:
        return row.strip("'")
    annotation, equals, default = rest.rpartition(" = ")
    if not equals:
        annotation, default = default, ""
    default = default.replace("'", '"')
    return f"{name}: {annotation.strip(chr(39))}{equals}{default}"


def _class(name: str, kind: type[Any]) -> str:
    parts = [f"### `{name}`", _doc(kind)]
    rows = [*_fields(kind).items(), *_properties(kind).items()]
    methods = {
        member: what
        for member, what in vars(kind).items()
        if inspect.isfunction(what) and not member.startswith("_") and _doc(what)
    }
    if not is_dataclass(kind):  # it is there for its methods
        parts += [_function(f"{name}.{member}", what, 4) for member, what in methods.items()]
        return "\n\n".join(parts)
    rows += [(f"{member}()", (_result(what), _first(what))) for member, what in methods.items()]
    cells = [f"| `{one}` | `{_cell(type_)}` | {_cell(doc)} |" for one, (type_, doc) in rows]
    parts.append("\n".join(["| has | of type | |", "|---|---|---|", *cells]))
    return "\n\n".join(parts)


def _fields(kind: type[Any]) -> dict[str, tuple[str, str]]:
    """Type and docstring of each field, as they stand in the source, bases first."""
    found: dict[str, tuple[str, str]] = {}
    for base in reversed(kind.__mro__[:-1]):
        if not is_dataclass(base):
            continue
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(body, ast.ClassDef)
        for node, below in zip(body.body, [*body.body[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = ast.unparse(node.annotation), _literal(below)
    names = {field.name for field in fields(kind)} if is_dataclass(kind) else set[str]()
    return {name: row for name, row in found.items() if name in names}


def _literal(node: ast.stmt | None) -> str:
    """The string that stands under a field, on one line."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split()).replace("``", "`")
    return ""


def _properties(kind: type[Any]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for name, what in inspect.getmembers(kind):
        if isinstance(what, property | cached_property) and not name.startswith("_"):
            made: Any = what.fget if isinstance(what, property) else what.func
            found[name] = _result(made), _first(made)
    return found


def _result(function: Callable[..., Any]) -> str:
    return str(inspect.signature(function).return_annotation).strip("'")


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _doc(what: object) -> str:
    return (inspect.getdoc(what) or "").replace("``", "`")


def _first(what: object) -> str:
    return next(iter(_doc(what).splitlines()), "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
