"""The dependence bound: few stages must hold a long path.

    load ──556──► mma ──16──► store      store may stand in stage 0 or 1 only (max_depth 1):
    0             556         572        cycle 572 lies before 2 × II, so II >= ceil(573 / 2)

Without a limit on depth an operation may wait for as many stages as its path needs, and this
bound says nothing.
"""

from __future__ import annotations

from stretto.problem import Compiled, Graph
from stretto.problem.paths import settle
from stretto.solution import Part, Witness


def dependence_bound(problem: Compiled) -> Witness:
    """Largest ``ceil((path + 1) / (depth + 1))`` over the limited operations; ties in order."""
    limits = problem.max_stage
    graph = problem.graph
    path = [0] * problem.size
    settle(graph.order, graph.inside, 0, path)  # what is inside an iteration has no II
    best = Witness("none")
    at = -1
    for i, depth in enumerate(limits):
        if depth is None or path[i] == 0:
            continue
        found = Witness("depth", problem.names[i], path[i] + 1, depth + 1)
        if at < 0 or found.bound > best.bound:
            best, at = found, i
    if at < 0:
        return best
    return Witness("depth", best.limit, best.total, best.capacity, _way(graph, path, at))


def _way(graph: Graph, path: list[int], last: int) -> tuple[Part, ...]:
    """The longest path to an operation, each step with its latency to the next; the last adds none.

    Of several, at each step the one from the first operation in topological order.
    """
    parts = [Part((graph.names[last],), 0)]
    node = last
    while path[node] > 0:
        node, latency = min(
            (
                (arc.other, arc.latency)
                for arc in graph.preds[node]
                if arc.distance == 0 and path[arc.other] + arc.latency == path[node]
            ),
            key=lambda step: graph.rank[step[0]],
        )
        parts.append(Part((graph.names[node],), latency))
    return tuple(reversed(parts))
