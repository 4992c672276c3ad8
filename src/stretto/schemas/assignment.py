"""Agents of loops with their schedules."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from stretto.schemas.values import Natural, Where


class RefusedLoop(TypedDict):
    """A loop of which there is no answer, and why."""

    name: str
    success: Literal[False]
    errors: Annotated[list[str], Where(minItems=1)]


class AssignedGroup(TypedDict):
    """`loop.group` of a assignment document."""

    name: str
    registers: Natural | None
    held: Annotated[Natural, "Cycles an iteration that its issue slot is held"]
    ops: list[str]


class AgentResources(TypedDict):
    """What a checker has to know of the machine."""

    slots: Annotated[dict[str, Natural | None], "Capacity of each slot; null: any"]
    bytes: Annotated[dict[str, Natural | None], "Of each memory; null: any"]
    registers: Annotated[
        dict[str, Natural | None], "Bytes for tiles in the registers of each warpgroup; null: any"
    ]


HandOver = TypedDict(
    "HandOver",
    {"tile": str, "bytes": Natural, "from": str, "to": list[str]},
)
"""`loop.handed` of a assignment document."""


class SearchEffort(TypedDict):
    """What one search of assignments came to."""

    groups: Natural
    registers: Natural | None
    lower: Natural
    ii: Natural | None
    scheduled: Natural
    complete: Annotated[
        bool, "Whether it is proved that no choice of so many is better than the answer"
    ]


class AssignedLoop(TypedDict):
    """A loop whose agents were chosen."""

    name: str
    machine: str
    success: Literal[True]
    ii: Natural
    lower: Annotated[Natural, "No choice of agents has a smaller II"]
    optimal: Annotated[bool, "Whether no choice of agents and no schedule is shorter"]
    groups: Annotated[list[AssignedGroup], "Warpgroups that do arithmetic"]
    resources: AgentResources
    handed: Annotated[list[HandOver], "Tiles that go from one warpgroup to another"]
    searches: Annotated[list[SearchEffort], "What was done for each number of warpgroups"]
    loop: Annotated[dict[str, Any], "The loop with its agents and hand-overs: stretto.loop/1"]
    schedule: Annotated[dict[str, Any], "An entry of stretto.schedule/1"]
    warnings: list[str]
    seconds: Annotated[
        Annotated[float, Where(minimum=0)], "The one field that may differ between runs"
    ]


class AssignmentDocument(TypedDict):
    """Agents of loops with their schedules, as `stretto assign --json` prints them."""

    schema: Literal["stretto.assignment/1"]
    success: bool
    loops: list[RefusedLoop | AssignedLoop]
