"""From tile operations to nv_tileas, for one machine.

    tile.view_load %d, %i, %j      %ring = alloc_tensor; async.tiled_tma_load %d[%i, %j] into %ring
    tile.dot %a, %b, %c            async.tcgen05_mma %a, %b acc %c       (%c in tensor memory)
    arith.mulf %c, %x              %r = async.tmem_load %c; arith.mulf %r, %x

A value lives where its maker puts it, and is brought to where it is wanted: into registers for
arithmetic, into the memories that the machine's product takes its factors from. Nothing is dropped.
"""

from stretto.kernel.lowering.lower import in_nv_tileas

__all__ = ["in_nv_tileas"]
