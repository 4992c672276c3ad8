"""The lowest peak of registers.

    value        peak of live register bytes in the steady state
    floor        live-ins, and what one operation reads and writes at its start
    expression   P, where live register bytes in every modulo cycle <= unit × P

The costly one: lives have variable lengths, so each is q circles and an interval of r cycles, both
variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from stretto.exact.goal import Goal
from stretto.vocabulary.spaces import REGISTERS, SPACES

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from stretto.exact.case import Case
    from stretto.exact.model import Model
    from stretto.problem import Room
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


def _expression(model: Model, most: int) -> cp_model.IntVar:
    """``P``, the peak of live register bytes in the machine's units."""
    from stretto.exact.cp import total

    cp, ii = model.cp, model.ii
    lives = _Lives(model)
    unit = _unit(model.case)
    peak = cp.new_int_var(0, most, "registers")
    step = gcd(*(life.bytes for life in lives.moving)) if lives.moving else 1
    intervals: list[cp_model.IntervalVar] = []
    demands: list[int] = []
    around: list[cp_model.LinearExpr] = []
    for life in lives.moving:
        circles = cp.new_int_var(0, lives.longest // ii, "")
        rest = cp.new_int_var(0, ii - 1, "")
        cp.add(circles * ii + rest == life.end - life.begin)
        around.append(life.bytes * circles)
        stop = cp.new_int_var(0, 2 * ii, "")
        for shift in (0, ii):
            intervals.append(cp.new_interval_var(life.cycle - shift, rest, stop - shift, ""))
            demands.append(life.bytes // step)
    left = cp.new_int_var(0, sum(demands), "")
    cp.add(peak * unit >= left * step + total(around) + lives.always)
    if intervals:
        cp.add_cumulative(intervals, demands, left)
        # The peak is no lower than the mean: implied, but the solver does not see it by itself.
        areas = [life.bytes * (life.end - life.begin) for life in lives.moving]
        cp.add(peak * (unit * ii) >= total(areas) + lives.always * ii)
    return peak


@dataclass(frozen=True, slots=True)
class _Life:
    """One iteration's instance of something in registers."""

    bytes: int
    begin: cp_model.LinearExpr
    cycle: cp_model.IntVar
    """Of its begin."""
    end: cp_model.IntVar


class _Lives:
    """Everything that lives in registers."""

    def __init__(self, model: Model) -> None:
        self.model = model
        problem = model.case.problem
        self.always = problem.rooms.always
        """Bytes that live all the time."""
        loop = problem.loop
        top = max(model.ii * (stage + 1) for stage in model.last)
        far = [distance for ends in loop.readers.values() for _, distance in ends]
        far += [read.distance for reads in loop.reads.values() for read in reads]
        self.longest = top + model.ii * max(far, default=0) + max(problem.completion)
        self.moving = [self._value(room) for room in problem.rooms.values]
        self.moving += [self._storage(room) for room in problem.rooms.registers]

    def _value(self, room: Room) -> _Life:
        """A value lives from the start of its one producer on."""
        (producer,) = room.writers
        model, end = self.model, self._end(room.accessors)
        return _Life(room.bytes, model.start[producer], model.cycle[producer], end)

    def _storage(self, room: Room) -> _Life:
        """A storage lives from its first writer's start on."""
        model, end = self.model, self._end(room.accessors)
        begin = model.cp.new_int_var(0, self.longest, "")
        model.cp.add_min_equality(begin, [model.start[w] for w in room.writers])
        cycle = model.cp.new_int_var(0, model.ii - 1, "")
        stage = model.cp.new_int_var(0, self.longest // model.ii, "")
        model.cp.add(stage * model.ii + cycle == begin)
        return _Life(room.bytes, begin, cycle, end)

    def _end(self, accessors: Sequence[tuple[int, int]]) -> cp_model.IntVar:
        """``end >= start + completion + II × distance`` of everyone: the least is the lifetime."""
        model = self.model
        end = model.cp.new_int_var(0, self.longest, "")
        for i, distance in accessors:
            done = model.case.problem.completion[i] + model.ii * distance
            model.cp.add(end >= model.start[i] + done)
        return end


GOAL = Goal(
    name="registers",
    rank=30,
    unit=("register", "registers"),
    value=_value,
    floor=_floor,
    expression=_expression,
    share=0.5,  # the solver seldom ends by itself
    halved=True,  # what lives at once is weighed against a number, not against a variable
)
