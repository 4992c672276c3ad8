"""A transposition through scratch in global memory: other threads read than wrote."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

import torch


@gluon.jit
def kernel(x_ptr, scratch_ptr, y_ptr, steps):
    by_rows: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    by_columns: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    for step in range(steps):
        rows = gl.arange(0, 32, gl.SliceLayout(1, by_rows))
        columns = gl.arange(0, 32, gl.SliceLayout(0, by_rows))
        offsets = rows[:, None] * 32 + columns[None, :]
        gl.store(scratch_ptr + offsets, gl.load(x_ptr + step * 1024 + offsets))
        gl.barrier()
        rows = gl.arange(0, 32, gl.SliceLayout(1, by_columns))
        columns = gl.arange(0, 32, gl.SliceLayout(0, by_columns))
        tile = gl.load(scratch_ptr + columns[None, :] * 32 + rows[:, None])
        gl.store(y_ptr + step * 1024 + rows[:, None] * 32 + columns[None, :], tile)
        gl.barrier()


def launches(trips):
    x, y = torch.randn(max(trips, 1), 32, 32), torch.empty(max(trips, 1), 32, 32)
    yield kernel, (1,), (x, torch.empty(32, 32), y, trips), {"num_warps": 4}
