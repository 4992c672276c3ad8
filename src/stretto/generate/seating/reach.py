"""First and last starts that longest paths leave each operation beside all that are seated.

    load @0 ──8──► (mma) ──16──► (store)      store: from 24 on, before mma has a seat
       ▲                            │         and so that load's next turn is not late:
       └───────── 10, +1 ───────────┘         until II - 10

The bounds hold for every completion of what is seated: an empty window says that there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.generate.problem import Problem
from stretto.generate.seating.partial import UNBOUNDED, Partial
from stretto.problem.paths import earliest, lower_from, raise_from

_ROUNDS = 4
"""How often groups raise each other before anything is seated; a bound, not a fixed point."""


class Reach:
    """Bounds on the starts of one placement in the making."""

    def __init__(self, problem: Problem, ii: int) -> None:
        self.problem = problem
        self.ii = ii
        self.low = earliest(problem.between, ii, problem.deadline)
        self.high = [UNBOUNDED] * problem.size
        for i, last in enumerate(problem.max_stage):
            if last is not None:
                self._lower(i, (last + 1) * ii - 1)
        for _ in range(_ROUNDS if problem.members else 0):
            for members in problem.members:
                self.floor(members, max(self.low[i] // ii + problem.ahead[i] for i in members))

    def take(self, partial: Partial) -> None:
        """Count in everything that a placement has seated."""
        for i, start in enumerate(partial.starts):
            if start is not None:
                self.seat(i, start)

    def seat(self, i: int, start: int) -> None:
        """Count in one seat."""
        self._raise(i, start)
        self._lower(i, start)
        group = self.problem.group[i]
        if group is not None:
            members, ahead = self.problem.members[group], self.problem.ahead
            stage = start // self.ii + ahead[i]
            self.floor(members, stage)
            for member in members:
                self._lower(member, (stage - ahead[member] + 1) * self.ii - 1)

    def floor(self, members: Sequence[int], stage: int) -> None:
        """The last member of a group starts no earlier than a stage, the others ahead of it."""
        for member in members:
            self._raise(member, (stage - self.problem.ahead[member]) * self.ii)

    def _raise(self, i: int, value: int) -> None:
        if value > self.low[i]:
            self.low[i] = value
            raise_from(self.problem.succs, self.ii, self.low, i)

    def _lower(self, i: int, value: int) -> None:
        if value < self.high[i]:
            self.high[i] = value
            lower_from(self.problem.preds, self.ii, self.high, i)
