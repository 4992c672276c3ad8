"""From loop bodies to loops: flow, distance, storages, inner loops, and what is left alone."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

import stretto
from documents import parse_loop
from stretto.diagnostics import MlirError
from stretto.extraction import positioned
from stretto.ir import read_mlir
from stretto.ir.loops import LoopsOfModule, read_loops
from stretto.ir.loops.module import Module
from stretto.ir.parsing import parse_module
from stretto.loop import (
    Access,
    Constraint,
    Dependence,
    Facts,
    Loop,
    LoopError,
    Op,
    Operand,
    Storage,
    TileType,
    Use,
    Value,
)
from stretto.lower_bounds import compute_bounds
from stretto.machine import load_machine

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNELS = sorted(path for path in EXAMPLES.glob("*.mlir") if path.with_suffix(".json").exists())


def module(text: str, machine: str | None = None) -> LoopsOfModule:
    return read_loops(parse_module(text, "kernel.mlir"), machine)


def body(text: str, carried: str = "", attributes: str = "", machine: str | None = None) -> Loop:
    """The loop of a function with everything a small body needs, around some lines."""
    found = module(kernel(text, carried, attributes), machine)
    assert found.left_alone == ()
    return found.loops[0].loop


def kernel(text: str, carried: str = "", attributes: str = "") -> str:
    return f"""
!g = !nv_tileas.tensor<?x64xf32, global>
!s = !nv_tileas.smem_ref<16x64xf32>
!s_t = !nv_tileas.smem_ref<64x16xf32>
!t = !nv_tileas.tmem_ref<16x16xf32>
!r = tensor<16x64xf32>
!tok = !nv_tileas.token
func.func @k(%n: index, %G: !g, %x: f32, %y: f32, %i: i32, %tok: !tok, %tile: !r) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nil = arith.constant 0 : i32
  %fixed = nv_tileas.alloc_tensor : !s
  %acc = nv_tileas.alloc_tensor : !t
  {carried}scf.for %iv = %zero to %n step %one {text} {{{attributes}}}
  func.return
}}
"""


def op(loop: Loop, name: str) -> Op:
    return loop.op(name)


# Twins ------------------------------------------------------------------------------------


def test_all_kernels_ship() -> None:
    assert [path.stem for path in KERNELS] == [
        "attention_backward",
        "attention_forward",
        "four_op",
        "gemm",
        "layernorm",
    ]
    assert (EXAMPLES / "persistent_gemm.mlir").exists()


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_a_kernel_is_the_loop_of_its_json_twin(path: Path) -> None:
    """But for what follows from addresses, which the twin has not."""
    (loop,), notes = read_mlir(path.name, path.read_text(encoding="utf-8"))
    twin = path.with_suffix(".json")
    ops = tuple(replace(op, facts=Facts(bank=op.facts.bank)) for op in loop.ops)
    assert replace(loop, ops=ops) == parse_loop(twin.name, twin.read_text(encoding="utf-8"))
    assert notes == ()


@pytest.mark.parametrize(
    ("name", "ii"),
    [
        ("attention_backward", 946),
        ("attention_forward", 1325),
        ("four_op", 15),
        ("gemm", 256),
        ("layernorm", 1217),
    ],
)
def test_a_kernel_has_the_ii_of_its_twin(name: str, ii: int) -> None:
    path = EXAMPLES / f"{name}.mlir"
    (loop,), _ = read_mlir(path.name, path.read_text(encoding="utf-8"))
    assert stretto.schedule(loop).ii == ii


@pytest.mark.parametrize("machine", ["blackwell", "b200-pipes"])
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_every_kernel_stands_on_both_machines(path: Path, machine: str) -> None:
    loops, notes = read_mlir(path.name, path.read_text(encoding="utf-8"), machine)
    assert len(loops) == 1
    assert notes == ()


# Flow -------------------------------------------------------------------------------------


def test_flow_within_the_body() -> None:
    loop = body("{ %a = arith.addf %x, %y : f32\n %b = arith.mulf %a, %a : f32 }")
    assert op(loop, "a").operands == (Operand("x"), Operand("y"))
    assert op(loop, "b").operands == (Operand("a"), Operand("a"))
    assert [value.name for value in loop.values] == ["x", "y", "a", "b"]


def test_constants_are_part_of_their_instructions() -> None:
    loop = body("{ %two = arith.constant 2.0 : f32\n %a = arith.addf %x, %two : f32 }")
    assert [o.name for o in loop.ops] == ["a"]
    assert op(loop, "a").operands == (Operand("x"),)


def test_a_table_of_constants_takes_registers() -> None:
    loop = body(
        "{ %t = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>\n"
        " %a = arith.addf %t, %t : tensor<2xf32> }"
    )
    assert [(o.name, o.kind) for o in loop.ops] == [("t", "constant"), ("a", "arith.addf")]


CARRIED = """iter_args(%p = %x, %q = %x, %s = %x) -> (f32, f32, f32) {
  %a = arith.addf %s, %y : f32
  %b = arith.addf %q, %a : f32
  %c = arith.addf %p, %b : f32
  scf.yield %a, %p, %q : f32, f32, f32
}"""


def test_chains_of_yields_reach_further_back() -> None:
    loop = body(CARRIED, "%u, %v, %w = ")
    assert op(loop, "a").operands[0] == Operand("a", 3)
    assert op(loop, "b").operands[0] == Operand("a", 2)
    assert op(loop, "c").operands[0] == Operand("a", 1)
    assert [value.name for value in loop.values] == ["y", "a", "b", "c"]


def test_what_is_yielded_from_outside_is_a_live_in() -> None:
    loop = body(
        "iter_args(%p = %x) -> (f32) { %a = arith.negf %p : f32\n scf.yield %y : f32 }", "%u = "
    )
    assert op(loop, "a").operands == (Operand("y"),)


def test_what_only_changes_places_is_made_by_nobody() -> None:
    loop = body(
        "iter_args(%p = %x, %q = %y) -> (f32, f32) {\n"
        "%a = arith.subf %p, %q : f32\n scf.yield %q, %p : f32, f32 }",
        "%u, %v = ",
    )
    assert op(loop, "a").operands == (Operand("p"), Operand("q"))
    assert [value.name for value in loop.values] == ["p", "q", "a"]


def test_the_induction_variable_comes_first() -> None:
    loop = body("{ %a = arith.index_cast %iv : index to i32\n %b = arith.addi %i, %a : i32 }")
    assert [value.name for value in loop.values] == ["iv", "i", "a", "b"]


def test_tokens_order_without_data() -> None:
    loop = body(
        "{ %a, %done = nv_tileas.async.tiled_tma_load %G[%nil, %nil] after %tok : !g -> !s, !tok\n"
        "  %b = nv_tileas.async.smem_read %fixed after %done : !s -> !r }"
    )
    assert op(loop, "a").operands == (Operand("tok"),)
    assert Operand("done") in op(loop, "b").operands
    resolved = stretto.prepare(loop).loop
    assert ("a", "b", 8, "flow") in {
        (d.src, d.dst, d.latency, d.kind) for d in resolved.dependences
    }


def test_views_outside_are_their_source() -> None:
    text = kernel("{ %a = arith.mulf %tile, %wide : !r }").replace(
        "%acc = ", "%wide = nv_tileas.splat %x : f32 -> !r\n  %acc = "
    )
    loop = module(text).loops[0].loop
    assert op(loop, "a").operands == (Operand("tile"), Operand("x"))


def test_views_of_registers_take_none_of_their_own() -> None:
    loop = body(
        "{ %a = nv_tileas.reduce.sum %tile axis 1 : !r -> tensor<16xf32>\n"
        "  %b = nv_tileas.broadcast %a : tensor<16xf32> -> !r }"
    )
    assert next(v for v in loop.values if v.name == "b").view_of == "a"


# Storages ---------------------------------------------------------------------------------


def test_a_buffer_of_the_body_rotates_and_one_from_outside_is_fixed() -> None:
    loop = body(
        "{ %ring = nv_tileas.alloc_tensor : !s\n"
        "  %a = nv_tileas.async.tiled_tma_load %G[%nil, %nil] into %ring : !g -> !s\n"
        "  %b = nv_tileas.async.smem_read %a : !s -> !r\n"
        "  %c = nv_tileas.async.smem_write %b into %fixed : !r -> !s }"
    )
    assert loop.storages == (
        Storage("ring", "smem", 4096),
        Storage("fixed", "smem", 4096, fixed=True),
    )
    assert op(loop, "a").writes == ("ring",)
    assert op(loop, "b").reads == (Access("ring"),)
    assert (op(loop, "c").writes, op(loop, "c").reads) == (("fixed",), ())


def test_what_names_no_buffer_has_one_of_its_own() -> None:
    loop = body("{ %a = nv_tileas.async.tiled_tma_load %G[%nil, %nil] : !g -> !s }")
    assert loop.storages == (Storage("a", "smem", 4096),)
    assert loop.values[0].storage == "a"


def test_depth_caps_a_ring_wherever_it_is_declared() -> None:
    text = kernel(
        "{ %ring = nv_tileas.alloc_tensor {depth = 2} : !s\n"
        "  %a = nv_tileas.async.smem_write %tile into %ring : !r -> !s\n"
        "  %b = nv_tileas.async.smem_write %tile into %fixed : !r -> !s }"
    ).replace("%fixed = nv_tileas.alloc_tensor", "%fixed = nv_tileas.alloc_tensor {depth = 4}")
    loop = module(text).loops[0].loop
    assert [(s.name, s.depth, s.fixed) for s in loop.storages] == [
        ("fixed", 4, False),
        ("ring", 2, False),
    ]


def test_a_buffer_only_read_is_a_live_in() -> None:
    loop = body("{ %a = nv_tileas.async.smem_read %fixed : !s -> !r }")
    assert loop.storages == (Storage("fixed", "smem", 4096),)
    assert loop.values[0] == Value("fixed", TileType((16, 64), "f32"), "fixed")


VIEWED = """{
  %ring = nv_tileas.alloc_tensor : !s
  %a = nv_tileas.async.tiled_tma_load %G[%nil, %nil] into %ring : !g -> !s
  %t = nv_tileas.transpose %a : !s -> !s_t
  %part = nv_tileas.slice %t[%nil, %nil] : !s_t -> !nv_tileas.smem_ref<8x16xf32>
  %cast = nv_tileas.view %part : !nv_tileas.smem_ref<8x16xf32> -> !nv_tileas.smem_ref<128xf32>
  %b = nv_tileas.async.smem_read %cast : !nv_tileas.smem_ref<128xf32> -> tensor<128xf32>
}"""


def test_views_are_followed_to_their_buffer() -> None:
    loop = body(VIEWED)
    assert {v.name: v.storage for v in loop.values} == {
        "a": "ring",
        "t": "ring",
        "part": "ring",
        "cast": "ring",
        "b": None,
    }
    assert op(loop, "t").reads == ()
    assert op(loop, "b").reads == (Access("ring"),)


MMA = "nv_tileas.async.wgmma %fixed, %b acc {acc} : !s, !s_t -> {type}"
FACTOR = "%b = nv_tileas.transpose %fixed : !s -> !s_t"


def test_an_accumulator_in_place_is_fixed() -> None:
    loop = body(f"{{ {FACTOR}\n %m = {MMA.format(acc='%acc', type='!t')} }}")
    assert loop.storage("acc") == Storage("acc", "tmem", 1024, fixed=True)
    assert op(loop, "m").operands == (Operand("fixed"), Operand("b"))
    assert op(loop, "m").reads == (Access("fixed"), Access("acc"))
    assert op(loop, "m").writes == ("acc",)


def test_an_accumulator_carried_round_is_the_same_loop() -> None:
    """In place and through iter_args are two ways to write one thing."""
    place = body(f"{{ {FACTOR}\n %m = {MMA.format(acc='%acc', type='!t')} }}")
    carried = body(
        f"iter_args(%c = %acc) -> (!t) {{ {FACTOR}\n %m = {MMA.format(acc='%c', type='!t')}\n"
        " scf.yield %m : !t }",
        "%u = ",
    )
    assert set(carried.values) == set(place.values)
    assert (carried.ops, carried.storages) == (place.ops, place.storages)


def test_an_accumulator_in_registers_is_fixed_too() -> None:
    sums = "tensor<16x16xf32>"
    loop = body(
        f"iter_args(%c = %s0) -> ({sums}) {{ {FACTOR}\n"
        f" %m = {MMA.format(acc='%c', type=sums)}\n scf.yield %m : {sums} }}",
        f"%s0 = arith.constant dense<0.0> : {sums}\n  %u = ",
    )
    assert loop.storage("c") == Storage("c", "register", 1024, fixed=True)
    assert Access("c") in op(loop, "m").reads
    assert op(loop, "m").writes == ("c",)
    assert all(o.value != "m" for o in op(loop, "m").operands)
    assert compute_bounds(*_prepared(loop)).recurrence.bound <= 1


def _prepared(loop: Loop) -> tuple[Loop, stretto.Machine]:
    ready = stretto.prepare(loop)
    return ready.loop, ready.machine


def test_a_tile_of_the_iteration_before() -> None:
    loop = body(
        "iter_args(%before = %fixed) -> (!s) {\n"
        " %r = nv_tileas.async.smem_read %before : !s -> !r\n"
        " %ring = nv_tileas.alloc_tensor : !s\n"
        " %w = nv_tileas.async.smem_write %r into %ring : !r -> !s\n"
        " scf.yield %w : !s }",
        "%u = ",
    )
    assert op(loop, "r").operands == (Operand("w", 1),)
    assert op(loop, "r").reads == (Access("ring", 1),)
    assert loop.storages == (Storage("ring", "smem", 4096),)


def test_buffers_that_change_places_are_left_alone() -> None:
    found = module(
        kernel(
            "iter_args(%a = %fixed, %b = %other) -> (!s, !s) {\n"
            " %r = nv_tileas.async.smem_read %a : !s -> !r\n scf.yield %b, %a : !s, !s }",
            "%other = nv_tileas.alloc_tensor : !s\n  %u, %v = ",
        )
    )
    assert found.loops == ()
    (left,) = found.left_alone
    assert "change places between iterations" in left.reason.message


def test_copies_are_told_by_where_they_go() -> None:
    loop = body(
        "{ %a = nv_tileas.async.copy %fixed : !s -> !r\n"
        "  %b = nv_tileas.async.copy %fixed into %G : !s -> !g\n"
        "  %c = nv_tileas.async.copy %tile : !r -> !t2 }".replace(
            "!t2", "!nv_tileas.tmem_ref<16x64xf32>"
        )
    )
    resolved = stretto.prepare(loop, "blackwell").loop
    assert [o.encoding for o in resolved.ops] == [
        "copy_in_registers",
        "copy_to_global",
        "copy_to_tmem",
    ]


def test_a_buffer_may_be_read_and_filled_by_one_operation() -> None:
    loop = body("{ %a = nv_tileas.async.copy %fixed into %fixed : !s -> !s }")
    assert (loop.ops[0].reads, loop.ops[0].writes) == ((Access("fixed"),), ("fixed",))
    assert loop.ops[0].operands == (Operand("fixed"),)


def test_barriers_keep_memory_on_its_side() -> None:
    loop = body(
        "{ %a = nv_tileas.async.smem_read %fixed : !s -> !r\n"
        "  %n2 = arith.negf %x : f32\n"
        '  nv_tileas.barrier {stretto.name = "meet"}\n'
        "  %b = nv_tileas.async.smem_read %fixed : !s -> !r }"
    )
    assert set(loop.stated) == {
        Dependence("a", "meet", 0, 0, "order", "barrier"),
        Dependence("meet", "b", 0, 0, "order", "barrier"),
        Dependence("meet", "a", 0, 1, "order", "barrier"),
        Dependence("b", "meet", 0, 1, "order", "barrier"),
    }


def test_two_barriers_make_two_sides() -> None:
    read = "nv_tileas.async.smem_read %fixed : !s -> !r"
    meet = 'nv_tileas.barrier {{stretto.name = "{}"}}'
    loop = body(
        f"{{ %a = {read}\n {meet.format('one')}\n %b = {read}\n {meet.format('two')}\n"
        f" %c = {read} }}"
    )
    assert {(d.src, d.dst, d.distance) for d in loop.stated} == {
        ("a", "one", 0),
        ("one", "b", 0),
        ("b", "two", 0),
        ("two", "c", 0),
        ("c", "one", 1),
        ("two", "a", 1),
    }


def test_a_buffer_of_the_body_read_before_it_is_filled() -> None:
    with pytest.raises(MlirError) as caught:
        body(
            "{ %ring = nv_tileas.alloc_tensor : !s\n"
            "  %a = nv_tileas.async.smem_read %ring : !s -> !r\n"
            "  %b = nv_tileas.async.smem_write %a into %ring : !r -> !s }"
        )
    (told,) = caught.value.diagnostics
    assert "reads rotating storage `ring` before any operation" in told.message
    assert told.text.strip().startswith("%a = ")


PIPED = """{
  %free = nv_tileas.async.pipeline.producer_acquire %pipe[%it] : !p
  %w = nv_tileas.async.pipeline.producer_write %pipe[%it] after %free (%slot: !s) {
    %a = nv_tileas.async.tiled_tma_load %G[%nil, %nil] into %slot : !g -> !s
  } : !p
  %c = nv_tileas.async.pipeline.producer_commit %pipe[%it] after %w : !p
  %full = nv_tileas.async.pipeline.consumer_wait %pipe[%it] after %c : !p
  %rd, %got = nv_tileas.async.pipeline.consumer_read %pipe[%it] after %full (%slot2: !s) {
    %b = nv_tileas.async.smem_read %slot2 : !s -> !r
    nv_tileas.async.pipeline.yield %b : !r
  } : !p -> !r
  %use = arith.negf %got : !r
}"""


@pytest.mark.parametrize("machine", ["blackwell", "b200-pipes"])
def test_a_pipeline_is_a_capped_ring(machine: str) -> None:
    text = kernel(
        PIPED,
        "%pipe = nv_tileas.async.pipeline.create_pipeline : !p\n"
        "  %it = nv_tileas.async.pipeline.create_iterator %pipe : !p\n  ",
    )
    text = "!p = !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf32>>\n" + text
    found = module(text, machine)
    (item,) = found.loops
    loop = item.loop
    assert loop.storages == (Storage("pipe", "smem", 4096, depth=3),)
    assert (op(loop, "a").parent, op(loop, "a").writes) == ("w", ("pipe",))
    assert (op(loop, "b").parent, op(loop, "b").reads) == ("rd", (Access("pipe"),))
    assert op(loop, "use").operands == (Operand("b"),)
    assert item.warnings == ()
    analysis = stretto.schedule(loop, machine)
    assert analysis.success


# What is stated ---------------------------------------------------------------------------


def test_constraints_and_costs_that_are_stated() -> None:
    loop = body(
        "{ %a = arith.addf %x, %y {tileas.schedule.constraint.gid = 1, "
        "tileas.schedule.constraint.stage_offset = 3, "
        "tileas.schedule.constraint.pending, tileas.schedule.constraint.max_depth = 2, "
        'stretto.uses = [{slot = "tma", duration = 3}], stretto.latency = 5} : f32 }',
        attributes="tileas.schedule.constraint.force_serial_execution, stretto.dependences = "
        '[{src = "a", dst = "a", latency = 9, distance = 1, kind = "order"}]',
    )
    assert op(loop, "a").constraint == Constraint(gid=1, stage_offset=3, max_depth=2, pending=True)
    assert op(loop, "a").uses == (Use("tma", 3),)
    assert op(loop, "a").latency == 5
    assert loop.force_serial
    assert loop.stated == (Dependence("a", "a", 9, 1, "order"),)


def test_a_stated_operation_that_does_not_exist() -> None:
    with pytest.raises(MlirError) as caught:
        body(
            "{ %a = arith.negf %x : f32 }",
            attributes='stretto.dependences = [{src = "b", dst = "a", latency = 9}]',
        )
    (told,) = caught.value.diagnostics
    assert told.message == "dependence b -> a: no operation `b`"
    assert told.text[told.column - 1 :].startswith("stretto.dependences")


def test_names_come_from_the_text() -> None:
    loop = body(
        "{ %a = arith.negf %x : f32\n %a_1 = arith.negf %a : f32\n %0 = arith.negf %a_1 : f32\n"
        ' %z = arith.negf %0 {stretto.name = "last", stretto.results = ["end"]} : f32 }'
    )
    assert [o.name for o in loop.ops] == ["a", "a_1", "negf_2", "last"]
    assert [o.results for o in loop.ops] == [("a",), ("a_1",), ("negf_2",), ("end",)]


# Several loops ----------------------------------------------------------------------------

NESTED = """
func.func @outer(%n: index, %m: index, %x: f32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ten = arith.constant 10 : index
  %buffer = nv_tileas.alloc_tensor : !nv_tileas.smem_ref<4xf32>
  scf.for %i = %zero to %n step %one {
    %a = arith.negf %x : f32
    %sum = scf.for %j = %zero to UPPER step %one iter_args(%s = %a) -> (f32) {
      %own = nv_tileas.alloc_tensor : !nv_tileas.smem_ref<4xf32>
      %t = nv_tileas.async.smem_read %buffer : !nv_tileas.smem_ref<4xf32> -> tensor<4xf32>
      %w = nv_tileas.async.smem_write %t into %own : tensor<4xf32> -> !nv_tileas.smem_ref<4xf32>
      %b = arith.addf %s, %a : f32
      scf.yield %b : f32
    } {INNER}
    %c = arith.negf %sum : f32
  }
  func.return
}
"""


def nested(upper: str = "%ten", inner: str = "") -> LoopsOfModule:
    return module(NESTED.replace("UPPER", upper).replace("INNER", inner), "blackwell")


def test_an_inner_loop_is_one_operation_of_the_outer() -> None:
    found = nested()
    assert [item.loop.name for item in found.loops] == ["outer.0", "outer.1"]
    outer, inner = (item.loop for item in found.loops)
    assert [o.name for o in outer.ops] == ["a", "sum", "c"]
    assert [o.name for o in inner.ops] == ["t", "w", "b"]
    one = outer.op("sum")
    assert one.kind == "scf.for"
    assert one.operands == (Operand("a"),)
    assert outer.op("c").operands == (Operand("sum"),)
    assert one.reads == (Access("buffer"),)
    assert one.writes == ("own",)
    # The ring of the inner loop: one copy is what the outer one sees of it.
    assert outer.storage("own") == Storage("own", "smem", 16, fixed=True)


def test_an_inner_loop_holds_what_it_uses_for_its_length() -> None:
    outer = nested().loops[0].loop
    inner = nested().loops[1].loop
    ready = stretto.prepare(inner, "blackwell")
    mii = compute_bounds(ready.loop, ready.machine).mii
    # One iteration reads for 7 cycles, then writes for 7; the tenth begins after 9 MII.
    length = 9 * mii + 14
    one = outer.op("sum")
    assert one.latency == length
    assert set(one.uses or ()) == {
        Use("inner.outer.1", length),
        Use("tp_smem_rd", length),
        Use("tp_smem_wr", length),
        Use("alu_or_fmaheavy", length),
    }
    assert outer.slots == ("inner.outer.1",)
    assert stretto.schedule(outer, "blackwell").success


def test_a_trip_count_may_be_stated() -> None:
    stated = nested("%m", "stretto.trip_count = 10")
    assert stated.left_alone == ()
    assert stated.loops[0].loop.op("sum").latency == nested().loops[0].loop.op("sum").latency


def test_a_length_may_be_stated() -> None:
    one = nested("%m", "stretto.length = 77").loops[0].loop.op("sum")
    assert one.latency == 77
    assert Use("tp_smem_rd", 77) in (one.uses or ())


def test_an_unknown_trip_count_leaves_the_outer_loop_alone() -> None:
    found = nested("%m")
    assert [item.loop.name for item in found.loops] == ["outer.1"]
    (left,) = found.left_alone
    assert left.name == "outer.0"
    assert "trip count is not constant; state `stretto.trip_count`" in left.reason.message
    assert (left.reason.line, left.reason.notes[0].line) == (7, 9)


def test_a_trip_count_that_contradicts_the_bounds() -> None:
    (left,) = nested("%ten", "stretto.trip_count = 11").left_alone
    assert "states 11 trips; its bounds 0, 10 and step 1 make 10" in left.reason.message


def test_an_inner_loop_may_state_all_it_costs() -> None:
    one = nested("%m", 'stretto.uses = [{slot = "tma", duration = 9}], stretto.latency = 9')
    assert one.loops[0].loop.op("sum").uses == (Use("tma", 9),)
    assert one.loops[0].loop.slots == ()


def test_two_loops_of_one_name_are_refused() -> None:
    text = kernel("{ %a = arith.negf %x : f32 }", attributes='stretto.name = "twin"').replace(
        "  func.return",
        '  scf.for %j = %zero to %n step %one { %b = arith.negf %x : f32 } {stretto.name = "twin"}'
        "\n  func.return",
    )
    with pytest.raises(MlirError) as caught:
        module(text)
    (told,) = caught.value.diagnostics
    assert "`stretto.name` is `twin`" in told.message
    assert told.text[told.column - 1 :].startswith("stretto.name")
    assert "%b" in told.text
    assert ["%a" in note.text for note in told.notes] == [True]


def test_several_functions_and_loops() -> None:
    text = (
        kernel("{ %a = arith.negf %x : f32 }")
        + """
    func.func @two(%n: index, %x: f32) {
      %zero = arith.constant 0 : index
      scf.for %i = %zero to %n step %n { %a = arith.negf %x : f32 }
      scf.for %i = %zero to %n step %n { %a = arith.negf %x : f32 } {stretto.name = "mine"}
      func.return
    }"""
    )
    assert [item.loop.name for item in module(text).loops] == ["k", "two.0", "mine"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{ }", "its body has no operations"),
        (
            "{ nv_tileas.async.pipeline.agent_switch { nv_tileas.barrier } }",
            "`nv_tileas.async.pipeline.agent_switch` is a region inside the body",
        ),
    ],
)
def test_loops_that_are_left_alone_say_why(text: str, why: str) -> None:
    found = module(kernel(text))
    assert found.loops == ()
    assert found.left_alone[0].reason.message == f"loop `k` is left alone: {why}"


def test_programs_of_kernels_have_no_place_for_control_flow() -> None:
    text = kernel("{ %c = arith.constant true\n scf.if %c { %a = arith.negf %x : f32 } }")
    assert len(module(text).loops) == 1
    found = read_loops(parse_module(text, "kernel.mlir"), regions=False)
    told = "loop `k` is left alone: `scf.if` is control flow inside the body"
    assert [one.reason.message for one in found.left_alone] == [told]


def test_other_loops_are_left_alone() -> None:
    found = module(
        "func.func @w(%c: i1) {\n  scf.while () : () -> () {\n    scf.condition(%c)\n  } do {\n"
        "    scf.yield\n  }\n  func.return\n}"
    )
    assert found.left_alone[0].reason.line == 2
    assert (
        "scf.while: how often it goes round is not known before"
        in found.left_alone[0].reason.message
    )


# Machines ---------------------------------------------------------------------------------

UNKNOWN = kernel('{\n    %a = "foo.bar"(%x) : (f32) -> f32\n  }')


def test_an_unknown_operation_takes_slot_unknown() -> None:
    (loop,), notes = read_mlir("kernel.mlir", UNKNOWN, "blackwell")
    assert loop.op("a").kind == "foo.bar"
    (note,) = notes
    assert "kernel.mlir:15:10: warning: blackwell does not know `foo.bar`" in note.text
    assert stretto.prepare(loop).loop.op("a").uses == (Use("unknown", 7),)


def test_an_unknown_operation_may_touch_what_it_is_given() -> None:
    loop = body('{ "foo.bar"(%fixed) : (!s) -> () }')
    assert (loop.ops[0].reads, loop.ops[0].writes) == ((Access("fixed"),), ("fixed",))


def test_a_machine_without_such_a_slot_refuses() -> None:
    with pytest.raises(MlirError) as caught:
        read_mlir("kernel.mlir", UNKNOWN, "b200-pipes")
    (told,) = caught.value.diagnostics
    assert (told.line, told.column) == (15, 10)
    assert "b200-pipes does not know this operation; it has no encoding" in told.message


def test_faults_of_a_prepared_loop_stand_where_they_belong() -> None:
    text = kernel('{ %a = arith.negf %x {stretto.uses = [{slot = "no", duration = 1}]} : f32 }')
    parsed = parse_module(text, "kernel.mlir")
    (item,) = read_loops(parsed).loops
    with pytest.raises(LoopError) as caught:
        stretto.prepare(item.loop)
    assert positioned(Module(parsed), item, caught.value).diagnostics[0].line == 14


def test_a_machine_nobody_knows() -> None:
    with pytest.raises(MlirError) as caught:
        body("{ %a = arith.negf %x : f32 }", attributes='stretto.machine = "hopper"')
    (told,) = caught.value.diagnostics
    assert told.text[told.column - 1 :].startswith("stretto.machine")


def test_the_machine_asked_for_wins() -> None:
    text = kernel("{ %a = arith.negf %x : f32 }", attributes='stretto.machine = "blackwell"')
    assert module(text).loops[0].machine == load_machine("blackwell")
    assert module(text, "b200-pipes").loops[0].machine == load_machine("b200-pipes")


# Size -------------------------------------------------------------------------------------


def test_reading_a_long_body_takes_less_than_parsing_it() -> None:
    lines = ["%v0 = arith.negf %x : f32"]
    for i in range(1, 1000):
        lines.append(f"%v{i} = arith.addf %v{i - 1}, %v{i // 2} : f32")
    text = kernel("{\n" + "\n".join(lines) + "\n}")
    parsing: list[float] = []
    reading: list[float] = []
    for _ in range(3):  # the best of three: others may be at work on the same machine
        started = time.perf_counter()
        parsed = parse_module(text, "long.mlir")
        between = time.perf_counter()
        (item,) = read_loops(parsed).loops
        reading.append(time.perf_counter() - between)
        parsing.append(between - started)
        assert len(item.loop.ops) == 1000
    assert min(reading) < min(parsing)


def test_a_long_chain_of_views_and_sums_is_no_deep_recursion() -> None:
    lines = [FACTOR, f"%m0 = {MMA.format(acc='%acc', type='!t')}"]
    lines += [f"%m{i} = {MMA.format(acc=f'%m{i - 1}', type='!t')}" for i in range(1, 3000)]
    loop = body("{\n" + "\n".join(lines) + "\n}")
    assert loop.op("m2999").writes == ("acc",)
