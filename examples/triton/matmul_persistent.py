"""C = A B by a fixed number of blocks, each of which takes one tile of C after the other.

The descriptors are made by the host: they are parameters of the kernel.
"""

import triton.language as tl

import triton


@triton.jit
def matmul_persistent(
    a_desc,
    b_desc,
    c_desc,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    # Neighbouring tiles have neighbouring rows, GROUP of them before the next column.
    rows, columns = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    tiles = rows * columns
    steps = tl.cdiv(K, BLOCK_K)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        first = (tile // (GROUP * columns)) * GROUP
        height = min(rows - first, GROUP)
        inside = tile % (GROUP * columns)
        row = (first + inside % height) * BLOCK_M
        column = (inside // height) * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(steps):
            a = a_desc.load([row, step * BLOCK_K])
            b = b_desc.load([column, step * BLOCK_K])
            total = tl.dot(a, b.T, total)
        c_desc.store([row, column], total.to(tl.float16))


DUMPS = {
    "matmul_persistent": dict(
        kernel=matmul_persistent,
        signature=dict(
            a_desc="tensordesc<fp16[128, 64]>",
            b_desc="tensordesc<fp16[128, 64]>",
            c_desc="tensordesc<fp16[128, 128]>",
            M="i32",
            N="i32",
            K="i32",
        ),
        constexprs=dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP=8),
        options=dict(num_warps=4, num_stages=3),
    ),
}
