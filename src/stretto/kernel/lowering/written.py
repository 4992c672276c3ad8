"""What the lowering writes: opcodes, one line each.

tile.offset          offset                  as it is, under its name in the dialect
tile.view_load       async.tiled_tma_load    with a buffer that it fills
"""

from __future__ import annotations

OURS = "nv_tileas."
"""How operations of the dialect begin."""
ALLOCATE = "alloc_tensor"
TRANSPOSE, VIEW = "transpose", "view"
DESCRIPTOR = "tensor_view"
TMA_LOAD, TMA_STORE = "async.tiled_tma_load", "async.tiled_tma_store"
GATHER, SCATTER = "async.tma_gather", "async.tma_scatter"
LOAD, COPY, STORE = "pointer.load", "async.pointer_copy", "pointer.store"
PART, SPREAD = "extract", "splat"
TOKEN = "token"
WORK_TILE = "work_tile_info"
PENDING = "pending"
"""Where a product leaves its sum until somebody waits for it: registers not to be touched."""
NARROW = "arith.trunci"
SELECT, AND, OR, XOR = "arith.select", "arith.andi", "arith.ori", "arith.xori"
REDUCE, SCAN, COMBINED = "reduce.with", "scan", "combined"
TILE_COUNT = "tile_count"
RENAMED = {
    "tile.block_index": "block_index",
    "tile.block_count": "block_count",
    "tile.tile_count": TILE_COUNT,
    "tile.range": "range",
    "tile.splat": "splat",
    "tile.broadcast": "broadcast",
    "tile.expand_dims": "expand_dims",
    "tile.offset": "offset",
    "tile.pointer_to_int": "pointer_to_int",
    "tile.int_to_pointer": "int_to_pointer",
    "tile.view_size": "view_size",
    "tile.join": "join",
    "tile.split": "split",
    "tile.cat": "cat",
    "tile.extract": "extract",
    "tile.gather": "gather",
    "tile.assume": "assume",
    "tile.assert": "assert",
    "tile.token": "token",
    "tile.barrier": "barrier",
}
"""Those that take registers and make registers."""


ATOMICS = {"tile.atomic_rmw": "pointer.atomic_rmw", "tile.atomic_cas": "pointer.atomic_cas"}
"""With a mask or without."""

BY_TILES = frozenset(
    f"arith.{name}"
    for name in (
        "cmpi", "cmpf", "select", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi",
        "fptoui", "index_cast",
    )
)  # fmt: skip
"""Those that MLIR's own dialects have for tiles in another form, or not at all in xDSL."""
