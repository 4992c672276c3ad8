"""One question to the solver, under limits.

    Model ──► found | best | refuted | undecided        "best": found, and nothing is better

Work is counted by the solver itself, in units that depend on what it did and not on the machine,
so that the same question gets the same answer everywhere; a wall-clock limit is the user's choice.
The solver runs in a thread of its own, so that Ctrl-C is heard while it works: it is told to stop,
and what it found by then is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from threading import Event, Thread
from typing import Literal

from ortools.sat.python import cp_model

from stretto.deadline import NEVER, Deadline
from stretto.exact import Limits
from stretto.exact.case import Solution
from stretto.exact.interrupts import SOLVER, on_ctrl_c
from stretto.exact.model import Model

POLL = 0.1
"""Seconds between two looks at whether the user stopped the solver."""
PATIENCE = 0.4
"""Seconds that the solver gets to hear that its time is over; then nobody waits for it."""

Status = Literal["found", "best", "refuted", "undecided"]


@dataclass(slots=True)
class Clock:
    """What is left of the limits of one job."""

    limits: Limits
    deadline: Deadline = NEVER
    work: float = 0.0
    """Units spent."""
    stopped: bool = False
    """Whether the user stopped it."""

    def renewed(self, limits: Limits, deadline: Deadline) -> Clock:
        """The same clock, running on under other limits."""
        return Clock(limits, deadline, self.work, self.stopped)

    def part(self, share: float, most: float = inf) -> Clock:
        """The same clock, which ends after a share of what is left, or `most` units of work."""
        work = self.work + min(self.left * share, most)
        return self.renewed(replace(self.limits, work=work), self.deadline.share(share))

    @property
    def left(self) -> float:
        """Units left."""
        return 0.0 if self.stopped else max(0.0, self.limits.work - self.work)

    @property
    def seconds_left(self) -> float | None:
        """Seconds left; None: any number."""
        return self.deadline.left

    @property
    def over(self) -> bool:
        """Whether a limit is reached."""
        return self.left <= 0 or self.seconds_left == 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the solver said."""

    status: Status
    solution: Solution | None = None
    value: int = 0
    """Of the objective."""
    bound: int = 0
    """No solution has a smaller value."""
    knotted: bool = False
    """Whether what was found has operations of one cycle that wait for each other."""


class _Watcher(cp_model.CpSolverSolutionCallback):
    """Tells of every better value as it is found."""

    def __init__(self, tell: Callable[[int, int], None]) -> None:
        super().__init__()
        self.tell = tell

    def on_solution_callback(self) -> None:
        """The solver found a better solution."""
        self.tell(round(self.objective_value), up(self.best_objective_bound))


def solve(
    model: Model,
    clock: Clock,
    share: float = 1.0,
    objective: cp_model.LinearExprT | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Solve within a share of the work that is left."""
    if clock.over:
        return Outcome("undecided")
    if objective is not None:
        model.cp.minimize(objective)
    watcher = _Watcher(tell) if tell is not None and objective is not None else None
    while True:
        solver, status = run(model.cp, clock, share, watcher)
        if status == cp_model.INFEASIBLE:
            return Outcome("refuted")
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Outcome("undecided")
        solution = model.read(solver.value)
        if not model.asks_more(solution):
            break
        if clock.over:
            return Outcome("undecided")
    if model.case.knotted(solution):
        if objective is not None:
            return Outcome("undecided", knotted=True)
        return _unknotted(model, clock, share)
    if objective is None:
        return Outcome("found", solution)
    value, bound = round(solver.objective_value), up(solver.best_objective_bound)
    return Outcome("best" if status == cp_model.OPTIMAL else "found", solution, value, bound)


def _unknotted(model: Model, clock: Clock, share: float) -> Outcome:
    """A schedule in which no two operations of one cycle wait for each other, if one is found."""
    if model.case.spaced:
        return Outcome("undecided", knotted=True)
    stricter = replace(model.case, spaced=True)
    outcome = solve(Model(stricter, model.ii, stages=model.stages), clock, share)
    return outcome if outcome.solution is not None else Outcome("undecided", knotted=True)


def run(
    model: cp_model.CpModel,
    clock: Clock,
    share: float = 1.0,
    watcher: _Watcher | None = None,
    *,
    linear: bool = False,
) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
    """One run of the solver; the work it took is gone from the clock.

    `linear` has its linear relaxation look at every row.
    """
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = clock.limits.workers
    parameters.interleave_search = clock.limits.workers > 1  # else threads race for the answer
    parameters.random_seed = clock.limits.seed
    parameters.max_deterministic_time = clock.left * share
    parameters.cp_model_probing_level = 0  # costs more than it finds on these models
    parameters.catch_sigint_signal = False
    if linear:
        parameters.linearization_level = 2
    if clock.seconds_left is not None:
        parameters.max_time_in_seconds = clock.seconds_left * share
    try:
        status = _wait(solver, model, watcher, clock)
    except IndexError:
        # OR-tools 9.15 trips over symmetries it looks for in some small models (an uncaught
        # std::out_of_range of its presolve); ours are broken already (symmetry.py).
        parameters.symmetry_level = 0
        status = _wait(solver, model, watcher, clock)
    clock.work += solver.response_proto.deterministic_time
    return solver, status


def _wait(
    solver: cp_model.CpSolver, model: cp_model.CpModel, watcher: _Watcher | None, clock: Clock
) -> cp_model.CpSolverStatus:
    """Solve in a thread; Ctrl-C stops the solver, and the clock with it.

    Waiting is on an event: a join that is interrupted takes the thread for ended. The solver looks
    at its limits between steps, and on large models single steps take seconds: past the deadline
    it is told to stop and is not waited for (OverdueError).
    """
    answer: list[cp_model.CpSolverStatus] = []
    failed: list[BaseException] = []
    done = Event()

    def work() -> None:
        try:
            answer.append(solver.solve(model, watcher))
        except BaseException as error:  # raised again where it is awaited
            failed.append(error)
        finally:
            done.set()

    def stop() -> None:
        clock.stopped = True
        solver.stop_search()

    with on_ctrl_c(stop):
        Thread(target=work, daemon=True, name=SOLVER).start()
        ended = False
        while not ended:
            try:
                ended = done.wait(POLL)
            except KeyboardInterrupt:  # of somebody else's handler
                stop()
            if not ended and clock.deadline.over:
                solver.stop_search()
                clock.deadline.later(PATIENCE).check()
    if failed:
        raise failed[0]
    return answer[0]


def up(bound: float) -> int:
    """A lower bound on a whole number, as a whole number."""
    return -int(-bound // 1) if bound == bound // 1 else int(bound // 1) + 1
