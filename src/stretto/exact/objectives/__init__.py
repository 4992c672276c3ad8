"""The objectives, in the order in which they are minimized: one file each.

    ii ─► stages ─► bytes ─► registers      each minimized with those before it held

A file here that has a `GOAL` adds an objective, in its place by rank: the command line, the search
and the reports ask this list. All but `expression` is used without the solver, so a file loads that
inside; what else it needs it may load there too, so that naming objectives stays quick.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from stretto.errors import StrettoError
from stretto.exact.goal import Goal


def _found() -> tuple[Goal, ...]:
    goals: list[Goal] = [
        import_module(f"{__name__}.{module.name}").GOAL for module in iter_modules(__path__)
    ]
    return tuple(sorted(goals, key=lambda goal: (goal.rank, goal.name)))


GOALS = _found()
NAMES = tuple(goal.name for goal in GOALS)


def goal_of(name: str) -> Goal:
    """The objective of this name; StrettoError where there is none."""
    if name not in NAMES:
        raise StrettoError(f"no objective `{name}`; known: {', '.join(NAMES)}")
    return GOALS[NAMES.index(name)]


def up_to(name: str) -> tuple[Goal, ...]:
    """This objective and those before it."""
    return GOALS[: GOALS.index(goal_of(name)) + 1]
