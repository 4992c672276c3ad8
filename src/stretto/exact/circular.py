"""Rows that all iterations share: intervals on a circle of II cycles.

    0            II            a hold that runs over the end comes in again at the start:
    |██      ████|██           drawn once where it stands and once a circle earlier, an
    |            |             ordinary no-overlap or cumulative constraint sees both ends

    Σ occupancy of the holders in every modulo cycle <= capacity

A hold of q × II + r cycles fills q units all the way round and one more for r cycles. It starts in
[0, 2 × II), so two or three copies, a circle apart, show all of it that lies in the window [0, II);
outside the window the constraint sees a part of what it sees inside, and asks for nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from stretto.exact.cp import never


@dataclass(frozen=True, slots=True)
class Sector:
    """Something on the circle, from `offset` cycles after a cycle variable."""

    cycle: cp_model.IntVar
    offset: int
    duration: int
    amount: int
    present: cp_model.IntVar | None = None
    """Whether it is held at all; None: always."""


def capacity(
    model: cp_model.CpModel, ii: int, held: Sequence[Sector], limit: int
) -> cp_model.Constraint:
    """No modulo cycle has more than `limit` in use."""
    around = sum(h.amount * (h.duration // ii) for h in held if h.present is None)
    left = limit - around
    rows = [row for h in held for row in _intervals(model, ii, h)]
    if left < 0 or any(amount > left for _, amount, always in rows if always):
        return never(model)
    amounts = [amount for _, amount, _ in rows]
    if amounts and 2 * min(amounts) > left and max(amounts) <= left:
        return model.add_no_overlap([interval for interval, _, _ in rows])
    most = min(left, sum(amounts))  # a machine may have more than the solver can count
    return model.add_cumulative([interval for interval, _, _ in rows], amounts, most)


def _intervals(
    model: cp_model.CpModel, ii: int, held: Sector
) -> Iterator[tuple[cp_model.IntervalVar, int, bool]]:
    """Intervals that are enough to see everything in [0, II): with amount, and if always there."""
    whole, rest = divmod(held.duration, ii)
    if held.present is not None and whole:
        circle = model.new_optional_fixed_size_interval_var(0, ii, held.present, "")
        yield circle, held.amount * whole, False
    if not rest:
        return
    offset = held.offset % ii
    circles = 2 if offset + rest <= ii else 3
    for back in range(0, circles * ii, ii):
        start = held.cycle + (offset - back)
        if held.present is None:
            yield model.new_fixed_size_interval_var(start, rest, ""), held.amount, True
        else:
            row = model.new_optional_fixed_size_interval_var(start, rest, held.present, "")
            yield row, held.amount, False
