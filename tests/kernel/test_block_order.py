"""Blocks that come longest first: each once, in that order, and the kernel does what it did."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases
import kernel_numpy
import stretto
from gluon_cases import EXAMPLES, near, shipped
from stretto.compile.sources import kernels_of
from stretto.frontends import read_input
from stretto.kernel import Kernel, Location, Parameter, Value
from stretto.kernel.block_order import NUMBER, with_longest_first
from stretto.kernel.building import Builder
from stretto.kernel.configuration import Configuration
from stretto.kernel.pipeline import lower
from stretto.kernel.tree import Lowered
from stretto.kernel.trip_counts import growth
from stretto.kernel.types import Pointer, Scalar, Tile
from stretto.machine import load_machine

ANYWHERE = Location("here.py", 1)


def read(name: str) -> Kernel:
    (kernel,) = kernels_of(*read_input(str(shipped(name))))
    return kernel


def ordered(kernel: Kernel, cache: int | None = None) -> Kernel:
    found = with_longest_first(kernel, cache)
    return found.kernel if isinstance(found, Lowered) else found


def counting(
    axes: int, lower: str, upper: str, store: str = "tile.store", loads: Tile | None = None
) -> Kernel:
    """A kernel that writes down, block by block, where it was and how often its loop went round.

    It goes from `lower` to `upper`, each a sum such as ``x*3 + 4``.
    """
    out = Builder(ANYWHERE)
    address = Pointer(NUMBER)
    where = Value(address, "where_ptr")
    indices = [
        out.op("tile.block_index", (), NUMBER, "xyz"[axis], axis=axis) for axis in range(axes)
    ]
    names = dict(zip("xyz", indices, strict=False))

    def number(text: str) -> Value:
        total = out.constant(0, NUMBER)
        for part in text.split(" + "):
            factors = [
                names[f] if f in names else out.constant(int(f), NUMBER) for f in part.split("*")
            ]
            value = factors[0]
            for factor in factors[1:]:
                value = out.op("arith.muli", (value, factor), NUMBER)
            total = out.op("arith.addi", (total, value), NUMBER)
        return total

    bounds = number(lower), number(upper), out.constant(2, NUMBER)
    index, trips = Value(NUMBER, "i"), Value(NUMBER, "trips")
    with out.region((index, trips)) as body:
        if loads is not None:  # the array is long enough, and what is there does not matter
            row = Tile(loads.shape, address)
            out.op("tile.load", (out.op("tile.splat", (where,), row),), loads)
        more = out.op("arith.addi", (trips, out.constant(1, NUMBER)), NUMBER)
        out.add("scf.yield", (more,))
    begun = (*bounds, out.constant(0, NUMBER))
    loop = out.add("scf.for", begun, (NUMBER,), regions=(body.region,))
    place = out.constant(0, NUMBER)
    for axis in reversed(range(axes)):
        place = out.op("arith.muli", (place, out.constant(16, NUMBER)), NUMBER)
        place = out.op("arith.addi", (place, indices[axis]), NUMBER)
    at = out.op("tile.offset", (where, place), address)
    if store == "tile.store":
        out.add(store, (at, loop.result))
    else:
        out.add(store, (at, loop.result), (NUMBER,), {"kind": "add"})
    out.add("tile.return")
    return Kernel("counting", (Parameter(where),), out.finish(), ANYWHERE)


def in_order(kernel: Kernel, grid: tuple[int, ...]) -> list[tuple[tuple[int, ...], int]]:
    """By the numbers that hardware gives blocks: where each was, and its trip count."""
    whole = (*grid, 1, 1)[:3]
    found: list[tuple[tuple[int, ...], int]] = []
    for z, y, x in product(*(range(n) for n in reversed(whole))):
        there = np.full(16 ** len(grid), -1, dtype=np.int32)
        block = kernel_numpy.Block([there], (x, y, z), whole)
        block.values[kernel.parameters[0].value] = np.int64(kernel_numpy.ARRAY)
        block.region(kernel.body)
        (place,) = np.flatnonzero(there != -1)
        at = tuple(int(place) // 16**axis % 16 for axis in range(len(grid)))
        found.append((at, int(there[place])))
    return found


GROWING = [("0", "x*3 + 4", 1), ("x*3", "40", -1), ("x*2", "x*5 + 1", 1)]


@given(
    bounds=st.sampled_from(GROWING),
    grid=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
)
def test_each_block_comes_once_and_the_longest_first(
    bounds: tuple[str, str, int], grid: tuple[int, ...]
) -> None:
    lower, upper, _ = bounds
    kernel = counting(len(grid), lower, upper)
    was, now = in_order(kernel, grid), in_order(ordered(kernel), grid)
    assert sorted(now) == sorted(was), "the same blocks, each of which does what it did"
    trips = [count for _, count in now]
    assert trips == sorted(trips, reverse=True)


@given(grid=st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 3)))
def test_sections_are_gone_through_one_after_the_other(grid: tuple[int, ...]) -> None:
    """Of so many neighbours as fit into half of a cache: each longest first, none left out."""
    tile, bytes = Tile((32,), Scalar("f32")), 128
    kernel = counting(3, "0", "x*2 + 2", loads=tile)
    now = in_order(ordered(kernel, cache=2 * 2 * grid[0] * bytes), grid)
    assert sorted(now) == sorted(in_order(kernel, grid))
    rows = [y + grid[1] * z for (_, y, z), _ in now]
    for first in range(0, len(now), 2 * grid[0]):
        trips = [count for _, count in now[first : first + 2 * grid[0]]]
        assert trips == sorted(trips, reverse=True)
        assert len(set(rows[first : first + 2 * grid[0]])) <= 2


@pytest.mark.parametrize(
    ("lower", "upper", "wanted"),
    [
        ("0", "40", {}),
        ("0", "x*3 + y", {0: 1, 1: 1}),
        ("x*2", "x*2 + 8", {}),
        ("x*2", "9", {0: -1}),
        ("x*2", "x + 9", {0: -1}),
        ("0", "x*y + 4", None),
    ],
)
def test_how_trip_counts_grow(lower: str, upper: str, wanted: dict[int, int] | None) -> None:
    kernel = counting(2, lower, upper)
    assert growth(kernel) == wanted
    if wanted is None or len(wanted) != 1:
        assert ordered(kernel) is kernel


def test_blocks_that_may_see_one_another_keep_their_order() -> None:
    kernel = counting(1, "0", "x*3 + 4", store="tile.atomic_rmw")
    assert growth(kernel) == {0: 1}
    assert ordered(kernel) is kernel


def test_a_kernel_that_goes_by_the_number_of_blocks_keeps_its_order() -> None:
    kernel = read("triton/matmul_persistent")
    assert ordered(kernel) is kernel


def test_shipped_kernels_that_are_ordered() -> None:
    """Causal attention and its gradients, and nothing else."""
    found = {
        file.stem
        for file in sorted(EXAMPLES.glob("triton/*.ttir"))
        if isinstance(with_longest_first(read(f"triton/{file.stem}")), Lowered)
    }
    assert found == {
        "attention_backward_kv_causal",
        "attention_backward_q_causal",
        "attention_forward_d128_causal",
        "attention_forward_d64_causal",
    }


def test_machines_without_agents_and_who_asks_get_the_order_that_is_given() -> None:
    kernel = read("triton/attention_forward_d64_causal")
    machine, bare = load_machine("h200"), load_machine("blackwell")
    wanted = Configuration(blocks="longest")
    (said,) = [told for _, told in lower(kernel, machine, wanted).notes if "longest" in told]
    assert said == "blocks come longest first: trip counts change with block index 0"
    assert not lower(kernel, machine).notes
    assert not [told for _, told in lower(kernel, bare, wanted).notes if "longest" in told]


@pytest.mark.parametrize("name", ["attention_forward_d64_causal", "attention_backward_kv_causal"])
@pytest.mark.parametrize("cache", [None, 1 << 17, 1 << 24])
def test_an_ordered_kernel_does_the_same(name: str, cache: int | None) -> None:
    case = kernel_cases.CASES[name]()
    kernel = ordered(read(f"triton/{name}"), cache)
    found = stretto.simulate_kernel(kernel, case.inputs, case.grid, "h200", mode="sequential")
    near(found.arrays, case.expected, case.tolerance)
