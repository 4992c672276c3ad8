"""A text and its places: from an offset to line, column and the line itself.

offset 57  ──►  line 3, column 8, "    %a = nv_tileas.async.smem_read ..."
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from stretto.ir.diagnostics import Diagnostic, Severity

_NEWLINE = re.compile(r"\n")


@dataclass(frozen=True)
class Source:
    """An MLIR text, or a part of one that begins at `first_line`."""

    file: str
    text: str
    first_line: int = 1

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
        line, column = self.first_line + row, offset - start + 1
        text = self.text[start:end].rstrip("\r")
        return Diagnostic(severity, message, self.file, line, column, text, notes)
