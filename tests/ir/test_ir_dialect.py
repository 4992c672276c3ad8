"""The dialect: types, what machines make of its operations, and what is loaded when."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.ir import Block, Region

import stretto
from stretto.ir.dialect import NvTileas, kind_of, pipelined
from stretto.ir.dialect.types import (
    BufferTensorType,
    PipelineType,
    SmemRefType,
    TmemRefType,
    buffer_of,
    tile_of,
)
from stretto.ir.loops import read_loops
from stretto.ir.parsing import Parsed, make_context, parse_module
from stretto.loop import TileType

LIT = Path(__file__).parents[1] / "lit" / "dialect" / "operations.mlir"
ISSUED = [
    "async.tiled_tma_load", "async.tiled_tma_store", "async.tma_gather", "async.tma_scatter",
    "async.tmem_load", "async.tmem_store", "async.tmem_copy", "async.tcgen05_mma", "async.wgmma",
    "async.dot", "async.smem_write", "async.smem_read", "async.copy", "async.cp_async",
    "alloc_tensor", "slice", "convert_layout", "arith.addf", "arith.mulf", "math.exp2",
    "reduce.max", "reduce.sum", "barrier", "async.pipeline.create_pipeline",
    "async.pipeline.create_iterator", "async.pipeline.inc_iter", "async.pipeline.producer_acquire",
    "async.pipeline.producer_write", "async.pipeline.producer_commit",
    "async.pipeline.consumer_wait", "async.pipeline.consumer_read",
    "async.pipeline.consumer_release", "async.pipeline.agent_switch", "async.pipeline.yield",
]  # fmt: skip
PROGRAM = {op.name.removeprefix("nv_tileas.") for op in pipelined.OPERATIONS}
NO_COST = {"async.pipeline.agent_switch", "async.pipeline.yield", "combined", "generic"} | PROGRAM
"""A region an agent, the end of a body, whatever its kind says, and what only a loop that has been
pipelined is made of: none is scheduled as such."""


def kinds() -> list[str]:
    return [op.name.removeprefix("nv_tileas.") for op in NvTileas.operations]


def operations() -> Parsed:
    return parse_module(LIT.read_text(encoding="utf-8"), LIT.name)


def test_every_operation_a_kernel_needs_is_there() -> None:
    assert set(ISSUED) <= set(kinds())
    assert len(kinds()) == len(set(kinds()))


def test_the_text_of_every_operation_is_tested() -> None:
    written = {op.name for op in operations().module.walk()}
    # The yield of a body that results in nothing is not written down.
    assert {op.name for op in NvTileas.operations} <= written


@pytest.mark.parametrize("machine", ["blackwell", "b200-pipes"])
def test_machines_know_every_operation(machine: str) -> None:
    known = set(stretto.load_machine(machine).opcodes)
    assert set(kinds()) - known == NO_COST


def looped(function: FuncOp) -> ModuleOp:
    """A module in which a function's body is the body of a loop."""
    entry = function.body.block
    ops = [op for op in entry.ops if not isinstance(op, ReturnOp)]
    for op in ops:
        op.detach()
    block = Block(ops, arg_types=[IndexType()])
    block.add_op(YieldOp())
    one = ConstantOp.from_int_and_width(1, IndexType())
    loop = ForOp(one, one, one, [], Region(block))
    last = entry.last_op
    assert last is not None
    entry.insert_ops_before([one, loop], last)
    function.detach()
    return ModuleOp([function])


@pytest.mark.parametrize("machine", ["blackwell", "b200-pipes"])
@pytest.mark.parametrize("name", ["memory", "views", "compute", "kernel"])
def test_every_operation_has_its_cost(name: str, machine: str) -> None:
    functions = [op for op in operations().module.walk() if isinstance(op, FuncOp)]
    function = next(f for f in functions if f.sym_name.data == name)
    expected = [kind_of(op) for op in function.body.block.ops if op.name.startswith("nv_tileas.")]
    found = read_loops(Parsed.of_module(looped(function)), machine)
    assert found.left_alone == ()
    (item,) = found.loops
    assert item.warnings == ()
    read = [op.kind for op in item.loop.ops]
    bare = {"memory": 2, "kernel": 1}.get(name, 0)  # buffers as such are no operations of the loop
    assert read == expected[bare:]
    ready = stretto.prepare(item.loop, machine)
    assert all(op.resolved and op.encoding != "unknown" for op in ready.loop.ops)


def test_types_differ_by_what_they_hold() -> None:
    tiles = [
        SmemRefType([4, 8], "f16"),
        SmemRefType([8, 4], "f16"),
        SmemRefType([4, 8], "bf16"),
        TmemRefType([4, 8], "f16"),
        BufferTensorType([4, 8], "f16", "smem"),
        BufferTensorType([4, 8], "f16", "global"),
    ]
    assert len(set(tiles)) == len(tiles)
    assert SmemRefType([4, 8], "f16") == tiles[0]
    pipes = {PipelineType(n, tile) for n in (1, 2) for tile in tiles[:2]}
    assert len(pipes) == 4


@pytest.mark.parametrize(
    ("text", "buffer", "tile"),
    [
        ("!nv_tileas.smem_ref<128x64xf16>", "smem", TileType((128, 64), "f16")),
        ("!nv_tileas.tmem_ref<f32>", "tmem", TileType((), "f32")),
        ("!nv_tileas.tensor<16xf8E4M3FN, register>", "register", TileType((16,), "f8E4M3FN")),
        ("!nv_tileas.tensor<?x4xf16, global>", "global", None),
        ("tensor<4x4xbf16>", "register", TileType((4, 4), "bf16")),
        ("tensor<4x?xbf16>", "register", None),
        ("index", None, TileType((), "index")),
        ("i1", None, TileType((), "i1")),
        ("!nv_tileas.token", None, None),
        ("!nv_tileas.iterator", None, None),
    ],
)
def test_what_a_type_says(text: str, buffer: str | None, tile: TileType | None) -> None:
    parsed = parse_module(f"func.func @f(%x: {text}) {{\n  func.return\n}}")
    function = next(op for op in parsed.module.walk() if isinstance(op, FuncOp))
    type = function.body.block.args[0].type
    assert str(type) == text
    assert (buffer_of(type), tile_of(type)) == (buffer, tile)


def test_the_dialect_is_loaded_when_it_is_met() -> None:
    context = make_context()
    assert "nv_tileas" not in {dialect.name for dialect in context.loaded_dialects}
    parse_module("func.func @f() {\n  nv_tileas.barrier\n  func.return\n}", context=context)
    assert "nv_tileas" in {dialect.name for dialect in context.loaded_dialects}


def test_xdsl_is_loaded_when_mlir_is_read() -> None:
    code = "import sys, stretto.ir; sys.exit('xdsl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
