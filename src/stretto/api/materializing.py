"""`stretto.materialize`: from a schedule to a program of pipes, mutexes and agents.

stretto.materialize(loop, mode="specialized")  ──►  .pipes, .mutexes, .agents, .report()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike

from stretto.api.given import legal, target_of
from stretto.api.problem import made_ready
from stretto.api.results import Result, fields_of
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.materialize import Mode, Persistent, Program
from stretto.materialize import materialize as program_of
from stretto.report.simulation import ProgramReport, summary
from stretto.resources.prepare import Prepared
from stretto.solution import ScheduleAnalysis


@dataclass(frozen=True, repr=False)
class MaterializeResult(Result, Program):
    """A pipelined loop, ready to run for any trip count."""

    problem: Prepared = field(kw_only=True)
    schedule: ScheduleAnalysis = field(kw_only=True)
    """What it was made from."""

    def view(self) -> ProgramReport:
        """What text and JSON are made by."""
        return ProgramReport(self)

    def line(self) -> str:
        """How many parts it has."""
        return f"Program {summary(self)}"


def materialize(
    loop: Loop | Prepared,
    schedule: ScheduleAnalysis | str | PathLike[str] | None = None,
    machine: Machine | str | None = None,
    *,
    mode: Mode = "unspecialized",
    agents: Mapping[str, str] | None = None,
    simt_groups: int = 1,
    persistent: Persistent | None = None,
) -> MaterializeResult:
    """The pipelined program of a schedule; nothing is searched unless no schedule is given.

    The schedule is what `schedule` returned, or the path of a document; none: a new one is made.
    In mode ``specialized`` each agent has a stream of its own; `agents` gives operations to agents
    by name, and `simt_groups` is how many share the SIMT work. `persistent` is the loop over work
    tiles around it.
    """
    ready = made_ready(loop, machine or target_of(schedule, loop))
    analysis = legal(ready, schedule)
    program = program_of(
        ready.loop,
        ready.machine,
        analysis,
        mode,
        agents=agents,
        simt_groups=simt_groups,
        persistent=persistent,
    )
    return MaterializeResult(**fields_of(program), problem=ready, schedule=analysis)
