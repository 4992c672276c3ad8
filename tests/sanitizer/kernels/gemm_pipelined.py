"""A product of one partition that loads ahead by TMA and keeps one product in flight."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

import torch


@gluon.jit
def fetch(
    a_desc,
    b_desc,
    a_ring,
    b_ring,
    full,
    step,
    steps,
    row,
    column,
    BLOCK: gl.constexpr,
    DEPTH: gl.constexpr,
):
    slot = step % DEPTH
    there = step < steps
    mbarrier.expect(
        full.index(slot), a_desc.block_type.nbytes + b_desc.block_type.nbytes, pred=there
    )
    tma.async_load(a_desc, [row, step * BLOCK], full.index(slot), a_ring.index(slot), pred=there)
    tma.async_load(b_desc, [step * BLOCK, column], full.index(slot), b_ring.index(slot), pred=there)


@gluon.jit
def gemm(a_desc, b_desc, c_desc, K, BLOCK: gl.constexpr, DEPTH: gl.constexpr):
    a_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, 64, BLOCK], a_desc.layout)
    b_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, BLOCK, 64], b_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(DEPTH):
        mbarrier.init(full.index(slot), count=1)
    fence_async_shared()
    row = gl.program_id(0) * 64
    column = gl.program_id(1) * 64
    steps = gl.cdiv(K, BLOCK)
    for step in gl.static_range(DEPTH - 2):
        fetch(a_desc, b_desc, a_ring, b_ring, full, step, steps, row, column, BLOCK, DEPTH)
    total = gl.zeros([64, 64], gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16]))
    for step in range(steps):
        fetch(
            a_desc, b_desc, a_ring, b_ring, full, step + DEPTH - 2, steps, row, column, BLOCK, DEPTH
        )
        slot = step % DEPTH
        mbarrier.wait(full.index(slot), (step // DEPTH) & 1)
        total = warpgroup_mma(a_ring.index(slot), b_ring.index(slot), total, is_async=True)
        total = warpgroup_mma_wait(1, deps=(total,))
    total = warpgroup_mma_wait(0, deps=(total,))
    for slot in gl.static_range(DEPTH):
        mbarrier.invalidate(full.index(slot))
    c_tile = gl.allocate_shared_memory(gl.float16, [64, 64], c_desc.layout)
    c_tile.store(total.to(gl.float16))
    fence_async_shared()
    tma.async_store(c_desc, [row, column], c_tile)
    tma.store_wait(0)


def launches(trips):
    a = torch.randn(64, max(64 * trips, 64), dtype=torch.float16)
    b = torch.randn(max(64 * trips, 64), 128, dtype=torch.float16)
    c = torch.empty(64, 128, dtype=torch.float16)
    tile = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    descs = [TensorDescriptor.from_tensor(x, [64, 64], tile) for x in (a, b, c)]
    yield gemm, (1, 2), (*descs, 64 * trips, 64, 4), {"num_warps": 4}
