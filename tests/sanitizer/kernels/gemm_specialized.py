"""A product by a loading and a multiplying partition, over a ring of slots."""

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
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

import torch


@gluon.jit
def load(
    a_desc,
    b_desc,
    a_ring,
    b_ring,
    full,
    free,
    row,
    column,
    K,
    BLOCK: gl.constexpr,
    DEPTH: gl.constexpr,
):
    for step in range(gl.cdiv(K, BLOCK)):
        slot = step % DEPTH
        phase = (step // DEPTH) & 1
        mbarrier.wait(free.index(slot), phase ^ 1)
        mbarrier.expect(full.index(slot), a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(
            a_desc, [row, step * BLOCK], full.index(slot), a_ring.index(slot)
        )
        tma.async_copy_global_to_shared(
            b_desc, [step * BLOCK, column], full.index(slot), b_ring.index(slot)
        )


@gluon.jit
def compute(
    c_desc,
    a_ring,
    b_ring,
    c_tile,
    full,
    free,
    row,
    column,
    K,
    BLOCK: gl.constexpr,
    DEPTH: gl.constexpr,
):
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    total = gl.zeros([64, 64], gl.float32, layout)
    total = warpgroup_mma_init(total)
    for step in range(gl.cdiv(K, BLOCK)):
        slot = step % DEPTH
        phase = (step // DEPTH) & 1
        mbarrier.wait(full.index(slot), phase)
        total = warpgroup_mma(a_ring.index(slot), b_ring.index(slot), total, is_async=True)
        total = warpgroup_mma_wait(0, deps=(total,))
        mbarrier.arrive(free.index(slot), count=1)
    total = warpgroup_mma_wait(0, deps=(total,))
    c_tile.store(total.to(gl.float16))
    fence_async_shared()
    tma.async_copy_shared_to_global(c_desc, [row, column], c_tile)
    tma.store_wait(0)


@gluon.jit
def gemm(a_desc, b_desc, c_desc, K, BLOCK: gl.constexpr, DEPTH: gl.constexpr):
    a_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, 64, BLOCK], a_desc.layout)
    b_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, BLOCK, 64], b_desc.layout)
    c_tile = gl.allocate_shared_memory(gl.float16, [64, 64], c_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(DEPTH):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(free.index(slot), count=1)
    fence_async_shared()
    row = gl.program_id(0) * 64
    column = gl.program_id(1) * 64
    gl.warp_specialize(
        [
            (compute, (c_desc, a_ring, b_ring, c_tile, full, free, row, column, K, BLOCK, DEPTH)),
            (load, (a_desc, b_desc, a_ring, b_ring, full, free, row, column, K, BLOCK, DEPTH)),
        ],
        [1],
        [24],
    )


def launches(trips):
    a = torch.randn(128, max(64 * trips, 64), dtype=torch.float16)
    b = torch.randn(max(64 * trips, 64), 128, dtype=torch.float16)
    c = torch.empty(128, 128, dtype=torch.float16)
    tile = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    descs = [TensorDescriptor.from_tensor(x, [64, 64], tile) for x in (a, b, c)]
    yield gemm, (2, 2), (*descs, 64 * trips, 64, 3), {"num_warps": 4}
