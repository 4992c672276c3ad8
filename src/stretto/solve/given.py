"""Schedules that somebody made before: verified, and their numbers worked out anew.

starts, stages, groups ──► every rule counted out ──► a `ScheduleAnalysis` of this loop and machine
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from stretto.errors import StrettoError
from stretto.loop import Note, Place
from stretto.problem import apply, compile_loop
from stretto.resources.prepare import Prepared
from stretto.resources.table import ConflictError
from stretto.solution import LateTable, Schedule, ScheduleAnalysis, TableRow, counted
from stretto.solution.views import analyse
from stretto.verification import TRUSTED, verify

GIVEN = "the one given"


def require_legal(
    ready: Prepared,
    found: ScheduleAnalysis,
    origin: str = GIVEN,
    max_stages: int | None = None,
    *,
    trusted: bool = False,
) -> tuple[ScheduleAnalysis, tuple[Note, ...]]:
    """A schedule that may run, and what is worth saying of it; StrettoError where it may not.

    One that is trusted has to keep dependences and storages; what else the machine refuses is a
    note.
    """
    loop, machine = ready.loop, ready.machine
    if not found.success or found.ii is None:
        raise StrettoError(f"{origin} says that no schedule was found: none to run", loop.name)
    violations = verify(loop, machine, found, max_stages=max_stages)
    notes = ready.notes
    if trusted and violations:
        # Of which machine it is said to be is no matter of dependences.
        found = replace(found, machine="")
        every = verify(loop, machine, found, max_stages=max_stages)
        violations = tuple(v for v in every if v.rule in TRUSTED)
        others = [v for v in every if v.rule not in TRUSTED]
        if others:
            told = f"on trust; {machine.name} refuses it, {counted(len(others), 'violation')}"
            notes += (Note(Place(loop.name), f"{told}: {others[0].message}"),)
    if violations:
        count = counted(len(violations), "violation")
        told = "".join(f"\n  {v.rule}: {v.message}" for v in violations)
        if not any(v.rule in TRUSTED for v in violations):
            told += "\n  it may run on trust all the same (--trust-schedule)"
        raise StrettoError(f"the schedule, {origin}, is not legal, {count}{told}", loop.name)
    return found, notes


def analysed(ready: Prepared, found: ScheduleAnalysis, notes: tuple[Note, ...]) -> ScheduleAnalysis:
    """A schedule with its numbers worked out for this loop and machine."""
    return analyse(
        ready.loop,
        ready.machine,
        found.schedule,
        generator=found.generator,
        rule=found.rule,
        warnings=notes,
        table=LateTable(partial(_table, ready, found.schedule)),
    )


def _table(ready: Prepared, schedule: Schedule) -> tuple[TableRow, ...]:
    """What a schedule populates; nothing where it is trusted and does not fit."""
    compiled = compile_loop(ready.loop, ready.machine)
    index = {name: i for i, name in enumerate(compiled.names)}
    starts = [schedule.starts[name] for name in compiled.names]
    groups = [[index[name] for name in group] for group in schedule.fused]
    try:
        return apply(compiled, schedule.ii, starts, groups).steps()
    except ConflictError:
        return ()
