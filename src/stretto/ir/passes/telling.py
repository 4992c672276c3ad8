"""Diagnostics and remarks of the passes, each at the operation it is about.

LoopError  $.ops[3]: no such slot    ──►  k.mlir:9:5: error: no such slot
Violation  `read` starts at 9; ...   ──►  k.mlir:9:5: error: dependence: `read` starts at 9; ...
                                          k.mlir:7:5: note: `load` starts at 4
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from stretto.errors import StrettoError
from stretto.ir.diagnostics import Diagnostic, MlirError, Severity
from stretto.ir.parsing import Parsed
from stretto.ir.reading import LeftAlone, LoopInModule, positioned
from stretto.ir.remarks import Kind, Remark, note_remark, tell
from stretto.loop import LoopError, Note
from stretto.solution import ScheduleAnalysis
from stretto.verify import Violation

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

    def remark(self, kind: Kind, name: str, message: str, **arguments: int | str) -> None:
        """A remark about the loop."""
        loop, op = self.found.loop.name, self.found.for_op
        place = self.at(op, "remark", message)
        where = (place.file, place.line, place.column)
        said = tuple(arguments.items())
        note_remark(Remark(kind, self.pass_name, name, loop, _function(op), *where, message, said))

    def error(self, error: StrettoError) -> list[Diagnostic]:
        """An error that the loop gave rise to, at what it is about."""
        if isinstance(error, MlirError):
            return list(error.diagnostics)
        if isinstance(error, LoopError):
            return list(positioned(self.parsed, self.found, error).diagnostics)
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


def left_alone(pass_name: str, one: LeftAlone) -> Diagnostic:
    """A loop that is not read at all: a remark, and the reason.

    The reason is itself only a remark where nothing was to be done with the loop.
    """
    why = one.reason
    place, message = (why.file, why.line, why.column), f"left alone: {why.message}"
    function = _function(one.op)
    note_remark(Remark("Missed", pass_name, "LeftAlone", one.name, function, *place, message))
    return why


def _function(op: Operation) -> str:
    """The name of the function around an operation; "" where there is none."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return "" if parent is None else parent.sym_name.data
