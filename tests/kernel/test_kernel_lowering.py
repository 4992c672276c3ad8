"""Kernels are lowered for a machine, whole: what goes where, and what is said about it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import i64
from xdsl.dialects.scf import ForOp

import stretto
from stretto.frontends.triton import read_ttir
from stretto.ir import read_programs
from stretto.ir.dialect.pipelined import WorkTileInfoOp
from stretto.ir.kernels.functions import kernels_of
from stretto.ir.kernels.writing import lowered_module
from stretto.ir.parsing import parse_module
from stretto.ir.passes.generate_schedule import GenerateSchedule
from stretto.ir.passes.materialize_schedule import MaterializeSchedule
from stretto.kernel import Kernel, KernelError
from stretto.kernel.checking import check_kernel
from stretto.kernel.lowering.branches import straightened
from stretto.kernel.lowering.work_tiles import has_loop_inside
from stretto.kernel.pipeline import lower
from stretto.machine import load_machine, read_machine
from stretto.materialization import MODES, Persistent

EXAMPLES = Path(__file__).parents[2] / "examples" / "triton"
DUMPS = sorted(EXAMPLES.glob("*.ttir"))
UNUSUAL = sorted((Path(__file__).parents[1] / "ttir" / "unusual").glob("*.ttir"))
MACHINES = ("b200-pipes", "blackwell")


def _kernel(name: str) -> Kernel:
    path = EXAMPLES / f"{name}.ttir"
    (kernel,) = read_ttir(path.name, path.read_text())
    return kernel


def _lowered(name: str, machine: str = "b200-pipes") -> Kernel:
    return lower(_kernel(name), load_machine(machine)).kernel


def _kinds(kernel: Kernel) -> Counter[str]:
    return Counter(op.name.removeprefix("nv_tileas.") for op in kernel.walk())


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
@pytest.mark.parametrize("machine", MACHINES)
def test_every_kernel_has_loops_that_are_scheduled(path: Path, machine: str) -> None:
    source = stretto.read(path, machine)
    assert len(source) >= 1
    for loop in source:
        found = stretto.schedule(loop, machine)
        assert found.success
        assert found.bounds is not None
        assert found.ii is not None
        assert found.ii <= found.bounds.mii * 1.01, "hardly anything is lost to the generator"


def test_attention_has_the_interval_of_the_loop_that_was_written_by_hand() -> None:
    (loop,) = stretto.read(EXAMPLES / "attention_forward_d128.ttir", "b200-pipes")
    found = stretto.schedule(loop, "b200-pipes")
    assert found.ii == 1325
    assert found.bounds is not None
    assert found.bounds.limiter == "recurrence"


def test_the_printed_kernel_reads_back_as_the_same() -> None:
    for name in ("attention_forward_d128_causal", "matmul_pointers", "softmax", "layer_norm"):
        text, _ = stretto.import_kernel(EXAMPLES / f"{name}.ttir", "b200-pipes")
        kernel = _lowered(name)
        (again,) = kernels_of(parse_module(text, "again.mlir"))
        assert [op.name for op in again.kernel.walk()] == [op.name for op in kernel.walk()]


def test_a_carried_sum_stays_in_tensor_memory() -> None:
    kinds = _kinds(_lowered("matmul_descriptors"))
    # Stored once before the loop, loaded once after it, added to in between.
    assert kinds["async.tmem_store"] == kinds["async.tmem_load"] == 1
    assert kinds["async.tcgen05_mma"] == 1
    assert kinds["async.tiled_tma_load"] == 2
    assert kinds["async.tiled_tma_store"] == 1


def test_two_loops_hand_on_one_sum() -> None:
    kernel = _lowered("attention_forward_d64_causal")
    first, second = (op for op in kernel.walk() if op.name == "scf.for")
    sums = [i for i, value in enumerate(second.operands) if value is first.results[0]]
    assert sums, "the second loop goes on in the buffer of the first"


def test_on_a_machine_with_sums_in_registers_nothing_is_stored() -> None:
    text = (Path(stretto.__file__).parent / "machine/targets/b200-pipes.toml").read_text()
    text = text.replace('opcode = "async.tcgen05_mma"', 'opcode = "async.wgmma"')
    text = text.replace('accumulator = "tmem"', 'accumulator = "register"')
    text = text.replace('a = ["tmem", "smem"]', 'a = ["register", "smem"]')
    hopper = read_machine("hopper.toml", text, {})
    for name in ("attention_forward_d64", "matmul_pointers", "attention_backward_kv"):
        kinds = _kinds(lower(_kernel(name), hopper).kernel)
        assert kinds["async.wgmma"] > 0
        assert not kinds["async.tmem_store"]
        assert not kinds["async.tmem_load"]
        module, _ = lowered_module((_kernel(name),), hopper)
        module.verify()


def test_pointer_loads_are_copied_where_they_can_be() -> None:
    kinds = _kinds(_lowered("matmul_pointers"))
    assert kinds["async.pointer_copy"] == 2
    assert not kinds["pointer.load"]


def test_why_a_load_is_not_copied_is_said_at_its_place() -> None:
    source = stretto.read(EXAMPLES / "softmax.ttir", "b200-pipes")
    (note,) = source.notes
    assert note.text.startswith("softmax.py:15:")
    assert "where its mask is off it reads something else than zero" in note.text


def test_no_operation_is_dropped() -> None:
    for path in DUMPS:
        kernel = _kernel(path.stem)
        before, after = _kinds(kernel), _kinds(_lowered(path.stem))
        for kind, number in before.items():
            if kind.startswith(("arith.", "math.")) and kind != "arith.constant":
                inside = sum(
                    op.name == kind
                    for reduction in kernel.walk()
                    if reduction.name == "tile.reduce"
                    for op in reduction.regions[0].operations
                )
                assert after[kind] >= number - inside, (path.stem, kind)


PERSISTENT = [
    EXAMPLES / "matmul_persistent.ttir",
    EXAMPLES.parent / "cutile" / "matmul_persistent.tileirbc",
]


@pytest.mark.parametrize("path", PERSISTENT, ids=lambda path: path.suffix)
@pytest.mark.parametrize("mode", MODES)
def test_a_persistent_block_goes_over_work_tiles(path: Path, mode: str) -> None:
    source = stretto.read(path, "b200-pipes")
    assert [loop.name for loop in source] == ["matmul_persistent.1"]
    assert not source.notes, "the loop over tiles is no loop that could not be pipelined"
    text, _ = stretto.import_kernel(path, "b200-pipes")
    assert "of %" in next(line for line in text.splitlines() if "work_tile_info" in line)
    module = parse_module(text, "k.mlir").module
    context = Context()
    GenerateSchedule().apply(context, module)
    MaterializeSchedule(mode=mode).apply(context, module)
    outer, info = next(
        (op, inner)
        for op in module.walk()
        if isinstance(op, ForOp)
        for inner in op.body.block.ops
        if isinstance(inner, WorkTileInfoOp)
    )
    assert outer.lb.type == info.index.type == i64, "widened"
    assert info.extents[0] is outer.ub
    (program,) = read_programs("k.mlir", str(module))
    assert program.persistent == Persistent(None, (1,), (1,), info=("i64", "i1"))


_BLOCKS = """module {
  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %first = tt.get_program_id x : i32
    %x = tt.get_num_programs x : i32
    %y = tt.get_num_programs y : i32
    scf.for %t = FIRST to %n step STEP : i32 {
      INNER
      tt.store %p, %c : !tt.ptr<f32>
    }
    tt.return
  }
}"""


@pytest.mark.parametrize(
    ("first", "step", "nested", "found"),
    [
        ("%first", "%x", True, True),
        ("%first", "%c4", True, True),
        ("%first", "%y", True, False),  # blocks along another axis
        ("%first", "%c1", True, False),  # every tile from here on
        ("%c1", "%x", True, False),  # every block the same tiles
        ("%first", "%x", False, False),  # itself the innermost
    ],
)
def test_what_makes_a_loop_one_over_work_tiles(
    first: str, step: str, nested: bool, found: bool
) -> None:
    zero = "%c = arith.constant 0.0 : f32"
    inner = f"scf.for %i = %c1 to %n step %c1 : i32 {{\n tt.store %p, %z : !tt.ptr<f32> }}\n{zero}"
    text = _BLOCKS.replace("FIRST", first).replace("STEP", step)
    text = text.replace("INNER", inner if nested else zero)
    text = text.replace("%c1 = ", "%z = arith.constant 1.0 : f32\n%c1 = ", 1)
    (kernel,) = read_ttir("k.ttir", text)
    lowered = lower(kernel, load_machine("b200-pipes")).kernel
    assert ("work_tile_info" in _kinds(lowered)) is found


def test_what_cannot_be_lowered_is_told_at_the_users_place() -> None:
    text = """module {
      tt.func public @k(%a: tensor<16xf32>, %b: f32) {
        %d = "tt.reduce"(%a) <{axis = 0 : i32}> ({
        ^bb0(%l: f32, %g: f32):
          %m = arith.addf %l, %b : f32
          tt.reduce.return %m : f32
        }) : (tensor<16xf32>) -> f32 loc("k.py":7:3)
        tt.return
      }
    }"""
    (kernel,) = read_ttir("k.ttir", text)
    with pytest.raises(KernelError, match=r"k\.py:7:4: error: a reduction that takes a value from"):
        lower(kernel, load_machine("b200-pipes"))


_OUTER = """module {
  tt.func public @k(%p: !tt.ptr<f32>, %c: i1, %n: i32) {
    %one = arith.constant 1 : i32
    %x = arith.constant 1.0 : f32
    scf.for %i = %one to %n step %one : i32 {
      %y = scf.if %c -> (f32) {
        %s = arith.addf %x, %x : f32
        scf.yield %s : f32
      } else {
        scf.yield %x : f32
      }
      scf.if %c {
        tt.store %p, %y : !tt.ptr<f32>
        scf.for %j = %one to %n step %one : i32 {
          tt.store %p, %x : !tt.ptr<f32>
        }
      }
    }
    tt.return
  }
}"""


def test_a_branch_of_an_outer_loop_stays_if_it_touches_memory() -> None:
    (kernel,) = read_ttir("k.ttir", _OUTER)
    lowered = lower(kernel, load_machine("b200-pipes"))
    assert _kinds(lowered.kernel)["scf.if"] == 1
    assert not lowered.notes
    check_kernel(straightened(kernel).kernel)


@pytest.mark.parametrize("machine", [*MACHINES, "h200"])
def test_unusual_kernels_are_scheduled_too(machine: str) -> None:
    for path in UNUSUAL:
        if path.stem != "addresses":  # it has a while loop and no other
            (loop,) = stretto.read(path, machine)
            assert stretto.schedule(loop, machine).success


def test_a_straightened_kernel_is_well_formed() -> None:
    for path in [*DUMPS, *UNUSUAL]:
        (kernel,) = read_ttir(path.name, path.read_text())
        straight = straightened(kernel).kernel
        check_kernel(straight)
        for loop in straight.walk():
            if loop.name == "scf.for" and not has_loop_inside(loop):
                assert all(op.name != "scf.if" for op in loop.walk())
