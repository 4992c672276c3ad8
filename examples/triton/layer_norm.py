"""Layer normalization: a block a row, which it goes over twice, BLOCK columns at a time."""

import triton.language as tl

import triton


@triton.jit
def layer_norm(
    x_ptr,
    y_ptr,
    gamma_ptr,
    beta_ptr,
    mean_ptr,
    rstd_ptr,
    stride,
    columns,
    epsilon,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    piece = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + piece
        x = tl.load(x_ptr + at, mask=at < columns, other=0.0).to(tl.float32)
        sums += x
        squares += x * x
    mean = tl.sum(sums, 0) / columns
    rstd = tl.rsqrt(tl.sum(squares, 0) / columns - mean * mean + epsilon)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, columns, BLOCK):
        at = start + piece
        inside = at < columns
        x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        gamma = tl.load(gamma_ptr + at, mask=inside, other=0.0)
        beta = tl.load(beta_ptr + at, mask=inside, other=0.0)
        y = (x - mean) * rstd * gamma + beta
        tl.store(y_ptr + at, y.to(tl.float16), mask=inside)


DUMPS = {
    "layer_norm": dict(
        kernel=layer_norm,
        signature=dict(
            x_ptr="*fp16",
            y_ptr="*fp16",
            gamma_ptr="*fp32",
            beta_ptr="*fp32",
            mean_ptr="*fp32",
            rstd_ptr="*fp32",
            stride="i32",
            columns="i32",
            epsilon="fp32",
        ),
        constexprs=dict(BLOCK=1024),
        options=dict(num_warps=4, num_stages=2),
        undivided=("columns",),
    ),
}
