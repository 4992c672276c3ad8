"""C = A B with pointers: a tile of addresses for every tile, and masks at the edges."""

import triton.language as tl

import triton


@triton.jit
def matmul_pointers(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_bk,
    stride_cm,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    # Neighbouring blocks take neighbouring rows, GROUP of them before the next column.
    block = tl.program_id(0)
    rows_of_blocks = tl.cdiv(M, BLOCK_M)
    columns_of_blocks = tl.cdiv(N, BLOCK_N)
    in_group = GROUP * columns_of_blocks
    first = (block // in_group) * GROUP
    height = min(rows_of_blocks - first, GROUP)
    block_row = first + (block % in_group) % height
    block_column = (block % in_group) // height

    rows = block_row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = block_column * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_at = a_ptr + (rows % M)[:, None] * stride_am + depth[None, :]
    b_at = b_ptr + depth[:, None] * stride_bk + (columns % N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_at, mask=depth[None, :] < left, other=0.0)
        b = tl.load(b_at, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(a, b, total)
        a_at += BLOCK_K
        b_at += BLOCK_K * stride_bk
    c_at = c_ptr + rows[:, None] * stride_cm + columns[None, :]
    tl.store(c_at, total.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


DUMPS = {
    "matmul_pointers": dict(
        kernel=matmul_pointers,
        signature=dict(
            a_ptr="*fp16",
            b_ptr="*fp16",
            c_ptr="*fp16",
            M="i32",
            N="i32",
            K="i32",
            stride_am="i32",
            stride_bk="i32",
            stride_cm="i32",
        ),
        constexprs=dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP=8),
        options=dict(num_warps=4, num_stages=3),
    ),
}
