"""`stretto.sweep`: every way to settle what a kernel or a machine leaves open, scheduled.

    axes ──► configuration ──► loop, machine ──► schedule, verified ──► figures, predicted cycles
                                                                            │
                                         front of II, stages, smem, registers; the fastest ◄──┘

No compiler is asked: a thousand configurations take the time in which a few are compiled. The time
of a kernel is that of its blocks, one after the other on each SM; that of a block follows from its
schedule: (trips - 1) × II, and the length of one iteration.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from os import PathLike, fspath
from time import perf_counter
from typing import Any, cast

from stretto import starting
from stretto.api import deadline_of
from stretto.api.solving import ScheduleResult, result_of
from stretto.deadline import LATEST
from stretto.errors import StrettoError
from stretto.files import STANDARD, read_data
from stretto.kernel import Kernel
from stretto.kinds import checked
from stretto.loop import Loop
from stretto.machine import load_machine
from stretto.machine.formula import Formula, FormulaError
from stretto.many.executors import run_tasks
from stretto.many.grids import Configuration, Value, axes_of
from stretto.many.store import AnswerStore, answer, bound_options
from stretto.many.subjects import Subject, load_object, subject_of
from stretto.report import on_machine
from stretto.report.batch import refused
from stretto.report.sweep import FIGURES, FRONT, SweepReport, SweepRow
from stretto.resources.prepare import prepare
from stretto.solution import spilling

TIME_LIMIT = 20.0
"""Seconds that a configuration is worth unless others are given."""
TRIPS = 1024
"""How often a loop goes round where nobody tells."""
TOP = 5
"""Configurations that are measured."""
CYCLES = "cycles"
SMS = "sms"
"""The limit of a machine that says how many blocks run at once."""


@checked
def sweep(
    subject: str | PathLike[str] | Callable[..., object] | Loop | Kernel,
    axes: Mapping[str, Iterable[Value]] | None = None,
    machine: str | None = None,
    *,
    settings: Mapping[str, Iterable[Value]] | None = None,
    rings: Mapping[str, Iterable[Value]] | None = None,
    max_stages: Iterable[int] = (),
    consumers: Iterable[int] = (),
    trips: int | str | None = None,
    grid: Sequence[int | str] | int | str | None = None,
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
    """Schedule every configuration of some axes; which none beats, which is predicted fastest.

    The subject is a function that makes a Loop or a Kernel (``FILE.py:NAME``, or the function),
    a ``@triton.jit`` function (`signature` has the types of its other parameters), or an input as
    `read` takes it. `axes` has values for its arguments or constexprs, `settings` for paths of the
    machine file (``slots.TC.capacity``), `rings` for depths of storages (``*``: all), `max_stages`
    and `consumers` what they say.

    `grid` is how many blocks run along up to three axes, as for `predict`; `trips` (1024, unless
    others are given) how often a loop goes round. Both are numbers or formulas of the configuration
    (``"8192 // keys"``), and of both follows the predicted time of a loop on `sms` multiprocessors
    (default: those the machine states, else 1). That of a kernel whose grid is given, or `launched`
    (the numbers that it is launched with, and shapes of its tensors), is what `predict` says of the
    kernel as it is emitted, and so are its figures. The front is of ii, stages, smem and registers,
    or of cycles instead of ii where trips or the grid depend on the configuration; `front` names
    others. `measure`, a function of a configuration that returns a
    time, is asked about the `top` that are predicted fastest. `options` are those of `schedule`.
    """
    if isinstance(subject, PathLike):
        subject = fspath(cast("PathLike[str]", subject))
    if isinstance(grid, Mapping):
        hint = "values of arguments and constexprs are `axes`"
        raise StrettoError(f"grid is how many blocks run, such as (32, 64); {hint}")
    deadline_of(time_limit)  # an error where it is none
    what = subject_of(subject, signature, target, loop)
    space = axes_of(axes or {}, settings or {}, rings or {}, max_stages, consumers)
    dimensions = grid_of(grid)
    if grid is not None and launched is None and what.is_kernel:
        launched = {}
    if launched is not None:
        _check_launch(trips, rings or {}, options)
    bound_options(options)
    turns = _formula(TRIPS if trips is None else trips, "trips")
    formulas = (turns, *dimensions)
    if front is None:  # an iteration of larger tiles does more: then time is what can be compared
        front = (CYCLES, *FRONT[1:]) if any(one.names for one in formulas) else FRONT
    chosen = _figures(front)
    work = Evaluate(
        what,
        machine,
        turns,
        dimensions,
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
    asked = {
        "machine": machine,
        "trips": turns.text,
        "grid": [one.text for one in dimensions],
        "sms": sms,
        **options,
    }
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


def grid_of(given: Sequence[int | str] | int | str | None) -> tuple[Formula, ...]:
    """Blocks along up to three axes, each a number or a formula of the configuration."""
    if isinstance(given, str):
        parts: Sequence[int | str] = _apart(given)
    else:
        parts = (1,) if given is None else (given,) if isinstance(given, int) else given
    if not 1 <= len(parts) <= 3:
        raise StrettoError(f"grid has {len(parts)} axes; one to three are possible")
    return tuple(_formula(part, "grid") for part in parts)


def _apart(text: str) -> list[str]:
    """Formulas with commas between, but for those inside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _check_launch(
    trips: int | str | None, rings: Mapping[str, Iterable[Value]], options: Mapping[str, Any]
) -> None:
    """That nothing is asked for that a kernel as it is emitted cannot be."""
    if trips is not None:
        hint = "give the numbers that it is launched with (--argument NAME=N)"
        raise StrettoError(f"how often loops of a kernel go round, the kernel says; {hint}")
    single = [name for name in rings if name != "*"]
    if single:
        hint = "give all of them one depth (--ring '*=2..4'), or leave the grid out"
        raise StrettoError(
            f"a kernel is emitted with rings of one depth, not `{single[0]}`; {hint}"
        )
    defaults = bound_options({})
    changed = [name for name, value in bound_options(options).items() if value != defaults[name]]
    if changed:
        told = f"`{changed[0]}` is no option of kernels that are predicted as they are emitted"
        raise StrettoError(f"{told}; leave it out, or the grid and what it is launched with")


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
    grid: tuple[Formula, ...]
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
            if self.launched is not None:
                row = self._as_a_whole(row, configuration)
                return replace(row, seconds=perf_counter() - began)
            made = self.subject.made(configuration, self.machine)
            ready = prepare(made.loop, made.machine, made.machine_why)
            asked = dict(self.options)
            if configuration.max_stages is not None:
                asked["max_stages"] = configuration.max_stages
            found = answer(ready, self.store, time_limit=self.time_limit, options=asked).result
            row = replace(row, seconds=perf_counter() - began)
            if not found.success:
                return replace(row, error=refused(found))
            return predicted(self._figures(row, found, self._trips(row)), found, self.sms)
        except StrettoError as error:
            told = error.lines(str(self.subject))[0]
            return replace(row, error=told, seconds=perf_counter() - began)

    def _as_a_whole(self, row: SweepRow, configuration: Configuration) -> SweepRow:
        """The row of a kernel as it is emitted, whose launch is known."""
        from stretto.api.predicting import predict  # noqa: PLC0415 - few sweeps are of launches

        kernel, on, why = self.subject.launched(configuration, self.machine)
        depths = [depth for _, depth in configuration.rings if isinstance(depth, int)]
        made = predict(
            kernel,
            on,
            grid=self._grid(row),
            arguments=self.launched,
            consumers=configuration.consumers,
            depth=min(depths, default=None),
            max_stages=configuration.max_stages,
        )
        found = made.prediction
        analyses = {analysis.loop: analysis for analysis in made.made.analyses}
        longest = found.longest
        if longest is not None:
            row = self._figures(row, result_of(analyses[longest.name]), longest.trips)
        return replace(
            row,
            success=True,
            **on_machine(on, why),
            smem=made.made.emitted.smem,
            grid=self._grid(row),
            blocks=prod(self._grid(row)),
            cycles=round(found.cycles),
            block_cycles=round(found.block),
            predicted_by="of the emitted kernel, each agent in the order of its program",
            spills=found.spills,
        )

    def _numbers(self, row: SweepRow) -> dict[str, int | str]:
        return {k: v for k, v in row.values.items() if isinstance(v, int | str)}

    def _grid(self, row: SweepRow) -> tuple[int, ...]:
        return tuple(_number(formula, self._numbers(row), "grid") for formula in self.grid)

    def _trips(self, row: SweepRow) -> int:
        return _number(self.trips, self._numbers(row), "trips")

    def _figures(self, row: SweepRow, found: ScheduleResult, trips: int) -> SweepRow:
        memory = {space.space: space.used for space in found.memory}
        grid, of = self._grid(row), found.problem
        return replace(
            row,
            **on_machine(of.machine, of.machine_why),
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
            grid=grid,
            blocks=prod(grid),
        )


def _number(formula: Formula, values: Mapping[str, int | str], name: str) -> int:
    try:
        found = formula.cost(values)
    except FormulaError as error:
        raise StrettoError(f"{name}: {error}") from None
    if found < 1:
        raise StrettoError(f"{name} is {found}; at least 1 is needed")
    return found


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
