"""Ctrl-C where a KeyboardInterrupt in the midst of things would break them.

    import ortools ──Ctrl-C──► noted ──► loaded ──► KeyboardInterrupt
    solver runs    ──Ctrl-C──► told to stop ──► its thread ends ──► the best so far

Compiled modules do not survive one in their first lines: what comes out is an ImportError that says
nothing. A process that leaves while the solver's thread runs is aborted.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from threading import current_thread, main_thread
from types import ModuleType

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
    with on_ctrl_c(lambda: pressed.append(True)), _without_pandas():
        import_module("ortools.sat.python.cp_model")
    if pressed:
        raise KeyboardInterrupt


class _LatePandas(ModuleType):
    """Pandas for who imports it and seldom needs it: loaded when something of it is asked for.

    More than half of what the solver takes to load is pandas, which it names in signatures and
    uses for tables of variables, of which we make none.
    """

    named = True
    """Whether it is only named as yet: then any name will do."""

    def __getattr__(self, name: str) -> object:
        return object if self.named else getattr(import_module("pandas"), name)


@contextmanager
def _without_pandas() -> Generator[None]:
    """Whoever imports pandas meanwhile gets it late; who has it already keeps it."""
    if "pandas" in sys.modules:
        yield
        return
    late = sys.modules["pandas"] = _LatePandas("pandas")
    try:
        yield
    finally:
        late.named = False
        del sys.modules["pandas"]
