# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True, annotation_typing=False
"""Seating operations at one II, step by step.

    pack      cycles first, stages follow: recurrences as blocks, then the rest by priority;
              what finds no seat takes the place that costs least and pushes others out
    iterate   starts, after B. R. Rau, "Iterative modulo scheduling" (MICRO 1994): what finds no
              seat is forced, and pushes out whom it meets and who would come too early

What an operation holds depends on its cycle alone, and outside recurrences any cycles can be
completed to a schedule by adding stages. So `pack` undoes no seat because of a dependence; members
of a recurrence stay inside the windows that the others leave (R. Huff, "Lifetime-sensitive modulo
scheduling", PLDI 1993). `iterate` keeps to dependences all the way, and has fewer stages.
Who was pushed out or found no seat is remembered and weighs more from then on.

    planes[column]     how much is held of a slot or pool in each modulo cycle: the bits of the
                       count, those of one word of cycles side by side
    lane[column]       who holds it, by first cycle

A window is searched by leaps: behind the last crowded cycle that a hold would touch it may begin
next. Every call does a bounded number of steps, so that whoever calls can look at the clock.

One source for both worlds: `seats.pxd` has the types for the compiler, and Python runs this file
where nothing was compiled. A word has 64 cycles where it is compiled; Python's integers have no
end, so there one word has them all.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from stretto.generate.kernel.core import DONE, FAILED, MORE, Core, Segment, Step

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
POOL = 2048
"""Numbers that rows are cut from at a time."""
VISITS = 64
"""Places by force for which there is room at first."""
NEVER = 1 << 62
NONE = -(1 << 62)
"""No start."""
WORD = 6
"""Cycles of a word, as a power of two, where it has an end."""
ALL = (1 << 64) - 1
"""Such a word, full."""
ENDLESS = __file__.endswith(".py")
"""Whether words have no end: this is run by Python."""

_ZERO = array("q", [0])


def fresh(count: int) -> array[int]:
    """Zeros, one more than so many."""
    return _ZERO * (count + 1)


def highest(word: int) -> int:
    """The place of the highest bit of a word that is not empty."""
    if ENDLESS:
        return word.bit_length() - 1
    place, reach = 0, 32
    while reach:
        if word >> reach:
            word >>= reach
            place += reach
        reach >>= 1
    return place


def lowest(word: int) -> int:
    """The place of the lowest bit of a word that is not empty."""
    return highest(word & (~word + 1))


class Seats:
    """Seats of nodes at one II, found by one plan after the other."""

    def __init__(self, core: Core) -> None:
        n = core.size
        self.size, self.columns, self.ii = n, len(core.limits), 0
        self.failed = -1
        """The last node that found no seat."""
        self.evictions = 0
        """What is left of a plan's budget."""
        self.spent = 0
        """Steps taken so far, over all plans."""
        self.pool, self.taken = fresh(POOL), 0
        self.limits, self.order = self._row(core.limits), self._row(core.order)
        self.succ_at, self.pred_at = self._ends(core.succs), self._ends(core.preds)
        self.succ_op, self.pred_op = self._zeros(self.succ_at[n]), self._zeros(self.pred_at[n])
        self.succ_latency = self._zeros(self.succ_at[n])
        self.succ_distance = self._zeros(self.succ_at[n])
        self._connect(core.succs, self.succ_op, self.succ_latency, self.succ_distance)
        self.pred_latency = self._zeros(self.pred_at[n])
        self.pred_distance = self._zeros(self.pred_at[n])
        self._connect(core.preds, self.pred_op, self.pred_latency, self.pred_distance)
        self.completion, self.ahead = self._row(core.completion), self._row(core.ahead)
        self.last_stage = self._row([-1 if stage is None else stage for stage in core.max_stage])
        self.group = self._row([-1 if group is None else group for group in core.group])
        self.pending = self._row(core.pending)
        self.group_at = self._ends(core.members)
        self.group_op = self._row([op for members in core.members for op in members])
        self.homes = len(core.recurrences)
        self.home_at = self._ends(core.recurrences)
        self.home_op = self._row([op for members in core.recurrences for op in members])
        self.home, self.position = self._zeros(n), self._zeros(n)
        for op in range(n):
            self.home[op] = -1
        for home in range(self.homes):
            for k in range(self.home_at[home], self.home_at[home + 1]):
                self.home[self.home_op[k]] = home
                self.position[self.home_op[k]] = k - self.home_at[home]
        self._make_room(n)

    def _make_room(self, n: int) -> None:
        """Rows that an II and a plan fill."""
        self.segments: Any = None
        self.asap, self.alap = self._zeros(n), self._zeros(n)
        self.longest, self.depth = self._zeros(self.columns), self._zeros(self.columns)
        self.apart, self.apart_at = self._zeros(0), self._zeros(self.homes)
        self.ranked, self.apart_known = self._zeros(self.homes), False
        self.shift, self.mask, self.all = WORD, (1 << WORD) - 1, ALL
        self.words = self.planes_size = 0
        self.planes_at, self.planes = self._zeros(self.columns), self._empty(0)
        self.lane_at, self.lane_size = self._zeros(self.columns), self._zeros(self.columns)
        self.blame, self.start, self.seated = self._zeros(n), self._zeros(n), self._zeros(n)
        self.priority, self.last, self.placed = self._zeros(n), self._zeros(n), 0
        self.tight = self.late = self.textbook = self.weigh = self.plain = False
        self.queue_size, self.queue_room = 0, n + 16
        self.queue_late, self.queue_first = self._zeros(n + 16), self._zeros(n + 16)
        self.queue_op = self._zeros(n + 16)
        self.head, self.block = self._zeros(n), self._zeros(n)
        self.visits_size = 0
        self.visits_room: int = VISITS
        self.visit_cycle, self.visit_count = self._zeros(VISITS), self._zeros(VISITS)
        self.visit_next = self._zeros(VISITS)
        self.offer_leave, self.best_leave = self._zeros(n), self._zeros(n)
        self.victims, self.victims_size = self._zeros(4 * n + 64), 0
        self.ends, self.lengths = self._zeros(2 * STRETCHES), self._zeros(2 * STRETCHES)
        self.openings = self._zeros(2 * OPENINGS)
        self.low = self.high = self.best = self.best_cost = self.best_found = 0

    def _zeros(self, count: int) -> array[int]:
        """A row of so many, and one more: a piece of a pool, for a view of its own takes longer."""
        first = self.taken
        if first + count >= len(self.pool):
            first, self.pool = 0, fresh(max(count, POOL))
        self.taken = first + count + 1
        return self.pool[first : self.taken]

    def _row(self, values: Sequence[int]) -> array[int]:
        """A row of these, and a zero."""
        found = self._zeros(len(values))
        for k, value in enumerate(values):
            found[k] = value
        return found

    def _ends(self, rows: Sequence[Sequence[object]]) -> array[int]:
        """Where each row begins when they stand one behind the other; where the last one ends."""
        found, end = self._zeros(len(rows)), 0
        for k, one in enumerate(rows):
            end += len(one)
            found[k + 1] = end
        return found

    def _longer(self, values: array[int]) -> array[int]:
        """The same row with room for twice as many."""
        found = self._zeros(2 * len(values))
        for k in range(len(values)):
            found[k] = values[k]
        return found

    def _connect(
        self,
        rows: Sequence[Sequence[Step]],
        op: array[int],
        latency: array[int],
        distance: array[int],
    ) -> None:
        """Dependences, one behind the other."""
        k = 0
        for steps in rows:
            for other, cycles, iterations in steps:
                op[k], latency[k], distance[k] = other, cycles, iterations
                k += 1

    def _empty(self, count: int) -> Any:
        """So many words."""
        return [0] * count if ENDLESS else array("Q", [0]) * (count + 1)

    # At one II --------------------------------------------------------------------------------

    def at(self, ii: int, segments: Sequence[Sequence[Segment]], floors: Sequence[int]) -> bool:
        """Take an II; false: a recurrence asks for a larger one.

        `segments`: by node, (column, offset, length, amount) wound around the II; `floors`: the
        first start that what was left out of the problem leaves each node.
        """
        if segments is not self.segments:
            self._take(segments)
            self.segments = segments
        if ii != self.ii:
            self._widen(ii)
        self.ii = ii
        for op in range(self.size):
            self.asap[op] = floors[op]
            self.blame[op] = 0
        if not self._raise(self.asap):
            return False
        self._latest(NEVER)
        self.apart_known = False
        return True

    def _take(self, segments: Sequence[Sequence[Segment]]) -> None:
        """Who holds what of which column."""
        self.ii = 0  # the table is another
        self.seg_at = self._ends(segments)
        total = self.seg_at[self.size]
        self.seg_op, self.seg_column = self._zeros(total), self._zeros(total)
        self.seg_offset, self.seg_length = self._zeros(total), self._zeros(total)
        self.seg_amount = self._zeros(total)
        for c in range(self.columns):
            self.lane_size[c] = self.longest[c] = self.depth[c] = 0
        s = 0
        for op, held in enumerate(segments):
            for column, offset, length, amount in held:
                self.seg_op[s], self.seg_column[s], self.seg_offset[s] = op, column, offset
                self.seg_length[s], self.seg_amount[s] = length, amount
                self._hold(s)
                s += 1
        widest = end = 0
        for c in range(self.columns):
            widest = max(widest, self.lane_size[c])
            self.lane_at[c] = end
            end += self.lane_size[c]
            self.lane_size[c] = 0
        self.lane_begin, self.lane_seg = self._zeros(end), self._zeros(end)
        self.rival_op, self.rival_blame = self._zeros(2 * widest), self._zeros(2 * widest)
        self.rival_amount = self._zeros(2 * widest)

    def _hold(self, s: int) -> None:
        """Have room for a segment in its column: the bits of its count, and in the lane."""
        c = self.seg_column[s]
        most = max(1, self.limits[c], self.seg_amount[s])  # fused ones may draw more than there is
        while most >> self.depth[c]:
            self.depth[c] += 1
        self.longest[c] = max(self.longest[c], self.seg_length[s])
        self.lane_size[c] += 1

    def _widen(self, ii: int) -> None:
        """A table of so many cycles: of columns that somebody holds, a word has all planes."""
        if ENDLESS:
            self.shift = max(WORD, ii.bit_length())
            self.mask = (1 << self.shift) - 1
            self.all = (1 << (1 << self.shift)) - 1
        self.words = (ii + self.mask) >> self.shift
        size = 0
        for c in range(self.columns):
            self.planes_at[c] = size
            size += self.words * self.depth[c]
        if size != self.planes_size:
            self.planes = self._empty(size)
            self.planes_size = size

    def _raise(self, values: array[int]) -> bool:
        """Raise values along dependences until all are met; false: a recurrence asks for more."""
        fresh, moved, rounds = self.last, True, 0
        for i in range(self.size):
            fresh[i] = 1
        while moved:
            moved = False
            rounds += 1
            if rounds > self.size + 1:
                return False
            for i in range(self.size):
                node = self.order[i]
                if not fresh[node]:
                    continue
                fresh[node] = 0
                for k in range(self.succ_at[node], self.succ_at[node + 1]):
                    reached = values[node] + self.succ_latency[k] - self.ii * self.succ_distance[k]
                    if reached > values[self.succ_op[k]]:
                        values[self.succ_op[k]] = reached
                        fresh[self.succ_op[k]] = 1
                        moved = True
        return True

    def _latest(self, limit: int) -> None:
        """The latest starts that a limit for all and those of depth leave; far away where none."""
        moved = limit != NEVER
        for i in range(self.size):
            self.alap[i] = limit
            if self.last_stage[i] >= 0:
                self.alap[i] = min(limit, (self.last_stage[i] + 1) * self.ii - 1)
                moved = True
        while moved:
            moved = False
            for i in range(self.size - 1, -1, -1):
                node = self.order[i]
                for k in range(self.succ_at[node], self.succ_at[node + 1]):
                    if self.alap[self.succ_op[k]] == NEVER:
                        continue
                    reached = self.alap[self.succ_op[k]] - self.succ_latency[k]
                    reached += self.ii * self.succ_distance[k]
                    if reached < self.alap[node]:
                        self.alap[node] = reached
                        moved = True

    def _distances(self, home: int) -> None:
        """Longest paths between all members of a recurrence."""
        first, fresh = self.home_at[home], self.last
        k = self.home_at[home + 1] - first
        for source in range(k):
            values = self.apart_at[home] + source * k
            for i in range(k):
                self.apart[values + i] = NONE
                fresh[i] = 0
            self.apart[values + source] = 0
            fresh[source] = 1
            moved = True
            while moved:
                moved = False
                for i in range(k):
                    if not fresh[i]:
                        continue
                    fresh[i] = 0
                    node = self.home_op[first + i]
                    for a in range(self.succ_at[node], self.succ_at[node + 1]):
                        other = self.succ_op[a]
                        if self.home[other] != home:
                            continue
                        reached = self.apart[values + i] + self.succ_latency[a]
                        reached -= self.ii * self.succ_distance[a]
                        if reached > self.apart[values + self.position[other]]:
                            self.apart[values + self.position[other]] = reached
                            fresh[self.position[other]] = 1
                            moved = True

    def _know_apart(self) -> None:
        """What only seating by cycle asks for, once an II."""
        if self.apart_known:
            return
        if len(self.apart) == 1:
            end = 0
            for home in range(self.homes):
                self.apart_at[home] = end
                if not self._loose(home):
                    end += (self.home_at[home + 1] - self.home_at[home]) ** 2
            self.apart = fresh(end)
        for home in range(self.homes):
            if not self._loose(home):
                self._distances(home)
        self._rank()
        self.apart_known = True

    def _loose(self, home: int) -> bool:
        """Whether a recurrence has too many members for a table of distances."""
        return self.home_at[home + 1] - self.home_at[home] > LOOSE

    def _rank(self) -> None:
        """Recurrences, the tightest first, then the largest, then in their order."""
        tight = fresh(self.homes)
        for home in range(self.homes):
            k, tightest = self.home_at[home + 1] - self.home_at[home], NEVER
            table = self.apart_at[home]
            for a in range(1, 0 if self._loose(home) else k):
                for b in range(a):
                    slack = -(self.apart[table + a * k + b] + self.apart[table + b * k + a])
                    tightest = min(tightest, slack)
            tight[home] = tightest
        for home in range(self.homes):
            j = home
            while j > 0 and self._tighter(tight, home, self.ranked[j - 1]):
                self.ranked[j] = self.ranked[j - 1]
                j -= 1
            self.ranked[j] = home

    def _tighter(self, tight: array[int], a: int, b: int) -> bool:
        if tight[a] != tight[b]:
            return tight[a] < tight[b]
        return self.home_at[a + 1] - self.home_at[a] > self.home_at[b + 1] - self.home_at[b]

    @property
    def packable(self) -> bool:
        """Whether every recurrence is small enough for its distances to be kept."""
        return not any(self._loose(home) for home in range(self.homes))

    def earliest(self) -> list[int]:
        """The earliest start of each node by dependences."""
        return [self.asap[i] for i in range(self.size)]

    def heights(self) -> list[int]:
        """Cycles from each node's start until the last that waits for it is complete."""
        self._rise()
        return [self.priority[i] for i in range(self.size)]

    def _rise(self) -> None:
        """The same, in place of priorities."""
        values, fresh, moved = self.priority, self.last, True
        for i in range(self.size):
            values[i] = self.completion[i]
            fresh[i] = 1
        while moved:
            moved = False
            for i in range(self.size - 1, -1, -1):
                node = self.order[i]
                if not fresh[node]:
                    continue
                fresh[node] = 0
                for k in range(self.pred_at[node], self.pred_at[node + 1]):
                    reached = values[node] + self.pred_latency[k] - self.ii * self.pred_distance[k]
                    if reached > values[self.pred_op[k]]:
                        values[self.pred_op[k]] = reached
                        fresh[self.pred_op[k]] = 1
                        moved = True

    # The table --------------------------------------------------------------------------------

    def _wrap(self, start: int) -> int:
        """The cycle of a start."""
        rest = start % self.ii
        return rest + self.ii if rest < 0 else rest

    def _full(self, c: int, slack: int, word: int) -> int:
        """The cycles of a word in which more than the slack of a column is held."""
        depth = self.depth[c]
        at = self.planes_at[c] + word * depth
        if slack < 0:
            return self.all
        if depth == 1:
            return self.planes[at]  # of one: whoever holds it leaves nothing
        more, equal = 0, self.all
        for p in range(depth - 1, -1, -1):
            plane = self.planes[at + p]
            if slack >> p & 1:
                equal &= plane
            else:
                more |= equal & plane
                equal &= plane ^ self.all
        return more

    def _last_in(self, c: int, slack: int, low: int, end: int) -> int:
        """The last crowded cycle from one to before another; -1: none."""
        last, first = (end - 1) >> self.shift, low >> self.shift
        for word in range(last, first - 1, -1):
            found = self._full(c, slack, word)
            if word == last:
                found &= self.all >> (self.mask - ((end - 1) & self.mask))
            if word == first:
                found &= self.all << (low & self.mask)
            if found:
                return (word << self.shift) + highest(found)
        return -1

    def _first_in(self, c: int, slack: int, low: int, end: int) -> int:
        """The first crowded cycle from one to before another; -1: none."""
        last, first = (end - 1) >> self.shift, low >> self.shift
        for word in range(first, last + 1):
            found = self._full(c, slack, word)
            if word == last:
                found &= self.all >> (self.mask - ((end - 1) & self.mask))
            if word == first:
                found &= self.all << (low & self.mask)
            if found:
                return (word << self.shift) + lowest(found)
        return -1

    def _free_in(self, c: int, slack: int, low: int) -> int:
        """The first cycle from one on that is not crowded; II: none."""
        first = low >> self.shift
        for word in range(first, self.words):
            found = self._full(c, slack, word) ^ self.all
            if word == first:
                found &= self.all << (low & self.mask)
            if found:
                return min(self.ii, (word << self.shift) + lowest(found))
        return self.ii

    def _last_crowded(self, c: int, cycle: int, length: int, slack: int) -> int:
        """The last of the cycles from one on that holds more than the slack; -1: none does."""
        end = cycle + length
        if end > self.ii:
            found = self._last_in(c, slack, 0, end - self.ii)
            if found >= 0:
                return found + self.ii - cycle
            end = self.ii
        found = self._last_in(c, slack, cycle, end)
        return found if found < 0 else found - cycle

    def _first_crowded(self, c: int, cycle: int, length: int, slack: int) -> int:
        """The first of the cycles from one on that holds more than the slack; -1: none does."""
        end = cycle + length
        found = self._first_in(c, slack, cycle, min(end, self.ii))
        if found >= 0:
            return found - cycle
        if end > self.ii:
            found = self._first_in(c, slack, 0, end - self.ii)
            if found >= 0:
                return found + self.ii - cycle
        return -1

    def _crowded_run(self, c: int, cycle: int, slack: int) -> int:
        """How many cycles in a row, from one on, hold more than the slack; at most II."""
        ahead = self._free_in(c, slack, cycle)
        if ahead < self.ii:
            return ahead - cycle
        return self.ii - cycle + min(self._free_in(c, slack, 0), cycle)

    def _first_fit(self, op: int, low: int, high: int) -> int:
        """The earliest legal start of a window; NONE if there is none."""
        first, end = self.seg_at[op], self.seg_at[op + 1]
        t, s, content, base = low, first, 0, self._wrap(low)
        high = min(high, low + self.ii - 1)
        if t > high:
            return NONE
        while content < end - first:
            c = self.seg_column[s]
            slack = self.limits[c] - self.seg_amount[s]
            cycle = base + self.seg_offset[s]
            if cycle >= self.ii:
                cycle -= self.ii
            k = self._last_crowded(c, cycle, self.seg_length[s], slack)
            if k < 0:
                content += 1
                s = s + 1 if s + 1 < end else first
                continue
            cycle += k + 1
            if cycle >= self.ii:
                cycle -= self.ii
            more = k + 1 + self._crowded_run(c, cycle, slack)
            t += more
            if t > high:
                return NONE
            base += more
            if base >= self.ii:
                base -= self.ii
            content = 0  # all are asked again, this one first
        return t

    def _last_fit(self, op: int, low: int, high: int) -> int:
        """The latest legal start of a window; NONE if there is none."""
        t, moved = high, True
        low = max(low, high - self.ii + 1)
        while t >= low:
            moved = False
            for s in range(self.seg_at[op], self.seg_at[op + 1]):
                c = self.seg_column[s]
                cycle, slack = self._wrap(t + self.seg_offset[s]), self.limits[c]
                k = self._first_crowded(c, cycle, self.seg_length[s], slack - self.seg_amount[s])
                if k >= 0:
                    t -= self.seg_length[s] - k
                    moved = True
                    break
            if not moved:
                return t
        return NONE

    def _fits(self, op: int, start: int) -> bool:
        return self._first_fit(op, start, start) == start

    def _run_end(self, op: int, start: int) -> int:
        """The first illegal start after a legal one; NEVER if there is none."""
        found = NEVER
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c = self.seg_column[s]
            cycle = self._wrap(start + self.seg_offset[s] + self.seg_length[s])
            k = self._first_crowded(c, cycle, self.ii, self.limits[c] - self.seg_amount[s])
            if k >= 0:
                found = min(found, start + k + 1)
        return found

    def _stretches(self, op: int, most: int) -> int:
        """Both ends of each run of legal starts and its length, into `ends` and `lengths`."""
        ii, found = self.ii, 0
        first = self._first_fit(op, 0, ii - 1)
        if first == NONE:
            return 0
        end = self._run_end(op, first)
        if end == NEVER:
            self.ends[0], self.lengths[0] = 0, ii
            return 1
        t = first
        if first == 0 and self._fits(op, ii - 1):
            t = end  # this run begins before cycle 0
        while found < most and t < ii:
            first = self._first_fit(op, t, t + ii - 1)
            if first >= ii:
                break
            end = self._run_end(op, first)
            length = end - first
            self.ends[found], self.lengths[found] = first, length
            found += 1
            if length > 1:
                self.ends[found], self.lengths[found] = (first + length - 1) % ii, length
                found += 1
            t = end
        return found

    def _commit(self, op: int, seat: int) -> None:
        base = self._wrap(seat)
        self.start[op], self.seated[op] = seat, 1
        self.placed += 1
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c, begin = self.seg_column[s], base + self.seg_offset[s]
            if begin >= self.ii:
                begin -= self.ii
            self._count(c, begin, self.seg_length[s], self.seg_amount[s])
            at = self._place(c, begin, s)
            for k in range(self.lane_at[c] + self.lane_size[c], at, -1):
                self.lane_begin[k], self.lane_seg[k] = self.lane_begin[k - 1], self.lane_seg[k - 1]
            self.lane_begin[at], self.lane_seg[at] = begin, s
            self.lane_size[c] += 1

    def _release(self, op: int) -> None:
        base = self._wrap(self.start[op])
        self.seated[op] = 0
        self.placed -= 1
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c, begin = self.seg_column[s], base + self.seg_offset[s]
            if begin >= self.ii:
                begin -= self.ii
            self._count(c, begin, self.seg_length[s], -self.seg_amount[s])
            self.lane_size[c] -= 1
            for k in range(self._place(c, begin, s), self.lane_at[c] + self.lane_size[c]):
                self.lane_begin[k], self.lane_seg[k] = self.lane_begin[k + 1], self.lane_seg[k + 1]

    def _count(self, c: int, begin: int, length: int, amount: int) -> None:
        end = begin + length
        self._count_in(c, begin, min(end, self.ii), amount)
        if end > self.ii:
            self._count_in(c, 0, end - self.ii, amount)

    def _count_in(self, c: int, low: int, end: int, amount: int) -> None:
        """Add to the counts of some cycles, or take away: a ripple of carries, or of borrows."""
        depth, first, last = self.depth[c], low >> self.shift, (end - 1) >> self.shift
        size = amount if amount > 0 else -amount
        for word in range(first, last + 1):
            mask = self.all
            if word == last:
                mask &= self.all >> (self.mask - ((end - 1) & self.mask))
            if word == first:
                mask &= self.all << (low & self.mask)
            at = self.planes_at[c] + word * depth
            if depth == 1:
                self.planes[at] ^= mask
                continue
            carry = 0
            for p in range(depth):
                other = mask if size >> p & 1 else 0
                old = self.planes[at + p]
                self.planes[at + p] = old ^ other ^ carry
                mine = old if amount > 0 else old ^ self.all
                carry = (mine & (other | carry)) | (other & carry)

    def _place(self, c: int, begin: int, segment: int) -> int:
        """Where an entry stands or would stand in a lane."""
        low = self.lane_at[c]
        high = low + self.lane_size[c]
        while low < high:
            middle = (low + high) >> 1
            there = self.lane_begin[middle]
            if there < begin or (there == begin and self.lane_seg[middle] < segment):
                low = middle + 1
            else:
                high = middle
        return low

    def _from(self, c: int, begin: int) -> int:
        """The first entry of a lane that begins at a cycle or later."""
        at, rest = self.lane_at[c], self.lane_size[c]
        while rest > 1:
            half = rest >> 1
            if self.lane_begin[at + half - 1] < begin:
                at += half
            rest -= half
        return at + 1 if rest == 1 and self.lane_begin[at] < begin else at

    def _clear(self) -> None:
        for k in range(self.planes_size):
            self.planes[k] = 0
        for c in range(self.columns):
            self.lane_size[c] = 0
        for op in range(self.size):
            self.seated[op] = 0
        self.placed = 0

    # The queue --------------------------------------------------------------------------------

    def _precedes(self, late: int, first: int, op: int, at: int) -> bool:
        """Whether a key comes before one in the queue."""
        if late != self.queue_late[at]:
            return late > self.queue_late[at]
        if first != self.queue_first[at]:
            return first > self.queue_first[at]
        return op < self.queue_op[at]

    def _enqueue(self, at: int, late: int, first: int, op: int) -> None:
        self.queue_late[at], self.queue_first[at], self.queue_op[at] = late, first, op

    def _move(self, source: int, to: int) -> None:
        self._enqueue(to, self.queue_late[source], self.queue_first[source], self.queue_op[source])

    def _push(self, op: int) -> None:
        late = -self.pending[op] if self.textbook else self.blame[op]
        first, i = self.priority[op], self.queue_size
        if i == self.queue_room:
            self.queue_late = self._longer(self.queue_late)
            self.queue_first = self._longer(self.queue_first)
            self.queue_op = self._longer(self.queue_op)
            self.queue_room *= 2
        self.queue_size += 1
        while i > 0:
            above = (i - 1) >> 1
            if not self._precedes(late, first, op, above):
                break
            self._move(above, i)
            i = above
        self._enqueue(i, late, first, op)

    def _pop(self) -> int:
        found = self.queue_op[0]
        self.queue_size -= 1
        end, i = self.queue_size, 0
        late, first, op = self.queue_late[end], self.queue_first[end], self.queue_op[end]
        while 2 * i + 1 < end:
            child = 2 * i + 1
            if child + 1 < end and self._precedes(
                self.queue_late[child + 1],
                self.queue_first[child + 1],
                self.queue_op[child + 1],
                child,
            ):
                child += 1
            if self._precedes(late, first, op, child):
                break
            self._move(child, i)
            i = child
        self._enqueue(i, late, first, op)
        return found

    # Seating by cycle: stages follow ----------------------------------------------------------

    def pack(self, priority: Sequence[int], tight: bool, late: bool, evictions: int) -> None:
        """Begin a plan that seats by cycle; what was learned by the plans before it stays.

        Nodes of higher priority come first; `tight`: into the tightest gap, not the earliest
        cycle; `late`: members of a recurrence are sought backwards first.
        """
        self._know_apart()
        self._begin(priority, evictions)
        self.tight, self.late, self.textbook = tight, late, False
        for h in range(self.homes):
            self._seat_block(self.ranked[h])
        for op in range(self.size):
            if not self.seated[op]:
                self._push(op)

    def _begin(self, priority: Sequence[int], evictions: int) -> None:
        self._clear()
        for op in range(self.size):
            self.priority[op] = priority[op]
        self._forget(evictions)

    def _forget(self, evictions: int) -> None:
        """Nobody waits, and no place was tried."""
        self.queue_size = self.visits_size = 0
        self.failed, self.evictions = -1, evictions
        for op in range(self.size):
            self.head[op] = -1

    def run(self, steps: int) -> int:
        """Go on for so many steps: DONE, FAILED, or MORE are needed."""
        return self._iterate(steps) if self.textbook else self._pack(steps)

    def _pack(self, steps: int) -> int:
        while self.queue_size:
            op = self.queue_op[0]
            if self.seated[op]:
                self._pop()
                continue
            if steps <= 0:
                return MORE
            steps -= 1
            self.spent += 1
            self._pop()
            seat = self._free(op)
            if seat == NONE and self.evictions <= 0:
                self.blame[op] += 1
                self.failed = op
                return FAILED
            if seat == NONE:
                self._force(op)
                self.evictions -= self.victims_size
                for i in range(self.victims_size):
                    self._push(self.victims[i])
            else:
                self._commit(op, seat)
        return DONE

    def _free(self, op: int) -> int:
        self._window(op)
        if self.home[op] >= 0:
            return self._inside(op)
        if self.tight:
            return self._tightest(op, self.low)
        return self._first_fit(op, self.low, self.high)

    def _after_preds(self, op: int, low: int) -> int:
        """The first start from one on that predecessors which are seated leave."""
        for k in range(self.pred_at[op], self.pred_at[op + 1]):
            other = self.pred_op[k]
            if self.seated[other]:
                reached = self.start[other] + self.pred_latency[k]
                low = max(low, reached - self.ii * self.pred_distance[k])
        return low

    def _window(self, op: int) -> None:
        """Starts to choose from; for members of a recurrence, those that the others leave."""
        home = self.home[op]
        if home < 0:
            self.low = self._after_preds(op, self.asap[op])
            self.high = self.low + self.ii - 1
            return
        first, place, table = self.home_at[home], self.position[op], self.apart_at[home]
        size, low, high = self.home_at[home + 1] - first, NONE, NEVER
        for k in range(size):
            other = self.home_op[first + k]
            if self.seated[other]:
                low = max(low, self.start[other] + self.apart[table + k * size + place])
                high = min(high, self.start[other] - self.apart[table + place * size + k])
        if high == NEVER:
            low = self.asap[op]
            high = low + self.ii - 1
        self.low, self.high = low, high

    def _inside(self, op: int) -> int:
        """A free start for a member of a recurrence, near where the others would have it.

        The window of a member may reach a whole II back or ahead; going there would use up the
        slack of the others. So starts are sought from the place that the earliest starts give
        it, onwards first, or backwards first if `late`.
        """
        home, shift, low, high = self.home[op], 0, self.low, self.high
        for k in range(self.home_at[home], self.home_at[home + 1]):
            member = self.home_op[k]
            if self.seated[member]:
                shift = self.start[member] - self.asap[member]
                break
        middle = min(max(low, self.asap[op] + shift), high)
        ahead, behind = min(high, middle + self.ii - 1), max(low, middle - self.ii + 1)
        if self.late:
            found = self._last_fit(op, behind, middle - 1)
            return self._first_fit(op, middle, ahead) if found == NONE else found
        found = self._first_fit(op, middle, ahead)
        return self._last_fit(op, behind, middle - 1) if found == NONE else found

    def _tightest(self, op: int, low: int) -> int:
        """A start at an end of the shortest free stretch; the earliest of equals."""
        found, best, length = self._stretches(op, STRETCHES), NONE, NEVER
        for i in range(found):
            start = low + self._wrap(self.ends[i] - low)
            if self.lengths[i] < length or (self.lengths[i] == length and start < best):
                length, best = self.lengths[i], start
        return best

    def _seat_block(self, home: int) -> bool:
        """Seat a recurrence whole, its first member wherever that lets the others follow."""
        size = self.home_at[home + 1] - self.home_at[home]
        for k in range(size):
            self._push(self.home_op[self.home_at[home] + k])
        for k in range(size):
            self.block[k] = self._pop()
        first, count = self.block[0], 1
        low = self.asap[first]
        openings = self.openings
        openings[0] = low
        if self.placed:
            count = self._stretches(first, OPENINGS)
            for i in range(count):
                start, k = low + self._wrap(self.ends[i] - low), i
                while k > 0 and openings[k - 1] > start:
                    openings[k] = openings[k - 1]
                    k -= 1
                openings[k] = start
        for i in range(count):
            start = openings[count - 1 - i] if self.late else openings[i]
            if self._fits(first, start) and self._follow(size, start):
                return True
        return False

    def _follow(self, size: int, start: int) -> bool:
        """Seat all of `block`, each in the window the others leave; none if one has no seat."""
        self._commit(self.block[0], start)
        for i in range(1, size):
            op = self.block[i]
            self._window(op)
            seat = self._inside(op)
            if seat == NONE:
                self.blame[op] += 1
                self.failed = op
                for k in range(i):
                    self._release(self.block[k])
                return False
            self._commit(op, seat)
        return True

    # Force ------------------------------------------------------------------------------------

    def _force(self, op: int) -> None:
        """Seat an operation where it costs least; those that had to leave are in `victims`."""
        home = self.home[op]
        self.victims_size = 0
        self.blame[op] += 1
        self.failed = op
        if home >= 0 and self.blame[op] % PATIENCE == 0:
            for k in range(self.home_at[home], self.home_at[home + 1]):
                if self.seated[self.home_op[k]]:
                    self._expel(self.home_op[k])
        self._window(op)
        self._choose(op, self.low, min(self.high, self.low + self.ii - 1))
        for i in range(self.best_found):
            self._expel(self.best_leave[i])
        lightest = self._crowder(op, self.best)
        while lightest >= 0:
            self._expel(lightest)
            lightest = self._crowder(op, self.best)
        self._visit(op, self._wrap(self.best))
        self._commit(op, self.best)

    def _expel(self, op: int) -> None:
        self._release(op)
        self.victims[self.victims_size] = op
        self.victims_size += 1

    def _choose(self, op: int, low: int, high: int) -> None:
        """The start of a window that costs least, into `best`.

        Of its ends, and of starts at which the node just follows or just precedes a holder.
        """
        self.best_cost, self.best, self.best_found = NEVER, NONE, 0
        self._offer(op, low)
        self._offer(op, high)
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c = self.seg_column[s]
            step = 2 * self.lane_size[c] // OFFERS + 1
            i = self.blame[op] % step
            while i < self.lane_size[c]:
                k = self.lane_at[c] + i
                begin = self.lane_begin[k] - self.seg_offset[s]
                start = begin + self.seg_length[self.lane_seg[k]]
                start = low + self._wrap(start - low)
                if start <= high:
                    self._offer(op, start)
                start = low + self._wrap(begin - self.seg_length[s] - low)
                if start <= high:
                    self._offer(op, start)
                i += step

    def _offer(self, op: int, start: int) -> None:
        """Weigh a start; keep it if it costs less than the best, or as much and comes earlier.

        It costs who leaves for want of room and, where starts are sought, who would come too early;
        a place tried in vain costs more.
        """
        cost = 2 * self._visited(op, self._wrap(start))
        if self.textbook and cost <= self.best_cost:
            for k in range(self.succ_at[op], self.succ_at[op + 1]):
                other, reached = self.succ_op[k], start + self.succ_latency[k]
                late = reached - self.ii * self.succ_distance[k] > self.start[other]
                if self.seated[other] and late:
                    cost += 1 + self.blame[other]
        if cost > self.best_cost:
            return
        found = self._in_the_way(op, start, self.best_cost - cost)
        if found < 0:
            return
        for i in range(found):
            cost += 1 + self.blame[self.offer_leave[i]]
        if cost < self.best_cost or (cost == self.best_cost and start < self.best):
            self.best_cost, self.best, self.best_found = cost, start, found
            for i in range(found):
                self.best_leave[i] = self.offer_leave[i]

    def _in_the_way(self, op: int, start: int, most: int) -> int:
        """Who would have to leave; with capacities above 1, the lightest first.

        -1: they cost more than so much, which is all that anybody wants to know.
        """
        leave = 0
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c, load, count = self.seg_column[s], self.seg_amount[s], 0
            begin = self._wrap(start + self.seg_offset[s])
            for j in range(self._overlapping(c, begin, self.seg_length[s])):
                other = self.rival_op[j]
                if not self._leaves(other, leave):
                    self.rival_op[count], self.rival_blame[count] = other, self.rival_blame[j]
                    self.rival_amount[count] = self.rival_amount[j]
                    load += self.rival_amount[j]
                    count += 1
            if load <= self.limits[c]:
                continue
            self._sort_rivals(count)
            for i in range(count):
                if i == 0 or self.rival_op[i] != self.rival_op[i - 1]:
                    self.offer_leave[leave] = self.rival_op[i]
                    leave += 1
                    most -= 1 + self.rival_blame[i]
                    if most < 0:
                        return -1
                load -= self.rival_amount[i]
                if load <= self.limits[c]:
                    break
        return leave

    def _leaves(self, op: int, count: int) -> bool:
        """Whether a node is among the first so many that would have to leave."""
        for i in range(count):  # noqa: SIM110 - without a generator, for the compiler
            if self.offer_leave[i] == op:
                return True
        return False

    def _sort_rivals(self, count: int) -> None:
        """By blame, then in order: D. L. Shell's gaps, for there may be many."""
        gap = 1
        while 3 * gap + 1 < count // 2:
            gap = 3 * gap + 1
        while gap > 0:
            for i in range(gap, count):
                blame, op, amount = self.rival_blame[i], self.rival_op[i], self.rival_amount[i]
                j = i
                while j >= gap and self._lighter_than(blame, op, amount, j - gap):
                    self.rival_blame[j] = self.rival_blame[j - gap]
                    self.rival_op[j] = self.rival_op[j - gap]
                    self.rival_amount[j] = self.rival_amount[j - gap]
                    j -= gap
                self.rival_blame[j], self.rival_op[j], self.rival_amount[j] = blame, op, amount
            gap //= 3

    def _lighter_than(self, blame: int, op: int, amount: int, at: int) -> bool:
        """Whether one comes before one of the rivals."""
        if blame != self.rival_blame[at]:
            return blame < self.rival_blame[at]
        if op != self.rival_op[at]:
            return op < self.rival_op[at]
        return amount < self.rival_amount[at]

    def _overlapping(self, c: int, begin: int, length: int) -> int:
        """Those that hold a column somewhere in a stretch of cycles, into the rivals."""
        ii, reach = self.ii, self.longest[c]
        if length + reach > ii:
            return self._touching(c, self.lane_at[c], ii, begin, length, 0)
        first, last, found = begin - reach + 1, begin + length, 0
        if first < 0:
            found = self._touching(c, self._from(c, first + ii), ii, begin, length, found)
        found = self._touching(c, self._from(c, max(first, 0)), last, begin, length, found)
        if last > ii:
            found = self._touching(c, self.lane_at[c], last - ii, begin, length, found)
        return found

    def _touching(self, c: int, at: int, until: int, begin: int, length: int, found: int) -> int:
        """Those of them from an entry on that begin until a cycle, behind so many found before."""
        end = self.lane_at[c] + self.lane_size[c]
        while at < end and self.lane_begin[at] < until:
            gap, segment = self.lane_begin[at] - begin, self.lane_seg[at]
            if gap < 0:
                gap += self.ii
            if gap < length or self.ii - gap < self.seg_length[segment]:
                op = self.seg_op[segment]
                self.rival_op[found], self.rival_blame[found] = op, self.blame[op]
                self.rival_amount[found] = self.seg_amount[segment]
                found += 1
            at += 1
        return found

    def _crowder(self, op: int, start: int) -> int:
        """The lightest that stands in the way of a seat at the first cycle in conflict; -1: none.

        Rau's own plan clears the last cycle first.
        """
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c, begin = self.seg_column[s], self._wrap(start + self.seg_offset[s])
            slack = self.limits[c] - self.seg_amount[s]
            if self.textbook and self.plain:
                k = self._last_crowded(c, begin, self.seg_length[s], slack)
            else:
                k = self._first_crowded(c, begin, self.seg_length[s], slack)
            if k >= 0:
                return self._lightest(c, self._wrap(begin + k))
        return -1

    def _lightest(self, c: int, cycle: int) -> int:
        """The lightest of those that hold a column at a cycle; -1: nobody does."""
        low = cycle - self.longest[c] + 1
        best = self._lighter_in(c, max(low, 0), cycle, cycle, -1)
        if low < 0:
            best = self._lighter_in(c, max(cycle + 1, low + self.ii), self.ii - 1, cycle, best)
        return best

    def _lighter_in(self, c: int, low: int, high: int, cycle: int, best: int) -> int:
        """The same of those that begin in a stretch, and of one known."""
        at, end = self._from(c, low), self.lane_at[c] + self.lane_size[c]
        while at < end and self.lane_begin[at] <= high:
            gap, segment = cycle - self.lane_begin[at], self.lane_seg[at]
            if gap < 0:
                gap += self.ii
            if gap < self.seg_length[segment]:
                op = self.seg_op[segment]
                if best < 0 or self._lighter(op, best):
                    best = op
            at += 1
        return best

    def _lighter(self, a: int, b: int) -> bool:
        if self.textbook and not self.weigh:
            x, y = self.priority[a], self.priority[b]
            if self.plain:
                return x < y or (x == y and a > b)
        else:
            x, y = self.blame[a], self.blame[b]
        return x < y or (x == y and a < b)

    def _visited(self, op: int, cycle: int) -> int:
        """How often a place was taken by force."""
        i = self._visit_of(op, cycle)
        return 0 if i < 0 else self.visit_count[i]

    def _visit_of(self, op: int, cycle: int) -> int:
        i = self.head[op]
        while i >= 0 and self.visit_cycle[i] != cycle:
            i = self.visit_next[i]
        return i

    def _visit(self, op: int, cycle: int) -> None:
        i = self._visit_of(op, cycle)
        if i >= 0:
            self.visit_count[i] += 1
            return
        if self.visits_size == self.visits_room:
            self.visit_cycle = self._longer(self.visit_cycle)
            self.visit_count = self._longer(self.visit_count)
            self.visit_next = self._longer(self.visit_next)
            self.visits_room *= 2
        i = self.visits_size
        self.visits_size += 1
        self.visit_cycle[i], self.visit_count[i], self.visit_next[i] = cycle, 1, self.head[op]
        self.head[op] = i

    # Iterative modulo scheduling --------------------------------------------------------------

    def iterate(self, priority: Sequence[int], budget: int, weigh: bool) -> None:
        """Begin a plan that seats by start: dependences push out as slots do.

        `budget`: seats to be taken at most; `weigh`: what finds no seat takes the one that costs
        least, not the next.
        """
        self._begin(priority, budget)
        self.textbook, self.weigh, self.plain = True, weigh, False
        for op in range(self.size):
            self.last[op] = NONE
            self._push(op)

    def rau(self, priority: Sequence[int], budget: int) -> None:
        """Begin Rau's own plan: no start is ruled out by who is not seated yet.

        Who is in the way leaves from the last cycle in conflict on, of equals the later first. The
        decisions are those of the textbook, to the last tie, on a core that folds nothing.
        """
        self.iterate(priority, budget, False)
        self.plain = True

    def shorten(self, stages: int, budget: int) -> bool:
        """Go on from a complete placement: who stands beyond so many stages is seated anew.

        False: no schedule at this II has so few.
        """
        self._latest(stages * self.ii - 1)
        for op in range(self.size):
            if self.asap[op] > self.alap[op]:
                return False
        self.textbook, self.weigh, self.plain = True, True, False
        self._forget(budget)
        for op in range(self.size):
            self.last[op] = self.start[op]
            if self.start[op] > self.alap[op]:
                self._leave(op)
        return True

    def put(self, starts: Sequence[int]) -> None:
        """Take the seats of a complete placement."""
        self._clear()
        for op in range(self.size):
            self._commit(op, starts[op])

    def _iterate(self, steps: int) -> int:
        while self.queue_size:
            if steps <= 0:
                return MORE
            steps -= 1
            self.spent += 1
            op = self._pop()
            if self.evictions <= 0:
                self.failed = op
                return FAILED
            self.evictions -= 1
            low, limit = self._after_preds(op, 0 if self.plain else self.asap[op]), self.alap[op]
            if low > limit:
                if self.asap[op] > limit:
                    self.failed = op
                    return FAILED
                self._push_back(op)
                low = limit
            high = min(low + self.ii - 1, limit)
            seat = self._beside_group(op, low, high)
            if seat == NONE:
                seat = self._forced(op, low, high)
                crowder = self._crowder(op, seat)
                while crowder >= 0:
                    self._leave(crowder)
                    crowder = self._crowder(op, seat)
            self._commit(op, seat)
            self.last[op] = seat
            for k in range(self.succ_at[op], self.succ_at[op + 1]):
                other, reached = self.succ_op[k], seat + self.succ_latency[k]
                reached -= self.ii * self.succ_distance[k]
                if self.seated[other] and reached > self.start[other]:
                    self._leave(other)
        return DONE

    def _leave(self, op: int) -> None:
        self._release(op)
        self._push(op)

    def _forced(self, op: int, low: int, high: int) -> int:
        """Where a node goes that finds no seat."""
        if self.weigh:
            self.blame[op] += 1
            self._choose(op, low, high)
            self._visit(op, self._wrap(self.best))
            return self.best
        last = self.last[op]
        seat = low if last == NONE or low > last else last + 1
        return low if seat > self.alap[op] else seat

    def _push_back(self, op: int) -> None:
        """Take out the predecessors that leave a node no stage that it may have."""
        for k in range(self.pred_at[op], self.pred_at[op + 1]):
            other, latency = self.pred_op[k], self.pred_latency[k]
            if self.seated[other]:
                reached = self.start[other] + latency - self.ii * self.pred_distance[k]
                if reached > self.alap[op]:
                    self._leave(other)

    def _beside_group(self, op: int, low: int, high: int) -> int:
        """A seat in the stage of the group; where there is none, its seated members leave."""
        group, stage = self.group[op], NONE
        if group >= 0:
            for k in range(self.group_at[group], self.group_at[group + 1]):
                member = self.group_op[k]
                if self.seated[member]:
                    stage = (self.start[member] - self._wrap(self.start[member])) // self.ii
                    stage += self.ahead[member] - self.ahead[op]
                    break
        if stage != NONE:
            first = stage * self.ii
            seat = self._first_fit(op, max(low, first), min(high, first + self.ii - 1))
            if seat != NONE:
                return seat
            for k in range(self.group_at[group], self.group_at[group + 1]):
                if self.seated[self.group_op[k]]:
                    self._leave(self.group_op[k])
        return self._first_fit(op, low, high)

    # What came of it --------------------------------------------------------------------------

    def starts(self) -> list[int | None]:
        """The start of each node; None: not seated."""
        return [self.start[i] if self.seated[i] else None for i in range(self.size)]

    def staged(self) -> bool:
        """Move seats by whole IIs so that every dependence holds; false: a recurrence forbids."""
        fresh, moved, rounds = self.last, True, 0
        for i in range(self.size):
            # the earliest with its cycle
            self.start[i] = self.asap[i] + self._wrap(self.start[i] - self.asap[i])
            fresh[i] = 1
        while moved:
            moved = False
            rounds += 1
            if rounds > self.size + 1:
                return False
            for i in range(self.size):
                node = self.order[i]
                if not fresh[node]:
                    continue
                fresh[node] = 0
                for k in range(self.succ_at[node], self.succ_at[node + 1]):
                    other, need = self.succ_op[k], self.start[node] + self.succ_latency[k]
                    need -= self.ii * self.succ_distance[k]
                    if need > self.start[other]:
                        self.start[other] = need + self._wrap(self.start[other] - need)
                        fresh[other] = 1
                        moved = True
        return True

    def compact(self, rounds: int) -> None:
        """Move the seats of a complete placement earlier, in order, while that moves any."""
        moved = True
        while moved and rounds > 0:
            moved = False
            rounds -= 1
            for i in range(self.size):
                op = self.order[i]
                now, low = self.start[op], self._after_preds(op, self.asap[op])
                if self.group[op] >= 0 or now <= low:
                    continue
                self._release(op)
                seat = self._first_fit(op, low, now)
                self._commit(op, now if seat == NONE else seat)
                moved = moved or self.start[op] < now
