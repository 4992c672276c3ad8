"""Remarks of stretto-opt."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from stretto.schemas.values import Positive


class Place(TypedDict):
    """`remark.location` of a remarks document."""

    file: str
    line: Positive
    column: Positive


Remark = TypedDict(
    "Remark",
    {
        "kind": Literal["Passed", "Missed", "Failure"],
        "pass": str,
        "name": Literal[
            "Scheduled", "LeftAlone", "Refused", "Legal", "Illegal", "Materialized", "Trusted"
        ],
        "location": Place | None,
        "function": Annotated[str, "empty outside functions"],
        "loop": str,
        "message": str,
        "arguments": Annotated[dict[str, int | str], "the numbers of the message, by name"],
    },
)
"""`remark` of a remarks document."""


class RemarksDocument(TypedDict):
    """What became of every loop in every pass, and why."""

    schema: Literal["stretto.remarks/1"]
    remarks: list[Remark]
