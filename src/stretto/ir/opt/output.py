"""Results into files: whole or not at all.

write beside the target  ──►  move it there        a reader sees the old file or the new one
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

from stretto.errors import DocumentError, StrettoError

STDIN = "<stdin>"
STDOUT = "-"


def read_text(name: str) -> tuple[str, str]:
    """What to call a file or stdin, and its text without a byte-order mark."""
    called = STDIN if name == "-" else name
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return called, data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(called, "", f"is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise DocumentError(called, "", f"cannot be read: {error.strerror}") from None


def write_text(name: str, text: str) -> None:
    """Into a file, or on stdout; a device or a pipe is written to as it stands."""
    if name == STDOUT:
        sys.stdout.write(text)
        return
    try:
        mode = os.stat(name).st_mode if os.path.exists(name) else None
        if mode is None or stat.S_ISREG(mode):
            _replace(Path(os.path.realpath(name)), text, mode)
        else:
            Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StrettoError(f"cannot write {name}: {error.strerror}") from None


def _replace(target: Path, text: str, mode: int | None) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name[:99], suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        if mode is None:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        part.chmod(stat.S_IMODE(mode))
        part.replace(target)
    except BaseException:  # Ctrl-C too
        part.unlink(missing_ok=True)
        raise
