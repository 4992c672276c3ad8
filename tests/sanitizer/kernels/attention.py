"""Attention forward: keys and values in rings, a softmax between two products."""

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
def load(
    q_desc,
    k_desc,
    v_desc,
    q_tile,
    k_ring,
    v_ring,
    q_full,
    k_full,
    v_full,
    k_free,
    v_free,
    steps,
    DEPTH: gl.constexpr,
):
    mbarrier.expect(q_full, q_desc.block_type.nbytes)
    tma.async_load(q_desc, [gl.program_id(0) * 64, 0], q_full, q_tile)
    for step in range(steps):
        slot = step % DEPTH
        phase = ((step // DEPTH) & 1) ^ 1
        mbarrier.wait(k_free.index(slot), phase)
        mbarrier.expect(k_full.index(slot), k_desc.block_type.nbytes)
        tma.async_load(k_desc, [step * 64, 0], k_full.index(slot), k_ring.index(slot))
        mbarrier.wait(v_free.index(slot), phase)
        mbarrier.expect(v_full.index(slot), v_desc.block_type.nbytes)
        tma.async_load(v_desc, [step * 64, 0], v_full.index(slot), v_ring.index(slot))


@gluon.jit
def compute(
    o_desc,
    q_tile,
    k_ring,
    v_ring,
    q_full,
    k_full,
    v_full,
    k_free,
    v_free,
    steps,
    scale,
    DEPTH: gl.constexpr,
):
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    rows: gl.constexpr = gl.SliceLayout(1, layout)
    highest = gl.full([64], float("-inf"), gl.float32, rows)
    weight = gl.zeros([64], gl.float32, rows)
    total = gl.zeros([64, 64], gl.float32, layout)
    mbarrier.wait(q_full, 0)
    for step in range(steps):
        slot = step % DEPTH
        phase = (step // DEPTH) & 1
        mbarrier.wait(k_full.index(slot), phase)
        scores = gl.zeros([64, 64], gl.float32, layout)
        scores = warpgroup_mma(
            q_tile, k_ring.index(slot).permute((1, 0)), scores, use_acc=False, is_async=True
        )
        scores = warpgroup_mma_wait(0, deps=(scores,))
        mbarrier.arrive(k_free.index(slot), count=1)
        higher = gl.maximum(highest, gl.max(scores, 1) * scale)
        power = gl.exp2(scores * scale - higher[:, None])
        factor = gl.exp2(highest - higher)
        weight = weight * factor + gl.sum(power, 1)
        total = total * factor[:, None]
        highest = higher
        mbarrier.wait(v_full.index(slot), phase)
        power = gl.convert_layout(power.to(gl.float16), gl.DotOperandLayout(0, layout, 2))
        total = warpgroup_mma(power, v_ring.index(slot), total, is_async=True)
        total = warpgroup_mma_wait(0, deps=(total,))
        mbarrier.arrive(v_free.index(slot), count=1)
    o_tile = gl.allocate_shared_memory(gl.float16, [64, 64], o_desc.layout)
    o_tile.store((total / weight[:, None]).to(gl.float16))
    fence_async_shared()
    tma.async_store(o_desc, [gl.program_id(0) * 64, 0], o_tile)
    tma.store_wait(0)


@gluon.jit
def kernel(q_desc, k_desc, v_desc, o_desc, steps, scale, DEPTH: gl.constexpr):
    q_tile = gl.allocate_shared_memory(gl.float16, [64, 64], q_desc.layout)
    k_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, 64, 64], k_desc.layout)
    v_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, 64, 64], v_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    k_free = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    v_free = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    mbarrier.init(q_full, count=1)
    for slot in gl.static_range(DEPTH):
        mbarrier.init(k_full.index(slot), count=1)
        mbarrier.init(v_full.index(slot), count=1)
        mbarrier.init(k_free.index(slot), count=1)
        mbarrier.init(v_free.index(slot), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (
                compute,
                (
                    o_desc,
                    q_tile,
                    k_ring,
                    v_ring,
                    q_full,
                    k_full,
                    v_full,
                    k_free,
                    v_free,
                    steps,
                    scale,
                    DEPTH,
                ),
            ),
            (
                load,
                (
                    q_desc,
                    k_desc,
                    v_desc,
                    q_tile,
                    k_ring,
                    v_ring,
                    q_full,
                    k_full,
                    v_full,
                    k_free,
                    v_free,
                    steps,
                    DEPTH,
                ),
            ),
        ],
        [1],
        [24],
    )


def launches(trips):
    q, o = torch.randn(128, 64, dtype=torch.float16), torch.empty(128, 64, dtype=torch.float16)
    k, v = (torch.randn(max(64 * trips, 64), 64, dtype=torch.float16) for _ in range(2))
    tile = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    descs = [TensorDescriptor.from_tensor(x, [64, 64], tile) for x in (q, k, v, o)]
    yield kernel, (2,), (*descs, trips, 0.18, 2), {"num_warps": 4}
