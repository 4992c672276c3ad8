"""Microbenchmarks in Gluon of what the assembler makes of work between products, with clocks.

    mixed    a product, work that has nothing to do with it, and only then the wait for the product
    ahead    the heart of attention with the next scores issued before the softmax of these

They write `out` as those of micro_kernels.py do. BARRIERS is 1 where a trip also waits twice for
barriers whose turn has come, and arrives twice where nobody waits; 2 where it does so for two rings
that another agent hands out as soon as they are free, as one that copies does.
"""

from micro_kernels import clock, stamp, tell
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from turn_kernels import factors

RING = gl.constexpr(2)


@gluon.jit
def next_slot(slot, phase):
    slot += 1
    phase = gl.where(slot == RING, phase ^ 1, phase)
    slot = gl.where(slot == RING, 0, slot)
    return slot, phase


@gluon.jit
def ready(full, AT: gl.constexpr, slot, phase, BARRIERS: gl.constexpr):
    """A wait for what is there: in a ring, or always."""
    if BARRIERS == 2:
        mbarrier.wait(full.index(RING * AT + slot), phase)
    elif BARRIERS:
        mbarrier.wait(full.index(RING * AT), 1)


@gluon.jit
def turned(free, AT: gl.constexpr, slot, BARRIERS: gl.constexpr):
    """An arrival: somebody waits for it in a ring, or nobody."""
    if BARRIERS == 2:
        mbarrier.arrive(free.index(RING * AT + slot), count=1)
    elif BARRIERS:
        mbarrier.arrive(free.index(RING * AT), count=1)


@gluon.jit
def hands_out(full, free, trips):
    """Fills both rings with nothing, as soon as there is room."""
    slot = 0
    phase = 1
    for i in range(trips):
        mbarrier.wait(free.index(slot), phase)
        mbarrier.arrive(full.index(slot), count=1)
        mbarrier.wait(free.index(RING + slot), phase)
        mbarrier.arrive(full.index(RING + slot), count=1)
        slot, phase = next_slot(slot, phase)


@gluon.jit
def barriers_of(COUNT: gl.constexpr):
    """Of both rings, each with so many arrivals a turn."""
    bars = gl.allocate_shared_memory(gl.int64, [2 * RING, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2 * RING):
        mbarrier.init(bars.index(i), count=COUNT)
    return bars


@gluon.jit
def slots(K: gl.constexpr, N: gl.constexpr, num_warps: gl.constexpr):
    """A ring of right factors, full of numbers."""
    smem: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], gl.float16)
    filled: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [num_warps, 1], [1, 0])
    tile = gl.allocate_shared_memory(gl.float16, [RING, K, N], smem)
    for i in gl.static_range(RING):
        tile.index(i).store(gl.full([K, N], 0.5, gl.float16, filled))
    return tile


@gluon.jit
def mixes(
    out,
    sink,
    a_tile,
    b_tile,
    c,
    trips,
    WHO: gl.constexpr,
    OP: gl.constexpr,
    N: gl.constexpr,
    P: gl.constexpr,
):
    """Trips of a product, with an operation on a tile of N columns between it and its wait."""
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, P, 16])
    other: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    row: gl.constexpr = gl.SliceLayout(1, other)
    at = gl.arange(0, 64, row)[:, None] * N + gl.arange(0, N, gl.SliceLayout(0, other))[None, :]
    x = gl.load(sink + at)
    highest = gl.load(sink + gl.arange(0, 64, row))
    weight = highest * 0.0
    total = gl.zeros([64, P], gl.float32, layout)
    begin = clock()
    for i in range(trips):
        flying = warpgroup_mma(a_tile, b_tile, total, is_async=True)
        if OP == "multiply":
            x = x * c
        elif OP == "exponent":
            x = gl.exp2(x)
        elif OP == "sum":
            weight = weight * c + gl.sum(x, 1)
            x = x + c
        else:
            new = gl.maximum(highest, gl.max(x, 1) * c)
            x = gl.exp2(x * c - new[:, None])
            weight = weight * gl.exp2(highest - new) + gl.sum(x, 1)
            highest = new
        total = warpgroup_mma_wait(0, deps=(flying,))
    end = clock()
    tell(out, WHO, begin, end, trips)
    gl.store(sink + at, x + (highest + weight)[:, None])
    rows = gl.arange(0, 64, gl.SliceLayout(1, layout))[:, None]
    gl.store(sink + rows * P + gl.arange(0, P, gl.SliceLayout(0, layout))[None, :], total)


@gluon.jit
def mixed(
    out,
    sink,
    c,
    first_trips,
    second_trips,
    AGENTS: gl.constexpr,
    OP: gl.constexpr,
    N: gl.constexpr,
    P: gl.constexpr,
    K: gl.constexpr,
    num_warps: gl.constexpr,
):
    a_tile, b_tile = factors(64, P, K, num_warps)
    fence_async_shared()
    gl.thread_barrier()
    stamp(out, 4)
    if AGENTS == 1:
        mixes(out, sink, a_tile, b_tile, c, first_trips, 0, OP, N, P)
    else:
        gl.warp_specialize(
            [
                (mixes, (out, sink, a_tile, b_tile, c, first_trips, 0, OP, N, P)),
                (mixes, (out, sink + 65536, a_tile, b_tile, c, second_trips, 1, OP, N, P)),
            ],
            [4],
            [240],
        )
    stamp(out, 6)


@gluon.jit
def goes_ahead(
    out,
    sink,
    a_tile,
    b_tile,
    v_tile,
    full,
    free,
    c,
    trips,
    WHO: gl.constexpr,
    ORDER: gl.constexpr,
    BARRIERS: gl.constexpr,
    LATE: gl.constexpr,
    M: gl.constexpr,
    N: gl.constexpr,
    D: gl.constexpr,
):
    """ORDER `text`: scores, their softmax, the second product, each waited for at once; `scores`:
    the next scores, then the second product, and the softmax of those scores while it runs;
    `rescaled`: the same, and the sum is rescaled only before the next second product. Begins LATE
    cycles late."""
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    wide: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    factor: gl.constexpr = gl.DotOperandLayout(0, wide, 2)
    row: gl.constexpr = gl.SliceLayout(1, layout)
    across: gl.constexpr = gl.SliceLayout(1, wide)
    zero = gl.zeros([M, N], gl.float32, layout)
    total = gl.zeros([M, D], gl.float32, wide)
    highest = gl.load(sink + gl.arange(0, M, row))
    weight = highest * 0.0
    shrink = highest * 0.0
    p = gl.zeros([M, N], gl.float16, factor)
    k_slot = 0
    k_phase = 0
    v_slot = 0
    v_phase = 0
    if LATE:
        met = clock()
        while clock() - met < LATE:
            pass
    begin = clock()
    for i in range(trips):
        if ORDER == "rescaled":
            total = total * gl.convert_layout(shrink, across)[:, None]
        ready(full, 0, k_slot, k_phase, BARRIERS)
        flying = warpgroup_mma(a_tile, b_tile.index(k_slot), zero, use_acc=False, is_async=True)
        if ORDER == "text":
            scores = warpgroup_mma_wait(0, deps=(flying,))
        else:
            ready(full, 1, v_slot, v_phase, BARRIERS)
            adding = warpgroup_mma(p, v_tile.index(v_slot), total, is_async=True)
            scores, adding = warpgroup_mma_wait(1, deps=(flying, adding))
        turned(free, 0, k_slot, BARRIERS)
        if BARRIERS == 2:
            k_slot, k_phase = next_slot(k_slot, k_phase)
        new = gl.maximum(highest, gl.max(scores, 1) * c)
        x = gl.exp2(scores * c - new[:, None])
        shrink = gl.exp2(highest - new)
        weight = weight * shrink + gl.sum(x, 1)
        highest = new
        if ORDER == "text":
            total = total * gl.convert_layout(shrink, across)[:, None]
            p = gl.convert_layout(x.to(gl.float16), factor)
            ready(full, 1, v_slot, v_phase, BARRIERS)
            adding = warpgroup_mma(p, v_tile.index(v_slot), total, is_async=True)
            total = warpgroup_mma_wait(0, deps=(adding,))
        else:
            total, p = warpgroup_mma_wait(0, deps=(adding, p))
            p = gl.convert_layout(x.to(gl.float16), factor)
            if ORDER == "scores":
                total = total * gl.convert_layout(shrink, across)[:, None]
        turned(free, 1, v_slot, BARRIERS)
        if BARRIERS == 2:
            v_slot, v_phase = next_slot(v_slot, v_phase)
    end = clock()
    tell(out, WHO, begin, end, trips)
    at = gl.arange(0, M, across)[:, None] * D
    gl.store(sink + at + gl.arange(0, D, gl.SliceLayout(0, wide))[None, :], total)
    gl.store(sink + gl.arange(0, M, row), highest + weight)


@gluon.jit
def ahead(
    out,
    sink,
    c,
    first_trips,
    second_trips,
    AGENTS: gl.constexpr,
    ORDER: gl.constexpr,
    BARRIERS: gl.constexpr,
    LATE: gl.constexpr,
    M: gl.constexpr,
    N: gl.constexpr,
    D: gl.constexpr,
    num_warps: gl.constexpr,
):
    a_tile, _ = factors(M, 16, D, num_warps)
    b_tile = slots(D, N, num_warps)
    v_tile = slots(N, D, num_warps)
    full = barriers_of(1)
    free = barriers_of(AGENTS)
    fence_async_shared()
    gl.thread_barrier()
    stamp(out, 4)
    if AGENTS == 1 and BARRIERS == 2:
        gl.warp_specialize(
            [
                (goes_ahead, (out, sink, a_tile, b_tile, v_tile, full, free, c, first_trips, 0,
                              ORDER, BARRIERS, 0, M, N, D)),
                (hands_out, (full, free, first_trips)),
            ],
            [1],
            [24],
        )  # fmt: skip
    elif AGENTS == 1:
        goes_ahead(out, sink, a_tile, b_tile, v_tile, full, free, c, first_trips, 0, ORDER,
                   BARRIERS, 0, M, N, D)  # fmt: skip
    elif BARRIERS == 2:
        gl.warp_specialize(
            [
                (goes_ahead, (out, sink, a_tile, b_tile, v_tile, full, free, c, first_trips, 0,
                              ORDER, BARRIERS, 0, M, N, D)),
                (goes_ahead, (out, sink, a_tile, b_tile, v_tile, full, free, c, second_trips, 1,
                              ORDER, BARRIERS, LATE, M, N, D)),
                (hands_out, (full, free, first_trips)),
            ],
            [4, 1],
            [240, 24],
        )  # fmt: skip
    else:
        gl.warp_specialize(
            [
                (goes_ahead, (out, sink, a_tile, b_tile, v_tile, full, free, c, first_trips, 0,
                              ORDER, BARRIERS, 0, M, N, D)),
                (goes_ahead, (out, sink, a_tile, b_tile, v_tile, full, free, c, second_trips, 1,
                              ORDER, BARRIERS, LATE, M, N, D)),
            ],
            [4],
            [240],
        )  # fmt: skip
    stamp(out, 6)
