"""Many IIs at once: what recurrences and exclusive holds forbid together, the II a variable.

    ├─x─┤      ├─x─┤          x and y, which cannot share a slot, k rounds apart:
         ├─y──┤     ├─y──┤    start[y] - start[x] >= held by x + k × II
                              start[y] - start[x] <= (k + 1) × II - held by y

With k a choice of its own, and not a cycle and a stage, every row is linear in starts and II
together; so one question answers for a run of IIs, of which each alone would be refuted anew. The
rows are those of disjunctive scheduling around a circle (C. Hanen, "Study of a NP-hard cyclic
scheduling problem: the recurrent job-shop", EJOR 1994).

It is a relaxation, for lower bounds only. What it keeps, every legal schedule of an II in the range
keeps, once its recurrences (strong components of the dependences) are moved by whole IIs:

- dependences inside a recurrence, which such moves leave as they are; those between recurrences are
  left out;
- of two that together draw more than there is, that no modulo cycle has both; sums of three, fused
  holds, storages, groups, depths and pins are left out;
- one operation of each recurrence in [0, II), by such a move, and one of them all at 0, by turning
  everything. No path inside a recurrence grows with the II, so that windows at the last II of the
  range hold for all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from ortools.sat.python import cp_model

from stretto.deadline import Deadline
from stretto.exact.case import Case
from stretto.exact.cp import never, when
from stretto.exact.solving import Clock, run, up
from stretto.problem import Hold, strong_components
from stretto.problem.paths import settle

Row = tuple[int, int, int, int]
"""(source, destination, latency, distance)."""
MOST = 50_000
"""Ways of pairs to stand apart above which nothing is asked."""


def first_possible(case: Case, first: int, last: int, clock: Clock, share: float) -> int:
    """The first II of a range that is not refuted; one beyond the last: all are."""
    made = _Range(case, first, last)
    if made.ways > MOST:
        return first
    made.cp.minimize(made.ii)
    solver, status = run(made.cp, clock, share)
    if status == cp_model.INFEASIBLE:
        return last + 1
    if status == cp_model.MODEL_INVALID:
        return first
    return min(last, max(first, up(solver.best_objective_bound)))


def exclusive(case: Case) -> list[str]:
    """Slots and pools that some two cannot share: what such a refutation may rest on."""
    return [
        name
        for name, (limit, held) in (case.slots | case.pools).items()
        if any(_excluding(limit, x, y) for x, y in combinations(held, 2))
    ]


class _Range:
    """The model of a range of IIs."""

    def __init__(self, case: Case, first: int, last: int) -> None:
        self.case, self.first, self.last = case, first, last
        self.cp = cp_model.CpModel()
        self.ii = self.cp.new_int_var(first, last, "ii")
        self.held = [(limit, held) for limit, held in (case.slots | case.pools).values()]
        self.window: dict[int, tuple[int, int]] = {}
        """By operation: its first and last start."""
        self.start: dict[int, cp_model.IntVar] = {}
        self.ways = 0
        """Ways of pairs to stand apart."""
        if self._recurrences():
            self._apart()
        else:
            never(self.cp)

    def _recurrences(self) -> bool:
        """Starts and the dependences inside recurrences; false: the last II is too small for one.

        A smaller one is then, too.
        """
        holds = {h.op for _, held in self.held for h in held}
        leads: list[tuple[int, int]] = []
        every = [(src, dst, d.latency, d.distance) for src, dst, d in self.case.edges]
        for members, rows in parts_of(self.case.size, every):
            lead = next((i for i in members if i in holds), None)
            if lead is None:
                continue
            after = self._farthest(members, rows, lead)
            before = self._farthest(members, [(b, a, w, d) for a, b, w, d in rows], lead)
            if after is None or before is None:
                return False
            for i, low, back in zip(members, after, before, strict=True):
                self.window[i] = (low, self.last - 1 - back)
                self.start[i] = self.cp.new_int_var(*self.window[i], f"start_{i}")
            for src, dst, latency, distance in rows:
                ahead = self.start[dst] - self.start[src] + distance * self.ii
                self.cp.add(ahead >= latency)
            self.cp.add(self.start[lead] >= 0)
            self.cp.add(self.start[lead] <= self.ii - 1)
            leads.append((len(members), lead))
        if leads:
            self.cp.add(self.start[max(leads)[1]] == 0)
        return True

    def _farthest(self, members: Sequence[int], rows: Sequence[Row], lead: int) -> list[int] | None:
        return farthest(members, rows, lead, self.last, self.case.deadline)

    def _apart(self) -> None:
        """No modulo cycle has both of two that draw more than there is."""
        for limit, held in self.held:
            for x, y in combinations(held, 2):
                self.case.deadline.check()
                if _excluding(limit, x, y):
                    rounds = self._rounds(x, y)
                    self.ways += len(rounds)
                    if self.ways > MOST:
                        return
                    self._one_of(rounds, x, y)

    def _rounds(self, x: Hold, y: Hold) -> range:
        """How many whole IIs may lie between two, by their windows, at any II of the range."""
        (x_low, x_high), (y_low, y_high) = self.window[x.op], self.window[y.op]
        least = y_low + y.offset - x_high - x.offset + y.duration
        most = y_high + y.offset - x_low - x.offset - x.duration
        ends = (self.first, self.last)
        return range(min(-(-least // ii) - 1 for ii in ends), max(most // ii for ii in ends) + 1)

    def _one_of(self, rounds: range, x: Hold, y: Hold) -> None:
        ahead = self.start[y.op] - self.start[x.op] + (y.offset - x.offset)
        ways = [self.cp.new_bool_var("") for _ in rounds]
        self.cp.add_exactly_one(ways)
        for k, way in zip(rounds, ways, strict=True):
            when(self.cp.add(ahead - k * self.ii >= x.duration), way)
            when(self.cp.add((k + 1) * self.ii - ahead >= y.duration), way)


def parts_of(size: int, rows: Iterable[Row]) -> list[tuple[list[int], list[Row]]]:
    """Recurrences, with the dependences inside of each; whatever is in none is one of its own."""
    rows = list(rows)
    succs: list[list[int]] = [[] for _ in range(size)]
    for src, dst, _, _ in rows:
        succs[src].append(dst)
    parts = list(strong_components(succs))
    home = {i: k for k, members in enumerate(parts) for i in members}
    inside: list[list[Row]] = [[] for _ in parts]
    for row in rows:
        if row[0] != row[1] and home[row[0]] == home[row[1]]:
            inside[home[row[0]]].append(row)
    return list(zip(parts, inside, strict=True))


def farthest(
    members: Sequence[int], rows: Sequence[Row], lead: int, ii: int, deadline: Deadline
) -> list[int] | None:
    """Longest paths at an II from one member of a recurrence to each; None: there is no longest."""
    number = {i: k for k, i in enumerate(members)}
    arcs: list[list[tuple[int, int, int]]] = [[] for _ in members]
    for src, dst, latency, distance in rows:
        arcs[number[src]].append((number[dst], latency, distance))
    values: list[int | None] = [None] * len(members)
    values[number[lead]] = 0
    if not settle(range(len(members)), arcs, ii, values, deadline, len(members) + 1):
        return None
    return [value for value in values if value is not None]


def _excluding(limit: int, x: Hold, y: Hold) -> bool:
    """Whether two never hold in one cycle."""
    return x.op != y.op and x.amount + y.amount > limit and min(x.duration, y.duration) > 0
