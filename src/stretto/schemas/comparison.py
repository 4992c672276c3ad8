"""Two schedules side by side."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stretto.schemas.values import OnMachine


class Side(OnMachine):
    """`loop.a` of a comparison document."""

    name: str
    success: bool
    generator: str
    optimal: bool
    errors: list[str]


class ComparisonRow(TypedDict):
    """`loop.row` of a comparison document."""

    what: str
    unit: str
    a: float | None
    b: float | None
    change: float | None


class MovedPlace(TypedDict):
    """`loop.moved.a` of a comparison document."""

    start: NotRequired[int]
    stage: NotRequired[int]
    cycle: NotRequired[int]


class MovedOp(TypedDict):
    """`loop.moved` of a comparison document."""

    op: str
    a: MovedPlace | None
    b: MovedPlace | None


class ComparedLoop(TypedDict):
    """`loop` of a comparison document."""

    name: str
    success: Annotated[bool, "Whether both sides have a schedule."]
    a: Side
    b: Side
    rows: list[ComparisonRow]
    moved: Annotated[
        list[MovedOp], "Operations that are placed differently, or are on one side alone."
    ]


class ComparisonDocument(TypedDict):
    """Two schedules side by side, as `stretto compare --json` prints them."""

    schema: Literal["stretto.comparison/1"]
    success: bool
    loops: list[ComparedLoop]
