"""One function a command: read, compute, hand back a document and its text.

Imports stand inside, so that each command loads only what it uses.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stretto.cli.inputs import about, about_none, chosen, is_mlir, read_input, read_loops, read_text
from stretto.errors import DocumentError, LoopError, MachineError, StrettoError

if TYPE_CHECKING:
    from stretto.api import Prepared
    from stretto.exact.options import Limits
    from stretto.frontends import Source
    from stretto.loop import Loop
    from stretto.machine import Machine
    from stretto.schedule import ScheduleAnalysis


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


def error_lines(error: StrettoError, file: str) -> list[str]:
    """An error as lines, with the file they are about."""
    if isinstance(error, LoopError):
        return list(error.lines(file))
    text = str(error)
    return [text] if ": error: " in text else [f"error: {text}"]


def each_loop(
    source: Source,
    machine: str | Mapping[str, Machine] | None,
    schema: str,
    work: Callable[[Prepared], Any],
) -> Answer:
    """Run `work` on every loop; a loop that fails says why and the others go on.

    The machine is one for all (by name), one for each loop, or the one each loop names.
    """
    from stretto.api import prepare
    from stretto.machine import load_machine

    target = load_machine(machine) if isinstance(machine, str) else None
    own: Mapping[str, Machine] = {} if machine is None or isinstance(machine, str) else machine
    entries: list[dict[str, Any]] = []
    lines: list[str] = []
    errors: list[str] = []
    for loop in source.loops:
        try:
            on = target or own.get(loop.name) or _named_by(loop, source.file)
            report = work(prepare(loop, on))
        except StrettoError as error:
            told = error_lines(error, source.file)
            entries.append({"name": loop.name, "success": False, "errors": told})
            errors += told
            continue
        entries.append(report.to_json())
        lines += ([""] if lines else []) + report.to_text()
    success = all(entry["success"] for entry in entries)
    document = {"schema": schema, "success": success, "loops": entries}
    return Answer(document, lines, [*about_none(source), *errors], success)


def _named_by(loop: Loop, file: str) -> Machine | None:
    """The machine a loop names, if it does; a name that is none is a fault of the loop's file."""
    from stretto.machine import load_machine

    if loop.machine is None:
        return None
    try:
        return load_machine(loop.machine)
    except MachineError as error:
        raise DocumentError(file, "$.machine", str(error)) from None


def bounds(arguments: argparse.Namespace) -> Answer:
    """`stretto bounds`."""
    from stretto.bounds import compute_bounds, remedies
    from stretto.bounds.remedies import ties
    from stretto.report.bounds import SCHEMA, BoundsReport

    source = read_input(arguments)
    fuse, max_stages = not arguments.no_fuse, arguments.max_stages

    def work(ready: Prepared) -> BoundsReport:
        found = compute_bounds(ready.loop, ready.machine, fuse=fuse, max_stages=max_stages)
        change = remedies(ready.loop, ready.machine, found, fuse=fuse, max_stages=max_stages)
        stuck = (
            ()
            if change
            else ties(ready.loop, ready.machine, found, fuse=fuse, max_stages=max_stages)
        )
        warnings = ready.notes + about(source.notes, ready.loop.name)
        return BoundsReport(ready.loop.name, ready.machine.name, found, change, warnings, stuck)

    return each_loop(source, arguments.machine, SCHEMA, work)


def _limits(arguments: argparse.Namespace) -> Limits:
    """What the solver may cost."""
    from stretto.exact.options import Limits

    return Limits(
        work=arguments.work_limit,
        seconds=arguments.time_limit,
        workers=arguments.workers,
        seed=arguments.seed,
    )


def schedule(arguments: argparse.Namespace) -> Answer:
    """`stretto schedule`."""
    from stretto.api import StoppedError, schedule_prepared
    from stretto.cli.progress import Progress
    from stretto.exact.options import ProofOptions
    from stretto.generate.problem import Options
    from stretto.report.schedule import ScheduleReport
    from stretto.schedule.json import SCHEMA

    source = read_input(arguments)
    options = Options(
        max_ii=arguments.max_ii,
        max_stages=arguments.max_stages,
        fuse=not arguments.no_fuse,
        serial_threshold=arguments.serial_threshold,
        strict=arguments.strict,
        without=frozenset(arguments.without),
    )
    asked = arguments.prove or arguments.generator == "exact"
    limits = _limits(arguments)
    proof = ProofOptions(arguments.objective, limits) if asked else None
    stopped: list[str] = []
    open_ends: list[str] = []

    def work(ready: Prepared) -> ScheduleReport:
        name = ready.loop.name
        if stopped:
            raise StrettoError(f"{name}: not scheduled, stopped before it")
        try:
            with Progress(name, arguments.verbose) as progress:
                analysis = schedule_prepared(ready, arguments.generator, options, progress, proof)
        except StoppedError as stop:
            analysis = stop.analysis
            stopped.append(name)
        if (proof is not None or stopped) and not _proved(analysis):
            open_ends.append(name)
        notes = about(source.notes, ready.loop.name)
        return ScheduleReport(analysis, ready.loop, ready.machine, notes, arguments.verbose)

    answer = each_loop(source, arguments.machine, SCHEMA, work)
    answer.stopped = bool(open_ends)
    return answer


def _proved(analysis: ScheduleAnalysis) -> bool:
    """Whether nothing that was asked of the solver is left open."""
    proof = analysis.proof
    return proof is not None and proof.optimal and all(row.optimal for row in proof.objectives)


def explain(arguments: argparse.Namespace) -> Answer:
    """`stretto explain`."""
    from stretto.api import explain_prepared
    from stretto.cli.progress import Progress
    from stretto.generate.problem import Options
    from stretto.report.explanation import SCHEMA, ExplanationReport

    source = read_input(arguments)
    options = Options(max_stages=arguments.max_stages, fuse=not arguments.no_fuse)
    limits = _limits(arguments)
    stopped: list[str] = []
    open_ends: list[str] = []

    def work(ready: Prepared) -> ExplanationReport:
        name = ready.loop.name
        if stopped:
            raise StrettoError(f"{name}: not explained, stopped before it")
        with Progress(name, arguments.verbose) as progress:
            explained = explain_prepared(ready, arguments.ii, options, limits, progress)
        told = explained.explanation
        if told is not None and told.stopped:
            stopped.append(name)
        if told is not None and (told.verdict == "undecided" or not told.complete):
            open_ends.append(name)
        warnings = ready.notes + about(source.notes, name)
        return ExplanationReport(explained, warnings)

    answer = each_loop(source, arguments.machine, SCHEMA, work)
    answer.stopped = bool(open_ends)
    return answer


def simulate(arguments: argparse.Namespace) -> Answer:
    """`stretto simulate`."""
    from stretto.api import schedule_prepared
    from stretto.cli.progress import Progress
    from stretto.generate.problem import Options
    from stretto.report.simulation import SCHEMA, SimulationReport
    from stretto.simulate import simulate as run

    source = read_input(arguments)
    options = Options(max_stages=arguments.max_stages, fuse=not arguments.no_fuse)

    def work(ready: Prepared) -> SimulationReport:
        loop, machine = ready.loop, ready.machine
        with Progress(loop.name, arguments.verbose) as progress:
            analysis = schedule_prepared(ready, arguments.generator, options, progress)
        if not analysis.success:
            raise StrettoError(f"{loop.name}: no schedule was found, so there is nothing to run")
        simulation = run(loop, machine, analysis, arguments.iterations, arguments.mode)
        return SimulationReport(simulation, analysis.warnings + about(source.notes, loop.name))

    return each_loop(source, arguments.machine, SCHEMA, work)


def verify(arguments: argparse.Namespace) -> Answer:
    """`stretto verify`."""
    from stretto.report.verification import SCHEMA, VerificationReport
    from stretto.schedule.reading import parse_schedules
    from stretto.verify import verify as violations_of

    input_file, input_text = read_text(arguments.input)
    if arguments.schedule is None:
        return _verify_attributes(arguments, input_file, input_text)
    whole = read_loops(input_file, input_text, arguments.machine)
    source = chosen(whole, arguments.loop)
    file, text = read_text(arguments.schedule)
    entries = _entries(file, text, whole)

    def work(ready: Prepared) -> VerificationReport:
        loop = ready.loop
        if loop.name not in entries:
            names = ", ".join(entries) or "none"
            raise DocumentError(file, "$.loops", f"no schedule of `{loop.name}`", f"has: {names}")
        analyses = parse_schedules(file, entries[loop.name], {loop.name: loop})
        analysis = next(a for a in analyses if a.loop == loop.name)
        found = violations_of(loop, ready.machine, analysis, max_stages=arguments.max_stages)
        warnings = ready.notes + about(source.notes, loop.name)
        return VerificationReport(loop.name, ready.machine.name, analysis, found, warnings)

    return each_loop(source, arguments.machine, SCHEMA, work)


def _verify_attributes(arguments: argparse.Namespace, file: str, text: str) -> Answer:
    """The schedules that stand in a module, as attributes of its loops."""
    from stretto.frontends import Source
    from stretto.ir import read_schedules
    from stretto.machine import load_machine
    from stretto.report.verification import SCHEMA, VerificationReport
    from stretto.verify import verify as violations_of

    if not is_mlir(text):
        hint = "only a module can carry its schedule: stretto verify INPUT SCHEDULE"
        raise DocumentError(file, "", "has no schedule", hint)
    machine = None if arguments.machine is None else load_machine(arguments.machine)
    every = {item.loop.name: item for item in read_schedules(file, text, machine)}
    source = chosen(Source(file, tuple(item.loop for item in every.values())), arguments.loop)
    found = {name: item for name, item in every.items() if item.analysis is not None}
    if not any(loop.name in found for loop in source.loops):
        hint = "stretto-opt -p tileas-generate-schedule writes one"
        raise DocumentError(file, "", "has no schedule on any of these loops", hint)
    placed: list[str] = []
    for loop in source.loops:
        if loop.name not in found:
            placed.append(f"{file}: warning: loop `{loop.name}` has no schedule to verify")

    def work(ready: Prepared) -> VerificationReport:
        item = found[ready.loop.name]
        assert item.analysis is not None
        said = violations_of(
            ready.loop, ready.machine, item.analysis, max_stages=arguments.max_stages
        )
        placed.extend(item.diagnose(violation).render() for violation in said)
        warnings = ready.notes + tuple(warning.headline for warning in item.warnings)
        return VerificationReport(
            ready.loop.name, ready.machine.name, item.analysis, said, warnings
        )

    loops = tuple(
        replace(found[loop.name].loop, machine=None) for loop in source.loops if loop.name in found
    )
    targets = {name: item.machine for name, item in found.items()}
    answer = each_loop(Source(file, loops), targets, SCHEMA, work)
    answer.errors = placed + answer.errors
    return answer


def _entries(file: str, text: str, source: Source) -> dict[str, str]:
    """Loop name to the schedule document with the entry of that loop alone.

    The others are reduced to their names, so that every loop can be read for itself and places
    in the document stay what they are. An entry of no loop, or a second one, is an error.
    """
    from stretto.document import parse_json
    from stretto.schedule.json import SCHEMA
    from stretto.schedule.reading import parse_schedules

    if not text.strip():
        raise DocumentError(file, "", "is empty", f'expected schedules ("schema": "{SCHEMA}")')
    top = parse_json(file, text)
    rows = top.get("loops").items() if isinstance(top.value, dict) and top.has("loops") else []
    parse_schedules(file, json.dumps({**top.table(), "loops": []}) if rows else text)
    known = [loop.name for loop in source.loops]
    places: dict[str, int] = {}
    for i, row in enumerate(rows):
        name = row.get("name").text()
        if name not in known:
            hint = f"the loops of {source.file}: {', '.join(known)}"
            raise row.fail(f"is of `{name}`, which is no loop of the input", hint)
        if name in places:
            raise row.fail(f"is a second schedule of `{name}`", f"$.loops[{places[name]}] is one")
        places[name] = i
    blanks = [{"name": name, "success": False} for name in places]
    return {
        name: json.dumps({**top.table(), "loops": [*blanks[:i], rows[i].value, *blanks[i + 1 :]]})
        for name, i in places.items()
    }


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
    "schedule": schedule,
    "bounds": bounds,
    "explain": explain,
    "simulate": simulate,
    "verify": verify,
    "machines": machines,
}
