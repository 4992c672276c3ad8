"""Ctrl-C where a KeyboardInterrupt in the midst of things would break them.

    import ortools ──Ctrl-C──► noted ──► loaded ──► KeyboardInterrupt
    solver runs    ──Ctrl-C──► told to stop ──► its thread ends ──► the best so far

Compiled modules do not survive one in their first lines: what comes out is an ImportError that says
nothing. A process that leaves while the solver's thread runs is aborted.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from threading import current_thread, main_thread

SOLVER = "stretto-solver"
"""The name of the thread in which the solver runs."""


def solver_runs() -> bool:
    """Whether a solver that nobody waits for any more is still at work."""
    return any(thread.name == SOLVER for thread in threading.enumerate())


@contextmanager
def on_ctrl_c(tell: Callable[[], None]) -> Generator[None]:
    """Have Ctrl-C call `tell` and nothing else; whoever handles it in their own way goes on so."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or current_thread() is not main_thread():
        yield
        return

    def hear(_number: int, _frame: object) -> None:
        tell()

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def load_solver() -> None:
    """Load the solver; whoever pressed Ctrl-C meanwhile gets the KeyboardInterrupt now."""
    pressed: list[bool] = []
    with on_ctrl_c(lambda: pressed.append(True)):
        import_module("ortools.sat.python.cp_model")
    if pressed:
        raise KeyboardInterrupt
