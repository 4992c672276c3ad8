"""Kernels of Triton's language in loops; `NAME.ttir` is `k_NAME` by Triton 3.6, B = 128."""

import triton.language as tl
from triton.language.extra import libdevice

import triton


@triton.jit
def k_split(x, y, N, B: tl.constexpr):
    for i in range(0, N, B):
        o = i + tl.arange(0, B)
        v = tl.load(x + 2 * i + tl.arange(0, 2 * B))
        a, b = tl.split(tl.reshape(v, (B, 2)))
        tl.store(y + o, a * b)


@triton.jit
def k_join(x, y, N, B: tl.constexpr):
    for i in range(0, N, B):
        o = i + tl.arange(0, B)
        v = tl.load(x + o)
        j = tl.interleave(v, -v)
        tl.store(y + 2 * i + tl.arange(0, 2 * B), j)


@triton.jit
def k_gather(x, y, N, B: tl.constexpr):
    r = tl.arange(0, B)
    for i in range(0, N, B):
        v = tl.load(x + i + r)
        tl.store(y + i + r, tl.gather(v, (r + 1) % B, 0))


@triton.jit
def k_cumsum(x, y, N, B: tl.constexpr):
    c = 0.0
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        s = tl.cumsum(v, 0)
        tl.store(y + i + tl.arange(0, B), s + c)
        c += tl.sum(v)


@triton.jit
def _first_order(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def k_scan2(x, y, N, B: tl.constexpr):
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        a, b = tl.associative_scan((v, v * 0.5), 0, _first_order, reverse=True)
        tl.store(y + i + tl.arange(0, B), b)


@triton.jit
def _mul(a, b):
    return a * b


@triton.jit
def _absmax(a, b):
    return tl.maximum(tl.abs(a), tl.abs(b))


@triton.jit
def k_prod(x, y, N, B: tl.constexpr):
    p = 1.0
    q = 0.0
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        p *= tl.reduce(v, 0, _mul)
        q += tl.reduce(v, 0, _absmax)
    tl.store(y, p)
    tl.store(y + 1, q)


@triton.jit
def k_argmax(x, y, N, B: tl.constexpr):
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        tl.store(y + i, tl.argmax(v, 0).to(tl.float32))
        tl.store(y + i + 1, tl.argmin(v, 0).to(tl.float32))


@triton.jit
def k_welford(x, y, N, B: tl.constexpr):
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        s, ss = tl.reduce((v, v * v), 0, _sum2)
        tl.store(y + i, s)
        tl.store(y + i + 1, ss)


@triton.jit
def _sum2(a, b, c, d):
    return a + c, b + d


@triton.jit
def k_bits(x, y, N, B: tl.constexpr):
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        u = v.to(tl.int32, bitcast=True)
        w = (u >> 3) ^ (u << 5) | (u & 255)
        w = tl.xor_sum(w, 0) + w
        tl.store(y + i + tl.arange(0, B), (w & 0x3F7FFFFF).to(tl.float32, bitcast=True))


@triton.jit
def k_while(x, y, N, B: tl.constexpr):
    i = 0
    acc = tl.zeros((B,), tl.float32)
    while i < N:
        acc += tl.load(x + i + tl.arange(0, B))
        i += B
    tl.store(y + tl.arange(0, B), acc)


@triton.jit
def k_return(x, y, N, B: tl.constexpr):
    p = tl.program_id(0)
    if p * B >= N:
        return
    acc = tl.zeros((B,), tl.float32)
    for i in range(0, N, B):
        acc += tl.load(x + i + tl.arange(0, B))
    if p == 1:
        tl.store(y + tl.arange(0, B), acc)
        return
    tl.store(y + p * B + tl.arange(0, B), acc * 2)


@triton.jit
def k_nested(x, y, N, B: tl.constexpr):
    t = 0.0
    m = 0.0
    for i in range(0, N, B):
        acc = tl.zeros((B,), tl.float32)
        for j in range(0, i + B, B):
            acc += tl.load(x + j + tl.arange(0, B))
            m += 1.0
        t += tl.sum(acc)
    tl.store(y, t)
    tl.store(y + 1, m)


@triton.jit
def k_pointers(x, z, y, N, B: tl.constexpr):
    p = x
    if tl.program_id(0) > 0:
        p = z
    p = p + tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for i in range(0, N, B):
        acc += tl.load(p)
        p += B
    tl.store(y + tl.program_id(0) * B + tl.arange(0, B), acc)


@triton.jit
def k_atomics(x, y, c, N, B: tl.constexpr):
    o = tl.arange(0, B)
    for i in range(0, N, B):
        v = tl.load(x + i + o)
        tl.atomic_add(y + o, v, mask=o < B - 1, sem="relaxed")
        n = (v * 8).to(tl.int32)
        tl.atomic_max(c + o, n)
        tl.atomic_min(c + B + o, n)
        tl.atomic_and(c + 2 * B + o, n)
        tl.atomic_or(c + 3 * B + o, n)
        tl.atomic_xor(c + 4 * B + o, n)
        old = tl.atomic_xchg(c + 5 * B + o, n)
        tl.atomic_cas(c + 6 * B + o, old * 0, n)
        tl.atomic_max(y + B + o, v)


@triton.jit
def k_libdevice(x, y, N, B: tl.constexpr):
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        w = (
            libdevice.tanh(v)
            + libdevice.erf(v)
            + libdevice.rsqrt(v * v + 1)
            + libdevice.pow(tl.abs(v), 1.5)
            + libdevice.fast_expf(v)
        )
        w += (
            tl.math.exp(v)
            + tl.sigmoid(v)
            + tl.math.sqrt_rn(tl.abs(v))
            + tl.math.div_rn(v, 3.0)
            + libdevice.log1p(tl.abs(v))
        )
        tl.store(y + i + tl.arange(0, B), w)


@triton.jit
def k_condloop(x, y, N, B: tl.constexpr):
    acc = tl.zeros((B,), tl.float32)
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        if i % (2 * B) == 0:
            acc += v
        else:
            acc = acc * 0.5
            if i > 4 * B:
                acc = acc - v
    tl.store(y + tl.arange(0, B), acc)


@triton.jit
def k_ptrcast(x, y, N, B: tl.constexpr):
    q = x.to(tl.pointer_type(tl.int32), bitcast=True)
    for i in range(0, N, B):
        v = tl.load(q + i + tl.arange(0, B))
        tl.store(y + i + tl.arange(0, B), v.to(tl.float32))


@triton.jit
def k_cumprod(x, y, N, B: tl.constexpr):
    for i in range(N):
        v = tl.load(x + i * B * 4 + tl.arange(0, B)[:, None] * 4 + tl.arange(0, 4)[None, :])
        tl.store(
            y + i * B * 4 + tl.arange(0, B)[:, None] * 4 + tl.arange(0, 4)[None, :],
            tl.cumprod(v, 0, reverse=True),
        )


@triton.jit
def k_cat(x, y, N, B: tl.constexpr):
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        c = tl.cat(v, v + 1, can_reorder=True)
        tl.store(y + 2 * i + tl.arange(0, 2 * B), c)


@triton.jit
def k_histogram(x, y, N, B: tl.constexpr):
    acc = tl.zeros((16,), tl.int32)
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B)).to(tl.int32)
        acc += tl.histogram(v & 15, 16)
    tl.store(y + tl.arange(0, 16), acc.to(tl.float32))


@triton.jit
def k_asm(x, y, N, B: tl.constexpr):
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        w = tl.inline_asm_elementwise(
            "add.f32 $0, $1, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1
        )
        tl.store(y + i + tl.arange(0, B), w)


@triton.jit
def k_barrier(x, y, N, B: tl.constexpr):
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        tl.debug_barrier()
        tl.store(y + i + tl.arange(0, B), v)


@triton.jit
def k_print(x, y, N, B: tl.constexpr):
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        tl.device_print("v", v)
        tl.device_assert(v < 1e9, "too large")
        tl.store(y + i + tl.arange(0, B), v)


@triton.jit
def k_wide(x, y, N, B: tl.constexpr):
    far = tl.cast(0, tl.int64)
    for i in range(0, N, B):
        v = tl.load(x + i + tl.arange(0, B))
        if i > 2 * B:
            far = tl.cast(7, tl.int64)
        far += 1 << 33
        tl.store(y + i + tl.arange(0, B), v + (far // 3).to(tl.float32))
