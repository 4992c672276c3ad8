"""Which operations share a hold from the start: sets chosen before anything is seated.

    level 0   read0 read1 read2 read3 read4 │ read5 read6        cap 5: one set of five, one of two
    level 1   mma0 …

Operations of one level (the longest way from the beginning of the iteration, in operations) never
wait for each other, so sets of one level keep the graph free of cycles, at any size. Small sets of
neighbouring levels are then joined where no path leads from one to the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.generate.kernel.core import wound
from stretto.generate.problem import Problem
from stretto.generate.seating.fusing import closes_cycle
from stretto.generate.seating.partial import fused_vector
from stretto.problem.fusion import enclosing

LOOKED_AT = 200_000
"""Dependences followed, over all joins that are tried."""


def shared_sets(problem: Problem, ii: int) -> list[tuple[int, ...]]:
    """Sets of operations that may share a hold at this II and above, each of at least two."""
    classes = [(key, ops) for key, ops in problem.fusion.alike.items() if len(ops) > 1]
    if not classes:
        return []
    level, ready = _levels(problem)
    work = LOOKED_AT
    chosen: dict[int, tuple[int, ...]] = {}
    for key, ops in classes:
        cap = problem.fusion.cap(key)
        ordered = sorted(ops, key=lambda i: (level[i], ready[i], i))
        sets: list[tuple[int, ...]] = []
        for i in ordered:
            last = sets[-1] if sets else ()
            fits = bool(last) and len(last) < cap and level[last[0]] == level[i]
            if fits and _may_share(problem, (*last, i), ii):
                sets[-1] = (*last, i)
            else:
                sets.append((i,))
        joined: list[tuple[int, ...]] = []
        for members in sets:
            problem.deadline.check()
            before = joined[-1] if joined else ()
            if before and len(before) + len(members) <= cap and work > 0:
                wider = tuple(sorted((*before, *members)))
                work -= len(problem.between.edges)
                others = {m[0]: m for m in (*chosen.values(), *joined[:-1]) if len(m) > 1}
                if _may_share(problem, wider, ii) and not closes_cycle(
                    problem, {**others, wider[0]: wider}, wider
                ):
                    joined[-1] = wider
                    continue
            joined.append(tuple(sorted(members)))
        chosen.update({members[0]: members for members in joined if len(members) > 1})
    return list(chosen.values())


def _levels(problem: Problem) -> tuple[list[int], list[int]]:
    """By operation: the longest way to it inside an iteration, in operations and in cycles."""
    level, ready = [0] * problem.size, [0] * problem.size
    for i in problem.graph.order:
        for arc in problem.between.inside[i]:
            level[arc.other] = max(level[arc.other], level[i] + 1)
            ready[arc.other] = max(ready[arc.other], ready[i] + arc.latency)
    return level, ready


def _may_share(problem: Problem, members: Sequence[int], ii: int) -> bool:
    """Nothing nested in another, no carried dependence that equal starts would break, and room."""
    chosen = set(members)
    claims = problem.holds.claims_of(fused_vector(problem, members))
    limits = problem.holds.limits
    if any(amount > limits[column] for column, _, _, amount in wound(claims, ii)):
        return False
    return not any(
        chosen.intersection(enclosing(problem.loop, i))
        or any(arc.other in chosen and arc.latency > ii * arc.distance for arc in problem.succs[i])
        for i in members
    )
