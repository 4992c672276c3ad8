"""Microbenchmarks in Gluon of what threads load and store; they write what `micro_kernels` do."""

from micro_kernels import SLOTS, clock, stamp, tell
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
def gathers(
    out,
    target,
    source,
    trips,
    pause,
    shift,
    PIECES: gl.constexpr,
    FLIGHT: gl.constexpr,
    WIDTH: gl.constexpr,
    AGAIN: gl.constexpr,
    STORES: gl.constexpr,
    num_warps: gl.constexpr,
):
    """FLIGHT loads of WIDTH numbers a lane of all warps, which then meet; with AGAIN the same once
    more, with STORES the same stored; and a pause, in which nothing is asked of the memory.

    Agent 0 is told the cycles of the first loads, 1 those of the second, 4 all of them.
    """
    BLOCK: gl.constexpr = 32 * num_warps * FLIGHT * WIDTH
    layout: gl.constexpr = gl.BlockedLayout([WIDTH], [32], [num_warps], [0])
    piece = gl.arange(0, BLOCK, layout)
    own = gl.program_id(0).to(gl.int64) * (PIECES * BLOCK)
    n = trips * 0
    first = gl.to_tensor(0).to(gl.int64)
    second = gl.to_tensor(0).to(gl.int64)
    # Blocks of an SM are not to begin at once.
    early = clock()
    now = early
    while now - early < shift * (gl.program_id(0) // 132):
        now = clock()
    stamp(out, 4)
    begin = clock()
    for i in range(trips):
        at = own + n * BLOCK + piece
        loading = clock_behind(n)
        x = gl.load(source + at)
        most = gl.max(x, 0)
        there = clock_behind(most)
        first += there - loading
        if AGAIN:
            x = gl.load(source + own + (n + most) * BLOCK + piece)
            most = gl.max(x, 0)
            second += clock_behind(most) - there
        if STORES:
            gl.store(target + at, x)
        begun = clock_behind(most)
        now = begun
        while now - begun < pause:
            now = clock()
        n = (n + 1) % PIECES + most + (now < begun).to(gl.int32)
    end = clock()
    stamp(out, 6)
    tell(out, 0, gl.to_tensor(0).to(gl.int64), first, trips)
    tell(out, 1, gl.to_tensor(0).to(gl.int64), second, trips)
    tell(out, 4, begin, end, trips)


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
