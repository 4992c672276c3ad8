"""Longest paths at a given II: how far apart operations must start.

    weight of a dependence = latency - II × distance
    load ──8──► mma ──16──► store          longest_from(load) = {load: 0, mma: 8, store: 24}

An operation that no path leads to has no distance at all; it is left out, not made very far.
"""

from __future__ import annotations

from stretto.bounds.graph import Graph, dependence_graph
from stretto.bounds.recurrence import describe_cycle, recurrence_bound
from stretto.errors import InfeasibleError
from stretto.loop import Loop


def longest_from(loop: Loop, ii: int, source: str) -> dict[str, int]:
    """Longest path from one operation to each it leads to, itself at 0; program order."""
    graph = dependence_graph(loop)
    values: list[int | None] = [None] * len(graph.names)
    values[loop.index[source]] = 0
    _settle(graph, ii, values)
    return {
        name: value for name, value in zip(graph.names, values, strict=True) if value is not None
    }


def earliest_starts(loop: Loop, ii: int) -> dict[str, int]:
    """The earliest start the dependences allow each operation, none before cycle 0."""
    graph = dependence_graph(loop)
    values: list[int | None] = [0] * len(graph.names)
    _settle(graph, ii, values)
    return {name: value or 0 for name, value in zip(graph.names, values, strict=True)}


def below_recurrence(graph: Graph, ii: int) -> InfeasibleError | None:
    """The error that names the cycle an II is too small for; None if it is large enough."""
    witness = recurrence_bound(graph)
    if ii >= witness.bound:
        return None
    cycle = describe_cycle(witness)
    return InfeasibleError(f"II {ii} is below the recurrence bound {witness.bound}: {cycle}")


def _settle(graph: Graph, ii: int, values: list[int | None]) -> None:
    """Raise values along dependences until all are met.

    R. Bellman, "On a routing problem" (1958). One sweep settles what a path reaches inside an
    iteration, each further one what it reaches over one more carried edge. A longest path takes
    no carried edge twice, so values that move after as many sweeps go round a cycle.
    """
    fresh = [value is not None for value in values]
    carried = sum(edge.distance > 0 for edge in graph.edges())
    for _ in range(min(carried, len(values)) + 1):
        if not any(fresh):
            return
        for node in graph.order:
            value = values[node]
            if value is None or not fresh[node]:
                continue
            fresh[node] = False
            for edge in graph.leaving[node]:
                reached = value + edge.latency - ii * edge.distance
                known = values[edge.dst]
                if known is None or reached > known:
                    values[edge.dst] = reached
                    fresh[edge.dst] = True
    if any(fresh):
        error = below_recurrence(graph, ii)
        raise error if error is not None else AssertionError("settled values still move")
