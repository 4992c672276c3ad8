"""`stretto.schedule`: the best schedule found, verified.

stretto.schedule(loop, prove=True)  ──►  .ii 256, .starts, .proof, .report()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from stretto import __version__
from stretto.api import (
    Result,
    deadline_of,
    fields_of,
    for_each,
    made_ready,
    with_pins_of,
)
from stretto.deadline import Deadline
from stretto.errors import StrettoError
from stretto.exact import OBJECTIVE, WORK, ProofOptions, limits_of
from stretto.forms import FORMS, is_form
from stretto.generate.problem import Options
from stretto.ir import write_schedule
from stretto.kinds import checked
from stretto.loop import Loop, texts
from stretto.machine import Machine
from stretto.report.schedule import Report
from stretto.resources.prepare import Prepared
from stretto.solution import SCHEMA, ScheduleAnalysis, counted
from stretto.solve import Progress, StoppedError, schedule_prepared
from stretto.solve.collecting import seldom
from stretto.solve.requested import requested

if TYPE_CHECKING:  # what emits takes long to load
    from stretto.compile.scheduled import ScheduledLoop


@dataclass(frozen=True, repr=False)
class ScheduleResult(Result, ScheduleAnalysis):
    """A schedule of a loop on a machine, or the reasons there is none."""

    SCHEMA: ClassVar[str] = SCHEMA

    options: Mapping[str, Any] = field(default_factory=dict[str, Any], kw_only=True)
    """What was asked for, by the names of the arguments of `schedule`."""

    @property
    def analysis(self) -> ScheduleAnalysis:
        """The result alone, without its problem."""
        return ScheduleAnalysis(**{f.name: getattr(self, f.name) for f in fields(ScheduleAnalysis)})

    @property
    def proved(self) -> bool:
        """Whether the II is proved, and every objective that was asked for."""
        proof = self.proof
        return proof is not None and proof.optimal and all(row.optimal for row in proof.objectives)

    def view(self, verbose: bool = False) -> Report:
        """What text and JSON are made by."""
        loop, machine = self.problem.loop, self.problem.machine
        why = self.problem.machine_why
        return Report(self, loop, machine, texts(self.notes), verbose, self.options, why)

    def to_document(self) -> dict[str, Any]:
        """A document of this schedule alone, as `--json` prints it."""
        return whole_document([self])

    def render(self, format: str) -> str | bytes:
        """As ``csv``, ``svg``, ``html`` (a page to look through) or ``trace`` (for Perfetto)."""
        from stretto.report.formats import rendered  # noqa: PLC0415 - few are drawn

        if not is_form(format):
            raise StrettoError(f"no format {format!r}; known: {', '.join(FORMS)}")
        return rendered(self.to_document(), format)

    def _repr_html_(self) -> str:
        """What a notebook shows: a picture of the schedule, or why there is none."""
        if not self.success:
            return super()._repr_html_()
        picture = self.render("svg")
        assert isinstance(picture, str)
        return picture

    def to_mlir(self) -> str:
        """The loop with its schedule on it."""
        if not self.success:
            raise StrettoError("there is no schedule to write", self.loop)
        return write_schedule(self.problem.loop, self)

    def report(self, verbose: bool = False) -> str:
        """Text for people; verbose: with every II refused, and who seated each operation."""
        return "\n".join(self.view(verbose).to_text())

    def line(self) -> str:
        """How fast, how deep, and whether that is the best."""
        on = f"ScheduleAnalysis {self.loop} on {self.machine}"
        if self.ii is None:
            return f"{on}: no schedule"
        best = "optimal" if self.proof is not None and self.proof.optimal else "not proved optimal"
        return f"{on}: II {self.ii}, {counted(self.stage_count, 'stage')}, {best}"


def whole_document(results: Sequence[ScheduleResult]) -> dict[str, Any]:
    """A document of these schedules, as `--json` prints it."""
    success = all(result.success for result in results)
    loops = [result.to_json() for result in results]
    return {"schema": SCHEMA, "success": success, "version": __version__, "loops": loops}


def result_of(found: ScheduledLoop) -> ScheduleResult:
    """A loop's schedule in a kernel, as `schedule` answers."""
    return ScheduleResult(**fields_of(found))


@for_each
@checked
def schedule(
    loop: Loop | Prepared,
    machine: Machine | str | None = None,
    generator: str = "auto",
    *,
    max_ii: int | None = None,
    max_stages: int | None = None,
    fuse: bool = True,
    serial_threshold: int = 2,
    strict: bool = False,
    pins: Iterable[str] = (),
    without: Iterable[str] = (),
    effort: str = "normal",
    prove: bool = False,
    objective: str = OBJECTIVE,
    work_limit: float = WORK,
    workers: int = 1,
    seed: int = 0,
    time_limit: float | Deadline | None = None,
    progress: Progress | None = None,
) -> ScheduleResult:
    """The best schedule found, verified; `success` is false, with reasons, where there is none.

    Of what `read` gives, or of a list of loops: a tuple with the schedule of each.
    The machine is the one given, else the one the loop names, else `blackwell`. `max_ii` is the
    last II tried (default: that of the serial schedule), `max_stages` the most stages allowed.
    Loops of fewer than `serial_threshold` operations are scheduled serially. `strict` fails where
    a constraint is not honoured or registers spill. `pins` tell operations where to stand:
    ``qk=stage:0``, ``start:N``, ``cycle:N`` or ``before:NAME``. `without` leaves out rungs
    (``rau``)
    and arms (``arm:fuse``).
    `effort`, ``quick``, ``normal`` or ``thorough``, says how much work the search is worth: most
    loops are at their bound after little, and then all three give the same answer.

    Generator ``exact``, or `prove` with any other, has the solver prove the II or improve on it,
    and then minimize stages, bytes and registers up to `objective`; it takes `work_limit` units of
    deterministic work at most, on `workers` threads, from `seed`. `time_limit`, in seconds, cuts
    all of it short: the answer is then the best schedule so far, with a warning, or OverdueError
    where there is none yet. Ctrl-C during the search raises StoppedError, a KeyboardInterrupt that
    carries the best schedule so far.
    """
    pins, without, deadline = tuple(pins), frozenset(without), deadline_of(time_limit)
    options = Options(
        max_ii,
        max_stages,
        fuse,
        serial_threshold,
        strict,
        without,
        effort=effort,
        deadline=deadline,
    )
    if objective != OBJECTIVE:
        from stretto.exact.objectives import goal_of  # noqa: PLC0415 - the default needs no list

        goal_of(objective)  # an error where there is none of this name
    limits = limits_of(work_limit, workers, seed)
    asked = requested(generator, options, limits, pins=pins, prove=prove, objective=objective)
    proof = ProofOptions(objective, limits) if prove or generator == "exact" else None
    with seldom():
        ready = with_pins_of(made_ready(loop, machine), pins)
        try:
            found = schedule_prepared(ready, generator, options, progress, proof)
        except StoppedError as stopped:
            stopped.analysis = ScheduleResult(
                **fields_of(stopped.analysis), problem=ready, options=asked
            )
            raise
        return ScheduleResult(**fields_of(found), problem=ready, options=asked)
