"""A time limit for what never looks at the clock: reading a file, preparing a loop.

    with cut_off(deadline):  a module of 10,000 operations is parsed ──alarm──► OverdueError

Bounds, generators and solver ask for the time themselves and keep what they found. Before them
there is nothing to keep, so that an alarm in their midst does no harm.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import NoReturn

from stretto.deadline import GRACE, Deadline, OverdueError
from stretto.exact.interrupts import solver_runs


class _Alarm(BaseException):
    """The time is over: no ordinary error, which whoever reads would take for one of the file."""


@contextmanager
def cut_off(deadline: Deadline) -> Generator[None]:
    """Raise OverdueError in whatever runs inside, the grace of a first schedule after the deadline.

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


def leave(code: int) -> NoReturn:
    """End the process, all output being written.

    Past a time limit the solver may not have heard yet that its work is over; a process that
    leaves in the ordinary way while its thread runs is aborted.
    """
    if solver_runs():
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
