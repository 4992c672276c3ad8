"""What the user sees while a search runs: every II with -v, one moving line on a terminal.

    random60: trying II 441, best so far 449; 3 s
    random60: II 447, minimizing stages: 7, at least 5; 12 s of 60 s at most

In a pipe there is a line now and then, of work that takes long. The moving line is gone when the
answer comes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from shutil import get_terminal_size
from time import monotonic
from types import TracebackType

from stretto.exact import II, Event
from stretto.report import WIDTH, printable
from stretto.report.schedule import tried
from stretto.solution import Refusal


@dataclass(slots=True)
class ProgressLine:
    """Tells stderr of the IIs of one loop as they are tried."""

    loop: str
    verbose: bool
    most: float | None = None
    """Seconds that it takes at most, where that is known."""
    pause: float | None = None
    """Seconds between two lines of their own; None: one line that moves."""
    began: float = field(default_factory=monotonic)
    best: int | None = None
    shown: bool = False
    due: float = 0.0

    def __call__(self, what: Refusal | int | Event) -> None:
        """An II was refused or found, or the solver came a step further."""
        if isinstance(what, int):
            self.best = what
        text = self._solving(what) if isinstance(what, Event) else tried(what)
        if self.verbose:
            sys.stderr.write(printable(f"{self.loop}: {text}") + "\n")
            sys.stderr.flush()
            return
        if not isinstance(what, Event):
            found = "" if self.best is None else f", best so far {self.best}"
            text = f"trying II {what if isinstance(what, int) else what.ii}{found}"
        self._say(printable(f"{self.loop}: {text}"))

    def _say(self, text: str) -> None:
        now = monotonic()
        if self.pause is None:
            self._line(text + self._time(now))
        elif now >= self.due:
            self.due = now + self.pause
            sys.stderr.write(f"stretto: {text}{self._time(now)}\n")
            sys.stderr.flush()

    def _time(self, now: float) -> str:
        """How long it has taken, and what it takes at most."""
        taken = now - self.began
        if self.most is None:
            return f"; {taken:.0f} s" if taken >= 1 else ""
        if taken > self.most:
            return f"; the limit of {self.most:g} s is over, finishing"
        return f"; {taken:.0f} s of {self.most:g} s at most" if taken >= 1 else ""

    def _solving(self, event: Event) -> str:
        """What the solver works on, with bound and best."""
        if event.what == II:
            best = "" if event.best is None else f", best so far {event.best}"
            return f"solving II {event.value}, bound {event.bound}{best}"
        best = f"{event.value:,}, at least {event.bound:,}"
        return f"II {event.best}, minimizing {event.what}: {best}"

    def __enter__(self) -> ProgressLine:
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
        width = get_terminal_size((WIDTH, 24)).columns - 1
        sys.stderr.write("\r" + text[:width].ljust(width) + ("" if text else "\r"))
        sys.stderr.flush()
