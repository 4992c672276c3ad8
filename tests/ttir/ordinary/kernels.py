"""Ordinary kernels that once failed on the way out; the dumps beside it are of Triton 3.6.0.

They were written by `ttir` of examples/triton/dump.py, with DUMPS as they stand here.
"""

import triton.language as tl

import triton


@triton.jit
def pairs(x_ptr, y_ptr, z_ptr, rows, BLOCK: tl.constexpr):
    """Sums of products of neighbours, and rows whose neighbours change places."""
    total = tl.zeros((BLOCK // 2,), dtype=tl.float32)
    for row in range(rows):
        x = tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK))
        even, odd = tl.split(tl.reshape(x, [BLOCK // 2, 2]))
        total += even * odd
        turned = tl.reshape(tl.join(odd, even), [BLOCK])
        tl.store(z_ptr + row * BLOCK + tl.arange(0, BLOCK), turned)
    tl.store(y_ptr + tl.arange(0, BLOCK // 2), total)


@triton.jit
def halves(x_ptr, y_ptr, BLOCK: tl.constexpr):
    """Sums of neighbours, without a loop."""
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    even, odd = tl.split(tl.reshape(x, [BLOCK // 2, 2]))
    tl.store(y_ptr + tl.arange(0, BLOCK // 2), even + odd)


@triton.jit
def grouped(sizes_ptr, out_ptr, groups, BLOCKS: tl.constexpr):
    """Which group each tile belongs to, tiles being dealt out to blocks."""
    tile = tl.program_id(0)
    last = 0
    for group in range(groups):
        size = tl.load(sizes_ptr + group)
        while tile >= last and tile < last + size:
            tl.store(out_ptr + tile, group)
            tile += BLOCKS
        last = last + size


@triton.jit
def grouped_product(
    a_ptr, b_ptr, c_ptr, sizes_ptr, groups, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):
    """Products of groups of rows with a matrix each: tile by tile, while a group has any left."""
    tile = tl.program_id(0)
    last = 0
    at = tl.arange(0, BLOCK)
    depth = tl.arange(0, BLOCK_K)
    for group in range(groups):
        size = tl.load(sizes_ptr + group)
        while tile >= last and tile < last + size:
            total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
            for k in range(0, K, BLOCK_K):
                a = tl.load(a_ptr + (tile * BLOCK + at[:, None]) * K + k + depth[None, :])
                b = tl.load(b_ptr + (group * K + k + depth[:, None]) * BLOCK + at[None, :])
                total = tl.dot(a, b, total)
            tl.store(c_ptr + (tile * BLOCK + at[:, None]) * BLOCK + at[None, :], total)
            tile += tl.num_programs(0)
        last = last + size


@triton.jit
def product(
    a_ptr,
    b_ptr,
    c_ptr,
    K,
    stride,
    M: tl.constexpr,
    N: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    MOVING: tl.constexpr,
    ADDED: tl.constexpr,
):
    """B by rows or by columns, addresses that move or are worked out, C that is added."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    total = tl.zeros((M, N), dtype=tl.float32)
    a_at = a_ptr + m[:, None] * K + k[None, :]
    if COLUMNS:
        b_at = b_ptr + k[:, None] + n[None, :] * stride
    else:
        b_at = b_ptr + k[:, None] * stride + n[None, :]
    for i in range(0, K, BLOCK):
        if MOVING:
            total = tl.dot(tl.load(a_at), tl.load(b_at), total)
            a_at += BLOCK
            b_at += BLOCK if COLUMNS else BLOCK * stride
        else:
            b = tl.load(b_at + (i if COLUMNS else i * stride))
            total = tl.dot(tl.load(a_at + i), b, total)
    c_at = c_ptr + m[:, None] * N + n[None, :]
    if ADDED:
        total += tl.load(c_at).to(tl.float32)
    tl.store(c_at, total.to(c_ptr.dtype.element_ty))


@triton.jit
def scaled(a_ptr, b_ptr, c_ptr, s_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    """A product whose steps are scaled, each by a number of its own."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    total = tl.zeros((M, N), dtype=tl.float32)
    for i in range(0, K, BLOCK):
        a = tl.load(a_ptr + m[:, None] * K + (i + k)[None, :])
        b = tl.load(b_ptr + (i + k)[:, None] + n[None, :] * K)
        total += tl.dot(a, b) * tl.load(s_ptr + i // BLOCK)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@triton.jit
def carried(x_desc, w_desc, y_desc, begin, steps, BLOCK: tl.constexpr):
    """A product whose tiles are found by offsets that the loop carries, as attention often has."""
    row = begin
    column = 0
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for _ in range(3, steps, 2):
        x = x_desc.load([0, column])
        w = w_desc.load([row, 0])
        total = tl.dot(x, w, total)
        row += BLOCK
        column += BLOCK
    y_desc.store([0, 0], total.to(tl.float16))
    y_desc.store([BLOCK, 0], (total + (row - begin)).to(tl.float16))


@triton.jit
def strips(x_desc, y_desc, strips, steps, BLOCK: tl.constexpr):
    """Sums and largest elements of strips, which are found by an offset around their loops."""
    row = 0
    for _ in range(strips):
        total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        most = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(steps):
            x = x_desc.load([row, k * BLOCK])
            total += x
            most = tl.maximum(most, x)
        y_desc.store([row, 0], (total + most).to(tl.float16))
        row += BLOCK


@triton.jit
def heads(x_ptr, w_ptr, y_ptr, N, H, BLOCK: tl.constexpr):
    """A product for each head of each batch, whose descriptors begin where the head does."""
    batch = tl.program_id(1) // H
    head = tl.program_id(1) % H
    start = tl.program_id(0) * BLOCK
    at = batch.to(tl.int64) * (H * N * BLOCK) + head * N * BLOCK
    x_desc = tl.make_tensor_descriptor(x_ptr + at, [N, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    y_desc = tl.make_tensor_descriptor(y_ptr + at, [N, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    w_desc = tl.make_tensor_descriptor(
        w_ptr + tl.program_id(1) * N * BLOCK, [N, BLOCK], [BLOCK, 1], [BLOCK, BLOCK]
    )
    x = x_desc.load([start, 0])
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for i in range(0, N, BLOCK):
        w = w_desc.load([i, 0])
        total += tl.dot(x, w.T)
    y_desc.store([start, 0], total.to(tl.float16))


@triton.jit
def dropped(x_ptr, keep_ptr, y_ptr, z_ptr, seed, n, BLOCK: tl.constexpr):
    """Numbers that are kept where a truth value says so, and where a hash of their place does."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    keep = tl.load(keep_ptr + at, mask=inside)
    tl.store(y_ptr + at, tl.where(keep, x * 2, 0.0), mask=inside)
    tl.store(z_ptr + at, tl.rand(seed, at), mask=inside)


@triton.jit
def marked(x_ptr, y_ptr, rows, BLOCK: tl.constexpr):
    """Numbers that are no number, or beyond all, everywhere in a tile."""
    none = tl.full((BLOCK,), float("nan"), tl.float16)
    for row in range(rows):
        x = tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK))
        y = tl.where(x > 1, float("inf"), tl.where(x < -1, float("-inf"), x))
        tl.store(y_ptr + row * BLOCK + tl.arange(0, BLOCK), tl.where(x == 0, none, y))


@triton.jit
def layers(x_ptr, w_ptr, y_ptr, layer, M, N, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    """A product of a layer of three-dimensional arrays, whose tiles have a leading 1."""
    x_desc = tl.make_tensor_descriptor(x_ptr, [9, M, K], [M * K, K, 1], [1, BLOCK, BLOCK_K])
    w_desc = tl.make_tensor_descriptor(w_ptr, [9, N, K], [N * K, K, 1], [1, BLOCK, BLOCK_K])
    y_desc = tl.make_tensor_descriptor(y_ptr, [9, M, N], [M * N, N, 1], [1, BLOCK, BLOCK])
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = x_desc.load([layer, row, k]).reshape(BLOCK, BLOCK_K)
        w = w_desc.load([layer, column, k]).reshape(BLOCK, BLOCK_K)
        total = tl.dot(x, w.T, total)
    y_desc.store([layer, row, column], total.to(tl.float16).reshape(1, BLOCK, BLOCK))


@triton.jit
def folded(x_ptr, w_ptr, y_ptr, M, N, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    """A product whose rows are loaded as two halves of the array, one behind the other."""
    x_desc = tl.make_tensor_descriptor(
        x_ptr, [2, M // 2, K], [M // 2 * K, K, 1], [2, BLOCK // 2, BLOCK_K]
    )
    w_desc = tl.make_tensor_descriptor(w_ptr, [N, K], [K, 1], [BLOCK, BLOCK_K])
    y_desc = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = x_desc.load([0, tl.program_id(0) * BLOCK // 2, k]).reshape(BLOCK, BLOCK_K)
        total = tl.dot(x, w_desc.load([0, k]).T, total)
    y_desc.store([tl.program_id(0) * BLOCK, 0], total.to(tl.float16))


@triton.jit
def remade(x_ptr, w_ptr, y_ptr, steps, count, M: tl.constexpr, BLOCK: tl.constexpr):
    """A product over several arrays: a branch of the loop makes the descriptors of each."""
    depth = steps * BLOCK
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, depth], [depth, 1], [M, BLOCK])
    w_desc = tl.make_tensor_descriptor(w_ptr, [M, depth], [depth, 1], [M, BLOCK])
    total = tl.zeros((M, M), dtype=tl.float32)
    for i in range(count * steps):
        if i % steps == 0:
            x_desc = tl.make_tensor_descriptor(
                x_ptr + i // steps * M * depth, [M, depth], [depth, 1], [M, BLOCK]
            )
            w_desc = tl.make_tensor_descriptor(
                w_ptr + i // steps * M * depth, [M, depth], [depth, 1], [M, BLOCK]
            )
        k = i % steps * BLOCK
        total = tl.dot(x_desc.load([0, k]), w_desc.load([0, k]).T, total)
    m = tl.arange(0, M)
    tl.store(y_ptr + m[:, None] * M + m[None, :], total)


@triton.jit
def centred(x_ptr, w_ptr, m_ptr, y_ptr, N, BLOCK: tl.constexpr, COLUMNS: tl.constexpr):
    """Rows less what stands beside each of them, which the loop spreads, but does not load."""
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + rows[:, None] * BLOCK + rows[None, :])
    m = tl.load(m_ptr + rows)[:, None]
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for n in range(0, N, COLUMNS):
        w = tl.load(w_ptr + (n + columns[:, None]) * BLOCK + rows[None, :])
        p = tl.exp2(tl.dot(x, w.T) - m)
        total = tl.dot(p.to(tl.float16), w, total)
    tl.store(y_ptr + rows[:, None] * BLOCK + rows[None, :], total)


@triton.jit
def picked(x_ptr, at_ptr, y_ptr, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of an array that a list names, which TMA gathers."""
    x_desc = tl.make_tensor_descriptor(x_ptr, [N, BLOCK], [BLOCK, 1], [1, BLOCK])
    rows = tl.arange(0, ROWS)
    x = x_desc.gather(tl.load(at_ptr + rows), 0)
    tl.store(y_ptr + rows[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :], x)


@triton.jit
def picked_product(x_ptr, at_ptr, w_ptr, y_ptr, N, K, M: tl.constexpr, BLOCK: tl.constexpr):
    """A product of gathered rows."""
    x_desc = tl.make_tensor_descriptor(x_ptr, [N, K], [K, 1], [1, BLOCK])
    w_desc = tl.make_tensor_descriptor(w_ptr, [M, K], [K, 1], [M, BLOCK])
    m = tl.arange(0, M)
    at = tl.load(at_ptr + m)
    total = tl.zeros((M, M), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        total = tl.dot(x_desc.gather(at, k), w_desc.load([0, k]).T, total)
    tl.store(y_ptr + m[:, None] * M + m[None, :], total)


@triton.jit
def running(x_ptr, y_ptr, BLOCK: tl.constexpr):
    """Sums on the way."""
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.cumsum(tl.load(x_ptr + at), 0))


@triton.jit
def in_place(x_ptr, n, BLOCK: tl.constexpr):
    """Doubled where it stands: each step is at a tile of its own, and adds what began as zeros."""
    total = tl.sum(tl.zeros((BLOCK,), tl.float32))
    for at in range(0, n, BLOCK):
        places = x_ptr + at + tl.arange(0, BLOCK)
        x = tl.load(places)
        tl.store(places, x * 2.0 + total)
        total += tl.sum(x)


@triton.jit
def single(x_ptr, at_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Rows summed whose numbers are read one at a time, each as a tile of one element."""
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(n):
        row = tl.load(at_ptr + i + tl.arange(0, 1))
        x = tl.load(x_ptr + row[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :])
        total += tl.sum(x, axis=0)
    tl.store(y_ptr + tl.arange(0, BLOCK), total)
    tl.store(y_ptr + BLOCK + tl.arange(0, 1), tl.sum(total[None, :], axis=1))


@triton.jit
def branched(x_ptr, y_ptr, n, first, BLOCK: tl.constexpr):
    """Products that add to nothing, in loops of two branches."""
    square = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + square)
    if first > 0:
        for i in range(n):
            y = tl.load(y_ptr + i * BLOCK * BLOCK + square)
            tl.store(y_ptr + i * BLOCK * BLOCK + square, tl.dot(x, y).to(tl.float16))
    if first < 2:
        for i in range(n):
            y = tl.load(y_ptr + i * BLOCK * BLOCK + square)
            tl.store(y_ptr + i * BLOCK * BLOCK + square, tl.dot(y, x).to(tl.float16))


HALVES = dict(x_ptr="*fp16", w_ptr="*fp16", y_ptr="*fp16")
MATRIX = "tensordesc<fp16[64, 64]>"
PRODUCT = dict(M=128, N=128, BLOCK=64, COLUMNS=False, MOVING=False, ADDED=False)


def product_of(element, result, **constexprs):
    pointers = dict(a_ptr=f"*{element}", b_ptr=f"*{element}", c_ptr=f"*{result}")
    return dict(
        kernel=product,
        signature=dict(**pointers, K="i32", stride="i32"),
        constexprs={**PRODUCT, **constexprs},
        options={},
    )


DUMPS = {
    "pairs": dict(
        kernel=pairs,
        signature=dict(x_ptr="*fp32", y_ptr="*fp32", z_ptr="*fp32", rows="i32"),
        constexprs=dict(BLOCK=256),
        undivided=("rows",),
        options={},
    ),
    "halves": dict(
        kernel=halves,
        signature=dict(x_ptr="*fp32", y_ptr="*fp32"),
        constexprs=dict(BLOCK=1024),
        options={},
    ),
    "grouped": dict(
        kernel=grouped,
        signature=dict(sizes_ptr="*i32", out_ptr="*i32", groups="i32"),
        constexprs=dict(BLOCKS=4),
        undivided=("groups",),
        options={},
    ),
    "grouped_product": dict(
        kernel=grouped_product,
        signature=dict(
            a_ptr="*fp16", b_ptr="*fp16", c_ptr="*fp32", sizes_ptr="*i32", groups="i32", K="i32"
        ),
        constexprs=dict(BLOCK=64, BLOCK_K=32),
        undivided=("groups",),
        options={},
    ),
    "product_columns": product_of("fp16", "fp16", COLUMNS=True),
    "product_columns_moving": product_of("fp16", "fp16", COLUMNS=True, MOVING=True),
    "product_added": product_of("fp16", "fp16", ADDED=True),
    "product_columns_added": product_of("fp16", "fp16", COLUMNS=True, MOVING=True, ADDED=True),
    "product_8": product_of("fp8e4nv", "fp32", N=64),
    "product_8_columns": product_of("fp8e4nv", "fp32", N=64, COLUMNS=True),
    "scaled": dict(
        kernel=scaled,
        signature=dict(a_ptr="*fp16", b_ptr="*fp16", c_ptr="*fp32", s_ptr="*fp32", K="i32"),
        constexprs=dict(M=128, N=128, BLOCK=64),
        options={},
    ),
    "carried": dict(
        kernel=carried,
        signature=dict(x_desc=MATRIX, w_desc=MATRIX, y_desc=MATRIX, begin="i32", steps="i32"),
        constexprs=dict(BLOCK=64),
        undivided=("begin", "steps"),
        options={},
    ),
    "strips": dict(
        kernel=strips,
        signature=dict(x_desc=MATRIX, y_desc=MATRIX, strips="i32", steps="i32"),
        constexprs=dict(BLOCK=64),
        undivided=("strips", "steps"),
        options={},
    ),
    "heads": dict(
        kernel=heads,
        signature=dict(x_ptr="*fp16", w_ptr="*fp16", y_ptr="*fp16", N="i32", H="i32"),
        constexprs=dict(BLOCK=64),
        undivided=("H",),
        options={},
    ),
    "dropped": dict(
        kernel=dropped,
        signature=dict(
            x_ptr="*fp32", keep_ptr="*i1", y_ptr="*fp32", z_ptr="*fp32", seed="i32", n="i32"
        ),
        constexprs=dict(BLOCK=256),
        undivided=("seed", "n"),
        options={},
    ),
    "marked": dict(
        kernel=marked,
        signature=dict(x_ptr="*fp16", y_ptr="*fp16", rows="i32"),
        constexprs=dict(BLOCK=256),
        undivided=("rows",),
        options={},
    ),
    "layers": dict(
        kernel=layers,
        signature=dict(HALVES, layer="i32", M="i32", N="i32", K="i32"),
        constexprs=dict(BLOCK=128, BLOCK_K=64),
        undivided=("layer",),
        options={},
    ),
    "folded": dict(
        kernel=folded,
        signature=dict(HALVES, M="i32", N="i32", K="i32"),
        constexprs=dict(BLOCK=128, BLOCK_K=64),
        options={},
    ),
    "remade": dict(
        kernel=remade,
        signature=dict(HALVES, y_ptr="*fp32", steps="i32", count="i32"),
        constexprs=dict(M=128, BLOCK=64),
        undivided=("steps", "count"),
        options={},
    ),
    "centred": dict(
        kernel=centred,
        signature=dict(HALVES, m_ptr="*fp32", y_ptr="*fp32", N="i32"),
        constexprs=dict(BLOCK=128, COLUMNS=16),
        options={},
    ),
    "picked": dict(
        kernel=picked,
        signature=dict(x_ptr="*fp16", at_ptr="*i32", y_ptr="*fp16", N="i32"),
        constexprs=dict(ROWS=32, BLOCK=64),
        options={},
    ),
    "picked_product": dict(
        kernel=picked_product,
        signature=dict(
            x_ptr="*fp16", at_ptr="*i32", w_ptr="*fp16", y_ptr="*fp32", N="i32", K="i32"
        ),
        constexprs=dict(M=128, BLOCK=64),
        options={},
    ),
    "running": dict(
        kernel=running,
        signature=dict(x_ptr="*i32", y_ptr="*i32"),
        constexprs=dict(BLOCK=64),
        options={},
    ),
    "in_place": dict(
        kernel=in_place,
        signature=dict(x_ptr="*fp32", n="i32"),
        constexprs=dict(BLOCK=256),
        options={},
    ),
    "single": dict(
        kernel=single,
        signature=dict(x_ptr="*fp32", at_ptr="*i32", y_ptr="*fp32", n="i32"),
        constexprs=dict(BLOCK=128),
        undivided=("n",),
        options={},
    ),
    "branched": dict(
        kernel=branched,
        signature=dict(x_ptr="*fp16", y_ptr="*fp16", n="i32", first="i32"),
        constexprs=dict(BLOCK=64),
        undivided=("n", "first"),
        options={},
    ),
}
