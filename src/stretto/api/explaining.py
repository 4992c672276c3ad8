"""`stretto.explain`: why not a smaller II, and what would have to change.

stretto.explain(loop)  ──►  .best II 2892, .explanation of 2891, .report()
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from stretto.api import (
    Result,
    deadline_of,
    fields_of,
    for_each,
    made_ready,
    with_pins_of,
)
from stretto.deadline import Deadline
from stretto.exact import PATIENCE, WORK, limits_of
from stretto.generate.problem import Options
from stretto.kinds import checked
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.report.explanation import SCHEMA, ExplanationReport
from stretto.resources.prepare import Prepared
from stretto.solve import Progress
from stretto.solve.explaining import Explained, explain_prepared


@dataclass(frozen=True, repr=False)
class ExplainResult(Result, Explained):
    """What is known of the best II of a loop, and of the one that was asked about."""

    SCHEMA: ClassVar[str] = SCHEMA

    def view(self) -> ExplanationReport:
        """What text and JSON are made by."""
        return ExplanationReport(self, self.problem.machine, self.problem.machine_why, self.noted)

    def line(self) -> str:
        """The best II, and the verdict on the one asked about."""
        best, told = self.best, self.explanation
        on = f"Explained {best.loop} on {best.machine}"
        asked = "" if told is None else f", II {told.ii} {told.verdict}"
        return f"{on}: {'no schedule' if best.ii is None else f'best II {best.ii}'}{asked}"


@for_each
@checked
def explain(
    loop: Loop | Prepared,
    machine: Machine | str | None = None,
    *,
    ii: int | None = None,
    max_stages: int | None = None,
    fuse: bool = True,
    pins: Iterable[str] = (),
    work_limit: float = WORK,
    workers: int = 1,
    seed: int = 0,
    time_limit: float | Deadline | None = PATIENCE,
    progress: Progress | None = None,
) -> ExplainResult:
    """Why there is no schedule at `ii` (default: one below the best), and what would change that.

    The reasons are a set of which each one is needed. The options are those of `schedule`; what
    `time_limit` (a minute, unless another is given; None: none) or `work_limit` leave undecided is
    said to be so. Of what `read` gives, or of a list of loops: a tuple with one for each.
    """
    options = Options(max_stages=max_stages, fuse=fuse, deadline=deadline_of(time_limit))
    limits = limits_of(work_limit, workers, seed)
    ready = with_pins_of(made_ready(loop, machine), pins)
    found = explain_prepared(ready, ii, options, limits, progress)
    return ExplainResult(**fields_of(found), problem=ready)
