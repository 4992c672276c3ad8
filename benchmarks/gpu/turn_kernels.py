"""Microbenchmarks in Gluon of what agents do to each other, with clocks around them.

    turns      a product that is waited for, and then arrivals and waits: what a ring's turn costs
    overlap    two agents, each with a product, the second so many cycles later
    alternate  the heart of attention, without copies and barriers
    tiles      two tiles a trip, as a product of matrices loads them: of its row and of its column

They write `out` as those of micro_kernels.py do.
"""

from micro_kernels import clock, stamp, tell, tma_load
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def factors(M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, num_warps: gl.constexpr):
    """Two tiles in shared memory, full of numbers."""
    smem: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], gl.float16)
    b_smem: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], gl.float16)
    filled: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [num_warps, 1], [1, 0])
    a_tile = gl.allocate_shared_memory(gl.float16, [M, K], smem)
    a_tile.store(gl.full([M, K], 0.25, gl.float16, filled))
    b_tile = gl.allocate_shared_memory(gl.float16, [K, N], b_smem)
    b_tile.store(gl.full([K, N], 0.5, gl.float16, filled))
    return a_tile, b_tile


@gluon.jit
def turns(
    out,
    sink,
    trips,
    PRODUCT: gl.constexpr,
    ARRIVES: gl.constexpr,
    WAITS: gl.constexpr,
    N: gl.constexpr,
    K: gl.constexpr,
    num_warps: gl.constexpr,
):
    """Nobody waits for what arrives here, and what is waited for is there."""
    M: gl.constexpr = 16 * num_warps
    a_tile, b_tile = factors(M, N, K, num_warps)
    a_full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    b_full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    a_free = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    b_free = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(a_full, count=1)
    mbarrier.init(b_full, count=1)
    mbarrier.init(a_free, count=1)
    mbarrier.init(b_free, count=1)
    fence_async_shared()
    gl.thread_barrier()
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [num_warps, 1], [16, N, 16])
    total = gl.zeros([M, N], gl.float32, layout)
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        if PRODUCT:
            flying = warpgroup_mma(a_tile, b_tile, total, is_async=True)
            total = warpgroup_mma_wait(0, deps=(flying,))
        if ARRIVES > 0:
            mbarrier.arrive(a_free, count=1)
        if ARRIVES > 1:
            mbarrier.arrive(b_free, count=1)
        if WAITS > 0:
            mbarrier.wait(a_full, 1)
        if WAITS > 1:
            mbarrier.wait(b_full, 1)
    end = clock()
    stamp(out, 6)
    tell(out, 0, begin, end, trips)
    rows = gl.arange(0, M, gl.SliceLayout(1, layout))[:, None]
    gl.store(sink + rows * N + gl.arange(0, N, gl.SliceLayout(0, layout))[None, :], total)


@gluon.jit
def one_of_two(
    out,
    sink,
    a_tile,
    b_tile,
    bars,
    trips,
    WHO: gl.constexpr,
    OFFSET: gl.constexpr,
    REGISTERS: gl.constexpr,
    N: gl.constexpr,
):
    """Meets the other agent, then is OFFSET cycles later than it; counts its product alone, and how
    long it took to issue it."""
    warps: gl.constexpr = gl.num_warps()
    M: gl.constexpr = 16 * warps
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [warps, 1], [16, N, 16])
    if REGISTERS:
        a = a_tile.load(gl.DotOperandLayout(0, layout, 2))
    else:
        a = a_tile
    total = gl.zeros([M, N], gl.float32, layout)
    spent = clock() * 0
    issued = spent
    for i in range(trips):
        mbarrier.arrive(bars.index(1 - WHO), count=1)
        mbarrier.wait(bars.index(WHO), i & 1)
        met = clock()
        if OFFSET:
            while clock() - met < OFFSET:
                pass
        before = clock()
        flying = warpgroup_mma(a, b_tile, total, is_async=True)
        issued += clock() - before
        total = warpgroup_mma_wait(0, deps=(flying,))
        spent += clock() - before
    tell(out, WHO, spent * 0, spent, trips)
    tell(out, 4 + WHO, issued * 0, issued, trips)
    rows = gl.arange(0, M, gl.SliceLayout(1, layout))[:, None]
    gl.store(sink + rows * N + gl.arange(0, N, gl.SliceLayout(0, layout))[None, :], total)


@gluon.jit
def overlap(
    out,
    sink,
    trips,
    OFFSET: gl.constexpr,
    REGISTERS: gl.constexpr,
    N: gl.constexpr,
    K: gl.constexpr,
    num_warps: gl.constexpr,
):
    a_tile, b_tile = factors(64, N, K, num_warps)
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    mbarrier.init(bars.index(0), count=1)
    mbarrier.init(bars.index(1), count=1)
    fence_async_shared()
    gl.thread_barrier()
    stamp(out, 4)
    gl.warp_specialize(
        [
            (one_of_two, (out, sink, a_tile, b_tile, bars, trips, 0, 0, REGISTERS, N)),
            (one_of_two, (out, sink, a_tile, b_tile, bars, trips, 1, OFFSET, REGISTERS, N)),
        ],
        [4],
        [240],
    )
    stamp(out, 6)


@gluon.jit
def tiles(
    out,
    a_desc,
    b_desc,
    trips,
    ROWS: gl.constexpr,
    COLUMNS: gl.constexpr,
    TILES: gl.constexpr,
    RING: gl.constexpr,
    PACE: gl.constexpr,
    LAG: gl.constexpr,
    SKEW: gl.constexpr,
    num_warps: gl.constexpr,
):
    """RING turns in flight, of which one is due every PACE cycles. Blocks that stand ROWS apart
    load the same tile of A, ROWS blocks in a row the same of B. A is walked over again and again,
    of B there is another column each time. A slot is filled again when the tile LAG turns behind
    its own is there; blocks that share tiles begin up to SKEW cycles apart."""
    a_rows: gl.constexpr = a_desc.block_type.shape[0]
    b_rows: gl.constexpr = b_desc.block_type.shape[0]
    bytes: gl.constexpr = a_desc.block_type.nbytes + b_desc.block_type.nbytes
    a_tile = gl.allocate_shared_memory(gl.float16, [RING, a_rows, COLUMNS], a_desc.layout)
    b_tile = gl.allocate_shared_memory(gl.float16, [RING, b_rows, COLUMNS], b_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [RING, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(RING):
        mbarrier.init(full.index(i), count=1)
    fence_async_shared()
    a_row = gl.program_id(0) % ROWS * a_rows
    b_row = gl.program_id(0) // ROWS * b_rows
    across = gl.cdiv(gl.num_programs(0), ROWS) * b_rows
    if SKEW:
        late = (gl.program_id(0) % ROWS + gl.program_id(0) // ROWS) % ROWS * SKEW // ROWS
        met = clock()
        while clock() - met < late:
            pass
    for i in range(RING):
        mbarrier.expect(full.index(i), bytes)
        tma_load(a_desc, [a_row, i * COLUMNS], full.index(i), a_tile.index(i))
        tma_load(b_desc, [b_row, i * COLUMNS], full.index(i), b_tile.index(i))
    for i in gl.static_range(LAG):
        mbarrier.wait(full.index(i), 0)
    slot = LAG
    free = 0
    phase = 0
    stamp(out, 4)
    begin = clock()
    due = begin
    for i in range(trips):
        mbarrier.wait(full.index(slot), phase)
        if PACE:
            while clock() < due:
                pass
            due += PACE
        mbarrier.expect(full.index(free), bytes)
        at = i + RING
        column = at % TILES * COLUMNS
        row = b_row + at // TILES * across
        tma_load(a_desc, [a_row, column], full.index(free), a_tile.index(free))
        tma_load(b_desc, [row, column], full.index(free), b_tile.index(free))
        slot += 1
        phase = gl.where(slot == RING, phase ^ 1, phase)
        slot = gl.where(slot == RING, 0, slot)
        free = gl.where(slot < LAG, slot + RING, slot) - LAG
    end = clock()
    stamp(out, 6)
    for i in range(RING - LAG):
        mbarrier.wait(full.index(slot), phase)
        slot += 1
        phase = gl.where(slot == RING, phase ^ 1, phase)
        slot = gl.where(slot == RING, 0, slot)
    tell(out, 0, begin, end, trips)


@gluon.jit
def alternate(
    out, sink, a_tile, b_tile, v_tile, c, trips, WHO: gl.constexpr, N: gl.constexpr, D: gl.constexpr
):
    """A product that is waited for, a softmax of it, a product of that, again and again."""
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    wide: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    row: gl.constexpr = gl.SliceLayout(1, layout)
    zero = gl.zeros([64, N], gl.float32, layout)
    total = gl.zeros([64, D], gl.float32, wide)
    highest = gl.load(sink + gl.arange(0, 64, row))
    weight = highest * 0.0
    begin = clock()
    for i in range(trips):
        flying = warpgroup_mma(a_tile, b_tile, zero, use_acc=False, is_async=True)
        scores = warpgroup_mma_wait(0, deps=(flying,))
        new = gl.maximum(highest, gl.max(scores, 1) * c)
        x = gl.exp2(scores * c - new[:, None])
        shrink = gl.exp2(highest - new)
        weight = weight * shrink + gl.sum(x, 1)
        highest = new
        total = total * gl.convert_layout(shrink, gl.SliceLayout(1, wide))[:, None]
        p = gl.convert_layout(x.to(gl.float16), gl.DotOperandLayout(0, wide, 2))
        flying = warpgroup_mma(p, v_tile, total, is_async=True)
        total = warpgroup_mma_wait(0, deps=(flying,))
    end = clock()
    tell(out, WHO, begin, end, trips)
    at = gl.arange(0, 64, gl.SliceLayout(1, wide))[:, None] * D
    gl.store(sink + at + gl.arange(0, D, gl.SliceLayout(0, wide))[None, :], total)
    gl.store(sink + gl.arange(0, 64, row), highest + weight)


@gluon.jit
def alternates(
    out,
    sink,
    c,
    first_trips,
    second_trips,
    AGENTS: gl.constexpr,
    N: gl.constexpr,
    D: gl.constexpr,
    num_warps: gl.constexpr,
):
    a_tile, b_tile = factors(64, N, D, num_warps)
    _, v_tile = factors(64, D, N, num_warps)
    fence_async_shared()
    gl.thread_barrier()
    stamp(out, 4)
    if AGENTS == 1:
        alternate(out, sink, a_tile, b_tile, v_tile, c, first_trips, 0, N, D)
    else:
        gl.warp_specialize(
            [
                (alternate, (out, sink, a_tile, b_tile, v_tile, c, first_trips, 0, N, D)),
                (alternate, (out, sink, a_tile, b_tile, v_tile, c, second_trips, 1, N, D)),
            ],
            [4],
            [240],
        )
    stamp(out, 6)
