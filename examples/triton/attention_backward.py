"""FlashAttention backward: gradients of keys and values by columns, of queries by rows.

The forward pass left the logarithm of each row's sum; `delta` is the row sum of O times dO.
A causal kernel has two loops: the tiles on the diagonal need a mask, those beyond it do not.
"""

import triton.language as tl

import triton


@triton.jit
def sum_kv(
    dk,
    dv,
    k,
    v,
    q_desc,
    do_desc,
    lse_ptr,
    delta_ptr,
    first_row,
    keys,
    scale,
    lower,
    upper,
    BLOCK_M: tl.constexpr,
    DIAGONAL: tl.constexpr,
):
    steps = tl.arange(0, BLOCK_M)
    for start in range(lower, upper, BLOCK_M):
        q = q_desc.load([first_row + start, 0])
        do = do_desc.load([first_row + start, 0])
        lse = tl.load(lse_ptr + first_row + start + steps)
        delta = tl.load(delta_ptr + first_row + start + steps)
        scores_t = tl.dot(k, q.T)
        p_t = tl.math.exp2(scores_t * scale - lse[None, :])
        if DIAGONAL:
            rows = start + steps
            p_t = tl.where(rows[None, :] >= keys[:, None], p_t, 0.0)
        dv = tl.dot(p_t.to(do.dtype), do, dv)
        dp_t = tl.dot(v, do.T)
        ds_t = p_t * (dp_t - delta[None, :])
        dk = tl.dot(ds_t.to(q.dtype), q, dk)
    return dk, dv


@triton.jit
def attention_backward_kv(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    dk_ptr,
    dv_ptr,
    lse_ptr,
    delta_ptr,
    scale,
    length,
    total_rows,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    q_desc = tl.make_tensor_descriptor(q_ptr, [total_rows, D], [D, 1], [BLOCK_M, D])
    do_desc = tl.make_tensor_descriptor(do_ptr, [total_rows, D], [D, 1], [BLOCK_M, D])
    k_desc = tl.make_tensor_descriptor(k_ptr, [total_rows, D], [D, 1], [BLOCK_N, D])
    v_desc = tl.make_tensor_descriptor(v_ptr, [total_rows, D], [D, 1], [BLOCK_N, D])
    dk_desc = tl.make_tensor_descriptor(dk_ptr, [total_rows, D], [D, 1], [BLOCK_N, D])
    dv_desc = tl.make_tensor_descriptor(dv_ptr, [total_rows, D], [D, 1], [BLOCK_N, D])
    first_row = tl.program_id(1) * length
    begin = tl.program_id(0) * BLOCK_N
    mine = first_row + begin
    keys = begin + tl.arange(0, BLOCK_N)
    k = k_desc.load([mine, 0])
    v = v_desc.load([mine, 0])
    dk = tl.zeros((BLOCK_N, D), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, D), dtype=tl.float32)
    seen = 0
    if CAUSAL:
        seen = begin + BLOCK_N
        dk, dv = sum_kv(
            dk,
            dv,
            k,
            v,
            q_desc,
            do_desc,
            lse_ptr,
            delta_ptr,
            first_row,
            keys,
            scale,
            begin,
            seen,
            BLOCK_M,
            True,
        )
    dk, dv = sum_kv(
        dk,
        dv,
        k,
        v,
        q_desc,
        do_desc,
        lse_ptr,
        delta_ptr,
        first_row,
        keys,
        scale,
        seen,
        length,
        BLOCK_M,
        False,
    )
    dv_desc.store([mine, 0], dv.to(tl.bfloat16))
    # The scale has log2(e) in it, which the gradient does not want.
    dk_desc.store([mine, 0], (dk * (scale * 0.6931471824645996)).to(tl.bfloat16))


@triton.jit
def sum_q(
    dq,
    q,
    do,
    lse,
    delta,
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
        v = v_desc.load([first_row + start, 0])
        p = tl.math.exp2(tl.dot(q, k.T) * scale - lse[:, None])
        if DIAGONAL:
            keys = start + tl.arange(0, BLOCK_N)
            p = tl.where(rows[:, None] >= keys[None, :], p, 0.0)
        dp = tl.dot(do, v.T)
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    return dq


@triton.jit
def attention_backward_q(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    dq_ptr,
    lse_ptr,
    delta_ptr,
    scale,
    length,
    total_rows,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    q_desc = tl.make_tensor_descriptor(q_ptr, [total_rows, D], [D, 1], [BLOCK_M, D])
    do_desc = tl.make_tensor_descriptor(do_ptr, [total_rows, D], [D, 1], [BLOCK_M, D])
    k_desc = tl.make_tensor_descriptor(k_ptr, [total_rows, D], [D, 1], [BLOCK_N, D])
    v_desc = tl.make_tensor_descriptor(v_ptr, [total_rows, D], [D, 1], [BLOCK_N, D])
    dq_desc = tl.make_tensor_descriptor(dq_ptr, [total_rows, D], [D, 1], [BLOCK_M, D])
    first_row = tl.program_id(1) * length
    begin = tl.program_id(0) * BLOCK_M
    mine = first_row + begin
    rows = begin + tl.arange(0, BLOCK_M)
    q = q_desc.load([mine, 0])
    do = do_desc.load([mine, 0])
    lse = tl.load(lse_ptr + first_row + rows)
    delta = tl.load(delta_ptr + first_row + rows)
    dq = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    seen = length
    if CAUSAL:
        seen = begin
    dq = sum_q(
        dq, q, do, lse, delta, k_desc, v_desc, first_row, rows, scale, 0, seen, BLOCK_N, False
    )
    if CAUSAL:
        dq = sum_q(
            dq,
            q,
            do,
            lse,
            delta,
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
    dq_desc.store([mine, 0], (dq * (scale * 0.6931471824645996)).to(tl.bfloat16))


_INPUTS = dict(q_ptr="*bf16", k_ptr="*bf16", v_ptr="*bf16", do_ptr="*bf16")
_REST = dict(lse_ptr="*fp32", delta_ptr="*fp32", scale="fp32", length="i32", total_rows="i32")

DUMPS = {
    f"attention_backward_{which}{'_causal' * causal}": dict(
        kernel=kernel,
        signature=_INPUTS | {f"d{name}_ptr": "*bf16" for name in which} | _REST,
        constexprs=dict(BLOCK_M=rows, BLOCK_N=columns, D=64, CAUSAL=causal),
        options=dict(num_warps=8, num_stages=2),
    )
    for which, kernel, rows, columns in (
        ("kv", attention_backward_kv, 64, 128),
        ("q", attention_backward_q, 128, 64),
    )
    for causal in (False, True)
}
