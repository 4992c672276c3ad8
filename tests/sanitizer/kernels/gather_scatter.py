"""Rows gathered by TMA, doubled, and scattered; two slots, one partition."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

import torch


@gluon.jit
def kernel(x_desc, y_desc, index_ptr, steps):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [32, 1], [1, 4], [1, 0])
    ring = gl.allocate_shared_memory(gl.float32, [2, 32, 32], x_desc.layout)
    result = gl.allocate_shared_memory(gl.float32, [32, 32], y_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    mbarrier.init(full.index(0), count=1)
    mbarrier.init(full.index(1), count=1)
    fence_async_shared()
    for step in range(steps):
        slot = step % 2
        rows = gl.load(index_ptr + step * 32 + gl.arange(0, 32, gl.SliceLayout(0, layout)))
        mbarrier.expect(full.index(slot), 32 * 32 * 4)
        tma.async_gather(x_desc, rows, 0, full.index(slot), ring.index(slot))
        mbarrier.wait(full.index(slot), (step // 2) & 1)
        tile = ring.index(slot).load(layout)
        tma.store_wait(0)
        result.store(tile + tile)
        fence_async_shared()
        tma.async_scatter(y_desc, rows, 0, result)
    tma.store_wait(0)


def launches(trips):
    x, y = torch.randn(256, 32), torch.empty(256, 32)
    index = torch.randperm(256, dtype=torch.int32)
    tile = gl.NVMMASharedLayout.get_default_for([8, 32], gl.float32)
    descs = [TensorDescriptor.from_tensor(t, [1, 32], tile) for t in (x, y)]
    yield kernel, (1,), (*descs, index, trips), {"num_warps": 4}
