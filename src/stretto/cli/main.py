"""The entry point: no traceback reaches the user, and nothing half-written is left behind."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stretto.cli.commands import COMMANDS, Answer, error_lines
from stretto.cli.parser import UsageError, make_parser
from stretto.errors import StrettoError

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
ERROR_SCHEMA = "stretto.error/1"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        arguments = make_parser().parse_args(argv)
    except UsageError as error:
        return _fail([error.message], USAGE, "--json" in argv, hint=error.usage)
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
    if not arguments.json:
        for line in answer.errors:
            print(line, file=sys.stderr)  # noqa: T201
    return DONE if answer.success else FAILED


def _fail(lines: list[str], code: int, as_json: bool, hint: str = "") -> int:
    if as_json:
        document = {"schema": ERROR_SCHEMA, "success": False, "errors": lines}
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        for line in [hint, *lines] if hint else lines:
            print(line, file=sys.stderr)  # noqa: T201
    return code


def _render(answer: Answer, as_json: bool) -> str:
    if as_json:
        document: dict[str, Any] = answer.document
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return "".join(line + "\n" for line in answer.lines)


def _write(answer: Answer, as_json: bool, output: str | None) -> None:
    text = _render(answer, as_json)
    if output is None:
        sys.stdout.write(text)
        return
    target = Path(output)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    except OSError as error:
        raise StrettoError(f"cannot write {output}: {error.strerror}") from None
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        part.chmod(0o666 & ~_umask())
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StrettoError(f"cannot write {output}: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def run() -> None:
    """The `stretto` command."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (`stretto machines | head`); that is no failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = DONE
    sys.exit(code)
