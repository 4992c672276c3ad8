"""A persistent product of Blackwell: loads, products into two sums, and an epilogue for each."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

import torch


@gluon.jit
def load(
    a_desc, b_desc, a_ring, b_ring, full, free, K, tiles, BLOCK: gl.constexpr, DEPTH: gl.constexpr
):
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        for step in range(gl.cdiv(K, BLOCK)):
            slot = count % DEPTH
            mbarrier.wait(free.index(slot), ((count // DEPTH) & 1) ^ 1)
            mbarrier.expect(full.index(slot), a_desc.block_type.nbytes + b_desc.block_type.nbytes)
            tma.async_load(a_desc, [tile * 128, step * BLOCK], full.index(slot), a_ring.index(slot))
            tma.async_load(b_desc, [step * BLOCK, 0], full.index(slot), b_ring.index(slot))
            count += 1


@gluon.jit
def multiply(
    a_ring,
    b_ring,
    sums,
    full,
    free,
    ready,
    drained,
    K,
    tiles,
    BLOCK: gl.constexpr,
    DEPTH: gl.constexpr,
):
    count = 0
    turn = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        mbarrier.wait(drained.index(turn % 2), ((turn // 2) & 1) ^ 1)
        total = sums.index(turn % 2)
        for step in range(gl.cdiv(K, BLOCK)):
            slot = count % DEPTH
            mbarrier.wait(full.index(slot), (count // DEPTH) & 1)
            tcgen05_mma(a_ring.index(slot), b_ring.index(slot), total, use_acc=step > 0)
            tcgen05_commit(free.index(slot))
            count += 1
        tcgen05_commit(ready.index(turn % 2))
        turn += 1


@gluon.jit
def finish(c_desc, sums, ready, drained, K, tiles):
    c_tile = gl.allocate_shared_memory(gl.float16, [128, 64], c_desc.layout)
    turn = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        mbarrier.wait(ready.index(turn % 2), (turn // 2) & 1)
        total = sums.index(turn % 2).load()
        mbarrier.arrive(drained.index(turn % 2), count=1)
        total = gl.where(K > 0, total, 0.0)
        tma.store_wait(0)
        c_tile.store(total.to(gl.float16))
        fence_async_shared()
        tma.async_store(c_desc, [tile * 128, 0], c_tile)
        turn += 1
    tma.store_wait(0)


@gluon.jit
def gemm(a_desc, b_desc, c_desc, K, tiles, BLOCK: gl.constexpr, DEPTH: gl.constexpr):
    a_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, 128, BLOCK], a_desc.layout)
    b_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, BLOCK, 64], b_desc.layout)
    sums = allocate_tensor_memory(
        gl.float32, [2, 128, 64], TensorMemoryLayout([128, 64], col_stride=1)
    )
    full = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    ready = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    drained = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(DEPTH):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(free.index(slot), count=1)
    for turn in gl.static_range(2):
        mbarrier.init(ready.index(turn), count=1)
        mbarrier.init(drained.index(turn), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (finish, (c_desc, sums, ready, drained, K, tiles)),
            (load, (a_desc, b_desc, a_ring, b_ring, full, free, K, tiles, BLOCK, DEPTH)),
            (multiply, (a_ring, b_ring, sums, full, free, ready, drained, K, tiles, BLOCK, DEPTH)),
        ],
        [1, 1],
        [24, 24],
    )


def launches(trips):
    tiles = 5
    a = torch.randn(128 * tiles, max(64 * trips, 64), dtype=torch.float16)
    b = torch.randn(max(64 * trips, 64), 64, dtype=torch.float16)
    c = torch.empty(128 * tiles, 64, dtype=torch.float16)
    of = gl.NVMMASharedLayout.get_default_for([128, 64], gl.float16)
    descs = [TensorDescriptor.from_tensor(x, [n, 64], of) for x, n in ((a, 128), (b, 64), (c, 128))]
    yield gemm, (1,), (*descs, 64 * trips, tiles, 64, 3), {"num_warps": 4}
