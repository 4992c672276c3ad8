"""Verdicts on schedules."""

from __future__ import annotations

from typing import Literal, TypedDict

from stretto.schemas.assignment import RefusedLoop
from stretto.schemas.values import OnMachine


class RuleViolation(TypedDict):
    """`loop.violation` of a verification document."""

    rule: Literal[
        "dependence",
        "slot",
        "pool",
        "depth",
        "group",
        "storage",
        "registers",
        "fusion",
        "pin",
        "order",
    ]
    message: str
    ops: list[str]
    detail: dict[str, int | str]


class VerifiedLoop(OnMachine):
    """`loop` of a verification document."""

    name: str
    success: bool
    ii: int | None
    legal: bool
    violations: list[RuleViolation]
    warnings: list[str]


class VerificationDocument(TypedDict):
    """Verdicts on schedules, as `stretto verify --json` prints them."""

    schema: Literal["stretto.verification/1"]
    success: bool
    loops: list[RefusedLoop | VerifiedLoop]
