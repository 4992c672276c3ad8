"""Shared memory that conversions of layouts take: counted, so that what is emitted fits.

Figures of a compiler are those of Triton 3.6 for sm_90; `tests/gpu/compile.py` asks it again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import stretto
from exchanging_kernels import BATCHED, NARROWED, TURNED
from stretto.emission import EmitError
from stretto.frontends.triton import read_ttir
from stretto.kernel.types import Scalar, Tile
from stretto.machine.settings import with_settings
from stretto.program.builder.exchange import Exchange, exchanged, holders
from stretto.program.builder.layouts import Layouts
from stretto.program.builder.operands import Operand, in_layout
from stretto.program.expressions import Converted, Expanded, Name
from stretto.program.layouts import Factor, Layout, Product, Rows, Slice, WarpProduct

ROOM = 232_448
F32, F16, F8 = Scalar("f32"), Scalar("f16"), Scalar("f8E4M3FN")
MMA_64, MMA_128 = Product(64, 4, 16), Product(128, 4, 16)
ROWS = Rows((64, 128), 4, 4)
WARPS_1X4, WARPS_2X2, WARPS_4X1 = (WarpProduct(apart) for apart in ((1, 4), (2, 2), (4, 1)))


def bytes_of(source: Layout, target: Layout, tile: Tile) -> int:
    return exchanged(holders(source, tile.shape), holders(target, tile.shape), tile)


@pytest.mark.parametrize(
    "layout", [MMA_64, MMA_128, ROWS, Factor(MMA_128, 2), Rows((64, 128), 8, 8)]
)
def test_every_element_is_held_by_somebody_and_by_each_of_them_once(layout: Layout) -> None:
    found = holders(layout, (64, 128))
    bits = [bit for bit in (*found.registers, *found.lanes, *found.warps) if bit is not None]
    assert sorted(bits) == list(range(13))


@pytest.mark.parametrize("warps", [(1, 4), (2, 2), (4, 1), (8, 1), (1, 1)])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_of_a_product_of_warps_every_element_is_held(warps: tuple[int, int], width: int) -> None:
    """A warp has all of K of its rows or columns; those beside it have the same."""
    made, (rows, columns) = WarpProduct(warps), warps
    for layout, same in ((made, 1), (Factor(made, width), columns), (Factor(made, width, 1), rows)):
        found = holders(layout, (128, 128))
        bits = [bit for bit in (*found.registers, *found.lanes, *found.warps) if bit is not None]
        assert sorted(bits) == list(range(14))
        assert 2 ** found.warps.count(None) == same
        assert None not in found.lanes
    batch = holders(WarpProduct((2, *warps)), (4, 32, 32))
    held = [bit for bit in (*batch.registers, *batch.lanes, *batch.warps) if bit is not None]
    assert sorted(held) == list(range(12))


@pytest.mark.parametrize(
    ("source", "target", "tile", "bytes"),
    [
        # Warps beside each other have the same rows of a left factor, but not of the sum.
        (Rows((16, 64), 4, 8), Factor(WARPS_1X4, 2), Tile((16, 64), F16), 2048),
        (WARPS_1X4, Factor(WARPS_1X4, 2), Tile((16, 64), F16), 2048),
        (WARPS_1X4, Factor(WARPS_1X4, 1), Tile((16, 32), F32), 2048),
        (WARPS_4X1, Factor(WARPS_4X1, 2), Tile((64, 64), F16), 0),
        (Rows((32, 64), 4, 4), WARPS_2X2, Tile((32, 64), F32), 8192),
        # Other warps hold the rows.
        (MMA_128, ROWS, Tile((64, 128), F32), 64 * 128 * 4),
        (ROWS, MMA_128, Tile((64, 128), F16), 64 * 128 * 2),
        # The same threads hold them, under another name, and lanes that shuffle.
        (MMA_128, Factor(MMA_128, 2), Tile((64, 128), F16), 0),
        (MMA_128, Factor(MMA_128, 4), Tile((64, 128), F8), 0),
        (MMA_64, MMA_128, Tile((64, 1), F32), 0),
        (Slice(1, MMA_64), Slice(1, MMA_128), Tile((64,), F32), 0),
        (Slice(1, ROWS), Slice(1, MMA_128), Tile((64,), F32), 64 * 4),
    ],
)
def test_a_conversion_takes_memory_where_elements_leave_their_warp(
    source: Layout, target: Layout, tile: Tile, bytes: int
) -> None:
    assert bytes_of(source, target, tile) == bytes


def test_registers_that_stay_go_one_after_the_other() -> None:
    """A product's 128 x 256 in eight warps, as the epilogue of tutorial 09 halves it: column 128
    and row 8 stay in the registers of a thread, beside its neighbour; two of them move at once."""
    product, rows = Product(256, 8, 16), Rows((128, 2, 128), 8, 4)
    there = holders(rows, (128, 2, 128))
    assert exchanged(holders(product, (128, 256)), there, Tile((128, 2, 128), F32)) == 65_536
    assert bytes_of(product, Rows((128, 256), 8, 4), Tile((128, 256), F32)) == 65_536


def test_a_tile_keeps_its_numbers_in_another_shape_and_changes_them_transposed() -> None:
    square = holders(MMA_64, (64, 64))
    assert square == holders(MMA_64, (64, 64)).turned((64, 64), (0, 1))
    turned = square.turned((64, 64), (1, 0))
    assert turned != square
    assert turned.turned((64, 64), (1, 0)) == square


def exchange() -> Exchange:
    (kernel, *_) = read_ttir("turned", TURNED)
    return Exchange(Layouts(kernel, 4))


def test_exchanges_of_an_agent_share_what_they_take() -> None:
    found, tile = exchange(), Tile((64, 128), F32)
    found.convert(MMA_128, ROWS, Tile((64, 128), F16))
    assert found.bytes == 16_384
    for _ in range(2):
        found.convert(MMA_128, ROWS, tile)
    assert found.bytes == 32_768


def test_agents_share_nothing(tmp_path: Path) -> None:
    """Beside less than a kilobyte, in which they are told what there is."""
    file = tmp_path / "batched.ttir"
    file.write_text(BATCHED)
    taken = [stretto.emit(file, "h200", consumers=n).emitted.scratch for n in (1, 2)]
    assert all(0 < bytes - 128 * 128 * 4 < 1024 for bytes in taken)


def test_a_reduction_takes_memory_where_several_warps_have_a_part() -> None:
    found = exchange()
    tile = Tile((64, 128), F32)
    found.reduced(MMA_128, 1, tile)
    assert found.bytes == 0
    found.reduced(ROWS, 0, tile)  # four warps, each with 128 sums
    assert found.bytes == 4 * 128 * 4


def test_a_column_is_exchanged_before_it_is_spread() -> None:
    found = exchange()
    rows = Expanded(Name("rows"), 1, 2)
    column = Operand(rows, MMA_128, Tile((64, 1), F32))
    assert in_layout(column, ROWS, Tile((64, 128), F32), found) == Converted(rows, ROWS)
    assert found.bytes == 64 * 4


@pytest.mark.parametrize("consumers", [1, 2])
def test_what_threads_exchange_leaves_less_to_rings(tmp_path: Path, consumers: int) -> None:
    """Six slots and 295,208 bytes, by the compiler's figure, where it was not counted."""
    file = tmp_path / "batched.ttir"
    file.write_text(BATCHED)
    made = stretto.emit(file, "h200", consumers=consumers)
    assert "gl.reshape(" in made.source
    assert made.emitted.scratch >= 128 * 128 * 4
    assert set(made.emitted.rings.values()) == {4}
    assert made.emitted.smem <= ROOM


def test_a_tile_is_narrowed_before_it_is_seen_in_another_shape(tmp_path: Path) -> None:
    """Public attention for cuTile ends so, with a view of four dimensions."""
    file = tmp_path / "narrowed.ttir"
    file.write_text(NARROWED)
    made = stretto.emit(file, "h200", consumers=2)
    assert "gl.reshape(" not in made.source
    assert set(made.emitted.rings.values()) == {6}
    file.write_text(BATCHED)
    assert "gl.reshape(" in stretto.emit(file, "h200", consumers=2).source


def test_a_kernel_that_does_not_fit_says_what_takes_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "batched.ttir"
    file.write_text(BATCHED)
    small = with_settings("h200", {"budgets.smem.bytes": 100_000})
    told = r"131,\d{3} bytes of shared memory are needed, .* has 100,000; 65,\d{3} of them for what"
    with pytest.raises(EmitError, match=told):
        stretto.emit(file, small, consumers=1)
