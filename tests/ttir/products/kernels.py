"""Kernels whose products are not for warpgroups; the dumps beside it are of Triton 3.6.0.

They were written by `ttir` of examples/triton/dump.py, with DUMPS as they stand here.
"""

import triton.language as tl

import triton


@triton.jit
def few_rows(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, TURNED: tl.constexpr, PRECISION: tl.constexpr, SUM: tl.constexpr,
    FEW: tl.constexpr,
):  # fmt: skip
    """A product whose tiles come by TMA; the right factor as it is, or transposed."""
    row, column = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    if TURNED:
        b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    else:
        b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=SUM)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([row, k])
        b = b_desc.load([column, k]).T if TURNED else b_desc.load([k, column])
        total = tl.dot(
            a, b, total, input_precision=PRECISION, max_num_imprecise_acc=FEW, out_dtype=SUM
        )
    rows = row + tl.arange(0, BLOCK_M)[:, None]
    columns = column + tl.arange(0, BLOCK_N)[None, :]
    tl.store(c_ptr + rows * N + columns, total, mask=(rows < M) & (columns < N))


@triton.jit
def decode(
    q_ptr, k_ptr, v_ptr, pages_ptr, lengths_ptr, o_ptr, scale, HEADS: tl.constexpr,
    D: tl.constexpr, PAGE: tl.constexpr, PAGES: tl.constexpr,
):  # fmt: skip
    """Attention of the heads of one query, to keys and values that lie in pages."""
    batch = tl.program_id(0)
    length = tl.load(lengths_ptr + batch)
    heads, d = tl.arange(0, HEADS), tl.arange(0, D)
    q = tl.load(q_ptr + (batch * HEADS + heads)[:, None] * D + d[None, :])
    total = tl.zeros((HEADS, D), dtype=tl.float32)
    weight = tl.zeros((HEADS,), dtype=tl.float32)
    highest = tl.full((HEADS,), float("-inf"), dtype=tl.float32)
    for start in range(0, length, PAGE):
        at = start + tl.arange(0, PAGE)
        page = tl.load(pages_ptr + batch * PAGES + start // PAGE)
        rows = page * PAGE + tl.arange(0, PAGE)
        there = at < length
        k = tl.load(k_ptr + rows[None, :] * D + d[:, None], mask=there[None, :], other=0.0)
        s = tl.where(there[None, :], tl.dot(q, k) * scale, float("-inf"))
        highest_next = tl.maximum(highest, tl.max(s, 1))
        shrink = tl.exp(highest - highest_next)
        p = tl.exp(s - highest_next[:, None])
        v = tl.load(v_ptr + rows[:, None] * D + d[None, :], mask=there[:, None], other=0.0)
        total = total * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        weight = weight * shrink + tl.sum(p, 1)
        highest = highest_next
    where = (batch * HEADS + heads)[:, None] * D + d[None, :]
    tl.store(o_ptr + where, total / weight[:, None])


@triton.jit
def batches(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr, N: tl.constexpr):
    """Several products of small matrices at a time."""
    b = tl.arange(0, B)[:, None, None]
    i, j = tl.arange(0, N)[None, :, None], tl.arange(0, N)[None, None, :]
    total = tl.zeros((B, N, N), dtype=tl.float32)
    for k in range(0, K, N):
        left = tl.load(a_ptr + (b * N + i) * K + (k + j))
        right = tl.load(b_ptr + (b * K + k + i) * N + j)
        total += tl.dot(left, right)
    tl.store(c_ptr + (b * N + i) * N + j, total)


@triton.jit
def inverse(a_ptr, x_ptr, steps, N: tl.constexpr):
    """Inverses of small matrices by Newton's method, of which all bits count."""
    block = tl.program_id(0) * N * N
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + block + i * N + j)
    x = tl.load(x_ptr + block + i * N + j)
    for _ in range(steps):
        x = 2 * x - tl.dot(x, tl.dot(a, x, input_precision="ieee"), input_precision="ieee")
    tl.store(x_ptr + block + i * N + j, x)


@triton.jit
def counted(a_ptr, x_ptr, few, many, N: tl.constexpr):
    """Powers of a small matrix: loops one after the other that count by numbers of two types."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i * N + j)
    for step in range(few):
        x = tl.dot(tl.load(a_ptr + step * N * N + i * N + j), x.to(tl.float16))
    for step in range(many):
        x = tl.dot(tl.load(a_ptr + step * N * N + i * N + j), x.to(tl.float16))
    tl.store(x_ptr + i * N + j, x)


def _product(type, sum, rows, columns, depth, turned, warps=4, precision="tf32", few=None):
    words = {"fp32": tl.float32, "fp16": tl.float16, "i32": tl.int32}
    return dict(
        kernel=few_rows,
        signature=dict(
            a_ptr=f"*{type}", b_ptr=f"*{type}", c_ptr=f"*{sum}", M="i32", N="i32", K="i32"
        ),
        constexprs=dict(
            BLOCK_M=rows, BLOCK_N=columns, BLOCK_K=depth, TURNED=turned,
            PRECISION=precision, SUM=words[sum], FEW=few,
        ),
        options=dict(num_warps=warps),
    )  # fmt: skip


DUMPS = {
    "rows_16_f16": _product("fp16", "fp32", 16, 64, 64, False),
    "rows_8_f16": _product("fp16", "fp32", 8, 64, 64, False),
    "rows_32_bf16": _product("bf16", "fp32", 32, 128, 64, True, 8),
    "rows_16_f16_sum": _product("fp16", "fp16", 16, 64, 64, False, 2),
    "rows_32_tf32": _product("fp32", "fp32", 32, 64, 32, False),
    "rows_16_i8": _product("i8", "i32", 16, 64, 64, True, 1),
    "rows_64_i8": _product("i8", "i32", 64, 128, 128, True),
    "rows_64_i8_across": _product("i8", "i32", 64, 64, 64, False),
    "rows_64_tf32": _product("fp32", "fp32", 64, 128, 32, True),
    "rows_16_e4m3": _product("fp8e4nv", "fp32", 16, 64, 64, True),
    "rows_16_e5m2": _product("fp8e5", "fp32", 16, 32, 64, False),
    "rows_64_e4m3": _product("fp8e4nv", "fp32", 64, 128, 128, True),
    "rows_64_e4m3_in_128": _product("fp8e4nv", "fp32", 64, 128, 128, True, few=128),
    "rows_64_e4m3_in_32": _product("fp8e4nv", "fp32", 64, 64, 128, True, few=32),
    "rows_32_tf32x3": _product("fp32", "fp32", 32, 32, 32, False, precision="tf32x3"),
    "decode": dict(
        kernel=decode,
        signature=dict(
            q_ptr="*fp16", k_ptr="*fp16", v_ptr="*fp16", pages_ptr="*i32", lengths_ptr="*i32",
            o_ptr="*fp32", scale="fp32",
        ),
        constexprs=dict(HEADS=16, D=64, PAGE=32, PAGES=8),
        options={},
    ),
    "batches": dict(
        kernel=batches,
        signature=dict(a_ptr="*fp16", b_ptr="*fp16", c_ptr="*fp32", K="i32"),
        constexprs=dict(B=4, N=16),
        options={},
    ),
    "counted": dict(
        kernel=counted,
        signature=dict(a_ptr="*fp16", x_ptr="*fp32", few="i32", many="i64"),
        constexprs=dict(N=16),
        undivided=("few", "many"),
        options={},
    ),
    "inverse": dict(
        kernel=inverse,
        signature=dict(a_ptr="*fp32", x_ptr="*fp32", steps="i32"),
        constexprs=dict(N=16),
        undivided=("steps",),
        options={},
    ),
}  # fmt: skip
