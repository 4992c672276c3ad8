"""The recurrence bound: what a value carried from iteration to iteration costs.

    mma ──16──► add ──4──► mma (+1 iteration)        ceil((16 + 4) / 1) = 20

Along a cycle of dependences ``II × Σ distance >= Σ latency``, so the II is at least the largest
ratio of latency to distance over all cycles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from stretto.deadline import NEVER, Deadline
from stretto.problem import Edge, Graph
from stretto.solution import Part, Witness


def recurrence_bound(graph: Graph, deadline: Deadline = NEVER) -> Witness:
    """The largest ``ceil(Σ latency / Σ distance)`` over the cycles, and a cycle that has it.

    Newton's iteration on the ratio λ (W. Dinkelbach, "On nonlinear fractional programming",
    1967; E. Lawler, "Combinatorial Optimization", 1976, for cycles): a cycle with
    ``Σ latency - λ × Σ distance > 0`` has a larger ratio, which is the next λ; when there is
    none, λ is the maximum. Cycles are found as cycles of parent pointers (R. Tarjan, 1981;
    surveyed by B. Cherkassky and A. Goldberg, "Negative-cycle detection algorithms", 1999), long
    before Bellman-Ford runs out of sweeps. λ starts at 0, so that a cycle without latency limits
    nothing; it is a fraction of integers, so the result is exact at any size.
    """
    best: Sequence[Edge] = ()
    latency, distance = 0, 1
    for members in graph.components:
        if len(members) == 1 and not _gains(graph, members[0], latency, distance):
            continue
        edges = graph.within(members).edges
        cycle = best_cycle(edges, len(members), (latency, distance), deadline)
        if cycle:
            best = [Edge(members[e.src], members[e.dst], e.latency, e.distance) for e in cycle]
            latency, distance = ratio(cycle)
    if not best:
        return Witness("none")
    first = min(range(len(best)), key=lambda i: best[i].src)
    parts = [
        Part((graph.names[e.src],), e.latency, e.distance) for e in (*best[first:], *best[:first])
    ]
    total, capacity = sum(e.latency for e in best), sum(e.distance for e in best)
    return Witness("cycle", total=total, capacity=capacity, parts=tuple(parts))


def describe_cycle(witness: Witness) -> str:
    """The cycle of a recurrence witness, in words and numbers."""
    names = [part.ops[0] for part in witness.parts]
    way = " -> ".join([*names, names[0]])
    return f"{way} (latency {witness.total} over distance {witness.capacity})"


def best_cycle(
    edges: Sequence[Edge], nodes: int, above: tuple[int, int], deadline: Deadline
) -> Sequence[Edge]:
    """The cycle of the largest ratio, where that is larger than a given one; or nothing.

    A cycle of latency over no distance, or less, has no ratio: the first that is seen is returned.
    """
    best: Sequence[Edge] = ()
    latency, distance = above
    while cycle := _better_cycle(edges, nodes, latency, distance, deadline):
        best, (latency, distance) = cycle, ratio(cycle)
        if distance <= 0:
            break
    return best


def ratio(cycle: Iterable[Edge]) -> tuple[int, int]:
    """Latency over distance of a cycle, in lowest terms."""
    latency, distance = 0, 0
    for edge in cycle:
        latency += edge.latency
        distance += edge.distance
    shared = gcd(latency, distance)
    return latency // shared, distance // shared


def _gains(graph: Graph, node: int, latency: int, distance: int) -> bool:
    """Whether what waits for itself does so at a ratio above latency / distance."""
    for other, gain, apart in graph.succs[node]:
        if other == node and gain * distance > latency * apart:
            return True
    return False


def _better_cycle(
    edges: Sequence[Edge], nodes: int, latency: int, distance: int, deadline: Deadline
) -> Sequence[Edge]:
    """A cycle of ratio above latency / distance, or nothing if there is none.

    Longest paths from everywhere at once, under ``edge.latency - λ × edge.distance`` (scaled by
    λ's denominator): they settle unless a cycle gains, and then the parents show one.
    """
    steps = [
        (src, dst, gain * distance - latency * apart, i)
        for i, (src, dst, gain, apart) in enumerate(edges)
    ]
    value = [0] * nodes
    parent = [-1] * nodes
    moved = True
    while moved:
        deadline.check()
        moved = False
        for src, dst, weight, i in steps:
            reached = value[src] + weight
            if reached > value[dst]:
                value[dst] = reached
                parent[dst] = i
                moved = True
        cycles = _parent_cycles(edges, parent) if moved else []
        if cycles:
            return _best(cycles)
    return ()


def _best(cycles: Sequence[Sequence[Edge]]) -> Sequence[Edge]:
    """The cycle of the largest ratio; the first of equals, or of those that have none."""
    best = cycles[0]
    top, bottom = ratio(best)
    for cycle in cycles[1:]:
        if bottom <= 0:
            break
        latency, distance = ratio(cycle)
        if distance <= 0 or latency * bottom > top * distance:
            best, top, bottom = cycle, latency, distance
    return best


def _parent_cycles(edges: Sequence[Edge], parent: Sequence[int]) -> list[list[Edge]]:
    """Every cycle of the parent pointers, each in the direction of its edges."""
    cycles: list[list[Edge]] = []
    seen_from = [-1] * len(parent)
    for start in range(len(parent)):
        at = start
        while seen_from[at] < 0 and parent[at] >= 0:
            seen_from[at] = start
            at = edges[parent[at]].src
        if seen_from[at] == start and parent[at] >= 0:
            cycle: list[Edge] = []
            node = at
            while not cycle or node != at:
                cycle.append(edges[parent[node]])
                node = cycle[-1].src
            cycles.append(cycle[::-1])
    return cycles
