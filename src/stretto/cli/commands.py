"""One function a command: read, compute, hand back a document and its text.

Imports stand inside, so that each command loads only what it uses.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.errors import DocumentError, LoopError, StrettoError

if TYPE_CHECKING:
    from stretto.api import Prepared
    from stretto.frontends import Source

STDIN = "<stdin>"


@dataclass(slots=True)
class Answer:
    """What a command has to say."""

    document: dict[str, Any]
    lines: list[str]
    errors: list[str] = field(default_factory=list[str])
    """For stderr, already in the form `file: path: error: ...`."""
    success: bool = True


def read_text(name: str) -> tuple[str, str]:
    """The text of a file or of stdin, and what to call it."""
    if name == "-":
        try:
            return STDIN, sys.stdin.read()
        except UnicodeDecodeError:
            raise DocumentError(STDIN, "", "is not UTF-8 text") from None
    try:
        return name, Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DocumentError(name, "", "is not UTF-8 text") from None
    except OSError as error:
        raise DocumentError(name, "", f"cannot be read: {error.strerror}") from None


def read_input(arguments: argparse.Namespace) -> Source:
    """The loops the user asks about."""
    from dataclasses import replace

    from stretto.frontends import read_source

    source = read_source(*read_text(arguments.input))
    if arguments.loop is None:
        return source
    chosen = tuple(loop for loop in source.loops if loop.name == arguments.loop)
    if not chosen:
        names = ", ".join(loop.name for loop in source.loops)
        message = f"no loop `{arguments.loop}`"
        raise DocumentError(source.file, "", message, f"its loops: {names}")
    notes = tuple(n for n in source.notes if n.startswith(f"{arguments.loop}:"))
    return replace(source, loops=chosen, notes=notes)


def error_lines(error: StrettoError, file: str) -> list[str]:
    """An error as lines, with the file they are about."""
    if isinstance(error, LoopError):
        return list(error.lines(file))
    text = str(error)
    return [text] if ": error: " in text else [f"error: {text}"]


def each_loop(
    source: Source,
    machine: str | None,
    schema: str,
    work: Callable[[Prepared], Any],
) -> Answer:
    """Run `work` on every loop; a loop that fails says why and the others go on."""
    from stretto.api import prepare
    from stretto.machine import load_machine

    target = None if machine is None else load_machine(machine)
    entries: list[dict[str, Any]] = []
    lines: list[str] = []
    errors: list[str] = []
    for loop in source.loops:
        try:
            report = work(prepare(loop, target))
        except StrettoError as error:
            told = error_lines(error, source.file)
            entries.append({"name": loop.name, "success": False, "errors": told})
            errors += told
            continue
        entries.append(report.to_json())
        lines += ([""] if lines else []) + report.to_text()
    success = all(entry["success"] for entry in entries)
    document = {"schema": schema, "success": success, "loops": entries}
    return Answer(document, lines, errors, success)


def _about(notes: Sequence[str], loop: str) -> tuple[str, ...]:
    """The notes of a source that are about one loop."""
    prefix = f"{loop}: "
    return tuple(note.removeprefix(prefix) for note in notes if note.startswith(prefix))


def bounds(arguments: argparse.Namespace) -> Answer:
    """`stretto bounds`."""
    from stretto.bounds import compute_bounds, remedies
    from stretto.report.bounds import SCHEMA, BoundsReport

    source = read_input(arguments)
    fuse, max_stages = not arguments.no_fuse, arguments.max_stages

    def work(ready: Prepared) -> BoundsReport:
        found = compute_bounds(ready.loop, ready.machine, fuse=fuse, max_stages=max_stages)
        change = remedies(ready.loop, ready.machine, found, fuse=fuse, max_stages=max_stages)
        warnings = ready.notes + _about(source.notes, ready.loop.name)
        return BoundsReport(ready.loop.name, ready.machine.name, found, change, warnings)

    return each_loop(source, arguments.machine, SCHEMA, work)


def verify(arguments: argparse.Namespace) -> Answer:
    """`stretto verify`."""
    from stretto.report.verification import SCHEMA, VerificationReport
    from stretto.schedule.reading import parse_schedules
    from stretto.verify import verify as violations_of

    if arguments.input == "-" and arguments.schedule == "-":
        raise StrettoError("INPUT and SCHEDULE cannot both be -")
    source = read_input(arguments)
    file, text = read_text(arguments.schedule)

    def work(ready: Prepared) -> VerificationReport:
        loop = ready.loop
        analyses = {a.loop: a for a in parse_schedules(file, text, {loop.name: loop})}
        if loop.name not in analyses:
            names = ", ".join(analyses) or "none"
            raise DocumentError(file, "$.loops", f"no schedule of `{loop.name}`", f"has: {names}")
        analysis = analyses[loop.name]
        found = violations_of(loop, ready.machine, analysis, max_stages=arguments.max_stages)
        warnings = ready.notes + _about(source.notes, loop.name)
        return VerificationReport(loop.name, ready.machine.name, analysis, found, warnings)

    return each_loop(source, arguments.machine, SCHEMA, work)


def machines(arguments: argparse.Namespace) -> Answer:
    """`stretto machines`."""
    from stretto.machine import load_machine, machine_names
    from stretto.report import machines as report

    if arguments.name is None:
        known = [load_machine(name) for name in machine_names()]
        return Answer(report.list_to_json(known), report.list_to_text(known))
    machine = load_machine(arguments.name)
    return Answer(report.machine_to_json(machine), report.machine_to_text(machine))


COMMANDS: dict[str, Callable[[argparse.Namespace], Answer]] = {
    "bounds": bounds,
    "verify": verify,
    "machines": machines,
}
