"""What passes have to say of every loop: diagnostics at their place, remarks, and who listens.

    LoopError  $.ops[3]: no such slot    ──►  k.mlir:9:5: error: no such slot
    Violation  `read` starts at 9; ...   ──►  k.mlir:9:5: error: dependence: `read` starts at 9; ...
                                              k.mlir:7:5: note: `load` starts at 4

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
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from stretto.diagnostics import Diagnostic, MlirError, Severity
from stretto.errors import StrettoError
from stretto.extraction import positioned
from stretto.ir.loops import LeftAloneInModule, LoopInModule, LoopsOfModule
from stretto.ir.loops.module import ANY, Module
from stretto.ir.parsing import Parsed
from stretto.loop import LoopError, Note
from stretto.machine import load_machine
from stretto.solution import ScheduleAnalysis
from stretto.verification import Violation

if TYPE_CHECKING:
    from stretto.schemas import remark
    from stretto.schemas.remark import Place

RemarkKind = Literal["Passed", "Missed", "Failure"]
RemarkName = Literal[
    "Scheduled", "LeftAlone", "Refused", "Legal", "Illegal", "Materialized", "Trusted"
]
FORMATS = ("yaml", "json")
SCHEMA = "stretto.remarks/1"


@dataclass(frozen=True, slots=True)
class Remark:
    """What became of one loop in one pass."""

    kind: RemarkKind
    pass_name: str
    name: RemarkName
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

    def to_json(self) -> remark.Remark:
        """The remark as a JSON object."""
        place: Place = {"file": self.file, "line": self.line, "column": self.column}
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


# Of one loop, for one pass ----------------------------------------------------------------

MOST_NOTES = 8
"""Operations beside the first that a violation points to, one by one."""


class PassError(MlirError, PassFailedException):
    """A pass that refuses its module; xDSL's own drivers know it as a failed pass."""


@dataclass(frozen=True)
class Speaker:
    """Says things about one loop for one pass."""

    pass_name: str
    parsed: Parsed
    found: LoopInModule

    def at(
        self,
        op: Operation,
        severity: Severity,
        message: str,
        *notes: Diagnostic,
        attribute: str | None = None,
    ) -> Diagnostic:
        """A diagnostic at an operation, or at an attribute of it."""
        return self.parsed.diagnose(op, severity, message, notes, attribute)

    def of_loop(self, severity: Severity, message: str) -> Diagnostic:
        """A diagnostic at the loop, which names it."""
        return self.at(self.found.for_op, severity, f"{self.found.loop.name}: {message}")

    def warn(self, note: Note) -> None:
        """A note of the scheduler: at its operation, unless that was warned of, or at the loop."""
        if note.place.op is None:
            tell(self.of_loop("warning", note.text))
            return
        op = self.found.ops[self.found.loop.ops[note.place.op].name]
        told = self.at(op, "warning", note.text)
        if not any((w.line, w.column) == (told.line, told.column) for w in self.found.warnings):
            tell(told)

    def remark(
        self,
        kind: RemarkKind,
        name: RemarkName,
        message: str,
        at: Operation | None = None,
        /,
        **arguments: int | str,
    ) -> None:
        """A remark about the loop, at an operation of it where one is given."""
        loop, op = self.found.loop.name, self.found.for_op
        place = self.at(at or op, "remark", message)
        where = (place.file, place.line, place.column)
        said = tuple(arguments.items())
        note_remark(Remark(kind, self.pass_name, name, loop, _function(op), *where, message, said))

    def error(self, error: StrettoError) -> list[Diagnostic]:
        """An error that the loop gave rise to, at what it is about."""
        if isinstance(error, MlirError):
            return list(error.diagnostics)
        if isinstance(error, LoopError):
            return list(positioned(Module(self.parsed), self.found, error).diagnostics)
        return [self.of_loop("error", error.message)]

    def violation(self, analysis: ScheduleAnalysis, what: Violation) -> Diagnostic:
        """A violation at the operation that commits it, with notes at the others."""
        message = f"{what.rule}: {what.message}"
        known = [name for name in what.ops if name in self.found.ops]
        if not known:
            return self.of_loop("error", message)
        # Of a dependence, the one that comes too early is at fault; it is named last.
        main = known[-1] if what.rule == "dependence" else known[0]
        others = [name for name in known if name != main]
        starts = analysis.starts
        notes = [
            self.at(self.found.ops[name], "note", f"`{name}` starts at {starts[name]}")
            for name in others[:MOST_NOTES]
        ]
        if len(others) > MOST_NOTES:
            more = len(others) - MOST_NOTES
            notes.append(self.of_loop("note", f"and {more} more operations of this loop"))
        return self.at(self.found.ops[main], "error", message, *notes)


def tell_left_alone(
    pass_name: str, loops: LoopsOfModule, wrong: Callable[[LeftAloneInModule], bool]
) -> list[Diagnostic]:
    """A remark on every loop that is not read at all, and the reason: the errors among them.

    A reason is itself only a remark where nothing was to be done with the loop.
    """
    errors: list[Diagnostic] = []
    for one in loops.left_alone:
        why = one.reason
        place, message = (why.file, why.line, why.column), f"left alone: {why.message}"
        function = _function(one.op)
        note_remark(Remark("Missed", pass_name, "LeftAlone", one.name, function, *place, message))
        if wrong(one):
            errors.append(replace(why, severity="error"))
        elif why.severity != "remark":
            tell(why)
    return errors


def check_options(machine: str | None, **counts: int | None) -> None:
    """Refuse options of a pass: a count below 1, a machine that there is not."""
    for name, number in counts.items():
        if number is not None and number < 1:
            raise ValueError(f"{name.replace('_', '-')} is {number}; at least 1 is needed")
    if machine is not None:
        load_machine(machine)


def _function(op: Operation) -> str:
    """The name of the function around an operation; "" where there is none."""
    return next((at.sym_name.data for at in ANY.around(op) if isinstance(at, FuncOp)), "")
