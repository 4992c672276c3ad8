"""The minimum initiation interval: the largest of five lower bounds.

    resource 15 ┐
    recurrence 8│
    fine 1      ├─► MII 15, limited by slot tp_smem_wr: load 8 + write 7
    dependence 1│
    group 1     ┘

Each bound is true of every legal schedule and carries the witness that makes it so.
"""

from __future__ import annotations

from stretto.deadline import NEVER, Deadline
from stretto.loop import Loop
from stretto.lower_bounds.recurrence import recurrence_bound
from stretto.lower_bounds.resource import fine_bound, resource_bound
from stretto.machine import Machine
from stretto.problem import Compiled, compile_loop
from stretto.solution import Bounds, Witness


def compute_bounds(
    loop: Loop,
    machine: Machine,
    *,
    fuse: bool = True,
    max_stages: int | None = None,
    deadline: Deadline = NEVER,
) -> Bounds:
    """The five bounds of a resolved loop that passed `check()`; OverdueError at the deadline."""
    deadline.check()
    return bounds_of(compile_loop(loop, machine, fuse=fuse, max_stages=max_stages), deadline)


def bounds_of(problem: Compiled, deadline: Deadline = NEVER) -> Bounds:
    """The five bounds of a loop that is compiled; OverdueError at the deadline."""
    deadline.check()
    recurrence = recurrence_bound(problem.graph, deadline)
    return Bounds(
        resource=resource_bound(problem),
        recurrence=recurrence,
        fine=fine_bound(problem),
        dependence=_dependence(problem),
        group=_group(problem, recurrence, deadline),
    )


def _dependence(problem: Compiled) -> Witness:
    """The bound of limited depth, which few loops have."""
    if problem.max_stage.count(None) == problem.size:
        return Witness("none")
    from stretto.lower_bounds.dependence import dependence_bound  # noqa: PLC0415 - see above

    return dependence_bound(problem)


def _group(problem: Compiled, recurrence: Witness, deadline: Deadline) -> Witness:
    """The bound of leader groups, which few loops have."""
    if not problem.members:
        return Witness("none")
    from stretto.lower_bounds.group import group_bound  # noqa: PLC0415 - see above

    return group_bound(problem, recurrence, deadline)
