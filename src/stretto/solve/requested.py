"""What was asked of a schedule, by the names of the arguments of `stretto.schedule`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto.exact import OBJECTIVE, Limits
from stretto.generate.problem import Options


def requested(
    generator: str,
    options: Options,
    limits: Limits,
    *,
    pins: Sequence[str] = (),
    prove: bool = False,
    objective: str = OBJECTIVE,
) -> dict[str, Any]:
    """A value for each argument, as a report has it."""
    return {
        "generator": generator,
        "max_ii": options.max_ii,
        "max_stages": options.max_stages,
        "fuse": options.fuse,
        "serial_threshold": options.serial_threshold,
        "strict": options.strict,
        "pins": list(pins),
        "without": sorted(options.without),
        "effort": options.effort,
        "prove": prove,
        "objective": objective,
        "work_limit": limits.work,
        "workers": limits.workers,
        "seed": limits.seed,
        "time_limit": options.deadline.seconds or None,
    }
