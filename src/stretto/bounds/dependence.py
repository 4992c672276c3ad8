"""The dependence bound: few stages must hold a long path.

    load ──556──► mma ──16──► store      store may stand in stage 0 or 1 only (max_depth 1):
    0             556         572        cycle 572 lies before 2 × II, so II >= ceil(573 / 2)

Without a limit on depth an operation may wait for as many stages as its path needs, and this
bound says nothing.
"""

from __future__ import annotations

from stretto.bounds.graph import Graph
from stretto.loop import Loop, Op
from stretto.solution import Part, Witness


def dependence_bound(loop: Loop, graph: Graph, *, max_stages: int | None) -> Witness:
    """Largest ``ceil((path + 1) / (depth + 1))`` over the limited operations; ties in order."""
    path, before = _longest_paths(graph)
    best = Witness("none")
    at = -1
    for i, op in enumerate(loop.ops):
        depth = depth_limit(op, max_stages)
        if depth is None or path[i] == 0:
            continue
        found = Witness("depth", op.name, path[i] + 1, depth + 1)
        if at < 0 or found.bound > best.bound:
            best, at = found, i
    if at < 0:
        return best
    return Witness("depth", best.limit, best.total, best.capacity, _way(graph, path, before, at))


def depth_limit(op: Op, max_stages: int | None) -> int | None:
    """The last stage an operation may stand in; None: any."""
    limits = [] if max_stages is None else [max_stages - 1]
    if op.constraint.max_depth is not None:
        limits.append(op.constraint.max_depth)
    return min(limits, default=None)


def _longest_paths(graph: Graph) -> tuple[list[int], list[int]]:
    """Longest distance-0 path to each operation's start, and who stands before it on that path."""
    path = [0] * len(graph.names)
    before = [-1] * len(graph.names)
    for node in graph.order:
        for edge in graph.leaving[node]:
            if edge.distance == 0 and path[node] + edge.latency > path[edge.dst]:
                path[edge.dst] = path[node] + edge.latency
                before[edge.dst] = node
    return path, before


def _way(graph: Graph, path: list[int], before: list[int], last: int) -> tuple[Part, ...]:
    """The path to an operation, each step with its latency to the next; the last adds none."""
    parts = [Part((graph.names[last],), 0)]
    node = last
    while before[node] >= 0:
        previous = before[node]
        parts.append(Part((graph.names[previous],), path[node] - path[previous]))
        node = previous
    return tuple(reversed(parts))
