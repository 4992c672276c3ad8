# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, infer_types=True, annotation_typing=False
"""Complete placements at one II, made better by moves that keep every hold in its place.

    CUDA  │ a │  b  │ c │ d │           insert `d` after `a`: who is in the way moves on,
    CUDA  │ a │ d │  b  │ c │           one after the other, until a gap takes it up

    part     whoever collides at earliest starts is parted, one way or the other: that finds a
             placement of so many stages, or proves that there is none.
    fit      dependences may be missed for a while, by cycles that are counted and weighed: a
             placement of fewer stages is one that misses none. Dependences that stay missed weigh
             more and more (P. Morris, "The breakout method", AAAI 1993).
    close    all behind some time start an II sooner, in the same cycles; what is then missed is
             repaired, as in `fit`, by moves of those that miss something.
    polish   dependences hold throughout: from the cycles follow the earliest starts, then whatever
             shortens lives stands later. What is better than some moves ago is kept (E. Burke and
             Y. Bykov, "The late acceptance hill-climbing heuristic", EJOR 2017).

Nodes are numbered; those that hold something keep their cycle while stages are found, the others
stand anywhere. One source for both worlds: `moving.pxd` has the types for the compiler, and Python
runs this file where nothing was compiled. So no number here is negative where it is divided.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from stretto.generate.kernel.board import NEVER, Board, Worth

FAR = NEVER
"""The same, as the compiler has it."""
LIGHT = 4
"""What a missed dependence weighs at first."""
AIMED = 30
"""Of a hundred moves, those that begin with a missed dependence."""
HOPE = 6
"""What `fit` still misses when it is nowhere near: more than such a part of the II."""
PUSHES = 16
"""Nodes that a move of `fit` may push out of the way, on the mean."""
SWAPS, GAPS, PICKS = 40, 80, 32
"""Of a hundred moves of `close`: exchanges, and those below which a free place is taken; how many
are looked at for an exchange."""
CLOSE = 64
"""Nodes that a move of `close` may push out of the way, or steps to a free place."""
CUTS = 8
"""Times in one II at which a stage may be taken out."""
HISTORY = 40
"""Moves ago that a placement is compared with."""
CROWDED = 32
"""Segments of a column from which on only those nearby are looked at."""
DEEPEST = 160
"""Collisions that are parted on one way."""
BLAME = 1 << 20
"""What a way apart weighs over how often the two were parted in vain."""
PLAIN = 10
"""The part of its looks that go in order at first, which most placements take."""
SHARES = 5
"""Times that parting begins anew, with what it has learned of whom to part first."""
OPEN, FOUND, REFUTED = 0, 1, 2
"""What is known of a number of stages."""
STRAY = 8
"""Stages beyond twice as many as the best placement has at which starts are given up."""


POOL = 4096
"""Numbers that rows are cut from at a time."""
_ZERO = array("q", [0])


def _numbers(values: Iterable[int]) -> array[int]:
    found = array("q", values)
    found.append(0)
    return found


def _zeros(count: int) -> array[int]:
    return _ZERO * (count + 1)


class Moving:
    """Moves on one board."""

    def __init__(self, board: Board) -> None:  # noqa: PLR0915 - a row of numbers each
        n = len(board.order)
        self.pool, self.taken = _zeros(0), 1
        self.n = n
        self.ii = board.ii
        self.fitted = board.fitted
        self.ruled = bool(board.groups) or min(board.last, default=FAR) < FAR
        self.ruled = self.ruled or board.pinned
        self.order = self.row(board.order)
        self.foremost = max(board.first, default=0)
        self.head: int = 0
        self.waiting: int = 0
        self.place = self.zeros(n)
        self.line, self.waits = self.zeros(n), self.zeros(n)
        self.reach = self.row(board.reach)
        self.first = self.row(board.first)
        self.last = self.row(board.last)
        self.frozen = self.zeros(n)
        self.pinned = board.pinned
        self.arcs = len(board.arcs)
        self.arc_src, self.arc_dst = self.row(board.arcs.src), self.row(board.arcs.dst)
        self.arc_gain = self.row(board.arcs.gain)
        self.weight, self.short = self.zeros(self.arcs), self.zeros(self.arcs)
        self.astray = self.zeros(n)
        self.heavy = self.lack = 0
        self.arcs_at, self.arcs_of = self.zeros(n), self.zeros(2 * self.arcs)
        self.every = len(board.every)
        self.succ_at, self.pred_at = self.zeros(n), self.zeros(n)
        self.succ_op, self.succ_gain = self.zeros(self.every), self.zeros(self.every)
        self.pred_op, self.pred_gain = self.zeros(self.every), self.zeros(self.every)
        self._connect(
            self.row(board.every.src), self.row(board.every.dst), self.row(board.every.gain)
        )
        self.seg_at = self.ends(board.segments)
        self.segs = self.seg_at[n]
        self.seg_col = self.field(board.segments, self.segs, 0)
        self.seg_off = self.field(board.segments, self.segs, 1)
        self.seg_len = self.field(board.segments, self.segs, 2)
        self.seg_amt = self.field(board.segments, self.segs, 3)
        self.columns = len(board.limits)
        self.limit = self.row(board.limits)
        self.seg_op, self.keeps, self.holders = self.zeros(self.segs), self.zeros(n), self.zeros(n)
        self.lane_at, self.lane_seg = self.zeros(self.columns), self.zeros(self.segs)
        self.begun = 0
        self.lane_of, self.lane_from = self.zeros(self.segs), self.zeros(self.segs)
        self.lane_len, self.lane_op = self.zeros(self.segs), self.zeros(self.segs)
        self.longest = self.zeros(self.columns)
        self.met = self.zeros(self.segs)
        self._hold()
        self._part()
        self.groups = len(board.groups)
        self.group_at = self.ends(board.groups)
        grouped = self.group_at[self.groups]
        self.group_op = self.field(board.groups, grouped, 0)
        self.group_off = self.field(board.groups, grouped, 1)
        self.grouped = self.zeros(n)
        for row in board.groups:
            for op, _ in row:
                self.grouped[op] = 1
        self.rooms = len(board.room_bytes)
        self.wr_at, self.acc_at = self.ends(board.writers), self.ends(board.accessors)
        writers, accessors = self.wr_at[self.rooms], self.acc_at[self.rooms]
        self.wr_op = self.field(board.writers, writers, 0)
        self.wr_off = self.field(board.writers, writers, 1)
        self.acc_op = self.field(board.accessors, accessors, 0)
        self.acc_done = self.field(board.accessors, accessors, 1)
        self.room_bytes = self.row(board.room_bytes)
        self.room_space = self.row(board.room_space)
        self.touch_at, self.touch_room = self.zeros(n), self.zeros(accessors)
        self._touch(self.zeros(n))
        self.spaces = len(board.base)
        self.base = self.row(board.base)
        self.budget = self.row(board.budget)
        self.used = self.zeros(self.spaces)
        self.always, self.unit, self.registers = board.always, board.unit, board.registers
        self.start, self.cycle, self.now = self.zeros(n), self.zeros(n), self.zeros(n)
        self.best, self.early, self.late = self.zeros(n), self.zeros(n), self.zeros(n)
        self.most = 2 * n + 4
        self.pushes = self.most
        """Nodes that one move may push out of the way."""
        self.queue = self.zeros(self.most + n)
        self.log_op, self.log_at = self.zeros(2 * self.most + n), self.zeros(2 * self.most + n)
        self.logged = 0
        self.agents = self.row(board.agents)
        self.begin, self.end = self.zeros(self.rooms), self.zeros(self.rooms)
        self.phase, self.rest = self.zeros(self.rooms), self.zeros(self.rooms)
        self.weighs = self.zeros(self.rooms)
        self.cells = self.rooms**2 > self.ii + self.rooms
        self.change = self.zeros(self.ii + 1 if self.cells else 0)
        self.history = self.zeros(HISTORY)
        self.kept, self.spot, self.opens = (
            self.zeros(0),
            self.zeros(self.segs),
            self.zeros(self.segs),
        )
        self.crew = array("q")
        self.blame = self.zeros(n)
        self.sure, self.deep, self.plainly = True, False, True
        self.post_src, self.post_dst = self.zeros(2 * DEEPEST), self.zeros(2 * DEEPEST)
        self.post_gain = self.zeros(2 * DEEPEST)
        self.turns = self.looks = self.posted = self.summit = self.upmost = 0
        self.nearest = self.farthest = self.source = self.target = 0
        self.seed = 20260
        self.excess = self.stages = self.bytes = self.peak = self.area = self.least = FAR
        self.best_excess = self.best_stages = self.best_bytes = self.best_peak = FAR
        self.plain = 0
        """What `missed` counts, not weighed."""
        self.pushed = 0
        """Nodes that had to move out of the way so far."""
        self.tried = 0
        """Moves made so far."""
        for s in range(self.segs):
            self.link(s)

    # Made ready -------------------------------------------------------------------------------

    def zeros(self, count: int) -> array[int]:
        """A row of so many, and one more: a piece of a pool, for a view of its own takes longer."""
        first = self.taken
        if first + count >= len(self.pool):
            first, self.pool = 0, _zeros(max(count, POOL))
        self.taken = first + count + 1
        return self.pool[first : self.taken]

    def row(self, values: Sequence[int]) -> array[int]:
        """A row of these, and a zero."""
        found = self.zeros(len(values))
        for k, value in enumerate(values):
            found[k] = value
        return found

    def field(self, rows: Sequence[Sequence[Sequence[int]]], count: int, which: int) -> array[int]:
        """One field of all entries of all rows, of which there are so many."""
        found, k = self.zeros(count), 0
        for row in rows:
            for entry in row:
                found[k] = entry[which]
                k += 1
        return found

    def ends(self, rows: Sequence[Sequence[object]]) -> array[int]:
        """Where each row begins, and where the last one ends."""
        found, k = self.zeros(len(rows)), 0
        for n, row in enumerate(rows):
            k += len(row)
            found[n + 1] = k
        return found

    def _connect(self, src: array[int], dst: array[int], gain: array[int]) -> None:
        """By node: its place in the order, the arcs at it, and who follows and precedes it."""
        for k in range(self.n):
            self.place[self.order[k]] = k
        for a in range(self.arcs):
            self.arcs_at[self.arc_src[a]] += 1
            self.arcs_at[self.arc_dst[a]] += 1
            self.weight[a] = LIGHT
        for e in range(self.every):
            self.succ_at[src[e]] += 1
            self.pred_at[dst[e]] += 1
        arcs = succs = preds = 0
        for i in range(self.n):  # where the rows end, from which they are filled downwards
            arcs += self.arcs_at[i]
            succs += self.succ_at[i]
            preds += self.pred_at[i]
            self.arcs_at[i], self.succ_at[i], self.pred_at[i] = arcs, succs, preds
        self.arcs_at[self.n], self.succ_at[self.n], self.pred_at[self.n] = arcs, succs, preds
        for a in range(self.arcs - 1, -1, -1):
            src_op, dst_op = self.arc_src[a], self.arc_dst[a]
            self.arcs_at[src_op] -= 1
            self.arcs_of[self.arcs_at[src_op]] = a
            self.arcs_at[dst_op] -= 1
            self.arcs_of[self.arcs_at[dst_op]] = a
        for e in range(self.every - 1, -1, -1):
            self.succ_at[src[e]] -= 1
            self.succ_op[self.succ_at[src[e]]] = dst[e]
            self.succ_gain[self.succ_at[src[e]]] = gain[e]
            self.pred_at[dst[e]] -= 1
            self.pred_op[self.pred_at[dst[e]]] = src[e]
            self.pred_gain[self.pred_at[dst[e]]] = gain[e]

    def _hold(self) -> None:
        """By segment: whose it is; by column: its segments, and the longest."""
        self.movers = 0
        for op in range(self.n):
            if self.seg_at[op] < self.seg_at[op + 1]:
                self.keeps[op] = 1
                self.holders[self.movers] = op
                self.movers += 1
            for s in range(self.seg_at[op], self.seg_at[op + 1]):
                column = self.seg_col[s]
                self.seg_op[s] = op
                self.lane_at[column] += 1
                self.longest[column] = max(self.longest[column], self.seg_len[s])
        segs = 0
        for column in range(self.columns):
            segs += self.lane_at[column]
            self.lane_at[column] = segs
        self.lane_at[self.columns] = segs
        for s in range(self.segs - 1, -1, -1):
            column = self.seg_col[s]
            self.lane_at[column] -= 1
            m = self.lane_at[column]
            self.lane_seg[m], self.lane_of[s], self.lane_op[m] = s, m, self.seg_op[s]
            self.lane_from[m], self.lane_len[m] = self.seg_off[s], self.seg_len[s]

    def _part(self) -> None:
        """Cut crowded columns into parts of their cycles, each with a list of who begins there."""
        self.part_wide, self.parts = self.zeros(self.columns), self.zeros(self.columns)
        self.part_at = self.zeros(self.columns)
        for column in range(self.columns):
            count = self.lane_at[column + 1] - self.lane_at[column]
            parts = 0
            if count > CROWDED:
                wide = max(1, self.longest[column] // 2, self.ii // count)
                self.part_wide[column] = wide
                parts = self.ii // wide
            self.parts[column] = parts
            self.part_at[column + 1] = self.part_at[column] + parts
        self.part_seg = self.zeros(self.part_at[self.columns])
        self.after, self.before = self.zeros(self.segs), self.zeros(self.segs)
        for part in range(self.part_at[self.columns]):
            self.part_seg[part] = -1
        for s in range(self.segs):
            self.after[s] = self.before[s] = -1

    def _touch(self, seen: array[int]) -> None:
        """By node: the rooms it touches, each once; `seen`: a row of zeros."""
        for room in range(self.rooms):
            for k in range(self.acc_at[room], self.acc_at[room + 1]):
                op = self.acc_op[k]
                if seen[op] != room + 1:
                    seen[op] = room + 1
                    self.touch_at[op] += 1
        rooms = 0
        for op in range(self.n):
            rooms += self.touch_at[op]
            self.touch_at[op] = rooms
            seen[op] = 0
        self.touch_at[self.n] = rooms
        for room in range(self.rooms - 1, -1, -1):
            for k in range(self.acc_at[room], self.acc_at[room + 1]):
                op = self.acc_op[k]
                if seen[op] != room + 1:
                    seen[op] = room + 1
                    self.touch_at[op] -= 1
                    self.touch_room[self.touch_at[op]] = room

    # What everybody uses ----------------------------------------------------------------------

    def below(self, n: int) -> int:
        """A number below n: the next of a fixed sequence."""
        self.seed = (self.seed * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.seed >> 8) % n

    def wrap(self, start: int) -> int:
        """The cycle of a start; most are near, and a division takes as long as all the rest."""
        if -self.ii <= start < self.ii:
            return start if start >= 0 else start + self.ii
        rest = start % self.ii
        return rest + self.ii if rest < 0 else rest

    def near(self, cycle: int) -> int:
        """A cycle that is at most one II too low or too high."""
        if cycle < 0:
            return cycle + self.ii
        return cycle if cycle < self.ii else cycle - self.ii

    def held_from(self, s: int) -> int:
        """The cycle in which a segment begins."""
        return self.lane_from[self.lane_of[s]]

    def part_of(self, s: int) -> int:
        """The part of its column in which a segment begins."""
        column = self.seg_col[s]
        part = self.held_from(s) // self.part_wide[column]
        return self.part_at[column] + min(part, self.parts[column] - 1)

    def link(self, s: int) -> None:
        """Enter a segment in the list of those that begin in its part."""
        if not self.part_wide[self.seg_col[s]]:
            return
        part = self.part_of(s)
        head = self.part_seg[part]
        self.after[s], self.before[s] = head, -1
        if head >= 0:
            self.before[head] = s
        self.part_seg[part] = s

    def unlink(self, s: int) -> None:
        """Take it out again."""
        if not self.part_wide[self.seg_col[s]]:
            return
        before, after = self.before[s], self.after[s]
        if before >= 0:
            self.after[before] = after
        else:
            self.part_seg[self.part_of(s)] = after
        if after >= 0:
            self.before[after] = before

    def seat(self, op: int, at: int) -> None:
        """Let a node start at a time."""
        self.start[op] = at
        cycle = self.wrap(at)
        if cycle == self.cycle[op]:
            return
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            self.unlink(s)
        self.cycle[op] = cycle
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            self.lane_from[self.lane_of[s]] = self.near(cycle + self.seg_off[s])
            self.link(s)

    def put(self, op: int, at: int) -> None:
        """Move one node, to be undone."""
        self.log_op[self.logged] = op
        self.log_at[self.logged] = self.start[op]
        self.logged += 1
        self.seat(op, at)

    def undo(self) -> None:
        """Take back the last move."""
        while self.logged > 0:
            self.logged -= 1
            self.seat(self.log_op[self.logged], self.log_at[self.logged])

    def load(self, starts: array[int]) -> None:
        """Go on from these starts."""
        for i in range(self.n):
            self.seat(i, starts[i])

    def insert(self, op: int, at: int, onward: bool) -> bool:
        """Move a node; who is in its way moves on (or back), as far as that takes; may not work."""
        self.logged = 0
        self.put(op, at)
        self.queue[0] = op
        return self.spread(1, op, onward)

    def spread(self, tail: int, op: int, onward: bool) -> bool:
        """Let everybody move out of the way of so many in the queue; never `op`, nor the frozen."""
        head, budget = 0, self.pushes
        while head < tail:
            x = self.queue[head]
            head += 1
            s = self.seg_at[x]
            while s < self.seg_at[x + 1]:
                other = self.crowding(s)
                if other < 0:
                    s += 1
                    continue
                y = self.seg_op[other]
                budget -= 1
                self.pushed += 1
                if y == op or budget <= 0:
                    return False
                gap = self.near(self.held_from(other) - self.held_from(s))
                if self.frozen[y]:  # then it is the other one that moves, beyond it
                    if self.frozen[x] or x == op:
                        return False
                    if onward:
                        self.put(x, self.start[x] + self.near(gap + self.seg_len[other]))
                    else:
                        self.put(x, self.start[x] - self.near(self.seg_len[s] - gap))
                    s = self.seg_at[x]
                    continue
                if onward:
                    step = self.near(self.seg_len[s] - gap)
                    self.put(y, self.start[y] + step)
                else:
                    step = self.near(gap + self.seg_len[other])
                    self.put(y, self.start[y] - step)
                if step == 0:
                    return False
                self.queue[tail] = y
                tail += 1
        return True

    def crowding(self, s: int) -> int:
        """The first segment that a segment cannot share its column with; -1: it fits."""
        column, op = self.seg_col[s], self.seg_op[s]
        amount, limit = self.seg_amt[s], self.limit[column]
        if amount == limit and not self.part_wide[column]:
            return self.alone(s)
        count, held = self.meeting(s), 0
        for k in range(count):
            other = self.met[k]
            if self.seg_op[other] != op and amount + self.seg_amt[other] > limit:
                return other
            held += self.seg_amt[other]  # what is tied to it moves with it, and counts
        return -1 if held <= limit else self.crowd(s, count)

    def alone(self, s: int) -> int:
        """The first segment of another node that meets a segment that shares with nobody; or -1."""
        column, op, ii = self.seg_col[s], self.seg_op[s], self.ii
        begin, length = self.held_from(s), self.seg_len[s]
        for m in range(self.lane_at[column], self.lane_at[column + 1]):
            gap = self.lane_from[m] - begin
            if gap < 0:
                gap += ii
            if (gap < length or ii - gap < self.lane_len[m]) and self.lane_op[m] != op:
                return self.lane_seg[m]
        return -1

    def crowd(self, s: int, count: int) -> int:
        """Of segments that fit beside another one by one, one where all together do not; or -1."""
        column, op = self.seg_col[s], self.seg_op[s]
        begin = self.held_from(s)
        for m in range(count):
            at = self.held_from(self.met[m])
            if self.near(at - begin) >= self.seg_len[s]:
                continue
            held, found = 0, -1
            for k in range(count):
                other = self.met[k]
                if self.near(at - self.held_from(other)) < self.seg_len[other]:
                    held += self.seg_amt[other]
                    if self.seg_op[other] != op:
                        found = other
            if held > self.limit[column]:
                return found
        return -1

    def meeting(self, s: int) -> int:
        """How many segments of its column a segment meets, itself among them: `met`, in order."""
        column, ii = self.seg_col[s], self.ii
        begin, length = self.held_from(s), self.seg_len[s]
        wide, longest, count = self.part_wide[column], self.longest[column], 0
        if not wide or longest + length + 2 * wide >= ii:
            for m in range(self.lane_at[column], self.lane_at[column + 1]):
                gap = self.lane_from[m] - begin
                if gap < 0:
                    gap += ii
                if gap < length or ii - gap < self.lane_len[m]:
                    self.met[count] = self.lane_seg[m]
                    count += 1
            return count
        first, parts = self.part_at[column], self.parts[column]
        part = min(self.near(begin - longest + 1) // wide, parts - 1)
        last = min(self.near(begin + length - 1) // wide, parts - 1)
        while True:
            other = self.part_seg[first + part]
            while other >= 0:
                gap = self.near(self.held_from(other) - begin)
                if gap < length or ii - gap < self.seg_len[other]:
                    k = count
                    while k > 0 and self.met[k - 1] > other:
                        self.met[k] = self.met[k - 1]
                        k -= 1
                    self.met[k] = other
                    count += 1
                other = self.after[other]
            if part == last:
                return count
            part = part + 1 if part + 1 < parts else 0

    def beside(self, op: int) -> int:
        """Where a node would stand right behind or right before another, by cycle; -1: nowhere.

        `onward` says which; the number is even for behind.
        """
        s = self.seg_at[op] + self.below(self.seg_at[op + 1] - self.seg_at[op])
        column = self.seg_col[s]
        first = self.lane_at[column]
        other = self.lane_seg[first + self.below(self.lane_at[column + 1] - first)]
        if self.seg_op[other] == op:
            return -1
        there = self.held_from(other) - self.seg_off[s]
        if self.below(2):
            return 2 * self.wrap(there + self.seg_len[other])
        return 2 * self.wrap(there - self.seg_len[s]) + 1

    # Fewer stages -----------------------------------------------------------------------------

    def windows(self, stages: int) -> bool:
        """First and last starts in so many stages; false: some node has none."""
        for i in range(self.fitted):
            self.early[i] = self.first[i]
            self.late[i] = min(self.last[i], stages * self.ii - 1 - self.reach[i])
            if self.early[i] > self.late[i]:
                return False
        moved = True
        while moved:
            moved = False
            for a in range(self.arcs):
                src, dst, gain = self.arc_src[a], self.arc_dst[a], self.arc_gain[a]
                if self.early[src] + gain > self.early[dst]:
                    self.early[dst] = self.early[src] + gain
                    moved = True
                if self.late[dst] - gain < self.late[src]:
                    self.late[src] = self.late[dst] - gain
                    moved = True
                if self.early[dst] > self.late[dst] or self.early[src] > self.late[src]:
                    return False
        return True

    def overfull(self) -> bool:
        """Whether some column must hold more than it can in a stretch of at most an II.

        Whoever starts and ends inside of the stretch wherever its window puts it, in whatever
        stage, holds it there: energetic reasoning (J. Erschler and P. Lopez, 1990), around the II,
        which proves that nothing fits.
        """
        for column in range(self.columns):
            count, total, least = 0, 0, self.ii
            for m in range(self.lane_at[column], self.lane_at[column + 1]):
                s = self.lane_seg[m]
                wide = self.late[self.seg_op[s]] - self.early[self.seg_op[s]] + self.seg_len[s]
                if wide <= self.ii:
                    total += self.seg_len[s] * self.seg_amt[s]
                    least = min(least, wide)
            if total <= self.limit[column] * least:
                continue  # the shortest stretch takes them all
            for m in range(self.lane_at[column], self.lane_at[column + 1]):
                s, k = self.lane_seg[m], count
                op = self.seg_op[s]
                wide = self.late[op] - self.early[op] + self.seg_len[s]
                if wide > self.ii:
                    continue
                begin = self.wrap(self.early[op] + self.seg_off[s])
                end = self.near(begin + wide)
                while k > 0 and self.spot[k - 1] > end:
                    self.spot[k], self.met[k] = self.spot[k - 1], self.met[k - 1]
                    self.opens[k] = self.opens[k - 1]
                    k -= 1
                self.spot[k], self.opens[k], self.met[k] = end, begin, s
                count += 1
            for m in range(count):
                if self.overheld(column, self.opens[m], count, total):
                    return True
        return False

    def overheld(self, column: int, begin: int, count: int, total: int) -> bool:
        """Whether a stretch from a cycle on is overfull; those that may be are in order of ends.

        `total`: what all of them hold; a stretch that is as long as that takes them all.
        """
        held, at, limit = 0, 0, self.limit[column]
        while at < count and self.spot[at] <= begin:
            at += 1
        for k in range(count):
            m = at + k if at + k < count else at + k - count
            span = self.spot[m] - begin
            if span <= 0:
                span += self.ii
            if limit * span >= total:
                return False
            if self.near(self.opens[m] - begin) < span:  # or it begins before, and ends after
                held += self.seg_len[self.met[m]] * self.seg_amt[self.met[m]]
                if held > limit * span:
                    return True
        return False

    def part(self, stages: int, looks: int) -> int:
        """Part what collides: FOUND, a placement of so many stages, or REFUTED; OPEN: neither.

        Two that cannot share a column stand so many whole IIs apart, one behind the other. Where
        earliest starts collide, each such number is tried: branch and bound on disjunctive arcs
        (J. Carlier and E. Pinson, 1989), around the II. Where none is left, that is a proof; where
        nothing collides, earliest starts are a placement, the best from then on.
        """
        self.turns = stages + 2
        if len(self.kept) < 2 * DEEPEST * self.fitted:
            self.kept = _zeros(2 * DEEPEST * self.fitted)
        if not len(self.crew):
            self.crew = _zeros(DEEPEST * self.segs)
        self.sure, self.deep = True, False
        for begun in range(SHARES + 1):
            self.plainly, self.posted = begun == 0, 0
            self.looks = looks // (PLAIN if self.plainly else SHARES) + 1
            for i in range(self.fitted if begun < 2 else 0):
                self.blame[i] = 1
            if not self.windows(stages) or not self.branch(0):
                return REFUTED if self.sure else OPEN
            if self.looks >= 0:
                return FOUND if self.seat_early() and self.accept() else OPEN
            if self.deep:
                break
        return OPEN

    def seat_early(self) -> bool:
        """Let everybody start as early as the windows allow; whether all columns then suffice."""
        for i in range(self.fitted):
            self.seat(i, self.early[i])
        s = 0
        while s < self.segs and self.crowding(s) < 0:
            s += 1
        return s == self.segs

    def branch(self, depth: int) -> bool:
        """Whether some placement may lie in the windows, which end where nothing collides.

        Out of looks, or too deep, one may.
        """
        self.looks -= 1
        if self.looks < 0 or depth >= DEEPEST:
            self.looks = -1
            self.deep = self.deep or depth >= DEEPEST
            return True
        if self.overfull():
            return False
        for m in range(self.segs):
            s = self.lane_seg[m]
            self.spot[m] = self.wrap(self.early[self.seg_op[s]] + self.seg_off[s])
        first = depth * self.segs
        count = self.collide(first)
        if count == 0:
            count = self.swarm(first)
        if count == 0:
            return True
        kept, n = 2 * depth * self.fitted, self.fitted
        for i in range(n):
            self.kept[kept + i], self.kept[kept + n + i] = self.early[i], self.late[i]
        for k in range(1, count):
            for m in range(k):
                one, two = self.crew[first + m], self.crew[first + k]
                if self.seg_op[one] != self.seg_op[two] and self.sever(one, two, depth):
                    return True
        return False

    def sever(self, one: int, two: int, depth: int) -> bool:
        """Whether some placement may lie in the windows in which two segments do not meet.

        Each number of whole IIs between them is tried: at first in order, then those first that
        push the least; of who was parted in vain, the next choice is made sooner.
        """
        self.apart(one, two)
        low, high = self.nearest, self.farthest
        x, y = self.seg_op[one], self.seg_op[two]
        ahead = self.early[y] + self.seg_off[two] - self.early[x] - self.seg_off[one]
        rest = self.wrap(ahead)
        up = low if self.plainly else (ahead - rest) // self.ii
        down, later, sooner = up - 1, self.seg_len[one] - rest, self.seg_len[two] + rest
        kept, n = 2 * depth * self.fitted, self.fitted
        while down >= low or up <= high:
            if down < low or (up <= high and later <= sooner):
                turn = up
                up, later = up + 1, later + self.ii
            else:
                turn = down
                down, sooner = down - 1, sooner + self.ii
            if not low <= turn <= high:
                continue
            ahead = self.seg_off[one] - self.seg_off[two]
            self.post(one, two, ahead + self.seg_len[one] + turn * self.ii)
            self.post(two, one, self.seg_len[two] - ahead - (turn + 1) * self.ii)
            possible = self.narrow() and self.branch(depth + 1)
            self.posted -= 2
            if possible:
                return True
            self.blame[x] += 1
            self.blame[y] += 1
            for i in range(n):
                self.early[i], self.late[i] = self.kept[kept + i], self.kept[kept + n + i]
        return False

    def post(self, one: int, two: int, gain: int) -> None:
        """Let the node of one segment wait for that of another, until it is taken back."""
        self.post_src[self.posted], self.post_dst[self.posted] = self.seg_op[one], self.seg_op[two]
        self.post_gain[self.posted] = gain
        self.posted += 1

    def narrow(self) -> bool:
        """Narrow windows by what was posted last; false: some node has none left."""
        return self.follow(self.posted - 2) and self.follow(self.posted - 1)

    def follow(self, last: int) -> bool:
        """Narrow windows by one more of what was posted; false: nothing meets all of it.

        Whose window narrowed waits in line, for those at its dependences to follow. Where that
        comes back to narrow it from the other end, it goes round and round.
        """
        self.head = self.waiting = 0
        self.source, self.target = self.post_src[last], self.post_dst[last]
        if not self.tighten(self.source, self.target, self.post_gain[last]):
            return self.scatter()
        while self.waiting:
            while self.waiting:
                node = self.line[self.head]
                self.head = self.head + 1 if self.head + 1 < self.n else 0
                self.waiting -= 1
                self.waits[node] = 0
                for k in range(self.arcs_at[node], self.arcs_at[node + 1]):
                    a = self.arcs_of[k]
                    if not self.tighten(self.arc_src[a], self.arc_dst[a], self.arc_gain[a]):
                        return self.scatter()
            for k in range(last):
                if not self.tighten(self.post_src[k], self.post_dst[k], self.post_gain[k]):
                    return self.scatter()
        return True

    def tighten(self, src: int, dst: int, gain: int) -> bool:
        """Narrow the windows at both ends of a dependence; false: that cannot be."""
        if self.early[src] + gain > self.early[dst]:
            self.early[dst] = self.early[src] + gain
            if dst == self.source or self.early[dst] > self.late[dst]:
                return False
            self.enlist(dst)
        if self.late[dst] - gain < self.late[src]:
            self.late[src] = self.late[dst] - gain
            if src == self.target or self.early[src] > self.late[src]:
                return False
            self.enlist(src)
        return True

    def enlist(self, node: int) -> None:
        """Have a node wait in line, once."""
        if not self.waits[node]:
            tail = self.head + self.waiting
            self.line[tail if tail < self.n else tail - self.n] = node
            self.waits[node] = 1
            self.waiting += 1

    def scatter(self) -> bool:
        """Nobody waits in line any more; false."""
        for i in range(self.n):
            self.waits[i] = 0
        self.waiting = 0
        return False

    def collide(self, first: int) -> int:
        """Two segments that collide at earliest starts, those of the fewest ways apart; or none.

        They are the `crew` from an index on; how many there are.
        """
        count, fewest = 0, FAR
        for column in range(self.columns):
            for m in range(self.lane_at[column], self.lane_at[column + 1]):
                s = self.lane_seg[m]
                for k in range(m + 1, self.lane_at[column + 1]):
                    t = self.lane_seg[k]
                    gap = self.spot[k] - self.spot[m]
                    if gap < 0:
                        gap += self.ii
                    if gap >= self.lane_len[m] and self.ii - gap >= self.lane_len[k]:
                        continue
                    if (
                        self.seg_op[s] == self.seg_op[t]
                        or self.seg_amt[s] + self.seg_amt[t] <= self.limit[column]
                    ):
                        continue
                    self.apart(s, t)
                    ways = max(0, self.farthest - self.nearest) * BLAME
                    if not self.plainly:
                        ways //= self.blame[self.seg_op[s]] + self.blame[self.seg_op[t]]
                    if ways < fewest:
                        fewest, count = ways, 2
                        self.crew[first], self.crew[first + 1] = s, t
                    if fewest <= 0:
                        return count
        return count

    def apart(self, one: int, two: int) -> None:
        """How many whole IIs, at least and at most, one segment may stand behind another."""
        x, y = self.seg_op[one], self.seg_op[two]
        ahead = self.seg_off[two] - self.seg_off[one] + self.turns * self.ii
        low = self.early[y] - self.late[x] + ahead + self.seg_len[two] - 1
        high = self.late[y] - self.early[x] + ahead - self.seg_len[one]
        self.nearest = low // self.ii - self.turns
        self.farthest = high // self.ii - self.turns

    def swarm(self, first: int) -> int:
        """Segments that meet in a cycle, at earliest starts, and are too many; or none.

        Of those, some two must part. That holds of segments that do not reach around the II, all
        together: others might meet two by two and never all at once.
        """
        for column in range(self.columns):
            for m in range(self.lane_at[column], self.lane_at[column + 1]):
                count, held, length = 0, 0, 0
                for k in range(self.lane_at[column], self.lane_at[column + 1]):
                    if self.near(self.spot[m] - self.spot[k]) < self.lane_len[k]:
                        held += self.seg_amt[self.lane_seg[k]]
                if held <= self.limit[column]:
                    continue
                held = 0
                for k in range(self.lane_at[column], self.lane_at[column + 1]):
                    s = self.lane_seg[k]
                    if held <= self.limit[column] and (
                        self.near(self.spot[m] - self.spot[k]) < self.lane_len[k]
                    ):
                        held += self.seg_amt[s]
                        length += self.lane_len[k]
                        self.crew[first + count] = s
                        count += 1
                if length >= self.ii:
                    self.sure = False
                return count
        return 0

    def fit(self, stages: int, moves: int, hot: int, patience: int, look: int = 0) -> bool:
        """Go on from the best placement to one of so many stages, in so many moves.

        `hot`: by how much the next placement may be worse; `patience`: moves without anything
        better until what is missed weighs more; `look`: after so many it is given up if it was
        nowhere near. True: it is the best placement now.
        """
        if not self.windows(stages) or self.overfull():
            return False
        for i in range(self.fitted):
            at = self.early[i] + self.wrap(self.best[i] - self.early[i])
            while at + self.ii <= self.late[i] and at + self.ii <= self.best[i]:
                at += self.ii
            self.seat(i, at)
        for a in range(self.arcs):
            self.weight[a] = LIGHT
        return self.descend(moves, hot, patience, look, False) and self.accept()

    def close(self, turn: int, moves: int, hot: int, patience: int) -> bool:
        """Go on from the best placement to one of a stage less, in so many moves.

        All that starts behind some time starts an II sooner: holds stay what they are, and only
        what crosses that time is missed. `turn`: the time of the fewest such cycles, or the next.
        """
        if not self.windows(self.best_stages - 1):
            return False
        self.load(self.best)
        time = self.cut(turn)
        for i in range(self.fitted):
            if self.start[i] >= time:
                self.seat(i, self.start[i] - self.ii)
        for a in range(self.arcs):
            self.weight[a] = LIGHT
        self.pushes = min(CLOSE, self.most)
        found = self.descend(moves, hot, patience, 0, True)
        self.pushes = self.most
        return found and self.accept()

    def cut(self, turn: int) -> int:
        """A time at which little is missed when all behind it start an II sooner."""
        low, high = FAR, -FAR
        for i in range(self.fitted):
            low, high = min(low, self.start[i]), max(high, self.start[i])
        wide = max(1, self.ii // CUTS)
        parts = (high - low) // wide + 2
        if len(self.kept) < parts:
            self.kept = _zeros(parts)
        for k in range(parts):
            self.kept[k] = 0
        for a in range(self.arcs):
            src, dst = self.start[self.arc_src[a]], self.start[self.arc_dst[a]]
            miss = self.ii - (dst - src - self.arc_gain[a])
            if src < dst and miss > 0:
                self.kept[(src - low) // wide + 1] += miss
                self.kept[(dst - low) // wide + 1] -= miss
        for k in range(1, parts):
            self.kept[k] += self.kept[k - 1]
        found = 1
        for _ in range(turn + 1):
            found = 1
            for k in range(2, parts - 1):
                if self.kept[k] < self.kept[found]:
                    found = k
            for k in range(max(1, found - CUTS // 2), min(parts, found + CUTS // 2)):
                self.kept[k] = FAR
        return low + found * wide

    def descend(self, moves: int, hot: int, patience: int, look: int, aimed: bool) -> bool:
        """Make so many moves until nothing is missed; `aimed`: of those that miss something."""
        self.recount()
        current = self.missed()
        lowest, nearest, idle = current, self.plain, 0
        end = self.pushed + PUSHES * moves
        for k in range(moves):
            nowhere = k == look and k > 0 and nearest > self.ii // HOPE
            if current == 0 or self.pushed > end or nowhere:
                break
            self.tried += 1
            idle += 1
            if idle > patience:
                self.weigh()
                self.recount()
                lowest = current = self.missed()
                idle = 0
            if not (self.aim() if aimed else self.step()):
                self.undo()
                continue
            made = self.logged
            self.tally(made)
            reached = self.missed()
            nearest = min(nearest, self.plain)
            if reached <= current or reached <= current + self.below(LIGHT * hot + 1):
                current = reached
                if reached < lowest:
                    lowest, idle = reached, 0
            else:
                self.undo()
                self.tally(made)
        return current == 0

    def missed(self) -> int:
        """By how much dependences, windows and groups are missed, weighed; `plain`: not weighed."""
        apart = 0
        for g in range(self.groups):
            low, high = FAR, -FAR
            for k in range(self.group_at[g], self.group_at[g + 1]):
                at = self.start[self.group_op[k]] + self.group_off[k]
                at -= self.wrap(at)
                low, high = min(low, at), max(high, at)
            apart += high - low
        self.plain = self.lack + apart
        return self.heavy + LIGHT * apart

    def recount(self) -> None:
        """Count what dependences and windows miss from nothing."""
        self.heavy = self.lack = 0
        for a in range(self.arcs):
            self.short[a] = 0
        for i in range(self.fitted):
            self.astray[i] = 0
        for i in range(self.fitted):
            self.count(i)

    def tally(self, made: int) -> None:
        """Count anew after a move of so many, or after it was undone."""
        for m in range(made):
            self.count(self.log_op[m])

    def count(self, op: int) -> None:
        """Count anew what a node's dependences and its window miss."""
        for k in range(self.arcs_at[op], self.arcs_at[op + 1]):
            a = self.arcs_of[k]
            miss = self.start[self.arc_src[a]] + self.arc_gain[a] - self.start[self.arc_dst[a]]
            miss = max(miss, 0)
            more = miss - self.short[a]
            if more:
                self.short[a] = miss
                self.lack += more
                self.heavy += more * self.weight[a]
        at = self.start[op]
        out = max(self.early[op] - at, at - self.late[op], 0)
        more = out - self.astray[op]
        self.astray[op] = out
        self.lack += more
        self.heavy += LIGHT * more

    def weigh(self) -> None:
        """What is missed weighs more, what is not a little less."""
        for a in range(self.arcs):
            if self.short[a]:
                self.weight[a] += 1 + self.weight[a] // 4
            elif self.weight[a] > LIGHT:
                self.weight[a] -= self.weight[a] // 8

    def step(self) -> bool:
        """One move: an end of a missed dependence to where it is met, or anyone beside another."""
        if self.below(100) < AIMED and self.arcs:
            first = self.below(self.arcs)
            for k in range(self.arcs):
                a = first + k
                if a >= self.arcs:
                    a -= self.arcs
                miss = self.short[a]
                if miss:
                    later = self.below(2) > 0
                    op = self.arc_dst[a] if later else self.arc_src[a]
                    if self.frozen[op]:
                        break
                    at = self.start[op] + (miss if later else -miss)
                    return self.insert(op, at, self.below(2) > 0)
        self.logged = 0
        op = self.below(self.fitted)
        low, high = self.early[op], self.late[op]
        if not self.keeps[op]:
            self.put(op, low + self.below(high - low + 1))
            return True
        if self.frozen[op] or self.below(3) == 2:
            self.put(op, self.start[op] + (self.ii if self.below(2) else -self.ii))
            return True
        place = self.beside(op)
        if place < 0:
            return False
        at = low + self.wrap(place // 2 - low)
        if at + self.ii <= high:
            at += self.ii * self.below((high - at) // self.ii + 1)
        return self.insert(op, at, place % 2 == 0)

    def aim(self) -> bool:
        """One move of an end of a missed dependence, to where it is met or a little beyond."""
        self.logged = 0
        first = self.below(self.arcs) if self.arcs else 0
        for k in range(self.arcs):
            a = first + k
            if a >= self.arcs:
                a -= self.arcs
            miss = self.short[a]
            if miss:
                later = self.below(2) > 0
                op = self.arc_dst[a] if later else self.arc_src[a]
                return self.shift(op, miss, later)
        return self.step()

    def shift(self, op: int, miss: int, later: bool) -> bool:
        """Let a node start so much later, or sooner, or a little more than that."""
        if not self.keeps[op]:
            self.put(op, self.start[op] + (miss if later else -miss))
            return True
        if self.frozen[op]:
            self.put(op, self.start[op] + (self.ii if later else -self.ii))
            return True
        kind = self.below(100)
        if kind < SWAPS:
            return self.exchange(op, miss, later)
        if self.below(2):
            miss += self.below(self.ii // 4 + 1)
        at = self.start[op] + (miss if later else -miss)
        if kind < GAPS:
            return self.gap(op, at, later)
        return self.insert(op, at, self.below(2) > 0)

    def exchange(self, op: int, miss: int, later: bool) -> bool:
        """Let a node and one that holds as much for as long change places; nobody: false."""
        s = self.seg_at[op] + self.below(self.seg_at[op + 1] - self.seg_at[op])
        lane = self.lane_at[self.seg_col[s]]
        size = self.lane_at[self.seg_col[s] + 1] - lane
        chosen, least = -1, FAR
        for _ in range(PICKS):
            other = self.lane_seg[lane + self.below(size)]
            y = self.seg_op[other]
            if y == op or self.frozen[y] or self.seg_len[other] != self.seg_len[s]:
                continue
            ahead = self.near(self.held_from(other) - self.held_from(s))
            far = ahead if later else self.ii - ahead
            if miss <= far < least and self.seg_amt[other] == self.seg_amt[s]:
                chosen, least = y, far
        if chosen < 0:
            return False
        back = self.ii - least if self.below(2) else -least
        self.put(op, self.start[op] + (least if later else -least))
        self.put(chosen, self.start[chosen] + (back if later else -back))
        self.queue[0], self.queue[1] = op, chosen
        return self.spread(2, op, self.below(2) > 0)

    def gap(self, op: int, at: int, later: bool) -> bool:
        """Move a node to the next free place, from a time onwards or backwards; none: false."""
        self.put(op, at)
        for _ in range(self.pushes):
            other, s = -1, self.seg_at[op]
            while other < 0 and s < self.seg_at[op + 1]:
                other = self.crowding(s)
                s += 1
            if other < 0:
                return True
            s -= 1
            ahead = self.held_from(other) - self.held_from(s)
            step = ahead + self.seg_len[other] if later else self.seg_len[s] - ahead
            step = self.wrap(step)
            if step == 0:
                return False
            self.seat(op, self.start[op] + (step if later else -step))
        return False

    # The best of what has so many stages ------------------------------------------------------

    def derive(self) -> bool:
        """The earliest starts of all nodes with these cycles; false: there are none."""
        for i in range(self.n):
            at = self.first[i]
            if self.keeps[i]:
                at += self.wrap(self.cycle[i] - at)
            self.early[i] = at
        if not self.ripple():
            return False
        rounds = 0
        while self.groups and self.gather():
            rounds += 1
            if rounds > self.n or not self.ripple():
                return False
        for i in range(self.n):
            if self.early[i] > self.last[i]:
                return False
        for i in range(self.n):
            self.start[i] = self.early[i]
        return True

    def ripple(self) -> bool:
        """Raise earliest starts along dependences until all are met; false: they never are."""
        far = (2 * self.best_stages + STRAY) * self.ii + self.foremost
        self.head = self.waiting = 0
        for k in range(self.n):
            self.lift(self.order[k], k)
        while self.waiting:
            node = self.line[self.head]
            self.head = self.head + 1 if self.head + 1 < self.n else 0
            self.waiting -= 1
            self.waits[node] = 0
            if self.early[node] > far:
                return self.scatter()
            self.lift(node, self.n)
        return True

    def lift(self, node: int, behind: int) -> None:
        """Raise who waits for a node; who is up to so far behind in the order waits in line."""
        for a in range(self.succ_at[node], self.succ_at[node + 1]):
            other = self.succ_op[a]
            need = self.early[node] + self.succ_gain[a]
            if need <= self.early[other]:
                continue
            if self.keeps[other]:  # most need no more than the next stage
                later = self.early[other] + self.ii
                need = later if need <= later else need + self.wrap(self.cycle[other] - need)
            self.early[other] = need
            if self.place[other] <= behind:
                self.enlist(other)

    def gather(self) -> bool:
        """Raise who stands in an earlier stage than the rest of its group; whether anyone did."""
        moved = False
        for g in range(self.groups):
            high = -FAR
            for k in range(self.group_at[g], self.group_at[g + 1]):
                at = self.early[self.group_op[k]] + self.group_off[k]
                high = max(high, at - self.wrap(at))
            for k in range(self.group_at[g], self.group_at[g + 1]):
                op = self.group_op[k]
                at = self.early[op] + self.group_off[k]
                while at - self.wrap(at) < high:
                    if self.keeps[op]:
                        self.early[op] += self.ii
                    else:
                        self.early[op] += high - at
                    at = self.early[op] + self.group_off[k]
                    moved = True
        return moved

    def settle(self) -> None:
        """Let nodes stand later, by whole stages, where that shortens what they fill.

        No stage is added: one that only the next iteration waits for could stand anywhere.
        """
        end = self.spanned()
        for k in range(self.n - 1, -1, -1):
            node = self.order[k]
            if self.succ_at[node] == self.succ_at[node + 1] or self.grouped[node]:
                continue
            high = min(self.last[node], end - self.reach[node])
            for a in range(self.succ_at[node], self.succ_at[node + 1]):
                high = min(high, self.start[self.succ_op[a]] - self.succ_gain[a])
            now = self.start[node]
            if high <= now or (self.keeps[node] and high < now + self.ii):
                continue
            if self.keeps[node]:
                high -= self.wrap(high - now)
            before = self.lives_of(node)
            self.start[node] = high
            if self.lives_of(node) > before:
                self.start[node] = now

    def lives_of(self, op: int) -> int:
        """Bytes times cycles of all that a node touches."""
        total = 0
        for k in range(self.touch_at[op], self.touch_at[op + 1]):
            total += self.life(self.touch_room[k])
        return total

    def life(self, r: int) -> int:
        """Bytes times cycles of one instance."""
        begin = FAR
        for k in range(self.wr_at[r], self.wr_at[r + 1]):
            begin = min(begin, self.start[self.wr_op[k]] + self.wr_off[k])
        end = begin
        for k in range(self.acc_at[r], self.acc_at[r + 1]):
            end = max(end, self.start[self.acc_op[k]] + self.acc_done[k])
        self.begin[r], self.end[r] = begin, end
        return self.room_bytes[r] * (end - begin)

    def spanned(self) -> int:
        """How many stages there are, from where on (`begun`); the last cycle of the last one."""
        low, high = FAR, -FAR
        for i in range(self.n):
            low = min(low, self.start[i])
            high = max(high, self.start[i] + self.reach[i])
        if self.ruled:
            low -= self.wrap(low)
        self.begun, self.stages = low, (high - low) // self.ii + 1
        return low + self.stages * self.ii - 1

    def measure(self) -> bool:
        """What the starts are worth; false: the rings do not fit."""
        self.spanned()
        if not self.fill():
            return False
        self.count_registers()
        return True

    def fill(self) -> bool:
        """Bytes, and bytes times cycles, of what the starts let live; false: more than there is."""
        if self.pinned and self.begun > 0:
            return False
        for space in range(self.spaces):
            self.used[space] = self.base[space]
        self.area = self.least = 0
        for r in range(self.rooms):
            life = self.life(r)
            self.area += life
            if self.room_space[r] >= 0:
                depth = max(1, (self.end[r] - self.begin[r] + self.ii - 1) // self.ii)
                self.used[self.room_space[r]] += self.room_bytes[r] * depth
            elif self.room_space[r] == -1:
                self.least += life
        self.bytes = 0
        for space in range(self.spaces):
            if self.used[space] > self.budget[space]:
                return False
            self.bytes += self.used[space]
        return True

    def count_registers(self) -> None:
        """Registers of all that lives, and by how many they are too many."""
        self.peak = (self.pressure(-1, self.always) + self.unit - 1) // self.unit
        self.excess = max(0, self.peak - self.registers)
        for agent in range(len(self.agents)):
            over = self.pressure(-2 - agent, 0) - self.agents[agent]
            self.excess += max(0, (over + self.unit - 1) // self.unit)

    def at_summit(self) -> int:
        """Register bytes that live in the cycle in which they were most the last time."""
        held = self.always
        for r in range(self.rooms):
            if self.room_space[r] == -1:
                life = self.end[r] - self.begin[r]
                while life >= self.ii:
                    held += self.room_bytes[r]
                    life -= self.ii
                if self.wrap(self.summit - self.begin[r]) < life:
                    held += self.room_bytes[r]
        return held

    def pressure(self, space: int, base: int) -> int:
        """Most register bytes that live at once, of all or of an agent."""
        top, count = 0, 0
        for r in range(self.rooms):
            if self.room_space[r] == space:
                life = self.end[r] - self.begin[r]
                turns = life // self.ii
                base += self.room_bytes[r] * turns
                self.rest[count] = life - turns * self.ii
                self.phase[count] = self.wrap(self.begin[r])
                self.weighs[count] = self.room_bytes[r]
                count += 1
        if self.cells:
            top = self.highest(count)
            if space == -1:
                self.summit = self.upmost
            return base + top
        for r in range(count):  # it is reached where some life begins
            live = 0
            for q in range(count):
                gap = self.phase[r] - self.phase[q]
                if (gap if gap >= 0 else gap + self.ii) < self.rest[q]:
                    live += self.weighs[q]
            if live > top:
                top = live
                if space == -1:
                    self.summit = self.phase[r]
        return base + top

    def highest(self, count: int) -> int:
        """The same of what is left of lives after whole IIs, cycle by cycle."""
        for c in range(self.ii + 1):
            self.change[c] = 0
        for r in range(count):
            first, last = self.phase[r], self.phase[r] + self.rest[r]
            self.change[first] += self.weighs[r]
            if last > self.ii:
                self.change[0] += self.weighs[r]
                last -= self.ii
            self.change[last] -= self.weighs[r]
        live = top = 0
        for c in range(self.ii):
            live += self.change[c]
            if live > top:
                top = live
                self.upmost = c
        return top

    def keep(self) -> bool:
        """Whether this is better than the best so far; it is then the best."""
        if (self.excess > 0) != (self.best_excess > 0):
            better = self.best_excess > 0
        elif self.stages != self.best_stages:
            better = self.stages < self.best_stages
        elif self.bytes != self.best_bytes:
            better = self.bytes < self.best_bytes
        else:
            better = self.peak < self.best_peak
        if better:
            self.best_excess, self.best_stages = self.excess, self.stages
            self.best_bytes, self.best_peak = self.bytes, self.peak
            for i in range(self.n):
                self.best[i] = self.start[i]
        return better

    def energy(self) -> int:
        """What `polish` lowers, in bytes."""
        spilt = 16 * self.excess * self.unit
        return spilt + 4 * self.bytes + self.peak * self.unit + self.area // self.ii

    def polish(self, moves: int) -> None:
        """Better placements of no more stages, from the best one on."""
        self.load(self.best)
        if not self.movers or not self.derive():
            return
        self.settle()
        if not self.measure():
            return
        self.keep()
        current = self.energy()
        for k in range(HISTORY):
            self.history[k] = current
        for i in range(self.n):
            self.now[i] = self.start[i]
        for k in range(moves):
            self.tried += 1
            if self.nudge() and self.moved():
                if self.follows(max(current, self.history[k % HISTORY])):
                    current = self.energy()
                    for i in range(self.n):
                        self.now[i] = self.start[i]
                    self.keep()
                    self.logged = 0
                else:
                    for i in range(self.n):
                        self.start[i] = self.now[i]
            self.undo()
            self.history[k % HISTORY] = current

    def follows(self, most: int) -> bool:
        """Whether starts follow from the cycles, and have no more energy than that."""
        if not self.derive():
            return False
        self.settle()
        return self.passes(most)

    def moved(self) -> bool:
        """Whether the last move put anyone into another cycle: the starts follow from cycles."""
        for m in range(self.logged):
            if self.wrap(self.log_at[m]) != self.cycle[self.log_op[m]]:
                return True
        return False

    def passes(self, most: int) -> bool:
        """Whether a placement has no more energy than that, and neither stages nor spills more.

        What is known sooner is asked sooner: at its peak there lives at least the mean, and what
        lives where the last placement has its peak.
        """
        self.spanned()
        if self.stages > self.best_stages and not self.best_excess:
            return False
        if not self.fill():
            return False
        mean = (self.always + self.least // self.ii) // self.unit
        rest = 4 * self.bytes + self.area // self.ii
        if rest + mean * self.unit > most:
            return False
        there = (self.at_summit() + self.unit - 1) // self.unit
        if rest + there * self.unit > most:
            return False
        self.count_registers()
        if self.excess and not self.best_excess:
            return False
        if self.stages > self.best_stages and self.excess:
            return False
        return self.energy() <= most

    def nudge(self) -> bool:
        """One move: a node beside another, or to where it just meets a dependence."""
        self.logged = 0  # what `fit` moved last is not to be undone
        op = self.holders[self.below(self.movers)]
        if self.frozen[op]:
            return False
        kind = self.below(4)
        if kind < 2:
            place = self.beside(op)
            return place >= 0 and self.insert(op, place // 2, place % 2 == 0)
        if kind == 2:
            count = self.pred_at[op + 1] - self.pred_at[op]
            if not count:
                return False
            a = self.pred_at[op] + self.below(count)
            return self.insert(op, self.start[self.pred_op[a]] + self.pred_gain[a], True)
        count = self.succ_at[op + 1] - self.succ_at[op]
        if not count:
            return False
        a = self.succ_at[op] + self.below(count)
        return self.insert(op, self.start[self.succ_op[a]] - self.succ_gain[a], False)

    # In and out -------------------------------------------------------------------------------

    def take(self, starts: Sequence[int]) -> None:
        """Begin with a placement, as it is or with the same cycles and shorter lives."""
        self.load(_numbers(starts))
        self.measure()
        self.best_excess, self.best_stages = FAR, FAR
        self.keep()
        if self.derive():
            self.settle()
            if self.measure():
                self.keep()

    def fix(self, ops: Sequence[int], cycles: Sequence[int]) -> bool:
        """Put nodes of the best placement at cycles, where they stay; false: it cannot be."""
        self.load(self.best)
        for op, cycle in zip(ops, cycles, strict=True):
            at = self.start[op] - self.cycle[op] + self.wrap(cycle)
            if self.frozen[op] and self.start[op] != at:
                return False
            self.seat(op, at)
            self.frozen[op] = self.keeps[op] = 1
        self.logged = 0
        for k in range(len(ops)):
            self.queue[k] = ops[k]
        if not self.spread(len(ops), -1, True):
            return False
        for i in range(self.n):
            self.best[i] = self.start[i]
        return True

    def accept(self) -> bool:
        """Make what follows from the cycles the best placement; false: nothing legal does."""
        if not self.derive():
            return False
        self.settle()
        if not self.measure() and not (self.pinned and self.derive() and self.measure()):
            return False  # stages count from the first, which may have come to stand later
        self.best_excess, self.best_stages = FAR, FAR
        return self.keep()

    def worth(self) -> Worth:
        """What the best placement is worth."""
        return Worth(self.best_excess > 0, self.best_stages, self.best_bytes, self.best_peak)

    def starts(self) -> list[int]:
        """The best placement."""
        return [self.best[i] for i in range(self.n)]
