"""Texts in and out of files: read as UTF-8, written whole or not at all.

write beside the target  ──►  move it there        a reader sees the old file or the new one
"""

from __future__ import annotations

import io
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any, TextIO, cast

from stretto.errors import DocumentError, StrettoError

STDIN = "<stdin>"
STANDARD = "-"
"""Stands for stdin or stdout."""


def read_text(name: str) -> tuple[str, str]:
    """What to call a file or stdin, and its text without a byte-order mark."""
    called = STDIN if name == STANDARD else name
    try:
        if name == STANDARD:
            return called, _standard_input().removeprefix("\ufeff")
        return called, Path(name).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(called, "", f"is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise DocumentError(called, "", f"cannot be read: {error.strerror}") from None


def _standard_input() -> str:
    """Stdin as UTF-8, whatever the locale takes it for."""
    stream: TextIO = sys.stdin
    if isinstance(stream, io.TextIOWrapper):
        cast("io.TextIOWrapper[Any]", stream).reconfigure(encoding="utf-8", errors="strict")
    return stream.read()


def write_text(name: str, text: str) -> None:
    """Into a file, or on stdout: whole or not at all where that is possible.

    A device or a pipe is written to as it stands, and a symbolic link is followed: neither is
    replaced by a file.
    """
    if name == STANDARD:
        sys.stdout.write(text)
        return
    try:
        mode = _mode(name)
        if mode is None or stat.S_ISREG(mode):
            _replace(Path(os.path.realpath(name)), text, mode)
        else:
            with Path(name).open("w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
    except OSError as error:
        raise StrettoError(f"cannot write {name}: {error.strerror}") from None


def _mode(name: str) -> int | None:
    """The mode of what stands at a path, through links; None: nothing does."""
    try:
        return os.stat(name).st_mode
    except FileNotFoundError:
        return None


def _replace(target: Path, text: str, mode: int | None) -> None:
    """Write beside the target, then move: it has its old contents or all of the new ones."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name[:99], suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        part.chmod(0o666 & ~_umask() if mode is None else stat.S_IMODE(mode))
        part.replace(target)
    except BaseException:  # Ctrl-C too
        part.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
