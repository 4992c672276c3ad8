"""Softmax of rows of any length: one pass for maximum and sum together, one that writes."""

# cuda-tile is no part of the project's own environment.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

import cuda.tile as ct

Int = ct.Constant[int]
LOG2_E = 1.4426950408889634


def softmax(x, y, m: Int, n: Int):
    """Grid: rows of x / m. Beyond the end of a row x is -inf, which changes neither."""
    block = ct.bid(0)
    tiles = ct.num_tiles(x, axis=1, shape=(m, n))
    least = ct.PaddingMode.NEG_INF
    top = ct.full((m, 1), -float("inf"), dtype=ct.float32)
    total = ct.zeros((m, 1), dtype=ct.float32)
    for j in range(tiles):
        part = ct.load(x, index=(block, j), shape=(m, n), padding_mode=least)
        part = part.astype(ct.float32) * LOG2_E
        new = ct.maximum(top, ct.max(part, axis=1, keepdims=True))
        total = total * ct.exp2(top - new) + ct.sum(ct.exp2(part - new), axis=1, keepdims=True)
        top = new
    for j in range(tiles):
        part = ct.load(x, index=(block, j), shape=(m, n), padding_mode=least)
        part = ct.exp2(part.astype(ct.float32) * LOG2_E - top) / total
        ct.store(y, index=(block, j), tile=part.astype(y.dtype))
