"""Microbenchmarks in Gluon of products that threads wait for, with clocks.

    product    mma.sync: a warp at a time; READ: both factors come out of shared memory each trip
    threads    multiplications and additions

They write `out` as those of micro_kernels.py do, and the sum to `c_ptr`.
"""

from micro_kernels import clock, tell
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import mma_v2


@gluon.jit
def product(
    out, a_ptr, b_ptr, c_ptr, trips, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr,
    ROWS: gl.constexpr, COLUMNS: gl.constexpr, WIDTH: gl.constexpr, READ: gl.constexpr,
    SUM: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """Products by the tensor cores, a warp at a time."""
    made: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [ROWS, COLUMNS], [16, 8])
    left: gl.constexpr = gl.DotOperandLayout(0, made, WIDTH)
    right: gl.constexpr = gl.DotOperandLayout(1, made, WIDTH)
    rows: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [num_warps, 1], [1, 0])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, rows))[:, None]
    k = gl.arange(0, K, layout=gl.SliceLayout(0, rows))[None, :]
    a = gl.load(a_ptr + i * K + k)
    k_too = gl.arange(0, K, layout=gl.SliceLayout(1, rows))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, rows))[None, :]
    b = gl.load(b_ptr + k_too * N + j)
    kind: gl.constexpr = a_ptr.dtype.element_ty
    a_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], kind)
    b_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], kind)
    a_tile = gl.allocate_shared_memory(kind, [M, K], a_layout, a)
    b_tile = gl.allocate_shared_memory(kind, [K, N], b_layout, b)
    total = gl.zeros([M, N], SUM, made)
    a_held = a_tile.load(left)
    b_held = b_tile.load(right)
    gl.thread_barrier()
    begin = clock()
    for _ in range(trips):
        if READ:
            a_held = a_tile.load(left)
            b_held = b_tile.load(right)
        total = mma_v2(a_held, b_held, total)
    end = clock()
    tell(out, 0, begin, end, trips)
    at = gl.arange(0, M, layout=gl.SliceLayout(1, made))[:, None] * N
    gl.store(c_ptr + at + gl.arange(0, N, layout=gl.SliceLayout(0, made))[None, :], total)


@gluon.jit
def threads(
    out, a_ptr, b_ptr, c_ptr, trips, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr,
    num_warps: gl.constexpr,
):  # fmt: skip
    """Products by multiplications and additions."""
    made: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [num_warps, 1], [1, 0])
    left: gl.constexpr = gl.DotOperandLayout(0, made, 0)
    right: gl.constexpr = gl.DotOperandLayout(1, made, 0)
    i = gl.arange(0, M, layout=gl.SliceLayout(1, made))[:, None]
    k = gl.arange(0, K, layout=gl.SliceLayout(0, made))[None, :]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, made))[None, :]
    k_too = gl.arange(0, K, layout=gl.SliceLayout(1, made))[:, None]
    a = gl.convert_layout(gl.load(a_ptr + i * K + k), left)
    b = gl.convert_layout(gl.load(b_ptr + k_too * N + j), right)
    total = gl.zeros([M, N], gl.float32, made)
    gl.thread_barrier()
    begin = clock()
    for _ in range(trips):
        total = gl.dot_fma(a, b, total)
    end = clock()
    tell(out, 0, begin, end, trips)
    gl.store(c_ptr + i * N + j, total)
