"""`stretto.batch`: every loop of many inputs scheduled and verified, a row each, as they come.

    inputs ──► units ──► run_tasks(Work) ──► rows ──► journal ──► whoever asked
                 ▲                             │
                 └── of a document with several loops, each ──┘

With a journal a run that was killed goes on where it was: units whose rows are there are passed
over. A row is written before anybody hears of it.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from stretto.api import deadline_of
from stretto.deadline import LATEST
from stretto.kinds import checked
from stretto.loop import Loop
from stretto.machine import Machine, load_machine
from stretto.many.executors import Done, run_tasks
from stretto.many.inputs import Inputs, Unit
from stretto.many.journal import Journal
from stretto.many.store import AnswerStore, bound_options
from stretto.many.work import Several, Work, Worked
from stretto.report.batch import ROW, BatchSummary, failed

TIME_LIMIT = 60.0
"""Seconds that a loop is worth unless others are given."""
MARGIN = LATEST + 3.0
"""Seconds after its time limit at which a loop that does not answer is given up."""

Row = dict[str, Any]
"""As JSON has it: stretto.batch-row/1."""


@checked
def batch(
    inputs: Iterable[str | os.PathLike[str] | Loop],
    output: str | os.PathLike[str] | None = None,
    machine: Machine | str | None = None,
    *,
    executor: Executor | str | None = None,
    jobs: int | None = None,
    time_limit: float | None = TIME_LIMIT,
    memory_limit: int | None = None,
    cache: bool | str | os.PathLike[str] = True,
    **options: Any,
) -> Generator[Row]:
    """Schedule and verify every loop of many inputs: a row each, as they come.

    Inputs are files of any format that `read` takes, folders, patterns, files with a document a
    line, or loops. With `output`, a file, each row is a line of it before it is yielded, and a run
    that was interrupted goes on: rows that are there are not made again, and not yielded.

    Loops run on `jobs` processes (default: one a core), on a `concurrent.futures.Executor`, or on
    the Dask cluster of ``dask://HOST:PORT``. One that fails, crashes, or does not answer is a row
    with errors. `time_limit` is in seconds for each loop, `memory_limit` in megabytes for each
    process. Answers are kept (`cache`: False, not; a path, in that file). `options` are those of
    `schedule`. A row is an object of stretto.batch-row/1.
    """
    deadline_of(time_limit)  # an error where it is none
    target = None if machine is None else load_machine(machine)
    store = AnswerStore(None if cache is True else Path(cache)) if cache else None
    bound_options(options)  # an error where there is no such option
    work = Work(target, options, time_limit, store)
    run = BatchRun(Inputs(inputs), work, executor, jobs, memory_limit)
    return run.rows(None if output is None else os.fspath(output))


@dataclass(slots=True)
class BatchRun:
    """A batch, with what it has come to so far."""

    inputs: Inputs
    work: Work
    executor: Executor | str | None = None
    jobs: int | None = None
    memory: int | None = None
    summary: BatchSummary = field(default_factory=BatchSummary)
    _settings: str = ""
    _several: deque[Iterator[Unit]] = field(default_factory=deque[Iterator[Unit]])
    """The loops of documents that turned out to have several."""

    def rows(
        self, output: str | None = None, heard: Callable[[str], None] | None = None
    ) -> Generator[Row]:
        """The rows that are not in the output yet; `heard` gets each as a line, before."""
        self._settings = self.work.settings
        with ExitStack() as stack:
            journal = None
            if output is not None:
                self.inputs.leave_out(output)
                journal = stack.enter_context(Journal(output, self._settings, self._was_there))
                self.inputs.leave_out(output)  # it may not have been there before
            began = monotonic()
            units = iter(self.inputs)
            for done in self._all_done(units, journal):
                row = self._row(done)
                if row is None:
                    continue
                line = json.dumps(row, ensure_ascii=False)
                if journal is not None:
                    journal.write(line)
                if heard is not None:
                    heard(line)
                self.summary.seconds = monotonic() - began
                self.summary.add(row)
                yield row
            self.summary.seconds = monotonic() - began
        if self.inputs.left_alone:
            count = self.inputs.left_alone
            told = (
                "1 file of another kind was"
                if count == 1
                else f"{count:,} files of other kinds were"
            )
            self.summary.notes.append(f"{told} left alone")

    def _was_there(self, row: Row) -> None:
        self.summary.add(row, before=True)

    def _all_done(
        self, units: Iterator[Unit], journal: Journal | None
    ) -> Iterator[Done[Unit, Worked | Several]]:
        """Run all units; those of documents with several loops too, which come up on the way."""
        limit = self.work.time_limit
        patience = None if limit is None else limit + MARGIN
        more = True
        while more:
            yield from run_tasks(
                self.work,
                self._left(units, journal),
                self.executor,
                jobs=self.jobs,
                limit=patience,
                memory=self.memory,
            )
            more = bool(self._several)

    def _left(self, units: Iterator[Unit], journal: Journal | None) -> Iterator[Unit]:
        """The units that are still to be done, as far as they are known."""
        while True:
            while self._several:
                unit = next(self._several[0], None)
                if unit is None:
                    self._several.popleft()
                elif journal is None or not journal.has(unit.id(self._settings)):
                    yield unit
            unit = next(units, None)
            if unit is None:
                return
            first = unit.id(self._settings)
            if journal is None or not journal.has(first):
                yield unit
            elif journal.count(first) > 1:
                self._several.append(unit.loops(journal.count(first)))

    def _row(self, done: Done[Unit, Worked | Several]) -> Row | None:
        """The row of a unit; None where it has several loops, each of which will have one."""
        unit, found = done.task, done.value
        if isinstance(found, Several):
            self._several.append(unit.loops(found.count))
            return None
        if found is None:
            told = failed(None, done.error.split("\n"))
        else:
            told = found.row
            if found.trouble and found.trouble not in self.summary.notes:
                self.summary.notes.append(found.trouble)
        return {
            "schema": ROW,
            "id": unit.id(self._settings),
            "settings": self._settings,
            "number": unit.number,
            "source": unit.source,
            "index": unit.index or 0,
            "of": unit.of,
            **told,
            "seconds": round(done.seconds, 6),
        }
