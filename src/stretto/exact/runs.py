"""A run of IIs in one model, the II a variable: the first not refuted, and a schedule at it.

    start[i] = stage[i] × II + cycle[i]        0 <= cycle[i] < II        first <= II <= last

    start[b] - start[a] >= latency - II × distance     is asked as
    stage[b] - stage[a] + distance >= j   and   cycle[b] - cycle[a] + j × II >= latency

Two cycles are less than an II apart, so that j has two or three values, each a literal; with j
known, every row is linear in stages, cycles and the II together. So groups, rings and registers,
which know of stages, are asked about in as many IIs as a bound leaves open, of which each alone
would have to be refuted anew. Where `ranges.py` looks at pairs that cannot share a slot, of single
recurrences, this looks at everything but pins and fused holds.

A relaxation, for lower bounds: every legal schedule of an II in the run is one of its solutions
(within the stages of horizon.py). What lives in registers is asked about at the places that a
solution has shown to hold too much, as in lives.py.
"""

from __future__ import annotations

from itertools import pairwise

from ortools.sat.python import cp_model

from stretto.exact.case import Case, Solution
from stretto.exact.cp import total, when
from stretto.exact.horizon import last_stages
from stretto.exact.lives import Place, grows
from stretto.exact.solving import Clock, run, up
from stretto.problem import Hold, Room
from stretto.problem.registers import Life

MOST = 50_000
"""Literals of j above which an inequality is left out."""
FARTHEST = 1 << 40
"""An II above which nothing is asked: the solver counts in 64 bits."""


def first_legal(case: Case, first: int, last: int, clock: Clock) -> tuple[int, Solution | None]:
    """The first II of a run that is not refuted, one beyond the last if all are; and a schedule.

    The schedule is of that II, but for what the relaxation leaves out.
    """
    if last > FARTHEST:
        return first, None
    made = _Run(case, first, last)
    made.cp.minimize(made.ii)
    while True:
        solver, status = run(made.cp, clock)
        if status == cp_model.INFEASIBLE:
            return last + 1, None
        if status == cp_model.MODEL_INVALID:
            return first, None
        first = max(first, up(solver.best_objective_bound))
        if status != cp_model.OPTIMAL:
            return min(last, first), None
        made.cp.add(made.ii >= first)
        solution = made.read(solver)
        if not made.asks_more(solution):
            return first, solution


class _Run:
    """The model of a run of IIs."""

    def __init__(self, case: Case, first: int, last: int) -> None:
        self.case, self.ends = case, (first, last)
        self.cp = cp_model.CpModel()
        self.ii = self.cp.new_int_var(first, last, "ii")
        self.cycle: list[cp_model.IntVar] = []
        self.stage: list[cp_model.IntVar] = []
        self.ways = 0
        """Literals of j."""
        self._known: dict[tuple[int, int, int], cp_model.LinearExpr | int] = {}
        registers = case.problem.registers
        self.rules = [_Rule(self, owner) for owner in (registers.owners if registers.bound else ())]
        self._places()
        self._dependences()
        for limit, holds in (case.slots | case.pools).values():
            self._capacity(limit, holds)
        self._stages()
        self._storage()

    # Where operations may stand -----------------------------------------------------------------

    def _places(self) -> None:
        case, (_, last) = self.case, self.ends
        gone = case.rest.gone if case.contractible else {}
        for i, most in enumerate(last_stages(case, *self.ends)):
            self.cycle.append(self.cp.new_int_var(0, 0 if i in gone else last - 1, ""))
            self.stage.append(self.cp.new_int_var(0, 0 if i in gone else most, ""))
            if i not in gone:
                self.cp.add(self.cycle[i] <= self.ii - 1)
        problem = case.problem
        counted = problem.members or problem.pinned or problem.depths or case.max_stages
        if not counted:  # rows may be turned
            holds = [h for _, held in case.slots.values() for h in held if h.op not in gone]
            if holds:
                self.cp.add(self.cycle[max(holds, key=lambda h: h.duration).op] == 0)

    def rounds(self, src: int, dst: int, latency: int) -> cp_model.LinearExpr | int:
        """The least j with ``cycle[dst] - cycle[src] + j × II >= latency``, or more."""
        wide = 0 if src == dst else 1
        least = min(-(-(latency - wide * (ii - 1)) // ii) for ii in self.ends)
        most = max(-(-(latency + wide * (ii - 1)) // ii) for ii in self.ends)
        if least == most or self.ways + most - least >= MOST:
            return least
        key = (src, dst, latency)
        if key not in self._known:
            self.case.deadline.check()
            self.ways += most - least + 1
            ways = [self.cp.new_bool_var("") for _ in range(least, most + 1)]
            self.cp.add_exactly_one(ways)
            apart = self.cycle[dst] - self.cycle[src]
            for j, way in enumerate(ways, least):
                when(self.cp.add(apart + j * self.ii >= latency), way)
            self._known[key] = total([j * way for j, way in enumerate(ways, least)])
        return self._known[key]

    # The rules ------------------------------------------------------------------------------------

    def _dependences(self) -> None:
        """``stage[dst] - stage[src] + distance >= j``."""
        case = self.case
        every = ((src, dst, d.latency, d.distance) for src, dst, d in case.edges)
        for src, dst, latency, distance in case.heart if case.contractible else every:
            ahead = self.stage[dst] - self.stage[src] + distance
            self.cp.add(ahead >= self.rounds(src, dst, latency))
        for latency, distance in case.rest.turns if case.contractible else ():
            self.cp.add(self.ii * distance >= latency)

    def _capacity(self, limit: int, holds: tuple[Hold, ...]) -> None:
        """Σ in every modulo cycle <= limit: each hold drawn as often as it comes round."""
        first, last = self.ends
        intervals: list[cp_model.IntervalVar] = []
        amounts: list[int] = []
        for h in holds:
            self.case.deadline.check()
            for k in range((first + h.offset + h.duration - 2) // first + 1 if h.duration else 0):
                at = self.cp.new_int_var(h.offset - k * last, h.offset + last - 1, "")
                self.cp.add(at == self.cycle[h.op] + h.offset - k * self.ii)
                intervals.append(self.cp.new_fixed_size_interval_var(at, h.duration, ""))
                amounts.append(h.amount)
        if amounts and 2 * min(amounts) > limit >= max(amounts):
            self.cp.add_no_overlap(intervals)
        elif amounts:
            self.cp.add_cumulative(intervals, amounts, min(limit, sum(amounts)))

    def _stages(self) -> None:
        """``stage[i] - offset[i] = stage[j] - offset[j]`` and ``stage <= max_depth``."""
        problem = self.case.problem
        for members in problem.members:
            for i, j in pairwise(members):
                ahead = problem.ahead
                self.cp.add(self.stage[i] + ahead[i] == self.stage[j] + ahead[j])
        for i, limit in enumerate(problem.max_stage):
            if limit is not None:
                self.cp.add(self.stage[i] <= limit)

    def _storage(self) -> None:
        """``ring × II >= lifetime`` and ``Σ bytes × ring <= budget``."""
        rooms = self.case.problem.rooms
        for space, budget in rooms.budgets.items():
            sizes: list[cp_model.LinearExpr] = []
            for room in rooms.rotating:
                if room.space == space:
                    ring = self.cp.new_int_var(1, max(1, budget // room.bytes), "")
                    self._ring(room, ring)
                    sizes.append(room.bytes * ring)
            if sizes:
                self.cp.add(total(sizes) + rooms.single_bytes.get(space, 0) <= budget)
        for room in self.case.bound_rings:
            if room.cap is not None:
                self._ring(room, self.cp.new_constant(room.cap))

    def _ring(self, room: Room, ring: cp_model.IntVar) -> None:
        """``stage[w] - stage[i] + ring - distance >= j``."""
        for i, distance in room.accessors:
            done = self.case.problem.completion[i]
            for writer in room.writers:
                ahead = self.stage[writer] - self.stage[i] + ring - distance
                self.cp.add(ahead >= self.rounds(i, writer, done))

    # In and out -----------------------------------------------------------------------------------

    def read(self, solver: cp_model.CpSolver) -> Solution:
        """The schedule of a solved model; what was folded away is put back."""
        ii = solver.value(self.ii)
        pairs = zip(self.stage, self.cycle, strict=True)
        starts = [solver.value(stage) * ii + solver.value(cycle) for stage, cycle in pairs]
        if self.case.contractible:
            starts = self.case.filled(ii, starts)
        return Solution(ii, tuple(starts))

    def asks_more(self, solution: Solution) -> bool:
        """Whether a solution has too much alive in registers; the model then forbids it."""
        asked = [rule.ask(solution) for rule in self.rules]
        return any(asked)


class _Rule:
    """The rule `registers` of one replica, place by place."""

    def __init__(self, made: _Run, owner: str) -> None:
        registers = made.case.problem.registers
        self.made = made
        self.lives = [life for life in registers.lives if life.owner == owner]
        self.most = registers.limits[owner] - registers.always[owner]
        self.places = grows(registers, self.lives)

    def ask(self, solution: Solution) -> bool:
        """Ask about all places where too much lives; whether there are any."""
        starts = solution.starts
        over = [p for p in self.places if self._live(solution, starts[p[0]] + p[1]) > self.most]
        for place in over:
            self.places.remove(place)
            lives = [life.bytes * self._instances(place, life) for life in self.lives]
            self.made.cp.add(total(lives) <= self.most)
        return bool(over)

    def _live(self, solution: Solution, at: int) -> int:
        ii, starts = solution.ii, solution.starts
        found = 0
        for life in self.lives:
            begin = min(starts[w] + u for w, u in life.begins)
            end = max(starts[e] + f + ii * back for e, f, back in life.ends)
            found += life.bytes * max(0, (at - begin) // ii - (at - end) // ii)
        return found

    def _instances(self, place: Place, life: Life) -> cp_model.IntVar:
        """``floor((start[a] + g - start[w] - u) / II) - floor((start[a] + g - start[e] - f) / II)``
        and d, or more.
        """
        made, (a, g) = self.made, place
        count = made.cp.new_int_var(0, max(0, self.most // life.bytes), "")
        for e, f, back in life.ends:
            ended = made.stage[a] - made.stage[e] - made.rounds(e, a, f - g)
            for w, u in life.begins:
                begun = made.stage[a] - made.stage[w] + made.rounds(a, w, g - u + 1) - 1
                made.cp.add(count + ended - back >= begun)
        return count
