"""Lower bounds of loops."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stretto.schemas.assignment import RefusedLoop
from stretto.schemas.values import Natural, OnMachine, Positive, Text, Where


class WitnessPart(TypedDict):
    """`loop.bounds.witness.part` of a bounds document."""

    ops: Annotated[list[str], Where(minItems=1)]
    amount: Natural
    distance: int


class Witness(TypedDict):
    """`loop.bounds.witness` of a bounds document."""

    kind: Literal["slot", "cycle", "pool", "depth", "group", "none"]
    limit: str
    slot_id: NotRequired[Positive]
    total: Natural
    capacity: Positive
    bound: Positive
    parts: list[WitnessPart]


class BoundWitnesses(TypedDict):
    """`loop.bounds.witnesses` of a bounds document."""

    resource: Witness
    recurrence: Witness
    fine: Witness
    dependence: Witness
    group: Witness


class LoopBounds(TypedDict):
    """`loop.bounds` of a bounds document."""

    resource: Positive
    recurrence: Positive
    fine: Positive
    dependence: Positive
    group: Positive
    mii: Positive
    limiter: Literal["resource", "recurrence", "fine", "dependence", "group"]
    witness: Witness
    witnesses: BoundWitnesses


class Remedy(TypedDict):
    """`loop.remedy` of a bounds document."""

    change: Annotated[Text, "In words."]
    mii: Annotated[Positive, "The MII after it, in cycles."]
    kind: Literal["search", "depth", "group", "duration", "latency", "distance", "capacity", "cap"]
    effort: Annotated[
        Positive,
        "1: another option; 2: a limit of your own; 3: a shorter operation; 4: "
        "another order of computation; 5: other hardware.",
    ]
    hardware: Annotated[bool, "Whether it asks for another GPU."]
    target: Annotated[Text, "The slots, the pool, the operation or the dependence that changes."]
    before: Natural
    after: Natural
    unit: Literal["cycles", "weights", "units", "iterations", "stages", "groups"]
    ops: list[Text]
    next: Annotated[str, 'What limits the II then; "": nothing.']


class BoundedLoop(OnMachine):
    """`loop` of a bounds document."""

    name: str
    success: bool
    bounds: LoopBounds
    remedies: list[Remedy]
    ties: Annotated[list[str], "Where no remedy helps: everything that asks for this II on its own"]
    warnings: list[str]


class BoundsDocument(TypedDict):
    """Lower bounds of loops, as `stretto bounds --json` prints them."""

    schema: Literal["stretto.bounds/1"]
    success: bool
    loops: list[RefusedLoop | BoundedLoop]
