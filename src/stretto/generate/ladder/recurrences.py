"""Recurrences as what they are: operations that cannot move freely against each other.

    load_o ─532─► rescale ─138─► store ─96─► pv ─559,+1─► load_o        at II 1325: no slack at all

Inside a recurrence every pair of operations has a longest path both ways, which bounds how far
apart they may start. With these distances any choice that respects the seats so far can be
completed; only the table can object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.bounds.closure import longest_paths
from stretto.generate.problem import Problem
from stretto.problem.paths import longest_from

SMALL = 24
"""Up to this size plain lists are faster than loading and calling NumPy."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """One strongly connected component at one II."""

    members: tuple[int, ...]
    apart: tuple[tuple[int, ...], ...]
    """apart[a][b]: how much later than a must b start, at least, by position in `members`."""

    def slack(self, a: int, b: int) -> int:
        """How far two members may still move against each other."""
        return -(self.apart[a][b] + self.apart[b][a])


def recurrences(problem: Problem, ii: int) -> tuple[Recurrence, ...]:
    """Every recurrence of a problem, the tightest first."""
    found = [_recurrence(problem, ii, members) for members in problem.recurrences]
    return tuple(sorted(found, key=lambda r: (_tightness(problem, r), -len(r.members))))


def _tightness(problem: Problem, recurrence: Recurrence) -> int:
    tightest: list[int] = []
    for a in range(1, len(recurrence.members)):
        problem.deadline.check()
        tightest.append(min(recurrence.slack(a, b) for b in range(a)))
    return min(tightest)


def _recurrence(problem: Problem, ii: int, members: Sequence[int]) -> Recurrence:
    graph = problem.between.within(members)
    if len(members) <= SMALL:
        # Every member is reached: the component is strongly connected.
        rows = [
            tuple(value or 0 for value in longest_from(graph.succs, source, ii, problem.deadline))
            for source in range(len(members))
        ]
        return Recurrence(tuple(members), tuple(rows))
    _, longest = longest_paths(graph, ii, problem.deadline)
    apart: list[tuple[int, ...]] = []
    for row in longest.T:
        problem.deadline.check()
        apart.append(tuple(map(int, row.tolist())))
    return Recurrence(tuple(members), tuple(apart))
