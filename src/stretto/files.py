"""Texts in and out of files: read as UTF-8 up to a limit, written whole or not at all.

a file, stdin, <(command)  ──►  text             a device, a folder, 3 GB: an error at once
write beside the target    ──►  move it there    a reader sees the old file or the new one
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from stretto.errors import DocumentError, StrettoError
from stretto.limits import FILE_BYTES
from stretto.streams import reason, write_out

STDIN = "<stdin>"
STANDARD = "-"
"""Stands for stdin or stdout."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
"""How a shell names what it hands over: `<(command)`. Only such a pipe surely has a writer."""


def read_text(name: str, limit: int = FILE_BYTES) -> tuple[str, str]:
    """What to call a file or stdin, and its text without a byte-order mark."""
    called = STDIN if name == STANDARD else name
    try:
        data = _standard_input(limit) if name == STANDARD else _read(name, limit)
    except (OSError, ValueError) as error:
        raise DocumentError(called, "", f"cannot be read: {reason(error)}") from None
    if len(data) > limit:
        hint = f"at most {limit:,} bytes are read"
        raise DocumentError(called, "", "is too large", hint)
    if isinstance(data, str):
        return called, data.removeprefix("\ufeff")
    try:
        return called, data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise DocumentError(called, "", f"is not UTF-8 text (byte {error.start})") from None


def _read(name: str, limit: int) -> bytes:
    """Up to a byte more than the limit of a file that ends; OSError where it is none."""
    # A named pipe that nobody writes to would keep a plain open() waiting.
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if name.startswith(_DESCRIPTORS) and stat.S_ISFIFO(status.st_mode):
            os.set_blocking(descriptor, True)
        elif not stat.S_ISREG(status.st_mode):
            kind = next((told for is_one, told in _KINDS if is_one(status.st_mode)), "no file")
            raise ValueError(f"it is {kind}; expected a regular file")
        elif status.st_size > limit:
            return bytes(limit + 1)
        return file.read(limit + 1)


def _standard_input(limit: int) -> bytes | str:
    """Stdin as bytes, whatever the locale takes it for."""
    stream = cast("TextIO | None", sys.stdin)
    if stream is None:
        raise ValueError("standard input is closed")
    buffer: BinaryIO | None = getattr(stream, "buffer", None)
    return stream.read(limit + 1) if buffer is None else buffer.read(limit + 1)


def write_text(name: str, text: str) -> None:
    """Into a file, or on stdout: whole or not at all where that is possible.

    A device or a pipe is written to as it stands, and a symbolic link is followed: neither is
    replaced by a file.
    """
    if name == STANDARD:
        write_out(text)
        return
    try:
        mode = _mode(name)
        if mode is None or stat.S_ISREG(mode):
            _replace(Path(os.path.realpath(name)), text, mode)
        else:
            with Path(name).open("w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
    except OSError as error:
        raise StrettoError(f"cannot write {name}: {reason(error)}") from None


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
