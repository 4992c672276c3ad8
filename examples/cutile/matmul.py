"""C = A × B, one tile of C a block: the loop that every pipeline is for.

Blocks take tiles in stripes of `stripe` rows of tiles, so that those that run at the same time
share what they read.
"""

# cuda-tile is no part of the project's own environment.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

import cuda.tile as ct

Int = ct.Constant[int]


def tile_of(block, rows, columns, stripe):
    """The row and the column of the tile that a block takes."""
    in_stripe = stripe * columns
    first = block // in_stripe * stripe
    height = min(rows - first, stripe)
    return first + block % in_stripe % height, block % in_stripe // height


def matmul(a, b, c, m: Int, n: Int, k: Int, stripe: Int):
    """Grid: as many blocks as C has tiles of m × n."""
    rows = ct.num_tiles(a, axis=0, shape=(m, k))
    columns = ct.num_tiles(b, axis=1, shape=(k, n))
    row, column = tile_of(ct.bid(0), rows, columns, stripe)
    total = ct.zeros((m, n), dtype=ct.float32)
    for step in range(ct.num_tiles(a, axis=1, shape=(m, k))):
        left = ct.load(a, index=(row, step), shape=(m, k))
        right = ct.load(b, index=(step, column), shape=(k, n))
        total = ct.mma(left, right, total)
    ct.store(c, index=(row, column), tile=total.astype(c.dtype))
