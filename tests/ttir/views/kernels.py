"""Kernels that load by addresses, each in a way that says whether TMA may; dumps of Triton 3.6.0.

They were written by `ttir` of examples/triton/dump.py, with DUMPS as they stand here.
"""

import triton.language as tl

import triton


@triton.jit
def asked(
    a_ptr,
    b_ptr,
    c_ptr,
    s_ptr,
    M,
    N,
    K,
    stride_a,
    stride_h,
    KIND: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """A product whose left factor is asked for in one of many ways."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    stored = (rows < M)[:, None]
    head = tl.program_id(1)
    if KIND == "after_atomic":
        tl.atomic_add(s_ptr, 1)
    for i in range(0, K, BK):
        k = i + depth
        a_at = a_ptr + rows[:, None] * stride_a + k[None, :]
        b_at = b_ptr + k[:, None] * BN + columns[None, :]
        inside = (rows[:, None] < M) & (k[None, :] < K)
        b = tl.load(b_at, mask=(k < K)[:, None], other=0.0)
        if KIND == "exact" or KIND == "after_atomic" or KIND == "written":  # noqa: PLR1714
            a = tl.load(a_at, mask=inside, other=0.0)
        elif KIND == "no_other":
            a = tl.load(a_at, mask=inside)
        elif KIND == "volatile":
            a = tl.load(a_at, mask=inside, other=0.0, volatile=True)
        elif KIND == "ones":
            a = tl.load(a_at, mask=inside, other=1.0)
        elif KIND == "linear":
            a = tl.load(a_at, mask=rows[:, None] * K + k[None, :] < M * K - 40, other=0.0)
        elif KIND == "from_8":
            a = tl.load(a_at, mask=inside & (k >= 8)[None, :], other=0.0)
        elif KIND == "from_3":
            a = tl.load(a_at, mask=inside & (k >= 3)[None, :], other=0.0)
        elif KIND == "loaded":
            a = tl.load(a_at, mask=inside & (rows < tl.load(s_ptr))[:, None], other=0.0)
        elif KIND == "shifted":
            above = rows - 1
            mask = (above[:, None] < M) & (k[None, :] < K)
            a = tl.load(a_at - stride_a, mask=mask, other=0.0)
        elif KIND == "shifted_from_0":
            above = rows - 1
            mask = (above[:, None] >= 0) & (above[:, None] < M) & (k[None, :] < K)
            a = tl.load(a_at - stride_a, mask=mask, other=0.0)
        elif KIND == "other_index":
            mask = (rows[:, None] < M) & (k[None, :] < K)
            a = tl.load(a_at + (M - 1 - 2 * rows[:, None]) * stride_a, mask=mask, other=0.0)
        elif KIND == "wrapped" or KIND == "wrapped_stored":  # noqa: PLR1714
            a_at = a_ptr + (rows % M)[:, None] * stride_a + k[None, :]
            a = tl.load(a_at, mask=(k < K)[None, :], other=0.0)
        elif KIND == "clamped":
            a_at = a_ptr + tl.where(rows < M, rows, 0)[:, None] * stride_a + k[None, :]
            a = tl.load(a_at, mask=(k < K)[None, :], other=0.0)
        elif KIND == "clamped_masked" or KIND == "clamped_short":  # noqa: PLR1714
            below = rows < M if KIND == "clamped_masked" else rows < M + 3
            a_at = a_ptr + tl.where(rows < M, rows, 0)[:, None] * stride_a + k[None, :]
            a = tl.load(a_at, mask=below[:, None] & (k < K)[None, :], other=0.0)
        elif KIND == "wrapped_depth":
            a = tl.load(a_ptr + rows[:, None] * stride_a + (k % K)[None, :])
        elif KIND == "repeated":
            a = tl.load(a_ptr + 0 * rows[:, None] + k[None, :], mask=(k < K)[None, :], other=0.0)
        elif KIND == "heads":
            a = tl.load(a_at + head.to(tl.int64) * stride_h, mask=inside, other=0.0)
        elif KIND == "branch":
            a = tl.zeros((BM, BK), dtype=tl.float16)
            if i < tl.load(s_ptr):
                a = tl.load(a_at, mask=inside, other=0.0)
        elif KIND == "branch_unbounded":
            a = tl.zeros((BM, BK), dtype=tl.float16)
            if i < tl.load(s_ptr):
                a = tl.load(a_at, mask=(rows < M)[:, None], other=0.0)
        elif KIND == "turned":
            a_at = a_ptr + rows[:, None] + k[None, :] * stride_a
            a = tl.load(a_at, mask=inside, other=0.0)
        total = tl.dot(a, b, total)
        if KIND == "written":
            tl.store(s_ptr + tl.arange(0, BM), tl.sum(total, 1).to(tl.int32))
    if KIND == "wrapped_stored" or KIND == "clamped_masked" or KIND == "clamped_short":  # noqa: PLR1714
        stored = (rows < M + 3)[:, None]
    if KIND == "written":
        tl.store(a_ptr + rows * stride_a, tl.sum(total, 1).to(tl.float16), mask=rows < M)
    c_at = c_ptr + (head * (M + 3) + rows[:, None]) * BN + columns[None, :]
    tl.store(c_at, total, mask=stored & (columns < N)[None, :])


@triton.jit
def paged(q_ptr, k_ptr, pages_ptr, o_ptr, length, stride_page, D: tl.constexpr, PAGE: tl.constexpr):
    """Sums of products with rows that are found page by page."""
    rows, columns, at = tl.arange(0, 64), tl.arange(0, D), tl.arange(0, PAGE)
    q = tl.load(q_ptr + rows[:, None] * D + columns[None, :])
    total = tl.zeros((64, PAGE), dtype=tl.float32)
    for i in range(tl.cdiv(length, PAGE)):
        page = tl.load(pages_ptr + tl.program_id(0) * 8 + i)
        k = tl.load(k_ptr + page * stride_page + at[:, None] * D + columns[None, :])
        scores = tl.dot(q, k.T)
        total += tl.where((i * PAGE + at < length)[None, :], scores, 0.0)
    o_at = o_ptr + (tl.program_id(0) * 64 + rows[:, None]) * PAGE + at[None, :]
    tl.store(o_at, total)


@triton.jit
def listed(q_ptr, k_ptr, blocks_ptr, o_ptr, length, D: tl.constexpr, BLOCK: tl.constexpr):
    """Sums of products with blocks that a list names: where they are, and which rows count."""
    rows, columns, at = tl.arange(0, 128), tl.arange(0, D), tl.arange(0, BLOCK)
    q = tl.load(q_ptr + rows[:, None] * D + columns[None, :])
    total = tl.zeros((128, BLOCK), dtype=tl.float32)
    for i in range(tl.load(blocks_ptr)):
        block = tl.load(blocks_ptr + 1 + i)
        k = tl.load(k_ptr + (block * BLOCK + at[:, None]) * D + columns[None, :])
        scores = tl.dot(q, k.T)
        total += tl.where((block * BLOCK + at < length)[None, :], scores, 0.0)
    tl.store(o_ptr + rows[:, None] * BLOCK + at[None, :], total)


@triton.jit
def sequences(x_ptr, w_ptr, starts_ptr, y_ptr, K, BM: tl.constexpr, BK: tl.constexpr):
    """Products of rows that lie where a list says: sequences of one after the other."""
    first = tl.load(starts_ptr + tl.program_id(1))
    last = tl.load(starts_ptr + tl.program_id(1) + 1)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns, depth = tl.arange(0, 64), tl.arange(0, BK)
    total = tl.zeros((BM, 64), dtype=tl.float32)
    for i in range(0, K, BK):
        k = i + depth
        w = tl.load(w_ptr + k[:, None] * 64 + columns[None, :], mask=(k < K)[:, None], other=0.0)
        inside = (rows < last - first)[:, None] & (k < K)[None, :]
        x = tl.load(x_ptr + (first + rows)[:, None] * K + k[None, :], mask=inside, other=0.0)
        total = tl.dot(x, w, total)
    y_at = y_ptr + (first + rows)[:, None] * 64 + columns[None, :]
    tl.store(y_at, total, mask=(rows < last - first)[:, None])


def asked_of(kind, **constexprs):
    numbers = ("M", "N", "K", "stride_a", "stride_h")
    pointers = dict(a_ptr="*fp16", b_ptr="*fp16", c_ptr="*fp32", s_ptr="*i32")
    return dict(
        kernel=asked,
        signature=dict(**pointers, **dict.fromkeys(numbers, "i32")),
        constexprs=dict(KIND=kind, BM=64, BN=64, BK=64) | constexprs,
        options={},
        undivided=("M", "N", "K"),
    )


KINDS = (
    "exact", "no_other", "ones", "linear", "from_8", "from_3", "loaded", "shifted",
    "shifted_from_0", "other_index", "wrapped", "wrapped_stored", "clamped", "clamped_masked",
    "clamped_short", "wrapped_depth", "repeated", "heads", "branch", "branch_unbounded", "turned",
    "volatile", "after_atomic", "written",
)  # fmt: skip

DUMPS = {
    **{kind: asked_of(kind) for kind in KINDS},
    "long_rows": asked_of("exact", BK=512, BN=16),
    "paged": dict(
        kernel=paged,
        signature=dict(
            q_ptr="*fp16", k_ptr="*fp16", pages_ptr="*i32", o_ptr="*fp32", length="i32",
            stride_page="i32",
        ),
        constexprs=dict(D=64, PAGE=64),
        options={},
        undivided=("length",),
    ),
    "listed": dict(
        kernel=listed,
        signature=dict(
            q_ptr="*fp16", k_ptr="*fp16", blocks_ptr="*i32", o_ptr="*fp32", length="i32"
        ),
        constexprs=dict(D=64, BLOCK=64),
        options={},
        undivided=("length",),
    ),
    "sequences": dict(
        kernel=sequences,
        signature=dict(
            x_ptr="*fp16", w_ptr="*fp16", starts_ptr="*i32", y_ptr="*fp32", K="i32"
        ),
        constexprs=dict(BM=64, BK=64),
        options={},
    ),
}  # fmt: skip
