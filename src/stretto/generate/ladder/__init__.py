"""What is tried at one II, cheap rungs first, and the serial schedule that is always at hand.

climb                       the rungs in order, until one gives a placement whose rings fit
rau                         the first rung: seating by cycle, pushing out what is in the way
rings                       do the rings fit, and if not: cap them, move fillers later
refusals                    why an II was refused
serial                      one operation after the other: no search

Here is what a rung comes to: a placement, or how far it came and why it stopped there.

    II 14   load @0   write  ──►  `write` wants tp_smem_wr at cycle 7: held by `load` (1 of 1)

A refusal is made from the placement in which an operation found no seat: the window its seated
neighbours left it, and what stood in the table there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.machine import SPACES
from stretto.problem.registers import RULE
from stretto.resources import has_row_words
from stretto.resources.table import Conflict, ReservationTable
from stretto.solution import Refusal

if TYPE_CHECKING:
    from stretto.generate.ladder.refusals import Stuck
    from stretto.generate.seating.partial import Partial

_SAMPLES = 4
"""Starts of a window whose conflicts a refusal shows; they are spread evenly over it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one rung, or of a whole ladder, at one II."""

    placement: Partial | None
    """Complete, and its rings fit; None: not found."""
    partial: Partial
    """The largest placement reached, for the next rung to resume."""
    refusal: Refusal | None
    """Why there is no placement; None when there is one, or when nothing was tried."""
    stuck: Stuck | None = None
    """Where a plan ended without one: why is yet to be worked out."""


def refusal_for(
    partial: Partial,
    i: int,
    rung: str,
    window: tuple[int, int] | None = None,
    table: ReservationTable | None = None,
) -> Refusal:
    """Why an operation that is not seated finds no seat beside those that are.

    `window`: where it was sought, if narrower than its seated neighbours leave it. `table`: what
    they hold of what it wants, for whoever has it already.
    """
    problem, ii = partial.problem, partial.ii
    low, high = partial.window(i) if window is None else window
    group = problem.group[i]
    conflicts = _conflicts(partial, i, low, high, table)
    if conflicts:
        reason = str(conflicts[0])
        limit = _limit(conflicts[0])
    elif high < low:
        reason, limit = _closed(partial, i, low, high)
    else:
        reason, limit = f"`{problem.names[i]}` had no seat that an arm would propose", "arms"
    stage = partial.group_stage(i)
    stage = max(0, low) // ii if stage is None else stage
    rows: dict[int, int] = {}
    if has_row_words(problem.machine):
        rows = {c.cycle: partial.row(c.cycle) for c in conflicts}
    return Refusal(
        ii,
        reason,
        rung=rung,
        op=problem.names[i],
        uses=problem.vectors[i].uses,
        window=(low, min(high, low + ii - 1)),
        rows=tuple(sorted(rows.items())),
        limit=limit,
        group=() if group is None else tuple(problem.names[m] for m in problem.members[group]),
        stage=stage,
        order=order_at(partial, i, stage, low),
    )


def order_at(partial: Partial, i: int, stage: int, start: int) -> int:
    """How many seated operations of a stage come before one that starts there."""
    rank, ii = partial.problem.rank, partial.ii
    return sum(
        other // ii == stage and (other, rank[j]) < (start, rank[i])
        for j, other in enumerate(partial.starts)
        if other is not None and j != i
    )


def overflow_refusal(ii: int, reason: str, rung: str) -> Refusal:
    """Why a complete placement was refused: `reason` says which space, and the bytes."""
    first = reason.split(" ", 1)[0]
    return Refusal(ii, reason, rung=rung, limit=first if first in (*SPACES, RULE) else "order")


def _conflicts(
    partial: Partial, i: int, low: int, high: int, table: ReservationTable | None
) -> list[Conflict]:
    """Conflicts at some starts of the window; none if it is empty or there is a seat in it."""
    problem = partial.problem
    vector = problem.vectors[i]
    high = min(high, low + partial.ii - 1)
    if high < low:
        return []
    table = table or partial.beside(i)
    if table.earliest(vector, low, high) is not None:
        return []
    step = max(1, (high - low + 1) // _SAMPLES)
    found = (table.conflict(vector, s, problem.names[i]) for s in range(low, high + 1, step))
    return [conflict for conflict in found if conflict is not None]


def _limit(conflict: Conflict) -> str:
    return conflict.use.slot if conflict.use is not None else conflict.pool or ""


def _closed(partial: Partial, i: int, low: int, high: int) -> tuple[str, str]:
    """Who closed the window of an operation, and by which rule."""
    problem, ii, name = partial.problem, partial.ii, partial.problem.names[i]
    why: list[str] = []
    for other, latency, distance in problem.preds[i]:
        start = partial.starts[other]
        if start is not None and start + latency - ii * distance == low:
            why.append(_after(problem.names[other], start, latency, distance))
            break
    for other, latency, distance in problem.succs[i]:
        start = partial.starts[other]
        if start is not None and start - latency + ii * distance == high:
            why.append(_before(problem.names[other], start, latency, distance))
            break
    rule = "dependence"
    stage, last = partial.group_stage(i), problem.max_stage[i]
    if last is not None and high == (last + 1) * ii - 1:
        why.append(f"stage {last} is its last")
        rule = "depth"
    if stage is not None:
        why.append(f"its group stands in stage {stage}")
        rule = "group"
    if not why:
        why.append("by the longest paths from and to what is seated")
    window = f"from {low} on and until {high}, at no time both"
    return f"`{name}` may start {window} ({'; '.join(why)}; II {ii})", rule


def _after(name: str, start: int, latency: int, distance: int) -> str:
    ready = f"start {start} + latency {latency}, distance {distance}"
    return f"`{name}` is ready at {start + latency} ({ready})"


def _before(name: str, start: int, latency: int, distance: int) -> str:
    return f"`{name}` starts at {start} and waits {latency} for it, distance {distance}"
