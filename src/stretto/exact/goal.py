"""What is minimized once the II is known: the type of an objective.

    Goal("bytes", rank 20, value, floor, expression)
         value        what a schedule has of it, by the definitions     no solver needed
         floor        what no schedule at an II is below                no solver needed
         expression   what the solver is to minimize

A schedule that meets the floor is proved without asking the solver. Each file of `objectives/` has
one of these; how they follow one another is told there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from stretto.exact.case import Case, Solution
    from stretto.exact.model import Model
    from stretto.solution import Schedule

SHARE = 0.25
"""Of the work that is left, what one II or one objective may take."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A value that is the largest of many, one an operation, few of which are ever near it.

    The solver is then asked for no more than a number, in the parts that were too large before.
    """

    keep: Callable[[Model, int, Sequence[int]], None]
    """Holds a model to at most a value in some parts."""
    worst: Callable[[Case, Solution], int]
    """The largest part of a schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One objective; `stretto.solution.Objective` is what became of it."""

    name: str
    """As users name it."""
    rank: int
    """Its place in the order: each is minimized with those of lower rank held."""
    unit: tuple[str, str]
    """Of its values: of one, and of any other number."""
    value: Callable[[Case, Schedule], int]
    """By the definitions, not by the model."""
    floor: Callable[[Case, int], int]
    """What no schedule at this II is below."""
    expression: Callable[[Model, int], cp_model.LinearExprT]
    """What the solver minimizes, with what it needs added to the model; the second argument is a
    value that is met already, which the expression may be held to."""
    counts_stages: bool = False
    """Whether its value is a stage count, which a model keeps to from the first."""
    late: bool = True
    """Whether a better value may ask for later stages than any rule does (horizon.py). False makes
    smaller models, and wants an argument."""
    share: float = SHARE
    """Of the work that is left, what the solver may take."""
    parts: Parts | None = None
    """Where the value is the largest of many: how to ask about few of them."""

    def count(self, value: int) -> str:
        """A value with its unit."""
        return f"{value:,} {self.unit[value != 1]}"
