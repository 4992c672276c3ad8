"""A microbenchmark in Gluon of copies by threads into a ring."""

from micro_kernels import clock
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared


@gluon.jit
def asking(
    out,
    source,
    trips,
    stride: gl.constexpr,
    ROWS: gl.constexpr,
    COLUMNS: gl.constexpr,
    WIDTH: gl.constexpr,
    LEFT: gl.constexpr,
    num_warps: gl.constexpr,
):
    """Tiles of a block's own, one after the other."""
    across: gl.constexpr = COLUMNS // WIDTH
    lanes: gl.constexpr = across if across < 32 else 32
    layout: gl.constexpr = gl.BlockedLayout(
        [1, WIDTH], [32 // lanes, lanes], [num_warps, 1], [1, 0]
    )
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([ROWS, COLUMNS], gl.float16)
    ring = gl.allocate_shared_memory(gl.float16, [LEFT + 1, ROWS, COLUMNS], shared)
    rows = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    columns = gl.arange(0, COLUMNS, gl.SliceLayout(0, layout))
    first = source + gl.program_id(0) * 8 * ROWS * stride
    at = first + rows[:, None] * stride + columns[None, :]
    asked, waited, met = 0, 0, 0
    begun = clock()
    for i in range(trips):
        a = clock()
        async_copy.async_copy_global_to_shared(ring.index(i % (LEFT + 1)), at)
        async_copy.commit_group()
        b = clock()
        async_copy.wait_group(LEFT)
        c = clock()
        fence_async_shared()
        gl.thread_barrier()
        d = clock()
        asked += b - a
        waited += c - b
        met += d - c
        at += gl.where(i % 8 == 7, -7 * ROWS, ROWS) * stride
    ended = clock()
    async_copy.wait_group(0)
    mine = out + gl.program_id(0) * 4
    gl.store(mine, asked)
    gl.store(mine + 1, waited)
    gl.store(mine + 2, met)
    gl.store(mine + 3, ended - begun)
