"""What the user sees while a search runs: every II with -v, one moving line on a terminal.

    random60: trying II 441, best so far 449

Nothing is shown in a pipe, and the line is gone when the answer comes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import TracebackType

from stretto.report.schedule import tried
from stretto.report.text import WIDTH, printable
from stretto.schedule import Refusal


@dataclass(slots=True)
class Progress:
    """Tells stderr of the IIs of one loop as they are tried."""

    loop: str
    verbose: bool
    best: int | None = None
    shown: bool = False

    def __call__(self, what: Refusal | int) -> None:
        """An II was refused, or one was found."""
        if isinstance(what, int):
            self.best = what
        if self.verbose:
            sys.stderr.write(printable(f"{self.loop}: {tried(what)}") + "\n")
            sys.stderr.flush()
        elif sys.stderr.isatty():
            found = "" if self.best is None else f", best so far {self.best}"
            at = what if isinstance(what, int) else what.ii
            self._line(printable(f"{self.loop}: trying II {at}{found}"))

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.shown:
            self._line("")

    def _line(self, text: str) -> None:
        """Write over the line of before."""
        self.shown = True
        sys.stderr.write("\r" + text[: WIDTH - 1].ljust(WIDTH - 1) + ("" if text else "\r"))
        sys.stderr.flush()
