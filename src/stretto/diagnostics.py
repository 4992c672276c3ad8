"""What is said about a place in an MLIR text.

kernel.mlir:7:10: error: `b` is 64x128xf16; `a` is 128x32xf16 and wants 32 rows
  %c = nv_tileas.async.dot %a, %b : ...
       ^
kernel.mlir:4:10: note: `a` comes from here
  %a = ...
       ^
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from stretto.errors import StrettoError

Severity = Literal["error", "warning", "remark", "note"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is said, where, and what else has to do with it."""

    severity: Severity
    message: str
    file: str = "<unknown>"
    line: int = 0
    """From 1; 0 where no position is known."""
    column: int = 0
    """From 1, in characters."""
    text: str = ""
    """The source line, for the caret."""
    notes: tuple[Diagnostic, ...] = ()

    @property
    def headline(self) -> str:
        """The first line: place, severity and message."""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.severity}: {self.message}"

    def render(self) -> str:
        """All of it, notes included, without a newline at the end."""
        lines = [self.headline]
        if self.line and self.text:
            # Tabs stay tabs, so that the caret stands below its character however wide they are.
            gap = "".join("\t" if c == "\t" else " " for c in self.text[: self.column - 1])
            lines += [self.text, gap + "^"]
        lines += [note.render() for note in self.notes]
        return "\n".join(lines)


class MlirError(StrettoError):
    """An MLIR input is wrong; `diagnostics` says everything that is wrong with it."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(render_all(self.diagnostics))

    def lines(self, file: str) -> tuple[str, ...]:  # noqa: ARG002 - each knows its own
        """The diagnostics: each begins with its place."""
        return (str(self),)

    def __reduce__(self) -> tuple[type[MlirError], tuple[tuple[Diagnostic, ...]]]:
        return MlirError, (self.diagnostics,)


def render_all(diagnostics: Sequence[Diagnostic]) -> str:
    """Diagnostics as text, one after the other."""
    return "\n".join(diagnostic.render() for diagnostic in diagnostics)


_NEWLINE = re.compile(r"\n")


@dataclass(frozen=True)
class MlirText:
    """An MLIR text and its places: from an offset to line, column and the line itself."""

    file: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    def diagnose(
        self,
        offset: int | None,
        severity: Severity,
        message: str,
        notes: tuple[Diagnostic, ...] = (),
    ) -> Diagnostic:
        """Something said about the place at an offset; None: about the text as a whole."""
        if offset is None:
            return Diagnostic(severity, message, self.file, notes=notes)
        offset = min(offset, len(self.text))
        row = bisect_right(self._starts, offset) - 1
        start = self._starts[row]
        end = self._starts[row + 1] - 1 if row + 1 < len(self._starts) else len(self.text)
        line, column = row + 1, offset - start + 1
        text = self.text[start:end].rstrip("\r")
        return Diagnostic(severity, message, self.file, line, column, text, notes)
