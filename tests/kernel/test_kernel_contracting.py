"""A product of elements and the one sum that takes it are one operation, and do what they did."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import stretto
from gluon_cases import shipped
from stretto.compile.sources import kernels_of
from stretto.frontends import read_input
from stretto.kernel import Kernel, Value
from stretto.kernel.building import Builder
from stretto.kernel.contracting import with_contracted_sums
from stretto.kernel.tree import Location, Parameter
from stretto.kernel.types import Pointer, Scalar, Tile

F32 = Scalar("f32")
WIDE = Tile((8, 16), F32)
ROW = Tile((8,), F32)


def spread(b: Builder, row: Value) -> Value:
    """A number a row, for each element of it."""
    tall = b.op("tile.expand_dims", (row,), Tile((8, 1), F32), axis=1)
    return b.op("tile.broadcast", (tall,), WIDE)


def loaded(b: Builder, at: Value, type: Tile) -> Value:
    """The first numbers of an array as a tile."""
    addresses = Tile(type.shape, Pointer(F32))
    many = b.op("tile.splat", (at,), addresses)
    count = Tile((type.elements,), Scalar("i32"))
    steps = b.op("tile.range", (), count, start=0, end=type.elements)
    if len(type.shape) > 1:
        steps = b.op("tile.reshape", (steps,), Tile(type.shape, Scalar("i32")))
    return b.op("tile.load", (b.op("tile.offset", (many, steps), addresses),), type)


def stored(b: Builder, at: Value, tile: Value) -> None:
    """A tile as the first numbers of an array."""
    addresses = Tile(WIDE.shape, Pointer(F32))
    many = b.op("tile.splat", (at,), addresses)
    steps = b.op("tile.range", (), Tile((128,), Scalar("i32")), start=0, end=128)
    steps = b.op("tile.reshape", (steps,), Tile(WIDE.shape, Scalar("i32")))
    b.add("tile.store", (b.op("tile.offset", (many, steps), addresses), tile))


Tiles = dict[str, np.ndarray]
FORMS: dict[str, tuple[int, Callable[[Tiles], np.ndarray]]] = {
    "x * y - row": (1, lambda t: t["x"] * t["y"] - t["row"]),
    "row - x * y": (0, lambda t: t["row"] - t["x"] * t["y"]),
    "wide - row * y": (1, lambda t: t["wide"] - t["row"] * t["y"]),
    "x * y - wide": (0, lambda t: t["x"] * t["y"] - t["wide"]),
    "x * y + wide": (1, lambda t: t["x"] * t["y"] + t["wide"]),
    "wide + x * y": (1, lambda t: t["wide"] + t["x"] * t["y"]),
    "read twice": (0, lambda t: (t["x"] * t["y"] + t["wide"]) * (t["x"] * t["y"])),
}
"""How many operations are contracted, and what NumPy makes of it."""


def kernel_of(form: str) -> Kernel:
    pointers = [Value(Pointer(F32), name) for name in ("x", "y", "row", "wide", "out")]
    b = Builder(Location("form.py", 1))
    x, y, wide = (loaded(b, pointers[n], WIDE) for n in (0, 1, 3))
    row = spread(b, loaded(b, pointers[2], ROW))

    def op(name: str, *operands: Value) -> Value:
        return b.op(f"arith.{name}", operands, WIDE)

    match form:
        case "x * y - row":
            made = op("subf", op("mulf", x, y), row)
        case "row - x * y":
            made = op("subf", row, op("mulf", x, y))
        case "wide - row * y":
            made = op("subf", wide, op("mulf", row, y))
        case "x * y - wide":
            made = op("subf", op("mulf", x, y), wide)
        case "x * y + wide":
            made = op("addf", op("mulf", x, y), wide)
        case "wide + x * y":
            made = op("addf", wide, op("mulf", x, y))
        case _:
            product = op("mulf", x, y)
            made = op("mulf", op("addf", product, wide), product)
    stored(b, pointers[4], made)
    b.add("tile.return")
    return Kernel("form", tuple(Parameter(v) for v in pointers), b.finish(), Location("form.py", 1))


@pytest.mark.parametrize("form", FORMS)
def test_a_sum_is_contracted_where_it_takes_less_and_is_the_same_number(form: str) -> None:
    count, expected = FORMS[form]
    kernel = with_contracted_sums(kernel_of(form))
    names = [op.name for op in kernel.walk()]
    assert names.count("math.fma") == count
    numbers = np.random.default_rng(1)
    arrays = {
        name: numbers.standard_normal(8 if name == "row" else 128, dtype=np.float32)
        for name in ("x", "y", "row", "wide", "out")
    }
    run = stretto.simulate_kernel(kernel, arrays, (1,), "h200", mode="sequential")
    wide = {name: arrays[name].reshape(8, -1) for name in ("x", "y", "row", "wide")}
    wanted = expected(wide)
    np.testing.assert_allclose(run.arrays["out"].reshape(8, 16), wanted, rtol=1e-5, atol=1e-6)


def test_a_kernel_without_such_sums_is_left_as_it_is() -> None:
    kernel = kernels_of(*read_input(str(shipped("cutile/matmul"))))[0]
    assert with_contracted_sums(kernel) is kernel


def test_scores_are_scaled_and_made_smaller_in_one_operation_of_the_emitted_kernel() -> None:
    source = stretto.emit(shipped("triton/attention_forward_d128"), consumers=2).source
    assert "gl.fma(scores" in source
    assert "* scale)" not in source


def test_what_was_spread_to_be_subtracted_is_spread_no_more() -> None:
    kernel = with_contracted_sums(kernel_of("x * y - row"))
    assert [op.name for op in kernel.walk()].count("tile.broadcast") == 1
