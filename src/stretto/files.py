"""Texts in and out of files and standard streams: read up to a limit, written whole or not at all.

a file, stdin, <(command)  ──►  text             a device, a folder, 3 GB: an error at once
write beside the target    ──►  move it there    a reader sees the old file or the new one

stretto bounds loop.json > /dev/full     stretto: error: cannot write on standard output: ...
stretto bounds loop.json >&-             the same; exit code 1
stretto bounds loop.json | head -1       quiet: the reader has what it wanted
stretto bounds none.json 2>&-            nothing to read, and the exit code is still 1

Standard streams may be missing, full or left: a message and an exit code, no traceback. Everything
that a command prints goes through `write_out`; `serve` runs the command.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from stretto.errors import DocumentError, StrettoError
from stretto.limits import FILE_BYTES

STDIN = "<stdin>"
PATH = 4096
"""Characters of a path, at most."""
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
    called, data = read_data(name, limit)
    return called, text_of(called, data)


def read_data(name: str, limit: int = FILE_BYTES) -> tuple[str, bytes | str]:
    """What to call a file or stdin, and what is in it; text only if stdin has no bytes."""
    called = STDIN if name == STANDARD else name
    try:
        data = _standard_input(limit) if name == STANDARD else _read(name, limit)
    except (OSError, ValueError) as error:
        if "\n" in name or (len(name) > PATH and " " in name):
            told = f"the path of a file is wanted, and a text of {len(name):,} characters is given"
            hint = "write it to a file, or read its loops with stretto.read(io.StringIO(text))"
            raise StrettoError(f"{told}; {hint}") from None
        raise DocumentError(called, "", f"cannot be read: {reason(error)}") from None
    if len(data) > limit:
        hint = f"at most {limit:,} bytes are read"
        raise DocumentError(called, "", "is too large", hint)
    return called, data


def text_of(called: str, data: bytes | str) -> str:
    """The text of a file, without a byte-order mark; DocumentError where it is none."""
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
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


def write_text(name: str, text: str | bytes | Iterable[str]) -> None:
    """Into a file, or on stdout: whole or not at all where that is possible.

    A text, its parts as they come, or bytes as they are.

    A device or a pipe is written to as it stands, and a symbolic link is followed: neither is
    replaced by a file.
    """
    parts = [text] if isinstance(text, str | bytes) else text
    if name == STANDARD:
        for part in parts:
            write_out(part)
        return
    try:
        mode = _mode(name)
        if mode is None or stat.S_ISREG(mode):
            _replace(Path(os.path.realpath(name)), parts, mode)
        else:
            with Path(name).open("wb") as file:
                file.writelines(map(_as_bytes, parts))
    except OSError as error:
        raise StrettoError(f"cannot write {name}: {reason(error)}") from None


def _mode(name: str) -> int | None:
    """The mode of what stands at a path, through links; None: nothing does."""
    try:
        return os.stat(name).st_mode
    except FileNotFoundError:
        return None
    except ValueError as error:  # a zero in it, half a character
        raise OSError(str(error)) from None


def _as_bytes(part: str | bytes) -> bytes:
    return part.encode("utf-8", "backslashreplace") if isinstance(part, str) else part


def _replace(target: Path, parts: Iterable[str | bytes], mode: int | None) -> None:
    """Write beside the target, then move: it has its old contents or all of the new ones."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name[:99], suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(map(_as_bytes, parts))
        part.chmod(0o666 & ~_umask() if mode is None else stat.S_IMODE(mode))
        part.replace(target)
    except BaseException:  # Ctrl-C too
        part.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Standard streams -------------------------------------------------------------------------

DONE, FAILED, INTERRUPTED = 0, 1, 130


class OutputError(Exception):
    """Standard output takes no more; the text is the reason."""


def on_terminal() -> bool:
    """Whether somebody looks at standard output."""
    stream = cast("TextIO | None", sys.stdout)
    return stream is not None and stream.isatty()


def write_out(text: str | bytes) -> None:
    """Print on standard output, all of it and now: OutputError where that fails."""
    stream = cast("TextIO | None", sys.stdout)
    if stream is None:
        raise OutputError("it is closed")
    try:
        if isinstance(text, str):
            stream.write(text)
        else:
            stream.flush()
            stream.buffer.write(text)
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
