"""The dependences of a loop by number, in the order that settles them fastest.

    load ──8──► mma ──16──► store          operations in distance-0 topological order:
                 ▲ └─16 (+1)─┐             one sweep carries a value down a whole iteration,
                 └───────────┘             each further sweep over one more carried edge

Every longest-path question of this package relaxes edges in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stretto.errors import InfeasibleError
from stretto.loop import Fault, Loop, topological_order


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependence between operations by program position."""

    src: int
    dst: int
    latency: int
    distance: int


@dataclass(frozen=True, slots=True)
class Graph:
    """A loop's dependence graph."""

    names: tuple[str, ...]
    order: tuple[int, ...]
    """Program positions in distance-0 topological order."""
    leaving: tuple[tuple[Edge, ...], ...]
    """Edges by the position of their source."""

    def edges(self) -> Iterator[Edge]:
        """Every edge, sources in topological order."""
        for node in self.order:
            yield from self.leaving[node]


def dependence_graph(loop: Loop) -> Graph:
    """The graph of a resolved loop; a cycle at distance 0 is an InfeasibleError."""
    order = topological_order(loop)
    if isinstance(order, Fault):
        raise InfeasibleError(order.message)
    leaving: list[list[Edge]] = [[] for _ in loop.ops]
    for d in loop.dependences:
        src, dst = loop.index[d.src], loop.index[d.dst]
        leaving[src].append(Edge(src, dst, d.latency, d.distance))
    return Graph(tuple(op.name for op in loop.ops), order, tuple(map(tuple, leaving)))


def components(graph: Graph) -> tuple[tuple[int, ...], ...]:
    """Strongly connected components that contain a cycle, each in topological order."""
    rank = {node: r for r, node in enumerate(graph.order)}
    found = [
        tuple(sorted(members, key=rank.__getitem__))
        for members in strong_components([[e.dst for e in edges] for edges in graph.leaving])
        if len(members) > 1 or any(e.dst == members[0] for e in graph.leaving[members[0]])
    ]
    return tuple(sorted(found, key=lambda members: rank[members[0]]))


def strong_components(successors: Sequence[Sequence[int]]) -> Iterable[list[int]]:
    """Every strongly connected component, those that others lead to first.

    R. Tarjan, "Depth-first search and linear graph algorithms" (1972), with a stack of its own
    so that no loop is too deep.
    """
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for root in range(len(successors)):
        if root in number:
            continue
        work = [(root, iter(successors[root]))]
        number[root] = low[root] = len(number)
        path.append(root)
        on_path.add(root)
        while work:
            node, rest = work[-1]
            for child in rest:
                if child not in number:
                    number[child] = low[child] = len(number)
                    path.append(child)
                    on_path.add(child)
                    work.append((child, iter(successors[child])))
                    break
                if child in on_path:
                    low[node] = min(low[node], number[child])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == number[node]:
                    members: list[int] = []
                    while not members or members[-1] != node:
                        members.append(path.pop())
                    on_path.difference_update(members)
                    yield members
