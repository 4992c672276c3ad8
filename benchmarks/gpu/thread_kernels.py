"""Microbenchmarks in Gluon of what threads load and store; they write what `micro_kernels` do."""

from micro_kernels import SLOTS, clock, stamp, tell, xor16
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def fetches(
    out,
    source,
    trips,
    PIECES: gl.constexpr,
    FLIGHT: gl.constexpr,
    WIDTH: gl.constexpr,
    CACHED: gl.constexpr,
    num_warps: gl.constexpr,
):
    """FLIGHT loads of WIDTH numbers a lane, and then their maximum, without which the next do not
    begin; from PIECES such of the block's own, which are zeros."""
    BLOCK: gl.constexpr = 32 * FLIGHT * WIDTH
    layout: gl.constexpr = gl.BlockedLayout([WIDTH], [32], [num_warps], [0])
    first = source + gl.program_id(0).to(gl.int64) * (PIECES * BLOCK) + gl.arange(0, BLOCK, layout)
    n = trips * 0
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        if CACHED:
            x = gl.load(first + n * BLOCK)
        else:
            x = gl.load(first + n * BLOCK, cache_modifier=".cg")
        n = (n + 1) % PIECES + gl.max(x, 0)
    end = clock()
    stamp(out, 6)
    tell(out, 0, begin, end, trips)
    gl.store(out + gl.program_id(0) * SLOTS + 8, n)


@gluon.jit
def meetings(out, trips, FLIGHT: gl.constexpr, WIDTH: gl.constexpr, num_warps: gl.constexpr):
    """What `fetches` does beside loading."""
    layout: gl.constexpr = gl.BlockedLayout([WIDTH], [32], [num_warps], [0])
    x = gl.arange(0, 32 * num_warps * FLIGHT * WIDTH, layout)
    n = trips * 0
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        x = x ^ n
        n = (n + 1) % 4 + gl.max(x, 0)
    end = clock()
    stamp(out, 6)
    tell(out, 0, begin, end, trips)
    gl.store(out + gl.program_id(0) * SLOTS + 8, n)


@gluon.jit
def clock_behind(number):
    """The clock, once a number is there: it is read only if that is not the largest there is."""
    return gl.inline_asm_elementwise(
        """{
        .reg .pred %there;
        setp.ne.s32 %there, $1, 0x7fffffff;
        mov.u64 $0, 0;
        @%there mov.u64 $0, %clock64;
        }""",
        "=l,r",
        [number],
        gl.int64,
        is_pure=False,
        pack=1,
    )


@gluon.jit
def behind_stores():
    """Until what this thread stored has arrived."""
    gl.inline_asm_elementwise(
        "fence.acq_rel.gpu; mov.u32 $0, 0;", "=r", [], gl.int32, is_pure=False, pack=1
    )


@gluon.jit
def paused(behind, cycles):
    """Nothing for so many cycles, once a number is there; 0, which is known only then."""
    begun = clock_behind(behind)
    now = begun
    while now - begun < cycles:
        now = clock()
    return (now < begun).to(gl.int32)


@gluon.jit
def gathers(
    out,
    target,
    source,
    trips,
    pause,
    shift,
    FLIGHT: gl.constexpr,
    WIDTH: gl.constexpr,
    STORES: gl.constexpr,
    num_warps: gl.constexpr,
):
    """FLIGHT loads of WIDTH numbers a lane of all warps, which then meet; with STORES the same is
    stored, with 2 until it has arrived; and a pause, in which nothing is asked of the memory.

    Blocks load beside each other. Agent 0 is told the cycles of loads, 1 of stores, 4 of it all.
    """
    BLOCK: gl.constexpr = 32 * num_warps * FLIGHT * WIDTH
    layout: gl.constexpr = gl.BlockedLayout([WIDTH], [32], [num_warps], [0])
    piece = gl.arange(0, BLOCK, layout)
    wave = gl.num_programs(0).to(gl.int64) * BLOCK
    at = gl.program_id(0).to(gl.int64) * BLOCK
    n = trips * 0
    loading = gl.to_tensor(0).to(gl.int64)
    storing = gl.to_tensor(0).to(gl.int64)
    # Blocks of an SM are not to begin at once.
    n += paused(n, shift * (gl.program_id(0) // 132))
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        begun = clock_behind(n)
        x = gl.load(source + (at + n * wave) + piece)
        most = gl.max(x, 0)
        there = clock_behind(most)
        loading += there - begun
        if STORES:
            gl.store(target + (at + n * wave) + piece, x)
        if STORES == 2:
            behind_stores()
            storing += clock() - there
        n += 1 + most + paused(most, pause)
    end = clock()
    stamp(out, 6)
    tell(out, 0, gl.to_tensor(0).to(gl.int64), loading, trips)
    tell(out, 1, gl.to_tensor(0).to(gl.int64), storing, trips)
    tell(out, 4, begin, end, trips)


@gluon.jit
def again(
    out,
    target,
    source,
    trips,
    PIECES: gl.constexpr,
    WIDTH: gl.constexpr,
    STORES: gl.constexpr,
    num_warps: gl.constexpr,
):
    """So many PIECES one after the other, and then the same once more, with STORES stored.

    Agent 0 is told the cycles of the second time, 4 of it all.
    """
    FLIGHT: gl.constexpr = 2
    BLOCK: gl.constexpr = 32 * num_warps * FLIGHT * WIDTH
    layout: gl.constexpr = gl.BlockedLayout([WIDTH], [32], [num_warps], [0])
    piece = gl.arange(0, BLOCK, layout)
    wave = gl.num_programs(0).to(gl.int64) * (BLOCK * PIECES)
    at = gl.program_id(0).to(gl.int64) * (BLOCK * PIECES)
    n = trips * 0
    second = gl.to_tensor(0).to(gl.int64)
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        own = at + n * wave
        p = n * 0
        while p < PIECES:
            x = gl.load(source + (own + p * BLOCK) + piece)
            p += 1 + gl.max(x, 0)
        begun = clock_behind(p)
        p -= PIECES
        while p < PIECES:
            x = gl.load(source + (own + p * BLOCK) + piece)
            if STORES:
                gl.store(target + (own + p * BLOCK) + piece, x)
            p += 1 + gl.max(x, 0)
        second += clock_behind(p) - begun
        n += 1 + p - PIECES
    end = clock()
    stamp(out, 6)
    tell(out, 0, gl.to_tensor(0).to(gl.int64), second, trips)
    tell(out, 4, begin, end, trips)


@gluon.jit
def revisits(
    out,
    target,
    source,
    trips,
    PIECES: gl.constexpr,
    STORES: gl.constexpr,
    num_warps: gl.constexpr,
):
    """One warp: PIECES of 512 bytes, one at a time, and then the same again, with STORES stored.

    Of the second time it is told how many came within 200 cycles, and within 600.
    """
    BLOCK: gl.constexpr = 128
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [num_warps], [0])
    piece = gl.arange(0, BLOCK, layout)
    wave = gl.num_programs(0).to(gl.int64) * (BLOCK * PIECES)
    at = gl.program_id(0).to(gl.int64) * (BLOCK * PIECES)
    n = trips * 0
    near = trips * 0
    middle = trips * 0
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        own = at + n * wave
        p = n * 0
        while p < PIECES:
            x = gl.load(source + (own + p * BLOCK) + piece)
            p += 1 + gl.max(x, 0)
        p -= PIECES
        while p < PIECES:
            begun = clock_behind(p)
            x = gl.load(source + (own + p * BLOCK) + piece)
            most = gl.max(x, 0)
            took = clock_behind(most) - begun
            near += (took < 200).to(gl.int32)
            middle += (took < 600).to(gl.int32)
            if STORES:
                gl.store(target + (own + p * BLOCK) + piece, x)
            p += 1 + most
        n += 1 + p - PIECES
    end = clock()
    stamp(out, 6)
    tell(out, 0, begin, end, trips)
    tell(out, 1, n * 0, near, trips)
    tell(out, 4, n * 0, middle, trips)


@gluon.jit
def bursts(
    out,
    target,
    source,
    trips,
    pause,
    GROUP: gl.constexpr,
    COMMON: gl.constexpr,
    num_warps: gl.constexpr,
):
    """Eight tiles of 8 bytes a lane are loaded, and stored in groups of GROUP, with pauses between;
    with COMMON, 16 bytes a lane that all blocks load are added to each."""
    BLOCK: gl.constexpr = 64 * num_warps
    layout: gl.constexpr = gl.BlockedLayout([2], [32], [num_warps], [0])
    piece = gl.arange(0, BLOCK, layout)
    wave = gl.num_programs(0).to(gl.int64) * (8 * BLOCK)
    at = gl.program_id(0).to(gl.int64) * (8 * BLOCK)
    n = trips * 0
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        own = at + n * wave + piece
        all_of = piece * 0
        for t in gl.static_range(0, 8):
            all_of += gl.load(source + own + t * BLOCK)
        most = gl.max(all_of, 0)
        late = n * 0
        for g in gl.static_range(0, 8, GROUP):
            for t in gl.static_range(g, g + GROUP):
                x = gl.load(source + own + (t * BLOCK + (most + late) * BLOCK))
                if COMMON:
                    x += gl.load(source + (t * BLOCK * 2) + 2 * piece)
                    x += gl.load(source + (t * BLOCK * 2) + 2 * piece + 1)
                gl.store(target + own + t * BLOCK, x)
            late += paused(most, pause)
        n += 1 + most + late
    end = clock()
    stamp(out, 6)
    tell(out, 0, begin, end, trips)
    tell(out, 1, n * 0, n * 0, trips)
    tell(out, 4, begin, end, trips)


@gluon.jit
def works(out, trips, ELEMENTS: gl.constexpr, num_warps: gl.constexpr):
    """Numbers of 16 bits, ELEMENTS a lane, made 32 wide, and added and their squares to sums."""
    layout: gl.constexpr = gl.BlockedLayout([ELEMENTS], [32], [num_warps], [0])
    piece = gl.arange(0, 32 * num_warps * ELEMENTS, layout)
    x = piece.to(gl.float16)
    y = (piece + 1).to(gl.float16)
    sums = gl.full([32 * num_warps * ELEMENTS], 0.0, gl.float32, layout)
    squares = gl.full([32 * num_warps * ELEMENTS], 0.0, gl.float32, layout)
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        x = xor16(x, y)
        wide = x.to(gl.float32)
        sums += wide
        squares = gl.fma(wide, wide, squares)
    end = clock()
    stamp(out, 6)
    tell(out, 0, begin, end, trips)
    gl.store(out + gl.program_id(0) * SLOTS + 8, gl.sum(sums + squares, 0).to(gl.int64))


@gluon.jit
def passing(out, target, cycles, STORES: gl.constexpr, num_warps: gl.constexpr):
    """A block that lasts so many cycles, then stores 16 bytes a lane STORES times, and ends."""
    begin = clock()
    now = begin
    while now - begin < cycles:
        now = clock()
    if STORES:
        BLOCK: gl.constexpr = 32 * num_warps * STORES * 4
        layout: gl.constexpr = gl.BlockedLayout([4], [32], [num_warps], [0])
        piece = gl.arange(0, BLOCK, layout)
        x = piece * 0 + (now < begin).to(gl.int32)
        gl.store(target + gl.program_id(0).to(gl.int64) * BLOCK + piece, x)


@gluon.jit
def moves(
    out,
    target,
    source,
    cycles,
    FLIGHT: gl.constexpr,
    WIDTH: gl.constexpr,
    num_warps: gl.constexpr,
):
    """A block that waits for so many cycles, loads as `gathers` does, stores that, and ends."""
    BLOCK: gl.constexpr = 32 * num_warps * FLIGHT * WIDTH
    layout: gl.constexpr = gl.BlockedLayout([WIDTH], [32], [num_warps], [0])
    begin = clock()
    late = paused(cycles, cycles)
    at = gl.program_id(0).to(gl.int64) * BLOCK + gl.arange(0, BLOCK, layout)
    asked = clock_behind(late)
    x = gl.load(source + late * BLOCK + at)
    there = clock_behind(gl.max(x, 0))
    gl.store(target + at, x)
    end = clock()
    told = out + gl.program_id(0) * SLOTS
    gl.store(told, end - begin)
    gl.store(told + 1, there - asked)


@gluon.jit
def puts(
    out,
    target,
    source,
    trips,
    PIECES: gl.constexpr,
    FLIGHT: gl.constexpr,
    WIDTH: gl.constexpr,
    LOADS: gl.constexpr,
    num_warps: gl.constexpr,
):
    """FLIGHT stores of WIDTH numbers a lane; with LOADS, of what was loaded just before."""
    BLOCK: gl.constexpr = 32 * FLIGHT * WIDTH
    layout: gl.constexpr = gl.BlockedLayout([WIDTH], [32], [num_warps], [0])
    piece = gl.arange(0, BLOCK, layout)
    own = gl.program_id(0).to(gl.int64) * (PIECES * BLOCK)
    x = piece
    n = trips * 0
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        if LOADS:
            x = gl.load(source + own + n * BLOCK + piece)
        gl.store(target + own + n * BLOCK + piece, x)
        n = (n + 1) % PIECES
        if LOADS:
            n += gl.max(x, 0)
    end = clock()
    stamp(out, 6)
    tell(out, 0, begin, end, trips)


@gluon.jit
def spinning(out, cycles, num_warps: gl.constexpr):
    """A block that lasts so many cycles."""
    stamp(out, 4)
    begin = clock()
    now = begin
    while now - begin < cycles:
        now = clock()
    stamp(out, 6)
    tell(out, 0, begin, now, 1)
