"""What is done with a unit, wherever it runs: read, prepared, scheduled, verified, told as a row.

    Unit ──► read ──► one loop ──► prepare ──► answer (kept or new) ──► a row
                 └──► several ──► how many: each comes again as a unit of its own

A loop of a document with several is a unit for itself, so that one which never ends or takes its
process with it costs none of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from stretto import starting
from stretto.api import about
from stretto.api.read_write import read_loops, ready_in
from stretto.caching import package_sum
from stretto.deadline import cut_off, deadline_after
from stretto.errors import StrettoError
from stretto.frontends import Source, content
from stretto.loop import texts
from stretto.machine import Machine
from stretto.machine.digest import digest
from stretto.many.inputs import Unit
from stretto.many.store import AnswerStore, answer, bound_options
from stretto.report import on_machine
from stretto.report.batch import failed, scheduled


@dataclass(frozen=True, slots=True)
class Several:
    """A document has so many loops."""

    count: int


@dataclass(frozen=True, slots=True)
class Worked:
    """A row of a unit, less what the one who handed it out knows."""

    row: dict[str, Any]
    trouble: str = ""
    """Of the store."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is asked of every unit."""

    machine: Machine | None = None
    """None: the one each loop names."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of `stretto.schedule`."""
    time_limit: float | None = None
    """Seconds for each loop."""
    store: AnswerStore | None = None

    @property
    def settings(self) -> str:
        """What rows depend on besides their units, as one number."""
        given = bound_options(self.options)
        machine = "" if self.machine is None else digest(self.machine)
        asked = f"{package_sum()}\0{machine}\0{given}\0{self.time_limit}"
        return sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def __call__(self, unit: Unit) -> Worked | Several:
        """Do it."""
        if unit.error:
            return Worked(failed(None, [unit.error]))
        deadline = deadline_after(self.time_limit)
        name: str | None = None
        try:
            with cut_off(deadline):
                source = _read(unit, self.machine)
                if unit.index is None and len(source) > 1:
                    return Several(len(source))
                loop = source.loops[unit.index or 0]
                name = loop.name
                ready = ready_in(source.file, loop, self.machine)
            found = answer(ready, self.store, time_limit=self.time_limit, options=self.options)
        except StrettoError as error:
            return Worked(failed(name, [_placed(unit, text) for text in error.lines(unit.source)]))
        told = texts((*about(source, name), *found.result.warnings))
        if not unit.index:
            told = [*texts(about(source, "")), *told]
        on = on_machine(ready.machine, ready.machine_why)
        row = scheduled(found.result, on, found.kept, told)
        return Worked(row, self.store.trouble if self.store is not None else "")


def _placed(unit: Unit, error: str) -> str:
    """An error with its place; the line of a unit that is one is that of its file."""
    alone = f"{unit.source}:1:"
    if unit.line is None or not error.startswith(alone):
        return error
    return f"{unit.source}:{error.removeprefix(alone)}"


_last: list[tuple[tuple[bytes, Machine | None], Source]] = []
"""The document of several loops that was read last: its next loop is likely to be next."""


def _read(unit: Unit, machine: Machine | None) -> Source:
    if unit.index is not None and _last and _last[0][0] == (unit.data, machine):
        return _last[0][1]
    source = read_loops(unit.source, content(unit.source, unit.data), machine)
    _last[:] = [((unit.data, machine), source)] if len(source) > 1 else []
    return source


starting.load("stretto.solve", "stretto.generate.search", "stretto.frontends.documents")
