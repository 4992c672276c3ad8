"""A moment at which work is to end, shared by everything that one command does.

    --time-limit 2  ──►  Deadline  ──►  bounds, generators, solver: each asks `check()` as it goes
                                                    │ over
                                                    └──►  OverdueError  ──►  the best so far

The clock only cuts. What is tried, in which order and how hard, is counted in work and is the same
on every run; without a limit nothing here has any effect.
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import current_thread, main_thread
from time import monotonic
from typing import NoReturn

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


class _Alarm(BaseException):
    """The time is over: no ordinary error, which whoever reads would take for one of the file."""


@contextmanager
def cut_off(deadline: Deadline) -> Generator[None]:
    """Raise OverdueError in whatever runs inside, the grace of a first schedule after the deadline.

        with cut_off(deadline):  a module of 10,000 operations is parsed ──alarm──► OverdueError

    For what never looks at the clock: reading a file, preparing a loop. Bounds, generators and
    solver ask for the time themselves and keep what they found. Before them there is nothing to
    keep, so that an alarm in their midst does no harm.

    Alarms come to the main thread, and not on every system: elsewhere the deadline is asked when
    all is done.
    """
    left = deadline.later(GRACE).left
    if left is None or current_thread() is not main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(_number: int, _frame: object) -> NoReturn:
        raise _Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6))
    try:
        yield
    except _Alarm:
        raise OverdueError(deadline.seconds) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
