"""The one place that joins the generators and the exact solver.

    schedule_prepared(ready)  ──►  bound, select, generate, prove, verify: a ScheduleAnalysis
    explain_prepared(ready)   ──►  why no smaller II exists, and what would have to change

Passes and the front door go through here. It takes loops that were prepared, so that nobody
computes on one that was not classified and checked first, and hands out no schedule that was not
verified.
"""

from stretto.resources.prepare import DEFAULT_MACHINE, Prepared, prepare
from stretto.solve.explaining import Explained, explain_prepared
from stretto.solve.scheduling import (
    PARTS,
    IllegalScheduleError,
    Progress,
    StoppedError,
    schedule_prepared,
)

__all__ = [
    "DEFAULT_MACHINE",
    "PARTS",
    "Explained",
    "IllegalScheduleError",
    "Prepared",
    "Progress",
    "StoppedError",
    "explain_prepared",
    "prepare",
    "schedule_prepared",
]
