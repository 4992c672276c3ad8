"""The gradient of Q, for a tile of queries, over all keys: three products a step."""

# cuda-tile is no part of the project's own environment.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

import cuda.tile as ct

Int = ct.Constant[int]


def attention_backward_dq(
    q, k, v, do, lse, delta, dq, scale: float, weight: float, m: Int, n: Int, d: Int
):
    """As `attention_backward.py`; grid: length / m × heads."""
    block, head = ct.bid(0), ct.bid(1)
    queries = ct.load(q, index=(head, block, 0), shape=(1, m, d)).reshape((m, d))
    outer = ct.load(do, index=(head, block, 0), shape=(1, m, d)).reshape((m, d))
    norms = ct.load(lse, index=(head, block), shape=(1, m)).reshape((m, 1))
    deltas = ct.load(delta, index=(head, block), shape=(1, m)).reshape((m, 1))
    total = ct.zeros((m, d), dtype=ct.float32)
    for j in range(ct.num_tiles(k, axis=1, shape=(1, n, d))):
        keys = ct.load(k, index=(head, j, 0), shape=(1, n, d)).reshape((n, d))
        values = ct.load(v, index=(head, j, 0), shape=(1, n, d)).reshape((n, d))
        nothing = ct.zeros((m, n), dtype=ct.float32)
        p = ct.exp2(ct.mma(queries, ct.transpose(keys), nothing) * scale - norms)
        dp = ct.mma(outer, ct.transpose(values), nothing)
        ds = p * (dp - deltas)
        total = ct.mma(ds.astype(k.dtype), keys, total)
    total = total * weight
    ct.store(dq, index=(head, block, 0), tile=total.astype(dq.dtype).reshape((1, m, d)))
