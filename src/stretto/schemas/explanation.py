"""Why no smaller II."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stretto.schemas.assignment import RefusedLoop
from stretto.schemas.values import Natural, OnMachine, Positive, Where


class BestInterval(TypedDict):
    """The smallest II that is known to be possible."""

    ii: Positive | None
    optimal: bool
    lower_bound: Positive | None


class Reason(TypedDict):
    """`loop.reason` of a explanation document."""

    kind: Literal[
        "dependence",
        "slot",
        "pool",
        "depth",
        "stages",
        "group",
        "storage",
        "registers",
        "ring",
        "pin",
    ]
    text: str
    name: NotRequired[Annotated[str, "The slot, pool, memory space, agent or operation"]]
    slot_id: NotRequired[int]
    src: NotRequired[str]
    dst: NotRequired[str]
    latency: NotRequired[int]
    distance: NotRequired[Natural]
    dependence: NotRequired[Literal["flow", "anti", "output", "memory", "order"]]
    via: NotRequired[str]
    ops: NotRequired[list[str]]
    offsets: NotRequired[
        Annotated[list[Natural], "Stages that each of the group stands behind those of offset 0"]
    ]


class Relaxation(TypedDict):
    """`loop.relaxation` of a explanation document."""

    kind: str
    change: str
    ii: Positive
    optimal: bool
    hardware: Annotated[bool, "Whether it asks for another GPU."]


class ExplainedLoop(OnMachine):
    """`loop` of a explanation document."""

    name: str
    success: bool
    best: BestInterval
    ii: Annotated[Positive | None, "The II asked about; null where the best is 1"]
    verdict: Literal["impossible", "possible", "undecided", "none"]
    minimal: Annotated[bool, "Whether dropping any one reason is proved to make it possible"]
    reasons: list[Reason]
    relaxations: Annotated[
        list[Relaxation],
        "Single changes, each with the II that a verified schedule then has; those of other "
        "hardware last",
    ]
    complete: Annotated[bool, "Whether every change was tried before a limit was reached"]
    warnings: list[str]
    seconds: Annotated[float, Where(minimum=0)]


class ExplanationDocument(TypedDict):
    """Why not a smaller II, as `stretto explain --json` prints it."""

    schema: Literal["stretto.explanation/1"]
    success: bool
    loops: list[RefusedLoop | ExplainedLoop]
