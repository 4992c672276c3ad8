"""Runs a command: no traceback reaches the user, and nothing half-written is left behind."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stretto.cli.answer import Answer, error_lines
from stretto.cli.commands import COMMANDS
from stretto.cli.parser import UsageError, parse_arguments
from stretto.errors import StrettoError
from stretto.report.text import printable

DONE, FAILED, USAGE, STOPPED, INTERRUPTED = 0, 1, 2, 3, 130
ERROR_SCHEMA = "stretto.error/1"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        arguments = parse_arguments(argv)
    except UsageError as error:
        return _fail([error.message], USAGE, "--json" in argv, hint=error.usage)
    except KeyboardInterrupt:
        return _fail(["stretto: interrupted"], INTERRUPTED, "--json" in argv)
    try:
        answer = COMMANDS[arguments.command](arguments)
        _write(answer, arguments.json, arguments.output)
    except StrettoError as error:
        file = getattr(arguments, "input", "stretto")
        return _fail(error_lines(error, file), FAILED, arguments.json)
    except RecursionError:
        return _fail(["error: the input is nested too deeply"], FAILED, arguments.json)
    except KeyboardInterrupt:
        return _fail(["stretto: interrupted"], INTERRUPTED, arguments.json)
    _tell([] if arguments.json else answer.errors)
    if not answer.success:
        return FAILED
    return STOPPED if answer.stopped else DONE


def _fail(lines: list[str], code: int, as_json: bool, hint: str = "") -> int:
    if as_json:
        document = {"schema": ERROR_SCHEMA, "success": False, "errors": lines}
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        _tell([hint, *lines] if hint else lines)
    return code


def _tell(lines: list[str]) -> None:
    for line in lines:
        print(printable(line, keep="\n"), file=sys.stderr)  # noqa: T201


def _render(answer: Answer, as_json: bool) -> str:
    if as_json:
        document: dict[str, Any] = answer.document
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return "".join(line + "\n" for line in answer.lines)


def _write(answer: Answer, as_json: bool, output: str | None) -> None:
    """On stdout, or in a file: whole or not at all where that is possible.

    A device or a pipe is written to as it stands, and a symbolic link is followed: neither is
    replaced by a file.
    """
    text = _render(answer, as_json)
    if output in (None, "-"):
        sys.stdout.write(text)
        return
    try:
        mode = _mode(output)
        if mode is None or stat.S_ISREG(mode):
            _replace(Path(os.path.realpath(output)), text, mode)
        else:
            with Path(output).open("w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
    except OSError as error:
        raise StrettoError(f"cannot write {output}: {error.strerror}") from None


def _mode(output: str) -> int | None:
    """The mode of what stands at a path, through links; None: nothing does."""
    try:
        return os.stat(output).st_mode
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


def run() -> None:
    """The `stretto` command, once it is loaded."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names need not be text
            stream.reconfigure(errors="backslashreplace")
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (`stretto machines | head`); that is no failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = DONE
    sys.exit(code)
