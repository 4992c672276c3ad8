"""y = (x - mean) / deviation × weight + bias, a row a block, in three passes over the row.

The last tile of a row may reach beyond it: there x is padded with zeros, which the second pass must
not take for elements.
"""

# cuda-tile is no part of the project's own environment.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

import cuda.tile as ct

Int = ct.Constant[int]


def layer_norm(x, weight, bias, y, width: int, epsilon: float, n: Int):
    """Grid: rows of x; `width` is the length of a row."""
    row = ct.bid(0)
    tiles = ct.num_tiles(x, axis=1, shape=(1, n))
    zero = ct.PaddingMode.ZERO
    sums = ct.zeros((1, n), dtype=ct.float32)
    for j in range(tiles):
        sums = sums + ct.load(x, index=(row, j), shape=(1, n), padding_mode=zero).astype(ct.float32)
    mean = ct.sum(sums, axis=1, keepdims=True) / width
    squares = ct.zeros((1, n), dtype=ct.float32)
    for j in range(tiles):
        part = ct.load(x, index=(row, j), shape=(1, n), padding_mode=zero).astype(ct.float32)
        inside = (j * n + ct.arange(n, dtype=ct.int32))[None, :] < width
        away = ct.where(inside, part - mean, 0.0)
        squares = squares + away * away
    factor = ct.rsqrt(ct.sum(squares, axis=1, keepdims=True) / width + epsilon)
    for j in range(tiles):
        part = ct.load(x, index=(row, j), shape=(1, n), padding_mode=zero).astype(ct.float32)
        scales = ct.load(weight, index=(j,), shape=(n,), padding_mode=zero).astype(ct.float32)
        shifts = ct.load(bias, index=(j,), shape=(n,), padding_mode=zero).astype(ct.float32)
        result = (part - mean) * factor * scales + shifts
        ct.store(y, index=(row, j), tile=result.astype(y.dtype))
