"""The shipped examples: made by the code beside them, and limited by what they are named for."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import stretto
from documents import parse_loop
from naive_bounds import paths
from stretto import Loop, prepare
from stretto.loop.json import dump_loop
from stretto.lower_bounds import compute_bounds

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def load(name: str) -> Loop:
    path = EXAMPLES / f"{name}.json"
    return parse_loop(path.name, path.read_text(encoding="utf-8"))


def test_all_of_them_ship() -> None:
    assert set(NAMES) == {
        "attention_backward",
        "attention_forward",
        "four_op",
        "gemm",
        "layernorm",
        "over_smem",
        "pool_bound",
        "recurrence_bound",
    }


@pytest.mark.parametrize("name", NAMES)
def test_json_is_what_the_builder_code_makes(name: str) -> None:
    made = runpy.run_path(str(EXAMPLES / f"{name}.py"))["make"]()
    assert dump_loop(made) == (EXAMPLES / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "mii", "limiter", "limit"),
    [
        # 8 + 7 cycles of the shared-memory write transport.
        ("four_op", 15, "resource", "tp_smem_wr"),
        # 128 x 128 x 64 multiply-adds, 4,096 a cycle.
        ("gemm", 256, "resource", "TC"),
        # Load, rescale, store and add to the output: 532 + 138 + 96 + 559.
        ("attention_forward", 1325, "recurrence", ""),
        ("attention_backward", 946, "resource", "CUDA"),
        ("layernorm", 1217, "resource", "CUDA"),
        # Multiply, add, clamp: 4 + 4 + 2.
        ("recurrence_bound", 10, "recurrence", ""),
        # Five times both bank pairs for 4 cycles.
        ("pool_bound", 20, "fine", "register_bank"),
        # 256 x 256 x 128 multiply-adds, 4,096 a cycle.
        ("over_smem", 2048, "resource", "TC"),
    ],
)
def test_bounds(name: str, mii: int, limiter: str, limit: str) -> None:
    ready = prepare(load(name))
    bounds = compute_bounds(ready.loop, ready.machine)
    assert (bounds.mii, bounds.limiter, bounds.witness.limit) == (mii, limiter, limit)


def test_the_four_op_witness() -> None:
    ready = prepare(load("four_op"))
    witness = compute_bounds(ready.loop, ready.machine).resource
    assert (witness.slot_id, witness.total, witness.capacity) == (16, 15, 1)
    assert [(part.ops, part.amount) for part in witness.parts] == [(("load",), 8), (("write",), 7)]


@pytest.mark.parametrize(
    ("name", "ops", "products"), [("attention_forward", 25, 2), ("attention_backward", 35, 5)]
)
def test_attention_is_whole(name: str, ops: int, products: int) -> None:
    loop = load(name)
    assert len(loop.ops) >= ops
    assert sum(op.kind == "async.tcgen05_mma" for op in loop.ops) == products


def test_attention_forward_carries_maximum_sum_and_accumulator() -> None:
    loop = prepare(load("attention_forward")).loop
    carried = {(d.via, d.dst) for d in loop.dependences if d.distance == 1}
    assert {("m", "new_max"), ("l", "rescale_l"), ("o", "load_o")} <= carried


def test_over_smem_cannot_fit_at_its_mii() -> None:
    """No schedule at the MII fits: each ring must hold the tile from load to end of product."""
    ready = prepare(load("over_smem"))
    ii = compute_bounds(ready.loop, ready.machine).mii
    between, needed = paths(ready.loop, ii), 0
    for tile, loader in (("a_tile", "load_a"), ("b_tile", "load_b")):
        life = between[loader, "mma"] + ready.loop.op("mma").completion
        needed += ready.loop.storage(tile).bytes * -(-life // ii)
    budget = ready.machine.budget("smem")
    assert budget is not None
    assert budget.bytes is not None
    assert needed > budget.bytes


@pytest.mark.parametrize("name", ["gemm", "attention_forward", "layernorm"])
def test_real_kernels_also_stand_on_blackwell(name: str) -> None:
    ready = prepare(load(name), "blackwell")
    assert compute_bounds(ready.loop, ready.machine).mii >= 8


# Schedules --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ii", "method"),
    [
        ("four_op", 15, "bound"),
        ("gemm", 256, "bound"),
        ("attention_forward", 1325, "bound"),
        ("attention_backward", 946, "bound"),
        ("layernorm", 1217, "bound"),
        ("recurrence_bound", 10, "bound"),
        ("pool_bound", 20, "bound"),
        # One tile kept in a single copy: from the issue of its load to the end of the product.
        ("over_smem", 844 + 2048, "memory"),
    ],
)
def test_schedules_are_optimal(name: str, ii: int, method: str) -> None:
    analysis = stretto.schedule(load(name))
    assert analysis.ii == ii
    assert analysis.proof is not None
    assert (analysis.proof.optimal, analysis.proof.method) == (True, method)


def test_the_four_op_schedule() -> None:
    analysis = stretto.schedule(load("four_op"))
    assert analysis.starts == {"load": 0, "write": 8, "wgmma": 0, "read": 8}
    assert (analysis.stage_count, analysis.pipeline_depth) == (1, 2)


def test_over_smem_says_what_memory_forbids() -> None:
    analysis = stretto.schedule(load("over_smem"))
    (refused,) = analysis.refused
    assert (refused.ii, refused.through, refused.proved) == (2048, 2891, True)
    assert "262,144 bytes of smem; the budget is 232,448" in refused.reason
