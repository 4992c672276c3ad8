"""FlashAttention forward: one tile of queries against all keys and values, or those it may see.

A causal kernel has two loops: the tiles below the diagonal need no mask, those on it do.
"""

import triton.language as tl

import triton


@triton.jit
def attend(
    total,
    weight,
    highest,
    q,
    k_desc,
    v_desc,
    first_row,
    rows,
    scale,
    lower,
    upper,
    BLOCK_N: tl.constexpr,
    DIAGONAL: tl.constexpr,
):
    for start in range(lower, upper, BLOCK_N):
        k = k_desc.load([first_row + start, 0])
        scores = tl.dot(q, k.T)
        if DIAGONAL:
            keys = start + tl.arange(0, BLOCK_N)
            scores = tl.where(rows[:, None] >= keys[None, :], scores, float("-inf"))
        new_highest = tl.maximum(highest, tl.max(scores, 1) * scale)
        shrink = tl.math.exp2(highest - new_highest)
        p = tl.math.exp2(scores * scale - new_highest[:, None])
        weight = weight * shrink + tl.sum(p, 1)
        total = total * shrink[:, None]
        v = v_desc.load([first_row + start, 0])
        total = tl.dot(p.to(v.dtype), v, total)
        highest = new_highest
    return total, weight, highest


@triton.jit
def attention_forward(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    lse_ptr,
    scale,
    length,
    total_rows,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    q_desc = tl.make_tensor_descriptor(q_ptr, [total_rows, D], [D, 1], [BLOCK_M, D])
    k_desc = tl.make_tensor_descriptor(k_ptr, [total_rows, D], [D, 1], [BLOCK_N, D])
    v_desc = tl.make_tensor_descriptor(v_ptr, [total_rows, D], [D, 1], [BLOCK_N, D])
    o_desc = tl.make_tensor_descriptor(o_ptr, [total_rows, D], [D, 1], [BLOCK_M, D])
    first_row = tl.program_id(1) * length
    begin = tl.program_id(0) * BLOCK_M
    rows = begin + tl.arange(0, BLOCK_M)
    highest = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    weight = tl.zeros((BLOCK_M,), dtype=tl.float32)
    total = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    q = q_desc.load([first_row + begin, 0])
    if CAUSAL:
        total, weight, highest = attend(
            total,
            weight,
            highest,
            q,
            k_desc,
            v_desc,
            first_row,
            rows,
            scale,
            0,
            begin,
            BLOCK_N,
            False,
        )
        total, weight, highest = attend(
            total,
            weight,
            highest,
            q,
            k_desc,
            v_desc,
            first_row,
            rows,
            scale,
            begin,
            begin + BLOCK_M,
            BLOCK_N,
            True,
        )
    else:
        total, weight, highest = attend(
            total,
            weight,
            highest,
            q,
            k_desc,
            v_desc,
            first_row,
            rows,
            scale,
            0,
            length,
            BLOCK_N,
            False,
        )
    tl.store(lse_ptr + first_row + rows, highest + tl.math.log2(weight))
    o_desc.store([first_row + begin, 0], (total / weight[:, None]).to(o_ptr.dtype.element_ty))


def _dump(depth, causal):
    return dict(
        kernel=attention_forward,
        signature=dict(
            q_ptr="*bf16",
            k_ptr="*bf16",
            v_ptr="*bf16",
            o_ptr="*bf16",
            lse_ptr="*fp32",
            scale="fp32",
            length="i32",
            total_rows="i32",
        ),
        constexprs=dict(BLOCK_M=128, BLOCK_N=64, D=depth, CAUSAL=causal),
        options=dict(num_warps=4, num_stages=3),
    )


DUMPS = {
    "attention_forward_d64": _dump(64, False),
    "attention_forward_d128": _dump(128, False),
    "attention_forward_d64_causal": _dump(64, True),
    "attention_forward_d128_causal": _dump(128, True),
}
