"""`stretto simulate`: loops are scheduled, materialized and run; programs in a module just run.

scf.for ...                         ──►  schedule ──► program ──► run beside the loop
async.pipeline.program ...          ──────────────►  program ──► run beside its loop
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from stretto.cli.answer import Answer, each_loop
from stretto.cli.inputs import about, chosen, is_mlir, read_loops
from stretto.errors import DocumentError, StrettoError
from stretto.files import read_text

if TYPE_CHECKING:
    from stretto.api import Prepared

PROGRAM = "nv_tileas.async.pipeline.program"
"""What a materialized loop is in a module."""


def simulate(arguments: argparse.Namespace) -> Answer:
    """`stretto simulate`."""
    from stretto.api import schedule_prepared
    from stretto.cli.progress import Progress
    from stretto.generate.problem import Options
    from stretto.report.simulation import SCHEMA, SimulationReport
    from stretto.simulate import simulate as run

    file, text = read_text(arguments.input)
    if is_mlir(text) and PROGRAM in text:
        return _run_programs(arguments, file, text)
    source = chosen(read_loops(file, text, arguments.machine), arguments.loop)
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


def _run_programs(arguments: argparse.Namespace, file: str, text: str) -> Answer:
    """Programs as they stand in a module, edited by hand or not."""
    from stretto.frontends import Source
    from stretto.ir import read_programs
    from stretto.ir.programs import starts_of
    from stretto.machine import load_machine
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
        return SimulationReport(simulation, ready.notes)

    machines = {name: load_machine(program.machine) for name, program in programs.items()}
    return each_loop(chosen(source, arguments.loop), machines, SCHEMA, work)
