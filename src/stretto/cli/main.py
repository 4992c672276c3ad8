"""Runs a command: no traceback reaches the user, and nothing half-written is left behind."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from stretto import starting
from stretto.cli.commands import COMMANDS, Reply
from stretto.cli.parser import parse_arguments
from stretto.errors import StrettoError, UsageError, unforeseen
from stretto.files import INTERRUPTED, STANDARD, OutputError, on_terminal, write_out, write_text
from stretto.report import WIDTH, page, printable

DONE, FAILED, USAGE, STOPPED = 0, 1, 2, 3
ERROR_SCHEMA = "stretto.error/1"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        arguments = parse_arguments(argv)
    except UsageError as error:
        return _fail([error.message], USAGE, _asks_for_json(argv), hint=error.usage)
    except KeyboardInterrupt:
        return _fail(["stretto: interrupted"], INTERRUPTED, _asks_for_json(argv))
    if arguments.command != "machines":
        starting.load("stretto.solve", "stretto.api.read_write")
    starting.release()
    try:
        if getattr(arguments, "set", None):
            from stretto.cli.changing import change_machine

            change_machine(arguments)
        reply = COMMANDS[arguments.command](arguments)
        target = getattr(arguments, "output", None) or STANDARD
        _write(target, _render(reply, arguments.format, target))
    except StrettoError as error:
        file = getattr(arguments, "input", "stretto")
        return _fail(list(error.lines(file)), FAILED, arguments.json)
    except RecursionError:
        return _fail(["error: the input is nested too deeply"], FAILED, arguments.json)
    except (MemoryError, OverflowError):  # a table of more cycles than can be counted
        text = "error: not enough memory; are the cycle counts of the input this large?"
        return _fail([text], FAILED, arguments.json)
    except KeyboardInterrupt:
        return _fail(["stretto: interrupted"], INTERRUPTED, arguments.json)
    except (BrokenPipeError, OutputError):  # of standard output
        raise
    except Exception as error:
        file = getattr(arguments, "input", "stretto")
        return _fail([unforeseen(error, file)], FAILED, arguments.json)
    quiet = arguments.quiet and reply.success
    _tell([] if arguments.json or quiet else reply.errors)
    if not reply.success:
        return FAILED
    return STOPPED if reply.stopped else DONE


def _asks_for_json(argv: Sequence[str]) -> bool:
    """Whether arguments that cannot be read ask for JSON."""
    return "--json" in argv or "--format=json" in argv or "--format json" in " ".join(argv)


def _fail(lines: list[str], code: int, as_json: bool, hint: str = "") -> int:
    if as_json:
        document = {"schema": ERROR_SCHEMA, "success": False, "errors": lines}
        write_out(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        _tell([hint, *lines] if hint else lines)
    return code


def _tell(lines: list[str]) -> None:
    for line in lines:
        print(printable(line, keep="\n"), file=sys.stderr)  # noqa: T201


def _shown(reply: Reply) -> list[str]:
    """The lines as a terminal shows them best."""
    from shutil import get_terminal_size

    from stretto.cli.colour import coloured, wanted

    with page(get_terminal_size((WIDTH, 24)).columns):
        lines = reply.lines()
    return coloured(lines) if wanted() else lines


def _write(name: str, told: str | bytes) -> None:
    if isinstance(told, bytes) and name == STANDARD and on_terminal():
        raise StrettoError("this format is nothing for a terminal; -o FILE writes it to a file")
    write_text(name, told)


def _render(reply: Reply, format: str, target: str) -> str | bytes:
    if format == "json":
        return json.dumps(reply.document(), indent=2, ensure_ascii=False) + "\n"
    if format == "text":
        lines = _shown(reply) if target == STANDARD and on_terminal() else reply.lines()
        return "".join(line + "\n" for line in lines)
    if format in reply.others:
        return reply.others[format]()
    from stretto.forms import is_form
    from stretto.report.formats import rendered

    assert is_form(format)  # the command line takes no other
    document = dict(reply.document())
    # Such a view has little room for what went wrong, or none: it is told beside it.
    failed = [entry for entry in document["loops"] if not entry["success"]]
    told = dict.fromkeys(line for entry in failed for line in entry["errors"])
    reply.errors += [line for line in told if line not in reply.errors]
    return rendered(document, format, reply.text)


def leave(code: int) -> NoReturn:
    """End the process, all output being written.

    Past a time limit the solver may not have heard yet that its work is over; a process that
    leaves in the ordinary way while its thread runs is aborted.
    """
    if "stretto.exact.solving" in sys.modules:
        from stretto.exact.interrupts import solver_runs

        if solver_runs():
            sys.stderr.flush()
            os._exit(code)
    sys.exit(code)
