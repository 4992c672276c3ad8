"""Loads by addresses as loads through views: only where the values are the same, and then they are.

The kernels of tests/ttir/views/ run with their addresses, and as they are lowered for TMA, on
arrays in which a wrong element would be seen: NaN behind every bound, and rows that differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

import stretto
from gluon_cases import launched, near
from stretto.api.emitting import emit
from stretto.compile.emitted import EmitMode
from stretto.compile.sources import kernels_of
from stretto.errors import StrettoError
from stretto.frontends import read_input
from stretto.kernel import Kernel, pipeline
from stretto.kernel.lowering.address_views import with_views_of_addresses
from stretto.kernel.lowering.own_numbers import with_own_numbers
from stretto.kernel.tree import Lowered, kind_of
from stretto.machine import load_machine
from stretto.simulation.kernels import run_kernel

Array = NDArray[Any]
VIEWS = Path(__file__).parents[1] / "ttir" / "views"
BEHIND = 16
"""Elements behind what a kernel may read, in each row, and rows: none is a number."""


@cache
def kernel(name: str) -> Kernel:
    (found,) = kernels_of(*read_input(str(VIEWS / f"{name}.ttir")))
    return found


def copied(name: str) -> dict[str, int]:
    """How often tiles of each array are loaded through a view."""
    found: dict[str, int] = {}
    made = with_views_of_addresses(kernel(name)).kernel
    makers = {value: op for op in made.walk() for value in op.results}
    for op in made.walk():
        if op.name == "tile.view_load":
            array = makers[op.operands[0]].operands[0].name
            found[array] = found.get(array, 0) + 1
    return found


def inputs(name: str, rows: int = 70, depth: int = 100) -> dict[str, Any]:
    rng = np.random.default_rng(len(name))
    stride = depth + BEHIND + 4 - depth % 4  # rows of whole 16 bytes
    stride += -stride % 8
    a = np.full((2, rows + BEHIND + 64 + -rows % 8, stride), np.nan, np.float16)
    a[:, :rows, :depth] = rng.integers(-4, 5, (2, rows, depth))
    b = np.full((depth + 64, 64), np.nan, np.float16)
    b[:depth] = rng.integers(-4, 5, (depth, 64))
    if name == "turned":
        a = np.ascontiguousarray(a.swapaxes(1, 2))
    if name in ("wrapped_depth", "repeated", "linear", "shifted", "branch_unbounded"):
        a = np.nan_to_num(a)  # they read what lies there
    c = np.zeros((2 * (rows + 3) + 64, 64), np.float32)
    found: dict[str, Any] = {"a_ptr": a, "b_ptr": b, "c_ptr": c}
    found |= {
        "s_ptr": np.array([max(2, rows - 9), *[0] * 63], np.int32),
        "M": rows,
        "N": 64,
        "K": depth,
    }
    return found | {"stride_a": a.shape[2], "stride_h": a.shape[1] * a.shape[2]}


def outcomes(name: str, given: dict[str, Any], *grid: int) -> Iterator[dict[str, Array]]:
    """What is in the arrays after the kernel with its addresses, and with its views."""
    machine = load_machine("h200")
    with patch.object(pipeline, "with_views_of_addresses", Lowered):
        by_addresses = pipeline.lower(kernel(name), machine).kernel
    for one in (by_addresses, pipeline.lower(kernel(name), machine).kernel):
        yield dict(run_kernel(one, given, grid).arrays)


TAKEN = (
    "exact", "no_other", "from_8", "shifted_from_0", "wrapped", "clamped", "clamped_masked",
    "heads", "branch", "turned",
)  # fmt: skip
CHOSEN = ("ones", "from_3", "loaded")
"""Copied inside of the array, and what the mask lets through is chosen then."""
LEFT = {
    "linear": "its mask is more than bounds of its indices",
    "shifted": "its mask does not say that its index is not negative",
    "other_index": "its mask does not say that its index is not negative",
    "wrapped_stored": "the mask of a store does not leave them out",
    "clamped_short": "the mask of a store does not leave them out",
    "wrapped_depth": "its index wraps around, and a product sums them up",
    "repeated": "elements are repeated: a stride is 0",
    "branch_unbounded": "it stands in a branch, and an index of it has no bound",
    "volatile": "the load is volatile",
    "after_atomic": "an atomic operation before it may acquire what it reads",
    "written": "the kernel also writes `a_ptr`",
    "long_rows": "its tile has 512 elements along a dimension, more than 256",
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_tile_of_a_view_has_the_values_of_its_addresses(name: str) -> None:
    assert copied(name) == {"a_ptr": 1, "b_ptr": 1}
    for rows, depth in ((70, 100), (64, 64), (5, 3)):
        if name == "from_8" and depth < 8:
            continue
        given = inputs(name, rows, depth)
        written, lowered = outcomes(name, given, 2, 2 if name == "heads" else 1)
        assert np.isfinite(written["c_ptr"]).all()
        assert written["c_ptr"].any()
        assert np.array_equal(written["c_ptr"], lowered["c_ptr"])


@pytest.mark.parametrize("name", CHOSEN)
def test_what_a_mask_leaves_out_of_a_copy_is_chosen(name: str) -> None:
    """Another value than zero, rows from one on, rows up to a number that is loaded."""
    assert copied(name) == {"a_ptr": 1, "b_ptr": 1}
    made = with_views_of_addresses(kernel(name)).kernel
    makers = {value: op for op in made.walk() for value in op.results}
    factors = {makers[op.operands[0]].name for op in made.walk() if op.name == "tile.dot"}
    assert factors == {"arith.select"}  # no product takes the tile unseen
    for rows, depth in ((70, 100), (64, 64), (5, 3)):
        given = inputs(name, rows, depth)
        written, lowered = outcomes(name, given, 2)
        assert np.isfinite(written["c_ptr"]).all()
        assert written["c_ptr"].any() or depth <= 3
        assert np.array_equal(written["c_ptr"], lowered["c_ptr"])


@pytest.mark.parametrize("name", LEFT)
def test_what_may_have_other_values_stays_by_addresses(name: str) -> None:
    assert "a_ptr" not in copied(name)
    notes = [told for _, told in with_views_of_addresses(kernel(name)).notes]
    assert any(LEFT[name] in told for told in notes), notes
    if name == "shifted":
        return  # it reads what lies before its array
    given = inputs(name, *((40, 512) if name == "long_rows" else (70, 100)))
    written, lowered = outcomes(name, given, 2)
    assert all(np.array_equal(written[x], lowered[x], equal_nan=True) for x in written)


def test_values_behind_a_bound_would_be_seen() -> None:
    """The arrays of these tests tell a mask that is dropped from one that is kept."""
    given = inputs("exact")
    assert np.isnan(given["a_ptr"][:, :70, 100:]).all()
    assert np.isnan(given["b_ptr"][100:]).all()
    bare = {**given, "M": 134, "K": 120}
    assert np.isnan(next(outcomes("exact", bare, 2))["c_ptr"]).any()


@pytest.mark.parametrize("name", ["exact", "wrapped", "heads", "turned"])
def test_what_is_emitted_copies_the_same_tiles(name: str) -> None:
    given = inputs(name)
    grid = (2, 2) if name == "heads" else (2,)
    made = emit(VIEWS / f"{name}.ttir", "h200", consumers=1, time_limit=5)
    assert made.source.count("tma_load(a_desc") >= 1
    assert "gl.load(" not in made.source
    (wanted, _) = outcomes(name, given, *grid, *[1] * (2 - len(grid)))
    near(launched(made.source, given, grid), {"c_ptr": wanted["c_ptr"]}, 0)


def test_pages_and_sequences_are_found_by_each_agent() -> None:
    rng = np.random.default_rng(1)
    pages = rng.permutation(16).astype(np.int32)
    q, k = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((64, 64), (16, 64, 64)))
    given: dict[str, Any] = {"q_ptr": q, "k_ptr": k, "pages_ptr": pages, "length": 300}
    given |= {"o_ptr": np.zeros((128, 64), np.float32), "stride_page": 64 * 64}
    assert copied("paged") == {"q_ptr": 1, "k_ptr": 1}
    made = emit(VIEWS / "paged.ttir", "h200", time_limit=5)
    found = launched(made.source, given, (2,))["o_ptr"]
    wanted = next(outcomes("paged", given, 2))["o_ptr"]
    assert wanted.any()
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(("consumers", "mode"), [(1, None), (2, None), (None, "unspecialized")])
def test_a_number_that_agents_share_is_loaded_by_each(
    consumers: int | None, mode: EmitMode | None
) -> None:
    rng = np.random.default_rng(2)
    q, k = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((128, 64), (1024, 64)))
    for count in (0, 1, 9):
        blocks = np.array([count, *rng.permutation(16)], np.int32)
        given: dict[str, Any] = {"q_ptr": q, "k_ptr": k, "blocks_ptr": blocks, "length": 700}
        given["o_ptr"] = np.full((128, 64), np.nan, np.float32)
        made = emit(VIEWS / "listed.ttir", "h200", consumers=consumers, mode=mode, time_limit=5)
        found = launched(made.source, given, (1,))["o_ptr"]
        row = np.arange(1024)
        wanted = np.zeros((128, 64), np.float32)
        for block in blocks[1 : 1 + count]:
            rows = row // 64 == block
            wanted += np.where((row[rows] < 700)[None, :], q.astype(np.float32) @ k[rows].T, 0)
        assert np.array_equal(found, wanted)


def test_a_number_that_is_written_too_is_one_agent_s() -> None:
    """Each load would be of another time."""
    found = lowering("listed", "      tt.store %blocks_ptr, %block_12 : !tt.ptr<i32>\n")
    assert [op.name for op in found.walk()].count("tile.load") == 2
    assert [op.name for op in lowering("listed", "").walk()].count("tile.load") == 3


def lowering(name: str, more: str) -> Kernel:
    """A kernel with something more in its loop, by addresses replaced and numbers of their own."""
    text = (VIEWS / f"{name}.ttir").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "= tt.load %block_" in line)
    (found,) = kernels_of(name, text.replace(line, f"{line}\n{more}"))
    return with_own_numbers(with_views_of_addresses(found).kernel)


def test_a_row_that_follows_from_a_list_stays_by_addresses() -> None:
    """How long a sequence is, no host knows: rows behind it are another's."""
    assert copied("sequences") == {"w_ptr": 1}


@pytest.mark.parametrize("stride", [100, 104])
def test_a_simulation_refuses_the_strides_that_a_launch_refuses(stride: int) -> None:
    given = inputs("heads") | {"stride_a": stride}
    given["a_ptr"] = np.zeros(1 << 16, np.float16)
    path = VIEWS / "heads.ttir"
    if stride % 8:
        with pytest.raises(StrettoError, match=f"^`a_ptr` has a stride of {2 * stride} bytes: a"):
            stretto.simulate_kernel(path, given, (2, 2), "h200", mode="emitted")
    else:
        assert stretto.simulate_kernel(path, given, (2, 2), "h200", mode="emitted").equal


class Given:
    """A tensor as a launch asks it."""

    def __init__(self, address: int = 256) -> None:
        self.address = address

    def data_ptr(self) -> int:
        return self.address


@cache
def _fits() -> Any:
    text = emit(VIEWS / "heads.ttir", "h200", consumers=1, time_limit=5).source
    begin, end = text.index("def undescribed"), text.index("def arguments")
    space: dict[str, Any] = {}
    exec(text[begin:end], space)
    return space["fits"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, ""),
        ({"a_ptr": Given(264)}, "`a_ptr` does not begin at a multiple of 16 bytes"),
        ({"stride_a": 100}, "`a_ptr` has a stride of 200 bytes"),
        ({"stride_a": 0}, "`a_ptr` has a stride of 0 bytes"),
        ({"stride_a": -128}, "`a_ptr` has a stride of -256 bytes"),
        ({"stride_h": 0}, "`a_ptr` has a stride of 0 bytes"),
        ({"stride_h": 1 << 39}, "`a_ptr` has a stride of 1099511627776 bytes"),
        ({"K": 0}, "has 0 elements along a dimension: a descriptor takes 1 to 2^31 - 1"),
        ({"M": 0}, "`a_ptr` has 0 elements along a dimension"),
        ({"M": -1}, "`a_ptr` has -1 elements along a dimension"),
        ({"M": (1 << 31) - 1}, ""),
        ({"M": 1 << 31}, f"`a_ptr` has {1 << 31} elements along a dimension"),
        ({"M": 1 << 24, "stride_a": 1 << 8}, ""),  # 2^32 elements of an array
    ],
)
def test_a_launch_is_asked_what_only_it_knows(given: dict[str, Any], why: str) -> None:
    numbers = {"M": 70, "N": 64, "K": 100, "stride_a": 128, "stride_h": 1 << 14}
    arrays = {name: Given() for name in ("a_ptr", "b_ptr", "c_ptr", "s_ptr")}
    told = _fits()(**{**arrays, **numbers, **given})
    assert told == why if not why else why in told


def test_only_what_is_copied_is_in_flight() -> None:
    machine = load_machine("h200")
    kinds = [kind_of(op) for op in pipeline.lower(kernel("exact"), machine).kernel.walk()]
    assert kinds.count("async.tiled_tma_load") == 2
    assert "pointer.load" not in kinds
