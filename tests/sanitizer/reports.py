"""Faults that people reported to the trackers of TileLang and Triton, as small Gluon kernels.

Each is the fault of the report, rebuilt in the fewest lines that show it: what was reported, the
kernel, the class that has to be found, and the change that mends it.
"""

from __future__ import annotations

from typing import NamedTuple

HEAD = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy as cp
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor
import torch

ROWS = gl.constexpr(gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]))
MMA = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16]))
BARRIER = gl.constexpr(mbarrier.MBarrierLayout())
TILE = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)


def desc(rows, columns):
    return TensorDescriptor.from_tensor(
        torch.randn(rows, columns, dtype=torch.float16), [64, 64], TILE
    )


@gluon.jit
def barriers(count: gl.constexpr, arrivals: gl.constexpr):
    made = gl.allocate_shared_memory(gl.int64, [count, 1], BARRIER)
    for n in gl.static_range(count):
        mbarrier.init(made.index(n), count=arrivals)
    return made


"""


class Reported(NamedTuple):
    """One report."""

    where: str
    fault: str
    text: str
    rules: frozenset[str]
    mended: tuple[str, str]


def _report(where: str, fault: str, text: str, rules: str, mended: tuple[str, str]) -> Reported:
    return Reported(where, fault, HEAD + text, frozenset(rules.split()), mended)


REPORTS = (
    _report(
        "tile-ai/tilelang#2668",
        "a pipelined loop reads a slot and then overwrites it: the copy is hoisted over the read",
        """
@gluon.jit
def kernel(x_ptr, y_ptr, steps):
    slot = gl.allocate_shared_memory(gl.float32, [32, 32], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    at = gl.arange(0, 32, gl.SliceLayout(1, ROWS))[:, None] * 32 + gl.arange(0, 32, gl.SliceLayout(0, ROWS))[None, :]
    total = gl.zeros([32, 32], gl.float32, ROWS)
    cp.async_load(slot, x_ptr + at)
    cp.commit_group()
    cp.wait_group(0)
    for step in range(steps):
        cp.async_load(slot, x_ptr + step * 1024 + at)
        cp.commit_group()
        total += slot.load(ROWS)
        cp.wait_group(0)
    gl.store(y_ptr + at, total)


def launches():
    yield kernel, (1,), (torch.randn(4, 32, 32), torch.empty(32, 32), 4), {"num_warps": 4}
""",
        "read-too-early",
        (
            "        cp.async_load(slot, x_ptr + step * 1024 + at)\n"
            "        cp.commit_group()\n"
            "        total += slot.load(ROWS)\n",
            "        total += slot.load(ROWS)\n"
            "        cp.async_load(slot, x_ptr + step * 1024 + at)\n"
            "        cp.commit_group()\n",
        ),
    ),
    _report(
        "tile-ai/tilelang#666",
        "shared memory is cleared by threads before a loop that fills it by TMA, with no fence",
        """
@gluon.jit
def kernel(x_desc, y_desc):
    tile = gl.allocate_shared_memory(gl.float16, [64, 64], x_desc.layout)
    full = barriers(1, 1)
    fence_async_shared()
    tile.store(gl.zeros([64, 64], gl.float16, ROWS))
    mbarrier.expect(full.index(0), x_desc.block_type.nbytes)
    tma.async_load(x_desc, [0, 0], full.index(0), tile)
    mbarrier.wait(full.index(0), 0)
    tma.async_store(y_desc, [0, 0], tile)
    tma.store_wait(0)


def launches():
    yield kernel, (1,), (desc(64, 64), desc(64, 64)), {"num_warps": 4}
""",
        "missing-fence",
        ("ROWS))\n    mbarrier.expect", "ROWS))\n    fence_async_shared()\n    mbarrier.expect"),
    ),
    _report(
        "tile-ai/tilelang#2613",
        "two warpgroups share an operand, and the loop goes round without their meeting",
        """
WAITED = gl.constexpr(1)


@gluon.jit
def half(tile, full, free, steps, me: gl.constexpr):
    total = gl.zeros([64, 64], gl.float32, MMA)
    for step in range(steps):
        mbarrier.wait(full.index(0), step & 1)
        total = warpgroup_mma(tile, tile, total, is_async=True)
        total = warpgroup_mma_wait(0, deps=(total,))
        mbarrier.arrive(free.index(0), count=1, pred=me < WAITED)


@gluon.jit
def load(x_desc, tile, full, free, steps):
    for step in range(steps):
        mbarrier.wait(free.index(0), (step & 1) ^ 1)
        mbarrier.expect(full.index(0), x_desc.block_type.nbytes)
        tma.async_load(x_desc, [0, step * 64], full.index(0), tile)


@gluon.jit
def kernel(x_desc, steps):
    tile = gl.allocate_shared_memory(gl.float16, [64, 64], x_desc.layout)
    full, free = barriers(1, 1), barriers(1, WAITED)
    fence_async_shared()
    gl.warp_specialize([
        (half, (tile, full, free, steps, 0)),
        (half, (tile, full, free, steps, 1)),
        (load, (x_desc, tile, full, free, steps)),
    ], [4, 1], [160, 24])


def launches():
    yield kernel, (1,), (desc(64, 256), 4), {"num_warps": 4}
""",
        "overwritten-too-early",
        ("gl.constexpr(1)\n", "gl.constexpr(2)\n"),
    ),
    _report(
        "tile-ai/tilelang#2674",
        "a counter of phases begins anew with each tile of a persistent loop",
        """
@gluon.jit
def consume(ring, full, free, tiles):
    count = 0
    for tile in range(tiles):
        for step in range(3):
            mbarrier.wait(full.index(count % 2), (count // 2) & 1)
            ring.index(count % 2).load(ROWS)
            fence_async_shared()
            mbarrier.arrive(free.index(count % 2), count=1)
            count += 1


@gluon.jit
def load(x_desc, ring, full, free, tiles):
    count = 0
    for tile in range(tiles):
        count = 0  # of the tile
        for step in range(3):
            mbarrier.wait(free.index(count % 2), ((count // 2) & 1) ^ 1)
            mbarrier.expect(full.index(count % 2), x_desc.block_type.nbytes)
            tma.async_load(x_desc, [0, step * 64], full.index(count % 2), ring.index(count % 2))
            count += 1


@gluon.jit
def kernel(x_desc, tiles):
    ring = gl.allocate_shared_memory(gl.float16, [2, 64, 64], x_desc.layout)
    full, free = barriers(2, 1), barriers(2, 1)
    fence_async_shared()
    gl.warp_specialize([
        (consume, (ring, full, free, tiles)),
        (load, (x_desc, ring, full, free, tiles)),
    ], [1], [24])


def launches():
    for tiles in (0, 1, 2, 3):
        yield kernel, (1,), (desc(64, 192), tiles), {"num_warps": 4}
""",
        "phase-overrun wrong-phase too-many-arrivals deadlock two-writers",
        ("        count = 0  # of the tile\n", ""),
    ),
    _report(
        "tile-ai/tilelang#2566",
        "a loop of one iteration expects bytes and never gives the arrival that the phase needs",
        """
@gluon.jit
def kernel(x_desc, y_desc):
    tile = gl.allocate_shared_memory(gl.float16, [64, 64], x_desc.layout)
    full = barriers(1, 2)
    fence_async_shared()
    mbarrier.expect(full.index(0), x_desc.block_type.nbytes)
    tma.async_load(x_desc, [0, 0], full.index(0), tile)
    mbarrier.wait(full.index(0), 0)
    tma.async_store(y_desc, [0, 0], tile)
    tma.store_wait(0)


def launches():
    yield kernel, (1,), (desc(64, 64), desc(64, 64)), {"num_warps": 4}
""",
        "deadlock",
        ("barriers(1, 2)", "barriers(1, 1)"),
    ),
    _report(
        "tile-ai/tilelang#2927",
        "the phase that is waited for follows the loop, not the barrier that is waited on",
        """
@gluon.jit
def kernel(x_desc, y_desc):
    ring = gl.allocate_shared_memory(gl.float16, [4, 64, 64], x_desc.layout)
    full = barriers(4, 1)
    fence_async_shared()
    for step in range(4):
        mbarrier.expect(full.index(step), x_desc.block_type.nbytes)
        tma.async_load(x_desc, [0, step * 64], full.index(step), ring.index(step))
        mbarrier.wait(full.index(step), step & 1)
        tma.async_store(y_desc, [0, step * 64], ring.index(step))
    tma.store_wait(0)


def launches():
    yield kernel, (1,), (desc(64, 256), desc(64, 256)), {"num_warps": 4}
""",
        "wrong-phase",
        ("full.index(step), step & 1)", "full.index(step), 0)"),
    ),
    _report(
        "tile-ai/tilelang#2567",
        "the arrival that frees a slot stands behind a barrier that waits for the slot's refill",
        """
@gluon.jit
def consume(ring, full, free, steps):
    for step in range(steps):
        mbarrier.wait(full.index(0), step & 1)
        ring.index(0).load(ROWS)
        fence_async_shared()
        gl.inline_asm_elementwise("bar.sync 3, 160; mov.u32 $0, 0;", "=r", [], gl.int32, False, 1)
        mbarrier.arrive(free.index(0), count=1)


@gluon.jit
def load(x_desc, ring, full, free, steps):
    mbarrier.expect(full.index(0), x_desc.block_type.nbytes)
    tma.async_load(x_desc, [0, 0], full.index(0), ring.index(0))
    for step in range(1, steps + 1):
        mbarrier.wait(free.index(0), (step & 1) ^ 1)
        mbarrier.expect(full.index(0), x_desc.block_type.nbytes, pred=step < steps)
        tma.async_load(x_desc, [0, step * 64], full.index(0), ring.index(0), pred=step < steps)
        gl.inline_asm_elementwise("bar.sync 3, 160; mov.u32 $0, 0;", "=r", [], gl.int32, False, 1)


@gluon.jit
def kernel(x_desc, steps):
    ring = gl.allocate_shared_memory(gl.float16, [1, 64, 64], x_desc.layout)
    full, free = barriers(1, 1), barriers(1, 1)
    fence_async_shared()
    gl.warp_specialize([
        (consume, (ring, full, free, steps)), (load, (x_desc, ring, full, free, steps)),
    ], [1], [24])


def launches():
    yield kernel, (1,), (desc(64, 192), 3), {"num_warps": 4}
""",
        "deadlock",
        (
            '        gl.inline_asm_elementwise("bar.sync 3, 160; mov.u32 $0, 0;", "=r", [], '
            "gl.int32, False, 1)\n        mbarrier.arrive(free.index(0), count=1)\n",
            "        mbarrier.arrive(free.index(0), count=1)\n"
            '        gl.inline_asm_elementwise("bar.sync 3, 160; mov.u32 $0, 0;", "=r", [], '
            "gl.int32, False, 1)\n",
        ),
    ),
    _report(
        "triton-lang/triton#3106",
        "a wgmma is still in flight when its operand, which has one slot only, is written again",
        """
@gluon.jit
def kernel(x_desc, steps):
    tile = gl.allocate_shared_memory(gl.float16, [64, 64], x_desc.layout)
    full = barriers(1, 1)
    fence_async_shared()
    total = gl.zeros([64, 64], gl.float32, MMA)
    for step in range(steps):
        mbarrier.expect(full.index(0), x_desc.block_type.nbytes)
        tma.async_load(x_desc, [0, step * 64], full.index(0), tile)
        mbarrier.wait(full.index(0), step & 1)
        total = warpgroup_mma(tile, tile, total, is_async=True)
        total = warpgroup_mma_wait(1, deps=(total,))
    total = warpgroup_mma_wait(0, deps=(total,))


def launches():
    yield kernel, (1,), (desc(64, 256), 4), {"num_warps": 4}
""",
        "overwritten-too-early",
        ("warpgroup_mma_wait(1,", "warpgroup_mma_wait(0,"),
    ),
    _report(
        "triton-lang/triton#2146",
        "a tile of no steps leaves the slot where it is: two fills of one slot, no read between",
        """
@gluon.jit
def consume(ring, full, free, tiles, steps):
    for tile in range(tiles):
        at = tile * steps
        mbarrier.wait(full.index(at % 2), (at // 2) & 1)
        ring.index(at % 2).load(ROWS)
        fence_async_shared()
        mbarrier.arrive(free.index(at % 2), count=1)


@gluon.jit
def load(x_desc, ring, full, free, tiles, steps):
    for tile in range(tiles):
        at = tile * steps
        mbarrier.wait(free.index(at % 2), ((at // 2) & 1) ^ 1)
        mbarrier.expect(full.index(at % 2), x_desc.block_type.nbytes)
        tma.async_load(x_desc, [0, 0], full.index(at % 2), ring.index(at % 2))


@gluon.jit
def kernel(x_desc, tiles, K):
    steps = K // 64
    ring = gl.allocate_shared_memory(gl.float16, [2, 64, 64], x_desc.layout)
    full, free = barriers(2, 1), barriers(2, 1)
    fence_async_shared()
    gl.warp_specialize([
        (consume, (ring, full, free, tiles, steps)),
        (load, (x_desc, ring, full, free, tiles, steps)),
    ], [1], [24])


def launches():
    yield kernel, (1,), (desc(64, 64), 3, 32), {"num_warps": 4}
""",
        "too-many-arrivals two-writers wrong-phase overwritten-too-early phase-overrun",
        ("steps = K // 64", "steps = gl.cdiv(K, 64)"),
    ),
    _report(
        "triton-lang/triton#8139",
        "a use in a later cluster than its load needs a slot more than the stages have",
        """
@gluon.jit
def fetch(x_ptr, ring, at, step, steps):
    cp.async_load(ring.index(step % 2), x_ptr + step * 1024 + at, mask=step < steps)
    cp.commit_group()


@gluon.jit
def kernel(x_ptr, y_ptr, steps):
    ring = gl.allocate_shared_memory(gl.float32, [2, 32, 32], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    at = gl.arange(0, 32, gl.SliceLayout(1, ROWS))[:, None] * 32 + gl.arange(0, 32, gl.SliceLayout(0, ROWS))[None, :]
    fetch(x_ptr, ring, at, 0, steps)
    fetch(x_ptr, ring, at, 1, steps)
    for step in range(steps):
        cp.wait_group(1)
        fetch(x_ptr, ring, at, step + 2, steps)
        gl.store(y_ptr + step * 1024 + at, ring.index(step % 2).load(ROWS))
    cp.wait_group(0)


def launches():
    yield kernel, (1,), (torch.randn(4, 32, 32), torch.empty(4, 32, 32), 4), {"num_warps": 4}
""",
        "read-too-early",
        (
            "        fetch(x_ptr, ring, at, step + 2, steps)\n        gl.store(y_ptr + step * 1024 "
            "+ at, ring.index(step % 2).load(ROWS))\n",
            "        gl.store(y_ptr + step * 1024 + at, ring.index(step % 2).load(ROWS))\n"
            "        fetch(x_ptr, ring, at, step + 2, steps)\n",
        ),
    ),
)
