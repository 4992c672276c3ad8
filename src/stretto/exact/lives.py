"""What lives in the registers of agents, in stages and orders of cycles.

    ──█████──────█████──          what lives grows only where a life begins; there, g cycles after
        ▲   ████████              the start of operation a, an instance from w (and u cycles on) to
        a                         e (and f cycles on, of d iterations later) lives so many times:

    floor((start[a] + g - start[w] - u) / II) - floor((start[a] + g - start[e] - f) / II) + d

    floor((start[a] - start[b] + q × II + r) / II) = stage[a] - stage[b] + q - 1
        + [cycle[a] - cycle[b] >= -r] + [cycle[a] - cycle[b] >= II - r]

Nothing grows where arithmetic takes the registers of the one tile that nobody else reads; so those
places are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

from stretto.exact.cp import never, total, when
from stretto.exact.reasons import Reason
from stretto.problem.registers import Life, Registers

if TYPE_CHECKING:
    from stretto.exact.model import Model

Place = tuple[int, int]
"""An operation, and cycles after its start."""


class Orders:
    """Who comes how long after whom in the cycles of the II."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._known: dict[tuple[int, int, int], cp_model.LinearExpr] = {}

    def apart(self, a: int, b: int, least: int) -> cp_model.LinearExpr:
        """``[cycle[a] - cycle[b] >= least]``."""
        cp, apart = self.model.cp, self.model.cycle[a] - self.model.cycle[b]
        if (a, b, least) not in self._known:
            found = cp.new_bool_var("")
            when(cp.add(apart >= least), found)
            when(cp.add(apart < least), found.negated())
            self._known[a, b, least] = found + 0
            self._known[b, a, 1 - least] = 1 - found
        return self._known[a, b, least]

    def turns(self, a: int, b: int, more: int) -> cp_model.LinearExpr | int:
        """``floor((start[a] - start[b] + more) / II)``."""
        ii, model = self.model.ii, self.model
        q, r = divmod(more, ii)
        if a == b:
            return q
        passed = model.stage[a] - model.stage[b] + (q - 1) + self.apart(a, b, -r)
        return passed + self.apart(a, b, ii - r) if r else passed


class Rule:
    """The rule `registers` of one replica in one model, place by place.

    Few schedules have too much alive, and those at few places: the solver is asked about a place
    once it has shown a schedule with too much alive there. What some places refute, all do.
    """

    def __init__(self, model: Model, owner: str) -> None:
        registers = model.case.problem.registers
        self.lives = [life for life in registers.lives if life.owner == owner]
        self.most = registers.limits[owner] - registers.always[owner]
        """Bytes for what lives for a time."""
        self.places = grows(registers, self.lives)
        """Those that the solver was not asked about."""
        self.reason = Reason("registers", registers.owners[owner][0].name)
        self._orders = Orders(model)
        if self.most < 0:
            model.enforce(never(model.cp), self.reason)
            self.places = []

    def ask(self, place: Place) -> None:
        """``Σ bytes × instances <= bytes of the agent`` at a place."""
        model = self._orders.model
        model.case.deadline.check()
        self.places.remove(place)
        counted = [life.bytes * self._instances(place, life) for life in self.lives]
        model.enforce(model.cp.add(total(counted) <= self.most), self.reason)

    def worst(self, ii: int, starts: Sequence[int]) -> Place | None:
        """Where a schedule has most alive, of the places not asked about; None: not too much."""
        at = {place: self._live(ii, starts, starts[place[0]] + place[1]) for place in self.places}
        found = max(at, key=lambda place: at[place], default=None)
        return None if found is None or at[found] <= self.most else found

    def _live(self, ii: int, starts: Sequence[int], at: int) -> int:
        found = 0
        for life in self.lives:
            begin = min(starts[w] + u for w, u in life.begins)
            end = max(starts[e] + f + ii * back for e, f, back in life.ends)
            found += life.bytes * max(0, (at - begin) // ii - (at - end) // ii)
        return found

    def _instances(self, place: Place, life: Life) -> cp_model.IntVar:
        """Instances that live at a place, or more; any number where the rule may be off."""
        orders, model, (a, g) = self._orders, self._orders.model, place
        ends = [(e, f + model.ii * back) for e, f, back in life.ends]
        far = model.ii * (max(model.last) + 2) + max(f for _, f in ends) + g
        highest = -(-far // model.ii) if model.conditional else self.most // life.bytes
        count = model.cp.new_int_var(0, highest, "")
        for e, f in ends:
            ended = orders.turns(a, e, g - f)
            for w, u in life.begins:
                model.cp.add(count + ended >= orders.turns(a, w, g - u))
        return count


def grows(registers: Registers, lives: list[Life]) -> list[Place]:
    """Where lives begin, but for those that begin in place of what dies there; one at least."""
    every = list(dict.fromkeys(place for life in lives for place in life.begins))
    takes: dict[Place, tuple[int, int]] = {}
    for life in lives:
        if len(life.begins) == 1:
            count, size = takes.get(life.begins[0], (0, 0))
            takes[life.begins[0]] = count + 1, max(size, life.bytes)
        else:
            takes.update(dict.fromkeys(life.begins, (2, 0)))
    frees: dict[Place, int] = {}
    for life in lives:
        if (place := _dies(registers, life)) is not None:
            frees[place] = max(frees.get(place, 0), life.bytes)
    kept = [p for p in every if takes[p][0] > 1 or takes[p][1] > frees.get(p, 0)]
    return kept or every[:1]


def _dies(registers: Registers, life: Life) -> Place | None:
    """Where a tile with one reader, which waits until it is complete, is dead in any schedule."""
    loop, maker = registers.loop, life.begins[0][0]
    ends = [end for end in life.ends if (end[0], end[2]) != (maker, 0)]
    if len(life.begins) > 1 or len(ends) > 1 or not ends:
        return None
    reader, offset, _ = ends[0]
    made = loop.ops[maker]
    read = [o for o in loop.ops[reader].operands if o.value == life.name]
    waits = [made.ready if o.latency is None else o.latency for o in read]
    return (reader, offset) if waits and min(waits) >= made.completion else None
