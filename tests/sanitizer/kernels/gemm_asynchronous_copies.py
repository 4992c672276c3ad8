"""A product of mma.sync over a ring that threads fill by cp.async."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy as cp
from triton.experimental.gluon.language.nvidia.ampere import mma_v2

import torch


@gluon.jit
def fetch(
    a_ptr, b_ptr, a_ring, b_ring, step, K, N, column, BLOCK: gl.constexpr, DEPTH: gl.constexpr
):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    rows = gl.arange(0, 32, gl.SliceLayout(1, layout))
    columns = gl.arange(0, 32, gl.SliceLayout(0, layout))
    inner = step * BLOCK
    slot = step % DEPTH
    there = (inner + columns < K)[None, :]
    cp.async_load(
        a_ring.index(slot), a_ptr + rows[:, None] * K + (inner + columns)[None, :], mask=there
    )
    below = (inner + rows < K)[:, None]
    cp.async_load(
        b_ring.index(slot),
        b_ptr + (inner + rows)[:, None] * N + (column + columns)[None, :],
        mask=below,
    )
    cp.commit_group()


@gluon.jit
def gemm(a_ptr, b_ptr, c_ptr, K, N, BLOCK: gl.constexpr, DEPTH: gl.constexpr):
    shared: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    a_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, 32, BLOCK], shared)
    b_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, BLOCK, 32], shared)
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
    column = gl.program_id(0) * 32
    for step in gl.static_range(DEPTH - 1):
        fetch(a_ptr, b_ptr, a_ring, b_ring, step, K, N, column, BLOCK, DEPTH)
    total = gl.zeros([32, 32], gl.float32, mma)
    for step in range(gl.cdiv(K, BLOCK)):
        cp.wait_group(DEPTH - 2)
        slot = step % DEPTH
        a = a_ring.index(slot).load(gl.DotOperandLayout(0, mma, 2))
        b = b_ring.index(slot).load(gl.DotOperandLayout(1, mma, 2))
        total = mma_v2(a, b, total)
        fetch(a_ptr, b_ptr, a_ring, b_ring, step + DEPTH - 1, K, N, column, BLOCK, DEPTH)
    cp.wait_group(0)
    rows = gl.arange(0, 32, gl.SliceLayout(1, mma))
    columns = column + gl.arange(0, 32, gl.SliceLayout(0, mma))
    gl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(gl.float16))


def launches(trips):
    a = torch.randn(32, max(32 * trips, 32), dtype=torch.float16)
    b = torch.randn(max(32 * trips, 32), 64, dtype=torch.float16)
    c = torch.empty(32, 64, dtype=torch.float16)
    yield gemm, (2,), (a, b, c, 32 * trips, 64, 32, 3), {"num_warps": 4}
