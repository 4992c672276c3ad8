"""`stretto.bench`: how good and how fast, over suites of loops.

    corpus/                 tile-ddg/FA.ddg.json      ──► suite tile-ddg, beside its peer_ii.json
                            hatschet/aes/g2.graphml   ──► suite hatschet
    loops of Python         random                    ──► suite random

A suite is a folder below a path that was given, or the path itself where files lie in it. Each loop
is scheduled some times (the best time counts), and what comes out is verified once more, by itself.
Nothing is taken from the store of answers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from stretto import starting
from stretto.api import deadline_of
from stretto.api.checking import verify
from stretto.api.read_write import read_loops
from stretto.api.solving import ScheduleResult, schedule
from stretto.deadline import LATEST, cut_off, deadline_after
from stretto.document import Cursor, parse_json, unknown_schema
from stretto.errors import StrettoError
from stretto.files import read_text
from stretto.frontends import content
from stretto.kinds import checked
from stretto.loop import Loop
from stretto.machine import Machine, load_machine
from stretto.many.executors import run_tasks
from stretto.many.inputs import Inputs, Unit
from stretto.report import on_machine
from stretto.report.bench import SCHEMA, BenchReport, BenchRow, Comparison, Suite
from stretto.resources.prepare import prepare

PEERS = "peer_ii.json"
"""IIs that somebody published, beside the files they are of."""
TIME_LIMIT = 60.0
"""Seconds that a loop is worth unless others are given."""
REPEAT, SHORT = 3, 0.25
"""Times that a loop is scheduled, and the seconds after which it is not scheduled again."""
SLOWER = 1.5
"""How many times the median of a suite may be what it was before."""
LEAST = 0.001
"""Seconds below which no median is called slower."""
RANDOM = "random"


@checked
def bench(
    inputs: Iterable[str | os.PathLike[str] | Loop],
    machine: Machine | str | None = None,
    *,
    compare: str | os.PathLike[str] | None = None,
    slower: float = SLOWER,
    repeat: int = REPEAT,
    time_limit: float | None = TIME_LIMIT,
    jobs: int = 1,
    executor: Executor | str | None = None,
    **options: Any,
) -> BenchReport:
    """Schedule every loop of some suites: how good the schedules are, and how fast they came.

    Inputs are files, folders, patterns or loops. A ``peer_ii.json`` beside the files has IIs that
    somebody published for them. With `compare`, the document of a run before, what is worse than
    it was is listed, and `success` is false. `options` are those of `schedule`: a `generator` of
    your own is measured as ours are. Times are true where nothing else runs, so one process works
    unless `jobs` says otherwise. Ctrl-C ends it with a report of what was measured (`stopped`).
    """
    if repeat < 1:
        raise StrettoError(f"repeat is {repeat}; at least 1 is needed")
    deadline_of(time_limit)  # an error where it is none
    target = None if machine is None else load_machine(machine)
    before = None if compare is None else read_bench(os.fspath(compare))
    measure = Measure(target, options, repeat, time_limit)
    limit = None if time_limit is None else repeat * (time_limit + LATEST) + 60.0
    tasks = list(_tasks(inputs))
    rows: dict[int, list[BenchRow]] = {}
    stopped = False
    try:
        for done in run_tasks(measure, tasks, executor, jobs=jobs, limit=limit):
            task = done.task
            failed = BenchRow(task.suite, task.name, "", False, error=done.error)
            rows[task.unit.number] = done.value or [failed]
    except KeyboardInterrupt:
        if not rows:
            raise
        stopped = True
    found = [row for number in sorted(rows) for row in rows[number]]
    if not found:
        raise StrettoError("there is no loop in what was given")
    peers, notes = _published(tasks, found)
    if stopped:
        notes = [*notes, f"stopped: {len(rows)} of {len(tasks)} inputs were measured"]
    found = [replace(row, peer=peers.get(row.key)) for row in found]
    asked: dict[str, Any] = {
        "machine": None if target is None else target.name,
        "repeat": repeat,
        "time_limit": time_limit,
        **options,
    }
    report = BenchReport(tuple(found), None, tuple(notes), asked, stopped)
    if before is None:
        return report
    assert compare is not None
    return replace(report, comparison=compared(os.fspath(compare), before, report.rows, slower))


# One document -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Task:
    """A document, and the suite that it is of."""

    suite: str
    name: str
    """Its path, below the one that was given."""
    unit: Unit


@dataclass(frozen=True, slots=True)
class Measure:
    """Measures every loop of a document, wherever it runs."""

    machine: Machine | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    repeat: int = REPEAT
    time_limit: float | None = None

    def __call__(self, task: Task) -> list[BenchRow]:
        """A row a loop."""
        unit = task.unit
        if unit.error:
            return [BenchRow(task.suite, task.name, "", False, error=unit.error)]
        try:
            source = read_loops(unit.source, content(unit.source, unit.data), self.machine)
        except StrettoError as error:
            told = error.lines(unit.source)[0]
            return [BenchRow(task.suite, task.name, "", False, error=told)]
        return [self._row(task, loop) for loop in source.loops]

    def _row(self, task: Task, loop: Loop) -> BenchRow:
        row = BenchRow(task.suite, task.name, loop.name, False, len(loop.ops))
        try:
            with cut_off(deadline_after(self.time_limit)):
                ready = prepare(loop, self.machine)
            row = replace(row, **on_machine(ready.machine, ready.machine_why))
            best: ScheduleResult | None = None
            for _ in range(self.repeat):
                found = schedule(ready, time_limit=self.time_limit, **self.options)
                if best is None or found.seconds < best.seconds:
                    best = found
                if found.seconds > SHORT:
                    break
            assert best is not None
        except StrettoError as error:
            return replace(row, error=error.lines(task.unit.source)[0])
        if not best.success:
            why = best.refused[-1].reason if best.refused else "no schedule was found"
            return replace(row, error=why, seconds=best.seconds)
        assert best.bounds is not None
        return replace(
            row,
            success=True,
            mii=best.bounds.mii,
            ii=best.ii,
            lower_bound=best.proof.lower_bound if best.proof is not None else best.bounds.mii,
            optimal=best.proof is not None and best.proof.optimal,
            verified=verify(ready, best, max_stages=self.options.get("max_stages")).legal,
            stages=best.stage_count,
            seconds=best.seconds,
            generator=best.generator,
            overdue=best.overdue,
        )


def _tasks(inputs: Iterable[str | os.PathLike[str] | Loop]) -> Iterator[Task]:
    number = 0
    for one in inputs:
        loop = isinstance(one, Loop)
        for unit in Inputs([one]):
            number += 1
            suite, name = (RANDOM, one.name) if loop else _placed(os.fspath(one), unit.source)
            yield Task(suite, name, replace(unit, number=number))


def _placed(given: str, file: str) -> tuple[str, str]:
    """The suite of a file, and its name there."""
    if not os.path.isdir(given):
        folder = PurePath(file).parent.name
        return folder or "files", PurePath(file).name
    inside = PurePath(os.path.relpath(file, given))
    if len(inside.parts) == 1:
        return PurePath(os.path.abspath(given)).name, inside.name
    return inside.parts[0], str(PurePath(*inside.parts[1:]))


# What others published --------------------------------------------------------------------


def _published(
    tasks: Iterable[Task], rows: Iterable[BenchRow]
) -> tuple[dict[tuple[str, str, str], int], list[str]]:
    """Published IIs by the key of a row, and a note of each that is of no loop that was found."""
    by_file: dict[tuple[str, str], list[BenchRow]] = {}
    for row in rows:
        by_file.setdefault(row.key[:2], []).append(row)
    found: dict[tuple[str, str, str], int] = {}
    notes: list[str] = []
    folders = {os.path.dirname(t.unit.file): t for t in tasks if not t.unit.file.startswith("<")}
    for folder, task in folders.items():
        path = os.path.join(folder, PEERS)
        if not os.path.exists(path):
            continue
        for told in parse_json(*read_text(path)).items():
            file = told.get("file").text()
            here = by_file.get((task.suite, str(PurePath(task.name).parent / file)), [])
            loop, peer = _named(told), told.get("peer_ii").positive()
            same = [row for row in here if row.loop == loop] or [
                row for row in here if row.loop.endswith(loop)
            ]
            if len(same) == 1:
                key = same[0].key
                found[key] = min(peer, found.get(key, peer))  # the best that anybody has
            elif here:
                wrong = f"{len(same)} loops; which is meant?" if same else f"no loop {loop}"
                notes.append(f"{path}: {file} has {wrong}")
    return found, notes


def _named(row: Cursor) -> str:
    """The loop that a row is of: its name, or what that ends in; "": any."""
    if row.has("loop"):
        return row.get("loop").text()
    return f".{row.get('loop_id').natural()}" if row.has("loop_id") else ""


# Another run ------------------------------------------------------------------------------


def read_bench(file: str) -> tuple[BenchRow, ...]:
    """The rows of a document of `bench`."""
    top = parse_json(*read_text(file))
    if top.get("schema").value != SCHEMA:
        raise unknown_schema(top.get("schema"), f'expected "{SCHEMA}"')
    return tuple(_old(row) for row in top.get("loops").items())


def _old(row: Cursor) -> BenchRow:
    ii = row.get("ii")
    seconds = row.get("seconds")
    if not isinstance(seconds.value, int | float) or isinstance(seconds.value, bool):
        raise seconds.fail("is no number", "expected seconds")
    return BenchRow(
        row.get("suite").text(),
        row.get("file").text(),
        str(row.get("loop").value),
        row.get("success").boolean(),
        ops=row.get("ops").natural(),
        mii=row.get("mii").natural(),
        ii=None if ii.value is None else ii.positive(),
        optimal=row.get("optimal").boolean(),
        seconds=float(seconds.value),
    )


def compared(
    name: str, old: Iterable[BenchRow], new: Iterable[BenchRow], slower: float = SLOWER
) -> Comparison:
    """What is worse and what is better than it was, loop by loop; and times, suite by suite."""
    now = {row.key: row for row in new}
    worse: list[str] = []
    better: list[str] = []
    missing: list[str] = []
    before = {row.key: row for row in old}
    for key, was in before.items():
        row = now.get(key)
        if row is None:
            missing.append(was.where)
        elif was.success and not row.success:
            worse.append(f"{row.where}: II {was.ii} before, now: {row.error}")
        elif row.success and not was.success:
            better.append(f"{row.where}: nothing before, now II {row.ii}")
        elif row.ii is not None and was.ii is not None and row.ii != was.ii:
            told = f"{row.where}: II {was.ii} before, now {row.ii}"
            (worse if row.ii > was.ii else better).append(told)
        elif was.optimal and not row.optimal:
            worse.append(f"{row.where}: II {row.ii} was proved, now it is not")
        elif row.optimal and not was.optimal:
            better.append(f"{row.where}: II {row.ii} is proved now")
    worse += _slower(before, now, slower)
    added = sum(key not in before for key in now)
    return Comparison(name, tuple(worse), tuple(better), tuple(missing), added)


def _slower(
    before: Mapping[tuple[str, str, str], BenchRow],
    now: Mapping[tuple[str, str, str], BenchRow],
    slower: float,
) -> Iterator[str]:
    """Suites whose median time, over loops of both runs, is that many times what it was."""
    both = [key for key in before if key in now]
    for name in dict.fromkeys(key[0] for key in both):
        medians = [
            Suite(name, tuple(run[key] for key in both if key[0] == name)).figures()
            for run in (before, now)
        ]
        was, is_now = (figures["median_seconds"] for figures in medians)
        if is_now > LEAST and was > 0 and is_now > slower * was:
            times = f"{is_now / was:.1f} times the {1e3 * was:.2f}"
            yield f"{name}: median {1e3 * is_now:.2f} ms, {times}"


starting.load("stretto.solve", "stretto.generate.search")
