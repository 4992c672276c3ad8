"""`stretto.verify`, and schedules that somebody made before: results at hand, or a document's.

stretto.verify(loop, schedule)  ──►  .legal, .violations with their numbers, .report()

ScheduleAnalysis, "four_op.schedule.json", none  ──►  `legal`: verified, or a new one
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, ClassVar, cast

from stretto.api import Result, made_ready, misgiven
from stretto.api.solving import ScheduleResult, schedule
from stretto.document import Cursor, parse_json
from stretto.errors import DocumentError, StrettoError, listed
from stretto.files import read_text
from stretto.frontends import Source
from stretto.generate.outside import fault_of
from stretto.kinds import checked
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.report.verification import VERIFICATION, VerificationReport
from stretto.resources.prepare import Prepared
from stretto.solution import SCHEMA, Schedule, ScheduleAnalysis, counted
from stretto.solution.json import parse_schedules, read_schedule
from stretto.solution.views import analyse
from stretto.solve.given import GIVEN, analysed, require_legal
from stretto.verification import Violation
from stretto.verification import verify as violations_of


@dataclass(frozen=True, repr=False)
class VerifyResult(Result):
    """The verdict on a schedule."""

    SCHEMA: ClassVar[str] = VERIFICATION

    analysis: ScheduleAnalysis
    violations: tuple[Violation, ...]
    """Every one, rule by rule; none: the schedule is legal."""

    @property
    def legal(self) -> bool:
        """Whether nothing is violated."""
        return not self.violations

    def view(self) -> VerificationReport:
        """What text and JSON are made by."""
        of, told = self.problem, (self.analysis, self.violations, self.noted)
        return VerificationReport(of.loop.name, of.machine, of.machine_why, *told)

    def line(self) -> str:
        """Legal or not."""
        on = f"{self.problem.loop.name} on {self.problem.machine.name}"
        verdict = "legal" if self.legal else counted(len(self.violations), "violation")
        return f"Verification {on}: II {self.analysis.ii}, {verdict}"


@checked
def verify(
    loop: Loop | Prepared | Source,
    schedule: ScheduleAnalysis | Schedule | str | PathLike[str],
    machine: Machine | str | None = None,
    *,
    max_stages: int | None = None,
) -> VerifyResult:
    """Every violation of the rules of legality by a schedule, counted out in absolute time.

    The schedule is what `schedule` returned, II and starts (`stretto.Schedule`), or the path of a
    document (stretto.schedule/1) with an entry for the loop. The machine is the one given, else
    that of the schedule where `schedule` made it, else the one the loop names, else `blackwell`.
    """
    ready = made_ready(loop, machine or target_of(schedule, loop))
    analysis = given(schedule, ready.loop, ready.machine)
    found = violations_of(ready.loop, ready.machine, analysis, max_stages=max_stages)
    return VerifyResult(analysis, found, problem=ready)


# Schedules from elsewhere -----------------------------------------------------------------

Given = ScheduleAnalysis | Schedule | str | PathLike[str]
"""A schedule that `schedule` returned, one of a generator, or the path of a document."""


def target_of(given: Given | None, loop: Loop | Prepared | Source) -> Machine | None:
    """The machine that a schedule was made for, where that is known and the loop is open to it."""
    if isinstance(given, ScheduleResult) and isinstance(loop, Loop | Source):
        return given.problem.machine
    return None


def given(schedule: Given, loop: Loop, machine: Machine) -> ScheduleAnalysis:
    """The schedule of a loop."""
    if isinstance(schedule, ScheduleAnalysis):
        return schedule
    if isinstance(schedule, Schedule):
        fault = fault_of(schedule, loop)
        if fault:
            raise StrettoError(f"the schedule has {fault}", loop.name)
        return analyse(loop, machine, schedule)
    if not isinstance(cast("object", schedule), str | PathLike):
        raise misgiven("a schedule, or the path of one,", schedule)
    file, text = read_text(fspath(schedule))
    return Document(file, _entries(file, text)).of(loop)


def legal(
    ready: Prepared,
    known: Given | None,
    origin: str = GIVEN,
    max_stages: int | None = None,
    *,
    trusted: bool = False,
) -> ScheduleAnalysis:
    """A schedule to work with: the one given, if it is legal; else a new one.

    Of one from elsewhere the numbers are worked out anew. One that is trusted has to keep
    dependences and storages; what else the machine refuses is a warning.
    """
    if known is None:
        return found_one(schedule(ready, max_stages=max_stages))
    one = given(known, ready.loop, ready.machine)
    found, notes = require_legal(ready, one, origin, max_stages, trusted=trusted)
    if isinstance(found, ScheduleResult) and found.problem == ready:
        return found
    return analysed(ready, found, notes)


def found_one(made: ScheduleResult) -> ScheduleResult:
    """A schedule that was to be run; StrettoError where none was found."""
    if not made.success:
        raise StrettoError("no schedule was found, so there is nothing to run", made.loop)
    return made


@dataclass(frozen=True, slots=True)
class Document:
    """The schedules of one document, each read when it is asked for."""

    file: str
    entries: dict[str, Cursor]
    """Loop name to its entry."""

    def of(self, loop: Loop) -> ScheduleAnalysis:
        """The schedule of a loop; DocumentError where there is none."""
        if loop.name not in self.entries:
            message, names = f"no schedule of `{loop.name}`", listed(self.entries)
            raise DocumentError(self.file, "$.loops", message, f"has: {names}")
        return read_schedule(self.entries[loop.name], {loop.name: loop})


def read_document(name: str, source: Source) -> Document:
    """The schedules that a file has for the loops of a source."""
    file, text = read_text(name)
    return Document(file, _entries(file, text, source))


def schedule_entries(file: str, text: str) -> list[dict[str, Any]] | None:
    """The entries of a document of schedules, as they stand; None where it is another document."""
    top = parse_json(file, text)
    if not isinstance(top.value, dict) or not top.has("schema"):
        return None
    if top.get("schema").value != SCHEMA:
        return None
    return [row.value for row in _entries(file, text).values()]


def _entries(file: str, text: str, source: Source | None = None) -> dict[str, Cursor]:
    """Loop name to the entry of that loop in the schedule document.

    Each is read for itself, when its loop is. An entry of no loop of the source, or a second one,
    is an error.
    """
    expected = f'expected schedules ("schema": "{SCHEMA}")'
    if not text.strip():
        raise DocumentError(file, "", "is empty", expected)
    top = parse_json(file, text)
    if not isinstance(top.value, dict):
        raise top.fail("is no schedule", expected)
    rows = list(top.get("loops").items()) if top.has("loops") else []
    parse_schedules(file, json.dumps({**top.table(), "loops": []}) if rows else text)
    entries: dict[str, Cursor] = {}
    for row in rows:
        name = row.get("name").text()
        if source is not None and all(name != loop.name for loop in source.loops):
            hint = f"the loops of {source.file}: {listed(loop.name for loop in source.loops)}"
            raise row.fail(f"is of `{name}`, which is no loop of the input", hint)
        if name in entries:
            raise row.fail(f"is a second schedule of `{name}`", f"{entries[name].path} is one")
        entries[name] = row
    return entries
