"""act(A B + bias): a product whose result is biased and activated before it leaves the chip."""

import triton.language as tl

import triton


@triton.jit
def silu(x):
    return x / (1.0 + tl.exp(-x))


@triton.jit
def matmul_fused(
    a_ptr,
    b_ptr,
    bias_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        total = tl.dot(a_desc.load([row, k]), b_desc.load([k, column]), total)
    columns = column + tl.arange(0, BLOCK_N)
    bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)
    total += bias[None, :].to(tl.float32)
    if ACTIVATION == "relu":
        total = tl.maximum(total, 0.0)
    elif ACTIVATION == "silu":
        total = silu(total)
    rows = row + tl.arange(0, BLOCK_M)
    c_at = c_ptr + rows[:, None] * N + columns[None, :]
    tl.store(c_at, total.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


DUMPS = {
    "matmul_fused": dict(
        kernel=matmul_fused,
        signature=dict(
            a_ptr="*fp16", b_ptr="*fp16", bias_ptr="*fp16", c_ptr="*fp16", M="i32", N="i32", K="i32"
        ),
        constexprs=dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, ACTIVATION="silu"),
        options=dict(num_warps=4, num_stages=3),
    ),
}
