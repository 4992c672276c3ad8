"""Microbenchmarks in Gluon: loops of one thing, with clocks around them.

Each stores cycles and trips into `out`, SLOTS numbers a block: 0 cycles, 1 trips of the first
agent; 2, 3 of the second; 4 .. 7 clock and nanoseconds at begin and end.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

tma_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
tma_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global
SLOTS = gl.constexpr(16)


@gluon.jit
def clock():
    return gl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l", [], gl.int64, is_pure=False, pack=1
    )


@gluon.jit
def nanoseconds():
    return gl.inline_asm_elementwise(
        "mov.u64 $0, %globaltimer;", "=l", [], gl.int64, is_pure=False, pack=1
    )


@gluon.jit
def tell(out, WHO: gl.constexpr, begin, end, trips):
    at = out + gl.program_id(0) * SLOTS + 2 * WHO
    gl.store(at, end - begin)
    gl.store(at + 1, trips)


@gluon.jit
def stamp(out, AT: gl.constexpr):
    at = out + gl.program_id(0) * SLOTS + AT
    gl.store(at, clock())
    gl.store(at + 1, nanoseconds())


@gluon.jit
def xor16(z, y):
    return gl.inline_asm_elementwise(
        "xor.b32 $0, $1, $2;", "=r,r,r", [z, y], gl.float16, is_pure=True, pack=2
    )


@gluon.jit
def higher(x, y):
    return gl.inline_asm_elementwise(
        "max.f32 $0, $1, $2;", "=f,f,f", [x, y], gl.float32, is_pure=False, pack=1
    )


# Products ---------------------------------------------------------------------------------------


@gluon.jit
def multiply(
    out,
    sink,
    a_tile,
    b_tile,
    trips,
    WHO: gl.constexpr,
    HOW: gl.constexpr,
    REGISTERS: gl.constexpr,
    N: gl.constexpr,
):
    """HOW `steady`: one in flight while the next is issued; `single`: each is waited for at once;
    `issue`: as single, but only the time to issue is counted."""
    warps: gl.constexpr = gl.num_warps()
    M: gl.constexpr = 16 * warps
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [warps, 1], [16, N, 16])
    if REGISTERS:
        a = a_tile.load(gl.DotOperandLayout(0, layout, 2))
    else:
        a = a_tile
    total = gl.zeros([M, N], gl.float32, layout)
    spent = clock() * 0
    begin = clock()
    if HOW == "steady":
        flying = warpgroup_mma(a, b_tile, total, use_acc=False, is_async=True)
        for i in range(trips - 1):
            flying = warpgroup_mma(a, b_tile, flying, is_async=True)
            flying = warpgroup_mma_init(warpgroup_mma_wait(1, deps=(flying,)))
        total = warpgroup_mma_wait(0, deps=(flying,))
    else:
        for i in range(trips):
            before = clock()
            flying = warpgroup_mma(a, b_tile, total, is_async=True)
            spent += clock() - before
            total = warpgroup_mma_wait(0, deps=(flying,))
    end = clock()
    if HOW == "issue":
        tell(out, WHO, spent * 0, spent, trips)
    else:
        tell(out, WHO, begin, end, trips)
    rows = gl.arange(0, M, gl.SliceLayout(1, layout))[:, None]
    gl.store(sink + rows * N + gl.arange(0, N, gl.SliceLayout(0, layout))[None, :], total)


# Arithmetic in the layouts of products ----------------------------------------------------------


@gluon.jit
def compute(
    out,
    sink,
    c,
    trips,
    WHO: gl.constexpr,
    OP: gl.constexpr,
    TALL: gl.constexpr,
    N: gl.constexpr,
    D: gl.constexpr,
):
    """Trips of one operation, or of a block of them, on a tile of all rows of the agent: two of
    each thread, or TALL times as many."""
    warps: gl.constexpr = gl.num_warps()
    M: gl.constexpr = 16 * warps * TALL
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [warps, 1], [16, N, 16])
    wide: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [warps, 1], [16, D, 16])
    factor: gl.constexpr = gl.DotOperandLayout(0, wide, 2)
    row: gl.constexpr = gl.SliceLayout(1, layout)
    at = gl.arange(0, M, row)[:, None] * N + gl.arange(0, N, gl.SliceLayout(0, layout))[None, :]
    x = gl.load(sink + at)
    r = gl.load(sink + gl.arange(0, M, row))
    highest = r
    weight = r * 0.0
    begin = clock()
    if OP == "multiply":
        for i in range(trips):
            x = x * c
    elif OP == "subtract":
        for i in range(trips):
            x = x - r[:, None]
    elif OP == "divide":
        for i in range(trips):
            x = x / r[:, None]
    elif OP == "fused":
        for i in range(trips):
            x = x * c + r[:, None]
    elif OP == "higher":
        for i in range(trips):
            x = higher(x, r[:, None])
    elif OP == "choose":
        for i in range(trips):
            x = gl.where(x > c, x + c, -1.0)
    elif OP == "exponent":
        for i in range(trips):
            x = gl.exp2(x)
    elif OP == "maximum":
        for i in range(trips):
            x = x - gl.max(x, 1)[:, None]
    elif OP == "sum":
        for i in range(trips):
            x = x - gl.sum(x, 1)[:, None]
    elif OP == "rows":
        for i in range(trips):
            new = gl.maximum(highest, weight * c)
            weight = weight * gl.exp2(highest - new) + r
            highest = new
    elif OP == "narrow":
        z = gl.zeros([M, N], gl.float16, factor)
        for i in range(trips):
            x = x * c
            z = xor16(z, gl.convert_layout(x.to(gl.float16), factor))
        x = x + gl.convert_layout(z.to(gl.float32), layout)
    elif OP == "scaled_maximum":
        for i in range(trips):
            highest = gl.maximum(highest, gl.max(x, 1) * c)
            x = x * c + highest[:, None]
    elif OP == "exponent_sum":
        for i in range(trips):
            x = gl.exp2(x)
            weight = weight + gl.sum(x, 1)
    elif OP == "exponent_sum_narrow":
        z = gl.zeros([M, N], gl.float16, factor)
        for i in range(trips):
            x = gl.exp2(x)
            weight = weight + gl.sum(x, 1)
            z = xor16(z, gl.convert_layout(x.to(gl.float16), factor))
        x = x + gl.convert_layout(z.to(gl.float32), layout)
    elif OP == "softmax":
        for i in range(trips):
            new = gl.maximum(highest, gl.max(x, 1) * c)
            x = gl.exp2(x * c - new[:, None])
            weight = weight * gl.exp2(highest - new) + gl.sum(x, 1)
            highest = new
    elif OP == "softmax_rescale":
        z = gl.zeros([M, N], gl.float16, factor)
        columns = gl.arange(0, D, gl.SliceLayout(0, wide))[None, :]
        o_at = gl.arange(0, M, gl.SliceLayout(1, wide))[:, None] * D + columns
        o = gl.load(sink + o_at)
        for i in range(trips):
            new = gl.maximum(highest, gl.max(x, 1) * c)
            x = gl.exp2(x * c - new[:, None])
            shrink = gl.exp2(highest - new)
            weight = weight * shrink + gl.sum(x, 1)
            highest = new
            z = xor16(z, gl.convert_layout(x.to(gl.float16), factor))
            o = o * gl.convert_layout(shrink, gl.SliceLayout(1, wide))[:, None]
        x = x + gl.convert_layout(z.to(gl.float32), layout)
        gl.store(sink + o_at, o)
    end = clock()
    tell(out, WHO, begin, end, trips)
    gl.store(sink + at, x + (highest + weight)[:, None])


@gluon.jit
def idle(out, WHO: gl.constexpr):
    gl.store(out + gl.program_id(0) * SLOTS + 2 * WHO, gl.program_id(0) * 0)


@gluon.jit
def pair(
    out,
    sink,
    c,
    first_trips,
    second_trips,
    FIRST: gl.constexpr,
    SECOND: gl.constexpr,
    REGISTERS: gl.constexpr,
    TALL: gl.constexpr,
    N: gl.constexpr,
    P: gl.constexpr,
    K: gl.constexpr,
    D: gl.constexpr,
    num_warps: gl.constexpr,
):
    """Two agents, each with work of its own. One that multiplies is named by how it does, and
    multiplies 64 x K by K x P."""
    smem: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, K], gl.float16)
    b_smem: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, P], gl.float16)
    filled: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [num_warps, 1], [1, 0])
    M: gl.constexpr = 16 * num_warps
    a_tile = gl.allocate_shared_memory(gl.float16, [M, K], smem)
    a_tile.store(gl.full([M, K], 0.25, gl.float16, filled))
    b_tile = gl.allocate_shared_memory(gl.float16, [K, P], b_smem)
    b_tile.store(gl.full([K, P], 0.5, gl.float16, filled))
    fence_async_shared()
    gl.thread_barrier()
    stamp(out, 4)
    if SECOND == "alone":
        if FIRST == "steady" or FIRST == "single" or FIRST == "issue":
            multiply(out, sink, a_tile, b_tile, first_trips, 0, FIRST, REGISTERS, P)
        else:
            compute(out, sink, c, first_trips, 0, FIRST, TALL, N, D)
    elif SECOND == "steady":
        gl.warp_specialize(
            [
                (multiply, (out, sink, a_tile, b_tile, first_trips, 0, FIRST, REGISTERS, P)),
                (multiply, (out, sink, a_tile, b_tile, second_trips, 1, SECOND, REGISTERS, P)),
            ],
            [4],
            [240],
        )
    elif FIRST == "steady" or FIRST == "single" or FIRST == "issue":
        gl.warp_specialize(
            [
                (multiply, (out, sink, a_tile, b_tile, first_trips, 0, FIRST, REGISTERS, P)),
                (compute, (out, sink + 65536, c, second_trips, 1, SECOND, TALL, N, D)),
            ],
            [4],
            [240],
        )
    else:
        gl.warp_specialize(
            [
                (compute, (out, sink, c, first_trips, 0, FIRST, TALL, N, D)),
                (compute, (out, sink + 65536, c, second_trips, 1, SECOND, TALL, N, D)),
            ],
            [4],
            [240],
        )
    stamp(out, 6)


# Copies -----------------------------------------------------------------------------------------


@gluon.jit
def ring_of(desc, RING: gl.constexpr):
    """Slots for tiles, and a barrier for each."""
    rows: gl.constexpr = desc.block_type.shape[0]
    columns: gl.constexpr = desc.block_type.shape[1]
    slots = gl.allocate_shared_memory(gl.float16, [RING, rows, columns], desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [RING, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(RING):
        mbarrier.init(full.index(i), count=1)
    fence_async_shared()
    return slots, full


@gluon.jit
def load_tile(desc, slots, full, slot, group, tile, WALK: gl.constexpr, TILES: gl.constexpr):
    """One tile of a group of blocks. WALK `across`: along rows that are long; `down`: from row to
    row."""
    rows: gl.constexpr = desc.block_type.shape[0]
    columns: gl.constexpr = desc.block_type.shape[1]
    mbarrier.expect(full.index(slot), desc.block_type.nbytes)
    if WALK == "across":
        at = [group * rows, tile * columns]
    else:
        at = [(group * TILES + tile) * rows, 0]
    tma_load(desc, at, full.index(slot), slots.index(slot))


@gluon.jit
def load_tiles(
    out,
    desc,
    slots,
    full,
    trips,
    SHARE: gl.constexpr,
    WALK: gl.constexpr,
    TILES: gl.constexpr,
    RING: gl.constexpr,
):
    """RING loads in flight all the time; blocks in groups of SHARE load the same tiles."""
    group = gl.program_id(0) // SHARE
    for i in range(RING):
        load_tile(desc, slots, full, i, group, i % TILES, WALK, TILES)
    slot = 0
    phase = 0
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        mbarrier.wait(full.index(slot), phase)
        load_tile(desc, slots, full, slot, group, (i + RING) % TILES, WALK, TILES)
        slot += 1
        phase = gl.where(slot == RING, phase ^ 1, phase)
        slot = gl.where(slot == RING, 0, slot)
    end = clock()
    stamp(out, 6)
    for i in range(RING):
        mbarrier.wait(full.index(slot), phase)
        slot += 1
        phase = gl.where(slot == RING, phase ^ 1, phase)
        slot = gl.where(slot == RING, 0, slot)
    tell(out, 0, begin, end, trips)


@gluon.jit
def copies(
    out,
    a_desc,
    trips,
    SHARE: gl.constexpr,
    WALK: gl.constexpr,
    TILES: gl.constexpr,
    RING: gl.constexpr,
    num_warps: gl.constexpr,
):
    """Nothing but loads."""
    slots, full = ring_of(a_desc, RING)
    load_tiles(out, a_desc, slots, full, trips, SHARE, WALK, TILES, RING)


@gluon.jit
def heat(out, sink, a_tile, b_tile, trips, PAUSE: gl.constexpr):
    """Products of numbers that differ, which take the most power, four in a row."""
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 256, 16])
    total = gl.zeros([64, 256], gl.float32, layout)
    begin = clock()
    for i in range(trips):
        for j in gl.static_range(4):
            total = warpgroup_mma(a_tile, b_tile, total, is_async=True)
        total = warpgroup_mma_wait(0, deps=(total,))
        due = clock() + PAUSE
        while clock() < due:
            pass
    tell(out, 1, begin, clock(), trips)
    rows = gl.arange(0, 64, gl.SliceLayout(1, layout))[:, None]
    gl.store(sink + rows * 256 + gl.arange(0, 256, gl.SliceLayout(0, layout))[None, :], total)


@gluon.jit
def heated(
    out,
    sink,
    a_desc,
    first_trips,
    second_trips,
    SHARE: gl.constexpr,
    WALK: gl.constexpr,
    TILES: gl.constexpr,
    RING: gl.constexpr,
    PAUSE: gl.constexpr,
    num_warps: gl.constexpr,
):
    """Loads beside products of another agent, which slow the SMs down."""
    slots, full = ring_of(a_desc, RING)
    smem: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    wide: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 256], gl.float16)
    filled: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [num_warps, 1], [1, 0])
    rows = gl.arange(0, 64, gl.SliceLayout(1, filled))[:, None]
    a_at = rows * 64 + gl.arange(0, 64, gl.SliceLayout(0, filled))[None, :]
    b_at = rows * 256 + gl.arange(0, 256, gl.SliceLayout(0, filled))[None, :]
    a_tile = gl.allocate_shared_memory(gl.float16, [64, 64], smem)
    b_tile = gl.allocate_shared_memory(gl.float16, [64, 256], wide)
    a_tile.store((gl.load(sink + 65536 + a_at) - 0.25).to(gl.float16))
    b_tile.store((gl.load(sink + 131072 + b_at) - 0.25).to(gl.float16))
    fence_async_shared()
    gl.thread_barrier()
    gl.warp_specialize(
        [
            (heat, (out, sink, a_tile, b_tile, second_trips, PAUSE)),
            (load_tiles, (out, a_desc, slots, full, first_trips, SHARE, WALK, TILES, RING)),
        ],
        [1],
        [40],
    )


@gluon.jit
def copy_single(
    out,
    a_desc,
    trips,
    TILES: gl.constexpr,
    ROWS: gl.constexpr,
    COLUMNS: gl.constexpr,
    WHAT: gl.constexpr,
    num_warps: gl.constexpr,
):
    """One load at a time: `issue`, or `latency` from issue to done."""
    tile = gl.allocate_shared_memory(gl.float16, [ROWS, COLUMNS], a_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    fence_async_shared()
    spent = clock() * 0
    phase = 0
    stamp(out, 4)
    for i in range(trips):
        mbarrier.expect(full, a_desc.block_type.nbytes)
        before = clock()
        row = (gl.program_id(0) * TILES + i % TILES) * ROWS
        tma_load(a_desc, [row, 0], full, tile)
        if WHAT == "issue":
            spent += clock() - before
        mbarrier.wait(full, phase)
        if WHAT == "latency":
            spent += clock() - before
        phase ^= 1
    stamp(out, 6)
    tell(out, 0, spent * 0, spent, trips)


@gluon.jit
def stores(out, sink, c_desc, trips, HOW: gl.constexpr, N: gl.constexpr, num_warps: gl.constexpr):
    """A tile of a product to shared memory and on by TMA (`tma`), the first half of that (`smem`),
    or straight to memory (`direct`)."""
    M: gl.constexpr = 16 * num_warps
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [num_warps, 1], [16, N, 16])
    tile = gl.allocate_shared_memory(gl.float16, [M, N], c_desc.layout)
    at = gl.arange(0, M, gl.SliceLayout(1, layout))[:, None] * N
    at = at + gl.arange(0, N, gl.SliceLayout(0, layout))[None, :]
    x = gl.load(sink + at)
    row = gl.program_id(0) * M
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        x = x * 1.01
        if HOW == "direct":
            gl.store(sink + 65536 + gl.program_id(0) * M * N + at, x)
        else:
            tile.store(x.to(gl.float16))
            fence_async_shared()
            if HOW == "tma":
                tma_store(c_desc, [row, 0], tile)
                tma.store_wait(0)
    end = clock()
    stamp(out, 6)
    tell(out, 0, begin, end, trips)


# Barriers ---------------------------------------------------------------------------------------


@gluon.jit
def barriers(out, trips, OP: gl.constexpr, num_warps: gl.constexpr):
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    fence_async_shared()
    gl.thread_barrier()
    stamp(out, 4)
    begin = clock()
    if OP == "arrive":
        for i in range(trips):
            mbarrier.arrive(bar, count=1)
    elif OP == "wait":
        for i in range(trips):
            mbarrier.wait(bar, 1)
    elif OP == "expect":
        for i in range(trips):
            mbarrier.expect(bar, 0)
    elif OP == "arrive_wait":
        for i in range(trips):
            mbarrier.arrive(bar, count=1)
            mbarrier.wait(bar, i & 1)
    elif OP == "group":
        for i in range(trips):
            gl.thread_barrier()
    elif OP == "fence":
        for i in range(trips):
            fence_async_shared()
    end = clock()
    stamp(out, 6)
    tell(out, 0, begin, end, trips)


@gluon.jit
def give(out, bars, trips):
    begin = clock()
    for i in range(trips):
        mbarrier.arrive(bars.index(0), count=1)
        mbarrier.wait(bars.index(1), i & 1)
    end = clock()
    tell(out, 0, begin, end, trips)


@gluon.jit
def take(bars, trips):
    for i in range(trips):
        mbarrier.wait(bars.index(0), i & 1)
        mbarrier.arrive(bars.index(1), count=1)


@gluon.jit
def hand_over(out, trips, OTHER: gl.constexpr, num_warps: gl.constexpr):
    """Two agents hand over to each other; a trip is two hand-overs."""
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    mbarrier.init(bars.index(0), count=1)
    mbarrier.init(bars.index(1), count=1)
    fence_async_shared()
    gl.thread_barrier()
    stamp(out, 4)
    gl.warp_specialize([(give, (out, bars, trips)), (take, (bars, trips))], [OTHER], [48])
    stamp(out, 6)


@gluon.jit
def nothing(out, num_warps: gl.constexpr):
    """A block that begins and ends."""
    stamp(out, 4)


@gluon.jit
def started(out):
    stamp(out, 6)


@gluon.jit
def starting(out, num_warps: gl.constexpr):
    """From the first instruction of a block to the first of its agents."""
    stamp(out, 4)
    gl.warp_specialize([(started, (out,)), (idle, (out, 0))], [1], [24])
