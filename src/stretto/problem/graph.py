"""The dependences of a loop by number, in the order that settles them fastest.

    load ──8──► mma ──16──► store          operations in distance-0 topological order:
                 ▲ └─16 (+1)─┐             one sweep carries a value down a whole iteration,
                 └───────────┘             each further sweep over one more carried arc

Every longest-path question of the house relaxes arcs in this order (`paths.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from stretto.errors import InfeasibleError
from stretto.loop import Fault, Loop, topological_order
from stretto.loop.parts import cached_property


class Edge(NamedTuple):
    """A dependence between operations by number."""

    src: int
    dst: int
    latency: int
    distance: int


class Arc(NamedTuple):
    """A dependence, seen from one end: the operation at the other, and its numbers."""

    other: int
    latency: int
    distance: int


made = cast("Callable[..., Any]", tuple.__new__)  # pyright: ignore[reportUnknownMemberType]
"""A named tuple of a tuple, in a third of the time that its own way takes."""
Arcs = tuple[tuple[Arc, ...], ...]
"""By operation: its arcs in one direction, in the order of the loop's dependences."""


@dataclass(frozen=True)
class Graph:
    """A loop's dependence graph; operations are numbered in program order."""

    names: tuple[str, ...]
    order: tuple[int, ...]
    """Operations in distance-0 topological order."""
    edges: tuple[Edge, ...]
    """In the order of the loop's dependences."""

    @cached_property
    def succs(self) -> Arcs:
        """Arcs by their source."""
        found: list[list[Arc]] = [[] for _ in self.names]
        for src, dst, latency, distance in self.edges:
            found[src].append(made(Arc, (dst, latency, distance)))
        return tuple(map(tuple, found))

    @cached_property
    def preds(self) -> Arcs:
        """Arcs by their destination."""
        found: list[list[Arc]] = [[] for _ in self.names]
        for src, dst, latency, distance in self.edges:
            found[dst].append(made(Arc, (src, latency, distance)))
        return tuple(map(tuple, found))

    @cached_property
    def rank(self) -> tuple[int, ...]:
        """Position of each operation in topological order."""
        found = [0] * len(self.order)
        for position, node in enumerate(self.order):
            found[node] = position
        return tuple(found)

    @cached_property
    def inside(self) -> Arcs:
        """Arcs by their source that stay in one iteration."""
        return tuple(tuple(arc for arc in arcs if arc.distance == 0) for arcs in self.succs)

    @cached_property
    def between(self) -> Graph:
        """The dependences between different operations.

        Those of an operation to itself hold at every II from the recurrence bound on.
        """
        edges = tuple([edge for edge in self.edges if edge[0] != edge[1]])
        return self if len(edges) == len(self.edges) else replace(self, edges=edges)

    @cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """Strongly connected components that contain a cycle, each in topological order."""
        carried = [edge for edge in self.edges if edge[3]]
        if not carried:
            return ()  # inside an iteration there is none
        succs, rank = self.succs, self.rank
        nodes = self._turning(carried)
        local = {node: k for k, node in enumerate(nodes)}
        between = [[local[arc[0]] for arc in succs[node] if arc[0] in local] for node in nodes]
        found = [
            tuple(sorted([nodes[k] for k in members], key=rank.__getitem__))
            for members in strong_components(between)
            if len(members) > 1
        ]
        alone = {edge[0] for edge in carried if edge[0] == edge[1]}.difference(*found)
        found += [(node,) for node in alone]
        return tuple(sorted(found, key=lambda members: rank[members[0]]))

    def _turning(self, carried: Iterable[Edge]) -> list[int]:
        """Operations that a cycle of several may lead through.

        It comes to them from where a dependence is carried to, and leads on to where one is
        carried from: one sweep each way.
        """
        apart = [edge for edge in carried if edge[0] != edge[1]]
        after, before = {edge[1] for edge in apart}, {edge[0] for edge in apart}
        succs = self.succs
        for node in self.order:
            if node in after:
                after.update([arc[0] for arc in succs[node]])
        found: list[int] = []
        for node in self.order[::-1]:
            if node in after:
                if node not in before and before.isdisjoint([arc[0] for arc in succs[node]]):
                    continue
                before.add(node)
                found.append(node)
        return found

    def within(self, members: Sequence[int]) -> Graph:
        """The part of some operations, numbered 0, 1, ... in the order given, a topological one."""
        local = {node: i for i, node in enumerate(members)}
        succs = self.succs
        edges = tuple(
            [
                made(Edge, (i, local[other], latency, distance))
                for i, node in enumerate(members)
                for other, latency, distance in succs[node]
                if other in local
            ]
        )
        names = tuple([self.names[node] for node in members])
        return Graph(names, tuple(range(len(members))), edges)

    def with_edges(self, more: Iterable[Edge]) -> Graph:
        """The graph with further dependences, none of them at distance 0."""
        return replace(self, edges=(*self.edges, *more))


def dependence_graph(loop: Loop) -> Graph:
    """The graph of a resolved loop; a cycle at distance 0 is an InfeasibleError."""
    order = topological_order(loop)
    if isinstance(order, Fault):
        raise InfeasibleError(order.message)
    edges = tuple([made(Edge, edge) for edge in loop.edges])
    return Graph(tuple([op.name for op in loop.ops]), order, edges)


def strong_components(successors: Sequence[Sequence[int]]) -> Iterable[list[int]]:
    """Every strongly connected component, those that others lead to first.

    R. Tarjan, "Depth-first search and linear graph algorithms" (1972), with a stack of its own
    so that no loop is too deep.
    """
    size = len(successors)
    number, low, done = [-1] * size, [0] * size, size
    count = 0
    path: list[int] = []
    for root in range(size):
        if number[root] >= 0:
            continue
        work = [(root, iter(successors[root]))]
        number[root] = low[root] = count
        count += 1
        path.append(root)
        while work:
            node, rest = work[-1]
            for child in rest:
                if number[child] < 0:
                    number[child] = low[child] = count
                    count += 1
                    path.append(child)
                    work.append((child, iter(successors[child])))
                    break
                if number[child] < low[node]:  # noqa: PLR1730 - a call takes longer
                    low[node] = number[child]
            else:
                work.pop()
                if work and low[node] < low[work[-1][0]]:
                    low[work[-1][0]] = low[node]
                if low[node] == number[node]:
                    members: list[int] = []
                    while not members or members[-1] != node:
                        members.append(path.pop())
                        number[members[-1]] = done  # no number of who is still on the path
                    yield members
