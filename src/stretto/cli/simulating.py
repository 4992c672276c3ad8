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
from stretto.cli.given import read_document
from stretto.cli.inputs import about, chosen, is_mlir, read_loops
from stretto.errors import DocumentError, StrettoError
from stretto.files import read_text

if TYPE_CHECKING:
    from stretto.frontends import Source
    from stretto.ir.passes.schedules import PublishedLoop
    from stretto.machine import Machine
    from stretto.solution import ScheduleAnalysis
    from stretto.solve import Prepared

PROGRAM = "nv_tileas.async.pipeline.program"
"""What a materialized loop is in a module."""
IN_MODULE = "the one in the module"


def simulate(arguments: argparse.Namespace) -> Answer:
    """`stretto simulate`."""
    from stretto.report.simulation import SCHEMA, SimulationReport
    from stretto.simulate import simulate as run

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
        loop = ready.loop
        if given is not None:
            origin = f"the one of {given.file}"
            analysis = _checked(arguments, ready, given.of(loop), origin)
        elif loop.name in standing:
            analysis = _checked(arguments, ready, standing[loop.name].analysis, IN_MODULE)
            origin = IN_MODULE
        else:
            analysis = _made(arguments, ready)
            origin = f"a new one by the {analysis.generator} generator"
        simulation = run(loop, ready.machine, analysis, arguments.iterations, arguments.mode)
        warnings = analysis.warnings + about(source.notes, loop.name)
        return SimulationReport(simulation, warnings, origin)

    machines: str | Mapping[str, Machine] | None = arguments.machine
    if machines is None:
        machines = {name: item.machine for name, item in standing.items()}
    return each_loop(source, machines, SCHEMA, work)


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


def _checked(
    arguments: argparse.Namespace, ready: Prepared, given: ScheduleAnalysis | None, origin: str
) -> ScheduleAnalysis:
    """A schedule from elsewhere, if it is legal; its numbers are worked out anew."""
    from stretto.solution.views import analyse
    from stretto.verify import verify

    loop = ready.loop
    if given is None or not given.success or given.ii is None:
        raise StrettoError(f"{loop.name}: {origin} says that no schedule was found: none to run")
    violations = verify(loop, ready.machine, given, max_stages=arguments.max_stages)
    if violations:
        count = f"{len(violations)} violation{'' if len(violations) == 1 else 's'}"
        told = "".join(f"\n  {v.rule}: {v.message}" for v in violations)
        raise StrettoError(f"{loop.name}: the schedule, {origin}, is not legal, {count}{told}")
    return analyse(
        loop,
        ready.machine,
        given.schedule,
        generator=given.generator,
        rule=given.rule,
        warnings=ready.notes[len(ready.machine.notes) :],
    )


def _made(arguments: argparse.Namespace, ready: Prepared) -> ScheduleAnalysis:
    """A schedule of our own."""
    from stretto.cli.progress import Progress
    from stretto.generate.problem import Options
    from stretto.solve import schedule_prepared

    options = Options(max_stages=arguments.max_stages, fuse=not arguments.no_fuse)
    with Progress(ready.loop.name, arguments.verbose) as progress:
        analysis = schedule_prepared(ready, arguments.generator or "auto", options, progress)
    if not analysis.success:
        raise StrettoError(f"{ready.loop.name}: no schedule was found, so there is nothing to run")
    return analysis


def _run_programs(arguments: argparse.Namespace, file: str, text: str) -> Answer:
    """Programs as they stand in a module, edited by hand or not."""
    if arguments.schedule is not None:
        hint = "the program of each loop is run as it is; leave SCHEDULE out"
        raise DocumentError(file, "", "has programs, not loops to schedule", hint)
    from stretto.frontends import Source
    from stretto.ir import read_programs
    from stretto.ir.programs import starts_of
    from stretto.machine import load_machine, machine_beside
    from stretto.report.simulation import SCHEMA, SimulationReport
    from stretto.simulate import simulate_program
    from stretto.simulate.simulator import STEADY

    programs = {program.loop.name: program for program in read_programs(file, text)}
    if not programs:
        raise DocumentError(file, "", f"has no {PROGRAM}")
    source = Source(file, tuple(program.loop for program in programs.values()))

    def work(ready: Prepared) -> SimulationReport:
        program = programs[ready.loop.name]
        trips = arguments.iterations
        if trips is None:
            trips = program.stage_count + STEADY
        simulation = simulate_program(program, ready.machine, starts_of(program), trips)
        return SimulationReport(simulation, ready.notes, "that of the program in the module")

    machines = {
        name: load_machine(arguments.machine or machine_beside(file, program.machine))
        for name, program in programs.items()
    }
    return each_loop(chosen(source, arguments.loop), machines, SCHEMA, work)
