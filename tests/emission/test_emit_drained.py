"""Loops that are drained: iterations that run together to their end, and what is left over."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gluon_cases import launched, near, shipped
from gluon_emulator import EmulationError
from stretto.compile.candidates import Emitter
from stretto.emission import EmitError
from stretto.program.builder.trips import sizes
from stretto.program.traces import size

EPSILON = 1e-5
TRIPS = [*range(1, 18), 40]


@cache
def drained(name: str, *together: int) -> str:
    return Emitter(shipped(f"triton/{name}")).drained(together).source


def norm(source: str, columns: int) -> None:
    """Layer norm of three rows is what NumPy says."""
    rng = np.random.default_rng(columns)
    x = rng.standard_normal((3, columns)).astype(np.float16)
    gamma, beta = rng.standard_normal((2, columns)).astype(np.float32)
    wide = x.astype(np.float64)
    mean = wide.mean(1)
    rstd = 1 / np.sqrt(wide.var(1) + EPSILON)
    y = (wide - mean[:, None]) * rstd[:, None] * gamma + beta
    inputs = {
        "x_ptr": x, "y_ptr": np.zeros_like(x), "gamma_ptr": gamma, "beta_ptr": beta,
        "mean_ptr": np.zeros(3, np.float32), "rstd_ptr": np.zeros(3, np.float32),
        "stride": columns, "columns": columns, "epsilon": EPSILON,
    }  # fmt: skip
    after = launched(source, inputs, (3,))
    near(after, {"y_ptr": y}, 2e-2)
    near(after, {"mean_ptr": mean, "rstd_ptr": rstd}, 1e-3)


def softened(source: str, rows: int) -> None:
    """The softmax of so many rows by one block is what NumPy says."""
    x = np.random.default_rng(rows).standard_normal((rows, 9)).astype(np.float32)
    raised = np.exp(x.astype(np.float64))
    inputs = {
        "y_ptr": np.zeros_like(x), "x_ptr": x, "x_stride": 9, "y_stride": 9, "rows": rows,
        "columns": 9,
    }  # fmt: skip
    near(launched(source, inputs, (1,)), {"y_ptr": raised / raised.sum(1, keepdims=True)}, 1e-5)


@pytest.mark.parametrize("trips", TRIPS)
@pytest.mark.parametrize("together", [(2, 2), (4, 4), (8, 8)])
def test_a_drained_layer_norm_is_what_numpy_says(together: tuple[int, int], trips: int) -> None:
    """Two loops, the first of which carries sums; the last iteration has few columns or all."""
    source = drained("layer_norm", *together)
    norm(source, 1024 * (trips - 1) + 1)
    norm(source, 1024 * trips)


@pytest.mark.parametrize("together", [(8, 4), (8, 2), (2, 1), (4, 8)])
def test_each_loop_of_a_drained_layer_norm_has_its_own_number(together: tuple[int, int]) -> None:
    for columns in (1, 3000, 8193, 15000):
        norm(drained("layer_norm", *together), columns)


@pytest.mark.parametrize("trips", TRIPS)
@pytest.mark.parametrize("together", [2, 4, 8])
def test_a_drained_softmax_is_what_numpy_says(together: int, trips: int) -> None:
    """One loop; an iteration too many would store beyond the last row."""
    softened(drained("softmax", together), trips)


@pytest.mark.parametrize("name", ["layer_norm", "softmax"])
def test_a_loop_that_goes_round_never_does_nothing(name: str) -> None:
    inputs: Mapping[str, object] = {
        "softmax": {"y_ptr": np.ones((2, 9), np.float32), "x_ptr": np.ones((2, 9), np.float32),
                    "x_stride": 9, "y_stride": 9, "rows": 0, "columns": 9},
        "layer_norm": {"x_ptr": np.ones(9, np.float16), "y_ptr": np.ones(9, np.float16),
                       "gamma_ptr": np.ones(9, np.float32), "beta_ptr": np.ones(9, np.float32),
                       "mean_ptr": np.ones(1, np.float32), "rstd_ptr": np.ones(1, np.float32),
                       "stride": 9, "columns": 0, "epsilon": EPSILON},
    }[name]  # fmt: skip
    with np.errstate(all="ignore"):  # no columns have no mean
        after = launched(drained(name, *((8,) * (1 + (name == "layer_norm")))), inputs, (1,))
    assert (after["y_ptr"] == 1).all()


def test_so_many_iterations_stand_in_a_step_and_halves_of_what_is_left_over() -> None:
    """Of eight, four and two iterations all loads stand before the first of them is used."""
    lines = drained("layer_norm", 8, 1).splitlines()
    blocks = {
        8: "    for base in range(0, done, 8):", 4: "    if done < done_2:",
        2: "    if done_2 < done_3:", 1: "    if done_3 < n:",
    }  # fmt: skip
    for many, block in blocks.items():
        inside = lines[lines.index(block) + 1 :]
        end = next(n for n, line in enumerate(inside) if not line.startswith("     "))
        used = next(n for n, line in enumerate(inside) if ".to(gl.float32)" in line)
        loads = [n for n, line in enumerate(inside[:end]) if "gl.load(" in line]
        assert len(loads) == many
        assert max(loads) < used < end


WRONG = {
    "four are left out": ("if done < done_2:", "if done > done_2:"),
    "two are left out": ("if done_2 < done_3:", "if done_2 > done_3:"),
    "the last one is left out": ("if done_3 < n:", "if done_3 > n:"),
    "four begin at the first": ("((done + ", "((0 + "),
    "two begin where four did": ("((done_2 + ", "((done + "),
    "the last one begins where two did": ("((done_3 + ", "((done_2 + "),
    "four are counted from the first on": ("done_2 = done +", "done_2 ="),
    "two are counted with the four": ("done_2 + (n - done_2)", "done_2 + (n - done)"),
    "eight are done once": ("range(0, done, 8)", "range(0, min(done, 8), 8)"),
    "four begin without sums": (
        " done_2:\n        sums__1 = sums",
        " done_2:\n        sums__1 = 0",
    ),
}
"""Errors in what is left over of a loop with eight iterations together."""


@pytest.mark.parametrize("error", WRONG)
def test_an_error_in_what_is_left_over_shows(error: str) -> None:
    source = drained("layer_norm", 8, 1)
    assert WRONG[error][0] in source
    wrong = source.replace(*WRONG[error])

    def shows(trips: int) -> bool:
        try:
            norm(wrong, 1024 * trips)
        except (AssertionError, EmulationError):
            return True
        return False

    assert any(map(shows, TRIPS))


@pytest.mark.parametrize("trips", [1, 2, 3, 4, 7, 8, 12, 15])
def test_trips_that_are_known_choose_what_is_written(tmp_path: Path, trips: int) -> None:
    """Triton fails on a branch that is never taken."""
    file = shipped("triton/layer_norm")
    known = f"%c1024_i32 = arith.constant 1024 : i32\n%known = arith.constant {1024 * trips} : i32"
    text = file.read_text().replace("%c1024_i32 = arith.constant 1024 : i32", known)
    text = text.replace("%c0_i32 to %columns step", "%c0_i32 to %known step")
    (tmp_path / file.name).write_text(text)
    (tmp_path / "layer_norm.json").write_text(file.with_suffix(".json").read_text())
    source = Emitter(tmp_path / file.name).drained((8, 4)).source
    norm(source, 1024 * trips)
    if trips < 8:
        assert ", 8):" not in source
    if trips % 2 == 0:
        assert " < n:" not in source


def late(folder: Path, steps: int) -> Path:
    """Layer norm whose sums are of what was loaded one iteration before, or two."""
    file = shipped("triton/layer_norm")
    text = file.read_text()
    for old, new in {
        "%squares:2 =": "%squares:4 =",
        "%squares_11 = %cst_0) ->": "%squares_11 = %cst_0, %late1 = %cst_0, %late2 = %cst_0) ->",
        "(tensor<1024xf32>, tensor<1024xf32>)  :": f"({', '.join(['tensor<1024xf32>'] * 4)})  :",
        "arith.addf %sums, %x_17": f"arith.addf %sums, %late{steps}",
        "%squares_20 : tensor<1024xf32>, tensor<1024xf32>": "%squares_20, %x_17, %late1 : "
        + ", ".join(["tensor<1024xf32>"] * 4),
    }.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / file.name).write_text(text)
    (folder / "layer_norm.json").write_text(file.with_suffix(".json").read_text())
    return folder / file.name


def test_what_is_carried_goes_from_group_to_group(tmp_path: Path) -> None:
    source = Emitter(late(tmp_path, 1)).drained((8, 1)).source
    for trips in TRIPS:
        columns = 1024 * trips
        x = np.random.default_rng(trips).standard_normal((1, columns)).astype(np.float16)
        inputs = {
            "x_ptr": x, "y_ptr": np.zeros_like(x), "gamma_ptr": np.ones(columns, np.float32),
            "beta_ptr": np.ones(columns, np.float32), "mean_ptr": np.ones(1, np.float32),
            "rstd_ptr": np.ones(1, np.float32), "stride": columns, "columns": columns,
            "epsilon": EPSILON,
        }  # fmt: skip
        wanted = x.astype(np.float64)[:, :-1024].sum(1) / columns
        near(launched(source, inputs, (1,)), {"mean_ptr": wanted}, 1e-5)


def test_what_is_carried_over_two_iterations_is_not_drained(tmp_path: Path) -> None:
    with pytest.raises(EmitError, match="reads what iterations before the last left"):
        Emitter(late(tmp_path, 2)).drained((8, 1))


def test_trips_that_are_known_have_the_groups_that_they_have() -> None:
    """Whatever is left over, one group of each smaller size is enough."""
    for most in range(1, 33):
        every = sizes(most, None)
        assert every[0] == most
        assert every[-1] == 1
        for trips in range(100):
            known = sizes(most, trips)
            left = trips
            for many in known:
                assert left >= many
                left -= left // most * most if many == most else many
            assert left == 0
            assert len(set(known)) == len(known)
            assert set(known) <= set(every)


@pytest.mark.parametrize("trips", [1, 4, 5, 8, 15])
def test_clocks_are_around_all_groups(trips: int) -> None:
    made = Emitter(shipped("triton/softmax"), tracing="loops").drained((8,))
    trace = np.zeros(size("loops"), np.int64)
    x = np.ones((trips, 9), np.float32)
    inputs = {
        "y_ptr": x, "x_ptr": x, "x_stride": 9, "y_stride": 9, "rows": trips, "columns": 9,
        "trace": trace,
    }  # fmt: skip
    begin, end, _, _, cycles, steps = launched(made.source, inputs, (1,))["trace"][:6]
    assert 0 < cycles < end - begin
    assert steps == trips


def test_one_iteration_together_is_the_loop_as_it_stands() -> None:
    source = drained("layer_norm", 1, 1)
    assert "done" not in source
    norm(source, 3000)


def test_products_and_rings_are_not_drained() -> None:
    with pytest.raises(EmitError, match="it is not drained"):
        Emitter(shipped("triton/matmul_pointers"), mode="unspecialized").drained((4,))
    with pytest.raises(EmitError, match="it is not drained"):
        Emitter(shipped("cutile/layer_norm")).drained((3, 3, 3))
