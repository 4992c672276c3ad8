"""Blocks that share an SM: their parts of it, and who is taken at which launch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_emit import GEMM, gemm

from gluon_cases import shipped
from stretto.api.emitting import emit
from stretto.compile.candidates import Emitter
from stretto.compile.emitted import EmitMode, EmittedKernel
from stretto.compile.occupancy import Launch, candidates, settled
from stretto.compile.sources import kernels_of
from stretto.errors import StrettoError
from stretto.kernel import Kernel
from stretto.machine import Machine, load_machine
from stretto.machine.sharing import groups, registers_left, shared, thread_registers
from stretto.ops.spaces import REGISTERS, STAGING
from stretto.prediction.kernel_time import predict_kernel
from stretto.program.instructions import Pipelined, Store
from stretto.program.walk import walk

POINTERS = "triton/matmul_pointers"
SMS, FILE, SM = 132, 65536, 233472
SMALL = {"128x64": "64x64", "64x128": "64x64", "128x128": "64x64", "128x1x": "64x1x",
         "1x128x": "1x64x", "tensor<128x": "tensor<64x", "end = 128": "end = 64",
         "%c128_i32 = arith.constant 128": "%c128_i32 = arith.constant 64",
         "%c127_i32 = arith.constant 127": "%c127_i32 = arith.constant 63"}  # fmt: skip
"""Tiles of 128 x 128 as tiles of 64 x 64, of which many blocks fit on an SM."""


def h200() -> Machine:
    return load_machine("h200")


def small(folder: Path) -> Kernel:
    """A product of tiles of 64 x 64 by pointers."""
    text = Path(shipped(POINTERS)).read_text(encoding="utf-8")
    for old, new in SMALL.items():
        text = text.replace(old, new)
    file = folder / "small.ttir"
    file.write_text(text, encoding="utf-8")
    (kernel,) = kernels_of(str(file), text)
    return kernel


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 8])
def test_parts_of_an_sm_add_up_to_it(blocks: int) -> None:
    machine = shared(h200(), blocks)
    memory, registers = machine.budget(STAGING), machine.budget(REGISTERS)
    assert memory is not None
    assert registers is not None
    assert memory.bytes is not None
    assert registers.bytes is not None
    assert blocks * (memory.bytes + 1024) <= SM < (blocks + 1) * (memory.bytes + 1025)
    assert blocks * registers.bytes <= 4 * FILE
    assert shared(machine, blocks) is machine


@pytest.mark.parametrize("blocks", [2, 3, 4])
@pytest.mark.parametrize("computing", [4, 8])
def test_registers_of_all_agents_fit_the_file(blocks: int, computing: int) -> None:
    machine = shared(h200(), blocks)
    left = registers_left(machine, computing, [(1, 24)])
    warps = groups([computing, 1])
    each = thread_registers(machine, warps)
    assert each is not None
    taken = computing * left + (warps - computing) * 24
    assert taken <= each * warps < taken + 8 * computing or left == 255
    assert blocks * each * warps * 32 <= FILE


def test_more_blocks_than_registers_do_for_are_refused() -> None:
    with pytest.raises(StrettoError, match="32 blocks an SM leave -16 registers"):
        registers_left(shared(h200(), 32), 8, [(1, 24)])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[EmittedKernel, list[EmittedKernel]]:
    """The kernel for any launch, and those of which several blocks share an SM."""
    kernel = small(tmp_path_factory.mktemp("made"))
    emitter = Emitter(kernel, h200())
    first = min(emitter.candidates(), key=lambda one: one.order)
    return first, list(candidates(kernel, h200(), launch(64, 8 * SMS)))


def launch(depth: int, blocks: int) -> Launch:
    """So many blocks in a row, each over a depth of the product."""
    given = {"M": 64, "N": 64 * blocks, "K": depth}
    given |= {"stride_am": depth, "stride_bk": 64 * blocks, "stride_cm": 64 * blocks}
    return Launch((blocks,), given)


def test_schedules_and_rings_keep_to_their_part(
    made: tuple[EmittedKernel, list[EmittedKernel]],
) -> None:
    _, others = made
    assert {one.mode for one in others} == {"specialized", "unspecialized"}
    for one in others:
        cap = one.emitted.maxnreg
        threads = groups([agent.warps for agent in one.emitted.program.agents]) * 32
        blocks = 1 if cap is None else FILE // (cap * threads)
        assert blocks * (one.emitted.smem + 1024) <= SM
        assert all(depth == 1 for depth in one.emitted.rings.values())  # there is one trip
    assert {one.emitted.maxnreg for one in others} == {None, 64, 80, 128}


def test_the_prediction_knows_how_many_blocks_share_an_sm(
    made: tuple[EmittedKernel, list[EmittedKernel]],
) -> None:
    first, others = made
    two = next(one for one in others if one.emitted.maxnreg == 128)
    many, few = launch(64, 8 * SMS), launch(64, SMS)
    assert predict_kernel(first.subject, h200(), many.grid, many.given).resident == 1
    seen = predict_kernel(two.subject, h200(), many.grid, many.given)
    assert seen.resident > 1
    assert predict_kernel(two.subject, h200(), few.grid, few.given).resident == 1
    alone = predict_kernel(first.subject, h200(), many.grid, many.given)
    assert seen.seconds < 0.8 * alone.seconds


def test_the_choice_follows_grid_and_trips(
    made: tuple[EmittedKernel, list[EmittedKernel]],
) -> None:
    first, others = made
    taken = settled(first, others, h200(), launch(64, 8 * SMS))
    assert taken.source != first.source
    assert "blocks an SM" in taken.notes[-1]
    assert "1 block " in taken.notes[-1]
    # One block for each SM: nobody shares it, and the loop is long.
    agents = [one for one in others if one.mode == "specialized"]
    assert settled(first, agents, h200(), launch(64 * 256, SMS)).source == first.source


def test_what_is_not_known_is_not_compared(
    made: tuple[EmittedKernel, list[EmittedKernel]],
) -> None:
    first, others = made
    taken = settled(first, others, h200(), replace(launch(64, SMS), given={}))
    assert taken.source == first.source
    assert "were not compared: how often a loop" in taken.notes[-1]


def test_emit_takes_the_kernel_of_a_launch(tmp_path: Path) -> None:
    kernel, at = small(tmp_path), launch(64, 8 * SMS)
    taken = emit(kernel, "h200", grid=at.grid, arguments=at.given)
    assert taken.emitted.maxnreg is None or taken.emitted.maxnreg < 255
    assert "blocks an SM" in taken.notes[-1]


@pytest.mark.parametrize("trips", [1, 2, 3])
def test_a_loop_of_few_known_trips_is_written_out(trips: int, tmp_path: Path) -> None:
    text = Path(shipped(GEMM)).read_text(encoding="utf-8")
    head, begin, body = text.partition("attributes {noinline = false} {")
    constant = f"\n    %known = arith.constant {64 * trips} : i32"
    file = tmp_path / "short.ttir"
    body = body.replace("to %K step", "to %known step")
    file.write_text(head + begin + constant + body, encoding="utf-8")
    modes: tuple[EmitMode, ...] = ("unspecialized", "specialized")
    for mode in modes:
        one = Emitter(file, h200(), mode=mode).candidates(1, stages=(4,))[0]
        (agent, *_) = one.emitted.program.agents
        (loop,) = (i for i in walk(agent.body) if isinstance(i, Pipelined))
        if mode == "unspecialized":
            assert (one.analyses[0].stage_count or 0) > trips
            assert "for step in" not in one.source
            assert loop.first - loop.ahead >= trips
        gemm(one.source, trips)


@pytest.mark.parametrize("mode", ["specialized", "unspecialized"])
def test_narrow_elements_are_stored_by_rows(mode: str) -> None:
    emitter = Emitter(shipped(POINTERS), h200(), mode="unspecialized")
    one = emitter.candidates(stages=(3,))[0]
    if mode == "specialized":
        one = Emitter(shipped(POINTERS), h200()).candidates(2, stages=(3,))[0]
    stores = [i for a in one.emitted.program.agents for i in walk(a.body) if isinstance(i, Store)]
    named = {type(store.layout).__name__ for store in stores}
    assert named == ({"Rows"} if mode == "unspecialized" else {"Product"})
