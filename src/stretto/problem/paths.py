"""Longest paths: one place that relaxes ``start[dst] >= start[src] + latency - II × distance``.

    settle       all arcs, in sweeps of topological order      earliest, heights
    raise_from   what one raised value raises, as a front       longest_from; windows in the making
    lower_from   the same backwards, for latest starts

    load ──8──► mma ──16──► store        earliest 0, 8, 24      longest_from(mma) = none, 0, 16

An operation that no path leads to has no distance at all: None, not a large number. The cycle of
the largest ratio is another algorithm (`lower_bounds`).
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.deadline import NEVER, Deadline
from stretto.problem.graph import Arc, Graph

Steps = Sequence[Sequence[tuple[int, int, int]]]
"""By operation: (other, latency, distance) of its arcs in one direction."""


def settle(
    order: Sequence[int],
    arcs: Steps,
    ii: int,
    values: list[int] | list[int | None],
    deadline: Deadline = NEVER,
    sweeps: int | None = None,
) -> bool:
    """Raise values along arcs until all are met; false if so many sweeps do not do.

    R. Bellman, "On a routing problem" (1958). One sweep settles what a path reaches inside an
    iteration, each further one what it reaches over one more carried arc.
    """
    fresh = [value is not None for value in values]
    done = 0
    while any(fresh):
        if done == sweeps:
            return False
        done += 1
        deadline.check()
        for node in order:
            if not fresh[node]:
                continue
            fresh[node] = False
            value = values[node]
            assert value is not None
            for other, latency, distance in arcs[node]:
                reached = value + latency - ii * distance
                known = values[other]
                if known is None or reached > known:
                    values[other] = reached
                    fresh[other] = True
    return True


def earliest(graph: Graph, ii: int, deadline: Deadline = NEVER) -> list[int]:
    """The earliest start that dependences allow each operation; the II is one that has them."""
    values = [0] * len(graph.names)
    settle(graph.order, graph.succs, ii, values, deadline)
    return values


def heights(
    graph: Graph, completion: Sequence[int], ii: int, deadline: Deadline = NEVER
) -> list[int]:
    """Cycles from an operation's start until the last that waits for it is complete."""
    values = list(completion)
    settle(graph.order[::-1], graph.preds, ii, values, deadline)
    return values


# From one operation --------------------------------------------------------------------------


def longest_from(
    arcs: Sequence[Sequence[Arc]], source: int, ii: int, deadline: Deadline = NEVER
) -> list[int | None]:
    """Longest paths from one operation along arcs; None: there is none."""
    values: list[int | None] = [None] * len(arcs)
    values[source] = 0
    raise_from(arcs, ii, values, source, deadline)
    return values


def raise_from(
    arcs: Steps,
    ii: int,
    values: list[int] | list[int | None],
    source: int,
    deadline: Deadline = NEVER,
) -> None:
    """Raise whatever the value of one operation raises; the others are settled."""
    front = [source]
    while front:
        deadline.check()
        later: list[int] = []
        for node in front:
            value = values[node]
            assert value is not None
            for other, latency, distance in arcs[node]:
                reached = value + latency - ii * distance
                known = values[other]
                if known is None or reached > known:
                    values[other] = reached
                    later.append(other)
        front = later


def lower_from(arcs: Steps, ii: int, values: list[int], source: int) -> None:
    """Lower whatever the latest start of one operation lowers, against its arcs."""
    front = [source]
    while front:
        later: list[int] = []
        for node in front:
            value = values[node]
            for other, latency, distance in arcs[node]:
                reached = value - latency + ii * distance
                if reached < values[other]:
                    values[other] = reached
                    later.append(other)
        front = later


# Beside what is seated -----------------------------------------------------------------------


def not_before(preds: Sequence[Arc], starts: Sequence[int | None], ii: int, low: int = 0) -> int:
    """The earliest start from `low` on that seated predecessors leave an operation."""
    for other, latency, distance in preds:
        start = starts[other]
        if start is not None and start + latency - ii * distance > low:
            low = start + latency - ii * distance
    return low


def not_after(succs: Sequence[Arc], starts: Sequence[int | None], ii: int, high: int) -> int:
    """The latest start up to `high` that seated successors leave an operation."""
    for other, latency, distance in succs:
        start = starts[other]
        if start is not None and start - latency + ii * distance < high:
            high = start - latency + ii * distance
    return high
