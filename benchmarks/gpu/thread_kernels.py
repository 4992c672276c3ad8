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
    x = gl.arange(0, 32 * FLIGHT * WIDTH, layout)
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
