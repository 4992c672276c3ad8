"""What an opcode says of an operation: one row each, and no word in its name decides anything.

    async.tiled_tma_load   issued by TMA         touches memory   fills operand 2    real: load
    async.tcgen05_mma      issued by MMA         touches memory   adds to operand 2  real: product
    transpose              issued by threads     touches none     another name       real: transpose
    arith.addf             issued by threads     touches none                        real: add

The rows are the operations of the dialect, and those of other people's dialects that front ends
read. Of an opcode without a row nothing is known: threads issue it, and it may touch memory.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from stretto.ops.operations import OPERATIONS, REDUCTIONS
from stretto.ops.products import DOT_FMA, MMA_SYNC
from stretto.ops.rows import NONE, Row
from stretto.ops.spaces import Space

Issuer = Literal["tma", "mma", "simt"]
ISSUERS: tuple[Issuer, ...] = ("tma", "mma", "simt")
"""In the order in which agents are declared."""


class Opcode(NamedTuple):
    """What is true of every operation of one opcode; operands as its definition lists them."""

    issuer: Issuer = "simt"
    """The kind of agent that issues it in a specialized program."""
    memory: bool = True
    """Whether it touches memory even where it names no storage: barriers keep it on its side."""
    far: bool = False
    """Whether it goes to global memory and back, for which a machine may state a ceiling."""
    renames_buffers: bool = False
    """Whether its result is another name of its first operand where that is a buffer."""
    renames_registers: bool = False
    """Whether its result is another name of its first operand where that is in registers."""
    destination: int | None = None
    """The operand whose buffer it fills; where it is left out, it fills a buffer of its own."""
    accumulator: int | None = None
    """The operand to which it, a product, adds in place."""
    allocates: bool = False
    """Whether it makes the buffer that its type describes, and fills it with what it is given."""
    banked: bool = False
    """Whether it reads the bank of its one buffer, so that two such reads may share a hold."""
    pipelines: bool = False
    """Whether it works an asynchronous pipeline: a loop with one is worth pipelining."""
    lands: Space | None = None
    """Where it makes and fills a buffer that its type does not describe."""
    awaits: bool = False
    """Whether it waits for its first operand, made by hardware on its own: the same registers."""
    multiplies: bool = False
    """Whether it is a product that threads make in registers, done when the next operation begins;
    what it adds to is its third operand, if it has one."""
    computes: str = ""
    """Its function on real values, by its name in `simulation/real.py`; none if empty."""
    value: str = ""
    """The method of `simulation/kernels/evaluator.py` that carries it out; none if empty."""

    @property
    def view(self) -> bool:
        """Whether its result is another name of its first operand."""
        return self.renames_buffers or self.renames_registers


UNKNOWN = Opcode()

_TMA = Opcode("tma", far=True)
_MMA = Opcode("mma")
_MOVES = Opcode("simt")
_FAR = Opcode("simt", far=True)
_COMPUTES = Opcode("simt", memory=False)
_SAME = Opcode("simt", computes="same")
_PRODUCT = Opcode("mma", accumulator=2, destination=3, computes="product")
_PRODUCT_IN_PLACE = Opcode("mma", accumulator=2)
_ALLOCATES = Opcode("simt", memory=False, allocates=True)
_BUFFER_VIEW = Opcode("simt", memory=False, renames_buffers=True)
_REGISTER_VIEW = Opcode("simt", memory=False, renames_registers=True)
_VIEW = Opcode("simt", memory=False, renames_buffers=True, renames_registers=True)


def _is_plain(row: Row) -> bool:
    """Whether what is computed may be computed on floating point, rounded to nearest."""
    letters = row.types.partition(";")[0].split()
    floating = set(letters) <= {"f", "g", "->"} or row.numpy in ("add", "subtract", "multiply")
    return floating and " " not in row.numpy


_ROWS: dict[str, Opcode] = {
    # Between global memory and the chip.
    "async.tiled_tma_load": _TMA._replace(destination=2, computes="load"),
    "async.tiled_tma_store": _TMA._replace(computes="same"),
    "async.tma_gather": _TMA._replace(destination=3),
    "async.tma_scatter": _TMA,
    "async.cp_async": _FAR._replace(destination=2, value="tma_load"),
    "async.gnic_read": _FAR,
    "async.gnic_write": _FAR,
    "load": _FAR._replace(value="tma_load"),
    "store": _FAR._replace(value="tma_store"),
    # Products, and what the tensor core copies.
    "async.wgmma": _PRODUCT,
    "async.tcgen05_mma": _PRODUCT,
    "async.dot": _PRODUCT,
    MMA_SYNC: _COMPUTES._replace(multiplies=True, computes="product_sum"),
    DOT_FMA: _COMPUTES._replace(multiplies=True, computes="product_sum"),
    "async.wgmma_wait": Opcode("mma", memory=False, awaits=True, computes="same", value="wait"),
    "async.tmem_copy": Opcode("mma", destination=1, value="moved"),
    # Between memories of the chip, by threads. `mma_copy` changes the layout of registers.
    "async.copy": Opcode("simt", destination=1, value="moved"),
    "async.mma_copy": _MOVES,
    "async.smem_read": _SAME._replace(banked=True, value="moved"),
    "async.smem_write": Opcode("simt", destination=1, computes="same", value="moved"),
    "async.tmem_load": _SAME._replace(value="moved"),
    "async.tmem_store": Opcode("simt", destination=1, computes="same", value="moved"),
    # Orders and pipelines.
    "async.mbarrier_arrive": _MOVES,
    "async.mbarrier_wait": _MOVES,
    **dict.fromkeys(
        (
            f"async.pipeline.{name}"
            for name in (
                "agent_switch",
                "arrive",
                "await",
                "consumer_read",
                "consumer_release",
                "consumer_wait",
                "create_iterator",
                "create_mutex",
                "create_pipeline",
                "create_ring",
                "fill",
                "inc_iter",
                "producer_acquire",
                "producer_commit",
                "producer_write",
                "program",
                "slot",
                "trip_count",
                "yield",
            )
        ),
        _MOVES._replace(pipelines=True),
    ),
    # Buffers, views, and what else moves nothing.
    "alloc_tensor": _ALLOCATES,
    "barrier": _COMPUTES,
    "print": _MOVES,
    "broadcast": _REGISTER_VIEW._replace(computes="broadcast"),
    "constant": _COMPUTES,
    "convert_layout": _COMPUTES._replace(value="moved"),
    "expand_dims": _REGISTER_VIEW._replace(computes="reshape"),
    "slice": _VIEW,
    "splat": _REGISTER_VIEW,
    "transpose": _VIEW._replace(computes="transpose"),
    "view": _VIEW,
    "work_tile_info": _COMPUTES._replace(value="work_tile"),
    "generic": UNKNOWN,  # the text of one names the opcode that is meant
    # Around loops, and by address.
    "async.pointer_copy": _FAR._replace(destination=2),
    "pointer.load": _FAR,
    "pointer.store": _FAR,
    "pointer.atomic_rmw": _FAR,
    "pointer.atomic_cas": _FAR,
    **dict.fromkeys(
        (
            "block_index",
            "block_count",
            "tile_count",
            "range",
            "tensor_view",
            "offset",
            "pointer_to_int",
            "int_to_pointer",
            "join",
            "cat",
            "extract",
            "gather",
            "split",
            "assume",
            "assert",
            "token",
            "scan",
            "combined",
            "view_size",
        ),
        _COMPUTES,
    ),
    # Arithmetic.
    **dict.fromkeys(REDUCTIONS.values(), _COMPUTES._replace(value="reduce")),
    "reduce.with": _COMPUTES,
    "reduce.max": _COMPUTES._replace(computes="greatest_of_row", value="reduce"),
    "reduce.sum": _COMPUTES._replace(computes="sum_of_row", value="reduce"),
    **{
        row.name: _COMPUTES._replace(computes="elementwise" if _is_plain(row) else "")
        for row in OPERATIONS.values()
        if row.elementwise
    },
    # Triton's, as dependence-graph dumps name them.
    "tt.descriptor_gather": _TMA._replace(lands="smem"),
    "tt.descriptor_load": _TMA._replace(lands="smem"),
    "tt.descriptor_store": _TMA,
    "ttng.async_tma_copy_global_to_local": _TMA,
    "ttng.async_tma_copy_local_to_global": _TMA,
    "ttng.async_tma_gather": _TMA,
    "ttng.async_tma_scatter": _TMA,
    "tt.dot": _MMA,
    "tt.dot_scaled": _MMA,
    "ttng.tc_gen5_mma": _PRODUCT_IN_PLACE,
    "ttng.tc_gen5_mma_scaled": _PRODUCT_IN_PLACE,
    "ttng.tmem_copy": _MMA,
    "ttng.warp_group_dot": _MMA,
    "ttg.local_load": _MOVES,
    "ttg.local_store": Opcode("simt", destination=0),
    "ttng.tmem_load": _MOVES,
    "ttng.tmem_store": Opcode("simt", destination=0),
    "tt.broadcast": _REGISTER_VIEW,
    "tt.expand_dims": _REGISTER_VIEW,
    "tt.reshape": _REGISTER_VIEW,
    "tt.trans": _REGISTER_VIEW,
    "tt.splat": _COMPUTES,
    "ttg.convert_layout": _COMPUTES,
    "ttg.local_alloc": _ALLOCATES,
    "ttg.memdesc_index": _BUFFER_VIEW,
    "ttg.memdesc_reinterpret": _BUFFER_VIEW,
    "ttg.memdesc_reshape": _BUFFER_VIEW,
    "ttg.memdesc_subslice": _BUFFER_VIEW,
    "ttg.memdesc_subview": _BUFFER_VIEW,
    "ttg.memdesc_trans": _BUFFER_VIEW,
    "ttng.tmem_subslice": _BUFFER_VIEW,
    "ttng.tmem_alloc": _ALLOCATES,
    # Rows of `blackwell` for tests, one a kind of agent and one for what nobody knows.
    "test.dma": _MOVES,
    "test.mma": _MMA,
    "test.simt": _COMPUTES,
    "unknown": UNKNOWN,
}

_LOWERED = {
    kind.removeprefix("nv_tileas."): "" if row.numpy == NONE else row.numpy
    for row in OPERATIONS.values()
    if not row.elementwise
    for kind in row.mlir.split()
    if kind.startswith("nv_tileas.")
}
"""By what operations of a kernel are lowered to: how those are carried out."""

OPCODES: dict[str, Opcode] = {
    **{
        kind: row if row.value or kind not in _LOWERED else row._replace(value=_LOWERED[kind])
        for kind, row in _ROWS.items()
    },
    # What needs nothing said of it but how it is carried out.
    **{
        kind: _COMPUTES._replace(value=value)
        for kind, value in _LOWERED.items()
        if kind not in _ROWS and "." not in kind
    },
}
"""By name, without the dialect's."""


def opcode(kind: str) -> Opcode:
    """What is known of an opcode."""
    return OPCODES.get(kind, UNKNOWN)
