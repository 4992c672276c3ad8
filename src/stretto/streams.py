"""Standard streams that may be missing, full or left: a message and an exit code, no traceback.

    stretto bounds loop.json > /dev/full     stretto: error: cannot write on standard output: ...
    stretto bounds loop.json >&-             the same; exit code 1
    stretto bounds loop.json | head -1       quiet: the reader has what it wanted
    stretto bounds none.json 2>&-            nothing to read, and the exit code is still 1

Everything that a command prints goes through `write_out`; `serve` runs the command.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO, cast

DONE, FAILED, INTERRUPTED = 0, 1, 130


class OutputError(Exception):
    """Standard output takes no more; the text is the reason."""


def write_out(text: str) -> None:
    """Print on standard output, all of it and now: OutputError where that fails."""
    stream = cast("TextIO | None", sys.stdout)
    if stream is None:
        raise OutputError("it is closed")
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise OutputError(reason(error)) from None


def reason(error: OSError | ValueError) -> str:
    """What the system says of a failure."""
    told = error.strerror if isinstance(error, OSError) else None
    return told or str(error)


def serve(name: str, command: Callable[[], int]) -> int:
    """Run a command with streams it can rely on; its exit code, or that of its output's failure."""
    repair()
    try:
        return _complete(command)
    except BrokenPipeError:
        # The reader went away (`stretto machines | head`); that is no failure of ours.
        _silence(1)
        return DONE
    except OutputError as error:
        _silence(1)
        sys.stderr.write(f"{name}: error: cannot write on standard output: {error}\n")
        return FAILED
    except KeyboardInterrupt:  # while the answer went out
        return INTERRUPTED


def _complete(command: Callable[[], int]) -> int:
    """The exit code of a command, once all it printed is out."""
    try:
        code = command()
    except SystemExit as end:  # --help and --version
        code = end.code if isinstance(end.code, int) else DONE
    if cast("TextIO | None", sys.stdout) is not None:
        write_out("")
    return code


def repair() -> None:
    """Stderr that swallows what it cannot say; names that are no text; descriptors 0 to 2 taken.

    A descriptor that is closed would go to the next file that is opened, and a library that
    writes to 1 or 2 would write into it.
    """
    for descriptor in (0, 1, 2):
        with suppress(OSError):
            os.fstat(descriptor)
            continue
        os.open(os.devnull, os.O_RDWR)  # the lowest that is free: this one
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            cast("io.TextIOWrapper[Any]", stream).reconfigure(errors="backslashreplace")
    if not isinstance(sys.stderr, _Forgiving):
        sys.stderr = _Forgiving(cast("TextIO | None", sys.stderr))


def speak_utf8() -> None:
    """Print UTF-8, whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            cast("io.TextIOWrapper[Any]", stream).reconfigure(encoding="utf-8")


def _silence(descriptor: int) -> None:
    """Have what is still in a buffer go nowhere, also at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


class _Forgiving(io.TextIOBase):
    """Stderr: when it fails there is nobody left to tell."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str, /) -> int:
        try:
            if self._stream is not None:
                self._stream.write(text)
        except (OSError, ValueError):
            self._lose()
        return len(text)

    def flush(self) -> None:
        try:
            if self._stream is not None:
                self._stream.flush()
        except (OSError, ValueError):
            self._lose()

    def isatty(self) -> bool:
        try:
            return self._stream is not None and self._stream.isatty()
        except ValueError:
            return False

    def _lose(self) -> None:
        self._stream = None
        _silence(2)
