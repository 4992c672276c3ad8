"""C = A × B by as many blocks as the machine runs at once: each takes one tile after the other."""

# cuda-tile is no part of the project's own environment.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

import cuda.tile as ct

Int = ct.Constant[int]


def matmul_persistent(a, b, c, m: Int, n: Int, k: Int):
    """Grid: any number of blocks."""
    rows = ct.num_tiles(a, axis=0, shape=(m, k))
    columns = ct.num_tiles(b, axis=1, shape=(k, n))
    for work in range(ct.bid(0), rows * columns, ct.num_blocks(0)):
        row = work // columns
        column = work % columns
        total = ct.zeros((m, n), dtype=ct.float32)
        for step in range(ct.num_tiles(a, axis=1, shape=(m, k))):
            left = ct.load(a, index=(row, step), shape=(m, k))
            right = ct.load(b, index=(step, column), shape=(k, n))
            total = ct.mma(left, right, total)
        ct.store(c, index=(row, column), tile=total.astype(c.dtype))
