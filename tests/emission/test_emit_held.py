"""Left factors that no step changes are held in registers, where there are enough."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest
from test_emit import attention

import gluon_emulator
from gluon_cases import shipped
from stretto.compile.candidates import Emitter
from stretto.kernel import Kernel
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Tile
from stretto.machine import Machine, load_machine

FORWARD = "triton/attention_forward_d128"
NEEDED = 64 // 2 + 128 // 2 + 64 // 4 + 128 // 4
"""Registers of a thread: a row's scores and sums, two threads of four each, and both left factors,
two numbers in a register."""


def h200(held: int) -> Machine:
    machine = load_machine("h200")
    first, *others = machine.products
    return replace(machine, products=(replace(first, held=held), *others))


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


# Left factors that were in registers anyway -------------------------------------------------------

LOADED = "%q_4 = tt.descriptor_load"
WIDENED = """
    %wide = arith.extf %q_loaded : tensor<128x64xbf16> to tensor<128x64xf32>
    %q_4 = arith.truncf %wide : tensor<128x64xf32> to tensor<128x64xbf16>
    %highest_5:3 = scf.for"""


@pytest.mark.parametrize("consumers", [1, 2])
def test_one_that_threads_computed_is_laid_out_once(tmp_path: Path, consumers: int) -> None:
    text = shipped("triton/attention_forward_d64").read_text()
    text = text.replace(LOADED, "%q_loaded = tt.descriptor_load")
    kernel = tmp_path / "kernel.ttir"
    kernel.write_text(text.replace("\n    %highest_5:3 = scf.for", WIDENED))
    source = Emitter(kernel, h200(0)).candidates(consumers, stages=(3,))[0].source
    laid_out = [line for line in source.splitlines() if "_factor = gl.convert_layout(" in line]
    assert [line.index(line.strip()) for line in laid_out] == [4] * consumers  # outside of any loop
    converted = [line for line in source.splitlines() if "convert_layout(q" in line]
    assert converted == laid_out
    for trips in range(5):
        attention(source, trips, 64, 64)


SQUARED = """
      %q_t = tt.trans %q_4 {order = array<i32: 1, 0>} : tensor<128x64xbf16> -> tensor<64x128xbf16>
      %squares = tt.dot %q_4, %q_t, %none, inputPrecision = tf32 : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      %sums = "tt.reduce"(%squares) <{axis = 1 : i32}> ({
      ^bb0(%x: f32, %y: f32):
        %z = arith.addf %x, %y : f32
        tt.reduce.return %z : f32
      }) : (tensor<128x128xf32>) -> tensor<128xf32>
      %nothing = arith.mulf %sums, %weight : tensor<128xf32>
      %weight_19 = arith.addf %weight_18, %nothing : tensor<128xf32>
      %weight_20 ="""  # noqa: E501


def test_products_of_two_widths_share_what_is_held(tmp_path: Path) -> None:
    """It is not handed over between threads, and stands in registers once."""
    text = shipped("triton/attention_forward_d64").read_text()
    none = "%none = arith.constant dense<0.000000e+00> : tensor<128x128xf32>\n    "
    text = text.replace("%c0_i32 = arith", f"{none}%c0_i32 = arith", 1)
    text = text.replace("%weight_19 =", "%weight_18 =").replace("\n      %weight_20 =", SQUARED)
    kernel = tmp_path / "kernel.ttir"
    kernel.write_text(text)
    source = Emitter(kernel, h200(10_000)).candidates(1, stages=(3,))[0].source
    (read,) = [line for line in source.splitlines() if "    q_read = " in line]
    assert ".load(gl.DotOperandLayout(0, mma_" in read
    (named,) = [line for line in source.splitlines() if "convert_layout(q_read" in line]
    assert named.startswith("    q_read_factor = ")  # before the loop, of the same registers
    for trips in range(4):
        attention(source, trips, 64, 64)


@pytest.mark.parametrize(("stages", "together"), [(1, False), (3, True)])
def test_what_is_held_is_named_by_a_wait_that_no_other_product_outlives(
    stages: int, together: bool
) -> None:
    """ptxas 12.8 would give its registers to the other product's factor, and not restore them."""
    one = Emitter(shipped("triton/attention_forward_d64"), h200(10_000))
    source = one.candidates(2, 2, stages=(stages,))[0].source
    lines = source[source.index("# kernel") :].splitlines()
    begin = next(n for n, line in enumerate(lines) if line.lstrip().startswith("for step"))
    deep = lines[begin].index("for") + 1
    body = list(takewhile(lambda line: line[:deep].isspace(), lines[begin + 1 :]))
    assert any("warpgroup_mma(q_0_read" in line for line in body)
    waits = [line.strip() for line in body if "warpgroup_mma_wait(" in line]
    named = [line for line in waits if "q_0_read" in line]
    assert not named if together else len(named) == 1
    for line in named:
        assert line.startswith("scores_2, q_0_read = warpgroup_mma_wait(0, deps=(scores_2, q_0_")


def steady(source: str, agent: str) -> list[str]:
    """Lines of the steady loop of an agent."""
    lines = source[source.index(f"def {agent}(") :].splitlines()
    lines = lines[next(n for n, line in enumerate(lines) if "# kernel" in line) :]
    begin = next(n for n, line in enumerate(lines) if line.lstrip().startswith("for step"))
    deep = lines[begin].index("for") + 1
    return [line.strip() for line in takewhile(lambda x: x[:deep].isspace(), lines[begin + 1 :])]


def named_by_waits(body: list[str], held: str) -> tuple[list[bool], list[bool]]:
    """For each wait of a product of what is held, in the second of two steps: whether the wait
    names it, and whether nothing else was in flight with that product."""
    flying: list[list[bool]] = []
    named: list[bool] = []
    alone: list[bool] = []
    for step in range(2):
        for line in body:
            if "= warpgroup_mma(" in line:
                for other in flying:
                    other[1] = False
                flying.append([f"warpgroup_mma({held}," in line, not flying])
            elif "= warpgroup_mma_wait(" in line:
                left = int(line.partition("warpgroup_mma_wait(")[2].partition(",")[0])
                done, flying = flying[: len(flying) - left], flying[len(flying) - left :]
                if step and any(one[0] for one in done):
                    named.append(held in line)
                    alone.append(len(done) == 1 and done[0][1])
    return named, alone


def test_what_is_held_is_named_where_its_product_runs_alone_and_only_there() -> None:
    seen: set[bool] = set()
    for depth in (1, 2):
        for one in Emitter(shipped("triton/attention_forward_d64")).candidates(1, depth):
            body = steady(one.source, "compute_agent")
            if any("_a = gl.convert_layout(" in line and "__1" in line for line in body):
                continue  # the other factor comes from the step before, and is in registers too
            named, alone = named_by_waits(body, "q_read")
            assert named == alone
            seen |= set(alone)
    assert seen == {True, False}
