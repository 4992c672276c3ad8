"""What is minimized once the II is known, one after the other.

    stages      K × II - 1 >= start[i] - origin for all i                   fewest stages K
    bytes       Σ bytes × ring                                              shared and tensor memory
    registers   live register bytes in every modulo cycle <= 512 × P        lowest peak P

Each is a function of a model that adds what it needs and names the expression to minimize; the
optimum of one is a constraint on the next. The register objective is the costly one: lives have
variable lengths, so each is q circles and an interval of r cycles, both variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from ortools.sat.python import cp_model

from stretto.exact.cp import total
from stretto.exact.model import Model
from stretto.problem import Room
from stretto.vocabulary.spaces import REGISTERS


def stage_count(model: Model, most: int) -> cp_model.IntVar:
    """``K``, the stages of the schedule."""
    count = model.cp.new_int_var(1, most, "stages")
    for start in model.start:
        model.cp.add(start - model.origin <= count * model.ii - 1)
    return count


def memory_bytes(model: Model) -> cp_model.LinearExprT:
    """``Σ bytes × ring`` over everything outside registers."""
    sizes = [ring.bytes * model.rings[ring.name] for ring in model.case.problem.rotating]
    return total(sizes) + sum(model.case.problem.rooms.single_bytes.values())


def register_peak(model: Model, most: int) -> cp_model.IntVar:
    """``P``, the peak of live register bytes in the machine's units."""
    cp, ii = model.cp, model.ii
    lives = _Lives(model)
    budget = model.case.machine.budget(REGISTERS)
    unit = budget.unit if budget else 1
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
