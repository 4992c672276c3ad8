"""Two consumers share a loader and take turns at the tensor core by named barriers."""

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
def load(a_desc, b_desc, a_ring, b_ring, full, free, steps, DEPTH: gl.constexpr):
    for step in range(steps):
        slot = step % DEPTH
        mbarrier.wait(free.index(slot), ((step // DEPTH) & 1) ^ 1)
        mbarrier.expect(full.index(slot), 2 * a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        tma.async_load(a_desc, [0, step * 64], full.index(slot), a_ring.index(slot).slice(0, 64, 0))
        tma.async_load(
            a_desc, [64, step * 64], full.index(slot), a_ring.index(slot).slice(64, 64, 0)
        )
        tma.async_load(b_desc, [step * 64, 0], full.index(slot), b_ring.index(slot))


@gluon.jit
def turn_of(me: gl.constexpr):
    if me == 0:
        gl.inline_asm_elementwise("bar.sync 1, 256; mov.u32 $0, 0;", "=r", [], gl.int32, False, 1)
    else:
        gl.inline_asm_elementwise("bar.sync 2, 256; mov.u32 $0, 0;", "=r", [], gl.int32, False, 1)


@gluon.jit
def hand_on(me: gl.constexpr):
    if me == 0:
        gl.inline_asm_elementwise("bar.arrive 2, 256; mov.u32 $0, 0;", "=r", [], gl.int32, False, 1)
    else:
        gl.inline_asm_elementwise("bar.arrive 1, 256; mov.u32 $0, 0;", "=r", [], gl.int32, False, 1)


@gluon.jit
def compute(c_ptr, a_ring, b_ring, full, free, steps, DEPTH: gl.constexpr, me: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    total = gl.zeros([64, 64], gl.float32, layout)
    if me == 1:
        hand_on(me)
    for step in range(steps):
        slot = step % DEPTH
        mbarrier.wait(full.index(slot), (step // DEPTH) & 1)
        turn_of(me)
        a = a_ring.index(slot).slice(64 * me, 64, 0)
        total = warpgroup_mma(a, b_ring.index(slot), total, is_async=True)
        hand_on(me)
        total = warpgroup_mma_wait(0, deps=(total,))
        mbarrier.arrive(free.index(slot), count=1)
    if me == 0:
        turn_of(me)
    rows = 64 * me + gl.arange(0, 64, gl.SliceLayout(1, layout))
    columns = gl.arange(0, 64, gl.SliceLayout(0, layout))
    gl.store(c_ptr + rows[:, None] * 64 + columns[None, :], total.to(gl.float16))


@gluon.jit
def kernel(a_desc, b_desc, c_ptr, steps, DEPTH: gl.constexpr):
    a_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, 128, 64], a_desc.layout)
    b_ring = gl.allocate_shared_memory(gl.float16, [DEPTH, 64, 64], b_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(DEPTH):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(free.index(slot), count=2)
    fence_async_shared()
    gl.warp_specialize(
        [
            (compute, (c_ptr, a_ring, b_ring, full, free, steps, DEPTH, 0)),
            (compute, (c_ptr, a_ring, b_ring, full, free, steps, DEPTH, 1)),
            (load, (a_desc, b_desc, a_ring, b_ring, full, free, steps, DEPTH)),
        ],
        [4, 1],
        [160, 24],
    )


def launches(trips):
    a = torch.randn(128, max(64 * trips, 64), dtype=torch.float16)
    b = torch.randn(max(64 * trips, 64), 64, dtype=torch.float16)
    c = torch.empty(128, 64, dtype=torch.float16)
    tile = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    descs = [TensorDescriptor.from_tensor(x, [64, 64], tile) for x in (a, b)]
    yield kernel, (1,), (*descs, c, trips, 2), {"num_warps": 4, "maxnreg": 168}
