"""One function a command: from arguments to the front door, loop by loop.

Imports stand inside, so that each command loads only what it uses.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

from stretto.cli.answer import Answer, each_loop
from stretto.cli.limiting import cut_off
from stretto.cli.simulating import simulate
from stretto.cli.verifying import verify
from stretto.deadline import deadline_after
from stretto.errors import StrettoError

if TYPE_CHECKING:
    from stretto.frontends import Source
    from stretto.report.bounds import BoundsReport
    from stretto.report.explanation import ExplanationReport
    from stretto.report.schedule import ScheduleReport
    from stretto.resources.prepare import Prepared


def read_input(arguments: argparse.Namespace) -> Source:
    """The loops of the input, those the user asks about."""
    from stretto.api.reading import chosen, read

    return chosen(read(arguments.input, arguments.machine), arguments.loop)


class _Limits(TypedDict):
    work_limit: float
    workers: int
    seed: int


def _limits(arguments: argparse.Namespace) -> _Limits:
    """What the solver may cost."""
    return {
        "work_limit": arguments.work_limit,
        "workers": arguments.workers,
        "seed": arguments.seed,
    }


def bounds(arguments: argparse.Namespace) -> Answer:
    """`stretto bounds`."""
    from stretto.api.bounding import BoundsResult
    from stretto.api.bounding import bounds as bounded
    from stretto.api.reading import about

    source = read_input(arguments)
    fuse, max_stages = not arguments.no_fuse, arguments.max_stages

    def work(ready: Prepared) -> BoundsReport:
        found = bounded(ready, fuse=fuse, max_stages=max_stages)
        return replace(found, notes=about(source, ready.loop.name)).view()

    return each_loop(source, arguments.machine, BoundsResult.SCHEMA, work)


def schedule(arguments: argparse.Namespace) -> Answer:
    """`stretto schedule`."""
    from stretto.api.reading import about
    from stretto.api.scheduling import ScheduleResult
    from stretto.api.scheduling import schedule as scheduled
    from stretto.cli.progress import Progress
    from stretto.solve import StoppedError

    deadline = deadline_after(arguments.time_limit)
    with cut_off(deadline):
        source = read_input(arguments)
    proof = arguments.prove or arguments.generator == "exact"
    stopped: list[str] = []
    open_ends: list[str] = []

    def work(ready: Prepared) -> ScheduleReport:
        name = ready.loop.name
        if stopped:
            raise StrettoError("not scheduled, stopped before it", name)
        try:
            with Progress(name, arguments.verbose) as progress:
                found = scheduled(
                    ready,
                    generator=arguments.generator,
                    max_ii=arguments.max_ii,
                    max_stages=arguments.max_stages,
                    fuse=not arguments.no_fuse,
                    serial_threshold=arguments.serial_threshold,
                    strict=arguments.strict,
                    without=arguments.without,
                    prove=arguments.prove,
                    objective=arguments.objective,
                    time_limit=deadline,
                    progress=progress,
                    **_limits(arguments),
                )
        except StoppedError as stop:
            found = stop.analysis
            assert isinstance(found, ScheduleResult)
            stopped.append(name)
        if found.overdue or ((proof or stopped) and not found.proved):
            open_ends.append(name)
        return replace(found, notes=about(source, name)).view(arguments.verbose)

    answer = each_loop(source, arguments.machine, ScheduleResult.SCHEMA, work, deadline)
    answer.stopped = bool(open_ends)
    return answer


def explain(arguments: argparse.Namespace) -> Answer:
    """`stretto explain`."""
    from stretto.api.explaining import ExplainResult
    from stretto.api.explaining import explain as explained
    from stretto.api.reading import about
    from stretto.cli.progress import Progress

    deadline = deadline_after(arguments.time_limit)
    with cut_off(deadline):
        source = read_input(arguments)
    stopped: list[str] = []
    open_ends: list[str] = []

    def work(ready: Prepared) -> ExplanationReport:
        name = ready.loop.name
        if stopped:
            raise StrettoError("not explained, stopped before it", name)
        with Progress(name, arguments.verbose) as progress:
            found = explained(
                ready,
                ii=arguments.ii,
                max_stages=arguments.max_stages,
                fuse=not arguments.no_fuse,
                time_limit=deadline,
                progress=progress,
                **_limits(arguments),
            )
        told = found.explanation
        if told is not None and told.stopped:
            stopped.append(name)
        if told is not None and not told.settled:
            open_ends.append(name)
        return replace(found, notes=about(source, name)).view()

    answer = each_loop(source, arguments.machine, ExplainResult.SCHEMA, work, deadline)
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
