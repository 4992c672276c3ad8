"""Blocks that go over several tiles: each once, evenly shared, and the kernel does what it did."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_block_order import counting, in_order

import kernel_cases
import kernel_numpy
import stretto
from gluon_cases import near, shipped
from stretto.compile.sources import kernels_of
from stretto.frontends import read_input
from stretto.kernel import Kernel
from stretto.kernel.configuration import Configuration
from stretto.kernel.persistence import with_work_tiles
from stretto.kernel.pipeline import lower
from stretto.kernel.tree import Lowered
from stretto.machine import load_machine

Place = tuple[int, ...]


def persistent(kernel: Kernel, blocks: int, cache: int | None = None) -> Kernel:
    found = with_work_tiles(kernel, blocks, cache)
    assert isinstance(found, Lowered)
    return found.kernel


def shares(kernel: Kernel, tiles: Place, blocks: int) -> list[dict[Place, int]]:
    """Of each block: the tiles that it went over, and what their loops came to.

    A tile that somebody wrote before is an error."""
    there = np.full(16 ** len(tiles), -1, dtype=np.int32)
    running = min(blocks, prod(tiles))
    found: list[dict[Place, int]] = []
    for number in range(running):
        before = there.copy()
        block = kernel_numpy.Block([there], (number, 0, 0), (running, 1, 1))
        block.tiles = (*tiles, 1, 1)[:3]
        block.values[kernel.parameters[0].value] = np.int64(kernel_numpy.ARRAY)
        block.region(kernel.body)
        places = np.flatnonzero(there != before)
        assert (before[places] == -1).all()
        found.append(
            {
                tuple(int(p) // 16**axis % 16 for axis in range(len(tiles))): int(there[p])
                for p in places
            }
        )
    return found


@given(
    bounds=st.sampled_from([("0", "6"), ("0", "x*3 + 4"), ("x*3", "40"), ("y*2", "x*5 + 20")]),
    tiles=st.lists(st.integers(1, 7), min_size=2, max_size=3).map(tuple),
    blocks=st.integers(1, 9),
    cache=st.sampled_from([None, 1, 1 << 20]),
)
def test_each_tile_is_worked_on_once(
    bounds: tuple[str, str], tiles: Place, blocks: int, cache: int | None
) -> None:
    kernel = counting(len(tiles), *bounds)
    found = shares(persistent(kernel, blocks, cache), tiles, blocks)
    together = [item for share in found for item in share.items()]
    assert sorted(together) == sorted(in_order(kernel, tiles))
    numbers = [len(share) for share in found]
    assert max(numbers) - min(numbers) <= 1


@pytest.mark.parametrize(("rows", "heads", "blocks"), [(16, 16, 7), (13, 16, 12), (16, 9, 5)])
def test_blocks_have_as_much_to_do(rows: int, heads: int, blocks: int) -> None:
    """By trip counts, longest first and there and back: no more than one tile apart."""
    found = shares(persistent(counting(2, "0", "x*2 + 2"), blocks), (rows, heads), blocks)
    work = [sum(share.values()) for share in found]
    assert max(work) - min(work) <= rows
    assert max(work) <= 1.05 * sum(work) / blocks


@pytest.mark.parametrize("sections", [2, 3, 5])
def test_sections_leave_the_shares_alike(sections: int) -> None:
    """Every other one is gone through from its shortest tile on."""
    from stretto.kernel.types import Scalar, Tile  # noqa: PLC0415

    rows, heads, blocks = 16, 15, 2
    kernel = counting(2, "0", "x*2 + 2", loads=Tile((32,), Scalar("f32")))
    cache = 2 * (heads // sections) * rows * 128
    found = shares(persistent(kernel, blocks, cache), (rows, heads), blocks)
    work = [sum(share.values()) for share in found]
    assert max(work) - min(work) <= rows


def test_kernels_that_stay_as_they_are() -> None:
    atomic = counting(1, "0", "x*3 + 4", store="tile.atomic_rmw")
    assert with_work_tiles(atomic, 4) is atomic
    (already,) = kernels_of(*read_input(str(shipped("triton/matmul_persistent"))))
    assert with_work_tiles(already, 4) is already


@pytest.mark.parametrize("blocks", [1, 3, 132])
@pytest.mark.parametrize(
    "name",
    ["attention_forward_d64", "attention_forward_d64_causal", "attention_backward_kv_causal",
     "matmul_descriptors", "matmul_fused"],
)  # fmt: skip
def test_a_persistent_kernel_does_the_same(name: str, blocks: int) -> None:
    case = kernel_cases.CASES[name]()
    (kernel,) = kernels_of(*read_input(str(shipped(f"triton/{name}"))))
    made = persistent(kernel, blocks)
    found = stretto.simulate_kernel(made, case.inputs, case.grid, "h200", mode="sequential")
    near(found.arrays, case.expected, case.tolerance)


def test_a_configuration_asks_for_it() -> None:
    (kernel,) = kernels_of(*read_input(str(shipped("triton/attention_forward_d64_causal"))))
    machine = load_machine("h200")
    told = [text for _, text in lower(kernel, machine, Configuration(blocks="persistent")).notes]
    said = "at most 132 blocks go over its tiles, longest first"
    assert f"{said}: trip counts change with block index 0" in told


def test_grids_that_do_not_divide() -> None:
    """All shapes of a small grid, with all numbers of blocks up to it."""
    kernel = counting(2, "0", "x*3 + 4")
    for tiles in product(range(1, 4), range(1, 4)):
        for blocks in range(1, prod(tiles) + 2):
            found = shares(persistent(kernel, blocks), tiles, blocks)
            assert sum(len(share) for share in found) == prod(tiles)
