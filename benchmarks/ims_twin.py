"""Iterative modulo scheduling as one would write it on the first day, in Python.

    counts[resource][cycle] += amount        cycle by cycle, start by start, no bits, no skipping

The naive twin of `ims/ims.cpp`: the same decisions in the same order (Rau, 1994), so that the two
find the same starts at the same II; the tests compare them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import process_time

from ims_process import Flat, ImsResult

Needs = dict[tuple[int, int], int]
"""(resource, cycles after the start modulo II) to the amount held there."""


def run_twin(problem: Flat, budget: int, seconds: float = 60.0) -> ImsResult:
    """The first II from the MII on at which everything finds a seat."""
    began = process_time()
    ii = problem.mii
    while ii <= problem.last_ii and process_time() - began <= seconds:
        attempt = _Attempt(problem, ii)
        if attempt.possible and attempt.run(budget * problem.operations, began + seconds):
            first = min(attempt.start.values(), default=0)
            starts = tuple(attempt.start[op] - first for op in range(problem.operations))
            stages = max(starts, default=-ii) // ii + 1
            return ImsResult(budget, True, ii, stages, process_time() - began, starts)
        ii += 1
    return ImsResult(budget, False, ii, 0, process_time() - began, ())


@dataclass
class _Attempt:
    """Everything of one II."""

    problem: Flat
    ii: int
    start: dict[int, int] = field(default_factory=dict[int, int])
    last: dict[int, int] = field(default_factory=dict[int, int])

    def __post_init__(self) -> None:
        problem, ii = self.problem, self.ii
        ops = range(problem.operations)
        self.counts = [[0] * ii for _ in problem.capacities]
        self.needs: list[Needs] = [{} for _ in ops]
        self.order: list[list[tuple[int, int]]] = [[] for _ in ops]
        for op, resource, offset, duration, amount in problem.uses:
            for k in range(offset, offset + duration):
                cell = (resource, k % ii)
                self.needs[op][cell] = self.needs[op].get(cell, 0) + amount
        self.possible = all(
            amount <= problem.capacities[resource]
            for needs in self.needs
            for (resource, _), amount in needs.items()
        )
        self.out: list[list[tuple[int, int]]] = [[] for _ in ops]
        self.into: list[list[tuple[int, int]]] = [[] for _ in ops]
        for source, target, latency, distance in problem.dependences:
            self.out[source].append((target, latency - ii * distance))
            self.into[target].append((source, latency - ii * distance))

    def heights(self) -> list[int]:
        """Longest paths to the end of the iteration."""
        height = [0] * self.problem.operations
        risen = True
        while risen:
            risen = False
            for op in reversed(range(self.problem.operations)):
                asked = max((height[other] + wait for other, wait in self.out[op]), default=0)
                if asked > height[op]:
                    height[op], risen = asked, True
        return height

    def run(self, budget: int, until: float) -> bool:
        """Whether everybody is seated before the budget is spent."""
        height = self.heights()
        self.by_rank = sorted(range(self.problem.operations), key=lambda op: (-height[op], op))
        self.rank = {op: i for i, op in enumerate(self.by_rank)}
        waiting = set(range(self.problem.operations))
        for _ in range(budget):
            if not waiting or process_time() > until:
                break
            op = self.by_rank[min(waiting)]
            waiting |= self.seat(op)
            waiting.discard(self.rank[op])
        return not waiting

    def seat(self, op: int) -> set[int]:
        """Seat an operation; the ranks of those that stand up for it."""
        early = max(
            (self.start[other] + wait for other, wait in self.into[op] if other in self.start),
            default=0,
        )
        early = max(0, early)
        up: set[int] = set()
        for start in range(early, early + self.ii):
            if self.fits(op, start):
                break
        else:
            last = self.last.get(op, -1)
            start = early if last < early else last + 1
            while (cell := self.full_cell(op, start)) is not None:
                up.add(self.unseat(self.holder(*cell)))
        self.start[op] = self.last[op] = start
        for (resource, k), amount in self.needs[op].items():
            self.counts[resource][(start + k) % self.ii] += amount
        for other, wait in self.out[op]:
            if other != op and other in self.start and self.start[other] < start + wait:
                up.add(self.unseat(other))
        return up

    def fits(self, op: int, start: int) -> bool:
        """Whether nobody is in the way."""
        return all(
            self.counts[resource][(start + k) % self.ii] + amount
            <= self.problem.capacities[resource]
            for (resource, k), amount in self.needs[op].items()
        )

    def full_cell(self, op: int, start: int) -> tuple[int, int] | None:
        """The resource and cycle to clear next: use by use, the last cycle of each first."""
        for resource, k in self.cells(op):
            cycle = (start + k) % self.ii
            amount = self.needs[op][resource, k]
            if self.counts[resource][cycle] + amount > self.problem.capacities[resource]:
                return resource, cycle
        return None

    def cells(self, op: int) -> list[tuple[int, int]]:
        """What it holds, use by use, each from its last cycle back."""
        if not self.order[op]:
            for user, resource, offset, duration, _ in self.problem.uses:
                if user == op:
                    held = range(offset + duration - 1, offset - 1, -1)
                    self.order[op] += [(resource, k % self.ii) for k in held]
        return self.order[op]

    def holder(self, resource: int, cycle: int) -> int:
        """Of those that hold a resource at a cycle, the one that ranks last."""
        return max(
            (
                op
                for op, start in self.start.items()
                if (resource, (cycle - start) % self.ii) in self.needs[op]
            ),
            key=lambda op: self.rank[op],
        )

    def unseat(self, op: int) -> int:
        """Take an operation out; its rank."""
        start = self.start.pop(op)
        for (resource, k), amount in self.needs[op].items():
            self.counts[resource][(start + k) % self.ii] -= amount
        return self.rank[op]
