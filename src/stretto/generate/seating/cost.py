"""The cost of a placement: five components, compared one after the other and never added up.

    feasibility   pipe-slot   spill surcharge   bank pressure   structural distance   (anchors)
         0            0              85               3                  2                2700

The first is a veto: operations that the reservation table refuses. The others are functions of
any placement and only rank. The anchor weights of the slots held break what ties are left.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import NamedTuple

from stretto.generate.problem import COSTS, Problem
from stretto.generate.seating.evaluators import (
    BankCaps,
    Seating,
    alive,
    bank_caps,
    bank_cost,
    bank_pressure,
    holds,
    pipe_slot,
)
from stretto.lower_bounds.distances import below_recurrence
from stretto.machine import Machine
from stretto.ops.spaces import REGISTERS
from stretto.problem import Room, fused_vector
from stretto.problem.paths import earliest
from stretto.resources.table import Conflict, ReservationTable
from stretto.solution.views import profile


class CostVector(NamedTuple):
    """Ordered as tuples are: a later component matters only where all before it are equal."""

    feasibility: int
    """Operations that find no room; 0 is feasible."""
    pipe_slot: int
    spill: int
    bank: int
    structural: int
    anchors: int = 0
    """The last tie-break."""


class Scorer:
    """Scores placements of one problem at one II."""

    def __init__(self, problem: Problem, ii: int) -> None:
        self.problem = problem
        self.ii = ii
        self.caps: BankCaps | None = bank_caps(problem.machine)
        longest_to = earliest(problem.between, ii, problem.deadline)
        # The longest path to an operation is the largest distance D[p, op] there is, or 0.
        self._pipe = [pipe_slot((longest,), ii) for longest in longest_to]
        rooms = problem.rooms
        self._always, self._lives = rooms.always, (*rooms.values, *rooms.registers)
        self._left_out = [k for k, name in enumerate(COSTS) if not problem.wants(f"cost:{name}")]

    def score(self, seats: Seating, feasibility: int = 0) -> CostVector:
        """The cost of a placement whose feasibility is known."""
        found = CostVector(
            feasibility,
            max((self._pipe[i] for i, s in enumerate(seats.starts) if s is not None), default=0),
            spill(seats, self._always, self._lives),
            bank_cost(bank_pressure(seats), None) or 0,
            inversions(seats),
            anchors(seats),
        )
        return CostVector(*(0 if k in self._left_out else cost for k, cost in enumerate(found)))

    def vetoed(self, seats: Seating) -> bool:
        """Whether the bank caps refuse it."""
        return self.caps is not None and bank_cost(bank_pressure(seats), self.caps) is None


def cost(seats: Seating) -> CostVector:
    """The cost of any placement, its feasibility found out.

    Longest paths exist from the recurrence bound on; a smaller II is an InfeasibleError.
    """
    error = below_recurrence(seats.problem.between, seats.ii)
    if error is not None:
        raise error
    return Scorer(seats.problem, seats.ii).score(seats, len(refused(seats)))


def refused(seats: Seating) -> tuple[Conflict, ...]:
    """The conflicts of all that the table refuses when operations come in program order."""
    table = ReservationTable(seats.problem.machine, seats.ii)
    found: list[Conflict] = []
    for members, start in holds(seats):
        name = seats.problem.names[members[0]]
        vector = fused_vector(seats.problem, members)
        conflict = table.conflict(vector, start, name)
        if conflict is None:
            table.commit(name, vector, start)
        else:
            found.append(conflict)
    return tuple(found)


# Spill surcharge ----------------------------------------------------------------------------


def surcharge(machine: Machine, pressure: int, budget: int) -> int:
    """What one operation pays for the register pressure in the cycle it is seated in."""
    excess = max(0, pressure - budget)
    return min(machine.cost("spill_cap"), machine.cost("spill_weight") * excess)


def spill(seats: Seating, always: int, lives: Sequence[Room]) -> int:
    """Surcharges of all seated operations, each at its own cycle, together at most the cap.

    Pressure only rises where something begins to live, which is where its writer is seated: so
    the cycles looked at include the worst one.
    """
    budget = seats.problem.machine.budget(REGISTERS)
    machine = seats.problem.machine
    if budget is None or budget.bytes is None:
        return 0
    ii, limit = seats.ii, budget.bytes // budget.unit
    spans = [(life.bytes, *span) for life in lives if (span := alive(seats, life)) is not None]
    most = always + sum(size * -(-(end - begin) // ii) for size, begin, end in spans)
    if -(-most // budget.unit) <= limit:
        return 0
    cycles, live = profile(spans, ii, always)
    total = 0
    for start in seats.starts:
        if start is not None:
            at = live[bisect_right(cycles, start % ii) - 1]
            total += surcharge(machine, -(-at // budget.unit), limit)
    return min(machine.cost("spill_cap"), total)


# Structural distance and anchors ------------------------------------------------------------


def inversions(seats: Seating) -> int:
    """Pairs of operations that (stage, order) puts the other way round than the program.

    M. Kendall, "A new measure of rank correlation" (1938). Inside a stage operations are ordered
    by start, then topological rank; so (stage, order) sorts like (start, rank).
    """
    rank = seats.problem.rank
    order = sorted((s, rank[i], i) for i, s in enumerate(seats.starts) if s is not None)
    seen: list[int] = []
    found = 0
    for _, _, i in order:
        found += len(seen) - bisect_right(seen, i)
        insort(seen, i)
    return found


def anchors(seats: Seating) -> int:
    """The anchor weights of all slots held, a fused group once."""
    slot = seats.problem.machine.slot
    return sum(
        slot(use.slot).anchor or 0
        for members, _ in holds(seats)
        for use in seats.problem.vectors[members[0]].uses
        if use.duration
    )
