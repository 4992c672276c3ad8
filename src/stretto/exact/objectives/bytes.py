"""The fewest bytes of all memory outside registers.

value        Σ bytes × ring
floor        Σ bytes: every ring has one copy at least
expression   Σ bytes × ring, over the rings of the model
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.exact.goal import Goal

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from stretto.exact.case import Case
    from stretto.exact.model import Model
    from stretto.solution import Schedule


def _value(case: Case, schedule: Schedule) -> int:
    from stretto.solution.views import memory, storage_uses

    uses = storage_uses(case.loop, schedule.ii, schedule.starts)
    return sum(row.used for row in memory(case.machine, uses))


def _floor(case: Case, _: int) -> int:
    once = sum(ring.bytes for ring in case.problem.rotating)
    return once + sum(case.problem.rooms.single_bytes.values())


def _expression(model: Model, _: int) -> cp_model.LinearExprT:
    from stretto.exact.cp import total

    sizes = [ring.bytes * model.rings[ring.name] for ring in model.case.problem.rotating]
    return total(sizes) + sum(model.case.problem.rooms.single_bytes.values())


GOAL = Goal(
    name="bytes",
    rank=20,
    unit=("byte", "bytes"),
    value=_value,
    floor=_floor,
    expression=_expression,
    late=False,  # some schedule of the same depths of rings is the least one: horizon.py
)
