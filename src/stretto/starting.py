"""Ctrl-C while the program is still being loaded: a word and exit code 130, no traceback.

    hold("stretto") ──► load everything ──► release() ──► from here on, KeyboardInterrupt
          Ctrl-C ──► "stretto: interrupted", 130

A KeyboardInterrupt in the midst of an import comes out as whatever the module makes of it, often
as an error of another kind. Nothing is open or half-written while modules load, so the process
may simply leave. What a command loads later goes through `load`, for the same reason.
"""

import os
import sys

INTERRUPTED = 130

TYPE_CHECKING = False  # typing takes a while to load, and this module comes first
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from types import FrameType
else:
    import _signal as signal  # built in: `signal` loads enumerations, while nobody holds Ctrl-C

_leave: "list[Callable[[int, FrameType | None], None]]" = []
"""What Ctrl-C does while something loads; empty where nobody called `hold`."""


def hold(name: str, document: str = "") -> None:
    """Until `release`, have Ctrl-C end the process; with --json, by this document.

    Where Ctrl-C is ignored, or handled by somebody else, it stays so.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return

    def leave(_number: int, _frame: "FrameType | None") -> None:
        interrupted(name, document)

    _leave[:] = [leave]
    signal.signal(signal.SIGINT, leave)


def interrupted(name: str, document: str = "") -> None:
    """Say so and leave, now."""
    as_json = bool(document) and "--json" in sys.argv
    text = document if as_json else f"{name}: interrupted\n"
    try:
        os.write(1 if as_json else 2, text.encode())
    finally:
        os._exit(INTERRUPTED)


def release() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt."""
    if _leave and signal.getsignal(signal.SIGINT) is _leave[0]:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def load(*modules: str) -> None:
    """Import modules, in a process that Ctrl-C may end meanwhile."""
    from importlib import import_module  # noqa: PLC0415 - not before Ctrl-C is held

    held = bool(_leave) and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if held:
        signal.signal(signal.SIGINT, _leave[0])
    for module in modules:
        import_module(module)
    if held:
        release()
