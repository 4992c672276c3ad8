"""One function a command: read, compute, hand back a document and its text.

Imports stand inside, so that each command loads only what it uses.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from stretto.cli.answer import Answer, each_loop
from stretto.cli.inputs import about, read_input
from stretto.cli.limiting import cut_off
from stretto.cli.simulating import simulate
from stretto.cli.verifying import verify
from stretto.deadline import deadline_after
from stretto.errors import StrettoError

if TYPE_CHECKING:
    from stretto.exact.options import Limits
    from stretto.solution import ScheduleAnalysis
    from stretto.solve import Prepared


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
        workers=arguments.workers,
        seed=arguments.seed,
    )


def schedule(arguments: argparse.Namespace) -> Answer:
    """`stretto schedule`."""
    from stretto.cli.progress import Progress
    from stretto.exact.options import ProofOptions
    from stretto.generate.problem import Options
    from stretto.report.schedule import ScheduleReport
    from stretto.solution.json import SCHEMA
    from stretto.solve import StoppedError, overdue, schedule_prepared

    deadline = deadline_after(arguments.time_limit)
    with cut_off(deadline):
        source = read_input(arguments)
    options = Options(
        max_ii=arguments.max_ii,
        max_stages=arguments.max_stages,
        fuse=not arguments.no_fuse,
        serial_threshold=arguments.serial_threshold,
        strict=arguments.strict,
        without=frozenset(arguments.without),
        deadline=deadline,
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
        asked = proof is not None or stopped
        if overdue(analysis) or (asked and not _proved(analysis)):
            open_ends.append(name)
        notes = about(source.notes, ready.loop.name)
        return ScheduleReport(analysis, ready.loop, ready.machine, notes, arguments.verbose)

    answer = each_loop(source, arguments.machine, SCHEMA, work, deadline)
    answer.stopped = bool(open_ends)
    return answer


def _proved(analysis: ScheduleAnalysis) -> bool:
    """Whether nothing that was asked of the solver is left open."""
    proof = analysis.proof
    return proof is not None and proof.optimal and all(row.optimal for row in proof.objectives)


def explain(arguments: argparse.Namespace) -> Answer:
    """`stretto explain`."""
    from stretto.cli.progress import Progress
    from stretto.generate.problem import Options
    from stretto.report.explanation import SCHEMA, ExplanationReport
    from stretto.solve import explain_prepared

    deadline = deadline_after(arguments.time_limit)
    with cut_off(deadline):
        source = read_input(arguments)
    options = Options(
        max_stages=arguments.max_stages, fuse=not arguments.no_fuse, deadline=deadline
    )
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
        if told is not None and not told.settled:
            open_ends.append(name)
        warnings = ready.notes + about(source.notes, name)
        return ExplanationReport(explained, warnings)

    answer = each_loop(source, arguments.machine, SCHEMA, work, deadline)
    answer.stopped = bool(open_ends)
    return answer


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
