"""The group bound: members of one stage start less than an II apart.

    read ──7──► mma ──16──► write      read and write share a stage: 23 < II, so II >= 24
      ▲                        │
      └── 1 cycle, 1 stage ────┘       write starts at most II - 1 after read

Read from the last to the first, that is a dependence like any other: where `last` stands k stages
behind `first`, ``start[first] >= start[last] + 1 - II × (k + 1)``. With these the bound is the
largest ratio over all cycles, as it is for recurrences; a path of latency L over distance d between
two members of one stage gives ``ceil((L + 1) / (d + 1))``.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.deadline import NEVER, Deadline
from stretto.lower_bounds.recurrence import best_cycle, ratio
from stretto.problem import Compiled, Edge, strong_components
from stretto.solution import Part, Witness


def group_edges(problem: Compiled) -> list[Edge]:
    """All dependences, and what groups add: a node for each, before and after every member."""
    edges = list(problem.between.edges)
    for hub, members in enumerate(problem.members, problem.size):
        for i in members:
            edges.append(Edge(i, hub, 1, 1 - problem.ahead[i]))
            edges.append(Edge(hub, i, 0, problem.ahead[i]))
    return edges


def group_bound(problem: Compiled, recurrence: Witness, deadline: Deadline = NEVER) -> Witness:
    """What leader groups ask for beyond the recurrences; nothing where no II would do.

    A node for each group leads from each member to each: that takes as many edges as members.
    """
    size, edges = problem.size, group_edges(problem)
    nodes = size + len(problem.members)
    successors: list[list[int]] = [[] for _ in range(nodes)]
    for edge in edges:
        successors[edge.src].append(edge.dst)
    best: Sequence[Edge] = ()
    above = (recurrence.total, recurrence.capacity) if recurrence.bound > 1 else (1, 1)
    for component in strong_components(successors):
        if max(component) < size:
            continue
        local = {node: k for k, node in enumerate(sorted(component))}
        within = [
            Edge(local[e.src], local[e.dst], e.latency, e.distance)
            for e in edges
            if e.src in local and e.dst in local
        ]
        found = best_cycle(within, len(local), above, deadline)
        if found:
            back = sorted(component)
            best = [Edge(back[e.src], back[e.dst], e.latency, e.distance) for e in found]
            above = ratio(best)
            if above[1] <= 0:
                return Witness("none")
    return _witness(problem, best) if best else Witness("none")


def _witness(problem: Compiled, cycle: Sequence[Edge]) -> Witness:
    """The cycle from its first member on; steps between members of a group have both names."""
    size, names = problem.size, problem.names
    begin = min((k for k, edge in enumerate(cycle) if edge.src >= size), key=lambda k: cycle[k].dst)
    steps = [*cycle[begin + 1 :], *cycle[: begin + 1]]
    parts: list[Part] = []
    for step, after in zip(steps, [*steps[1:], steps[0]], strict=True):
        if step.dst >= size:
            stages = step.distance + after.distance
            parts.append(Part((names[step.src], names[after.dst]), 1, stages))
        elif step.src < size:
            parts.append(Part((names[step.src],), step.latency, step.distance))
    total, capacity = sum(e.latency for e in cycle), sum(e.distance for e in cycle)
    return Witness("group", names[steps[0].src], total, capacity, tuple(parts))
