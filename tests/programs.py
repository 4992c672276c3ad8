"""Loops that are ready to be materialized: the examples, scheduled, and small ones by hand."""

from __future__ import annotations

import runpy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import stretto
from stretto import Loop, Machine, ScheduleAnalysis, build, prepare
from stretto.loop import Use
from stretto.machine import Budget, Slot
from stretto.materialization import Mode, Program, materialize
from stretto.solution import Schedule
from stretto.solution.views import analyse

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Ready:
    """A loop with its machine and a schedule."""

    loop: Loop
    machine: Machine
    analysis: ScheduleAnalysis
    agents: dict[str, str] = field(default_factory=dict[str, str])

    def program(self, mode: Mode = "specialized") -> Program:
        agents = self.agents if mode == "specialized" else None
        return materialize(self.loop, self.machine, self.analysis, mode, agents=agents)


@cache
def ready(name: str) -> Ready:
    """An example, scheduled."""
    loop: Loop = runpy.run_path(str(EXAMPLES / f"{name}.py"))["make"]()
    prepared = prepare(loop)
    return Ready(prepared.loop, prepared.machine, stretto.schedule(loop))


TINY = Machine(
    "tiny",
    "two units",
    (Slot(1, "a", 1), Slot(2, "b", 1)),
    budgets=(Budget("smem", 64),),
)


def placed(loop: Loop, ii: int, starts: dict[str, int], **agents: str) -> Ready:
    """A loop on the tiny machine with a schedule by hand."""
    prepared = prepare(loop, TINY)
    analysis = analyse(prepared.loop, prepared.machine, Schedule(ii, starts))
    return Ready(prepared.loop, prepared.machine, analysis, agents)


def two_agents() -> Ready:
    """Two operations that share nothing but a stated order."""
    loop = build("two")
    loop.op("first", "x", uses=[Use("a", 2)], latency=2)
    loop.op("second", "y", uses=[Use("b", 2)], latency=2)
    loop.depends("first", "second", 2)
    return placed(loop.finish(), 4, {"first": 0, "second": 2}, first="one", second="other")


def guarded() -> Ready:
    """Two agents that write one copy of a storage in turn, with no value between them."""
    loop = build("guarded")
    box = loop.storage("box", "smem", 8, fixed=True)
    loop.op("fill", "x", uses=[Use("a", 2)], latency=2, into=box)
    loop.op("clear", "y", uses=[Use("b", 2)], latency=2, into=box)
    return placed(loop.finish(), 6, {"fill": 0, "clear": 2}, fill="one", clear="other")
