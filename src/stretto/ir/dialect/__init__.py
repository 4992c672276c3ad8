"""The dialect `nv_tileas`: tiles, how they move, what is computed on them, and pipelines.

    types       smem_ref, tmem_ref, tensor, token, iterator, pipeline
    transfers   TMA and other ways between global memory and the chip
    memory      shared and tensor memory, copies, buffers
    views       slices, transposes, broadcasts, layouts
    products    matrix products
    compute     reductions, elementwise arithmetic
    pipeline    create, acquire, write, commit, wait, read, release
    programs    what a pipelined loop becomes
    barriers    barriers, and operations of any other kind

An operation's kind, by which machines know it, is its name without `nv_tileas.`.
"""

from xdsl.ir import Dialect

from stretto.ir.dialect import (
    barriers,
    compute,
    memory,
    pipeline,
    products,
    programs,
    transfers,
    types,
    views,
)

NvTileas = Dialect(
    "nv_tileas",
    [
        *transfers.OPERATIONS,
        *memory.OPERATIONS,
        *views.OPERATIONS,
        *products.OPERATIONS,
        *compute.OPERATIONS,
        *pipeline.OPERATIONS,
        *programs.OPERATIONS,
        *barriers.OPERATIONS,
    ],
    [*types.TYPES],
)

__all__ = ["NvTileas"]
