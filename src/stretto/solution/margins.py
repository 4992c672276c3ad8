"""How far each operation could move while the others stand still, and who is in its way.

    load ──latency 8──► mma ──latency 5──► store         earlier          later
       0                 10                  15     mma  2, because of    0, because of store
                                                         load

By dependences alone: whether the slots are free there is for the reservation table to say.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.loop import Dependence, Loop
from stretto.solution import ScheduleAnalysis


@dataclass(frozen=True, slots=True)
class Margin:
    """The freedom of one operation."""

    earlier: int
    """Cycles; no farther than cycle 0."""
    later: int | None
    """Cycles; None: nothing waits for it."""
    held_earlier: tuple[str, ...] = ()
    """The operations whose dependences leave no more; none: cycle 0 does, or all is open."""
    held_later: tuple[str, ...] = ()


def slack(dependence: Dependence, ii: int, starts: dict[str, int]) -> int:
    """Cycles that are left between what a dependence asks for and what a schedule gives it."""
    d = dependence
    return starts[d.dst] + ii * d.distance - starts[d.src] - d.latency


def margins(loop: Loop, analysis: ScheduleAnalysis) -> dict[str, Margin]:
    """The freedom of every operation; a dependence on itself binds nothing."""
    ii, starts = analysis.ii, analysis.starts
    assert ii is not None
    before: dict[str, list[tuple[int, str]]] = {name: [] for name in starts}
    after: dict[str, list[tuple[int, str]]] = {name: [] for name in starts}
    for d in loop.dependences:
        if d.src != d.dst:
            left = slack(d, ii, starts)
            before[d.dst].append((left, d.src))
            after[d.src].append((left, d.dst))
    found: dict[str, Margin] = {}
    for name, start in starts.items():
        earlier = min([start, *(left for left, _ in before[name])])
        later = min((left for left, _ in after[name]), default=None)
        found[name] = Margin(
            earlier, later, _whose(before[name], earlier), _whose(after[name], later)
        )
    return found


def _whose(rows: list[tuple[int, str]], least: int | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for left, name in rows if left == least))
