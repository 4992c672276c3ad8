"""The gradients of K and V, for a tile of keys, over all queries: five products a step.

`lse` is the logarithm (to base 2) of each query's sum, `delta` the sum of dO · O of each query. The
gradient of Q is a loop of its own over the keys: `attention_backward_dq.py`.
"""

# cuda-tile is no part of the project's own environment.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

import cuda.tile as ct

Int = ct.Constant[int]


def attention_backward(
    q, k, v, do, lse, delta, dk, dv, scale: float, weight: float, m: Int, n: Int, d: Int
):
    """All of heads × length × d, lse and delta of heads × length; grid: length / n × heads.

    `scale` has 1 / ln 2 in it, `weight` has not.
    """
    block, head = ct.bid(0), ct.bid(1)
    keys = ct.load(k, index=(head, block, 0), shape=(1, n, d)).reshape((n, d))
    values = ct.load(v, index=(head, block, 0), shape=(1, n, d)).reshape((n, d))
    key_sum = ct.zeros((n, d), dtype=ct.float32)
    value_sum = ct.zeros((n, d), dtype=ct.float32)
    for i in range(ct.num_tiles(q, axis=1, shape=(1, m, d))):
        queries = ct.load(q, index=(head, i, 0), shape=(1, m, d)).reshape((m, d))
        outer = ct.load(do, index=(head, i, 0), shape=(1, m, d)).reshape((m, d))
        norms = ct.load(lse, index=(head, i), shape=(1, m))
        deltas = ct.load(delta, index=(head, i), shape=(1, m))
        nothing = ct.zeros((n, m), dtype=ct.float32)
        scores = ct.mma(keys, ct.transpose(queries), nothing) * scale
        p = ct.exp2(scores - norms)
        value_sum = ct.mma(p.astype(v.dtype), outer, value_sum)
        dp = ct.mma(values, ct.transpose(outer), nothing)
        ds = p * (dp - deltas)
        key_sum = ct.mma(ds.astype(q.dtype), queries, key_sum)
    ct.store(dv, index=(head, block, 0), tile=value_sum.astype(dv.dtype).reshape((1, n, d)))
    key_sum = key_sum * weight
    ct.store(dk, index=(head, block, 0), tile=key_sum.astype(dk.dtype).reshape((1, n, d)))
