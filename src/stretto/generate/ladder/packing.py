"""Seating operations by cycle, and letting stages follow.

    cycles   recurrences first, as blocks; then the rest, each at its earliest free cycle;
             what finds none takes the place that costs least and pushes others out
    stages   a longest path over the finished cycles (`paths.stages`)

What an operation holds depends on its cycle alone, and outside recurrences any cycles can be
completed to a schedule by adding stages. So no seat is undone because of a dependence: only
resources push out, and members of a recurrence stay inside the windows that the others leave.
Who was pushed out or found no seat is remembered and weighs more from then on.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from stretto.generate.ladder.recurrences import Recurrence
from stretto.generate.problem import Problem
from stretto.loop import ResourceVector
from stretto.problem.paths import not_before
from stretto.resources import ReservationTable

OPENINGS = 32
"""Places tried for the first member of a recurrence."""
STRETCHES = 64
"""Free stretches looked at when the tightest is wanted."""
OFFERS = 40
"""Places weighed when an operation must push others out; in larger loops, others each time."""
PATIENCE = 3
"""Forced seats of an operation after which its whole recurrence is seated anew."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to go about it; several are tried in turn."""

    name: str
    priority: Sequence[int]
    """Operations of higher priority are seated first."""
    tight: bool = False
    """Take the tightest gap instead of the earliest cycle."""
    late: bool = False
    """Seek the seats of a recurrence's members backwards first."""
    evictions: int = 0
    """How often operations may be pushed out before the plan is given up."""


@dataclass(slots=True)
class Packing:
    """Tentative starts at one II, and the table that holds them."""

    problem: Problem
    ii: int
    rigid: Sequence[Recurrence]
    asap: Sequence[int]
    blame: list[int]
    """How often an operation was in trouble, over all plans."""
    table: ReservationTable
    starts: list[int | None]
    home: dict[int, tuple[Recurrence, int]]
    """Member of a recurrence to it and its position there."""
    lanes: list[list[tuple[int, ...]]]
    """By limited slot or pool: (first cycle, operation, duration, units) of its holders, sorted."""
    visits: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """How often an operation was forced to a cycle: a place tried in vain costs more."""
    failed: int = -1
    """The last operation that found no seat."""

    @staticmethod
    def empty(
        problem: Problem,
        ii: int,
        rigid: Sequence[Recurrence],
        asap: Sequence[int],
        blame: list[int],
    ) -> Packing:
        """Nothing seated yet."""
        home = {op: (r, position) for r in rigid for position, op in enumerate(r.members)}
        table = ReservationTable(problem.machine, ii)
        starts: list[int | None] = [None] * problem.size
        lanes: list[list[tuple[int, ...]]] = [[] for _ in problem.holds.limits]
        return Packing(problem, ii, rigid, asap, blame, table, starts, home, lanes)

    def run(self, plan: Plan) -> bool:
        """Seat everything by a plan; false if the evictions it allows do not suffice."""
        for recurrence in self.rigid:
            self._block(recurrence, plan)
        queue = [self._entry(op, plan) for op, s in enumerate(self.starts) if s is None]
        heapify(queue)
        evictions = plan.evictions
        while queue:
            _, _, op = heappop(queue)
            if self.starts[op] is not None:
                continue
            self.problem.deadline.check()
            seat = self._free(op, plan)
            if seat is None and evictions <= 0:
                self.blame[op] += 1
                self.failed = op
                return False
            if seat is None:
                victims = self._force(op)
                evictions -= len(victims)
                for victim in victims:
                    heappush(queue, self._entry(victim, plan))
            else:
                self._commit(op, seat)
        return True

    def _entry(self, op: int, plan: Plan) -> tuple[int, int, int]:
        return -self.blame[op], -plan.priority[op], op

    # Free seats -------------------------------------------------------------------------------

    def _free(self, op: int, plan: Plan) -> int | None:
        vector = self.problem.vectors[op]
        low, high = self._window(op)
        if op in self.home:
            return self._inside(op, low, high, plan.late)
        if plan.tight:
            return self._tightest(vector, low)
        return self.table.earliest(vector, low, high)

    def _window(self, op: int) -> tuple[int, int]:
        """Starts to choose from: at most II of them."""
        low = self.asap[op]
        member = self.home.get(op)
        if member is None:
            low = not_before(self.problem.preds[op], self.starts, self.ii, low)
            return low, low + self.ii - 1
        recurrence, position = member
        bounds = [
            (start + recurrence.apart[k][position], start - recurrence.apart[position][k])
            for k, other in enumerate(recurrence.members)
            if (start := self.starts[other]) is not None
        ]
        if not bounds:
            return low, low + self.ii - 1
        return max(b[0] for b in bounds), min(b[1] for b in bounds)

    def _inside(self, op: int, low: int, high: int, late: bool) -> int | None:
        """A free start for a member of a recurrence, near where the others would have it.

        The window of a member may reach a whole II back or ahead; going there would use up the
        slack of the others. So starts are sought from the place that the earliest starts give
        it, onwards first, or backwards first if `late`.
        """
        recurrence, _ = self.home[op]
        shift = next(
            (at - self.asap[m] for m in recurrence.members if (at := self.starts[m]) is not None),
            0,
        )
        middle = min(max(low, self.asap[op] + shift), high)
        onwards = (middle, min(high, middle + self.ii - 1))
        backwards = (max(low, middle - self.ii + 1), middle - 1)
        for first, last in (backwards, onwards) if late else (onwards, backwards):
            found = self._search(self.problem.vectors[op], first, last, first == onwards[0])
            if found is not None:
                return found
        return None

    def _search(self, vector: ResourceVector, low: int, high: int, up: bool) -> int | None:
        """The earliest (or latest) free start of a window, which may reach below 0."""
        if high < low:
            return None
        shift = max(0, (self.ii - 1 - low) // self.ii) * self.ii
        find = self.table.earliest if up else self.table.latest
        found = find(vector, low + shift, high + shift)
        return None if found is None else found - shift

    def _tightest(self, vector: ResourceVector, low: int) -> int | None:
        """A start at an end of the shortest free stretch; the earliest of equals."""
        found = stretches(self.table.legal_starts(vector), self.ii, STRETCHES)
        if not found:
            return None
        return min((length, low + (cycle - low) % self.ii) for cycle, length in found)[1]

    # Recurrences ------------------------------------------------------------------------------

    def _block(self, recurrence: Recurrence, plan: Plan) -> bool:
        """Seat a recurrence whole, its first member wherever that lets the others follow."""
        members = sorted(recurrence.members, key=lambda op: self._entry(op, plan))
        first = members[0]
        low = self.asap[first]
        legal = self.table.legal_starts(self.problem.vectors[first])
        openings = [low]
        if self.table.placed:
            ends = stretches(legal, self.ii, OPENINGS)
            openings = sorted(low + (cycle - low) % self.ii for cycle, _ in ends)
        for start in reversed(openings) if plan.late else openings:
            if self.table.fits(self.problem.vectors[first], start) and self._follow(
                members, start, plan
            ):
                return True
        return False

    def _follow(self, members: Sequence[int], start: int, plan: Plan) -> bool:
        """Seat all members, each in the window the others leave; none if one has no seat."""
        self._commit(members[0], start)
        for count, op in enumerate(members[1:], 1):
            self.problem.deadline.check()
            low, high = self._window(op)
            seat = self._inside(op, low, high, plan.late)
            if seat is None:
                self.blame[op] += 1
                self.failed = op
                for seated in members[:count]:
                    self._release(seated)
                return False
            self._commit(op, seat)
        return True

    # Force ------------------------------------------------------------------------------------

    def _force(self, op: int) -> list[int]:
        """Seat an operation where it costs least; those that had to leave."""
        self.blame[op] += 1
        self.failed = op
        victims: list[int] = []
        member = self.home.get(op)
        if member is not None and self.blame[op] % PATIENCE == 0:
            victims = [m for m in member[0].members if self.starts[m] is not None]
            for victim in victims:
                self._release(victim)
        low, high = self._window(op)
        _, seat, leave = min(self._offers(op, low, min(high, low + self.ii - 1)))
        for victim in leave:
            self._release(victim)
        vector = self.problem.vectors[op]
        while (conflict := self.table.conflict(vector, seat % self.ii)) is not None:
            self.problem.deadline.check()
            lightest = min(
                (self.problem.index[name] for name in conflict.holders),
                key=lambda other: self.blame[other],
            )
            self._release(lightest)
            victims.append(lightest)
        place = (op, seat % self.ii)
        self.visits[place] = self.visits.get(place, 0) + 1
        self._commit(op, seat)
        return [*victims, *leave]

    def _offers(self, op: int, low: int, high: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """(cost, start, who must leave): against holders' ends, and at the window's."""
        seen: set[int] = set()
        for start in (low, high, *self._edges(op, low)):
            if low <= start <= high and start not in seen:
                seen.add(start)
                leave = self._in_the_way(op, start)
                cost = sum(1 + self.blame[victim] for victim in leave)
                cost += 2 * self.visits.get((op, start % self.ii), 0)
                yield cost, start, leave

    def _edges(self, op: int, low: int) -> Iterator[int]:
        """Starts at which the operation just follows or just precedes a holder."""
        ii = self.ii
        for column, offset, duration, _ in self.problem.claims[op]:
            lane = self.lanes[column]
            step = 2 * len(lane) // OFFERS + 1
            for begin, _, held, _ in lane[self.blame[op] % step :: step]:
                yield low + (begin + held - offset - low) % ii
                yield low + (begin - offset - duration - low) % ii

    def _in_the_way(self, op: int, start: int) -> tuple[int, ...]:
        """Who would have to leave; with capacities above 1, the lightest first."""
        leave: dict[int, None] = {}
        for column, offset, duration, amount in self.problem.claims[op]:
            overlapping = [
                (self.blame[other], other, units)
                for other, units in self._overlapping(column, (start + offset) % self.ii, duration)
                if other not in leave
            ]
            load = amount + sum(units for _, _, units in overlapping)
            limit = self.problem.holds.limits[column]
            if load > limit:
                for _, other, units in sorted(overlapping):
                    leave[other] = None
                    load -= units
                    if load <= limit:
                        break
        return tuple(leave)

    def _overlapping(self, column: int, begin: int, duration: int) -> list[tuple[int, int]]:
        """(operation, units) of those that hold a column somewhere in a stretch of cycles."""
        ii, lane = self.ii, self.lanes[column]
        reach = self.problem.holds.longest[column]
        if duration + reach > ii:
            stretch = lane
        else:
            first, last = begin - reach + 1, begin + duration
            stretch = lane[
                bisect_left(lane, (max(first, 0),)) : bisect_left(lane, (min(last, ii),))
            ]
            if first < 0:
                stretch = lane[bisect_left(lane, (first + ii,)) :] + stretch
            if last > ii:
                stretch = stretch + lane[: bisect_left(lane, (last - ii,))]
        found: list[tuple[int, int]] = []
        for at, other, held, units in stretch:
            gap = (at - begin) % ii
            if gap < duration or ii - gap < held:
                found.append((other, units))
        return found

    def _commit(self, op: int, seat: int) -> None:
        self.table.commit(self.problem.names[op], self.problem.vectors[op], seat % self.ii)
        self.starts[op] = seat
        for column, offset, duration, amount in self.problem.claims[op]:
            insort(self.lanes[column], ((seat + offset) % self.ii, op, duration, amount))

    def _release(self, op: int) -> None:
        self.table.release(self.problem.names[op])
        seat = self.starts[op] or 0
        self.starts[op] = None
        for column, offset, duration, amount in self.problem.claims[op]:
            lane = self.lanes[column]
            del lane[bisect_left(lane, ((seat + offset) % self.ii, op, duration, amount))]


def stretches(legal: int, ii: int, most: int) -> list[tuple[int, int]]:
    """(end, length) of the runs of set bits, round the circle: both ends of each, `most` in all."""
    if not legal:
        return []
    full = (1 << ii) - 1
    if legal == full:
        return [(0, ii)]
    firsts = legal & ~((legal << 1 | legal >> (ii - 1)) & full)
    found: list[tuple[int, int]] = []
    while firsts and len(found) < most:
        first = (firsts & -firsts).bit_length() - 1
        firsts &= firsts - 1
        seen = legal >> first | (legal << (ii - first) & full)
        length = (~seen & (seen + 1)).bit_length() - 1
        found.append((first, length))
        if length > 1:
            found.append(((first + length - 1) % ii, length))
    return found
