"""What the lowering writes: opcodes, one line each.

tile.offset          offset                  as it is, under its name in the dialect
tile.view_load       async.tiled_tma_load    with a buffer that it fills
"""

from __future__ import annotations

from stretto.ops.operations import OPERATIONS

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
WIDE = "arith.extf"
SELECT, AND, OR, XOR = "arith.select", "arith.andi", "arith.ori", "arith.xori"
REDUCE, SCAN, COMBINED = "reduce.with", "scan", "combined"
TILE_COUNT = "tile_count"
RENAMED = {
    row.name: row.mlir.removeprefix(OURS)
    for row in OPERATIONS.values()
    if row.mlir.startswith(OURS) and " " not in row.mlir
}
"""Those that are one operation of the dialect, under which name."""


ATOMICS = {"tile.atomic_rmw": "pointer.atomic_rmw", "tile.atomic_cas": "pointer.atomic_cas"}
"""With a mask or without."""

BY_TILES = frozenset(
    row.name for row in OPERATIONS.values() if row.mlir == f"{row.name} {OURS}{row.name}"
)
"""Those that MLIR's own dialects have for tiles in another form, or not at all in xDSL."""
