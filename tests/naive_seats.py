"""Seating operations at one II, step by step, the naive way: the oracle of the seating loops.

    pack      cycles first, stages follow: recurrences as blocks, then the rest by priority;
              what finds no seat takes the place that costs least and pushes others out
    iterate   starts, after B. R. Rau, "Iterative modulo scheduling" (MICRO 1994): what finds no
              seat is forced, and pushes out whom it meets and who would come too early

What an operation holds depends on its cycle alone, and outside recurrences any cycles can be
completed to a schedule by adding stages. So `pack` undoes no seat because of a dependence; members
of a recurrence stay inside the windows that the others leave (R. Huff, "Lifetime-sensitive modulo
scheduling", PLDI 1993). `iterate` keeps to dependences all the way, and has fewer stages.
Who was pushed out or found no seat is remembered and weighs more from then on.

`stretto.generate.kernel.seats` does the same steps in the same order, to the last tie, with rows of
numbers instead of dictionaries and searches by leaps instead of masks of all legal starts.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from stretto.generate.kernel.core import DONE, FAILED, MORE, Core, Segment
from stretto.resources.table import Counters, arc, lowest, rotate, touching

OPENINGS = 32
"""Places tried for the first member of a recurrence."""
STRETCHES = 64
"""Free stretches looked at when the tightest is wanted."""
OFFERS = 24
"""Places weighed when an operation must push others out; in larger loops, others each time."""
PATIENCE = 3
"""Forced seats of an operation after which its whole recurrence is seated anew."""
LOOSE = 512
"""Recurrences of more operations are not seated as blocks: a table of all distances is too much."""
NEVER = 1 << 62

Held = tuple[int, int, int, int]
"""(first cycle, node, length, amount)."""


class Seats:
    """Seats of nodes at one II, found by one plan after the other."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.size = core.size
        self.limits = core.limits
        self.ii = 0
        self.failed = -1
        """The last node that found no seat."""
        self.evictions = 0
        """What is left of a plan's budget."""
        self._priority: Sequence[int] = [0] * core.size
        self.spent = 0
        """Steps taken so far, over all plans."""
        self._home = {op: h for h, members in enumerate(core.recurrences) for op in members}
        self._position = {op: k for members in core.recurrences for k, op in enumerate(members)}

    # At one II --------------------------------------------------------------------------------

    def at(self, ii: int, segments: Sequence[Sequence[Segment]], floors: Sequence[int]) -> bool:
        """Take an II; false: a recurrence asks for a larger one.

        `segments`: by node, (column, offset, length, amount) wound around the II; `floors`: the
        first start that what was left out of the problem leaves each node.
        """
        core = self.core
        self.ii = ii
        self._segments = segments
        self._asap = list(floors)
        if not self._raise(self._asap, core.order, core.succs):
            return False
        self._alap = self._latest(NEVER)
        self._blame = [0] * self.size
        self._longest = [0] * len(self.limits)
        for row in segments:
            for column, _, length, _ in row:
                self._longest[column] = max(self._longest[column], length)
        self.distances = [  # between members of a recurrence, by position; None: too many
            self._distances(members) if len(members) <= LOOSE else None
            for members in core.recurrences
        ]
        ranks = [
            (_tightness(apart), -len(members), h)
            for h, (members, apart) in enumerate(zip(core.recurrences, self.distances, strict=True))
        ]
        self._ranked = [h for _, _, h in sorted(ranks)]
        return True

    def _raise(
        self,
        values: list[int],
        order: Sequence[int],
        steps: Sequence[Sequence[tuple[int, int, int]]],
    ) -> bool:
        """Raise values along dependences until all are met; false: a recurrence asks for more."""
        fresh = [True] * self.size
        for _ in range(self.size + 1):
            for node in order:
                if not fresh[node]:
                    continue
                fresh[node] = False
                for other, latency, distance in steps[node]:
                    reached = values[node] + latency - self.ii * distance
                    if reached > values[other]:
                        values[other] = reached
                        fresh[other] = True
            if not any(fresh):
                return True
        return False

    def _latest(self, limit: int) -> list[int]:
        """The latest starts that a limit for all and those of depth leave; far away where none."""
        core, ii = self.core, self.ii
        values = [limit if s is None else min(limit, (s + 1) * ii - 1) for s in core.max_stage]
        moved = any(value != NEVER for value in values)
        while moved:
            moved = False
            for node in reversed(core.order):
                for other, latency, distance in core.succs[node]:
                    if values[other] == NEVER:
                        continue
                    reached = values[other] - latency + ii * distance
                    if reached < values[node]:
                        values[node] = reached
                        moved = True
        return values

    def _distances(self, members: Sequence[int]) -> list[list[int]]:
        """Longest paths between all members of a recurrence, by position."""
        local = {op: k for k, op in enumerate(members)}
        steps = [
            [
                (local[other], latency - self.ii * distance)
                for other, latency, distance in self.core.succs[op]
                if other in local
            ]
            for op in members
        ]
        found: list[list[int]] = []
        for source in range(len(members)):
            values = [-NEVER] * len(members)
            values[source] = 0
            fresh = {source}
            while fresh:
                for node in sorted(fresh):
                    fresh.discard(node)
                    for other, gain in steps[node]:
                        if values[node] + gain > values[other]:
                            values[other] = values[node] + gain
                            fresh.add(other)
            found.append(values)
        return found

    @property
    def packable(self) -> bool:
        """Whether every recurrence is small enough for its distances to be kept."""
        return all(apart is not None for apart in self.distances)

    def earliest(self) -> list[int]:
        """The earliest start of each node by dependences."""
        return list(self._asap)

    def heights(self) -> list[int]:
        """Cycles from each node's start until the last that waits for it is complete."""
        values = list(self.core.completion)
        self._raise(values, self.core.order[::-1], self.core.preds)
        return values

    # The table --------------------------------------------------------------------------------

    def _illegal(self, op: int) -> int:
        """The cycles at which a start does not fit."""
        illegal = 0
        for column, offset, length, amount in self._segments[op]:
            slack = self.limits[column] - amount
            crowded = self._counters[column].above(slack)
            if crowded:
                illegal |= touching(rotate(crowded, offset, self.ii), length, self.ii)
        return illegal

    def _legal(self, op: int) -> int:
        return ((1 << self.ii) - 1) ^ self._illegal(op)

    def _first_fit(self, op: int, low: int, high: int) -> int | None:
        """The earliest legal start of a window; None if there is none."""
        legal = self._legal(op)
        if high < low or not legal:
            return None
        start = low + lowest(rotate(legal, low % self.ii, self.ii))
        return start if start <= high else None

    def _last_fit(self, op: int, low: int, high: int) -> int | None:
        """The latest legal start of a window; None if there is none."""
        legal = self._legal(op)
        if high < low or not legal:
            return None
        after = high + 1 - self.ii
        start = after + rotate(legal, after % self.ii, self.ii).bit_length() - 1
        return start if start >= low else None

    def _commit(self, op: int, seat: int) -> None:
        self._start[op] = seat
        for column, offset, length, amount in self._segments[op]:
            begin = (seat + offset) % self.ii
            self._counters[column].add(arc(begin, length, self.ii), amount)
            insort(self._lanes[column], (begin, op, length, amount))

    def _release(self, op: int) -> None:
        seat = self._start.pop(op)
        for column, offset, length, amount in self._segments[op]:
            begin = (seat + offset) % self.ii
            self._counters[column].subtract(arc(begin, length, self.ii), amount)
            lane = self._lanes[column]
            del lane[bisect_left(lane, (begin, op, length, amount))]

    def _begin(self, priority: Sequence[int], evictions: int) -> None:
        self._counters = [Counters(self.ii) for _ in self.limits]
        self._lanes: list[list[Held]] = [[] for _ in self.limits]
        self._start: dict[int, int] = {}
        self._priority = priority
        self._queue: list[tuple[int, int, int]] = []
        self._visits: dict[tuple[int, int], int] = {}
        self.failed = -1
        self.evictions = evictions

    def _entry(self, op: int) -> tuple[int, int, int]:
        late = int(self.core.pending[op]) if self._textbook else -self._blame[op]
        return late, -self._priority[op], op

    # Seating by cycle: stages follow ----------------------------------------------------------

    def pack(self, priority: Sequence[int], tight: bool, late: bool, evictions: int) -> None:
        """Begin a plan that seats by cycle; what was learned by the plans before it stays.

        Nodes of higher priority come first; `tight`: into the tightest gap, not the earliest
        cycle; `late`: members of a recurrence are sought backwards first.
        """
        self._begin(priority, evictions)
        self._tight, self._late, self._textbook = tight, late, False
        for h in self._ranked:
            self._block(h)
        self._queue = [self._entry(op) for op in range(self.size) if op not in self._start]
        heapify(self._queue)

    def run(self, steps: int) -> int:
        """Go on for so many steps: DONE, FAILED, or MORE are needed."""
        return self._iterate(steps) if self._textbook else self._pack(steps)

    def _pack(self, steps: int) -> int:
        while self._queue:
            op = self._queue[0][2]
            if op in self._start:
                heappop(self._queue)
                continue
            if steps <= 0:
                return MORE
            steps -= 1
            self.spent += 1
            heappop(self._queue)
            seat = self._free(op)
            if seat is None and self.evictions <= 0:
                self._blame[op] += 1
                self.failed = op
                return FAILED
            if seat is None:
                victims = self._force(op)
                self.evictions -= len(victims)
                for victim in victims:
                    heappush(self._queue, self._entry(victim))
            else:
                self._commit(op, seat)
        return DONE

    def _free(self, op: int) -> int | None:
        low, high = self._window(op)
        if op in self._home:
            return self._inside(op, low, high)
        if self._tight:
            return self._tightest(op, low)
        return self._first_fit(op, low, high)

    def _after_preds(self, op: int, plain: bool = False) -> int:
        low = 0 if plain else self._asap[op]
        for other, latency, distance in self.core.preds[op]:
            start = self._start.get(other)
            if start is not None:
                low = max(low, start + latency - self.ii * distance)
        return low

    def _window(self, op: int) -> tuple[int, int]:
        """Starts to choose from; for members of a recurrence, those that the others leave."""
        h = self._home.get(op)
        if h is None:
            low = self._after_preds(op)
            return low, low + self.ii - 1
        apart, place = self.distances[h], self._position[op]
        assert apart is not None
        bounds = [
            (start + apart[k][place], start - apart[place][k])
            for k, other in enumerate(self.core.recurrences[h])
            if (start := self._start.get(other)) is not None
        ]
        if not bounds:
            low = self._asap[op]
            return low, low + self.ii - 1
        return max(b[0] for b in bounds), min(b[1] for b in bounds)

    def _inside(self, op: int, low: int, high: int) -> int | None:
        """A free start for a member of a recurrence, near where the others would have it.

        The window of a member may reach a whole II back or ahead; going there would use up the
        slack of the others. So starts are sought from the place that the earliest starts give
        it, onwards first, or backwards first if `late`.
        """
        members = self.core.recurrences[self._home[op]]
        shift = next(
            (at - self._asap[m] for m in members if (at := self._start.get(m)) is not None), 0
        )
        middle = min(max(low, self._asap[op] + shift), high)
        ahead = (middle, min(high, middle + self.ii - 1))
        behind = (max(low, middle - self.ii + 1), middle - 1)
        if self._late:
            found = self._last_fit(op, *behind)
            return self._first_fit(op, *ahead) if found is None else found
        found = self._first_fit(op, *ahead)
        return self._last_fit(op, *behind) if found is None else found

    def _tightest(self, op: int, low: int) -> int | None:
        """A start at an end of the shortest free stretch; the earliest of equals."""
        found = stretches(self._legal(op), self.ii, STRETCHES)
        if not found:
            return None
        return min((length, low + (cycle - low) % self.ii) for cycle, length in found)[1]

    def _block(self, h: int) -> bool:
        """Seat a recurrence whole, its first member wherever that lets the others follow."""
        members = sorted(self.core.recurrences[h], key=self._entry)
        first = members[0]
        low = self._asap[first]
        openings = [low]
        if self._start:
            ends = stretches(self._legal(first), self.ii, OPENINGS)
            openings = sorted(low + (cycle - low) % self.ii for cycle, _ in ends)
        for start in reversed(openings) if self._late else openings:
            if self._first_fit(first, start, start) is not None and self._follow(members, start):
                return True
        return False

    def _follow(self, members: Sequence[int], start: int) -> bool:
        """Seat all members, each in the window the others leave; none if one has no seat."""
        self._commit(members[0], start)
        for count, op in enumerate(members[1:], 1):
            seat = self._inside(op, *self._window(op))
            if seat is None:
                self._blame[op] += 1
                self.failed = op
                for seated in members[:count]:
                    self._release(seated)
                return False
            self._commit(op, seat)
        return True

    # Force ------------------------------------------------------------------------------------

    def _force(self, op: int) -> list[int]:
        """Seat an operation where it costs least; those that had to leave."""
        self._blame[op] += 1
        self.failed = op
        victims: list[int] = []
        h = self._home.get(op)
        if h is not None and self._blame[op] % PATIENCE == 0:
            victims = [m for m in self.core.recurrences[h] if m in self._start]
            for victim in victims:
                self._release(victim)
        low, high = self._window(op)
        _, seat, leave = min(
            (self._cost(op, start, leave := self._in_the_way(op, start)), start, leave)
            for start in self._offers(op, low, min(high, low + self.ii - 1))
        )
        for victim in leave:
            self._release(victim)
        victims += leave
        while (lightest := self._crowder(op, seat)) is not None:
            self._release(lightest)
            victims.append(lightest)
        self._visit(op, seat)
        self._commit(op, seat)
        return victims

    def _visit(self, op: int, seat: int) -> None:
        place = (op, seat % self.ii)
        self._visits[place] = self._visits.get(place, 0) + 1

    def _cost(self, op: int, start: int, leave: Sequence[int]) -> int:
        """What a forced seat costs: who leaves, and a place tried in vain costs more."""
        again = self._visits.get((op, start % self.ii), 0)
        return 2 * again + sum(1 + self._blame[victim] for victim in leave)

    def _offers(self, op: int, low: int, high: int) -> Iterator[int]:
        """The window's ends, and starts at which a node just follows or just precedes a holder."""
        ii = self.ii
        yield low
        yield high
        for column, offset, length, _ in self._segments[op]:
            lane = self._lanes[column]
            step = 2 * len(lane) // OFFERS + 1
            for begin, _, held, _ in lane[self._blame[op] % step :: step]:
                for start in (begin + held - offset, begin - offset - length):
                    turned = low + (start - low) % ii
                    if turned <= high:
                        yield turned

    def _in_the_way(self, op: int, start: int) -> tuple[int, ...]:
        """Who would have to leave; with capacities above 1, the lightest first."""
        leave: dict[int, None] = {}
        for column, offset, length, amount in self._segments[op]:
            rivals = [
                (self._blame[other], other, units)
                for other, units in self._overlapping(column, (start + offset) % self.ii, length)
                if other not in leave
            ]
            load = amount + sum(units for _, _, units in rivals)
            if load > self.limits[column]:
                for _, other, units in sorted(rivals):
                    leave[other] = None
                    load -= units
                    if load <= self.limits[column]:
                        break
        return tuple(leave)

    def _overlapping(self, column: int, begin: int, length: int) -> Iterator[tuple[int, int]]:
        """(node, amount) of those that hold a column somewhere in a stretch of cycles."""
        for at, other, held, amount in self._near(column, begin, length):
            gap = (at - begin) % self.ii
            if gap < length or self.ii - gap < held:
                yield other, amount

    def _near(self, column: int, begin: int, length: int) -> Sequence[Held]:
        """The part of a lane that may reach a stretch of cycles."""
        ii, lane, reach = self.ii, self._lanes[column], self._longest[column]
        if length + reach > ii:
            return lane
        first, last = begin - reach + 1, begin + length
        near = lane[bisect_left(lane, (max(first, 0), -1)) : bisect_left(lane, (min(last, ii), -1))]
        if first < 0:
            near = lane[bisect_left(lane, (first + ii, -1)) :] + near
        if last > ii:
            near = near + lane[: bisect_left(lane, (last - ii, -1))]
        return near

    def _crowder(self, op: int, start: int) -> int | None:
        """The lightest in the way of a seat at the first cycle in conflict; None: it fits."""
        for column, offset, length, amount in self._segments[op]:
            begin = (start + offset) % self.ii
            crowded = self._counters[column].above(self.limits[column] - amount)
            crowded = rotate(crowded, begin, self.ii) & ((1 << length) - 1)
            if crowded:
                plain = self._textbook and self._plain
                cycle = begin + (crowded.bit_length() - 1 if plain else lowest(crowded))
                weight = self._priority if self._textbook and not self._weigh else self._blame
                return min(
                    (
                        other
                        for at, other, held, _ in self._lanes[column]
                        if (cycle - at) % self.ii < held
                    ),
                    key=lambda other: (weight[other], -other if plain else other),
                    default=None,
                )
        return None

    # Iterative modulo scheduling --------------------------------------------------------------

    def iterate(self, priority: Sequence[int], budget: int, weigh: bool) -> None:
        """Begin a plan that seats by start: dependences push out as slots do.

        `budget`: seats to be taken at most; `weigh`: what finds no seat takes the one that costs
        least, not the next.
        """
        self._begin(priority, budget)
        self._textbook, self._weigh, self._plain = True, weigh, False
        self._last: dict[int, int] = {}
        self._queue = [self._entry(op) for op in range(self.size)]
        heapify(self._queue)

    def rau(self, priority: Sequence[int], budget: int) -> None:
        """Begin Rau's own plan: no start is ruled out by who is not seated yet.

        Who is in the way leaves from the last cycle in conflict on, of equals the later first. The
        decisions are those of the textbook, to the last tie, on a core that folds nothing.
        """
        self.iterate(priority, budget, False)
        self._plain = True

    def shorten(self, stages: int, budget: int) -> bool:
        """Go on from a complete placement: who stands beyond so many stages is seated anew.

        False: no schedule at this II has so few.
        """
        self._alap = self._latest(stages * self.ii - 1)
        if any(early > late for early, late in zip(self._asap, self._alap, strict=True)):
            return False
        self._textbook, self._weigh, self._plain = True, True, False
        self._visits = {}
        self.failed = -1
        self.evictions = budget
        self._last = dict(self._start)
        self._queue = []
        for op in range(self.size):
            if self._start[op] > self._alap[op]:
                self._leave(op)
        return True

    def put(self, starts: Sequence[int]) -> None:
        """Take the seats of a complete placement."""
        self._begin(self._priority, 0)
        for op, start in enumerate(starts):
            self._commit(op, start)

    def _iterate(self, steps: int) -> int:
        while self._queue:
            if steps <= 0:
                return MORE
            steps -= 1
            self.spent += 1
            op = heappop(self._queue)[2]
            if self.evictions <= 0:
                self.failed = op
                return FAILED
            self.evictions -= 1
            low, limit = self._after_preds(op, self._plain), self._alap[op]
            if low > limit:
                if self._asap[op] > limit:
                    self.failed = op
                    return FAILED
                self._push_back(op)
                low = limit
            high = min(low + self.ii - 1, limit)
            seat = self._beside_group(op, low, high)
            if seat is None:
                seat = self._forced(op, low, high)
                while (crowder := self._crowder(op, seat)) is not None:
                    self._leave(crowder)
            self._commit(op, seat)
            self._last[op] = seat
            for other, latency, distance in self.core.succs[op]:
                at = self._start.get(other)
                if at is not None and seat + latency - self.ii * distance > at:
                    self._leave(other)
        return DONE

    def _leave(self, op: int) -> None:
        self._release(op)
        heappush(self._queue, self._entry(op))

    def _forced(self, op: int, low: int, high: int) -> int:
        """Where a node goes that finds no seat."""
        if self._weigh:
            return self._cheapest(op, low, high)
        last = self._last.get(op)
        seat = low if last is None or low > last else last + 1
        return low if seat > self._alap[op] else seat

    def _cheapest(self, op: int, low: int, high: int) -> int:
        """The start of a window that pushes out what was in trouble least."""
        self._blame[op] += 1
        _, seat = min((self._toll(op, start), start) for start in self._offers(op, low, high))
        self._visit(op, seat)
        return seat

    def _toll(self, op: int, start: int) -> int:
        """What a seat costs: who leaves for want of room, and who would come too early."""
        late = [
            other
            for other, latency, distance in self.core.succs[op]
            if (at := self._start.get(other)) is not None
            and start + latency - self.ii * distance > at
        ]
        return self._cost(op, start, (*late, *self._in_the_way(op, start)))

    def _push_back(self, op: int) -> None:
        """Take out the predecessors that leave a node no stage that it may have."""
        for other, latency, distance in self.core.preds[op]:
            start = self._start.get(other)
            if start is not None and start + latency - self.ii * distance > self._alap[op]:
                self._leave(other)

    def _beside_group(self, op: int, low: int, high: int) -> int | None:
        """A seat in the stage of the group; where there is none, its seated members leave."""
        group = self.core.group[op]
        seated = [] if group is None else [m for m in self.core.members[group] if m in self._start]
        if seated:
            ahead = self.core.ahead
            stage = self._start[seated[0]] // self.ii + ahead[seated[0]] - ahead[op]
            first = stage * self.ii
            seat = self._first_fit(op, max(low, first), min(high, first + self.ii - 1))
            if seat is not None:
                return seat
            for member in seated:
                self._leave(member)
        return self._first_fit(op, low, high)

    # What came of it --------------------------------------------------------------------------

    def starts(self) -> list[int | None]:
        """The start of each node; None: not seated."""
        return [self._start.get(op) for op in range(self.size)]

    def staged(self) -> bool:
        """Move seats by whole IIs so that every dependence holds; false: a recurrence forbids."""
        core, ii, start = self.core, self.ii, self._start
        for op in range(self.size):
            start[op] = self._asap[op] + (start[op] - self._asap[op]) % ii
        fresh = [True] * self.size
        for _ in range(self.size + 1):
            for node in core.order:
                if not fresh[node]:
                    continue
                fresh[node] = False
                for other, latency, distance in core.succs[node]:
                    need = start[node] + latency - ii * distance
                    if need > start[other]:
                        start[other] = need + (start[other] - need) % ii
                        fresh[other] = True
            if not any(fresh):
                return True
        return False

    def compact(self, rounds: int) -> None:
        """Move the seats of a complete placement earlier, in order, while that moves any."""
        for _ in range(rounds):
            moved = False
            for op in self.core.order:
                now = self._start[op]
                low = self._after_preds(op)
                if self.core.group[op] is not None or now <= low:
                    continue
                self._release(op)
                seat = self._first_fit(op, low, now)
                self._commit(op, now if seat is None else seat)
                moved = moved or self._start[op] < now
            if not moved:
                return


def _tightness(apart: Sequence[Sequence[int]] | None) -> int:
    """How far the two nearest members of a recurrence may move against each other."""
    if apart is None:
        return NEVER
    return min(-(apart[a][b] + apart[b][a]) for a in range(1, len(apart)) for b in range(a))


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
