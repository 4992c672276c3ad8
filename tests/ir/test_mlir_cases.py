"""Modules that once went wrong, each with what is right."""

from __future__ import annotations

from dataclasses import replace

import pytest

import stretto
from stretto.ir import read_mlir
from stretto.ir.loops.writer import print_module, write_loop
from stretto.loop import Facts, Loop
from stretto.materialization import MODES

# Asynchronous pipelines -----------------------------------------------------------------------

PIPELINE = """
!p = !nv_tileas.pipeline<2, tensor<32x32xf16>>
!r = tensor<32x32xf16>
func.func @through_a_pipeline(%n: index, %x: !r) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %p = nv_tileas.async.pipeline.create_pipeline : !p
  %first = nv_tileas.async.pipeline.create_iterator %p : !p
  %last = scf.for %i = %zero to %n step %one iter_args(%at = %first) -> (!nv_tileas.iterator) {
    %free = nv_tileas.async.pipeline.producer_acquire %p[%at] : !p
    %full, %v = nv_tileas.async.pipeline.producer_write %p[%at] after %free () {
      %sum = arith.addf %x, %x : !r
      nv_tileas.async.pipeline.yield %sum : !r
    } : !p -> !r
    %sent = nv_tileas.async.pipeline.producer_commit %p[%at] after %full : !p
    %there = nv_tileas.async.pipeline.consumer_wait %p[%at] after %sent : !p
    %taken, %w = nv_tileas.async.pipeline.consumer_read %p[%at] after %there (%in: !r) {
      %square = arith.mulf %in, %in : !r
      nv_tileas.async.pipeline.yield %square : !r
    } : !p -> !r
    nv_tileas.async.pipeline.consumer_release %p[%at] after %taken : !p
    %next = nv_tileas.async.pipeline.inc_iter %at
    scf.yield %next : !nv_tileas.iterator
  }
  func.return
}
"""


def the_loop(text: str) -> Loop:
    ((found,), _) = read_mlir("case.mlir", text)
    return found


def test_a_loop_over_an_asynchronous_pipeline_is_pipelined() -> None:
    """Its two additions hold one slot 8 cycles; a serial iteration takes one more."""
    found = stretto.schedule(the_loop(PIPELINE), "blackwell")
    assert found.generator == "cost-based"
    assert found.rule == "worth pipelining: 7 operations of asynchronous pipelines"
    assert found.ii == 8
    serial = stretto.schedule(the_loop(PIPELINE), "blackwell", generator="serial")
    assert serial.ii == 9


# Banks of buffers -----------------------------------------------------------------------------


def reads(body: str) -> str:
    return f"""
!g = !nv_tileas.tensor<4096x64xf16, global>
!t = !nv_tileas.smem_ref<64x64xf16>
!r = tensor<64x64xf16>
func.func @reads(%A: !g, %n: i32) {{
  %zero = arith.constant 0 : i32
  %rows = arith.constant 64 : i32
  scf.for %row = %zero to %n step %rows : i32 {{
    %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] : !g -> !t
    {body}
  }}
  func.return
}}
"""


READ = "nv_tileas.async.smem_read"
TWO = reads(f"%r1 = {READ} %load : !t -> !r\n%r2 = {READ} %load : !t -> !r")


def banks(loop: Loop) -> dict[str, int | None]:
    return {op.name: op.facts.bank for op in loop.ops if op.kind == "async.smem_read"}


def test_two_reads_of_one_buffer_share_a_hold() -> None:
    loop = the_loop(TWO)
    assert banks(loop) == {"r1": 0, "r2": 0}
    found = stretto.schedule(loop, "blackwell")
    assert found.ii == 8
    assert found.fused == (("r1", "r2"),)
    apart = stretto.schedule(loop, "blackwell", fuse=False)
    assert apart.ii == 14


def test_fused_reads_run_as_the_loop_does() -> None:
    for mode in MODES:
        assert stretto.simulate(the_loop(TWO), machine="blackwell", mode=mode).success


def test_reads_of_two_buffers_have_no_bank_in_common() -> None:
    other = "%other = nv_tileas.async.tiled_tma_load %A[%zero, %row] : !g -> !t\n"
    one_each = f"%r1 = {READ} %load : !t -> !r\n%r2 = {READ} %other : !t -> !r"
    assert banks(the_loop(reads(other + one_each))) == {"r1": None, "r2": None}
    two_each = one_each + f"\n%r3 = {READ} %other : !t -> !r\n%r4 = {READ} %load : !t -> !r"
    found = banks(the_loop(reads(other + two_each)))
    assert found == {"r1": 0, "r2": 1, "r3": 1, "r4": 0}


def test_a_slice_of_a_buffer_lies_in_its_bank() -> None:
    body = f"""
    %half = nv_tileas.slice %load[%zero, %zero] : !t -> !nv_tileas.smem_ref<32x64xf16>
    %r1 = {READ} %load : !t -> !r
    %r2 = {READ} %half : !nv_tileas.smem_ref<32x64xf16> -> tensor<32x64xf16>"""
    assert banks(the_loop(reads(body))) == {"r1": 0, "r2": 0}


def test_stated_facts_stand_and_their_banks_are_left_to_them() -> None:
    body = "\n".join(
        [
            f"%r1 = {READ} %load {{stretto.facts = {{bank = 0}}}} : !t -> !r",
            f"%r2 = {READ} %load {{stretto.facts = {{}}}} : !t -> !r",
            f"%r3 = {READ} %load : !t -> !r",
            f"%r4 = {READ} %load : !t -> !r",
        ]
    )
    assert banks(the_loop(reads(body))) == {"r1": 0, "r2": None, "r3": 1, "r4": 1}


@pytest.mark.parametrize("bank", [None, 0, 7])
def test_banks_survive_writing_and_reading(bank: int | None) -> None:
    loop = the_loop(TWO)
    ops = tuple(replace(op, facts=Facts(bank=bank)) for op in loop.ops)
    loop = replace(loop, ops=ops)
    assert the_loop(print_module(write_loop(loop).module)) == loop


# Groups of buffers ----------------------------------------------------------------------------


def filled(first: str, second: str, loads: str = "") -> str:
    return f"""
!g = !nv_tileas.tensor<4096x64xf16, global>
!t = !nv_tileas.smem_ref<64x64xf16>
func.func @filled(%A: !g, %n: i32, %r: tensor<64x64xf16>) {{
  %zero = arith.constant 0 : i32
  %rows = arith.constant 64 : i32
  scf.for %row = %zero to %n step %rows : i32 {{
    %x = nv_tileas.alloc_tensor {{{first}}} : !t
    %y = nv_tileas.alloc_tensor {{{second}}} : !t
    %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] into %x : !g -> !t
    %read = nv_tileas.async.smem_read %load : !t -> tensor<64x64xf16>
    %write = nv_tileas.async.smem_write %read into %y {{{loads}}} : tensor<64x64xf16> -> !t
  }}
  func.return
}}
"""


GID, LEADER = "tileas.schedule.constraint.gid", "tileas.schedule.constraint.leader_gid"


def test_who_fills_buffers_of_one_group_shares_a_stage() -> None:
    """Otherwise the write, which waits 15 cycles for the load, is a stage later at II 15."""
    loop = the_loop(filled(f"{LEADER} = 4", f"{LEADER} = 4"))
    assert loop.groups == (("load", "write"),)
    found = stretto.schedule(loop, "blackwell")
    stages = {placed.op: placed.stage for placed in found.placements}
    assert stages["load"] == stages["write"]
    free = stretto.schedule(the_loop(filled("", "")), "blackwell")
    assert (free.ii, found.ii) == (15, 22)


def test_groups_of_buffers_meet_those_of_operations() -> None:
    assert the_loop(filled(f"{GID} = 4", f"{GID} = 5", f"{GID} = 4")).groups == (("load", "write"),)
    assert the_loop(filled(f"{GID} = 4", f"{GID} = 4", f"{LEADER} = 9")).groups == ()
    assert the_loop(filled(f"{GID} = 4", f"{GID} = 5")).groups == ()
