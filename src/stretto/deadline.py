"""A moment at which work is to end, shared by everything that one command does.

    --time-limit 2  ──►  Deadline  ──►  bounds, generators, solver: each asks `check()` as it goes
                                                    │ over
                                                    └──►  OverdueError  ──►  the best so far

The clock only cuts. What is tried, in which order and how hard, is counted in work and is the same
on every run; without a limit nothing here has any effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic

from stretto.errors import StrettoError

GRACE = 0.5
"""Seconds by which the first schedule may be late: a limit shorter than loading still answers."""

LATEST = 2.0
"""Seconds after the limit by which the answer must be out."""


class OverdueError(StrettoError):
    """The time limit came first; whoever knows a schedule by then hands it on instead."""

    def __init__(self, seconds: float, loop: str = "") -> None:
        self.seconds = seconds
        super().__init__(
            f"the time limit of {seconds:g} s came before any schedule was found; "
            "a longer limit, or none, lets it go on",
            loop,
        )

    def __reduce__(self) -> tuple[type[OverdueError], tuple[float, str]]:
        return OverdueError, (self.seconds, self.loop)


@dataclass(frozen=True, slots=True)
class Deadline:
    """When to end; compared with a clock that only moves forward."""

    at: float | None = None
    """By `time.monotonic`; None: never."""
    seconds: float = 0.0
    """The limit as it was given, for messages."""

    @property
    def over(self) -> bool:
        """Whether it has passed."""
        return self.at is not None and monotonic() >= self.at

    @property
    def left(self) -> float | None:
        """Seconds until then, none below 0; None: any number."""
        return None if self.at is None else max(0.0, self.at - monotonic())

    def check(self) -> None:
        """Go on, or raise OverdueError. Cheap enough for inner loops."""
        if self.at is not None and monotonic() >= self.at:
            raise OverdueError(self.seconds)

    def later(self, seconds: float) -> Deadline:
        """The same moment, put off."""
        return self if self.at is None else replace(self, at=self.at + seconds)

    def share(self, part: float) -> Deadline:
        """The moment at which a part of the time that is left is gone."""
        return self if self.left is None else replace(self, at=monotonic() + self.left * part)


NEVER = Deadline()


def deadline_after(seconds: float | None) -> Deadline:
    """So many seconds from now; None: never."""
    if seconds is None:
        return NEVER
    if not seconds > 0:
        raise StrettoError(f"time_limit is {seconds}; more than 0 is needed")
    return Deadline(monotonic() + seconds, seconds)
