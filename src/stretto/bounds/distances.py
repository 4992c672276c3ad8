"""Longest paths at a given II: how far apart operations must start.

    weight of a dependence = latency - II × distance
    load ──8──► mma ──16──► store          longest_from(load) = {load: 0, mma: 8, store: 24}

An operation that no path leads to has no distance at all; it is left out, not made very far.
"""

from __future__ import annotations

from stretto.bounds.recurrence import describe_cycle, recurrence_bound
from stretto.errors import InfeasibleError
from stretto.loop import Loop
from stretto.problem import Graph, dependence_graph
from stretto.problem.paths import settle


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
    values = [0] * len(graph.names)
    _settle(graph, ii, values)
    return dict(zip(graph.names, values, strict=True))


def below_recurrence(graph: Graph, ii: int) -> InfeasibleError | None:
    """The error that names the cycle an II is too small for; None if it is large enough."""
    witness = recurrence_bound(graph)
    if ii >= witness.bound:
        return None
    cycle = describe_cycle(witness)
    return InfeasibleError(f"II {ii} is below the recurrence bound {witness.bound}: {cycle}")


def _settle(graph: Graph, ii: int, values: list[int] | list[int | None]) -> None:
    """Raise values along dependences until all are met, at whatever II.

    A longest path takes no carried arc twice, so values that move after as many sweeps go round
    a cycle.
    """
    carried = sum(edge.distance > 0 for edge in graph.edges)
    if not settle(graph.order, graph.succs, ii, values, sweeps=min(carried, len(values)) + 1):
        error = below_recurrence(graph, ii)
        raise error if error is not None else AssertionError("settled values still move")
