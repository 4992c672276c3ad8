"""Views whose sizes or arrays are read from memory: what a descriptor would do, by addresses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stretto
from stretto.compile.sources import kernels_of
from stretto.kernel.lowering.view_addresses import with_addresses_of_views

KERNEL = (
    """module {
  tt.func public @k(%lists: !tt.ptr<i64>, %out: !x, %sizes: !tt.ptr<i32>, PLACE) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1 : i64
    %far = arith.constant 40 : i64
    scf.for %g = %c0 to %n step %c1 : i32 {
      %list = tt.addptr %lists, %g : !tt.ptr<i64>, i32
      %number = tt.load %list : !tt.ptr<i64>
      %x = tt.int_to_ptr %number : i64 -> !tt.ptr<f32>
      %two = arith.muli %g, %c1 : i32
      %at = tt.addptr %sizes, %two : !tt.ptr<i32>, i32
      %rows = tt.load %at : !tt.ptr<i32>
      %columns = arith.addi %rows, %c1 : i32
      %view = tt.make_tensor_descriptor %x, [%rows, %columns], [%far, %one] : !x, !view
      %tile = tt.descriptor_load %view[%row, %column] : !view -> tensor<16x32xf32>
      %more = arith.addf %tile, %tile : tensor<16x32xf32>
      %to = tt.make_tensor_descriptor %out, [%rows, %columns], [%far, %one] : !x, !view
      tt.descriptor_store %to[%row, %column], %more : !view, tensor<16x32xf32>
    }
    tt.return
  }
}
""".replace("!view", "!tt.tensordesc<tensor<16x32xf32>>")
    .replace("!x", "!tt.ptr<f32>")
    .replace("PLACE", "%row: i32, %column: i32, %n: i32")
)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (4, 8), (-3, -2), (30, 0)])
def test_views_of_arrays_that_are_read_from_memory(tmp_path: Path, row: int, column: int) -> None:
    """Of each array rows and columns inside of its own sizes, and nothing of what is behind."""
    file = tmp_path / "k.ttir"
    file.write_text(KERNEL)
    rows = np.array([12, 9], dtype=np.int32)
    lists = [np.arange(16 * 40, dtype=np.float32).reshape(16, 40) + 1000 * g for g in range(2)]
    out = np.full((16, 40), -1.0, dtype=np.float32)
    given = {"lists": lists, "out": out, "sizes": rows, "row": row, "column": column, "n": 2}
    found = stretto.simulate_kernel(file, given, (1,), "h200")
    assert found.success
    wanted = out.copy()
    for list, size in zip(lists, rows, strict=True):
        inside = slice(max(row, 0), max(0, min(row + 16, size)))
        across = slice(max(column, 0), max(0, min(column + 32, size + 1)))
        wanted[inside, across] = 2 * list[inside, across]
    assert np.array_equal(found.arrays["out"].reshape(16, 40), wanted)


def test_views_that_a_host_makes_stay(tmp_path: Path) -> None:
    file = tmp_path / "k.ttir"
    file.write_text(KERNEL)
    (kernel,) = kernels_of(str(file), file.read_text("utf-8"))
    made = with_addresses_of_views(kernel)
    assert not [op for op in made.walk() if op.name.startswith("tile.view")]
    examples = Path(__file__).parents[2] / "examples" / "triton" / "matmul_descriptors.ttir"
    (kernel,) = kernels_of(str(examples), examples.read_text("utf-8"))
    assert with_addresses_of_views(kernel) is kernel
