"""What a command has to say, and how one is made loop by loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stretto.cli.limiting import cut_off
from stretto.deadline import NEVER, Deadline
from stretto.errors import DocumentError, MachineError, StrettoError

if TYPE_CHECKING:
    from stretto.api.results import View
    from stretto.frontends import Source
    from stretto.loop import Loop
    from stretto.machine import Machine
    from stretto.resources.prepare import Prepared


@dataclass(slots=True)
class Answer:
    """What a command has to say."""

    document: dict[str, Any]
    lines: list[str]
    errors: list[str] = field(default_factory=list[str])
    """For stderr, already in the form `file: path: error: ...`."""
    success: bool = True
    stopped: bool = False
    """Whether the user stopped it, so that a result is not the best that was to be had."""


def each_loop(
    source: Source,
    machine: str | Mapping[str, Machine] | None,
    schema: str,
    work: Callable[[Prepared], View],
    deadline: Deadline = NEVER,
) -> Answer:
    """Run `work` on every loop; a loop that fails says why and the others go on.

    The machine is one for all (by name), one for each loop, or the one each loop names. A loop that
    is not prepared by the deadline fails; `work` has its own eye on it.
    """
    from stretto.api.reading import about
    from stretto.loop.places import texts
    from stretto.machine import load_machine
    from stretto.resources.prepare import prepare

    target = load_machine(machine) if isinstance(machine, str) else None
    own: Mapping[str, Machine] = {} if machine is None or isinstance(machine, str) else machine
    entries: list[dict[str, Any]] = []
    lines: list[str] = []
    errors: list[str] = []
    for loop in source.loops:
        try:
            with cut_off(deadline):
                on = target or own.get(loop.name) or _named_by(loop, source.file)
                ready = prepare(loop, on)
            report = work(ready)
        except StrettoError as error:
            told = list(error.lines(source.file))
            entries.append({"name": loop.name, "success": False, "errors": told})
            errors += told
            continue
        entries.append(report.to_json())
        lines += ([""] if lines else []) + report.to_text()
    success = all(entry["success"] for entry in entries)
    document = {"schema": schema, "success": success, "loops": entries}
    return Answer(document, lines, [*texts(about(source, "")), *errors], success)


def _named_by(loop: Loop, file: str) -> Machine | None:
    """The machine a loop names, if it does; a name that is none is a fault of the loop's file."""
    from stretto.machine import load_machine

    if loop.machine is None:
        return None
    try:
        return load_machine(loop.machine)
    except MachineError as error:
        raise DocumentError(file, "$.machine", str(error)) from None
