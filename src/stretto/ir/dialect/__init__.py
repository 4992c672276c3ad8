"""The dialect `nv_tileas`: tiles, how they move, what is computed on them, and pipelines.

    types       smem_ref, tmem_ref, tensor, token, iterator, pipeline
    memory      TMA, shared and tensor memory, copies, buffers
    views       slices, transposes, broadcasts, layouts
    compute     products, reductions, elementwise arithmetic
    pipeline    create, acquire, write, commit, wait, read, release; barriers

An operation's kind, by which machines know it, is its name without `nv_tileas.`.
"""

from xdsl.ir import Dialect

from stretto.ir.dialect import compute, memory, pipeline, types, views

NvTileas = Dialect(
    "nv_tileas",
    [*memory.OPERATIONS, *views.OPERATIONS, *compute.OPERATIONS, *pipeline.OPERATIONS],
    [*types.TYPES],
)

__all__ = ["NvTileas"]
