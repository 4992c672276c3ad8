"""Runs of pipelined programs, and of whole kernels."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stretto.schemas.assignment import RefusedLoop
from stretto.schemas.values import Natural, OnMachine, Positive, Where


class SpaceTaken(TypedDict):
    """`memory` of a kernel-simulation document."""

    space: str
    rings: Natural
    barriers: Natural
    budget: int | None


class KernelViolation(TypedDict):
    """`violation` of a kernel-simulation document."""

    name: str
    message: str


class EmittedRun(TypedDict):
    """Of mode emitted: the program that was run."""

    machine: str
    agents: Annotated[dict[str, int], "warps"]
    rings: Annotated[dict[str, int], "slots"]
    runs: int
    events: Annotated[int, "accesses, waits and arrivals, by clocks"]
    trips_by_clocks: list[int]
    trips_on_values: list[int]


class KernelSimulationDocument(TypedDict):
    """A whole kernel, run on real values."""

    schema: Literal["stretto.kernel-simulation/1"]
    success: Annotated[bool, "equal, and nothing wrong with the programs"]
    kernel: str
    mode: Literal["sequential", "unspecialized", "specialized", "emitted"]
    grid: Annotated[list[Positive], Where(maxItems=3)]
    equal: Annotated[
        bool | None, "whether both runs left the same numbers; null: no numbers were given"
    ]
    iterations: Annotated[dict[str, Natural], "by loop, in all blocks together"]
    memory: Annotated[
        dict[str, list[SpaceTaken]], "by loop, bytes of each space that its program takes"
    ]
    violations: list[KernelViolation]
    arrays: Annotated[dict[str, list[Natural]], "their shapes"]
    notes: list[str]
    program: NotRequired[EmittedRun]


class WaitingOp(TypedDict):
    """`loop.waiting` of a simulation document."""

    agent: str
    op: str
    iteration: int
    what: str
    agents: list[str]


class LoopViolation(TypedDict):
    """`loop.violation` of a simulation document."""

    name: Literal[
        "unwritten",
        "overwritten",
        "unordered",
        "stall",
        "early",
        "overbooked",
        "deadlock",
        "value",
        "pace",
        "prologue",
        "epilogue",
    ]
    message: str
    ops: list[str]
    cycle: int | None
    times: Positive


class TimelineRow(TypedDict):
    """`loop.timeline` of a simulation document."""

    op: str
    iteration: int
    cycle: Natural
    agent: str


class SimulatedLoop(OnMachine):
    """`loop` of a simulation document."""

    name: str
    success: bool
    mode: Literal["unspecialized", "specialized"]
    iterations: Natural
    equal: bool
    deadlock: bool
    waiting: list[WaitingOp]
    ii: Positive
    schedule: Annotated[str, "Where the schedule comes from; empty: not known"]
    stage_count: Positive
    cycles_per_iteration: Annotated[int | None, "null: it never came to a steady state."]
    prologue_cycles: Annotated[int | None, "null: the pipeline was never full."]
    epilogue_cycles: int
    memory: list[SpaceTaken]
    violations: list[LoopViolation]
    timeline: list[TimelineRow]
    warnings: list[str]


class SimulationDocument(TypedDict):
    """What pipelined programs did, as `stretto simulate --json` prints it."""

    schema: Literal["stretto.simulation/1"]
    success: bool
    loops: list[RefusedLoop | SimulatedLoop]
