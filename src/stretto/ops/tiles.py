"""Tiles, memory, control flow, products, the grid: one row each.

    tile.join   two tiles, along a new last dimension   Evaluator.join   gl.join   tt.join   join

Columns are those of `rows.py`. What the passes lower by hand has its opcodes in `mlir`.
"""

from __future__ import annotations

from stretto.ops.rows import NONE, Row


# fmt: off
def _row(name: str, least: int, most: int | None, made: tuple[int, int | None] | int, says: str, *attributes: str, types: str = "", numpy: str = NONE, gluon: str, ttir: str = NONE, tileir: str = NONE, cost: str = "none", mlir: str = "", regions: int = 0, renames: bool = False, pure: bool = False, axis: str = "") -> Row:  # fmt: skip
    results = (made, made) if isinstance(made, int) else made
    rule = types or name.partition(".")[2]
    return Row(name, rule, says, (least, most), results, attributes, regions, numpy=numpy, gluon=gluon, ttir=ttir, tileir=(tileir,), cost=cost, mlir=mlir or name, renames=renames, pure=pure, axis=axis)  # fmt: skip


_ANY = (0, None)
_OR_TOKEN = (1, 2)
_PERHAPS = (0, 1)

# fmt: off
_CONTROL = (
    _row("arith.constant", 0, 0, 1, "`value`: a number that is everywhere, or a tuple of all elements", "value", numpy="constant", gluon="gl.full", ttir="by hand", tileir="constant", pure=True, axis="constant"),
    _row("scf.for", 3, None, _ANY, "lower, upper, step, initial values; region: index, carried values; ends in scf.yield", gluon="for", ttir="by hand", tileir="for", regions=1),
    _row("scf.if", 1, 1, _ANY, "condition; then and else, each ending in scf.yield", gluon="if", ttir="by hand", tileir="if", regions=2),
    _row("scf.while", 0, None, _ANY, "initial values; before: carried values, ends in scf.condition; after: ends in scf.yield", gluon="while", ttir="by hand", tileir="loop", regions=2),
    _row("scf.yield", 0, None, 0, "what a region hands on", types=NONE, gluon="=", ttir="A *G", tileir="yield"),
    _row("scf.condition", 1, None, 0, "whether to go on, what is handed on", types=NONE, gluon="while", ttir="by hand", tileir="break"),
    _row("tile.return", 0, 0, 0, "the end of the kernel, at the end of its body only", types=NONE, gluon="return", ttir="tt.return A *G", tileir="return"),
)
_GRID = (
    _row("tile.block_index", 0, 0, 1, "of this block along `axis`", "axis", types="grid", numpy="block_index", gluon="gl.program_id({axis})", ttir="tt.get_program_id W:axis A : R", tileir="get_tile_block_id", cost="integer", mlir="nv_tileas.block_index", pure=True),
    _row("tile.block_count", 0, 0, 1, "of blocks along `axis`", "axis", types="grid", numpy="block_count", gluon="gl.num_programs({axis})", ttir="tt.get_num_programs W:axis A : R", tileir="get_num_tile_blocks", cost="integer", mlir="nv_tileas.block_count", pure=True),
    _row("tile.tile_count", 0, 0, 1, "of tiles along `axis` that a launch asks for, where `blocks` blocks at most go over them", "axis", "blocks", types="grid", numpy="tile_count", gluon="a parameter of the launch", cost="integer", mlir="nv_tileas.tile_count"),
)
_TILES = (
    _row("tile.splat", 1, 1, 1, "a scalar everywhere", numpy="shaped", gluon="gl.full", ttir="tt.splat o A : T -> R", mlir="nv_tileas.splat", pure=True, axis="splat"),
    _row("tile.range", 0, 0, 1, "start, start + 1, ... below end", "start", "end", numpy="range", gluon="gl.arange", ttir="tt.make_range A : R", tileir="iota", cost="integer", mlir="nv_tileas.range", pure=True, axis="range"),
    _row("tile.broadcast", 1, 1, 1, "dimensions of size 1 are repeated; the rank stays", numpy="shaped", gluon="+ gl.zeros", ttir="tt.broadcast o A : T -> R", tileir="broadcast", mlir="nv_tileas.broadcast", pure=True, axis="broadcast"),
    _row("tile.expand_dims", 1, 1, 1, "a dimension of size 1 comes in at `axis`", "axis", numpy="shaped", gluon="[:, None]", ttir="tt.expand_dims o A : T -> R", mlir="nv_tileas.expand_dims", pure=True, axis="expand"),
    _row("tile.reshape", 1, 1, 1, "the same elements in the same order; to and from a scalar too", numpy="shaped", gluon="gl.reshape", ttir="tt.reshape o f:allow_reorder f:efficient_layout A : T -> R", tileir="reshape", mlir="nv_tileas.view", pure=True, axis="reshape"),
    _row("tile.transpose", 1, 1, 1, "`order`: which dimension of the source each one is", "order", numpy="shaped", gluon="gl.permute", ttir="tt.trans o A : T -> R", tileir="permute", mlir="nv_tileas.transpose", pure=True, axis="transpose"),
    _row("tile.join", 2, 2, 1, "two tiles, along a new last dimension", numpy="join", gluon="gl.join", ttir="tt.join o , o A : T -> R", mlir="nv_tileas.join", pure=True),
    _row("tile.split", 1, 1, 2, "the two halves of a last dimension of size 2", numpy="split", gluon="gl.split", ttir="tt.split o A : T -> R", mlir="nv_tileas.split", pure=True),
    _row("tile.cat", 2, 2, 1, "two tiles one after the other along `axis`", "axis", numpy="cat", gluon="- of tiles of one shape: tl.join the two, then permute and reshape", ttir="tt.cat o , o A : T -> R", tileir="cat", mlir="nv_tileas.cat", pure=True),
    _row("tile.extract", 1, None, 1, "a part of a tile: the tile, then the index of the part, in parts", types=NONE, numpy="extract", gluon="- load the part, or reduce with a mask", tileir="extract", mlir="nv_tileas.extract", pure=True),
    _row("tile.gather", 2, 2, 1, "source and indices along `axis`", "axis", numpy="gather", gluon="gl.gather({0}, {1}, {axis})", ttir="tt.gather o [*] f:efficient_layout A : F", cost="exchange", mlir="nv_tileas.gather", pure=True),
    _row("tile.histogram", 1, 2, 1, "how often each number from 0 on is there; under a mask", numpy="histogram", gluon="gl.histogram", ttir="tt.histogram o ? A : T -> R", cost="exchange", mlir="nv_tileas.histogram"),
    _row("tile.inline_asm", 0, None, (1, None), "assembly, element by element: `asm`, `constraints`, `pack`", "asm", "constraints", "pack", types=NONE, gluon="gl.inline_asm_elementwise", ttir="tt.elementwise_inline_asm S:asm A * U", cost="assembly", mlir="nv_tileas.inline_asm"),
)
_MEMORY = (
    _row("tile.offset", 2, 2, 1, "address (or tile of such) and how many elements further", numpy="offset", gluon="{0} + {1}", ttir="tt.addptr o , o A : R , T", tileir="offset", cost="integer", mlir="nv_tileas.offset", pure=True, axis="offset"),
    _row("tile.load", 1, 3, _OR_TOKEN, "addresses, then mask, then what else is read; may make a token", numpy="load", gluon="gl.load", ttir="tt.load o ? ? L A : P", tileir="load_ptr_tko", cost="memory", mlir="nv_tileas.pointer.load nv_tileas.async.pointer_copy", pure=True),
    _row("tile.store", 2, 3, _PERHAPS, "addresses, values, then mask", numpy="store", gluon="gl.store", ttir="tt.store o , o ? L A : T", tileir="store_ptr_tko", cost="memory", mlir="nv_tileas.pointer.store"),
    _row("tile.atomic_rmw", 2, 3, _OR_TOKEN, "addresses, values, mask; `kind`: add, fadd, max, min, umax, umin, and, or, xor, exch", "kind", types="atomic", numpy="atomic", gluon="gl.atomic_add", ttir="tt.atomic_rmw W:atomic_rmw_op , W:sem , W:scope , o , o ? A : F", tileir="atomic_rmw_tko", cost="memory", mlir="nv_tileas.pointer.atomic_rmw"),
    _row("tile.atomic_cas", 3, 4, _OR_TOKEN, "addresses, expected, new, then mask", types="atomic", numpy="atomic", gluon="gl.atomic_cas", ttir="tt.atomic_cas W:sem , W:scope , o , o , o A : F", tileir="atomic_cas_tko", cost="memory", mlir="nv_tileas.pointer.atomic_cas"),
    _row("tile.pointer_to_int", 1, 1, 1, "an address as a number", types=NONE, numpy="pointer_to_int", gluon="{0}.to({type})", ttir="tt.ptr_to_int o A : T -> R", tileir="ptr_to_int", cost="integer", mlir="nv_tileas.pointer_to_int", pure=True),
    _row("tile.int_to_pointer", 1, 1, 1, "a number as an address", types=NONE, numpy="int_to_pointer", gluon="{0}.to(gl.pointer_type({pointee}))", ttir="tt.int_to_ptr o A : T -> R", tileir="int_to_ptr", cost="integer", mlir="nv_tileas.int_to_pointer", pure=True),
    _row("tile.pointer_cast", 1, 1, 1, "an address as one of another type of the same width", types=NONE, numpy="bitcast", gluon="{0}.to({type}, bitcast=True)", tileir="ptr_to_ptr", cost="none", mlir="nv_tileas.pointer_cast"),
    _row("tile.view", 1, None, 1, "address, then the sizes that the type leaves open (all if it states none), then such strides", numpy="view", gluon="TensorDescriptor", ttir="tt.make_tensor_descriptor o , [*] , [*] A : Q , D!", tileir="make_tensor_view", cost="integer", mlir="nv_tileas.tensor_view", pure=True),
    _row("tile.view_load", 2, None, _OR_TOKEN, "view, then coordinates in elements", types="through", numpy="tma_load", gluon="tma.async_copy_global_to_shared", ttir="tt.descriptor_load o [*] L A : D -> R", tileir="load_view_tko", cost="memory", mlir="nv_tileas.async.tiled_tma_load", pure=True),
    _row("tile.view_store", 3, None, _PERHAPS, "view, tile, then coordinates in elements", types="through", numpy="tma_store", gluon="tma.async_copy_shared_to_global", ttir="tt.descriptor_store o [*] , o A : D , T", tileir="store_view_tko", cost="memory", mlir="nv_tileas.async.tiled_tma_store"),
    _row("tile.view_gather", 3, 3, 1, "view, rows, column", types="rows", numpy="tma_gather", gluon="- Hopper has no gather by TMA: load through pointers", ttir="tt.descriptor_gather o [*] A : F", tileir="gather_view_tko", cost="memory", mlir="nv_tileas.async.tma_gather", pure=True),
    _row("tile.view_scatter", 4, 4, 0, "view, tile, rows, column", types="rows", numpy="tma_scatter", gluon="- Hopper has no scatter by TMA: store through pointers", ttir="tt.descriptor_scatter o [*] , o A : M", tileir="scatter_view_tko", cost="memory", mlir="nv_tileas.async.tma_scatter"),
    _row("tile.view_reduce", 3, None, 0, "view, tile, coordinates", "kind", types="through", numpy="tma_store", gluon="tma.async_copy_shared_to_global", ttir="tt.descriptor_reduce W:kind , o [*] , o A : D , T", tileir="atomic_red_view_tko", cost="memory", mlir="nv_tileas.async.tiled_tma_store"),
    _row("tile.view_size", 1, 1, 1, "of a view's tensor along `axis`, in elements", "axis", types=NONE, numpy="view_size", gluon="- hand the size in as a parameter", tileir="get_tensor_shape", cost="integer", mlir="nv_tileas.view_size", pure=True),
)
_PRODUCTS = (
    _row("tile.dot", 3, 3, 1, "a, b, accumulator: a × b + accumulator; a leading dimension is a batch", numpy="product", gluon="hopper.warpgroup_mma", ttir="tt.dot o , o , o f:, L A : T by T -> R", tileir="mmaf", cost="product", mlir="nv_tileas.async.wgmma nv_tileas.async.tcgen05_mma nv_tileas.async.dot nv_tileas.mma_sync nv_tileas.dot_fma", pure=True),
    _row("tile.reduce", 1, None, (1, None), "region: results so far, then elements; ends in tile.yield", "axis", numpy="combine", gluon="gl.reduce", ttir="tt.reduce by hand", tileir="reduce", cost="reduction", mlir="nv_tileas.reduce.with", regions=1, pure=True),
    _row("tile.scan", 1, None, (1, None), "as reduce, all sums on the way; `reverse`", "axis", types="reduce", numpy="combine", gluon="gl.associative_scan", ttir="tt.scan by hand", tileir="scan", cost="reduction", mlir="nv_tileas.scan", regions=1, pure=True),
    _row("tile.yield", 1, None, 0, "what two elements are together", types=NONE, gluon="return", ttir="tt.reduce.return * A : T", tileir="yield", mlir="nv_tileas.combined"),
)
_SAID = (
    _row("tile.assume", 1, 1, 0, "that a condition holds", types="condition", numpy="check", gluon="gl.assume({0})", ttir="llvm.intr.assume o A : T", tileir="assume", mlir="nv_tileas.assume"),
    _row("tile.hint", 1, 1, 1, "the same value, of which `divisibility`, `contiguity`, `constancy`, `lower` or `upper` is promised", numpy="same", gluon="{0}", tileir="assume", mlir="-", renames=True, pure=True, axis="hint"),
    _row("tile.assert", 1, 1, 0, "a condition; `message`", types="condition", numpy="check", gluon="gl.device_assert", ttir="tt.assert o , S:message A : T", tileir="assert", cost="integer", mlir="nv_tileas.assert"),
    _row("tile.print", 0, None, 0, "numbers behind `prefix`, by each thread that has them", "prefix", types=NONE, numpy="nothing", gluon="gl.device_print", ttir="tt.print S:prefix A X", cost="integer", mlir="nv_tileas.print"),
    _row("tile.barrier", 0, 0, 0, "all threads meet", types=NONE, numpy="nothing", gluon="gl.thread_barrier()", ttir="gpu.barrier A", mlir="nv_tileas.barrier"),
    _row("tile.token", 0, None, 1, "order: after all of these", numpy="nothing", gluon="the order of the text", tileir="join_tokens", mlir="nv_tileas.token"),
)
# fmt: on
TILES: tuple[Row, ...] = (*_CONTROL, *_GRID, *_TILES, *_MEMORY, *_PRODUCTS, *_SAID)
