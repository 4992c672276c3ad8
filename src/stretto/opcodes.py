"""What an opcode says of an operation: one row each, and no word in its name decides anything.

    async.tiled_tma_load     the TMA agent issues it     it touches memory
    async.tcgen05_mma        the MMA agent               it touches memory
    arith.addf               a SIMT agent                it does not

The rows are the operations of the dialect, and those of other people's dialects that front ends
read. Of an opcode without a row nothing is known: threads issue it, and it may touch memory.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Issuer = Literal["tma", "mma", "simt"]


class Opcode(NamedTuple):
    """What is true of every operation of one opcode."""

    issuer: Issuer = "simt"
    """The kind of agent that issues it in a specialized program."""
    memory: bool = True
    """Whether it touches memory even where it names no storage: barriers keep it on its side."""


UNKNOWN = Opcode()

_TMA = Opcode("tma")
_MMA = Opcode("mma")
_MOVES = Opcode("simt")
_COMPUTES = Opcode("simt", memory=False)

OPCODES: dict[str, Opcode] = {
    # Between global memory and the chip.
    "async.tiled_tma_load": _TMA,
    "async.tiled_tma_store": _TMA,
    "async.tma_gather": _TMA,
    "async.tma_scatter": _TMA,
    "async.cp_async": _MOVES,
    "async.gnic_read": _MOVES,
    "async.gnic_write": _MOVES,
    "load": _MOVES,
    "store": _MOVES,
    # Products, and what the tensor core copies.
    "async.wgmma": _MMA,
    "async.tcgen05_mma": _MMA,
    "async.dot": _MMA,
    "async.tmem_copy": _MMA,
    # Between memories of the chip, by threads. `mma_copy` changes the layout of registers.
    "async.copy": _MOVES,
    "async.mma_copy": _MOVES,
    "async.smem_read": _MOVES,
    "async.smem_write": _MOVES,
    "async.tmem_load": _MOVES,
    "async.tmem_store": _MOVES,
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
        _MOVES,
    ),
    # Buffers, views, and what else moves nothing.
    "alloc_tensor": _COMPUTES,
    "barrier": _COMPUTES,
    "broadcast": _COMPUTES,
    "constant": _COMPUTES,
    "convert_layout": _COMPUTES,
    "expand_dims": _COMPUTES,
    "slice": _COMPUTES,
    "splat": _COMPUTES,
    "transpose": _COMPUTES,
    "view": _COMPUTES,
    "work_tile_info": _COMPUTES,
    "generic": UNKNOWN,  # the text of one names the opcode that is meant
    # Arithmetic.
    "reduce.max": _COMPUTES,
    "reduce.sum": _COMPUTES,
    **dict.fromkeys(
        (
            f"arith.{name}"
            for name in (
                "addf",
                "addi",
                "andi",
                "bitcast",
                "cmpf",
                "cmpi",
                "divf",
                "divsi",
                "divui",
                "extf",
                "extsi",
                "extui",
                "fptosi",
                "fptoui",
                "index_cast",
                "maximumf",
                "maxnumf",
                "maxsi",
                "maxui",
                "minimumf",
                "minnumf",
                "minsi",
                "minui",
                "mulf",
                "muli",
                "negf",
                "ori",
                "remsi",
                "remui",
                "select",
                "shli",
                "shrsi",
                "shrui",
                "sitofp",
                "subf",
                "subi",
                "truncf",
                "trunci",
                "uitofp",
                "xori",
            )
        ),
        _COMPUTES,
    ),
    **dict.fromkeys(
        (
            f"math.{name}"
            for name in (
                "absf",
                "cos",
                "exp",
                "exp2",
                "fma",
                "log",
                "log2",
                "rsqrt",
                "sin",
                "sqrt",
                "tanh",
            )
        ),
        _COMPUTES,
    ),
    # Triton's, as dependence-graph dumps name them.
    "tt.descriptor_gather": _TMA,
    "tt.descriptor_load": _TMA,
    "tt.descriptor_store": _TMA,
    "ttng.async_tma_copy_global_to_local": _TMA,
    "ttng.async_tma_copy_local_to_global": _TMA,
    "ttng.async_tma_gather": _TMA,
    "ttng.async_tma_scatter": _TMA,
    "tt.dot": _MMA,
    "tt.dot_scaled": _MMA,
    "ttng.tc_gen5_mma": _MMA,
    "ttng.tc_gen5_mma_scaled": _MMA,
    "ttng.tmem_copy": _MMA,
    "ttng.warp_group_dot": _MMA,
    "ttg.local_load": _MOVES,
    "ttg.local_store": _MOVES,
    "ttng.tmem_load": _MOVES,
    "ttng.tmem_store": _MOVES,
    "tt.broadcast": _COMPUTES,
    "tt.expand_dims": _COMPUTES,
    "tt.splat": _COMPUTES,
    "ttg.convert_layout": _COMPUTES,
    "ttg.local_alloc": _COMPUTES,
    "ttg.memdesc_trans": _COMPUTES,
    "ttng.tmem_alloc": _COMPUTES,
    # Rows of `blackwell` for tests, one a kind of agent and one for what nobody knows.
    "test.dma": _MOVES,
    "test.mma": _MMA,
    "test.simt": _COMPUTES,
    "unknown": UNKNOWN,
}


def opcode(kind: str) -> Opcode:
    """What is known of an opcode."""
    return OPCODES.get(kind, UNKNOWN)
