"""A sum of two arrays: a partition loads, one adds, one stores what the ring of results holds."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

import torch


@gluon.jit
def load(a_desc, b_desc, a_ring, b_ring, full, free, row, steps, DEPTH: gl.constexpr):
    for step in range(steps):
        slot = step % DEPTH
        mbarrier.wait(free.index(slot), ((step // DEPTH) & 1) ^ 1)
        mbarrier.expect(full.index(slot), a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        tma.async_load(a_desc, [row, step * 64], full.index(slot), a_ring.index(slot))
        tma.async_load(b_desc, [row, step * 64], full.index(slot), b_ring.index(slot))


@gluon.jit
def add(a_ring, b_ring, c_ring, full, free, done, stored, steps, DEPTH: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    for step in range(steps):
        slot = step % DEPTH
        phase = (step // DEPTH) & 1
        mbarrier.wait(full.index(slot), phase)
        total = a_ring.index(slot).load(layout) + b_ring.index(slot).load(layout)
        fence_async_shared()
        mbarrier.arrive(free.index(slot), count=1)
        mbarrier.wait(stored.index(slot), phase ^ 1)
        c_ring.index(slot).store(total)
        fence_async_shared()
        mbarrier.arrive(done.index(slot), count=1)


@gluon.jit
def store(c_desc, c_ring, done, stored, row, steps, DEPTH: gl.constexpr):
    for step in range(steps):
        slot = step % DEPTH
        mbarrier.wait(done.index(slot), (step // DEPTH) & 1)
        tma.async_store(c_desc, [row, step * 64], c_ring.index(slot))
        tma.store_wait(DEPTH - 1)
        last = step - (DEPTH - 1)
        mbarrier.arrive(stored.index(last % DEPTH), count=1, pred=last >= 0)
    tma.store_wait(0)


@gluon.jit
def kernel(a_desc, b_desc, c_desc, steps, DEPTH: gl.constexpr):
    a_ring = gl.allocate_shared_memory(gl.float32, [DEPTH, 32, 64], a_desc.layout)
    b_ring = gl.allocate_shared_memory(gl.float32, [DEPTH, 32, 64], b_desc.layout)
    c_ring = gl.allocate_shared_memory(gl.float32, [DEPTH, 32, 64], c_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    stored = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(DEPTH):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(free.index(slot), count=1)
        mbarrier.init(done.index(slot), count=1)
        mbarrier.init(stored.index(slot), count=1)
    fence_async_shared()
    row = gl.program_id(0) * 32
    gl.warp_specialize(
        [
            (add, (a_ring, b_ring, c_ring, full, free, done, stored, steps, DEPTH)),
            (load, (a_desc, b_desc, a_ring, b_ring, full, free, row, steps, DEPTH)),
            (store, (c_desc, c_ring, done, stored, row, steps, DEPTH)),
        ],
        [1, 1],
        [24, 24],
    )


def launches(trips):
    a, b = (torch.randn(64, max(64 * trips, 64)) for _ in range(2))
    c = torch.empty(64, max(64 * trips, 64))
    tile = gl.NVMMASharedLayout.get_default_for([32, 64], gl.float32)
    descs = [TensorDescriptor.from_tensor(x, [32, 64], tile) for x in (a, b, c)]
    yield kernel, (2,), (*descs, trips, 2), {"num_warps": 4}
