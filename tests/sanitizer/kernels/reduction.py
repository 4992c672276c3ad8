"""Partial sums: each program adds its tiles to one result by TMA reductions."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

import torch


@gluon.jit
def load(x_desc, ring, full, free, first, steps, DEPTH: gl.constexpr):
    for step in range(steps):
        slot = step % DEPTH
        mbarrier.wait(free.index(slot), ((step // DEPTH) & 1) ^ 1)
        mbarrier.expect(full.index(slot), x_desc.block_type.nbytes)
        tma.async_load(x_desc, [(first + step) * 32, 0], full.index(slot), ring.index(slot))


@gluon.jit
def add(y_desc, ring, full, free, steps, DEPTH: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    total = gl.zeros([32, 32], gl.float32, layout)
    for step in range(steps):
        slot = step % DEPTH
        mbarrier.wait(full.index(slot), (step // DEPTH) & 1)
        total += ring.index(slot).load(layout)
        fence_async_shared()
        mbarrier.arrive(free.index(slot), count=1)
    result = gl.allocate_shared_memory(gl.float32, [32, 32], y_desc.layout)
    result.store(total)
    fence_async_shared()
    tma.async_atomic_add(y_desc, [0, 0], result)
    tma.store_wait(0)


@gluon.jit
def kernel(x_desc, y_desc, steps, DEPTH: gl.constexpr):
    ring = gl.allocate_shared_memory(gl.float32, [DEPTH, 32, 32], x_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(DEPTH):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(free.index(slot), count=1)
    fence_async_shared()
    first = gl.program_id(0) * steps
    gl.warp_specialize(
        [
            (add, (y_desc, ring, full, free, steps, DEPTH)),
            (load, (x_desc, ring, full, free, first, steps, DEPTH)),
        ],
        [1],
        [24],
    )


def launches(trips):
    x, y = torch.randn(96 * max(trips, 1), 32), torch.zeros(32, 32)
    tile = gl.NVMMASharedLayout.get_default_for([32, 32], gl.float32)
    descs = [TensorDescriptor.from_tensor(t, [32, 32], tile) for t in (x, y)]
    yield kernel, (3,), (*descs, trips, 3), {"num_warps": 4}
