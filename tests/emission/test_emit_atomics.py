"""Atomics: emitted once an element and iteration, and refused where nothing keeps their order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_emit import WAYS

import stretto
from atomic_kernels import GATHERED, SPLIT_K
from gluon_cases import launched, near
from gluon_emulator import EmulationError
from stretto.api.emitting import emit
from stretto.compile.emitted import EmitMode
from stretto.emission import EmitError


def written(folder: Path, text: str) -> Path:
    file = folder / "atomic.ttir"
    file.write_text(text)
    return file


def split_k(source: str, blocks: int, naps: float = 0.0) -> None:
    """Rows and columns that do not fill a tile; a K that does not fill a step."""
    rng = np.random.default_rng(blocks)
    rows, columns, depth = 112, 48, 336
    a = rng.standard_normal((rows, depth)).astype(np.float16)
    b = rng.standard_normal((depth, columns)).astype(np.float16)
    c = rng.standard_normal((rows, columns)).astype(np.float32)
    wanted = c + a.astype(np.float64) @ b.astype(np.float64)
    inputs = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": rows, "N": columns, "K": depth}
    near(launched(source, inputs, (1, 1, blocks), naps), {"c_ptr": wanted}, 0.01)


@pytest.mark.parametrize(("consumers", "mode"), WAYS)
def test_blocks_add_to_each_other_s_sums(
    consumers: int | None, mode: EmitMode, tmp_path: Path
) -> None:
    source = emit(written(tmp_path, SPLIT_K), consumers=consumers, mode=mode).source
    assert 'sem="relaxed", scope="gpu")' in source
    for blocks in (1, 2, 3, 8):
        split_k(source, blocks, 0.2)


def test_sums_in_tensor_memory_are_added_too(tmp_path: Path) -> None:
    split_k(emit(written(tmp_path, SPLIT_K), "b200").source, 3)


def gathered(source: str, trips: int) -> None:
    rng = np.random.default_rng(trips)
    x, w = (rng.standard_normal((n, 64)).astype(np.float16) for n in (max(1, 64 * trips), 64))
    parts = x[: 64 * trips].astype(np.float64).reshape(trips, 64, 64)
    inputs: dict[str, Any] = {"x_ptr": x, "w_ptr": w, "rows": 64 * trips}
    inputs["y_ptr"] = np.zeros((64, 64), np.float32)
    near(launched(source, inputs, (1,)), {"y_ptr": parts.sum(0) @ w}, 0.01)


@pytest.mark.parametrize("mode", ["specialized", "unspecialized"])
def test_steps_of_a_loop_add_to_one_tile(mode: EmitMode, tmp_path: Path) -> None:
    source = emit(written(tmp_path, GATHERED), mode=mode).source
    for trips in (0, 1, 2, 3, 5, 9):
        gathered(source, trips)


def test_a_module_says_in_which_order(tmp_path: Path) -> None:
    file = tmp_path / "atomic.mlir"
    file.write_text(stretto.import_kernel(written(tmp_path, GATHERED), "h200")[0])
    assert 'semantics = "acq_rel", scope = "gpu"' in file.read_text()
    assert emit(file).source == emit(written(tmp_path, GATHERED), consumers=1).source


TICKETS = """module {
  tt.func public @tickets(%counts_ptr: !tt.ptr<i32>, %o_ptr: !tt.ptr<i32>) {
    %one = arith.constant 1 : i32
    %on = arith.constant true
    %old = tt.atomic_rmw add, relaxed, gpu, %counts_ptr, %one, %on : (!tt.ptr<i32>, i32, i1) -> i32
    %seen = tt.atomic_cas relaxed, gpu, %counts_ptr, %old, %one : (!tt.ptr<i32>, i32, i32) -> i32
    %at = tt.addptr %o_ptr, %old : !tt.ptr<i32>, i32
    tt.store %at, %seen : !tt.ptr<i32>
    tt.return
  }
}
"""


def test_what_was_there_before_is_known(tmp_path: Path) -> None:
    source = emit(written(tmp_path, TICKETS)).source
    inputs = {"counts_ptr": np.zeros(1, np.int32), "o_ptr": np.full(4, 9, np.int32)}
    after = launched(source, inputs, (4,))
    assert list(after["counts_ptr"]) == [4]
    assert list(after["o_ptr"]) == [1, 2, 3, 4]


def each_kind(kinds: list[str]) -> str:
    """A kernel that changes a row of numbers by each kind; the last under a mask."""
    lines = [
        "module {",
        "  tt.func public @kinds(%x_ptr: !tt.ptr<i32>, %o_ptr: !tt.ptr<i32>) {",
        "    %cst = arith.constant dense<true> : tensor<64xi1>",
        "    %at = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>",
        "    %half = arith.constant dense<32> : tensor<64xi32>",
        "    %low = arith.cmpi slt, %at, %half : tensor<64xi32>",
        "    %high = arith.xori %low, %cst : tensor<64xi1>",
        "    %xs = tt.splat %x_ptr : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>",
        "    %from = tt.addptr %xs, %at : tensor<64x!tt.ptr<i32>>, tensor<64xi32>",
        "    %x = tt.load %from : tensor<64x!tt.ptr<i32>>",
    ]
    typed = "(tensor<64x!tt.ptr<i32>>, tensor<64xi32>, tensor<64xi1>) -> tensor<64xi32>"
    for n, kind in enumerate(kinds):
        mask = "%high" if n == len(kinds) - 1 else "%cst"
        lines += [
            f"    %row{n} = arith.constant {64 * n} : i32",
            f"    %p{n} = tt.addptr %o_ptr, %row{n} : !tt.ptr<i32>, i32",
            f"    %ps{n} = tt.splat %p{n} : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>",
            f"    %to{n} = tt.addptr %ps{n}, %at : tensor<64x!tt.ptr<i32>>, tensor<64xi32>",
            f"    %old{n} = tt.atomic_rmw {kind}, relaxed, cta, %to{n}, %x, {mask} : {typed}",
        ]
    return "\n".join([*lines, "    tt.return", "  }", "}", ""])


def test_each_kind_changes_what_is_there(tmp_path: Path) -> None:
    source = emit(written(tmp_path, each_kind(["max", "min", "and", "or", "xor", "exch"]))).source
    assert source.count('scope="cta"') == 6
    rng = np.random.default_rng(0)
    x = rng.integers(-99, 99, 64).astype(np.int32)
    o = rng.integers(-99, 99, (6, 64)).astype(np.int32)
    kept = np.where(np.arange(64) < 32, o[5], x)
    wanted = [np.maximum(o[0], x), np.minimum(o[1], x), o[2] & x, o[3] | x, o[4] ^ x, kept]
    after = launched(source, {"x_ptr": x, "o_ptr": o}, (1,))
    assert (after["o_ptr"] == np.stack(wanted)).all()


def test_numbers_without_a_sign_go_through_addresses_of_such(tmp_path: Path) -> None:
    source = emit(written(tmp_path, each_kind(["umax", "umin"]))).source
    assert source.count("gl.pointer_type(gl.uint32), bitcast=True") == 2
    rng = np.random.default_rng(0)
    x = rng.integers(-99, 99, 64).astype(np.int32)
    o = rng.integers(-99, 99, (2, 64)).astype(np.int32)
    kinds = zip((np.maximum, np.minimum), o.view(np.uint32), strict=True)
    wanted = [pick(row, x.view(np.uint32)).view(np.int32) for pick, row in kinds]
    wanted[1] = np.where(np.arange(64) < 32, o[1], wanted[1])  # the last is under a mask
    after = launched(source, {"x_ptr": x, "o_ptr": o}, (1,))
    assert (after["o_ptr"] == np.stack(wanted)).all()


# Bugs in the text ---------------------------------------------------------------------------------


def line(source: str, change: Callable[[str], str]) -> str:
    return "".join(change(x) if "atomic_add" in x else x for x in source.splitlines(True))


BUGS: dict[str, Callable[[str], str]] = {
    "it is done twice": lambda s: line(s, lambda x: x + x),
    "it is a store": lambda s: line(
        s, lambda x: x.replace("atomic_add", "store").partition(", sem")[0] + ")\n"
    ),
    "its mask is left out": lambda s: line(s, lambda x: x.replace(", value_3,", ",")),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_the_text_is_caught(bug: str, tmp_path: Path) -> None:
    source = emit(written(tmp_path, SPLIT_K), consumers=1).source
    changed = BUGS[bug](source)
    assert changed != source
    with pytest.raises((EmulationError, AssertionError, IndexError)):
        split_k(changed, 3)


# Refusals -----------------------------------------------------------------------------------------


def refused(folder: Path, text: str, **asked: Any) -> str:
    with pytest.raises(EmitError) as error:
        emit(written(folder, text), **asked)
    return str(error.value)


STORED = """%narrow = arith.truncf %total_6 : tensor<128x64xf32> to tensor<128x64xf16>
    tt.descriptor_store %a_desc_4[%zero, %zero], %narrow : !tt.tensordesc<tensor<128x64xf16>>, tensor<128x64xf16>
    %7 = tt.atomic_rmw"""  # noqa: E501


def test_what_tma_stored_is_not_released(tmp_path: Path) -> None:
    """Into an array that nobody reads here; another block may, once it sees the sum."""
    text = SPLIT_K.replace("%7 = tt.atomic_rmw", STORED).replace("descriptor_store %a_desc_4", "X")
    made = "tt.make_tensor_descriptor %o_ptr, [%M, %K], [%a_desc, %c1_i64]"
    text = text.replace("X", "descriptor_store %o_desc").replace(
        "%total_6 = scf", f"%o_desc = {made} : <f16>, <tensor<128x64xf16>>\n    %total_6 = scf"
    )
    text = text.replace("%M: i32", "%o_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %M: i32", 1)
    assert emit(written(tmp_path, text), consumers=1).source
    told = refused(tmp_path, text.replace("fadd, relaxed", "fadd, acq_rel"), consumers=1)
    assert "atomic.ttir:42:" in told
    assert "others may see it before what" in told
    assert 'sem="relaxed"' in told


def test_what_an_atomic_finds_is_its_agent_s_own(tmp_path: Path) -> None:
    """Each agent for itself would draw a number of its own."""
    text = SPLIT_K.replace(
        "%first = tt.get_program_id z : i32",
        "%one = arith.constant 1 : i32\n    %on = arith.constant true\n"
        "    %first = tt.atomic_rmw add, relaxed, gpu, %n_ptr, %one, %on :"
        " (!tt.ptr<i32>, i32, i1) -> i32",
    ).replace("%M: i32", "%n_ptr: !tt.ptr<i32>, %M: i32", 1)
    assert "another agent has what it found there" in refused(tmp_path, text, mode="specialized")
    source = emit(written(tmp_path, text), mode="unspecialized").source
    assert source.count("gl.atomic_add(n_ptr") == 1


TICKET = """%one = arith.constant 1 : i32
    %on = arith.constant true
    %ticket = tt.atomic_rmw add, acq_rel, gpu, %n_ptr, %one, %on : (!tt.ptr<i32>, i32, i1) -> i32
    %blocks = tt.get_num_programs z : i32
    %others = arith.subi %blocks, %one : i32
    %last = arith.cmpi eq, %ticket, %others : i32
    scf.if %last {
      %whole = tt.load %at_18, %6 : tensor<128x64x!tt.ptr<f32>>
      %twice = arith.addf %whole, %whole : tensor<128x64xf32>
      tt.store %at_18, %twice, %6 : tensor<128x64x!tt.ptr<f32>>
    }
    tt.return"""


def test_the_last_block_goes_on_alone(tmp_path: Path) -> None:
    """What the group that computes does in its branch asks nothing of the one that copies."""
    text = SPLIT_K.replace("tt.return", TICKET)
    text = text.replace("%M: i32", "%n_ptr: !tt.ptr<i32>, %M: i32", 1)
    source = emit(written(tmp_path, text), consumers=1).source
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((112, 336), (336, 48)))
    inputs: dict[str, Any] = {"a_ptr": a, "b_ptr": b, "M": 112, "N": 48, "K": 336}
    inputs |= {"c_ptr": np.zeros((112, 48), np.float32), "n_ptr": np.zeros(1, np.int32)}
    after = launched(source, inputs, (1, 1, 3), 0.2)
    near(after, {"c_ptr": 2 * (a.astype(np.float64) @ b.astype(np.float64))}, 0.01)
    assert list(after["n_ptr"]) == [3]


READ = """%z_desc = tt.make_tensor_descriptor %y_ptr, [%c64_i32, %c64_i32], [%c64_i64, %c1_i64] : <f32>, <tensor<64x64xf32>>
    scf.for"""  # noqa: E501
ADDED = """%z = tt.descriptor_load %z_desc[%c0_i32, %c0_i32] : !tt.tensordesc<tensor<64x64xf32>> -> tensor<64x64xf32>
      %s = arith.addf %y, %z : tensor<64x64xf32>
      %0 ="""  # noqa: E501


def test_what_is_read_and_added_to_is_kept_apart(tmp_path: Path) -> None:
    text = (
        GATHERED.replace("scf.for", READ).replace("%0 =", ADDED).replace("%at_9, %y", "%at_9, %s")
    )
    told = refused(tmp_path, text)
    assert "atomic.ttir:28:" in told
    assert "may touch the same element before or after it (TMA keeps no order" in told
