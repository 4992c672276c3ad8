"""Orders of some operations that respect their dependences.

    {load, write, read}, load ──► read      load write read · load read write · write load read

All of them while they are few, else a sample that is the same on every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from stretto.generate.problem import Problem

EXHAUSTIVE = 8
"""More operations than this are always sampled."""


def orders(
    problem: Problem, ops: Sequence[int], most: int, *, seed: int = 0
) -> Iterator[tuple[int, ...]]:
    """At most `most` orders in which no operation comes before one it waits for.

    The first keeps the order given as far as dependences let it. If there are more than `most`,
    the others are drawn by chance from `seed`, each at most once.
    """
    before = _before(problem, ops)
    if len(ops) <= EXHAUSTIVE and sum(1 for _ in islice(_all(ops, before), most + 1)) <= most:
        yield from _all(ops, before)
        return
    first = _drawn(ops, before, None)
    seen = {first}
    yield first
    chance = Random(seed)
    for _ in range(most - 1):
        order = _drawn(ops, before, chance)
        if order not in seen:
            seen.add(order)
            yield order


def _before(problem: Problem, ops: Sequence[int]) -> dict[int, set[int]]:
    """Those of the operations that each waits for in its own iteration, directly or not."""
    chosen = set(ops)
    first = min((problem.rank[i] for i in ops), default=0)
    before: dict[int, set[int]] = {}
    for i in ops:
        seen: set[int] = set()
        front = [i]
        while front:
            for arc in problem.preds[front.pop()]:
                if arc.distance or problem.rank[arc.other] < first:
                    continue
                if arc.other not in seen:
                    seen.add(arc.other)
                    front.append(arc.other)
        before[i] = seen & chosen
    return before


def _all(ops: Sequence[int], before: dict[int, set[int]]) -> Iterator[tuple[int, ...]]:
    """Every order, those that keep the given one longest first."""
    taken: list[int] = []
    done: set[int] = set()

    def extend() -> Iterator[tuple[int, ...]]:
        if len(taken) == len(ops):
            yield tuple(taken)
            return
        for i in ops:
            if i not in done and before[i] <= done:
                taken.append(i)
                done.add(i)
                yield from extend()
                taken.pop()
                done.discard(i)

    yield from extend()


def _drawn(
    ops: Sequence[int], before: dict[int, set[int]], chance: Random | None
) -> tuple[int, ...]:
    """One order by chance, or the plain one. `random()` is the same on every version of Python."""
    rest, done, order = list(ops), set[int](), list[int]()
    while rest:
        free = [i for i in rest if before[i] <= done]
        pick = free[0 if chance is None else int(chance.random() * len(free))]
        rest.remove(pick)
        done.add(pick)
        order.append(pick)
    return tuple(order)
