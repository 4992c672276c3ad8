"""Results: schedules, bounds with their witnesses, proofs, refusals, and what follows from them.

The package has the name of the function that fills it, `stretto.schedule(loop)`, so it can be
called as well: it then does what `stretto.api.schedule` does.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from stretto.schedule.types import (
    BOUND_NAMES,
    BoundName,
    Bounds,
    Objective,
    Part,
    Placement,
    Pressure,
    Proof,
    Refusal,
    ScheduleAnalysis,
    SpaceUse,
    StorageUse,
    Witness,
    WitnessKind,
)

__all__ = [
    "BOUND_NAMES",
    "BoundName",
    "Bounds",
    "Objective",
    "Part",
    "Placement",
    "Pressure",
    "Proof",
    "Refusal",
    "ScheduleAnalysis",
    "SpaceUse",
    "StorageUse",
    "Witness",
    "WitnessKind",
]


class _Callable(ModuleType):
    """This package; `stretto.api` is found when it is called, since it stands above."""

    def __call__(self, *arguments: Any, **options: Any) -> ScheduleAnalysis:
        return import_module("stretto.api").schedule(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
