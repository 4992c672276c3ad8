"""The lowest peak of registers.

    value        peak of live register bytes in the steady state
    floor        live-ins, and what one operation reads and writes at its start
    expression   P, where live register bytes at every start of a life <= unit × P
    parts        the same at some of these starts: where it hurts

    ──█████──────█████──          what lives grows only where a life begins; there, at the start of
        ▲   ████████              operation a, an instance from the start of w to that of e, and f
        a                         cycles on, lives so many times, for f = q × II + r:

    stage[e] - stage[w] + q + 1 + [cycle[a] >= cycle[w]]
        - [cycle[a] - cycle[e] >= r] - [cycle[a] - cycle[e] >= r - II]

So it is counted in stages and orders of cycles, which a solver that learns can say something about;
lives as intervals of variable lengths on a circle close nothing. Few starts are ever near the peak,
and the solver is asked about those only that a schedule has shown to be: parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from stretto.exact.goal import Goal, Parts
from stretto.ops.spaces import REGISTERS, SPACES

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from stretto.exact.case import Case, Solution
    from stretto.exact.model import Model
    from stretto.problem import Compiled, Room
    from stretto.solution import Schedule


def _value(case: Case, schedule: Schedule) -> int:
    from stretto.solution.views import pressure

    return pressure(case.loop, case.machine, schedule.ii, schedule.starts).peak


def _floor(case: Case, _: int) -> int:
    """Live-ins, and the most that one operation needs at once.

    When an operation starts, all that it reads lives (until it completes), and what it writes
    begins to.
    """
    loop = case.loop
    always = sum(v.register_bytes for v in loop.values if v.name not in loop.producers)
    always += sum(s.bytes for s in loop.storages if not SPACES[s.space].budgeted and s.fixed)
    at_once: dict[str, int] = {}
    ready = {(d.src, d.dst, d.distance) for d in loop.dependences if d.latency >= 0}
    for value in loop.values:
        maker = loop.producers.get(value.name)
        if maker is None or not value.register_bytes:
            continue
        users = {(maker, 0)} | {
            (reader, distance)
            for reader, distance in loop.readers[value.name]
            if (maker, reader, distance) in ready
        }
        for user, _ in users:
            if loop.op(user).completion > 0:
                at_once[user] = at_once.get(user, 0) + value.register_bytes
    return -(-(always + max(at_once.values(), default=0)) // _unit(case))


def _unit(case: Case) -> int:
    """Bytes of one register."""
    budget = case.machine.budget(REGISTERS)
    return budget.unit if budget else 1


def _rooms(problem: Compiled) -> tuple[Room, ...]:
    """What lives in registers for a time."""
    return problem.rooms.values + problem.rooms.registers


def _births(problem: Compiled) -> Iterable[int]:
    """Operations with whose start a life may begin."""
    return dict.fromkeys(w for room in _rooms(problem) for w in room.writers)


def _expression(model: Model, most: int) -> cp_model.IntVar:
    """``P``, the peak of live register bytes in the machine's units."""
    peak = model.cp.new_int_var(0, most, "registers")
    counts = _Counts(model, most)
    for a in _births(model.case.problem):
        model.cp.add(counts.bytes_at(a) <= peak * _unit(model.case))
    return peak


def _keep(model: Model, most: int, places: Sequence[int]) -> None:
    """At most so many where these operations start."""
    counts = _Counts(model, most)
    counts.mean()
    for a in places:
        model.cp.add(counts.bytes_at(a) <= most * _unit(model.case))


def _worst(case: Case, solution: Solution) -> int:
    """Where most lives."""
    ii, starts, problem = solution.ii, solution.starts, case.problem

    def live(a: int) -> int:
        at = starts[a]
        found = 0
        for room in _rooms(problem):
            begin = min(starts[w] for w in room.writers)
            end = max(starts[e] + f for e, f in _ends(problem, room, ii))
            found += room.bytes * ((at - begin) // ii - (at - end) // ii)
        return found

    return max(_births(problem), key=live)


def _ends(problem: Compiled, room: Room, ii: int) -> Iterator[tuple[int, int]]:
    """(operation, cycles after its start until which an instance lives)."""
    for e, distance in room.accessors:
        yield e, problem.completion[e] + ii * distance


class _Counts:
    """What lives where operations start, by orders of cycles."""

    def __init__(self, model: Model, most: int) -> None:
        from stretto.exact.lives import Orders

        self.model = model
        self.most = most * _unit(model.case)
        """Bytes that are allowed."""
        self.apart = Orders(model).apart

    def bytes_at(self, a: int) -> cp_model.LinearExpr:
        """Live bytes at the start of an operation; more, where the solver likes."""
        from stretto.exact.cp import total

        problem = self.model.case.problem
        lives = [room.bytes * self._instances(a, room) for room in _rooms(problem)]
        return total(lives) + problem.rooms.always

    def mean(self) -> None:
        """``Σ bytes × life <= II × bytes allowed``: the peak is no lower than the mean."""
        from stretto.exact.cp import total

        model, problem = self.model, self.model.case.problem
        areas = [room.bytes * self._life(room) for room in _rooms(problem)]
        model.cp.add(total(areas) + problem.rooms.always * model.ii <= self.most * model.ii)

    def _life(self, room: Room) -> cp_model.IntVar:
        """Cycles that an instance lives, or more."""
        model = self.model
        life = model.cp.new_int_var(0, self.most * model.ii // room.bytes, "")
        for e, f in _ends(model.case.problem, room, model.ii):
            for w in room.writers:
                model.cp.add(life >= model.start[e] - model.start[w] + f)
        return life

    def _instances(self, a: int, room: Room) -> cp_model.IntVar:
        """Instances that live at once, or more."""
        model, ii = self.model, self.model.ii
        count = model.cp.new_int_var(0, self.most // room.bytes, "")
        for e, f in _ends(model.case.problem, room, ii):
            q, r = divmod(f, ii)
            for w in room.writers:
                stages = model.stage[e] - model.stage[w] + (q + 1)
                over = self.apart(a, e, r) + self.apart(a, e, r - ii)
                model.cp.add(count >= stages + self.apart(a, w, 0) - over)
        return count


GOAL = Goal(
    name="registers",
    rank=30,
    unit=("register", "registers"),
    value=_value,
    floor=_floor,
    expression=_expression,
    parts=Parts(_keep, _worst),
)
