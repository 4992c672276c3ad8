"""The earliest starts of a loop at a given II; where there are none, the cycle that forbids it.

weight of a dependence = latency - II × distance
load ──8──► mma ──16──► store          earliest_starts = {load: 0, mma: 8, store: 24}
"""

from __future__ import annotations

from stretto.errors import InfeasibleError
from stretto.loop import Loop
from stretto.lower_bounds.recurrence import describe_cycle, recurrence_bound
from stretto.problem import Graph, dependence_graph
from stretto.problem.paths import settle


def earliest_starts(loop: Loop, ii: int) -> dict[str, int]:
    """The earliest start the dependences allow each operation, none before cycle 0.

    A longest path takes no carried arc twice, so values that move after as many sweeps go round
    a cycle.
    """
    graph = dependence_graph(loop)
    values = [0] * len(graph.names)
    carried = sum(edge.distance > 0 for edge in graph.edges)
    if not settle(graph.order, graph.succs, ii, values, sweeps=min(carried, len(values)) + 1):
        error = below_recurrence(graph, ii)
        raise error if error is not None else AssertionError("settled values still move")
    return dict(zip(graph.names, values, strict=True))


def below_recurrence(graph: Graph, ii: int) -> InfeasibleError | None:
    """The error that names the cycle an II is too small for; None if it is large enough."""
    witness = recurrence_bound(graph)
    if ii >= witness.bound:
        return None
    cycle = describe_cycle(witness)
    return InfeasibleError(f"II {ii} is below the recurrence bound {witness.bound}: {cycle}")
