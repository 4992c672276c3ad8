"""Longest paths over a problem's arcs: earliest starts, heights, and stages for given cycles.

    earliest   from the beginning of the iteration to an operation
    height     from an operation to the end of everything that waits for it
    stages     cycles are fixed; how many whole IIs later must each operation stand?

Sweeps go in topological order, so that each settles a whole iteration and a further one is needed
only for carried arcs.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.deadline import NEVER, Deadline
from stretto.generate.problem import Arc, Problem


def earliest(problem: Problem, ii: int) -> list[int]:
    """The earliest start that dependences allow each operation."""
    return _settle(problem, problem.graph.order, problem.succs, ii, [0] * problem.size)


def heights(problem: Problem, ii: int) -> list[int]:
    """Cycles from an operation's start until the last that waits for it is complete."""
    backward = problem.graph.order[::-1]
    return _settle(problem, backward, problem.preds, ii, list(problem.completion))


def _settle(
    problem: Problem,
    order: Sequence[int],
    arcs: Sequence[tuple[Arc, ...]],
    ii: int,
    values: list[int],
) -> list[int]:
    """Raise values along arcs until all are met; the II is at least the recurrence bound."""
    fresh = [True] * len(values)
    moved = True
    while moved:
        problem.deadline.check()
        moved = False
        for i in order:
            if not fresh[i]:
                continue
            fresh[i] = False
            value = values[i]
            for other, latency, distance in arcs[i]:
                reached = value + latency - ii * distance
                if reached > values[other]:
                    values[other] = reached
                    fresh[other] = moved = True
    return values


def longest_from(
    arcs: Sequence[Sequence[Arc]], source: int, ii: int, deadline: Deadline = NEVER
) -> list[int | None]:
    """Longest paths from one operation along arcs; None: there is none."""
    values: list[int | None] = [None] * len(arcs)
    values[source] = 0
    work = [source]
    while work:
        deadline.check()
        later: list[int] = []
        for node in work:
            value = values[node]
            if value is None:
                continue
            for other, latency, distance in arcs[node]:
                reached = value + latency - ii * distance
                known = values[other]
                if known is None or reached > known:
                    values[other] = reached
                    later.append(other)
        work = later
    return values


def stages(problem: Problem, ii: int, starts: Sequence[int]) -> list[int] | None:
    """The earliest starts with the same cycles that meet every dependence; None: there are none.

    An operation may move by whole IIs without changing what it holds. Cycles fix everything
    else, so this is a longest path in stages: ``k[dst] >= k[src] + ceil((latency - II × distance
    + cycle[src] - cycle[dst]) / II)``, which has a solution unless a recurrence gains a stage.
    """
    cycle = [start % ii for start in starts]
    stage = [0] * problem.size
    fresh = [True] * problem.size
    for _ in range(problem.size + 1):
        problem.deadline.check()
        if not any(fresh):
            return [c + ii * k for c, k in zip(cycle, stage, strict=True)]
        for i in problem.graph.order:
            if not fresh[i]:
                continue
            fresh[i] = False
            base = cycle[i] + ii * stage[i]
            for other, latency, distance in problem.succs[i]:
                late = base + latency - ii * distance - cycle[other]
                needed = -(-late // ii)
                if needed > stage[other]:
                    stage[other] = needed
                    fresh[other] = True
    return None
