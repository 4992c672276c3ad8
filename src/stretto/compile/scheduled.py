"""One loop of a kernel, scheduled: by the generators, by the solver, or as it stood on the loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from stretto.deadline import NEVER, Deadline
from stretto.diagnostics import MlirError
from stretto.exact import II, OBJECTIVE, Limits, ProofOptions
from stretto.generate import EXACT
from stretto.generate.problem import RETRIES, TIES, Options
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.resources.prepare import Prepared, prepare
from stretto.solution import ScheduleAnalysis
from stretto.solve import schedule_prepared
from stretto.solve.collecting import seldom
from stretto.solve.given import analysed, require_legal
from stretto.solve.requested import requested
from stretto.verification import verify

if TYPE_CHECKING:
    from stretto.ir.passes.published import PublishedLoop

ONCE = (RETRIES, TIES)
"""Left out of schedules: several numbers of stages are tried here, and the solver has its turn.
With members of groups held together IIs are smaller by up to 18 %; on an H200 that made 9 of 21
kernels faster, by up to 21 %, and 7 slower, by up to 13 %: so what was measured stays."""
DEFAULT = Limits()


@dataclass(frozen=True)
class ScheduledLoop(ScheduleAnalysis):
    """A schedule with the problem that it solves."""

    problem: Prepared = field(kw_only=True)
    options: Mapping[str, Any] = field(default_factory=dict[str, Any], kw_only=True)
    """What was asked for, by the names of the arguments of `stretto.schedule`."""


def scheduled(
    loop: Loop,
    machine: Machine,
    generator: str = "auto",
    *,
    max_ii: int | None = None,
    max_stages: int | None = None,
    effort: str = "normal",
    without: Iterable[str] = (),
    limits: Limits = DEFAULT,
    deadline: Deadline = NEVER,
) -> ScheduledLoop:
    """The best schedule of a loop, verified, or the reasons why there is none.

    Of generator ``exact`` the II alone is sought, within `limits`.
    """
    options = Options(
        max_ii, max_stages, without=frozenset(without), effort=effort, deadline=deadline
    )
    solved = generator == EXACT
    asked = requested(generator, options, limits, objective=II if solved else OBJECTIVE)
    with seldom():
        ready = prepare(loop, machine)
        proof = ProofOptions(II, limits) if solved else None
        return of_problem(
            schedule_prepared(ready, generator, options, None, proof), ready, options=asked
        )


def of_problem(
    found: ScheduleAnalysis, ready: Prepared, options: Mapping[str, Any] | None = None
) -> ScheduledLoop:
    """A schedule with its problem."""
    known: dict[str, Any] = {f.name: getattr(found, f.name) for f in fields(ScheduleAnalysis)}
    return ScheduledLoop(**known, problem=ready, options=options or {})


def for_problem(found: ScheduleAnalysis, ready: Prepared) -> ScheduledLoop:
    """A schedule that was made for a problem of more constraints; StrettoError where it is not
    legal for this one."""
    return of_problem(analysed(ready, *require_legal(ready, found)), ready)


def kept(known: PublishedLoop, ready: Prepared) -> ScheduledLoop:
    """The schedule that stands on a loop; MlirError, with every violation, where it is not legal.

    Its figures are worked out anew: the rest of the kernel takes shared memory as well.
    """
    assert known.analysis is not None
    wrong = verify(ready.loop, ready.machine, known.analysis)
    if wrong:
        raise MlirError([known.diagnose(violation) for violation in wrong])
    return of_problem(analysed(ready, known.analysis, ready.notes), ready)
