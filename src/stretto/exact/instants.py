"""One II, a literal for every operation and every start that its recurrence leaves it.

    windows at this II         a: 0 .. 3      b: 2 .. 7      one literal of each is true
    row 2 of a slot            a@2 + b@2 + b@6 <= capacity                          (II 4)

Windows come from the longest paths inside a recurrence, one operation of which stands in [0, II).
Where the II is small against the number of operations, as in loops of single words and memory
ports, the linear relaxation of these rows refutes in a second what intervals on a circle do not in
minutes (the formulation by instants of A. E. Eichenberger and E. S. Davidson, "Efficient
formulation for optimal modulo schedulers", PLDI 1997).

It knows dependences inside recurrences and what holds slots and pools, so it is a relaxation: what
it refutes is refuted. What it finds keeps those rules, and is a hint for the model of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model

from stretto.exact.case import Case, Solution
from stretto.exact.cp import total
from stretto.exact.ranges import Row, farthest, parts_of
from stretto.exact.solving import Clock, run

MOST = 12_000
"""Literals above which nothing is asked: the linear relaxation gets slow."""
CELLS = 60_000
"""Cells of rows that they fill, above which nothing is asked."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was said of an II."""

    refuted: bool
    hint: Solution | None = None


def ask(case: Case, ii: int, clock: Clock, share: float) -> Found:
    """Whether recurrences and holds refute an II; else starts that keep to them, if any came."""
    model = _Instants(case, ii)
    if model.impossible:
        return Found(refuted=True)
    if not model.worth:
        return Found(refuted=False)
    solver, status = run(model.cp, clock, share, linear=True)
    if status == cp_model.INFEASIBLE:
        return Found(refuted=True)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Found(refuted=False)
    return Found(refuted=False, hint=model.read(solver))


class _Instants:
    """The model of one II."""

    def __init__(self, case: Case, ii: int) -> None:
        self.case, self.ii = case, ii
        self.cp = cp_model.CpModel()
        self.impossible = False
        """Whether a recurrence alone is longer than the II allows."""
        self.start: dict[int, cp_model.IntVar] = {}
        self.windows: dict[int, range] = {}
        self.parts = parts_of(case.size, self._rows())
        self.rows = [(limit, held) for limit, held in (case.slots | case.pools).values()]
        self.holders = {h.op for _, held in self.rows for h in held}
        self._recurrences()
        cells = sum(len(self.windows[h.op]) * h.duration for _, held in self.rows for h in held)
        literals = sum(len(self.windows[i]) for i in self.holders)
        self.worth = bool(self.holders) and literals <= MOST and cells <= CELLS
        """Whether it is small enough to be asked."""
        if self.worth and not self.impossible:
            self._capacities()

    def _rows(self) -> list[Row]:
        case = self.case
        if case.contractible:
            return list(case.heart)
        return [(src, dst, d.latency, d.distance) for src, dst, d in case.edges]

    def _recurrences(self) -> None:
        """Windows, and the dependences inside recurrences; the largest begins at cycle 0."""
        gone = self.case.rest.gone if self.case.contractible else {}
        if self.case.contractible and not self.case.rest.turns_at(self.ii):
            self.impossible = True
        whole = True
        for members, rows in sorted(self.parts, key=lambda part: -len(part[0])):
            if len(members) == 1 and members[0] in gone:
                continue
            lead = next((i for i in members if i in self.holders), members[0])
            after = farthest(members, rows, lead, self.ii, self.case.deadline)
            turned = [(b, a, w, d) for a, b, w, d in rows]
            before = farthest(members, turned, lead, self.ii, self.case.deadline)
            if after is None or before is None:
                self.impossible = True
                # Windows stay empty, so that nothing is asked.
                after = before = [0] * len(members)
            late = 0 if whole else self.ii - 1
            whole = False
            for i, low, back in zip(members, after, before, strict=True):
                self.windows[i] = range(low, late - back + 1)
                self.start[i] = self.cp.new_int_var(low, max(low, late - back), f"start_{i}")
            self.cp.add(self.start[lead] >= 0)
            self.cp.add(self.start[lead] <= late)
            for src, dst, latency, distance in rows:
                self.cp.add(self.start[dst] - self.start[src] >= latency - self.ii * distance)

    def _capacities(self) -> None:
        """Σ over the starts that fill a modulo cycle <= what there is."""
        at = {i: self._literals(i) for i in sorted(self.holders)}
        for limit, held in self.rows:
            cells: list[list[tuple[int, cp_model.IntVar]]] = [[] for _ in range(self.ii)]
            for h in held:
                self.case.deadline.check()
                for start, literal in zip(self.windows[h.op], at[h.op], strict=True):
                    for k in range(h.duration):
                        cells[(start + h.offset + k) % self.ii].append((h.amount, literal))
            for cell in cells:
                if all(2 * amount > limit for amount, _ in cell):
                    self.cp.add_at_most_one([literal for _, literal in cell])
                else:
                    self.cp.add(total([amount * literal for amount, literal in cell]) <= limit)

    def _literals(self, i: int) -> list[cp_model.IntVar]:
        window = self.windows[i]
        literals = [self.cp.new_bool_var("") for _ in window]
        self.cp.add_exactly_one(literals)
        terms = [t * literal for t, literal in zip(window, literals, strict=True)]
        self.cp.add(total(terms) == self.start[i])
        return literals

    def read(self, solver: cp_model.CpSolver) -> Solution:
        """A schedule by these rules: each recurrence moved by whole IIs, as those before it ask."""
        starts = [0] * self.case.size
        home: dict[int, int] = {}
        for k, (members, _) in enumerate(self.parts):
            for i in members:
                home[i] = k
                if i in self.start:
                    starts[i] = solver.value(self.start[i])
        between = [row for row in self._rows() if home[row[0]] != home[row[1]]]
        shift = [0] * len(self.parts)
        changed = True
        while changed:  # ends: between recurrences dependences lead one way
            changed = False
            for src, dst, latency, distance in between:
                ready = starts[src] + latency - self.ii * distance
                later = -((starts[dst] - ready) // self.ii) + shift[home[src]]
                if later > shift[home[dst]]:
                    shift[home[dst]] = later
                    changed = True
        starts = [start + self.ii * shift[home[i]] for i, start in enumerate(starts)]
        if self.case.contractible:
            starts = self.case.filled(self.ii, starts)
        least = min(starts) // self.ii * self.ii
        return Solution(self.ii, tuple(start - least for start in starts))
