"""`stretto.sweep`: every way to settle what a kernel or a machine leaves open, scheduled.

    grid ──► configuration ──► loop, machine ──► schedule, verified ──► figures, predicted cycles
                                                                            │
                                         front of II, stages, smem, registers; the fastest ◄──┘

No compiler is asked: a thousand configurations take the time in which a few are compiled. The time
of a kernel is that of its blocks, one after the other on each SM; that of a block follows from its
schedule: (trips - 1) × II, and the length of one iteration.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite
from os import PathLike, fspath
from time import perf_counter
from typing import Any, cast

from stretto import starting
from stretto.api.solving import ScheduleResult
from stretto.deadline import LATEST
from stretto.errors import StrettoError
from stretto.files import STANDARD, read_data
from stretto.kernel import Kernel
from stretto.loop import Loop
from stretto.machine import Machine, load_machine
from stretto.machine.formula import Formula, FormulaError
from stretto.machine.settings import Setting, with_settings
from stretto.many.executors import run_tasks
from stretto.many.grids import Configuration, Value, axes_of
from stretto.many.store import AnswerStore, answer, bound_options
from stretto.many.subjects import Subject, load_object, subject_of
from stretto.report.batch import refused
from stretto.report.sweep import FIGURES, FRONT, SweepReport, SweepRow
from stretto.resources.prepare import DEFAULT_MACHINE, prepare
from stretto.solution import spilling

TIME_LIMIT = 20.0
"""Seconds that a configuration is worth unless others are given."""
TOP = 5
"""Configurations that are measured."""
CYCLES = "cycles"
SMS = "sms"
"""The limit of a machine that says how many blocks run at once."""


def sweep(
    subject: str | PathLike[str] | Callable[..., object] | Loop | Kernel,
    grid: Mapping[str, Iterable[Value]] | None = None,
    machine: str | None = None,
    *,
    settings: Mapping[str, Iterable[Value]] | None = None,
    rings: Mapping[str, Iterable[Value]] | None = None,
    max_stages: Iterable[int] = (),
    consumers: Iterable[int] = (),
    trips: int | str = 1024,
    blocks: int | str = 1,
    sms: int | None = None,
    front: Iterable[str] | None = None,
    measure: str | Callable[..., float] | None = None,
    top: int = TOP,
    signature: Mapping[str, str] | None = None,
    target: tuple[str, int] = ("cuda", 90),
    loop: str | None = None,
    time_limit: float | None = TIME_LIMIT,
    jobs: int | None = None,
    executor: Executor | str | None = None,
    cache: bool = True,
    progress: Callable[[int, int], None] | None = None,
    launched: Mapping[str, int | float | tuple[int, ...]] | None = None,
    **options: Any,
) -> SweepReport:
    """Schedule every configuration of a grid; which none beats, and which is predicted fastest.

    The subject is a function that makes a Loop or a Kernel (``FILE.py:NAME``, or the function),
    a ``@triton.jit`` function (`signature` has the types of its other parameters), or an input as
    `read` takes it. `grid` has values for its arguments or constexprs, `settings` for paths of the
    machine file (``slots.TC.capacity``), `rings` for depths of storages (``*``: all), `max_stages`
    and `consumers` what they say.

    `trips` and `blocks` are numbers or formulas of the configuration (``"8192 // keys"``), from
    which follows the predicted time of the whole kernel on `sms` multiprocessors (default: those
    the machine states, else 1). With `launched`, the numbers a kernel is launched with (and shapes
    of its tensors), that time is `predict`'s, of the kernel as it is emitted. The front is of ii,
    stages, smem and registers, or of cycles instead of ii where trips or blocks depend on the
    configuration; `front` names others. `measure`, a function of a configuration that returns a
    time, is asked about the `top` that are predicted fastest. `options` are those of `schedule`.
    """
    if isinstance(subject, PathLike):
        subject = fspath(cast("PathLike[str]", subject))
    what = subject_of(subject, signature, target, loop)
    space = axes_of(grid or {}, settings or {}, rings or {}, max_stages, consumers)
    bound_options(options)
    formulas = _formula(trips, "trips"), _formula(blocks, "blocks")
    if front is None:  # an iteration of larger tiles does more: then time is what can be compared
        front = (CYCLES, *FRONT[1:]) if any(one.names for one in formulas) else FRONT
    chosen = _figures(front)
    work = Evaluate(
        what,
        machine,
        *formulas,
        sms,
        options,
        time_limit,
        AnswerStore() if cache else None,
        launched,
    )
    work.check()
    clock = None if measure is None else _clock(measure)
    began = perf_counter()
    rows: list[SweepRow] = []
    limit = None if time_limit is None else time_limit + LATEST + 30.0
    if what.given is not None and executor is None:
        done = ((work(one), one, "") for one in space)  # nobody else can be told what it is
    else:
        ran = run_tasks(work, iter(space), executor, jobs=jobs, limit=limit)
        done = ((one.value, one.task, one.error) for one in ran)
    for row, one, error in done:
        rows.append(row or SweepRow(one.number, one.values, False, error=error))
        if progress is not None:
            progress(len(rows), len(space))
    rows.sort(key=lambda row: row.number)
    asked = {"machine": machine, "trips": trips, "blocks": blocks, "sms": sms, **options}
    found = SweepReport(str(what), tuple(rows), chosen, perf_counter() - began, (), asked)
    return found if clock is None else measured(found, clock, top)


def _figures(front: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(front))
    for name in found:
        if name not in FIGURES:
            raise StrettoError(f"no figure `{name}`; a front may be of {', '.join(FIGURES)}")
    if not found:
        raise StrettoError(f"a front of nothing; it may be of {', '.join(FIGURES)}")
    return found


def _formula(text: int | str, name: str) -> Formula:
    try:
        return Formula.parse(str(text))
    except FormulaError as error:
        raise StrettoError(f"{name}: {error}") from None


# One configuration ------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluate:
    """Schedules a configuration, wherever it runs."""

    subject: Subject
    machine: str | None
    trips: Formula
    blocks: Formula
    sms: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    time_limit: float | None = None
    store: AnswerStore | None = None
    launched: Mapping[str, int | float | tuple[int, ...]] | None = None
    """Numbers and shapes that a kernel is launched with; None: it is not predicted as a whole."""

    def check(self) -> None:
        """That there is such a machine, function or file, before a thousand rows say it."""
        if self.machine is not None:
            load_machine(self.machine)
        if self.subject.given is not None:
            return
        if self.subject.name:
            load_object(self.subject.file, self.subject.name)
        elif self.subject.file == STANDARD:
            raise StrettoError("every process reads the input, so it cannot be standard input")
        else:
            read_data(self.subject.file)

    def __call__(self, configuration: Configuration) -> SweepRow:
        """Its row."""
        values = configuration.values
        row = SweepRow(configuration.number, values, False)
        began = perf_counter()
        try:
            target = self._target(configuration, None)
            made = self.subject.made(configuration, target)
            if target is None:
                target = self._target(configuration, made.loop)
            ready = prepare(made.loop, target)
            asked = dict(self.options)
            if configuration.max_stages is not None:
                asked["max_stages"] = configuration.max_stages
            found = answer(ready, self.store, time_limit=self.time_limit, options=asked).result
            row = replace(row, seconds=perf_counter() - began)
            if not found.success:
                return replace(row, error=refused(found))
            return self._as_a_whole(self._figures(row, found), configuration, ready.machine)
        except StrettoError as error:
            told = error.lines(str(self.subject))[0]
            return replace(row, error=told, seconds=perf_counter() - began)

    def _as_a_whole(self, row: SweepRow, configuration: Configuration, on: Machine) -> SweepRow:
        """The row with the time of the emitted kernel, where its launch is known."""
        if self.launched is None:
            return row
        from stretto.api.predicting import predict  # noqa: PLC0415 - few sweeps are of launches

        kernel = self.subject.kernel(configuration)
        assert row.blocks is not None
        depths = [depth for _, depth in configuration.rings if isinstance(depth, int)]
        found = predict(
            kernel,
            on,
            grid=(row.blocks,),
            arguments=self.launched,
            consumers=configuration.consumers,
            depth=min(depths, default=None),
        ).prediction
        told = "of the emitted kernel, each agent in the order of its program"
        cycles, block = round(found.cycles), round(found.block)
        spills = row.spills or found.spills
        return replace(row, cycles=cycles, block_cycles=block, predicted_by=told, spills=spills)

    def _target(self, configuration: Configuration, loop: Loop | None) -> Machine | None:
        """The machine, with its settings; None: the loop is to say, and is not made yet."""
        name = self.machine or (None if loop is None else loop.machine or DEFAULT_MACHINE)
        return None if name is None else _machine(name, configuration.settings)

    def _figures(self, row: SweepRow, found: ScheduleResult) -> SweepRow:
        memory = {space.space: space.used for space in found.memory}
        numbers = {k: v for k, v in row.values.items() if isinstance(v, int | str)}
        trips, blocks = (
            _number(formula, numbers, name)
            for formula, name in ((self.trips, "trips"), (self.blocks, "blocks"))
        )
        done = replace(
            row,
            success=True,
            ii=found.ii,
            mii=0 if found.bounds is None else found.bounds.mii,
            optimal=found.proof is not None and found.proof.optimal,
            stages=found.stage_count,
            smem=memory.get("smem", 0),
            tmem=memory.get("tmem", 0),
            registers=0 if found.pressure is None else found.pressure.peak,
            spills=bool(spilling(found)),
            trips=trips,
            blocks=blocks,
        )
        return predicted(done, found, self.sms)


def _number(formula: Formula, values: Mapping[str, int | str], name: str) -> int:
    try:
        found = formula.cost(values)
    except FormulaError as error:
        raise StrettoError(f"{name}: {error}") from None
    if found < 1:
        raise StrettoError(f"{name} is {found}; at least 1 is needed")
    return found


@lru_cache(maxsize=64)
def _machine(name: str, settings: tuple[tuple[str, Setting], ...]) -> Machine:
    return with_settings(name, dict(settings)) if settings else load_machine(name)


def predicted(row: SweepRow, found: ScheduleResult, sms: int | None) -> SweepRow:
    """The row with the time of the whole kernel: the one place where predictions enter.

    A block takes (trips - 1) × II and the length of one iteration, its last operation's end. Each
    multiprocessor runs its share of the blocks one after the other.
    """
    assert row.ii is not None
    assert row.trips is not None
    assert row.blocks is not None
    problem = found.problem
    length = max(start + problem.loop.op(name).completion for name, start in found.starts.items())
    block = (row.trips - 1) * row.ii + length
    beside = sms or problem.machine.limit(SMS) or 1
    cycles = -(-row.blocks // beside) * block
    told = "of blocks one after the other, each trips × II and its ends"
    return replace(row, block_cycles=block, cycles=cycles, predicted_by=told)


# Measured ---------------------------------------------------------------------------------


def _clock(measure: str | Callable[..., float]) -> Callable[..., float]:
    """The function that measures, found before there is anything to measure."""
    if not isinstance(measure, str):
        return measure
    file, _, name = measure.rpartition(":")
    found = load_object(file, name)
    if not callable(found):
        raise StrettoError(f"{measure} is {type(found).__name__}; expected a function")
    return cast("Callable[..., float]", found)


def measured(
    report: SweepReport, measure: str | Callable[..., float], top: int = TOP
) -> SweepReport:
    """The report with what a function says of the configurations that are predicted fastest."""
    clock = _clock(measure)
    found: dict[int, float] = {}
    notes: list[str] = []
    for row in report.ranked[:top]:
        try:
            with redirect_stdout(sys.stderr):
                time = float(clock(**row.values))
            if not isfinite(time):
                raise StrettoError(f"{time:g} is no time")
            found[row.number] = time
        except StrettoError as error:
            notes.append(f"{row.label} was not measured: {error}")
        except Exception as error:
            first = next(iter(str(error).splitlines()), "")
            notes.append(f"{row.label} was not measured: {type(error).__name__}: {first}")
    rows = tuple(replace(row, measured=found.get(row.number)) for row in report.rows)
    return replace(report, rows=rows, notes=(*report.notes, *notes))


starting.load("stretto.solve", "stretto.generate.search")
