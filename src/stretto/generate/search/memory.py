"""The one threshold that is monotone in the II: the bytes that any schedule needs.

II    256   512   768   1,024          copies that dependences force only fall as the II grows,
smem   ✗     ✗     ✓      ✓            so the first II that fits may be bisected
"""

from __future__ import annotations

from stretto.generate.ladder.rings import least_bytes
from stretto.generate.problem import Problem
from stretto.solution import Refusal


def _fits(problem: Problem, ii: int) -> bool:
    needed = least_bytes(problem, ii)
    return all(needed.get(space, 0) <= budget for space, budget in problem.rooms.budgets.items())


def enough_memory(problem: Problem, first: int, last: int) -> int:
    """The first II at which the bytes that any schedule needs fit.

    A path of latency l over distance d to a reader at distance r makes a life of (r - d) × II + l
    plus its completion, so r - d + ceil((l + completion) / II) copies: a number that only falls as
    the II grows, as does the largest of them. So this threshold may be bisected.
    """
    if not problem.rotating or _fits(problem, first):
        return first
    if not _fits(problem, last):
        return last + 1
    low, high = first, last
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(problem, middle) else (middle, high)
    return high


def starved(problem: Problem, first: int, through: int) -> Refusal:
    """Why every II from the first through the last of a run is refused."""
    needed = least_bytes(problem, first)
    space, budget = next((s, b) for s, b in problem.rooms.budgets.items() if needed.get(s, 0) > b)
    reason = (
        f"any schedule at II {first} needs {needed[space]:,} bytes of {space}; "
        f"the budget is {budget:,}"
    )
    return Refusal(first, reason, through=through, proved=True, limit=space)
