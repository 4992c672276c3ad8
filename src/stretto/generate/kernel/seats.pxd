# Types of seats.py for the compiler; Python never reads this.
cimport cython

ctypedef long long i64
ctypedef unsigned long long u64

cdef i64 OPENINGS, STRETCHES, OFFERS, PATIENCE, LOOSE, NEVER, NONE, WORD, POOL, VISITS
cdef u64 ALL
cdef bint ENDLESS

@cython.locals(place=i64, reach=i64)
cdef i64 highest(u64 word) noexcept
cdef i64 lowest(u64 word) noexcept


@cython.final
cdef class Seats:
    cdef readonly i64 size, columns, ii, failed, evictions, spent
    cdef object segments
    cdef i64[::1] pool
    cdef i64 taken
    cdef i64 homes, shift, mask, words, planes_size, placed
    cdef bint apart_known, tight, late, textbook, weigh, plain
    cdef i64 queue_size, queue_room, visits_size, visits_room, victims_size
    cdef i64 low, high, best, best_cost, best_found
    cdef u64 all
    cdef u64[::1] planes
    cdef i64[::1] limits, order, completion, last_stage, group, ahead, pending, group_at, group_op
    cdef i64[::1] succ_at, succ_op, succ_latency, succ_distance
    cdef i64[::1] pred_at, pred_op, pred_latency, pred_distance
    cdef i64[::1] home, home_at, home_op, position
    cdef i64[::1] seg_at, seg_op, seg_column, seg_offset, seg_length, seg_amount
    cdef i64[::1] asap, alap, longest, depth, apart, apart_at, ranked, planes_at
    cdef i64[::1] lane_at, lane_size, lane_begin, lane_seg, rival_op, rival_blame, rival_amount
    cdef i64[::1] blame, start, seated, priority, last, queue_late, queue_first, queue_op
    cdef i64[::1] head, block, visit_cycle, visit_count, visit_next
    cdef i64[::1] offer_leave, best_leave, victims, ends, lengths, openings

    @cython.locals(first=i64)
    cdef i64[::1] _zeros(self, i64 count)
    @cython.locals(found=i64[::1], k=i64)
    cdef i64[::1] _row(self, values)
    @cython.locals(found=i64[::1], k=i64, end=i64)
    cdef i64[::1] _ends(self, rows)
    @cython.locals(found=i64[::1], k=i64)
    cdef i64[::1] _longer(self, i64[::1] values)
    @cython.locals(k=i64)
    cdef _connect(self, rows, i64[::1] op, i64[::1] latency, i64[::1] distance)
    cdef void _hold(self, i64 s) noexcept
    cdef _make_room(self, i64 n)
    cdef _empty(self, i64 count)
    @cython.locals(c=i64, s=i64, op=i64, total=i64, widest=i64, end=i64)
    cdef _take(self, segments)
    @cython.locals(size=i64, c=i64)
    cdef _widen(self, i64 ii)
    cdef bint _raise(self, i64[::1] values) noexcept
    cdef void _latest(self, i64 limit) noexcept
    cdef void _distances(self, i64 home) noexcept
    @cython.locals(end=i64, home=i64)
    cdef _know_apart(self)
    cdef bint _loose(self, i64 home) noexcept
    @cython.locals(tight=i64[::1], k=i64, tightest=i64, slack=i64)
    cdef _rank(self)
    cdef bint _tighter(self, i64[::1] tight, i64 a, i64 b) noexcept
    cdef void _rise(self) noexcept
    cdef inline i64 _wrap(self, i64 start) noexcept
    @cython.locals(more=u64, equal=u64, plane=u64)
    cdef inline u64 _full(self, i64 c, i64 slack, i64 word) noexcept
    @cython.locals(found=u64)
    cdef i64 _last_in(self, i64 c, i64 slack, i64 low, i64 end) noexcept
    @cython.locals(found=u64)
    cdef i64 _first_in(self, i64 c, i64 slack, i64 low, i64 end) noexcept
    @cython.locals(found=u64)
    cdef i64 _free_in(self, i64 c, i64 slack, i64 low) noexcept
    cdef i64 _last_crowded(self, i64 c, i64 cycle, i64 length, i64 slack) noexcept
    cdef i64 _first_crowded(self, i64 c, i64 cycle, i64 length, i64 slack) noexcept
    cdef i64 _crowded_run(self, i64 c, i64 cycle, i64 slack) noexcept
    cdef i64 _first_fit(self, i64 op, i64 low, i64 high) noexcept
    cdef i64 _last_fit(self, i64 op, i64 low, i64 high) noexcept
    cdef bint _fits(self, i64 op, i64 start) noexcept
    cdef i64 _run_end(self, i64 op, i64 start) noexcept
    cdef i64 _stretches(self, i64 op, i64 most) noexcept
    cdef void _commit(self, i64 op, i64 seat) noexcept
    cdef void _release(self, i64 op) noexcept
    cdef void _count(self, i64 c, i64 begin, i64 length, i64 amount) noexcept
    @cython.locals(mask=u64, carry=u64, other=u64, old=u64, mine=u64)
    cdef void _count_in(self, i64 c, i64 low, i64 end, i64 amount) noexcept
    cdef i64 _place(self, i64 c, i64 begin, i64 segment) noexcept
    cdef i64 _from(self, i64 c, i64 begin) noexcept
    cdef void _clear(self) noexcept
    cdef inline bint _precedes(self, i64 late, i64 first, i64 op, i64 at) noexcept
    cdef inline void _enqueue(self, i64 at, i64 late, i64 first, i64 op) noexcept
    cdef inline void _move(self, i64 source, i64 to) noexcept
    cdef void _push(self, i64 op) except *
    cdef i64 _pop(self) noexcept
    cdef _begin(self, priority, i64 evictions)
    cdef void _forget(self, i64 evictions) noexcept
    cdef int _pack(self, i64 steps) except -1
    cdef i64 _free(self, i64 op) noexcept
    cdef i64 _after_preds(self, i64 op, i64 low) noexcept
    cdef void _window(self, i64 op) noexcept
    cdef i64 _inside(self, i64 op) noexcept
    cdef i64 _tightest(self, i64 op, i64 low) noexcept
    @cython.locals(openings=i64[::1])
    cdef bint _seat_block(self, i64 home) except *
    cdef bint _follow(self, i64 size, i64 start) noexcept
    cdef void _force(self, i64 op) except *
    cdef void _expel(self, i64 op) noexcept
    cdef void _choose(self, i64 op, i64 low, i64 high) noexcept
    cdef void _offer(self, i64 op, i64 start) noexcept
    cdef i64 _in_the_way(self, i64 op, i64 start, i64 most) noexcept
    cdef inline bint _leaves(self, i64 op, i64 count) noexcept
    cdef void _sort_rivals(self, i64 count) noexcept
    cdef inline bint _lighter_than(self, i64 blame, i64 op, i64 amount, i64 at) noexcept
    cdef i64 _overlapping(self, i64 c, i64 begin, i64 length) noexcept
    cdef i64 _touching(self, i64 c, i64 at, i64 until, i64 begin, i64 length, i64 found) noexcept
    cdef i64 _crowder(self, i64 op, i64 start) noexcept
    cdef i64 _lightest(self, i64 c, i64 cycle) noexcept
    cdef i64 _lighter_in(self, i64 c, i64 low, i64 high, i64 cycle, i64 best) noexcept
    cdef inline bint _lighter(self, i64 a, i64 b) noexcept
    cdef i64 _visited(self, i64 op, i64 cycle) noexcept
    cdef i64 _visit_of(self, i64 op, i64 cycle) noexcept
    cdef void _visit(self, i64 op, i64 cycle) except *
    cdef int _iterate(self, i64 steps) except -1
    cdef void _leave(self, i64 op) except *
    cdef i64 _forced(self, i64 op, i64 low, i64 high) except *
    cdef void _push_back(self, i64 op) except *
    cdef i64 _beside_group(self, i64 op, i64 low, i64 high) except *
