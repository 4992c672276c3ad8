"""`stretto compare A [B]`: two schedules side by side.

    compare a.json b.json                              schedules that stand in documents
    compare LOOP --b '--prove'                         one loop, scheduled in two ways
    compare LOOP --a '--machine h200' --b '--machine b200-pipes'

Each side is a document of schedules, or an input that is scheduled as `stretto schedule` would with
the options of its side.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from stretto.cli.commands import Reply
from stretto.cli.commands import schedule as scheduled
from stretto.errors import StrettoError, UsageError, listed
from stretto.files import STANDARD, read_text
from stretto.report.comparison import SCHEMA, Comparison


def run(arguments: argparse.Namespace) -> Reply:
    """Both sides, loop by loop."""
    first, second = arguments.input, arguments.other or arguments.input
    if STANDARD in (first, second):
        raise StrettoError("both sides are read from files, not from stdin")
    if first == second and arguments.a == arguments.b:
        told = "A and B are the same: give another input, or options with --a or --b"
        raise StrettoError(told)
    notes: list[str] = []
    a = _side(first, arguments.a, "--a", notes)
    b = _side(second, arguments.b, "--b", notes)
    pairs = [Comparison(*pair) for pair in _pairs(a, b)]
    success = all(pair.success for pair in pairs)

    def document() -> dict[str, Any]:
        loops = [pair.to_json() for pair in pairs]
        return {"schema": SCHEMA, "success": success, "loops": loops}

    def lines() -> list[str]:
        return [line for pair in pairs for line in ("", *pair.to_text())][1:]

    return Reply(document, lines, list(dict.fromkeys(notes)), success)


def _side(name: str, options: str, side: str, notes: list[str]) -> list[dict[str, Any]]:
    """The entries of one side."""
    standing = _document(name)
    if standing is not None:
        if options:
            raise StrettoError(f"{name} is a schedule already, so {side} has none to make")
        return standing
    from stretto.cli.changing import change_machine
    from stretto.cli.parser import parse_arguments

    try:
        asked = parse_arguments(["schedule", name, *shlex.split(options)])
    except ValueError as error:
        raise StrettoError(f"{side}: {error}") from None
    except UsageError as error:
        raise StrettoError(f"{side}: {error.message}") from None
    if asked.set:
        change_machine(asked)
    reply = scheduled(asked)
    notes += reply.errors
    return reply.document()["loops"]


def _document(name: str) -> list[dict[str, Any]] | None:
    """The entries of a document of schedules; None: it is something else."""
    if not name.endswith(".json"):
        return None
    from stretto.api.checking import schedule_entries

    file, text = read_text(name)
    return schedule_entries(file, text)


def _pairs(
    a: list[dict[str, Any]], b: list[dict[str, Any]]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Loops of the same name; where each side has one, those two."""
    if len(a) == len(b) == 1:
        return [(a[0], b[0])]
    others = {entry["name"]: entry for entry in b}
    found = [(entry, others[entry["name"]]) for entry in a if entry["name"] in others]
    if not found:
        names = [listed(entry["name"] for entry in side) for side in (a, b)]
        raise StrettoError(f"no loop is on both sides: A has {names[0]}; B has {names[1]}")
    return found
