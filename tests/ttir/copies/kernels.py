"""Kernels whose tiles TMA cannot bring, each for another reason; dumps of Triton 3.6.0.

They were written by `ttir` of examples/triton/dump.py, with DUMPS as they stand here.
"""

import triton.language as tl

import triton


@triton.jit
def brought(
    a_ptr,
    b_ptr,
    c_ptr,
    list_ptr,
    s_ptr,
    M,
    K,
    stride_a,
    KIND: tl.constexpr,
    MORE: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """A product whose left factor is brought in one of many ways."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    here = rows
    if KIND == "gathered" or KIND == "columns" or KIND == "ones":  # noqa: PLR1714
        here = tl.load(list_ptr + rows, mask=rows < M, other=0)
    elif KIND == "pages":
        page = tl.load(list_ptr + rows // 16, mask=rows < M, other=0)
        here = page * 16 + rows % 16
    elif KIND == "bounded":
        here = rows + tl.load(list_ptr)
    for i in range(0, K, BK):
        k = i + depth
        if KIND == "rows_apart":
            a_at = a_ptr + here[:, None] * MORE + k[None, :]
        else:
            a_at = a_ptr + here[:, None] * stride_a + k[None, :]
        inside = (rows[:, None] < M) & (k[None, :] < K)
        b = tl.load(b_ptr + k[:, None] * BN + columns[None, :], mask=(k < K)[:, None], other=0.0)
        if KIND == "bounded":
            length = tl.load(list_ptr + 1)
            a = tl.load(a_at, mask=(rows < length)[:, None] & (k < K)[None, :], other=0.0)
        elif KIND == "columns":
            at = a_ptr + here[None, :] * stride_a + k[:, None]
            a = tl.trans(tl.load(at, mask=(rows[None, :] < M) & (k[:, None] < K), other=0.0))
        elif KIND == "volatile":
            page = tl.load(list_ptr)
            at = a_ptr + (page + rows)[:, None] * stride_a + k[None, :]
            a = tl.load(at, mask=inside, other=0.0, volatile=True)
        elif KIND == "ones":
            a = tl.load(a_at, mask=inside, other=1.0)
        else:
            a = tl.load(a_at, mask=inside, other=0.0)
        if KIND == "filled":
            page = tl.load(list_ptr)
            s_at = s_ptr + (page + rows)[:, None] * stride_a + k[None, :]
            a *= tl.load(s_at, mask=(rows[:, None] < M - 9) & (k[None, :] < K), other=2.0)
        total = tl.dot(a, b, total)
        if KIND == "written_beside":
            tl.store(a_at, a * 2, mask=inside)
    if KIND == "written":
        tl.store(a_ptr + rows * stride_a, 7.0, mask=rows < M)
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], total, mask=(rows < M)[:, None])


@triton.jit
def returned(q_ptr, k_ptr, o_ptr, list_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr):
    """Products with a tile that is loaded only where a block has anything to do."""
    if tl.program_id(0) >= tl.load(list_ptr):
        return
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns, depth = tl.arange(0, BLOCK), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + depth[None, :])
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for i in range(n):
        here = tl.load(list_ptr + 1 + i * BLOCK + columns)
        k = tl.load(k_ptr + here[None, :] * D + depth[:, None])
        total = tl.dot(q, k, total)
    tl.store(o_ptr + rows[:, None] * BLOCK + columns[None, :], total)


def brought_as(kind, more=0, **constexprs):
    pointers = dict(a_ptr="*fp16", b_ptr="*fp16", c_ptr="*fp32", list_ptr="*i32", s_ptr="*fp16")
    return dict(
        kernel=brought,
        signature=dict(**pointers, M="i32", K="i32", stride_a="i32"),
        constexprs=dict(KIND=kind, MORE=more, BM=64, BN=64, BK=64) | constexprs,
        options={},
        undivided=("M",),
    )


DUMPS = {
    **{
        kind: brought_as(kind)
        for kind in (
            "gathered", "pages", "bounded", "columns", "filled", "written", "written_beside",
            "volatile", "ones",
        )
    },
    "returned": dict(
        kernel=returned,
        signature=dict(q_ptr="*fp16", k_ptr="*fp16", o_ptr="*fp32", list_ptr="*i32", n="i32"),
        constexprs=dict(D=64, BLOCK=64),
        options={},
        undivided=("n",),
    ),
    "rows_apart_by_8": brought_as("rows_apart", 172),
    "rows_apart_by_4": brought_as("rows_apart", 170),
    "rows_apart_by_2": brought_as("rows_apart", 171),
}  # fmt: skip
