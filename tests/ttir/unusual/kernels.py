"""Kernels with what few kernels have, for the tests; the dumps beside it are of Triton 3.6.0.

They were written by `ttir` of examples/triton/dump.py, with DUMPS as they stand here.
"""

import triton.language as tl

import triton


@triton.jit
def branches(x_ptr, y_ptr, hits_ptr, total_ptr, n, first, last, BLOCK: tl.constexpr):
    """Sums rows of x that are wanted, counts them, and writes some of them out."""
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(n):
        if i >= first:
            row = tl.load(x_ptr + i * BLOCK + at)
            if i < last:
                tl.store(y_ptr + i * BLOCK + at, row * 2, mask=at < BLOCK - 3)
                total += row
            else:
                tl.atomic_add(hits_ptr, 1)
        else:
            total += 1.0
    tl.store(total_ptr + at, total)


@triton.jit
def skipping(a_desc, b_desc, c_desc, flags_ptr, steps, BLOCK: tl.constexpr):
    """A product over the blocks whose flag is set; each block of A is copied out where it is."""
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(steps):
        if tl.load(flags_ptr + k) != 0:
            a = a_desc.load([0, k * BLOCK])
            b = b_desc.load([k * BLOCK, 0])
            total = tl.dot(a, b, total)
            c_desc.store([0, (k + 1) * BLOCK], a)
    c_desc.store([0, 0], total.to(tl.float16))


@triton.jit
def picking(x_desc, y_desc, sums_desc, rows_ptr, steps, BLOCK: tl.constexpr):
    """Rows of x that an array picks go to others of y, and are added up; elements turned round."""
    turned = BLOCK - 1 - tl.arange(0, BLOCK)
    for k in range(steps):
        rows = tl.load(rows_ptr + k * 32 + tl.arange(0, 32))
        x = x_desc.gather(rows, 16)
        around = tl.broadcast_to(turned[None, :], (32, BLOCK))
        y_desc.scatter(tl.gather(x, around, 1), k * 32 + tl.arange(0, 32), 0)
        sums_desc.atomic_add([0, 0], x)


@triton.jit
def batched(a_ptr, b_ptr, c_ptr, steps, B: tl.constexpr, BLOCK: tl.constexpr):
    """B products at once."""
    i = tl.arange(0, B)[:, None, None]
    at = tl.arange(0, BLOCK)
    row, column = at[None, :, None], at[None, None, :]
    total = tl.zeros((B, BLOCK, BLOCK), dtype=tl.float32)
    for k in range(steps):
        a = tl.load(a_ptr + (i * BLOCK + row) * steps * BLOCK + k * BLOCK + column)
        b = tl.load(b_ptr + (i * steps + k) * BLOCK * BLOCK + row * BLOCK + column)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + (i * BLOCK + row) * BLOCK + column, total)


@triton.jit
def addresses(in_ptrs, out_ptr, n, BLOCK: tl.constexpr):
    """Adds up arrays whose addresses stand in an array, while there are any."""
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    i = 0
    while i < n:
        x = tl.load(in_ptrs + i).to(tl.pointer_type(tl.float16))
        total += tl.load(x + at)
        i += 1
    tl.store(out_ptr + at, total)


ROW, MATRIX = "tensordesc<fp32[1, 64]>", "tensordesc<fp16[64, 64]>"
DUMPS = {
    "branches": dict(
        kernel=branches,
        signature=dict(
            x_ptr="*fp32",
            y_ptr="*fp32",
            hits_ptr="*i32",
            total_ptr="*fp32",
            n="i32",
            first="i32",
            last="i32",
        ),
        constexprs=dict(BLOCK=128),
        undivided=("n", "first", "last"),
        options={},
    ),
    "skipping": dict(
        kernel=skipping,
        signature=dict(a_desc=MATRIX, b_desc=MATRIX, c_desc=MATRIX, flags_ptr="*i32", steps="i32"),
        constexprs=dict(BLOCK=64),
        undivided=("steps",),
        options={},
    ),
    "picking": dict(
        kernel=picking,
        signature=dict(
            x_desc=ROW,
            y_desc=ROW,
            sums_desc="tensordesc<fp32[32, 64]>",
            rows_ptr="*i32",
            steps="i32",
        ),
        constexprs=dict(BLOCK=64),
        undivided=("steps",),
        options={},
    ),
    "batched": dict(
        kernel=batched,
        signature=dict(a_ptr="*fp16", b_ptr="*fp16", c_ptr="*fp32", steps="i32"),
        constexprs=dict(B=4, BLOCK=32),
        undivided=("steps",),
        options={},
    ),
    "addresses": dict(
        kernel=addresses,
        signature=dict(in_ptrs="*i64", out_ptr="*fp32", n="i32"),
        constexprs=dict(BLOCK=64),
        undivided=("n",),
        options={},
    ),
}
