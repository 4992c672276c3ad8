"""Softmax(Q × Kᵀ) × V, keys tile by tile, with a running maximum and a running sum.

If it is causal, a first loop takes the keys that every query of the block may see, and a second one
those of which some queries may see some.
"""

# cuda-tile is no part of the project's own environment.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

import cuda.tile as ct

Int = ct.Constant[int]
Bool = ct.Constant[bool]


def step(j, q, k, v, head, first, top, norm, out, scale, m: Int, n: Int, d: Int, masked: Bool):
    """One tile of keys and values."""
    keys = ct.load(k, index=(head, j, 0), shape=(1, n, d)).reshape((n, d))
    scores = ct.mma(q, ct.transpose(keys), ct.zeros((m, n), dtype=ct.float32)) * scale
    if masked:
        rows = (first + ct.arange(m, dtype=ct.int32))[:, None]
        columns = (j * n + ct.arange(n, dtype=ct.int32))[None, :]
        scores = ct.where(rows >= columns, scores, -float("inf"))
    new = ct.maximum(top, ct.max(scores, axis=1))
    p = ct.exp2(scores - new[:, None])
    shrink = ct.exp2(top - new)
    norm = norm * shrink + ct.sum(p, axis=1)
    values = ct.load(v, index=(head, j, 0), shape=(1, n, d)).reshape((n, d))
    out = ct.mma(p.astype(v.dtype), values, out * shrink[:, None])
    return new, norm, out


def attention_forward(q, k, v, o, scale: float, m: Int, n: Int, d: Int, causal: Bool):
    """Q, K, V and O are heads × length × d; `scale` has 1 / ln 2 in it.

    Grid: length / m × heads.
    """
    block, head = ct.bid(0), ct.bid(1)
    first = block * m
    queries = ct.load(q, index=(head, block, 0), shape=(1, m, d)).reshape((m, d))
    top = ct.full((m,), -float("inf"), dtype=ct.float32)
    norm = ct.zeros((m,), dtype=ct.float32)
    out = ct.zeros((m, d), dtype=ct.float32)
    tiles = ct.num_tiles(k, axis=1, shape=(1, n, d))
    if causal:
        whole = first // n
        for j in range(whole):
            top, norm, out = step(
                j, queries, k, v, head, first, top, norm, out, scale, m, n, d, False
            )
        for j in range(whole, min(tiles, ct.cdiv(first + m, n))):
            top, norm, out = step(
                j, queries, k, v, head, first, top, norm, out, scale, m, n, d, True
            )
    else:
        for j in range(tiles):
            top, norm, out = step(
                j, queries, k, v, head, first, top, norm, out, scale, m, n, d, False
            )
    out = out / norm[:, None]
    ct.store(o, index=(head, block, 0), tile=out.astype(o.dtype).reshape((1, m, d)))
