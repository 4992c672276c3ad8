"""The one place that joins a loop, a machine and what works on both.

    prepare(loop)   ──►  the loop with its costs on its machine, checked, and what was noted
    schedule(loop)  ──►  prepare, bound, select, generate, prove, verify: a ScheduleAnalysis
    explain(loop)   ──►  why no smaller II exists, and what would have to change

Front ends and the command line go through here, so that nobody computes on a loop that was not
classified and checked first, and nobody is handed a schedule that was not verified.
"""

from stretto.resources.prepare import DEFAULT_MACHINE, Prepared, prepare
from stretto.solve.explaining import Explained, explain, explain_prepared
from stretto.solve.job import IllegalScheduleError
from stretto.solve.scheduling import (
    PARTS,
    Progress,
    StoppedError,
    overdue,
    schedule,
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
    "explain",
    "explain_prepared",
    "overdue",
    "prepare",
    "schedule",
    "schedule_prepared",
]
