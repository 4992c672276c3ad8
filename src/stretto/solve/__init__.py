"""The one place that joins the generators and the exact solver.

    schedule_prepared(ready)            ──►  bound, select, generate, prove, verify: a schedule
    explaining.explain_prepared(ready)  ──►  why no smaller II exists, and what would change that

Passes and the front door go through here. It takes loops that were prepared, so that nobody
computes on one that was not classified and checked first, and hands out no schedule that was not
verified.
"""

from stretto.generate.problem import PARTS
from stretto.resources.prepare import Prepared, prepare
from stretto.solve.job import IllegalScheduleError
from stretto.solve.scheduling import Progress, StoppedError, schedule_prepared

__all__ = [
    "PARTS",
    "IllegalScheduleError",
    "Prepared",
    "Progress",
    "StoppedError",
    "prepare",
    "schedule_prepared",
]
