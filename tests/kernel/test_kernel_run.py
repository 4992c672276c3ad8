"""Kernels run whole, on real values, as NumPy says; pipelined they leave the very same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from kernel_cases import CASES
from stretto.api.emitting import emit
from stretto.api.kernels import KernelMode, load_inputs
from stretto.errors import StrettoError
from stretto.machine import load_machine
from stretto.resources.prepare import resolve
from stretto.simulation.kernels.programs import run_program_of_kernel
from stretto.simulation.real import rounded

EXAMPLES = Path(__file__).parents[2] / "examples" / "triton"
MMA = "async.tcgen05_mma"
RUNS: list[tuple[str, KernelMode]] = [
    ("b200-pipes", "specialized"),
    ("blackwell", "unspecialized"),
]


def _run(name: str, machine: str, mode: KernelMode, **changed: Any) -> stretto.KernelSimulation:
    case = CASES[name]()
    inputs = {**case.inputs, **changed}
    return stretto.simulate_kernel(EXAMPLES / f"{name}.ttir", inputs, case.grid, machine, mode=mode)


@pytest.mark.parametrize(("machine", "mode"), RUNS)
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_equal_to_numpy_and_to_itself(
    name: str, machine: str, mode: KernelMode
) -> None:
    found = _run(name, machine, mode)
    assert found.success, found.to_text()
    assert found.iterations
    case = CASES[name]()
    for array, expected in case.expected.items():
        got = found.arrays[array].reshape(expected.shape)
        assert np.allclose(got, expected, rtol=0, atol=case.tolerance), array


@pytest.mark.parametrize("mode", ["unspecialized", "specialized"])
def test_what_runs_is_the_program_that_is_emitted(mode: KernelMode) -> None:
    found = _run("matmul_descriptors", "h200", mode)
    assert found.success
    assert found.program is not None
    assert (len(found.program.agents) > 1) is (mode == "specialized")
    assert found.mode == mode


def test_a_note_says_why_loops_run_by_programs_of_their_own() -> None:
    found = _run("softmax", "b200-pipes", "specialized")
    assert found.program is None
    assert "machine b200-pipes does not say who issues what" in found.notes[-1]


def test_a_printed_kernel_runs_as_the_dump_does(tmp_path: Path) -> None:
    for name in ("softmax", "matmul_descriptors"):
        case = CASES[name]()
        text, _ = stretto.import_kernel(EXAMPLES / f"{name}.ttir", "b200-pipes")
        path = tmp_path / f"{name}.mlir"
        path.write_text(text)
        again = stretto.simulate_kernel(path, case.inputs, case.grid)
        first = _run(name, "b200-pipes", "sequential")
        assert again.success
        for array in case.expected:
            assert np.array_equal(again.arrays[array], first.arrays[array])


def test_inputs_stay_as_they_are() -> None:
    case = CASES["softmax"]()
    stretto.simulate_kernel(EXAMPLES / "softmax.ttir", case.inputs, case.grid, "b200-pipes")
    assert not case.inputs["y_ptr"].any()


def test_reaching_behind_an_array_is_told() -> None:
    case = CASES["softmax"]()
    short = case.inputs["x_ptr"][:5]
    with pytest.raises(StrettoError, match=r"`x_ptr`: the kernel reads element 3885; it has 3885"):
        _run("softmax", "b200-pipes", "sequential", x_ptr=short)


def test_a_missing_parameter_is_told() -> None:
    with pytest.raises(StrettoError, match="has a parameter `y_ptr`: give a value"):
        stretto.simulate_kernel(EXAMPLES / "softmax.ttir", {}, machine="b200-pipes")


_BRANCH = """module {
  tt.func public @k(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32>,
                    %n: i32, %m: i32) {
    %z = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %w = arith.constant 64 : i32
    %two = arith.constant dense<2.0> : tensor<64xf32>
    %sum = arith.constant dense<0.0> : tensor<64xf32>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %all = scf.for %i = %z to %n step %one iter_args(%s = %sum) -> (tensor<64xf32>) : i32 {
      %at = arith.muli %i, %w : i32
      %q = tt.addptr %p, %at : !tt.ptr<f32>, i32
      %t = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %a = tt.addptr %t, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %x = tt.load %a : tensor<64x!tt.ptr<f32>>
      %c = arith.cmpi sge, %i, %m : i32
      %y = scf.if %c -> (tensor<64xf32>) {
        %d = arith.mulf %x, %two : tensor<64xf32>
        scf.yield %d : tensor<64xf32>
      } else {
        scf.yield %x : tensor<64xf32>
      }
      %u = arith.addf %s, %y : tensor<64xf32>
      scf.yield %u : tensor<64xf32>
    }
    %ot = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %oa = tt.addptr %ot, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %oa, %all : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
"""


def test_a_branch_inside_a_loop_is_gone_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "k.ttir"
    path.write_text(_BRANCH)
    x = np.arange(7 * 64, dtype=np.float32).reshape(7, 64)
    inputs = {"p": x, "o": np.zeros(64), "n": 7, "m": 4}
    found = stretto.simulate_kernel(path, inputs, machine="b200-pipes", mode="specialized")
    assert found.success
    expected = (x * np.where(np.arange(7) >= 4, 2, 1)[:, None]).sum(0)
    assert np.array_equal(found.arrays["o"], expected)


UNUSUAL = Path(__file__).parents[1] / "ttir" / "unusual"
"""Kernels with what few kernels have; their sources stand beside them."""


def _normal(seed: int, *shape: int) -> Any:
    made = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return np.asarray(rounded(made, "f16"))


@pytest.mark.parametrize(("machine", "mode"), RUNS)
def test_loads_stores_and_atomics_of_a_branch_are_done_in_its_turn_only(
    machine: str, mode: KernelMode
) -> None:
    # `first` and `last` are such that rows before the first do not exist: nobody may read them.
    x, first, last = _normal(1, 9, 128), 3, 7
    inputs = {"x_ptr": x, "y_ptr": np.zeros_like(x), "hits_ptr": np.zeros(1), "n": 12}
    inputs |= {"total_ptr": np.zeros(128), "first": first, "last": last}
    path = UNUSUAL / "branches.ttir"
    with pytest.raises(StrettoError, match="the kernel reads element"):
        stretto.simulate_kernel(path, inputs, machine=machine, mode=mode)
    found = stretto.simulate_kernel(path, {**inputs, "n": 9}, machine=machine, mode=mode)
    assert found.success
    assert found.iterations == {"branches": 9}
    y = np.zeros_like(x)
    y[first:last, :125] = 2 * x[first:last, :125]
    assert np.array_equal(found.arrays["y_ptr"], y)
    assert found.arrays["hits_ptr"] == [9 - last]
    assert np.allclose(found.arrays["total_ptr"], x[first:last].sum(0) + first, atol=1e-5)


@pytest.mark.parametrize(("machine", "mode"), RUNS)
def test_products_and_tiles_through_views_of_a_branch_count_in_its_turn_only(
    machine: str, mode: KernelMode
) -> None:
    a, b, flags = _normal(1, 64, 320), _normal(2, 320, 64), np.array([1, 0, 1, 1, 0])
    kept = np.full((64, 384), 5.0)
    inputs = {"a_desc": a, "b_desc": b, "c_desc": kept, "flags_ptr": flags, "steps": 5}
    found = stretto.simulate_kernel(UNUSUAL / "skipping.ttir", inputs, machine=machine, mode=mode)
    assert found.success
    assert found.iterations == {"skipping": 5}
    c = kept.copy()
    taken = [slice(64 * k, 64 * k + 64) for k in range(5) if flags[k]]
    c[:, :64] = sum(a[:, k] @ b[k] for k in taken)
    for k in taken:
        c[:, k.start + 64 : k.stop + 64] = a[:, k]
    assert np.allclose(found.arrays["c_desc"], c, atol=0.05)


@pytest.mark.parametrize(("machine", "mode"), RUNS)
def test_rows_are_gathered_scattered_and_added_up(machine: str, mode: KernelMode) -> None:
    x = _normal(1, 50, 100)
    rows = np.random.default_rng(2).integers(0, 50, 96)
    inputs = {"x_desc": x, "y_desc": np.zeros((96, 64)), "sums_desc": np.ones((32, 64))}
    inputs |= {"rows_ptr": rows, "steps": 3}
    found = stretto.simulate_kernel(UNUSUAL / "picking.ttir", inputs, machine=machine, mode=mode)
    assert found.success
    picked = x[rows, 16:80]
    assert np.array_equal(found.arrays["y_desc"], picked[:, ::-1])
    sums = 1 + picked.reshape(3, 32, 64).sum(0)
    assert np.allclose(found.arrays["sums_desc"], sums, atol=1e-5)


@pytest.mark.parametrize(("machine", "mode"), RUNS)
def test_a_batch_of_products_is_a_loop_of_them(machine: str, mode: KernelMode) -> None:
    a, b = _normal(1, 4, 32, 96), _normal(2, 4, 96, 32)
    inputs = {"a_ptr": a, "b_ptr": b, "c_ptr": np.zeros((4, 32, 32)), "steps": 3}
    found = stretto.simulate_kernel(UNUSUAL / "batched.ttir", inputs, machine=machine, mode=mode)
    assert found.success
    assert found.iterations == {"batched": 3}
    assert np.allclose(found.arrays["c_ptr"], a @ b, atol=1e-3)


def test_a_batch_holds_the_tensor_core_as_its_products_do_together() -> None:
    (loop,) = stretto.read(UNUSUAL / "batched.ttir", "b200-pipes")
    (product,) = (op for op in resolve(loop, load_machine("b200-pipes")).loop.ops if op.kind == MMA)
    assert [use.duration for use in product.uses or ()] == [4 * 32 * 32 * 32 // 4096]


def test_a_while_loop_runs_as_it_is_and_addresses_in_memory_are_followed(tmp_path: Path) -> None:
    arrays = [_normal(seed, 64) for seed in range(5)]
    inputs = {"in_ptrs": arrays, "out_ptr": np.zeros(64), "n": 5}
    path = UNUSUAL / "addresses.ttir"
    found = stretto.simulate_kernel(path, inputs, machine="b200-pipes", mode="specialized")
    assert found.success
    assert not found.iterations
    assert "scf.while: how often it goes round is not known before" in found.notes[0]
    assert np.allclose(found.arrays["out_ptr"], sum(arrays), atol=1e-5)
    assert np.array_equal(found.arrays["in_ptrs[4]"], arrays[4])
    # Out of a file, each has its own name.
    named = {f"in_ptrs[{i}]": array for i, array in enumerate(arrays)}
    np.savez(tmp_path / "in.npz", **named, out_ptr=np.zeros(64), n=5)
    again = stretto.simulate_kernel(path, load_inputs(str(tmp_path / "in.npz")))
    assert np.array_equal(again.arrays["out_ptr"], found.arrays["out_ptr"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([np.zeros(64), np.zeros(4)], "`in_ptrs[1]`: the kernel reads element 4; it has 4"),
        (np.array([7, 8]), "a number that no array begins at is taken for an address"),
        ([np.zeros(64)], "`in_ptrs`: the kernel reads element 1; it has 1"),
        ("nothing", "parameter `in_ptrs` is no array of numbers"),
    ],
)
def test_addresses_that_lead_nowhere_are_told(given: Any, said: str) -> None:
    inputs = {"in_ptrs": given, "out_ptr": np.zeros(64), "n": 2}
    with pytest.raises(StrettoError) as caught:
        stretto.simulate_kernel(UNUSUAL / "addresses.ttir", inputs, machine="b200-pipes")
    assert said in str(caught.value)


_ARGMAX = """module {
  tt.func public @k(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i32>,
                    %t: !tt.ptr<f32>, %n: i32) {
    %z = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %w = arith.constant 64 : i32
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    scf.for %i = %z to %n step %one : i32 {
      %at = arith.muli %i, %w : i32
      %q = tt.addptr %p, %at : !tt.ptr<f32>, i32
      %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %a = tt.addptr %qs, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %x = tt.load %a : tensor<64x!tt.ptr<f32>>
      %v:2 = "tt.reduce"(%x, %r) <{axis = 0 : i32}> ({
      ^bb0(%l: f32, %li: i32, %g: f32, %gi: i32):
        %c = arith.cmpf ogt, %l, %g : f32
        %m = arith.select %c, %l, %g : f32
        %k = arith.select %c, %li, %gi : i32
        tt.reduce.return %m, %k : f32, i32
      }) : (tensor<64xf32>, tensor<64xi32>) -> (f32, i32)
      %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
      ^bb0(%l: f32, %g: f32):
        %m = arith.addf %l, %g : f32
        tt.scan.return %m : f32
      }) : (tensor<64xf32>) -> tensor<64xf32>
      %oa = tt.addptr %o, %i : !tt.ptr<i32>, i32
      tt.store %oa, %v#1 : !tt.ptr<i32>
      %u = tt.addptr %t, %at : !tt.ptr<f32>, i32
      %us = tt.splat %u : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %ua = tt.addptr %us, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      tt.store %ua, %s : tensor<64x!tt.ptr<f32>>
    }
    tt.return
  }
}
"""


def test_reductions_and_scans_combine_as_their_regions_say(tmp_path: Path) -> None:
    path = tmp_path / "k.ttir"
    path.write_text(_ARGMAX)
    x = np.random.default_rng(5).permutation(5 * 64).reshape(5, 64).astype(np.float32)
    inputs = {"p": x, "o": np.zeros(5), "t": np.zeros((5, 64)), "n": 5}
    found = stretto.simulate_kernel(path, inputs, machine="b200-pipes", mode="specialized")
    assert found.success
    assert np.array_equal(found.arrays["o"], x.argmax(1))
    assert np.array_equal(found.arrays["t"], np.cumsum(x[:, ::-1], 1)[:, ::-1])


def test_a_loop_may_run_fewer_times_than_it_has_stages(tmp_path: Path) -> None:
    path = tmp_path / "k.ttir"
    path.write_text(_BRANCH)
    x = np.ones((1, 64), dtype=np.float32)
    for trips in (0, 1):
        inputs = {"p": x, "o": np.full(64, 9.0), "n": trips, "m": 4}
        found = stretto.simulate_kernel(path, inputs, machine="b200-pipes")
        assert found.success
        assert np.array_equal(found.arrays["o"], np.full(64, trips))


_PREFIX = """module {
  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
    %z = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %inc = arith.constant 1.0 : f32
    scf.for %i = %z to %n step %one : i32 {
      %q = tt.addptr %p, %i : !tt.ptr<f32>, i32
      %x = tt.load %q : !tt.ptr<f32> loc("k.py":7:3)
      %y = arith.addf %x, %inc : f32
      %u = tt.addptr %q, %one : !tt.ptr<f32>, i32
      tt.store %u, %y : !tt.ptr<f32> loc("k.py":8:3)
    }
    tt.return
  }
}
"""


def test_steps_that_read_what_others_write_do_not_overlap(tmp_path: Path) -> None:
    path = tmp_path / "k.ttir"
    path.write_text(_PREFIX)
    source = stretto.read(path, "b200-pipes")
    assert source[0].force_serial
    assert any("k.py:8:4 may touch the same element" in note.text for note in source.notes)
    inputs = {"p": np.zeros(9), "n": 8}
    for mode in ("unspecialized", "specialized"):
        found = stretto.simulate_kernel(path, inputs, machine="b200-pipes", mode=mode)
        assert found.success
        assert np.array_equal(found.arrays["p"], np.arange(9))


def test_what_may_be_the_same_element_stays_in_order_and_all_else_overlaps(tmp_path: Path) -> None:
    path = tmp_path / "k.ttir"
    beside = "tt.addptr %r, %i : !tt.ptr<f32>, i32"
    path.write_text(
        _PREFIX.replace("%n: i32", "%r: !tt.ptr<f32>, %n: i32")
        .replace(
            "      %q =", f"      %s = {beside}\n      %w = tt.load %s : !tt.ptr<f32>\n      %q ="
        )
        .replace("addf %x, %inc", "addf %x, %w")
    )
    source = stretto.read(path, "h200")
    (loop,) = source
    assert not loop.force_serial
    assert any("it stays in order, step after step" in note.text for note in source.notes)
    kept = {(edge.src, edge.dst, edge.distance) for edge in loop.stated}
    names = [op.name for op in loop.ops if op.kind.startswith("pointer.")]
    _, load, store = names
    assert kept == {(load, store, 0), (store, load, 1)}
    found = emit(path, "h200")
    assert found.overlap
    inputs = {"p": np.zeros(9), "r": np.arange(8.0), "n": 8}
    ran = run_program_of_kernel(found.emitted.program, inputs, (1,))
    assert np.array_equal(ran.arrays["p"], np.concatenate([[0], np.cumsum(np.arange(8.0))]))


_IN_PLACE = """module {
  tt.func public @k(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c128 = arith.constant 128 : i32
    %far = arith.constant dense<FAR> : tensor<128xi32>
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %b = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    scf.for %i = %c0 to %c32 step %c1 : i32 {
      %o = arith.muli %i, %c128 : i32
      %s = tt.splat %o : i32 -> tensor<128xi32>
      %at = arith.addi %s, %r : tensor<128xi32>
      %to = arith.addi %at, %far : tensor<128xi32>
      %x = tt.addptr %b, %at : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
      %v = tt.load %x : tensor<128x!tt.ptr<f32>>
      %w = arith.addf %v, %v : tensor<128xf32>
      %y = tt.addptr %b, %to : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
      tt.store %y, %w : tensor<128x!tt.ptr<f32>>
    }
    tt.return
  }
}
"""


@pytest.mark.parametrize(("far", "apart"), [(4096, True), (4095, False), (128, False)])
def test_steps_overlap_where_loads_and_stores_are_bytes_apart(
    tmp_path: Path, far: int, apart: bool
) -> None:
    """32 steps of 128 numbers are loaded: 0 to 4,095. Stores from 4,096 on never touch them."""
    file = tmp_path / "k.ttir"
    file.write_text(_IN_PLACE.replace("FAR", str(far)))
    (loop,) = stretto.read(file, "h200")
    assert any(edge.distance for edge in loop.stated) is not apart
    assert stretto.schedule(loop).stage_count > 1
    array = np.random.default_rng(3).standard_normal(8192).astype(np.float32)
    expected = array.copy()
    for at in range(0, 4096, 128):
        expected[at + far : at + far + 128] = 2 * expected[at : at + 128]
    found = stretto.simulate_kernel(file, {"p": array}, (1,), "h200")
    assert found.success, found.to_text()
    assert np.array_equal(found.arrays["p"], expected, equal_nan=True)
