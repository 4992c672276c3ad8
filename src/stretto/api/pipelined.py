"""`stretto.materialize` and `stretto.simulate`: the program of a schedule, and what it computes.

stretto.materialize(loop, mode="specialized")  ──►  .pipes, .mutexes, .agents, .report()

stretto.simulate(loop, iterations=9)   ──►  schedule ──► program ──► run: .equal, .success
stretto.simulate(loop, schedule)       ────────────────► program ──► run
stretto.simulate(program)              ────────────────────────────► run
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import ClassVar

from stretto.api import Result, fields_of, made_ready
from stretto.api.checking import legal, target_of
from stretto.errors import StrettoError
from stretto.frontends import Source
from stretto.ir import write_program
from stretto.kinds import checked
from stretto.loop import Loop, Note, texts
from stretto.machine import Machine
from stretto.materialization import Mode, Persistent, Program
from stretto.materialization import materialize as program_of
from stretto.report.simulation import SCHEMA, ProgramReport, SimulationReport, summary
from stretto.resources.prepare import Prepared
from stretto.simulation import Domain, Simulation, simulate_program
from stretto.simulation import simulate as run
from stretto.simulation.simulator import STEADY
from stretto.solution import ScheduleAnalysis, counted
from stretto.solve.given import GIVEN


@dataclass(frozen=True, repr=False)
class MaterializeResult(Result, Program):
    """A pipelined loop, ready to run for any trip count."""

    schedule: ScheduleAnalysis = field(kw_only=True)
    """What it was made from."""

    def view(self) -> ProgramReport:
        """What text and JSON are made by."""
        return ProgramReport(self)

    def to_mlir(self) -> str:
        """The program as a module."""
        return write_program(self)

    def line(self) -> str:
        """How many parts it has."""
        return f"Program {summary(self)}"


@checked
def materialize(
    loop: Loop | Prepared | Source,
    schedule: ScheduleAnalysis | str | PathLike[str] | None = None,
    machine: Machine | str | None = None,
    *,
    mode: Mode = "unspecialized",
    agents: Mapping[str, str] | None = None,
    simt_groups: int = 1,
    persistent: Persistent | None = None,
    trust_schedule: bool = False,
) -> MaterializeResult:
    """The pipelined program of a schedule; nothing is searched unless no schedule is given.

    The schedule is what `schedule` returned, or the path of a document; none: a new one is made.
    In mode ``specialized`` each agent has a stream of its own; `agents` gives operations to agents
    by name, and `simt_groups` is how many share the SIMT work. `persistent` is the loop over work
    tiles around it. With `trust_schedule` one that the machine refuses has to keep dependences and
    storages only.
    """
    ready = made_ready(loop, machine or target_of(schedule, loop))
    analysis = legal(ready, schedule, trusted=trust_schedule)
    program = program_of(
        ready.loop,
        ready.machine,
        analysis,
        mode,
        agents=agents,
        simt_groups=simt_groups,
        persistent=persistent,
        trusted=trust_schedule,
    )
    return MaterializeResult(**fields_of(program), problem=ready, schedule=analysis)


@dataclass(frozen=True, repr=False)
class SimulateResult(Result, Simulation):
    """A pipelined program against sequential execution."""

    SCHEMA: ClassVar[str] = SCHEMA

    origin: str = field(default="", kw_only=True)
    """Where its schedule comes from."""
    warnings: tuple[Note, ...] = field(default=(), kw_only=True)

    def view(self) -> SimulationReport:
        """What text and JSON are made by."""
        of, told = self.problem, tuple(texts(self.warnings + self.notes))
        return SimulationReport(self, of.machine, of.machine_why, told, self.origin)

    def line(self) -> str:
        """Equal or not, and what is wrong."""
        run = f"Simulation {self.loop} on {self.machine}, {counted(self.iterations, 'iteration')}"
        verdict = "equal" if self.equal else "not equal"
        wrong = f", {counted(len(self.violations), 'violation')}" if self.violations else ""
        return f"{run}: {verdict} to sequential execution{wrong}"


@checked
def simulate(
    loop: Loop | Prepared | Source | Program,
    schedule: ScheduleAnalysis | str | PathLike[str] | None = None,
    machine: Machine | str | None = None,
    *,
    iterations: int | None = None,
    mode: Mode = "unspecialized",
    agents: Mapping[str, str] | None = None,
    max_stages: int | None = None,
    domain: Domain | None = None,
    origin: str = "",
    trust_schedule: bool = False,
) -> SimulateResult:
    """Run the pipelined program of a loop cycle by cycle, and compare it with the loop.

    The schedule is what `schedule` returned, or the path of a document, and must be legal; none: a
    new one is made. A program, as `materialize` returns it, runs as it is. Iterations default to
    enough for a steady state; values are symbolic unless another `domain` is given. `origin` says
    in the report where the schedule comes from. With `trust_schedule` one that the machine refuses
    has to keep dependences and storages only, and what operations hold is not looked at.
    """
    if isinstance(loop, Program):
        if schedule is not None:
            raise StrettoError("a program runs as it is, by no other schedule", loop.loop.name)
        return _as_it_is(loop, machine, iterations, domain, origin)
    ready = made_ready(loop, machine or target_of(schedule, loop))
    if schedule is not None:
        origin = origin or GIVEN
    analysis = legal(ready, schedule, origin, max_stages, trusted=trust_schedule)
    found = run(
        ready.loop,
        ready.machine,
        analysis,
        iterations,
        mode,
        agents=agents,
        domain=domain,
        trusted=trust_schedule,
    )
    origin = origin or f"a new one by the {analysis.generator} generator"
    warnings = analysis.warnings
    return SimulateResult(**fields_of(found), problem=ready, origin=origin, warnings=warnings)


def _as_it_is(
    program: Program,
    machine: Machine | str | None,
    iterations: int | None,
    domain: Domain | None,
    origin: str,
) -> SimulateResult:
    if machine is None and isinstance(program, MaterializeResult):
        machine = program.problem.machine
    ready = made_ready(program.loop, machine or program.machine)
    if iterations is None:
        iterations = program.stage_count + STEADY
    found = simulate_program(program, ready.machine, program.starts, iterations, domain)
    origin = origin or "that of the program"
    return SimulateResult(**fields_of(found), problem=ready, origin=origin, warnings=ready.notes)
