"""Run by the oracle's own Python: kernels that use much of the language, each a little of it.

kernels.py VERSION FOLDER  ──►  FOLDER/loops.tileirbc, FOLDER/memory.tileirbc, …
"""

# The project's own environment does not have cuda-tile.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

import sys
from pathlib import Path

import cuda.tile as ct
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    KernelSignature,
    ScalarConstraint,
    export_kernel,
)

Int = ct.Constant[int]


def loops(x, y, count: int, n: Int):
    """Loops with a condition, with ways out, in each other, with nothing carried."""
    total = ct.zeros((n,), dtype=ct.float32)
    done = 0
    while done < count:
        part = ct.load(x, index=(done,), shape=(n,))
        if done % 3 == 1:
            done += 2
            continue
        if ct.sum(part) > 100.0:
            break
        for inner in range(0, done, 2):
            if inner > 7:  # noqa: SIM108
                total = total + part
            else:
                total = total - part
        done += 1
    ct.store(y, index=(0,), tile=total)
    for again in range(count):
        ct.store(y, index=(again,), tile=ct.full((n,), again, dtype=ct.float32))


def early(x, y, count: int, n: Int):
    """A way out of the kernel."""
    block = ct.bid(0)
    if block >= count:
        return
    ct.store(y, index=(block,), tile=ct.load(x, index=(block,), shape=(n,)) * 2.0)


def memory(x, y, flags, n: Int):
    """Gathers, scatters, atomics."""
    where = ct.arange(n, dtype=ct.int32) * 3
    got = ct.gather(x, where)
    ct.scatter(y, where + 1, got)
    old = ct.atomic_add(flags, where, 1)
    new = ct.atomic_max(flags, where, old)
    ct.atomic_cas(flags, where, new, old)
    ct.atomic_xchg(flags, where, ct.full((n,), 7, dtype=ct.int32))


def shapes(x, y, n: Int):
    """Tiles cut, joined, turned, reduced, scanned."""
    a = ct.load(x, index=(0, 0), shape=(n, n))
    b = ct.permute(a, (1, 0))
    c = ct.cat((a, b), 0)
    d = ct.extract(c, index=(1, 0), shape=(n, n))
    e = ct.cumsum(d, axis=1) + ct.cumsum(d, axis=0, reverse=True)
    f = ct.argmax(e, axis=1)
    g = ct.min(e, axis=0, keepdims=True) + ct.prod(e, axis=1, keepdims=True)
    h = ct.where(g > 0.5, e, f[:, None].astype(ct.float32))
    ct.store(y, index=(0, 0), tile=ct.broadcast_to(h, (n, n)))


def numbers(x, y, flags, n: Int):
    """Arithmetic of all sorts."""
    a = ct.load(x, index=(0,), shape=(n,))
    b = ct.exp(a) + ct.log(a) - ct.sqrt(a) * ct.rsqrt(a) / ct.tanh(a)
    c = ct.sin(b) + ct.cos(b) + ct.tan(b) + ct.floor(b) + ct.ceil(b) + ct.exp2(b) + ct.log2(b)
    c = ct.pow(c, a) + ct.sinh(a) + ct.cosh(a) + abs(a)
    i = ct.load(flags, index=(0,), shape=(n,))
    j = (i << 3 | i >> 2) ^ ~i & -i
    j = j // 5 + j % 7 + ct.cdiv(j, 3) + ct.minimum(i, j) + ct.maximum(i, 4)
    k = j.astype(ct.int64).astype(ct.int8).astype(ct.uint16)
    d = c.astype(ct.float16).astype(ct.bfloat16).astype(ct.float64).astype(ct.float32)
    e = ct.where(i == 3, d, ct.bitcast(j, ct.float32)) + k.astype(ct.float32)
    m = ct.where(ct.isnan(e), 0.0, e)
    ct.store(y, index=(0,), tile=ct.minimum(m, 3.25))
    ct.store(flags, index=(0,), tile=e.astype(ct.int32))


def products(a, b, c, n: Int):
    """Integer products, in a batch."""
    left = ct.load(a, index=(0, 0, 0), shape=(2, n, n))
    right = ct.load(b, index=(0, 0, 0), shape=(2, n, n), order=(0, 2, 1))
    made = ct.mma(left, right, ct.zeros((2, n, n), dtype=ct.int32))
    ct.store(c, index=(0, 0, 0), tile=made)


def telling(x, count: int, n: Int):
    """What is only said."""
    a = ct.load(x, index=(0,), shape=(n,), padding_mode=ct.PaddingMode.NAN, latency=3)
    ct.assert_(count > 0, "nothing to do")  # noqa: PT009
    ct.printf("%d and %f", count, ct.sum(a))


def array(dtype, rank):
    return ArrayConstraint(
        dtype,
        rank,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=(None,) * (rank - 1) + (1,),
        stride_divisible_by=1,
        shape_divisible_by=1,
        base_addr_divisible_by=16,
    )


F32, I32, I8 = ct.float32, ct.int32, ct.int8
COUNT = ScalarConstraint(I32)
KERNELS = {
    loops: [array(F32, 1), array(F32, 1), COUNT, 32],
    early: [array(F32, 1), array(F32, 1), COUNT, 32],
    memory: [array(F32, 1), array(F32, 1), array(I32, 1), 64],
    shapes: [array(F32, 2), array(F32, 2), 16],
    numbers: [array(F32, 1), array(F32, 1), array(I32, 1), 128],
    products: [array(I8, 3), array(I8, 3), array(I32, 3), 32],
    telling: [array(F32, 1), COUNT, 32],
}

if __name__ == "__main__":
    version, folder = sys.argv[1:]
    Path(folder).mkdir(exist_ok=True)
    for kernel, parameters in KERNELS.items():
        name = kernel.__name__
        signature = KernelSignature(parameters, CallingConvention.cutile_python_v1(), symbol=name)
        export_kernel(
            ct.kernel(kernel),
            [signature],
            f"{folder}/{name}.tileirbc",
            gpu_code="sm_100",
            output_format="tileir_bytecode",
            bytecode_version=version,
        )
