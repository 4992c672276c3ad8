"""What passes have to say of every loop, beside errors: remarks, and who listens to them.

    --- !Passed                                          LLVM's form, a YAML document a remark
    Pass:      tileas-generate-schedule
    Name:      Scheduled
    DebugLoc:  { File: "gemm.mlir", Line: 4, Column: 5 }
    Function:  "gemm"
    Loop:      "k_loop"
    Message:   "II 15 is the MII, limited by slot tp_smem_wr"
    Args:
      - II: 15
    ...

A pass is handed a context and a module and nothing else; so it tells whoever opened `listening()`.
Where nobody listens (stock `xdsl-opt`), warnings go to stderr and remarks nowhere.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from xdsl.dialects.builtin import ModuleOp

from stretto.ir.diagnostics import Diagnostic
from stretto.ir.parsing import Parsed

Kind = Literal["Passed", "Missed", "Failure"]
FORMATS = ("yaml", "json")
SCHEMA = "stretto.remarks/1"


@dataclass(frozen=True, slots=True)
class Remark:
    """What became of one loop in one pass."""

    kind: Kind
    pass_name: str
    name: str
    """``Scheduled``, ``LeftAlone``, ``Legal`` or ``Illegal``."""
    loop: str
    function: str
    file: str
    line: int
    column: int
    """Line and column are 0 where the loop has no position."""
    message: str
    arguments: tuple[tuple[str, int | str], ...] = ()
    """The numbers again, by name."""

    @property
    def text(self) -> str:
        """On one line, as a filter and a reader of diagnostics see it."""
        return f"{self.kind} {self.pass_name} {self.loop}: {self.message}"

    def to_json(self) -> dict[str, Any]:
        """The remark as a JSON object."""
        place = {"file": self.file, "line": self.line, "column": self.column}
        return {
            "kind": self.kind,
            "pass": self.pass_name,
            "name": self.name,
            "location": place if self.line else None,
            "function": self.function,
            "loop": self.loop,
            "message": self.message,
            "arguments": dict(self.arguments),
        }

    def to_yaml(self) -> str:
        """The remark as a YAML document."""
        rows = [("Pass", self.pass_name), ("Name", self.name)]
        if self.line:
            place = f"{{ File: {_quoted(self.file)}, Line: {self.line}, Column: {self.column} }}"
            rows.append(("DebugLoc", place))
        rows += [("Function", _quoted(self.function))] if self.function else []
        rows += [("Loop", _quoted(self.loop)), ("Message", _quoted(self.message))]
        lines = [f"--- !{self.kind}", *(f"{key + ':':<10} {value}" for key, value in rows)]
        lines += ["Args:"] if self.arguments else []
        for key, value in self.arguments:
            lines.append(f"  - {key}: {_quoted(value) if isinstance(value, str) else value}")
        return "\n".join([*lines, "..."]) + "\n"


def _quoted(text: str) -> str:
    """A JSON string is a YAML string, but for the line breaks that only YAML knows as such."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else _escaped(ord(c)) for c in plain)


def _escaped(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def render(remarks: Iterable[Remark], form: str) -> str:
    """Remarks as one text."""
    if form == "yaml":
        return "".join(remark.to_yaml() for remark in remarks)
    document = {"schema": SCHEMA, "remarks": [remark.to_json() for remark in remarks]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


# Listening --------------------------------------------------------------------------------


@dataclass
class Listener:
    """What was told, in order; and the module that is worked on, with its positions."""

    parsed: Parsed | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    remarks: list[Remark] = field(default_factory=list[Remark])


_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(parsed: Parsed | None = None) -> Generator[Listener]:
    """Hear what the passes run inside tell, and let them know where their operations stand."""
    listener = Listener(parsed)
    token = _LISTENER.set(listener)
    try:
        yield listener
    finally:
        _LISTENER.reset(token)


def parsed_of(module: ModuleOp) -> Parsed:
    """A module with its positions, where somebody knows them."""
    listener = _LISTENER.get()
    if listener is None or listener.parsed is None or listener.parsed.module is not module:
        return Parsed.of_module(module)
    return listener.parsed


def tell(diagnostic: Diagnostic) -> None:
    """A warning or another thing to know that stops nothing."""
    listener = _LISTENER.get()
    if listener is None:
        sys.stderr.write(f"{diagnostic.render()}\n")
    else:
        listener.diagnostics.append(diagnostic)


def note_remark(remark: Remark) -> None:
    """Something about a loop, for whoever asked for remarks."""
    listener = _LISTENER.get()
    if listener is not None:
        listener.remarks.append(remark)
