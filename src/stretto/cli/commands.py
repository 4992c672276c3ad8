"""One function a command: from arguments to the front door, loop by loop.

    arguments ──► loops of the input ──► one call of the front door each ──► Reply

Imports stand inside, so that each command loads only what it uses.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from stretto import __version__
from stretto.deadline import NEVER, Deadline, cut_off, deadline_after
from stretto.errors import DocumentError, StrettoError

if TYPE_CHECKING:
    from stretto.api import Result, View
    from stretto.api.bounding import BoundsResult
    from stretto.api.checking import VerifyResult
    from stretto.api.explaining import ExplainResult
    from stretto.api.pipelined import SimulateResult
    from stretto.api.solving import ScheduleResult
    from stretto.cli.progress import ProgressLine
    from stretto.exact import Event
    from stretto.frontends import Source
    from stretto.ir.passes.published import PublishedLoop
    from stretto.machine import Machine
    from stretto.resources.prepare import Prepared
    from stretto.solution import Refusal, ScheduleAnalysis

R = TypeVar("R", bound="Result")

PROGRAM = "nv_tileas.async.pipeline.program"
"""What a materialized loop is in a module."""
IN_MODULE = "the one in the module"
SILENCE = 10.0
"""Seconds of work in a pipe before a line about it, and between two of them."""


@dataclass(slots=True)
class Reply:
    """What a command has to say."""

    document: Callable[[], Mapping[str, Any]]
    """What it says to programs; made where it is asked for, as are lines."""
    lines: Callable[[], list[str]]
    """What it says to people."""
    errors: list[str] = field(default_factory=list[str])
    """For stderr, already in the form `file: path: error: ...`."""
    success: bool = True
    stopped: bool = False
    """Whether the user stopped it, so that a result is not the best that was to be had."""
    text: str = ""
    """What was read, for views that show it."""
    others: Mapping[str, Callable[[], str]] = field(default_factory=dict[str, Callable[[], str]])
    """How it is told in other formats, by their names."""


def _each_loop(
    source: Source,
    machine: str | Mapping[str, Machine] | None,
    schema: str,
    work: Callable[[Prepared], R],
    deadline: Deadline = NEVER,
    shown: Callable[[R], View] | None = None,
    head: Mapping[str, Any] | None = None,
) -> Reply:
    """Run `work` on every loop; a loop that fails says why and the others go on.

    The machine is one for all (by name), one for each loop, or the one each loop names. A loop that
    is not prepared by the deadline fails; `work` has its own eye on it. `shown`: how a result is
    viewed, where there is more than one way. `head`: what a document says of all loops.
    """
    from stretto.api import about
    from stretto.api.read_write import ready_in
    from stretto.loop import texts
    from stretto.machine import load_machine
    from stretto.machine.choice import ASKED, SCHEDULED

    target = load_machine(machine) if isinstance(machine, str) else None
    own: Mapping[str, Machine] = {} if machine is None or isinstance(machine, str) else machine
    views: list[View | dict[str, Any]] = []
    errors: list[str] = []
    for loop in source.loops:
        try:
            with cut_off(deadline):
                on = target or own.get(loop.name)
                ready = ready_in(source.file, loop, on, ASKED if target else SCHEDULED)
            found = work(ready)
        except StrettoError as error:
            told = list(error.lines(source.file))
            views.append({"name": loop.name, "success": False, "errors": told})
            errors += told
            continue
        noted = replace(found, notes=about(source, loop.name))
        views.append(noted.view() if shown is None else shown(noted))
    success = all(not isinstance(v, dict) and v.success for v in views)

    def document() -> dict[str, Any]:
        entries = [view if isinstance(view, dict) else view.to_json() for view in views]
        return {"schema": schema, "success": success, **(head or {}), "loops": entries}

    def lines() -> list[str]:
        told = [view.to_text() for view in views if not isinstance(view, dict)]
        return [line for text in told for line in ("", *text)][1:]

    return Reply(document, lines, [*texts(about(source, "")), *errors], success)


def _read_input(arguments: argparse.Namespace) -> Source:
    """The loops of the input, those the user asks about."""
    from stretto.api.read_write import chosen, read

    return chosen(read(arguments.input, arguments.machine), arguments.loop)


def _watched(
    loop: str, arguments: argparse.Namespace
) -> AbstractContextManager[Callable[[Refusal | int | Event], None] | None]:
    """Whom to tell what is tried of a loop: in a pipe, only of work that takes long."""
    if arguments.quiet:
        return nullcontext()
    most: float | None = getattr(arguments, "time_limit", None)
    # A time limit is one of the whole command, so its time is counted from the beginning.
    began = monotonic() if most is None else arguments.began
    if not arguments.verbose and not sys.stderr.isatty():
        return nullcontext(_Patient(loop, most, began))
    from stretto.cli.progress import ProgressLine

    return ProgressLine(loop, arguments.verbose, most, began=began)


@dataclass(slots=True)
class _Patient:
    """Hears what is tried, and says nothing for a while: most work is done by then."""

    loop: str
    most: float | None
    began: float
    """From when the time is counted."""
    since: float = field(default_factory=monotonic)
    """When work on this loop began."""
    line: ProgressLine | None = None

    def __call__(self, what: Refusal | int | Event) -> None:
        """An II was refused or found, or the solver came a step further."""
        if self.line is None:
            if monotonic() - self.since < SILENCE:
                return
            from stretto.cli.progress import ProgressLine

            self.line = ProgressLine(self.loop, False, self.most, SILENCE, self.began)
        self.line(what)


# Bounds, schedules, explanations ----------------------------------------------------------


def bounds(arguments: argparse.Namespace) -> Reply:
    """`stretto bounds`."""
    from stretto.api.bounding import BoundsResult
    from stretto.api.bounding import bounds as bounded

    source = _read_input(arguments)

    def work(ready: Prepared) -> BoundsResult:
        return bounded(ready, fuse=not arguments.no_fuse, max_stages=arguments.max_stages)

    return _each_loop(source, arguments.machine, BoundsResult.SCHEMA, work)


def assign(arguments: argparse.Namespace) -> Reply:
    """`stretto assign`."""
    from stretto.api.assigning import AssignResult
    from stretto.api.assigning import assign as assigned

    deadline = deadline_after(arguments.time_limit)
    with cut_off(deadline):
        source = _read_input(arguments)
    open_ends: list[str] = []

    def work(ready: Prepared) -> AssignResult:
        with _watched(ready.loop.name, arguments) as progress:
            result = assigned(
                ready, groups=arguments.groups, time_limit=deadline, progress=progress
            )
        if result.found.stopped and not result.optimal:
            open_ends.append(ready.loop.name)
        return result

    reply = _each_loop(source, arguments.machine, AssignResult.SCHEMA, work, deadline)
    reply.stopped = bool(open_ends)
    return reply


def schedule(arguments: argparse.Namespace) -> Reply:
    """`stretto schedule`."""
    from stretto.api.solving import ScheduleResult
    from stretto.api.solving import schedule as scheduled
    from stretto.solve import StoppedError

    deadline = deadline_after(arguments.time_limit)
    with cut_off(deadline):
        source = _read_input(arguments)
    proof = arguments.prove or arguments.generator == "exact"
    stopped: list[str] = []
    open_ends: list[str] = []

    def work(ready: Prepared) -> ScheduleResult:
        name = ready.loop.name
        if stopped:
            raise StrettoError("not scheduled, stopped before it", name)
        try:
            with _watched(name, arguments) as progress:
                found = scheduled(
                    ready,
                    generator=arguments.generator,
                    max_ii=arguments.max_ii,
                    max_stages=arguments.max_stages,
                    fuse=not arguments.no_fuse,
                    serial_threshold=arguments.serial_threshold,
                    strict=arguments.strict,
                    pins=arguments.pin,
                    without=arguments.without,
                    effort=arguments.effort,
                    prove=arguments.prove,
                    objective=arguments.objective,
                    work_limit=arguments.work_limit,
                    workers=arguments.workers,
                    seed=arguments.seed,
                    time_limit=deadline,
                    progress=progress,
                )
        except StoppedError as stop:
            found = stop.analysis
            assert isinstance(found, ScheduleResult)
            stopped.append(name)
        if found.overdue or ((proof or stopped) and not found.proved):
            open_ends.append(name)
        return found

    def shown(found: ScheduleResult) -> View:
        return found.view(arguments.verbose)

    head = {"version": __version__, "source": {"file": source.file}}
    reply = _each_loop(
        source, arguments.machine, ScheduleResult.SCHEMA, work, deadline, shown, head
    )
    reply.stopped = bool(open_ends)
    reply.text = source.text
    return reply


def explain(arguments: argparse.Namespace) -> Reply:
    """`stretto explain`."""
    from stretto.api.explaining import ExplainResult
    from stretto.api.explaining import explain as explained

    deadline = deadline_after(arguments.time_limit)
    with cut_off(deadline):
        source = _read_input(arguments)
    stopped: list[str] = []
    open_ends: list[str] = []

    def work(ready: Prepared) -> ExplainResult:
        name = ready.loop.name
        if stopped:
            raise StrettoError("not explained, stopped before it", name)
        with _watched(name, arguments) as progress:
            found = explained(
                ready,
                ii=arguments.ii,
                max_stages=arguments.max_stages,
                fuse=not arguments.no_fuse,
                pins=arguments.pin,
                work_limit=arguments.work_limit,
                workers=arguments.workers,
                seed=arguments.seed,
                time_limit=deadline,
                progress=progress,
            )
        told = found.explanation
        if told is not None and told.stopped:
            stopped.append(name)
        if told is not None and not told.settled:
            open_ends.append(name)
        return found

    reply = _each_loop(source, arguments.machine, ExplainResult.SCHEMA, work, deadline)
    reply.stopped = bool(open_ends)
    return reply


# Schedules from elsewhere -----------------------------------------------------------------


def verify(arguments: argparse.Namespace) -> Reply:
    """`stretto verify`: schedules from a document, or from the attributes of a module."""
    from stretto.api.checking import VerifyResult, read_document
    from stretto.api.checking import verify as verified
    from stretto.api.read_write import chosen, read_loops
    from stretto.frontends import read_input

    input_file, input_text = read_input(arguments.input)
    if arguments.schedule is None:
        return _verify_attributes(arguments, input_file, input_text)
    whole = read_loops(input_file, input_text, arguments.machine)
    source = chosen(whole, arguments.loop)
    given = read_document(arguments.schedule, whole)

    def work(ready: Prepared) -> VerifyResult:
        return verified(ready, given.of(ready.loop), max_stages=arguments.max_stages)

    return _each_loop(source, arguments.machine, VerifyResult.SCHEMA, work)


def _verify_attributes(arguments: argparse.Namespace, file: str, text: str | bytes) -> Reply:
    """The schedules that stand in a module, as attributes of its loops."""
    from stretto.api.checking import VerifyResult
    from stretto.api.checking import verify as verified
    from stretto.api.read_write import chosen
    from stretto.frontends import Source, is_mlir
    from stretto.ir import read_schedules
    from stretto.loop import Note
    from stretto.machine import load_machine

    if not is_mlir(text):
        hint = "only a module can carry its schedule: stretto verify INPUT SCHEDULE"
        raise DocumentError(file, "", "has no schedule", hint)
    machine = None if arguments.machine is None else load_machine(arguments.machine)
    every = {item.loop.name: item for item in read_schedules(file, text, machine)}
    notes = [Note(item.loop.at(), w.headline) for item in every.values() for w in item.warnings]
    whole = Source(file, tuple(item.loop for item in every.values()), tuple(notes))
    source = chosen(whole, arguments.loop)
    found = {name: item for name, item in every.items() if item.analysis is not None}
    if not any(loop.name in found for loop in source.loops):
        hint = "stretto-opt -p tileas-generate-schedule writes one"
        raise DocumentError(file, "", "has no schedule on any of these loops", hint)
    placed: list[str] = []
    for loop in source.loops:
        if loop.name not in found:
            placed.append(f"{file}: warning: loop `{loop.name}` has no schedule to verify")

    def work(ready: Prepared) -> VerifyResult:
        item = found[ready.loop.name]
        assert item.analysis is not None
        verdict = verified(ready, item.analysis, max_stages=arguments.max_stages)
        placed.extend(item.diagnose(violation).render() for violation in verdict.violations)
        return verdict

    loops = tuple(loop for loop in source.loops if loop.name in found)
    targets = {name: item.machine for name, item in found.items()}
    as_scheduled = _as_scheduled(replace(source, loops=loops), found)
    reply = _each_loop(as_scheduled, arguments.machine or targets, VerifyResult.SCHEMA, work)
    reply.errors = placed + reply.errors
    return reply


def _as_scheduled(source: Source, standing: Mapping[str, PublishedLoop]) -> Source:
    """The loops as they are on the machines their schedules are for."""
    loops = tuple(
        replace(standing[loop.name].loop, machine=None) if loop.name in standing else loop
        for loop in source.loops
    )
    return replace(source, loops=loops)


def simulate(arguments: argparse.Namespace) -> Reply:
    """`stretto simulate`: loops are materialized and run; programs in a module just run.

    scf.for ...                         ──►  schedule ──► program ──► run beside the loop
    scf.for ... {nv_tile.aws.start}     ──►  the schedule that is there ──► program ──► run
    INPUT SCHEDULE                      ──►  the one of that document ──► program ──► run
    async.pipeline.program ...          ──────────────►  program ──► run beside its loop
    stretto.kernel_program ...          the program of a whole kernel, as it stands
    --inputs FILE.npz                   the whole kernel, on real values
    --mode emitted                      the program that is printed, by clocks and on values
    """
    from stretto.api.checking import read_document
    from stretto.api.pipelined import SimulateResult
    from stretto.api.pipelined import simulate as run
    from stretto.api.read_write import chosen, read_loops
    from stretto.frontends import holds_program, is_mlir, read_input

    if arguments.inputs is not None or arguments.mode == "emitted":
        return _run_kernel(arguments)
    file, text = read_input(arguments.input)
    if holds_program(text):
        return _run_kernel(arguments)
    if is_mlir(text) and PROGRAM in text:
        return _run_programs(arguments, file, text)
    whole = read_loops(file, text, arguments.machine)
    given = None if arguments.schedule is None else read_document(arguments.schedule, whole)
    standing: Mapping[str, PublishedLoop] = {}
    if given is None and arguments.generator is None and is_mlir(text):
        standing = _standing(file, text, arguments.machine, trusted=arguments.trust_schedule)
    if arguments.trust_schedule and given is None and not standing:
        raise DocumentError(
            file, "", "has no schedule to trust", "give SCHEDULE, or a module's own"
        )
    source = chosen(_as_scheduled(whole, standing), arguments.loop)

    def work(ready: Prepared) -> SimulateResult:
        name, origin = ready.loop.name, ""
        schedule: ScheduleAnalysis | None = None
        if given is not None:
            schedule, origin = given.of(ready.loop), f"the one of {given.file}"
        elif name in standing:
            schedule, origin = standing[name].analysis, IN_MODULE
        else:
            schedule = _made(arguments, ready)
            origin = f"a new one by the {schedule.generator} generator"
        return run(
            ready,
            schedule,
            iterations=arguments.iterations,
            mode=arguments.mode,
            max_stages=arguments.max_stages,
            origin=origin,
            trust_schedule=arguments.trust_schedule,
        )

    machines: str | Mapping[str, Machine] | None = arguments.machine
    if machines is None:
        machines = {name: item.machine for name, item in standing.items()}
    return _each_loop(source, machines, SimulateResult.SCHEMA, work)


def _standing(
    file: str, text: str, machine: str | None, *, trusted: bool = False
) -> dict[str, PublishedLoop]:
    """The loops of a module on which a schedule stands, by name."""
    from stretto.ir import read_schedules
    from stretto.machine import load_machine

    target = None if machine is None else load_machine(machine)
    found = read_schedules(file, text, target, trusted=trusted)
    return {item.loop.name: item for item in found if item.analysis is not None}


def _made(arguments: argparse.Namespace, ready: Prepared) -> ScheduleResult:
    """A schedule of our own."""
    from stretto.api.checking import found_one
    from stretto.api.solving import schedule

    with _watched(ready.loop.name, arguments) as progress:
        found = schedule(
            ready,
            generator=arguments.generator or "auto",
            max_stages=arguments.max_stages,
            fuse=not arguments.no_fuse,
            progress=progress,
        )
    return found_one(found)


def _run_programs(arguments: argparse.Namespace, file: str, text: str) -> Reply:
    """Programs as they stand in a module, edited by hand or not."""
    if arguments.schedule is not None:
        hint = "the program of each loop is run as it is; leave SCHEDULE out"
        raise DocumentError(file, "", "has programs, not loops to schedule", hint)
    from stretto.api.pipelined import SimulateResult
    from stretto.api.pipelined import simulate as run
    from stretto.api.read_write import chosen
    from stretto.frontends import Source
    from stretto.ir import read_programs
    from stretto.machine import load_machine, machine_beside

    programs = {program.loop.name: program for program in read_programs(file, text)}
    if not programs:
        raise DocumentError(file, "", f"has no {PROGRAM}")
    source = Source(file, tuple(program.loop for program in programs.values()))

    def work(ready: Prepared) -> SimulateResult:
        program = programs[ready.loop.name]
        origin = "that of the program in the module"
        return run(program, machine=ready.machine, iterations=arguments.iterations, origin=origin)

    machines: str | dict[str, Machine] = arguments.machine or {
        name: load_machine(machine_beside(file, program.machine))
        for name, program in programs.items()
    }
    return _each_loop(chosen(source, arguments.loop), machines, SimulateResult.SCHEMA, work)


def import_kernel(arguments: argparse.Namespace) -> Reply:
    """`stretto import`."""
    from stretto.api.kernels import imported

    made = imported(arguments.input, arguments.machine, arguments.consumers or 1)
    return Reply(made.to_json, lambda: made.text.rstrip("\n").split("\n"), list(made.notes))


def emit(arguments: argparse.Namespace) -> Reply:
    """`stretto emit`."""
    from stretto.api.emitting import emit as emitted
    from stretto.report import assumption

    made = emitted(
        arguments.input,
        arguments.machine,
        mode=arguments.mode,
        consumers=arguments.consumers,
        depth=arguments.depth,
        blocks=arguments.blocks,
        agents=dict(pair for given in arguments.agents for pair in given),
        seed=arguments.seed,
        tracing="marks" if arguments.trace else None,
        time_limit=arguments.time_limit,
        grid=arguments.grid,
        arguments=dict(arguments.argument),
    )
    told = assumption(made.machine, made.machine_why)
    notes = [*([told] if told else []), *made.notes]
    if arguments.to == "mlir":
        return Reply(made.to_json, lambda: made.to_mlir().splitlines(), notes, stopped=made.stopped)
    return Reply(made.to_json, made.to_text, notes, stopped=made.stopped)


def _run_kernel(arguments: argparse.Namespace) -> Reply:
    """A whole kernel on real values."""
    from stretto.api.kernels import load_inputs, simulate_kernel

    inputs = None if arguments.inputs is None else load_inputs(arguments.inputs)
    found = simulate_kernel(
        arguments.input, inputs, arguments.grid, arguments.machine, mode=arguments.mode
    )
    return Reply(found.to_json, found.to_text, success=found.success)


def machines(arguments: argparse.Namespace) -> Reply:
    """`stretto machines`."""
    from stretto.machine import load_machine, machine_names
    from stretto.report import machines as report

    if arguments.calibrate is not None:
        return _calibrated(arguments.calibrate)
    if arguments.name is None:
        known = [load_machine(name) for name in machine_names()]
        return Reply(lambda: report.list_to_json(known), lambda: report.list_to_text(known))
    machine = load_machine(arguments.name)
    if arguments.toml:
        from stretto.machine.settings import machine_toml

        text = machine_toml(arguments.name).strip("\n")
        return Reply(dict[str, Any], lambda: text.split("\n"))
    return Reply(lambda: report.machine_to_json(machine), lambda: report.machine_to_text(machine))


def _calibrated(results: str) -> Reply:
    """A machine file, from what microbenchmarks measured."""
    from stretto.files import read_text
    from stretto.limits import FILE_BYTES
    from stretto.machine.calibrating import calibrated

    lines = list(calibrated(*read_text(results, FILE_BYTES)))
    document = {"schema": "stretto.calibration/1", "success": True, "toml": "\n".join(lines) + "\n"}
    return Reply(lambda: document, lambda: lines)


def elsewhere(module: str) -> Callable[[argparse.Namespace], Reply]:
    """The command that a module of its own runs, loaded when it is asked for."""

    def run(arguments: argparse.Namespace) -> Reply:
        from importlib import import_module

        return import_module(f"stretto.cli.{module}").run(arguments)

    return run


COMMANDS: dict[str, Callable[[argparse.Namespace], Reply]] = {
    "schedule": schedule,
    "assign": assign,
    "bounds": bounds,
    "explain": explain,
    "simulate": simulate,
    "verify": verify,
    "import": import_kernel,
    "emit": emit,
    "predict": elsewhere("predict"),
    "check": elsewhere("check"),
    "convert": elsewhere("convert"),
    "batch": elsewhere("batch"),
    "bench": elsewhere("bench"),
    "sweep": elsewhere("sweep"),
    "compare": elsewhere("compare"),
    "completion": elsewhere("completion"),
    "machines": machines,
    "view": elsewhere("view"),
}
