"""C = A B with tensor descriptors: two tiles come in by TMA in every step, one goes out."""

import triton.language as tl

import triton


@triton.jit
def matmul_descriptors(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([row, k])
        b = b_desc.load([k, column])
        total = tl.dot(a, b, total)
    c_desc.store([row, column], total.to(tl.float16))


DUMPS = {
    "matmul_descriptors": dict(
        kernel=matmul_descriptors,
        signature=dict(a_ptr="*fp16", b_ptr="*fp16", c_ptr="*fp16", M="i32", N="i32", K="i32"),
        constexprs=dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64),
        options=dict(num_warps=4, num_stages=3),
    ),
}
