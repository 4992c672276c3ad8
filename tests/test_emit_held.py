"""Left factors that no step changes are held in registers, where there are enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gluon_emulator
from gluon_cases import shipped
from stretto.api.emitting import Emitter
from stretto.kernel import Kernel
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Tile
from stretto.machine import Machine, load_machine
from test_emit import attention

FORWARD = "triton/attention_forward_d128"
NEEDED = 64 // 2 + 128 // 2 + 64 // 4 + 128 // 4
"""Registers of a thread: a row's scores and sums, two threads of four each, and both left factors,
two numbers in a register."""


def h200(held: int) -> Machine:
    machine = load_machine("h200")
    (product,) = machine.products
    return replace(machine, products=(replace(product, held=held),))


def lowered(name: str, held: int, consumers: int = 2) -> Kernel:
    return Emitter(shipped(name), h200(held)).lowered(consumers).kernel


def left_factors(kernel: Kernel) -> list[type]:
    """Of products that add to nothing: whether their left factor is a buffer or a tile."""
    return [
        type(op.operands[0].type)
        for op in kernel.walk()
        if kind_of(op) == "async.wgmma" and not op.integers("groups")[2]
    ]


def reads(kernel: Kernel) -> list[str]:
    """The agents that read a tile out of shared memory, each outside of any loop."""
    return [op.text("agent") for op in kernel.body.operations if kind_of(op) == "async.smem_read"]


@pytest.mark.parametrize("consumers", [1, 2])
def test_a_factor_is_held_exactly_where_registers_do(consumers: int) -> None:
    kernel = lowered(FORWARD, NEEDED, consumers)
    assert left_factors(kernel) == [Tile] * consumers
    assert reads(kernel) == (["compute", "compute.1"] if consumers == 2 else [""])
    kernel = lowered(FORWARD, NEEDED - 1, consumers)
    assert left_factors(kernel) == [Buffer] * consumers
    assert reads(kernel) == []


def test_a_factor_that_each_step_loads_is_not_held() -> None:
    for op in lowered("triton/matmul_descriptors", 10_000).walk():
        assert kind_of(op) != "async.smem_read"


def test_two_loops_share_what_is_held() -> None:
    kernel = lowered("triton/attention_forward_d128_causal", 10_000)
    assert left_factors(kernel) == [Tile] * 4
    assert reads(kernel) == ["compute", "compute.1"]


def emitted(held: int) -> str:
    made = Emitter(shipped(FORWARD), h200(held)).candidates(2, stages=(3,))
    return made[0].source


def test_it_is_read_once_as_the_product_takes_it() -> None:
    source = emitted(NEEDED)
    assert source.count(".load(gl.DotOperandLayout(0, mma_64, 2))") == 2
    assert "convert_layout(q_0" not in source
    for trips in range(5):
        attention(source, trips, 64, 128)


def test_one_that_is_read_too_early_is_caught() -> None:
    source = emitted(NEEDED)
    wait = "    mbarrier.wait(q_0_tile_full, 0)\n"
    assert wait in source
    with pytest.raises(gluon_emulator.EmulationError):
        attention(source.replace(wait, ""), 3, 64, 128)
