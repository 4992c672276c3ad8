"""The fewest stages: the depth of prologue and epilogue.

value        max start // II + 1
floor        longest path of dependences // II + 1
expression   K, where K × II - 1 >= start[i] - origin for all i
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.exact.goal import Goal

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from stretto.exact.case import Case
    from stretto.exact.model import Model
    from stretto.solution import Schedule


def _value(_: Case, schedule: Schedule) -> int:
    from stretto.solution.views import stage_count

    return stage_count(schedule.ii, schedule.starts.values())


def _floor(case: Case, ii: int) -> int:
    from stretto.lower_bounds.distances import earliest_starts

    return max(earliest_starts(case.loop, ii).values()) // ii + 1


def _expression(model: Model, most: int) -> cp_model.IntVar:
    count = model.cp.new_int_var(1, most, "stages")
    for start in model.start:
        model.cp.add(start - model.origin <= count * model.ii - 1)
    return count


GOAL = Goal(
    name="stages",
    rank=10,
    unit=("stage", "stages"),
    value=_value,
    floor=_floor,
    expression=_expression,
    counts_stages=True,
    late=False,  # a limit on the stage count is a depth limit of all: horizon.py
)
