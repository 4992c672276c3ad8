"""Orders that SSA says only in part: bodies and their tokens, sums that stay in registers."""

from __future__ import annotations

import time

import pytest

import stretto
from stretto.ir.loops import read_loops
from stretto.ir.parsing import parse_module
from stretto.loop import Access, Loop, Operand
from stretto.solve import prepare


def kernel(text: str) -> Loop:
    """The one loop of a function with a pipeline, two factors and a first sum around it."""
    found = read_loops(
        parse_module(f"""
!g = !nv_tileas.tensor<?x16xf16, global>
!s = !nv_tileas.smem_ref<16x16xf16>
!r = tensor<16x16xf16>
!f = tensor<16x16xf32>
!p = !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x16xf16>>
func.func @k(%n: index, %G: !g, %a: !s, %b: !s, %first: !f, %x: f32) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nil = arith.constant 0 : i32
  %pipe = nv_tileas.async.pipeline.create_pipeline : !p
  %it = nv_tileas.async.pipeline.create_iterator %pipe : !p
  {text}
  func.return
}}""")
    )
    (item,) = found.loops
    return item.loop


# Bodies -----------------------------------------------------------------------------------

PIPED = """scf.for %iv = %zero to %n step %one {
  %free = nv_tileas.async.pipeline.producer_acquire %pipe[%it] : !p
  %full = nv_tileas.async.pipeline.producer_write %pipe[%it] after %free (%slot: !s) {
    %unused = nv_tileas.alloc_tensor : !s
    %load = nv_tileas.async.tiled_tma_load %G[%nil, %nil] into %slot : !g -> !s
  } : !p
  %done = nv_tileas.async.pipeline.producer_commit %pipe[%it] after %full : !p
  %here = nv_tileas.async.pipeline.consumer_wait %pipe[%it] after %done : !p
  %read = nv_tileas.async.pipeline.consumer_read %pipe[%it] after %here (%slot: !s) {
    %tile = nv_tileas.async.smem_read %slot : !s -> !r
  } : !p
  %gone = nv_tileas.async.pipeline.consumer_release %pipe[%it] after %read : !p
}"""


def test_a_body_starts_after_its_operation_and_ends_before_its_token() -> None:
    loop = prepare(kernel(PIPED), "blackwell").loop
    order = {(d.src, d.dst, d.latency) for d in loop.dependences if d.distance == 0}
    assert {("full", "load", 0), ("read", "tile", 0)} <= order
    assert ("load", "done", loop.op("load").ready) in order
    assert ("tile", "gone", loop.op("tile").ready) in order


@pytest.mark.parametrize("machine", ["blackwell", "b200-pipes"])
def test_a_slot_is_handed_on_when_it_is_full_and_back_when_it_is_read(machine: str) -> None:
    loop = kernel(PIPED)
    ready = {op.name: op.ready for op in prepare(loop, machine).loop.ops}
    starts = stretto.schedule(loop, machine).starts
    assert starts["free"] <= starts["full"] <= starts["load"]
    assert starts["done"] >= starts["load"] + ready["load"] > starts["load"]
    assert starts["gone"] >= starts["tile"] + ready["tile"] > starts["tile"]


def test_a_token_that_is_carried_is_that_of_the_iteration_before() -> None:
    loop = kernel("""
  %t0 = nv_tileas.async.mbarrier_arrive : !nv_tileas.token
  %r = scf.for %iv = %zero to %n step %one iter_args(%t = %t0) -> (!nv_tileas.token) {
    %gone = nv_tileas.async.pipeline.consumer_release %pipe[%it] after %t : !p
    %read = nv_tileas.async.pipeline.consumer_read %pipe[%it] (%slot: !s) {
      %inner = nv_tileas.async.pipeline.consumer_read %pipe[%it] (%again: !s) {
        %tile = nv_tileas.async.smem_read %a : !s -> !r
      } : !p
    } : !p
    scf.yield %read : !nv_tileas.token
  }""")
    wanted = [Operand(name, 1) for name in ("read", "inner", "tile")]
    assert [o for o in loop.op("gone").operands if o.distance] == wanted


# Sums in registers ------------------------------------------------------------------------


def carried(text: str, after: str = "%sum", more: str = "") -> Loop:
    extra, more_types = (f", %older = {more}", ", !f") if more else ("", "")
    count = ":2" if more else ""
    return kernel(
        f"%r{count} = scf.for %iv = %zero to %n step %one iter_args(%acc = %first{extra})"
        f" -> (!f{more_types}) {{\n{text}\nscf.yield {after} : !f{more_types}\n}}"
    )


PRODUCT = "%sum = nv_tileas.async.wgmma %a, %b acc %acc : !s, !s -> !f\n"
READ = "{} = nv_tileas.arith.mulf {}, %x : !f, f32 -> !f\n"


def test_who_reads_a_sum_in_place_keeps_the_product_waiting() -> None:
    loop = carried(
        READ.format("%before", "%acc")
        + PRODUCT
        + "%view = nv_tileas.transpose %sum : !f -> !f\n"
        + READ.format("%now", "%view")
    )
    assert [s.name for s in loop.storages if s.space == "register"] == ["acc"]
    for name in ("before", "now"):
        assert Access("acc") in loop.op(name).reads
    found = prepare(loop, "blackwell").loop.dependences
    anti = {(d.src, d.dst, d.distance) for d in found if d.kind == "anti"}
    assert anti == {("before", "sum", 0), ("now", "sum", 1)}


@pytest.mark.parametrize(
    ("loop", "distance"),
    [
        (carried(PRODUCT + READ.format("%late", "%acc")), 1),
        (carried(PRODUCT, "%sum, %acc", "%first"), 1),
        (carried(PRODUCT, "%sum, %sum", "%first"), 1),
        (carried(PRODUCT.replace("acc %acc", "acc %older"), "%sum, %acc", "%first"), 2),
    ],
    ids=["read when it is overwritten", "kept", "handed on twice", "in turn"],
)
def test_a_sum_that_cannot_stay_in_place_is_an_operand(loop: Loop, distance: int) -> None:
    assert Operand("sum", distance) in loop.op("sum").operands
    assert all(storage.space == "smem" for storage in loop.storages)


# Time -------------------------------------------------------------------------------------


def test_long_chains_of_arguments_are_read_in_linear_time() -> None:
    def seconds(length: int) -> float:
        names = [f"%a{k}" for k in range(length)]
        types = ", ".join(["f32"] * length)
        lines = "\n".join(f"%s{k} = arith.negf %a{k} : f32" for k in range(length))
        text = kernel_of_chain(names, types, lines)
        parsed = parse_module(text, verify=False)
        began = time.process_time()
        (item,) = read_loops(parsed).loops
        taken = time.process_time() - began
        assert item.loop.op(f"s{length - 1}").operands == (Operand("s0", length),)
        return taken

    seconds(10)
    # the better of several, since others work on the machine too; a square would be 16 times
    long, short = (min(seconds(length) for _ in range(3)) for length in (1200, 300))
    assert long < 12 * max(short, 0.02)


def kernel_of_chain(names: list[str], types: str, lines: str) -> str:
    first = ", ".join(f"{name} = %x" for name in names)
    handed_on = ", ".join(["%s0", *names[:-1]])
    return (
        "func.func @k(%x: f32, %n: index) {\n%zero = arith.constant 0 : index\n"
        f"%r:{len(names)} = scf.for %i = %zero to %n step %n iter_args({first}) -> ({types}) {{\n"
        f"{lines}\nscf.yield {handed_on} : {types}\n}}\nfunc.return\n}}"
    )
