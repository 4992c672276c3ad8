# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=True
"""The seating loops in C: the same steps, in the same order, as `twin.py`, to the last tie.

    planes[column]     how much is held of a slot or pool in each modulo cycle: the bits of the
                       count, 64 cycles a word, those of one word side by side
    lane[column]       who holds it, by first cycle

A window is searched by leaps: behind the last crowded cycle that a hold would touch it may begin
next. Every call does a bounded number of steps, so that whoever calls can look at the clock.
"""

cimport cython
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memmove, memset

ctypedef long long i64
ctypedef unsigned long long u64

cdef extern from *:
    int leading_zeros "__builtin_clzll" (u64) noexcept nogil
    int trailing_zeros "__builtin_ctzll" (u64) noexcept nogil

cdef u64 ALL = ~<u64>0

cdef enum:
    OPENINGS = 32
    STRETCHES = 64
    OFFERS = 24
    PATIENCE = 3
    LOOSE = 512

cdef i64 NEVER = (<i64>1) << 62
cdef i64 NONE = -((<i64>1) << 62)

DONE, FAILED, MORE = 0, 1, 2

cdef struct Held:
    int begin
    int segment

cdef struct Key:
    i64 late
    i64 first
    int op

cdef struct Rival:
    i64 blame
    int op
    i64 amount

cdef struct Visit:
    i64 cycle
    i64 count
    int next


cdef inline i64 wrap(i64 value, i64 ii) noexcept nogil:
    cdef i64 rest = value % ii
    return rest + ii if rest < 0 else rest


cdef inline bint before(Key a, Key b) noexcept nogil:
    if a.late != b.late:
        return a.late > b.late
    if a.first != b.first:
        return a.first > b.first
    return a.op < b.op


cdef int by_key(const void* a, const void* b) noexcept nogil:
    cdef Key x = (<Key*>a)[0]
    cdef Key y = (<Key*>b)[0]
    return -1 if before(x, y) else 1


cdef int by_weight(const void* a, const void* b) noexcept nogil:
    cdef Rival x = (<Rival*>a)[0]
    cdef Rival y = (<Rival*>b)[0]
    if x.blame != y.blame:
        return -1 if x.blame < y.blame else 1
    if x.op != y.op:
        return -1 if x.op < y.op else 1
    if x.amount != y.amount:
        return -1 if x.amount < y.amount else 1
    return 0


cdef int by_number(const void* a, const void* b) noexcept nogil:
    cdef i64 x = (<i64*>a)[0]
    cdef i64 y = (<i64*>b)[0]
    return (x > y) - (x < y)


cdef i64* copied(object numbers) except NULL:
    cdef Py_ssize_t i, n = len(numbers)
    cdef i64* block = <i64*>malloc((n + 1) * sizeof(i64))
    if block == NULL:
        raise MemoryError
    for i in range(n):
        block[i] = numbers[i]
    return block


cdef void* block_of(Py_ssize_t count, size_t size) except NULL:
    cdef void* block = calloc(count + 1, size)
    if block == NULL:
        raise MemoryError
    return block


@cython.final
cdef class Seats:
    """Seats of operations at one II, found by one plan after the other."""

    cdef readonly int size, columns
    cdef readonly i64 ii
    cdef readonly int failed
    cdef readonly i64 evictions
    cdef readonly i64 spent
    # the problem
    cdef i64 *limits
    cdef i64 *order
    cdef i64 *succ_at
    cdef i64 *succ_op
    cdef i64 *succ_latency
    cdef i64 *succ_distance
    cdef i64 *pred_at
    cdef i64 *pred_op
    cdef i64 *pred_latency
    cdef i64 *pred_distance
    cdef i64 *completion
    cdef i64 *last_stage
    cdef i64 *group
    cdef i64 *ahead
    cdef i64 *pending
    cdef i64 *group_at
    cdef i64 *group_op
    cdef i64 *home
    cdef i64 *home_at
    cdef i64 *home_op
    cdef i64 *position
    cdef int homes
    # at one II
    cdef object segments
    cdef i64 *seg_at
    cdef int *seg_op
    cdef i64 *seg_column
    cdef i64 *seg_offset
    cdef i64 *seg_length
    cdef i64 *seg_amount
    cdef i64 *asap
    cdef i64 *alap
    cdef i64 *longest
    cdef i64 **apart
    cdef bint apart_known
    cdef i64 *ranked
    cdef u64 *planes
    cdef i64 *depth
    cdef i64 *planes_at
    cdef i64 words, planes_size
    cdef Held **lane
    cdef int *lane_size
    cdef Rival *rivals
    # one plan
    cdef i64 *blame
    cdef i64 *start
    cdef char *seated
    cdef int placed
    cdef i64 *priority
    cdef bint tight, late, textbook, weigh, plain
    cdef i64 *last
    cdef Key *queue
    cdef int queue_size, queue_room
    cdef Key *sorting
    cdef int *head
    cdef Visit *visits
    cdef int visits_size, visits_room
    cdef i64 *offer_leave
    cdef i64 *best_leave
    cdef i64 *victims
    cdef int victims_size
    cdef i64 *ends
    cdef i64 *lengths

    def __cinit__(self, core):
        cdef int i, n = core.size
        self.size = n
        self.columns = len(core.limits)
        self.ii = 0
        self.failed = -1
        self.limits = copied(core.limits)
        self.order = copied(core.order)
        self.succ_at, self.succ_op, self.succ_latency, self.succ_distance = NULL, NULL, NULL, NULL
        self._arcs(core.succs, &self.succ_at, &self.succ_op, &self.succ_latency, &self.succ_distance)
        self._arcs(core.preds, &self.pred_at, &self.pred_op, &self.pred_latency, &self.pred_distance)
        self.completion = copied(core.completion)
        self.last_stage = copied([-1 if stage is None else stage for stage in core.max_stage])
        self.group = copied([-1 if group is None else group for group in core.group])
        self.ahead = copied(core.ahead)
        self.pending = copied([int(value) for value in core.pending])
        self._lists(core.members, &self.group_at, &self.group_op)
        self._lists(core.recurrences, &self.home_at, &self.home_op)
        self.homes = len(core.recurrences)
        self.home = <i64*>block_of(n, sizeof(i64))
        self.position = <i64*>block_of(n, sizeof(i64))
        for i in range(n):
            self.home[i] = -1
        cdef int h
        cdef i64 k
        for h in range(self.homes):
            for k in range(self.home_at[h], self.home_at[h + 1]):
                self.home[self.home_op[k]] = h
                self.position[self.home_op[k]] = k - self.home_at[h]
        self.asap = <i64*>block_of(n, sizeof(i64))
        self.alap = <i64*>block_of(n, sizeof(i64))
        self.longest = <i64*>block_of(self.columns, sizeof(i64))
        self.apart = <i64**>block_of(self.homes, sizeof(i64*))
        self.ranked = <i64*>block_of(self.homes, sizeof(i64))
        self.depth = <i64*>block_of(self.columns, sizeof(i64))
        self.planes_at = <i64*>block_of(self.columns, sizeof(i64))
        self.lane = <Held**>block_of(self.columns, sizeof(Held*))
        self.lane_size = <int*>block_of(self.columns, sizeof(int))
        self.blame = <i64*>block_of(n, sizeof(i64))
        self.start = <i64*>block_of(n, sizeof(i64))
        self.seated = <char*>block_of(n, sizeof(char))
        self.priority = <i64*>block_of(n, sizeof(i64))
        self.last = <i64*>block_of(n, sizeof(i64))
        self.queue_room = n + 16
        self.queue = <Key*>block_of(self.queue_room, sizeof(Key))
        self.sorting = <Key*>block_of(n, sizeof(Key))
        self.head = <int*>block_of(n, sizeof(int))
        self.visits_room = 64
        self.visits = <Visit*>block_of(self.visits_room, sizeof(Visit))
        self.offer_leave = <i64*>block_of(n, sizeof(i64))
        self.best_leave = <i64*>block_of(n, sizeof(i64))
        self.victims = <i64*>block_of(4 * n + 64, sizeof(i64))
        self.ends = <i64*>block_of(2 * STRETCHES, sizeof(i64))
        self.lengths = <i64*>block_of(2 * STRETCHES, sizeof(i64))

    cdef int _arcs(self, rows, i64** at, i64** op, i64** latency, i64** distance) except -1:
        cdef Py_ssize_t total = 0
        for row in rows:
            total += len(row)
        at[0] = <i64*>block_of(self.size + 1, sizeof(i64))
        op[0] = <i64*>block_of(total, sizeof(i64))
        latency[0] = <i64*>block_of(total, sizeof(i64))
        distance[0] = <i64*>block_of(total, sizeof(i64))
        cdef Py_ssize_t k = 0, i = 0
        for row in rows:
            for other, cycles, iterations in row:
                op[0][k] = other
                latency[0][k] = cycles
                distance[0][k] = iterations
                k += 1
            i += 1
            at[0][i] = k
        return 0

    cdef int _lists(self, rows, i64** at, i64** op) except -1:
        cdef Py_ssize_t total = 0
        for row in rows:
            total += len(row)
        at[0] = <i64*>block_of(len(rows) + 1, sizeof(i64))
        op[0] = <i64*>block_of(total, sizeof(i64))
        cdef Py_ssize_t k = 0, i = 0
        for row in rows:
            for member in row:
                op[0][k] = member
                k += 1
            i += 1
            at[0][i] = k
        return 0

    def __dealloc__(self):
        cdef int i
        free(self.limits); free(self.order)
        free(self.succ_at); free(self.succ_op); free(self.succ_latency); free(self.succ_distance)
        free(self.pred_at); free(self.pred_op); free(self.pred_latency); free(self.pred_distance)
        free(self.completion); free(self.last_stage); free(self.group); free(self.pending)
        free(self.ahead)
        free(self.group_at); free(self.group_op); free(self.home_at); free(self.home_op)
        free(self.home); free(self.position)
        self._forget()
        free(self.planes); free(self.depth); free(self.planes_at)
        if self.apart != NULL:
            for i in range(self.homes):
                free(self.apart[i])
        free(self.asap); free(self.alap); free(self.longest); free(self.apart); free(self.ranked)
        free(self.lane); free(self.lane_size)
        free(self.blame); free(self.start); free(self.seated); free(self.priority); free(self.last)
        free(self.queue); free(self.sorting); free(self.head); free(self.visits)
        free(self.offer_leave); free(self.best_leave); free(self.victims)
        free(self.ends); free(self.lengths)

    cdef void _forget(self) noexcept:
        """Drop what is held by whom."""
        cdef int i
        free(self.seg_at); free(self.seg_column); free(self.seg_offset)
        free(self.seg_length); free(self.seg_amount); free(self.seg_op)
        self.seg_op = NULL
        self.seg_at = self.seg_column = self.seg_offset = self.seg_length = self.seg_amount = NULL
        free(self.rivals)
        self.rivals = NULL
        if self.lane != NULL:
            for i in range(self.columns):
                free(self.lane[i])
                self.lane[i] = NULL

    # At one II --------------------------------------------------------------------------------

    def at(self, i64 ii, segments, floors):
        """Take an II; false: a recurrence asks for a larger one.

        `segments`: by operation, (column, offset, length, amount) wound around the II; `floors`:
        the first start that what was left out of the problem leaves each operation.
        """
        cdef int op
        if segments is not self.segments:
            self._take(segments)
            self.segments = segments
        if ii != self.ii:
            self._widen(ii)
        self.ii = ii
        for op in range(self.size):
            self.asap[op] = floors[op]
        if not self._raise(self.asap):
            return False
        self._latest(NEVER)
        memset(self.blame, 0, self.size * sizeof(i64))
        self.apart_known = False
        return True

    cdef int _widen(self, i64 ii) except -1:
        """A table of so many cycles."""
        cdef int c
        cdef i64 size = 0
        self.words = (ii + 63) // 64
        for c in range(self.columns):
            self.planes_at[c] = size
            size += self.words * self.depth[c]
        if size != self.planes_size:
            free(self.planes)
            self.planes = NULL
            self.planes = <u64*>block_of(size, sizeof(u64))
            self.planes_size = size
        return 0

    cdef int _take(self, segments) except -1:
        cdef Py_ssize_t total = 0, k = 0, i = 0
        cdef int c, widest = 0
        self._forget()
        self.ii = 0  # the table is another
        for c in range(self.columns):
            self.depth[c] = (<object>max(1, self.limits[c])).bit_length()
        for row in segments:
            total += len(row)
        self.seg_at = <i64*>block_of(self.size + 1, sizeof(i64))
        self.seg_op = <int*>block_of(total, sizeof(int))
        self.seg_column = <i64*>block_of(total, sizeof(i64))
        self.seg_offset = <i64*>block_of(total, sizeof(i64))
        self.seg_length = <i64*>block_of(total, sizeof(i64))
        self.seg_amount = <i64*>block_of(total, sizeof(i64))
        memset(self.lane_size, 0, self.columns * sizeof(int))
        memset(self.longest, 0, self.columns * sizeof(i64))
        for row in segments:
            for column, offset, length, amount in row:
                self.seg_op[k] = <int>i
                self.seg_column[k] = column
                self.seg_offset[k] = offset
                self.seg_length[k] = length
                self.seg_amount[k] = amount
                c = column
                self.lane_size[c] += 1
                while self.seg_amount[k] >> self.depth[c]:
                    self.depth[c] += 1  # fused ones may draw more than there is
                if self.seg_length[k] > self.longest[c]:
                    self.longest[c] = self.seg_length[k]
                k += 1
            i += 1
            self.seg_at[i] = k
        for c in range(self.columns):
            self.lane[c] = <Held*>block_of(self.lane_size[c], sizeof(Held))
            if self.lane_size[c] > widest:
                widest = self.lane_size[c]
            self.lane_size[c] = 0
        self.rivals = <Rival*>block_of(2 * widest + 2, sizeof(Rival))
        return 0

    cdef bint _raise(self, i64* values) noexcept:
        """Raise values along dependences until all are met; false: a recurrence asks for more."""
        cdef bint moved = True
        cdef i64 i, k, node, reached, rounds = 0
        cdef i64 *fresh = self.last
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

    cdef void _latest(self, i64 limit) noexcept:
        """The latest starts that a limit for all and those of depth leave; far away where none."""
        cdef i64 i, k, node, reached
        cdef bint moved = limit != NEVER
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

    cdef int _distances(self, int h) except -1:
        """Longest paths between all members of a recurrence."""
        cdef i64 k = self.home_at[h + 1] - self.home_at[h]
        cdef i64 *members = self.home_op + self.home_at[h]
        cdef i64 *table = self.apart[h]
        cdef i64 *values
        cdef i64 source, i, a, node, other, reached
        cdef bint moved
        cdef i64 *fresh = self.last
        if table == NULL:
            table = self.apart[h] = <i64*>block_of(k * k, sizeof(i64))
        for source in range(k):
            values = table + source * k
            for i in range(k):
                values[i] = NONE
                fresh[i] = 0
            values[source] = 0
            fresh[source] = 1
            moved = True
            while moved:
                moved = False
                for i in range(k):
                    if not fresh[i]:
                        continue
                    fresh[i] = 0
                    node = members[i]
                    for a in range(self.succ_at[node], self.succ_at[node + 1]):
                        other = self.succ_op[a]
                        if self.home[other] != h:
                            continue
                        reached = values[i] + self.succ_latency[a] - self.ii * self.succ_distance[a]
                        if reached > values[self.position[other]]:
                            values[self.position[other]] = reached
                            fresh[self.position[other]] = 1
                            moved = True
        return 0

    cdef int _know_apart(self) except -1:
        """What only seating by cycle asks for, once an II."""
        cdef int h
        if not self.apart_known:
            for h in range(self.homes):
                if self.home_at[h + 1] - self.home_at[h] <= LOOSE:
                    self._distances(h)
            self._rank()
            self.apart_known = True
        return 0

    cdef int _rank(self) except -1:
        """Recurrences, the tightest first, then the largest, then in their order."""
        cdef int h, j
        cdef i64 k, a, b, slack, tightest
        cdef i64 *tight = <i64*>block_of(self.homes, sizeof(i64))
        for h in range(self.homes):
            k = self.home_at[h + 1] - self.home_at[h]
            tightest = NEVER
            if self.apart[h] != NULL:
                for a in range(1, k):
                    for b in range(a):
                        slack = -(self.apart[h][a * k + b] + self.apart[h][b * k + a])
                        if slack < tightest:
                            tightest = slack
            tight[h] = tightest
        for h in range(self.homes):
            j = h
            while j > 0 and self._tighter(tight, h, <int>self.ranked[j - 1]):
                self.ranked[j] = self.ranked[j - 1]
                j -= 1
            self.ranked[j] = h
        free(tight)
        return 0

    cdef bint _tighter(self, i64* tight, int a, int b) noexcept:
        if tight[a] != tight[b]:
            return tight[a] < tight[b]
        return self.home_at[a + 1] - self.home_at[a] > self.home_at[b + 1] - self.home_at[b]

    @property
    def packable(self):
        """Whether every recurrence is small enough for its distances to be kept."""
        cdef int h
        for h in range(self.homes):
            if self.home_at[h + 1] - self.home_at[h] > LOOSE:
                return False
        return True

    def earliest(self):
        """The earliest start of each operation by dependences."""
        return [self.asap[i] for i in range(self.size)]

    def heights(self):
        """Cycles from each operation's start until the last that waits for it is complete."""
        cdef i64 i, k, node, reached
        cdef bint moved = True
        cdef i64 *values = self.priority
        cdef i64 *fresh = self.last
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
        return [values[i] for i in range(self.size)]

    # The table --------------------------------------------------------------------------------

    cdef inline u64 _full(self, i64 c, i64 slack, i64 word) noexcept nogil:
        """The cycles of a word in which more than the slack of a column is held."""
        cdef i64 p, depth = self.depth[c]
        cdef u64 *plane = self.planes + self.planes_at[c] + word * depth
        cdef u64 more = 0, equal = ALL
        if slack < 0:
            return ALL
        if depth == 1:
            return plane[0]  # of one: whoever holds it leaves nothing
        for p in range(depth - 1, -1, -1):
            if slack >> p & 1:
                equal &= plane[p]
            else:
                more |= equal & plane[p]
                equal &= ~plane[p]
        return more

    cdef i64 _last_in(self, i64 c, i64 slack, i64 low, i64 end) noexcept nogil:
        """The last crowded cycle from one to before another; -1: none."""
        cdef i64 word, last = (end - 1) // 64, first = low // 64
        cdef u64 found
        for word in range(last, first - 1, -1):
            found = self._full(c, slack, word)
            if word == last:
                found &= ALL >> (63 - (end - 1) % 64)
            if word == first:
                found &= ALL << (low % 64)
            if found:
                return word * 64 + 63 - leading_zeros(found)
        return -1

    cdef i64 _first_in(self, i64 c, i64 slack, i64 low, i64 end) noexcept nogil:
        """The first crowded cycle from one to before another; -1: none."""
        cdef i64 word, last = (end - 1) // 64, first = low // 64
        cdef u64 found
        for word in range(first, last + 1):
            found = self._full(c, slack, word)
            if word == last:
                found &= ALL >> (63 - (end - 1) % 64)
            if word == first:
                found &= ALL << (low % 64)
            if found:
                return word * 64 + trailing_zeros(found)
        return -1

    cdef i64 _free_in(self, i64 c, i64 slack, i64 low) noexcept nogil:
        """The first cycle from one on that is not crowded; II: none."""
        cdef i64 word
        cdef u64 found
        for word in range(low // 64, self.words):
            found = ~self._full(c, slack, word)
            if word == low // 64:
                found &= ALL << (low % 64)
            if found:
                return min(self.ii, word * 64 + trailing_zeros(found))
        return self.ii

    cdef i64 _last_crowded(self, i64 c, i64 cycle, i64 length, i64 slack) noexcept nogil:
        """The last of the cycles from one on that holds more than the slack; -1: none does."""
        cdef i64 end = cycle + length, found
        if end > self.ii:
            found = self._last_in(c, slack, 0, end - self.ii)
            if found >= 0:
                return found + self.ii - cycle
            end = self.ii
        found = self._last_in(c, slack, cycle, end)
        return found if found < 0 else found - cycle

    cdef i64 _first_crowded(self, i64 c, i64 cycle, i64 length, i64 slack) noexcept nogil:
        """The first of the cycles from one on that holds more than the slack; -1: none does."""
        cdef i64 end = cycle + length, found
        found = self._first_in(c, slack, cycle, min(end, self.ii))
        if found >= 0:
            return found - cycle
        if end > self.ii:
            found = self._first_in(c, slack, 0, end - self.ii)
            if found >= 0:
                return found + self.ii - cycle
        return -1

    cdef i64 _crowded_run(self, i64 c, i64 cycle, i64 slack) noexcept nogil:
        """How many cycles in a row, from one on, hold more than the slack; at most II."""
        cdef i64 ahead = self._free_in(c, slack, cycle)
        if ahead < self.ii:
            return ahead - cycle
        return self.ii - cycle + min(self._free_in(c, slack, 0), cycle)

    cdef i64 _first_fit(self, int op, i64 low, i64 high) noexcept nogil:
        """The earliest legal start of a window; NONE if there is none."""
        cdef i64 t = low, k, c, cycle, slack, base = wrap(low, self.ii), more
        cdef i64 first = self.seg_at[op], end = self.seg_at[op + 1], s = first, content = 0
        if high > low + self.ii - 1:
            high = low + self.ii - 1
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

    cdef i64 _last_fit(self, int op, i64 low, i64 high) noexcept nogil:
        """The latest legal start of a window; NONE if there is none."""
        cdef i64 t = high, k, column
        cdef i64 s, first = self.seg_at[op], end = self.seg_at[op + 1]
        cdef bint moved
        if low < high - self.ii + 1:
            low = high - self.ii + 1
        while t >= low:
            moved = False
            for s in range(first, end):
                column = self.seg_column[s]
                k = self._first_crowded(
                    column,
                    wrap(t + self.seg_offset[s], self.ii),
                    self.seg_length[s],
                    self.limits[column] - self.seg_amount[s],
                )
                if k >= 0:
                    t -= self.seg_length[s] - k
                    moved = True
                    break
            if not moved:
                return t
        return NONE

    cdef bint _fits(self, int op, i64 start) noexcept nogil:
        return self._first_fit(op, start, start) == start

    cdef i64 _run_end(self, int op, i64 start) noexcept nogil:
        """The first illegal start after a legal one; NEVER if there is none."""
        cdef i64 s, k, column, found = NEVER
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            column = self.seg_column[s]
            k = self._first_crowded(
                column,
                wrap(start + self.seg_offset[s] + self.seg_length[s], self.ii),
                self.ii,
                self.limits[column] - self.seg_amount[s],
            )
            if k >= 0 and start + k + 1 < found:
                found = start + k + 1
        return found

    cdef int _stretches(self, int op, int most) noexcept nogil:
        """Both ends of each run of legal starts and its length, into `ends` and `lengths`."""
        cdef i64 ii = self.ii
        cdef int found = 0
        cdef i64 first = self._first_fit(op, 0, ii - 1), end, length
        if first == NONE:
            return 0
        end = self._run_end(op, first)
        if end == NEVER:
            self.ends[0] = 0
            self.lengths[0] = ii
            return 1
        cdef i64 t = first
        if first == 0 and self._fits(op, ii - 1):
            t = end  # this run begins before cycle 0
        while found < most and t < ii:
            first = self._first_fit(op, t, t + ii - 1)
            if first >= ii:
                break
            end = self._run_end(op, first)
            length = end - first
            self.ends[found] = first
            self.lengths[found] = length
            found += 1
            if length > 1:
                self.ends[found] = (first + length - 1) % ii
                self.lengths[found] = length
                found += 1
            t = end
        return found

    cdef void _commit(self, int op, i64 seat) noexcept nogil:
        cdef i64 s, c, begin, base = wrap(seat, self.ii)
        self.start[op] = seat
        self.seated[op] = 1
        self.placed += 1
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c = self.seg_column[s]
            begin = base + self.seg_offset[s]
            if begin >= self.ii:
                begin -= self.ii
            self._count(c, begin, self.seg_length[s], self.seg_amount[s])
            self._enter(c, begin, s)

    cdef void _count(self, i64 c, i64 begin, i64 length, i64 amount) noexcept nogil:
        cdef i64 end = begin + length
        self._count_in(c, begin, min(end, self.ii), amount)
        if end > self.ii:
            self._count_in(c, 0, end - self.ii, amount)

    cdef void _count_in(self, i64 c, i64 low, i64 end, i64 amount) noexcept nogil:
        """Add to the counts of some cycles, or take away: a ripple of carries, or of borrows."""
        cdef i64 word, p, depth = self.depth[c], first = low // 64, last = (end - 1) // 64
        cdef i64 size = amount if amount > 0 else -amount
        cdef u64 mask, carry, other, old, mine
        cdef u64 *plane
        for word in range(first, last + 1):
            mask = ALL
            if word == first:
                mask &= ALL << (low % 64)
            if word == last:
                mask &= ALL >> (63 - (end - 1) % 64)
            plane = self.planes + self.planes_at[c] + word * depth
            if depth == 1:
                plane[0] ^= mask
                continue
            carry = 0
            for p in range(depth):
                other = mask if size >> p & 1 else 0
                old = plane[p]
                plane[p] = old ^ other ^ carry
                mine = old if amount > 0 else ~old
                carry = (mine & (other | carry)) | (other & carry)

    cdef int _place(self, i64 c, i64 begin, i64 segment) noexcept nogil:
        """Where an entry stands or would stand in a lane."""
        cdef int low = 0, high = self.lane_size[c], middle
        cdef Held *lane = self.lane[c]
        while low < high:
            middle = (low + high) >> 1
            if lane[middle].begin < begin or (
                lane[middle].begin == begin and lane[middle].segment < segment
            ):
                low = middle + 1
            else:
                high = middle
        return low

    cdef int _from(self, i64 c, i64 begin) noexcept nogil:
        """The first entry of a lane that begins at a cycle or later; each half without a branch."""
        cdef int rest = self.lane_size[c], half
        cdef Held *at = self.lane[c]
        while rest > 1:
            half = rest >> 1
            at += half * (at[half - 1].begin < begin)
            rest -= half
        return <int>(at - self.lane[c]) + (rest == 1 and at.begin < begin)

    cdef void _enter(self, i64 c, i64 begin, i64 segment) noexcept nogil:
        cdef int at = self._place(c, begin, segment)
        cdef Held *lane = self.lane[c]
        memmove(lane + at + 1, lane + at, (self.lane_size[c] - at) * sizeof(Held))
        lane[at].begin, lane[at].segment = <int>begin, <int>segment
        self.lane_size[c] += 1

    cdef void _release(self, int op) noexcept nogil:
        cdef i64 s, c, begin, base = wrap(self.start[op], self.ii)
        cdef int at
        cdef Held *lane
        self.seated[op] = 0
        self.placed -= 1
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c = self.seg_column[s]
            begin = base + self.seg_offset[s]
            if begin >= self.ii:
                begin -= self.ii
            self._count(c, begin, self.seg_length[s], -self.seg_amount[s])
            at = self._place(c, begin, s)
            lane = self.lane[c]
            self.lane_size[c] -= 1
            memmove(lane + at, lane + at + 1, (self.lane_size[c] - at) * sizeof(Held))

    cdef void _clear(self) noexcept:
        memset(self.planes, 0, self.planes_size * sizeof(u64))
        memset(self.lane_size, 0, self.columns * sizeof(int))
        memset(self.seated, 0, self.size)
        self.placed = 0

    # The queue --------------------------------------------------------------------------------

    cdef Key _key(self, int op) noexcept nogil:
        cdef Key key
        if self.textbook:
            key.late = -self.pending[op]
        else:
            key.late = self.blame[op]
        key.first = self.priority[op]
        key.op = op
        return key

    cdef int _push(self, int op) except -1 nogil:
        cdef Key key = self._key(op)
        cdef int i = self.queue_size, above
        cdef Key *wider
        if i == self.queue_room:
            wider = <Key*>realloc(self.queue, 2 * self.queue_room * sizeof(Key))
            if wider == NULL:
                with gil:
                    raise MemoryError
            self.queue = wider
            self.queue_room *= 2
        self.queue_size += 1
        while i > 0:
            above = (i - 1) // 2
            if not before(key, self.queue[above]):
                break
            self.queue[i] = self.queue[above]
            i = above
        self.queue[i] = key
        return 0

    cdef int _pop(self) noexcept nogil:
        cdef int op = self.queue[0].op
        self.queue_size -= 1
        cdef Key key = self.queue[self.queue_size]
        cdef int i = 0, child
        while 2 * i + 1 < self.queue_size:
            child = 2 * i + 1
            if child + 1 < self.queue_size and before(self.queue[child + 1], self.queue[child]):
                child += 1
            if not before(self.queue[child], key):
                break
            self.queue[i] = self.queue[child]
            i = child
        self.queue[i] = key
        return op

    # Seating by cycle: stages follow ----------------------------------------------------------

    def pack(self, priority, bint tight, bint late, i64 evictions):
        """Begin a plan that seats by cycle; `blame` of the plans before it stays."""
        self._know_apart()
        self._begin(priority, evictions)
        self.tight, self.late, self.textbook = tight, late, False
        cdef int h, op
        self.visits_size = 0
        for op in range(self.size):
            self.head[op] = -1
        for h in range(self.homes):
            self._block(<int>self.ranked[h])
        for op in range(self.size):
            if not self.seated[op]:
                self._push(op)

    cdef int _begin(self, priority, i64 evictions) except -1:
        cdef int op
        self._clear()
        for op in range(self.size):
            self.priority[op] = priority[op]
        self.queue_size = 0
        self.failed = -1
        self.evictions = evictions
        return 0

    def run(self, i64 steps):
        """Go on for so many steps: DONE, FAILED, or MORE are needed."""
        cdef int verdict
        with nogil:
            verdict = self._textbook(steps) if self.textbook else self._run(steps)
        return verdict

    cdef int _run(self, i64 steps) except -1 nogil:
        cdef int op, i
        cdef i64 seat
        while self.queue_size:
            op = self.queue[0].op
            if self.seated[op]:
                self._pop()
                continue
            if steps <= 0:
                return 2
            steps -= 1
            self.spent += 1
            self._pop()
            seat = self._free(op)
            if seat == NONE and self.evictions <= 0:
                self.blame[op] += 1
                self.failed = op
                return 1
            if seat == NONE:
                self._force(op)
                self.evictions -= self.victims_size
                for i in range(self.victims_size):
                    self._push(<int>self.victims[i])
            else:
                self._commit(op, seat)
        return 0

    cdef i64 _free(self, int op) noexcept nogil:
        cdef i64 low, high
        self._window(op, &low, &high)
        if self.home[op] >= 0:
            return self._inside(op, low, high)
        if self.tight:
            return self._tightest(op, low)
        return self._first_fit(op, low, high)

    cdef void _window(self, int op, i64* low, i64* high) noexcept nogil:
        cdef i64 k, other, reached, h = self.home[op], size, place
        cdef i64 *members
        cdef i64 *apart
        cdef bint bounded = False
        low[0] = self.asap[op]
        if h < 0:
            for k in range(self.pred_at[op], self.pred_at[op + 1]):
                other = self.pred_op[k]
                if self.seated[other]:
                    reached = self.start[other] + self.pred_latency[k]
                    reached -= self.ii * self.pred_distance[k]
                    if reached > low[0]:
                        low[0] = reached
            high[0] = low[0] + self.ii - 1
            return
        high[0] = low[0] + self.ii - 1
        size = self.home_at[h + 1] - self.home_at[h]
        members = self.home_op + self.home_at[h]
        apart = self.apart[h]
        place = self.position[op]
        for k in range(size):
            other = members[k]
            if not self.seated[other]:
                continue
            if not bounded:
                bounded = True
                low[0] = NONE
                high[0] = NEVER
            reached = self.start[other] + apart[k * size + place]
            if reached > low[0]:
                low[0] = reached
            reached = self.start[other] - apart[place * size + k]
            if reached < high[0]:
                high[0] = reached

    cdef i64 _inside(self, int op, i64 low, i64 high) noexcept nogil:
        """A free start for a member of a recurrence, near where the others would have it."""
        cdef i64 h = self.home[op], k, member, shift = 0, middle, found
        for k in range(self.home_at[h], self.home_at[h + 1]):
            member = self.home_op[k]
            if self.seated[member]:
                shift = self.start[member] - self.asap[member]
                break
        middle = min(max(low, self.asap[op] + shift), high)
        cdef i64 ahead = min(high, middle + self.ii - 1)
        cdef i64 behind = max(low, middle - self.ii + 1)
        if self.late:
            if behind <= middle - 1:
                found = self._last_fit(op, behind, middle - 1)
                if found != NONE:
                    return found
            return self._first_fit(op, middle, ahead)
        found = self._first_fit(op, middle, ahead)
        if found == NONE and behind <= middle - 1:
            found = self._last_fit(op, behind, middle - 1)
        return found

    cdef i64 _tightest(self, int op, i64 low) noexcept nogil:
        """A start at an end of the shortest free stretch; the earliest of equals."""
        cdef int found = self._stretches(op, STRETCHES), i
        cdef i64 best = NONE, length = NEVER, start
        for i in range(found):
            start = low + wrap(self.ends[i] - low, self.ii)
            if self.lengths[i] < length or (self.lengths[i] == length and start < best):
                length, best = self.lengths[i], start
        return best

    cdef bint _block(self, int h) noexcept:
        """Seat a recurrence whole, its first member wherever that lets the others follow."""
        cdef int size = <int>(self.home_at[h + 1] - self.home_at[h]), i, count
        cdef i64 openings[2 * OPENINGS + 2]
        for i in range(size):
            self.sorting[i] = self._key(<int>self.home_op[self.home_at[h] + i])
        qsort(self.sorting, size, sizeof(Key), &by_key)
        cdef int first = self.sorting[0].op
        cdef i64 low = self.asap[first], start
        if self.placed:
            count = self._stretches(first, OPENINGS)
            for i in range(count):
                openings[i] = low + wrap(self.ends[i] - low, self.ii)
            qsort(openings, count, sizeof(i64), &by_number)
        else:
            count = 1
            openings[0] = low
        for i in range(count):
            start = openings[count - 1 - i] if self.late else openings[i]
            if self._fits(first, start) and self._follow(size, start):
                return True
        return False

    cdef bint _follow(self, int size, i64 start) noexcept:
        """Seat all of `sorting`, each in the window the others leave; none if one has no seat."""
        cdef int i, k, op
        cdef i64 low, high, seat
        self._commit(self.sorting[0].op, start)
        for i in range(1, size):
            op = self.sorting[i].op
            self._window(op, &low, &high)
            seat = self._inside(op, low, high)
            if seat == NONE:
                self.blame[op] += 1
                self.failed = op
                for k in range(i):
                    self._release(self.sorting[k].op)
                return False
            self._commit(op, seat)
        return True

    cdef int _force(self, int op) except -1 nogil:
        """Seat an operation where it costs least; those that had to leave are in `victims`."""
        cdef i64 h = self.home[op], k, member, low, high, start, cost, best_cost = NEVER
        cdef i64 best = NONE, s, c, step, at, i
        cdef int found, best_found = 0, lightest
        self.victims_size = 0
        self.blame[op] += 1
        self.failed = op
        if h >= 0 and self.blame[op] % PATIENCE == 0:
            for k in range(self.home_at[h], self.home_at[h + 1]):
                member = self.home_op[k]
                if self.seated[member]:
                    self.victims[self.victims_size] = member
                    self.victims_size += 1
                    self._release(<int>member)
        self._window(op, &low, &high)
        high = min(high, low + self.ii - 1)
        self._offer(op, low, &best_cost, &best, &best_found)
        self._offer(op, high, &best_cost, &best, &best_found)
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c = self.seg_column[s]
            step = 2 * self.lane_size[c] // OFFERS + 1
            i = self.blame[op] % step
            while i < self.lane_size[c]:
                at = self.lane[c][i].begin
                start = at + self.seg_length[self.lane[c][i].segment] - self.seg_offset[s]
                start = low + wrap(start - low, self.ii)
                if start <= high:
                    self._offer(op, start, &best_cost, &best, &best_found)
                start = at - self.seg_offset[s] - self.seg_length[s]
                start = low + wrap(start - low, self.ii)
                if start <= high:
                    self._offer(op, start, &best_cost, &best, &best_found)
                i += step
        for i in range(best_found):
            self._release(<int>self.best_leave[i])
        for i in range(best_found):
            self.victims[self.victims_size] = self.best_leave[i]
            self.victims_size += 1
        while True:
            lightest = self._crowder(op, best)
            if lightest < 0:
                break
            self._release(lightest)
            self.victims[self.victims_size] = lightest
            self.victims_size += 1
        self._visit(op, wrap(best, self.ii))
        self._commit(op, best)
        return 0

    cdef void _offer(
        self, int op, i64 start, i64* best_cost, i64* best, int* best_found
    ) noexcept nogil:
        """Weigh a start; keep it if it costs less than the best, or as much and comes earlier."""
        cdef int found = 0, i
        cdef i64 cost = 2 * self._visited(op, wrap(start, self.ii))
        if cost > best_cost[0]:
            return
        found = self._in_the_way(op, start, best_cost[0] - cost)
        if found < 0:
            return
        for i in range(found):
            cost += 1 + self.blame[self.offer_leave[i]]
        if cost < best_cost[0] or (cost == best_cost[0] and start < best[0]):
            best_cost[0] = cost
            best[0] = start
            best_found[0] = found
            for i in range(found):
                self.best_leave[i] = self.offer_leave[i]

    cdef int _in_the_way(self, int op, i64 start, i64 most) noexcept nogil:
        """Who would have to leave; with capacities above 1, the lightest first.

        -1: they cost more than so much, which is all that anybody wants to know.
        """
        cdef int leave = 0, count, i, j
        cdef i64 s, c, load, other
        cdef bint gone
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c = self.seg_column[s]
            count = self._overlapping(c, wrap(start + self.seg_offset[s], self.ii), self.seg_length[s])
            load = self.seg_amount[s]
            i = 0
            for j in range(count):
                gone = False
                for other in range(leave):
                    if self.offer_leave[other] == self.rivals[j].op:
                        gone = True
                        break
                if not gone:
                    self.rivals[i] = self.rivals[j]
                    load += self.rivals[i].amount
                    i += 1
            count = i
            if load <= self.limits[c]:
                continue
            if count > 1:
                self._sort_rivals(count)
            for i in range(count):
                if i == 0 or self.rivals[i].op != self.rivals[i - 1].op:
                    self.offer_leave[leave] = self.rivals[i].op
                    leave += 1
                    most -= 1 + self.rivals[i].blame
                    if most < 0:
                        return -1
                load -= self.rivals[i].amount
                if load <= self.limits[c]:
                    break
        return leave

    cdef void _sort_rivals(self, int count) noexcept nogil:
        cdef int i, j
        cdef Rival moved
        if count > 24:
            qsort(self.rivals, count, sizeof(Rival), &by_weight)
            return
        for i in range(1, count):
            moved = self.rivals[i]
            j = i
            while j > 0 and by_weight(&moved, &self.rivals[j - 1]) < 0:
                self.rivals[j] = self.rivals[j - 1]
                j -= 1
            self.rivals[j] = moved

    cdef int _overlapping(self, i64 c, i64 begin, i64 length) noexcept nogil:
        """Those that hold a column somewhere in a stretch of cycles, into `rivals`."""
        cdef i64 ii = self.ii, reach = self.longest[c], first, last
        cdef int found = 0
        if length + reach > ii:
            return self._touching(c, 0, ii, begin, length, 0)
        first = begin - reach + 1
        last = begin + length
        if first < 0:
            found = self._touching(c, self._from(c, first + ii), ii, begin, length, found)
        found = self._touching(c, self._from(c, max(first, 0)), last, begin, length, found)
        if last > ii:
            found = self._touching(c, 0, last - ii, begin, length, found)
        return found

    cdef int _touching(
        self, i64 c, int first, i64 until, i64 begin, i64 length, int found
    ) noexcept nogil:
        """Those of them from an entry on that begin until a cycle, behind so many found before."""
        cdef i64 gap
        cdef Held *held = self.lane[c] + first
        cdef Held *end = self.lane[c] + self.lane_size[c]
        while held < end and held.begin < until:
            gap = held.begin - begin
            if gap < 0:
                gap += self.ii
            if gap < length or self.ii - gap < self.seg_length[held.segment]:
                self.rivals[found].op = self.seg_op[held.segment]
                self.rivals[found].blame = self.blame[self.rivals[found].op]
                self.rivals[found].amount = self.seg_amount[held.segment]
                found += 1
            held += 1
        return found

    cdef int _crowder(self, int op, i64 start) noexcept nogil:
        """The lightest that stands in the way of a seat at the first cycle in conflict; -1: none.

        Rau's own plan clears the last cycle first.
        """
        cdef i64 s, k, c, begin, slack
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c = self.seg_column[s]
            begin = wrap(start + self.seg_offset[s], self.ii)
            slack = self.limits[c] - self.seg_amount[s]
            if self.textbook and self.plain:
                k = self._last_crowded(c, begin, self.seg_length[s], slack)
            else:
                k = self._first_crowded(c, begin, self.seg_length[s], slack)
            if k >= 0:
                return self._lightest(c, wrap(begin + k, self.ii))
        return -1

    cdef int _lightest(self, i64 c, i64 cycle) noexcept nogil:
        """The lightest of those that hold a column at a cycle; -1: nobody does."""
        cdef i64 reach = self.longest[c], low = cycle - reach + 1
        cdef int best = self._lighter_in(c, max(low, 0), cycle, cycle, -1)
        if low < 0:
            best = self._lighter_in(c, max(cycle + 1, low + self.ii), self.ii - 1, cycle, best)
        return best

    cdef int _lighter_in(self, i64 c, i64 low, i64 high, i64 cycle, int best) noexcept nogil:
        """The same of those that begin in a stretch, and of one known."""
        cdef Held *held = self.lane[c] + self._from(c, low)
        cdef Held *end = self.lane[c] + self.lane_size[c]
        cdef i64 gap
        cdef int op
        while held < end and held.begin <= high:
            gap = cycle - held.begin
            if gap < 0:
                gap += self.ii
            if gap < self.seg_length[held.segment]:
                op = self.seg_op[held.segment]
                if best < 0 or self._lighter(op, best):
                    best = op
            held += 1
        return best

    cdef bint _lighter(self, int a, int b) noexcept nogil:
        cdef i64 x, y
        if self.textbook and not self.weigh:
            x, y = self.priority[a], self.priority[b]
            if self.plain:
                return x < y or (x == y and a > b)
        else:
            x, y = self.blame[a], self.blame[b]
        return x < y or (x == y and a < b)

    cdef i64 _visited(self, int op, i64 cycle) noexcept nogil:
        cdef int i = self.head[op]
        while i >= 0:
            if self.visits[i].cycle == cycle:
                return self.visits[i].count
            i = self.visits[i].next
        return 0

    cdef int _visit(self, int op, i64 cycle) except -1 nogil:
        cdef int i = self.head[op]
        cdef Visit *wider
        while i >= 0:
            if self.visits[i].cycle == cycle:
                self.visits[i].count += 1
                return 0
            i = self.visits[i].next
        if self.visits_size == self.visits_room:
            wider = <Visit*>realloc(self.visits, 2 * self.visits_room * sizeof(Visit))
            if wider == NULL:
                with gil:
                    raise MemoryError
            self.visits = wider
            self.visits_room *= 2
        i = self.visits_size
        self.visits_size += 1
        self.visits[i].cycle = cycle
        self.visits[i].count = 1
        self.visits[i].next = self.head[op]
        self.head[op] = i
        return 0

    # Iterative modulo scheduling --------------------------------------------------------------

    def iterate(self, priority, i64 budget, bint weigh):
        """Begin a plan that seats by start: dependences push out as slots do."""
        cdef int op
        self._begin(priority, budget)
        self.textbook = True
        self.weigh = weigh
        self.plain = False
        self.visits_size = 0
        for op in range(self.size):
            self.head[op] = -1
        for op in range(self.size):
            self.last[op] = NONE
            self._push(op)

    def rau(self, priority, i64 budget):
        """Begin Rau's own plan: no start is ruled out by who is not seated yet."""
        self.iterate(priority, budget, False)
        self.plain = True

    def shorten(self, i64 stages, i64 budget):
        """Go on from a complete placement: who stands beyond so many stages is seated anew.

        False: no schedule at this II has so few.
        """
        cdef int op
        self._latest(stages * self.ii - 1)
        for op in range(self.size):
            if self.asap[op] > self.alap[op]:
                return False
        self.textbook = self.weigh = True
        self.plain = False
        self.queue_size = self.visits_size = 0
        self.failed = -1
        self.evictions = budget
        for op in range(self.size):
            self.head[op] = -1
            self.last[op] = self.start[op]
            if self.start[op] > self.alap[op]:
                self._release(op)
                self._push(op)
        return True

    def put(self, starts):
        """Take the seats of a complete placement."""
        cdef int op
        self._clear()
        for op in range(self.size):
            self._commit(op, starts[op])

    cdef int _textbook(self, i64 steps) except -1 nogil:
        cdef int op, i
        cdef i64 k, low, high, seat, reached
        while self.queue_size:
            if steps <= 0:
                return 2
            steps -= 1
            self.spent += 1
            op = self._pop()
            if self.evictions <= 0:
                self.failed = op
                return 1
            self.evictions -= 1
            low = 0 if self.plain else self.asap[op]
            for k in range(self.pred_at[op], self.pred_at[op + 1]):
                if self.seated[self.pred_op[k]]:
                    reached = self.start[self.pred_op[k]] + self.pred_latency[k]
                    reached -= self.ii * self.pred_distance[k]
                    if reached > low:
                        low = reached
            if low > self.alap[op]:
                if self.asap[op] > self.alap[op]:
                    self.failed = op
                    return 1
                self._push_back(op)
                low = self.alap[op]
            high = min(low + self.ii - 1, self.alap[op])
            seat = self._beside_group(op, low, high)
            if seat == NONE:
                seat = low
                if self.last[op] != NONE and low <= self.last[op]:
                    seat = self.last[op] + 1
                if seat > self.alap[op]:
                    seat = low
                if self.weigh:
                    seat = self._cheapest(op, low, high)
                while True:
                    i = self._crowder(op, seat)
                    if i < 0:
                        break
                    self._release(i)
                    self._push(i)
            self._commit(op, seat)
            self.last[op] = seat
            for k in range(self.succ_at[op], self.succ_at[op + 1]):
                i = <int>self.succ_op[k]
                if self.seated[i]:
                    reached = seat + self.succ_latency[k] - self.ii * self.succ_distance[k]
                    if reached > self.start[i]:
                        self._release(i)
                        self._push(i)
        return 0

    cdef i64 _cheapest(self, int op, i64 low, i64 high) except? -2 nogil:
        """The start of a window that pushes out what was in trouble least."""
        cdef i64 best_cost = NEVER, best = NONE, s, c, step, i, at, start
        self.blame[op] += 1
        self._weigh(op, low, &best_cost, &best)
        self._weigh(op, high, &best_cost, &best)
        for s in range(self.seg_at[op], self.seg_at[op + 1]):
            c = self.seg_column[s]
            step = 2 * self.lane_size[c] // OFFERS + 1
            i = self.blame[op] % step
            while i < self.lane_size[c]:
                at = self.lane[c][i].begin
                start = at + self.seg_length[self.lane[c][i].segment] - self.seg_offset[s]
                start = low + wrap(start - low, self.ii)
                if start <= high:
                    self._weigh(op, start, &best_cost, &best)
                start = at - self.seg_offset[s] - self.seg_length[s]
                start = low + wrap(start - low, self.ii)
                if start <= high:
                    self._weigh(op, start, &best_cost, &best)
                i += step
        self._visit(op, wrap(best, self.ii))
        return best

    cdef void _weigh(self, int op, i64 start, i64* best_cost, i64* best) noexcept nogil:
        cdef i64 cost = 2 * self._visited(op, wrap(start, self.ii)), k
        cdef int found, i
        if cost > best_cost[0]:
            return
        for k in range(self.succ_at[op], self.succ_at[op + 1]):
            i = <int>self.succ_op[k]
            if self.seated[i] and (
                start + self.succ_latency[k] - self.ii * self.succ_distance[k] > self.start[i]
            ):
                cost += 1 + self.blame[i]
        if cost > best_cost[0]:
            return
        found = self._in_the_way(op, start, best_cost[0] - cost)
        if found < 0:
            return
        for i in range(found):
            cost += 1 + self.blame[self.offer_leave[i]]
        if cost < best_cost[0] or (cost == best_cost[0] and start < best[0]):
            best_cost[0] = cost
            best[0] = start

    cdef int _push_back(self, int op) except -1 nogil:
        """Take out the predecessors that leave an operation no stage that it may have."""
        cdef i64 k, reached
        cdef int other
        for k in range(self.pred_at[op], self.pred_at[op + 1]):
            other = <int>self.pred_op[k]
            if self.seated[other]:
                reached = self.start[other] + self.pred_latency[k]
                reached -= self.ii * self.pred_distance[k]
                if reached > self.alap[op]:
                    self._release(other)
                    self._push(other)
        return 0

    cdef i64 _beside_group(self, int op, i64 low, i64 high) except? -2 nogil:
        """A seat in the stage of the group; where there is none, its seated members leave."""
        cdef i64 g = self.group[op], k, stage = NONE, seat
        cdef int member
        if g >= 0:
            for k in range(self.group_at[g], self.group_at[g + 1]):
                member = <int>self.group_op[k]
                if self.seated[member]:
                    stage = (self.start[member] - wrap(self.start[member], self.ii)) // self.ii
                    stage += self.ahead[member] - self.ahead[op]
                    break
        if stage == NONE:
            return self._first_fit(op, low, high)
        seat = NONE
        if max(low, stage * self.ii) <= min(high, (stage + 1) * self.ii - 1):
            seat = self._first_fit(op, max(low, stage * self.ii), min(high, (stage + 1) * self.ii - 1))
        if seat != NONE:
            return seat
        for k in range(self.group_at[g], self.group_at[g + 1]):
            member = <int>self.group_op[k]
            if self.seated[member]:
                self._release(member)
                self._push(member)
        return self._first_fit(op, low, high)

    # What came of it --------------------------------------------------------------------------

    def starts(self):
        """The start of each operation; None: not seated."""
        return [self.start[i] if self.seated[i] else None for i in range(self.size)]

    def staged(self):
        """Move seats by whole IIs so that every dependence holds; false: a recurrence forbids it."""
        cdef i64 i, k, node, need, at, rounds = 0, other
        cdef bint moved = True
        cdef i64 *fresh = self.last
        for i in range(self.size):
            # the earliest with its cycle
            self.start[i] = self.asap[i] + wrap(self.start[i] - self.asap[i], self.ii)
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
                at = self.start[node]
                for k in range(self.succ_at[node], self.succ_at[node + 1]):
                    other = self.succ_op[k]
                    need = at + self.succ_latency[k] - self.ii * self.succ_distance[k]
                    if need > self.start[other]:
                        self.start[other] = need + wrap(self.start[other] - need, self.ii)
                        fresh[other] = 1
                        moved = True
        return True

    def compact(self, int rounds):
        """Move the seats of a complete placement earlier, in order, while that moves any."""
        cdef int r, i, op
        cdef i64 k, low, reached, seat, moved
        for r in range(rounds):
            moved = 0
            for i in range(self.size):
                op = <int>self.order[i]
                if self.group[op] >= 0:
                    continue
                low = self.asap[op]
                for k in range(self.pred_at[op], self.pred_at[op + 1]):
                    reached = self.start[self.pred_op[k]] + self.pred_latency[k]
                    reached -= self.ii * self.pred_distance[k]
                    if reached > low:
                        low = reached
                if self.start[op] <= low:
                    continue
                reached = self.start[op]
                self._release(op)
                seat = self._first_fit(op, low, reached)
                if seat == NONE:
                    seat = reached
                self._commit(op, seat)
                if seat < reached:
                    moved += 1
            if not moved:
                break
