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
from stretto.problem import fused_vector
from stretto.problem.fusion import enclosing

LOOKED_AT = 200_000
"""Dependences followed, over all joins that are tried."""


def shared_sets(problem: Problem, ii: int) -> list[tuple[int, ...]]:
    """Sets of operations that may share a hold at this II and above, each of at least two."""
    classes = [(key, ops) for key, ops in problem.fusion.alike.items() if len(ops) > 1]
    if not classes:
        return []
    level, ready = _levels(problem)
    chosen = _Chosen(problem, ii)
    for key, ops in classes:
        cap = problem.fusion.cap(key)
        sets: list[tuple[int, ...]] = []
        for i in sorted(ops, key=lambda i: (level[i], ready[i], i)):
            last = sets[-1] if sets else ()
            alike = bool(last) and len(last) < cap and level[last[0]] == level[i]
            if alike and _may_share(problem, (*last, i), ii):
                sets[-1] = (*last, i)
            else:
                sets.append((i,))
        chosen.join(sets, cap)
    return list(chosen.sets.values())


class _Chosen:
    """Sets that were chosen, and whether one of them spans levels: then others are looked at."""

    def __init__(self, problem: Problem, ii: int) -> None:
        self.problem = problem
        self.ii = ii
        self.sets: dict[int, tuple[int, ...]] = {}
        self.spans = False
        self.work = LOOKED_AT

    def join(self, sets: Sequence[tuple[int, ...]], cap: int) -> None:
        """Take sets of one level each; two that follow each other as one, where that may be."""
        before: tuple[int, ...] = ()
        for members in sets:
            self.problem.deadline.check()
            wider = tuple(sorted((*before, *members)))
            if before and len(wider) <= cap and self._joins(before, wider):
                before = wider
                continue
            before = self._taken(tuple(sorted(members)))

    def _joins(self, before: tuple[int, ...], wider: tuple[int, ...]) -> bool:
        """Whether a set may grow by another of a later level; it is then the chosen one."""
        if self.work <= 0 or not _may_share(self.problem, wider, self.ii):
            return False
        kept = self.sets.pop(before[0], None)
        if self._closes_cycle(wider):
            if kept is not None:
                self.sets[before[0]] = kept
            return False
        self.sets[wider[0]] = wider
        self.spans = True
        return True

    def _taken(self, members: tuple[int, ...]) -> tuple[int, ...]:
        """A set of one level; each for itself where one that spans levels leads back to it."""
        if len(members) > 1:
            if self.spans and (self.work <= 0 or self._closes_cycle(members)):
                return members[:1]
            self.sets[members[0]] = members
        return members

    def _closes_cycle(self, members: tuple[int, ...]) -> bool:
        self.work -= len(self.problem.between.edges)
        return closes_cycle(self.problem, {**self.sets, members[0]: members}, members)


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
