"""The initiation interval, which comes before all else.

MII ✗ ✗ ✗ ✓      the search climbs from II to II (search.py), so a model has its II given
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.exact import II
from stretto.exact.goal import Goal

if TYPE_CHECKING:
    from stretto.exact.case import Case
    from stretto.exact.model import Model
    from stretto.solution import Schedule


def _value(_: Case, schedule: Schedule) -> int:
    return schedule.ii


def _floor(_: Case, __: int) -> int:
    """What the bounds say is known to the search."""
    return 1


def _expression(model: Model, _: int) -> int:
    return model.ii


GOAL = Goal(
    name=II,
    rank=0,
    unit=("cycle", "cycles"),
    value=_value,
    floor=_floor,
    expression=_expression,
)
