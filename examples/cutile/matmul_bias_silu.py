"""C = silu(A × B + bias): what follows the product is done before the tile is written."""

# cuda-tile is no part of the project's own environment.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

import cuda.tile as ct

Int = ct.Constant[int]


def matmul_bias_silu(a, b, bias, c, m: Int, n: Int, k: Int):
    """Grid: rows of tiles × columns of tiles."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.zeros((m, n), dtype=ct.float32)
    for step in range(ct.num_tiles(a, axis=1, shape=(m, k))):
        left = ct.load(a, index=(row, step), shape=(m, k))
        right = ct.load(b, index=(step, column), shape=(k, n))
        total = ct.mma(left, right, total)
    total = total + ct.load(bias, index=(column,), shape=(n,)).astype(ct.float32)
    total = total / (1.0 + ct.exp(-total))
    ct.store(c, index=(row, column), tile=total.astype(c.dtype))
