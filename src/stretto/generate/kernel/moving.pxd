# Types of moving.py for the compiler; Python never reads this.
cimport cython

ctypedef long long i64

cdef i64 BLAME, SHARES, PLAIN, FAR, LIGHT, AIMED, HOPE, HISTORY, STRAY, PUSHES, CROWDED, DEEPEST
cdef i64 POOL, SWAPS, GAPS, PICKS, CLOSE, CUTS


@cython.final
cdef class Moving:
    cdef readonly i64 n, ii, fitted, arcs, segs, movers, groups, rooms, spaces, tried, pushed
    cdef i64 every, turns, begun, posted, looks, summit, upmost, source, target, nearest, farthest
    cdef bint sure, deep, plainly, ruled, cells, pinned
    cdef i64 always, unit, registers, most, pushes, logged, foremost, columns, head, waiting, heavy, lack
    cdef i64[::1] pool
    cdef i64 taken
    cdef public i64 seed
    cdef i64 excess, stages, bytes, peak, area, least, plain
    cdef i64 best_excess, best_stages, best_bytes, best_peak
    cdef i64[::1] order, reach, first, last, frozen, keeps, weight
    cdef i64[::1] arc_src, arc_dst, arc_gain, arcs_at, arcs_of, short, astray
    cdef i64[::1] place, line, waits, met, longest, part_wide, parts, part_at, part_seg, after, before
    cdef i64[::1] succ_at, succ_op, succ_gain, pred_at, pred_op, pred_gain
    cdef i64[::1] seg_at, seg_op, seg_col, seg_off, seg_len, seg_amt
    cdef i64[::1] lane_at, lane_seg, limit, holders
    cdef i64[::1] group_at, group_op, group_off, grouped
    cdef i64[::1] wr_at, wr_op, wr_off, acc_at, acc_op, acc_done
    cdef i64[::1] room_bytes, room_space, touch_at, touch_room, base, budget, used
    cdef i64[::1] start, cycle, now, best, early, late, queue, log_op, log_at, begin, end, history, change
    cdef i64[::1] kept, spot, opens, crew, blame, post_src, post_dst, post_gain
    cdef i64[::1] agents, phase, rest, weighs, lane_of, lane_from, lane_len, lane_op

    @cython.locals(first=i64)
    cdef i64[::1] zeros(self, i64 count)
    @cython.locals(found=i64[::1], k=i64)
    cdef i64[::1] row(self, values)
    @cython.locals(found=i64[::1], k=i64)
    cdef i64[::1] field(self, rows, i64 count, i64 which)
    @cython.locals(found=i64[::1], k=i64, n=i64)
    cdef i64[::1] ends(self, rows)
    cdef void _connect(self, i64[::1] src, i64[::1] dst, i64[::1] gain) noexcept
    cdef void _hold(self) noexcept
    cdef _part(self)
    cdef void _touch(self, i64[::1] seen) noexcept
    cdef i64 below(self, i64 n) noexcept
    cdef inline i64 wrap(self, i64 start) noexcept
    cdef inline i64 near(self, i64 cycle) noexcept
    cdef inline i64 held_from(self, i64 s) noexcept
    cdef i64 part_of(self, i64 s) noexcept
    cdef void link(self, i64 s) noexcept
    cdef void unlink(self, i64 s) noexcept
    cdef inline void seat(self, i64 op, i64 at) noexcept
    cdef void load(self, i64[::1] starts) noexcept
    cdef bint accept(self) noexcept
    cdef inline void put(self, i64 op, i64 at) noexcept
    cdef void undo(self) noexcept
    cdef bint insert(self, i64 op, i64 at, bint onward) noexcept
    cdef inline i64 crowding(self, i64 s) noexcept
    cdef inline i64 alone(self, i64 s) noexcept
    cdef i64 crowd(self, i64 s, i64 count) noexcept
    cdef i64 meeting(self, i64 s) noexcept
    cdef i64 beside(self, i64 op) noexcept
    cdef bint windows(self, i64 stages) noexcept
    cpdef bint overfull(self)
    cdef inline bint overheld(self, i64 column, i64 begin, i64 count, i64 total) noexcept
    cpdef i64 part(self, i64 stages, i64 looks)
    cdef bint seat_early(self) noexcept
    cdef bint branch(self, i64 depth) noexcept
    cdef bint sever(self, i64 one, i64 two, i64 depth) noexcept
    cdef inline void post(self, i64 one, i64 two, i64 gain) noexcept
    cdef bint narrow(self) noexcept
    cdef bint follow(self, i64 last) noexcept
    cdef inline bint tighten(self, i64 src, i64 dst, i64 gain) noexcept
    cdef inline void enlist(self, i64 node) noexcept
    cdef bint scatter(self) noexcept
    cdef i64 collide(self, i64 first) noexcept
    cdef inline void apart(self, i64 one, i64 two) noexcept
    cdef i64 swarm(self, i64 first) noexcept
    cpdef bint fit(self, i64 stages, i64 moves, i64 hot, i64 patience, i64 look=*)
    cpdef bint close(self, i64 turn, i64 moves, i64 hot, i64 patience)
    cdef i64 cut(self, i64 turn)
    cdef bint descend(self, i64 moves, i64 hot, i64 patience, i64 look, bint aimed) noexcept
    cdef i64 missed(self) noexcept
    cdef void recount(self) noexcept
    cdef void tally(self, i64 made) noexcept
    cdef void count(self, i64 op) noexcept
    cdef void weigh(self) noexcept
    cdef bint step(self) noexcept
    cdef bint aim(self) noexcept
    cdef bint shift(self, i64 op, i64 miss, bint later) noexcept
    cdef bint exchange(self, i64 op, i64 miss, bint later) noexcept
    cdef bint gap(self, i64 op, i64 at, bint later) noexcept
    cdef bint derive(self) noexcept
    cdef bint ripple(self) noexcept
    cdef inline void lift(self, i64 node, i64 behind) noexcept
    cdef bint gather(self) noexcept
    cdef void settle(self) noexcept
    cdef i64 lives_of(self, i64 op) noexcept
    cdef inline i64 life(self, i64 r) noexcept
    cdef i64 spanned(self) noexcept
    cdef bint measure(self) noexcept
    cdef bint fill(self) noexcept
    cdef void count_registers(self) noexcept
    cdef i64 at_summit(self) noexcept
    cdef bint moved(self) noexcept
    cdef bint follows(self, i64 most) noexcept
    cdef bint passes(self, i64 most) noexcept
    cdef i64 pressure(self, i64 space, i64 base) noexcept
    cdef i64 highest(self, i64 count) noexcept
    cdef bint keep(self) noexcept
    cdef i64 energy(self) noexcept
    cpdef polish(self, i64 moves)
    cdef bint nudge(self) noexcept
    cpdef take(self, starts)
    cpdef bint fix(self, ops, cycles)
    cdef bint spread(self, i64 tail, i64 op, bint onward) noexcept
