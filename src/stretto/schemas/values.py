"""What documents are made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict


class Where:
    """What a JSON Schema says of a value beside its type, in its own keywords."""

    def __init__(self, **keywords: float | str) -> None:
        self.keywords = keywords


Natural = Annotated[int, Where(minimum=0)]
Positive = Annotated[int, Where(minimum=1)]
Text = Annotated[str, Where(minLength=1)]
"""Of at least one character."""

Unit = Annotated[Literal["cycles", "weights"], "What the machine's durations and latencies are."]


class OnMachine(TypedDict):
    """The machine that an answer is of."""

    machine: str
    machine_why: Annotated[
        str,
        "Why it is this one: as asked, named by the loop, the target of a kernel, or a default.",
    ]
    unit: Unit


RULES: dict[object, dict[str, Any]] = {}
"""What a schema says of a type beside its fields."""
