"""What every result of the front door can do: say itself in a line, as text and as JSON.

    >>> stretto.schedule(gemm)
    <ScheduleAnalysis gemm on b200-pipes: II 256, 3 stages, optimal>

`report()` is what the command line prints, `to_json()` an entry of what it prints with `--json`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class View(Protocol):
    """A result as the report layer shows it."""

    def to_json(self) -> dict[str, Any]:
        """As an entry of `loops` in a document."""
        ...

    def to_text(self) -> list[str]:
        """For people."""
        ...


class Result(ABC):
    """The root of all results: each has its view and its line."""

    SCHEMA: ClassVar[str] = ""
    """Of a document of such results; "": it is none."""

    @abstractmethod
    def view(self) -> View:
        """What text and JSON are made by."""

    @abstractmethod
    def line(self) -> str:
        """All of it in a few words."""

    def to_json(self) -> dict[str, Any]:
        """One entry of `loops` in a document."""
        return self.view().to_json()

    def report(self) -> str:
        """Text for people, as the command line prints it."""
        return "\n".join(self.view().to_text())

    def __repr__(self) -> str:
        return f"<{self.line()}>"


def fields_of(found: DataclassInstance) -> dict[str, Any]:
    """What a result of a layer below has, to make one of the front door of."""
    return {field.name: getattr(found, field.name) for field in fields(found)}
