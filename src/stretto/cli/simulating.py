"""`stretto simulate`: loops are materialized and run; programs in a module just run.

scf.for ...                         ──►  schedule ──► program ──► run beside the loop
scf.for ... {nv_tile.aws.start}     ──►  the schedule that is there ──► program ──► run
INPUT SCHEDULE                      ──►  the one of that document ──► program ──► run
async.pipeline.program ...          ──────────────►  program ──► run beside its loop
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from stretto.cli.answer import Answer, each_loop
from stretto.errors import DocumentError, StrettoError
from stretto.files import read_text

if TYPE_CHECKING:
    from stretto.api.scheduling import ScheduleResult
    from stretto.frontends import Source
    from stretto.ir.passes.schedules import PublishedLoop
    from stretto.machine import Machine
    from stretto.report.simulation import SimulationReport
    from stretto.resources.prepare import Prepared
    from stretto.solution import ScheduleAnalysis

PROGRAM = "nv_tileas.async.pipeline.program"
"""What a materialized loop is in a module."""
IN_MODULE = "the one in the module"


def simulate(arguments: argparse.Namespace) -> Answer:
    """`stretto simulate`."""
    from stretto.api.given import read_document
    from stretto.api.reading import about, chosen, is_mlir, read_loops
    from stretto.api.simulating import SimulateResult
    from stretto.api.simulating import simulate as run

    file, text = read_text(arguments.input)
    if is_mlir(text) and PROGRAM in text:
        return _run_programs(arguments, file, text)
    whole = read_loops(file, text, arguments.machine)
    given = None if arguments.schedule is None else read_document(arguments.schedule, whole)
    standing: Mapping[str, PublishedLoop] = {}
    if given is None and arguments.generator is None and is_mlir(text):
        standing = _standing(file, text, arguments.machine)
    source = chosen(_as_scheduled(whole, standing), arguments.loop)

    def work(ready: Prepared) -> SimulationReport:
        name, origin = ready.loop.name, ""
        schedule: ScheduleAnalysis | None = None
        if given is not None:
            schedule, origin = given.of(ready.loop), f"the one of {given.file}"
        elif name in standing:
            schedule, origin = standing[name].analysis, IN_MODULE
        else:
            schedule = _made(arguments, ready)
            origin = f"a new one by the {schedule.generator} generator"
        found = run(
            ready,
            schedule,
            iterations=arguments.iterations,
            mode=arguments.mode,
            max_stages=arguments.max_stages,
            origin=origin,
        )
        return replace(found, notes=about(source.notes, name)).view()

    machines: str | Mapping[str, Machine] | None = arguments.machine
    if machines is None:
        machines = {name: item.machine for name, item in standing.items()}
    return each_loop(source, machines, SimulateResult.SCHEMA, work)


def _standing(file: str, text: str, machine: str | None) -> dict[str, PublishedLoop]:
    """The loops of a module on which a schedule stands, by name."""
    from stretto.ir import read_schedules
    from stretto.machine import load_machine

    target = None if machine is None else load_machine(machine)
    found = read_schedules(file, text, target)
    return {item.loop.name: item for item in found if item.analysis is not None}


def _as_scheduled(source: Source, standing: Mapping[str, PublishedLoop]) -> Source:
    """The loops as they are on the machines their schedules are for."""
    loops = tuple(
        replace(standing[loop.name].loop, machine=None) if loop.name in standing else loop
        for loop in source.loops
    )
    return replace(source, loops=loops)


def _made(arguments: argparse.Namespace, ready: Prepared) -> ScheduleResult:
    """A schedule of our own."""
    from stretto.api.scheduling import schedule
    from stretto.cli.progress import Progress

    with Progress(ready.loop.name, arguments.verbose) as progress:
        found = schedule(
            ready,
            generator=arguments.generator or "auto",
            max_stages=arguments.max_stages,
            fuse=not arguments.no_fuse,
            progress=progress,
        )
    if not found.success:
        raise StrettoError(f"{ready.loop.name}: no schedule was found, so there is nothing to run")
    return found


def _run_programs(arguments: argparse.Namespace, file: str, text: str) -> Answer:
    """Programs as they stand in a module, edited by hand or not."""
    if arguments.schedule is not None:
        hint = "the program of each loop is run as it is; leave SCHEDULE out"
        raise DocumentError(file, "", "has programs, not loops to schedule", hint)
    from stretto.api.reading import chosen
    from stretto.api.simulating import SimulateResult
    from stretto.api.simulating import simulate as run
    from stretto.frontends import Source
    from stretto.ir import read_programs
    from stretto.machine import load_machine, machine_beside

    programs = {program.loop.name: program for program in read_programs(file, text)}
    if not programs:
        raise DocumentError(file, "", f"has no {PROGRAM}")
    source = Source(file, tuple(program.loop for program in programs.values()))

    def work(ready: Prepared) -> SimulationReport:
        program = programs[ready.loop.name]
        origin = "that of the program in the module"
        found = run(program, machine=ready.machine, iterations=arguments.iterations, origin=origin)
        return found.view()

    machines = {
        name: load_machine(arguments.machine or machine_beside(file, program.machine))
        for name, program in programs.items()
    }
    return each_loop(chosen(source, arguments.loop), machines, SimulateResult.SCHEMA, work)
