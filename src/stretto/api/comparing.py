"""`stretto.compare`: two schedules side by side.

stretto.compare(stretto.schedule(loop), stretto.schedule(loop, "h200"))  ──►  .rows(), .report()
"""

from __future__ import annotations

from stretto.api import misgiven
from stretto.api.solving import ScheduleResult
from stretto.kinds import checked
from stretto.report.comparison import Comparison


@checked
def compare(a: ScheduleResult, b: ScheduleResult) -> Comparison:
    """What each of two schedules takes, and which operations stand elsewhere."""
    for one in (a, b):
        if not isinstance(one, ScheduleResult):  # pyright: ignore[reportUnnecessaryIsInstance] - whoever calls may have no types
            raise misgiven("what stretto.schedule returned", one)
    return Comparison(a.to_json(), b.to_json())
