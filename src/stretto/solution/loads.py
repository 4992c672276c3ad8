"""How busy a schedule keeps the machine, and how long it takes in all.

    CUDA  held 1,210 of 1,325 cycles    91 %                 Load
    cycles(n) = 4,314 + 1,325 × n       n iterations         Prediction

Everything follows from the schedule: loads from its reservation table, times from its starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stretto.loop import Loop
from stretto.machine import Machine
from stretto.solution import ScheduleAnalysis, TableRow


@dataclass(frozen=True, slots=True)
class Load:
    """What an iteration takes of a slot or of a pool."""

    name: str
    capacity: int
    """What there is of it in one cycle."""
    held: int
    """Cycles of a slot, or units of a pool in a cycle, summed up over one interval."""
    ii: int
    limiting: bool
    """Whether it asks for the MII on its own."""
    id: int | None = None
    """The number of a slot."""

    @property
    def available(self) -> int:
        """What there is of it in one interval."""
        return self.capacity * self.ii

    @property
    def utilization(self) -> float:
        """The part that is held, 0 to 1."""
        return self.held / self.available


def slot_loads(analysis: ScheduleAnalysis, machine: Machine) -> tuple[Load, ...]:
    """The limited slots that are held, as the machine lists them."""
    held = _sums(analysis.table, lambda row: row.held)
    return tuple(
        _load(analysis, slot.name, slot.capacity, held[slot.name], slot.id)
        for slot in machine.slots
        if slot.name in held and slot.capacity is not None
    )


def pool_loads(analysis: ScheduleAnalysis, machine: Machine) -> tuple[Load, ...]:
    """The pools that are drawn from, as the machine lists them."""
    drawn = _sums(analysis.table, lambda row: row.drawn)
    return tuple(
        _load(analysis, pool.name, pool.cap, drawn[pool.name])
        for pool in machine.pools
        if pool.name in drawn
    )


def _sums(
    table: Iterable[TableRow], of: Callable[[TableRow], tuple[tuple[str, int], ...]]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in table:
        for name, amount in of(row):
            found[name] = found.get(name, 0) + amount * row.cycles
    return found


def _load(
    analysis: ScheduleAnalysis, name: str, capacity: int, held: int, id: int | None = None
) -> Load:
    assert analysis.ii is not None
    bounds = analysis.bounds
    limiting = bounds is not None and -(-held // capacity) >= bounds.mii > 1
    return Load(name, capacity, held, analysis.ii, limiting, id)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The cycles of the loop by its trip count, as the schedule has them."""

    fixed: int
    """Cycles beside those of the iterations: the last one's way to its end."""
    per_iteration: int
    """The II."""
    prologue: int
    """Cycles until the first step in which all stages run."""

    def cycles(self, iterations: int) -> int:
        """From the start of the first iteration to the end of the last; 0 for none."""
        return self.fixed + self.per_iteration * iterations if iterations else 0

    @property
    def epilogue(self) -> int:
        """Cycles from when no iteration starts any more to the end: what is fixed."""
        return self.fixed


def prediction(loop: Loop, analysis: ScheduleAnalysis) -> Prediction:
    """How long a schedule takes; the loop with its costs."""
    ii, starts = analysis.ii, analysis.starts
    assert ii is not None
    last = max(starts[op.name] + op.completion for op in loop.ops)
    return Prediction(last - ii, ii, (analysis.stage_count - 1) * ii)
