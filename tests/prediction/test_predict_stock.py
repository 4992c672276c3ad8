"""Triton's own kernels by their machine code, and the gate that is made of it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from test_predict_code import instruction, written

import stretto
from stretto.api.emitting import emit
from stretto.api.predicting import beside_stock, predict
from stretto.cli.main import main
from stretto.compile.emitted import EmittedKernel
from stretto.emission import Emitted
from stretto.errors import StrettoError
from stretto.launching.compiling import Compiled
from stretto.launching.gate import MARGIN, why_slower
from stretto.machine import load_machine
from stretto.machine.machine import Budget
from stretto.prediction.kernel_time import predict_kernel, predict_stock
from stretto.prediction.prediction import Prediction
from stretto.prediction.stock import Stock
from stretto.prediction.timings import timings_of

H200 = load_machine("h200")
EXAMPLES = Path(__file__).parents[2] / "examples/triton"
GRID, SIZES = (32, 32), {"M": 4096, "N": 4096, "K": 4096}


@cache
def product() -> EmittedKernel:
    return emit(EXAMPLES / "matmul_descriptors.ttir", "h200", consumers=2)


def listing(products: int, pause: int = 1, loops: int = 1) -> str:
    """Loops whose warps multiply 64 × 128 × 16 so often, pause, and wait for the products."""
    code, labels = list[object](), dict[str, int]()
    for number in range(loops):
        labels[f".L_x_{number}"] = len(code)
        each = "HGMMA.64x128x16.F32"
        code += [instruction(each, "R24, gdesc[UR8], R24") for _ in range(products - 1)]
        code += [instruction(each, "R24, gdesc[UR8], R24, gsb0")]
        code += [instruction("NOP", stall=15) for _ in range(pause)]
        code += [instruction("WARPGROUP.DEPBAR.LE", "gsb0, 0x0")]
        code += [instruction("BRA", f"`(.L_x_{number})", guarded=True)]
    return written(code, labels)  # pyright: ignore[reportArgumentType]


def stock(text: str, **more: int) -> Stock:
    return replace(Stock(text, 8, 3, 128, 98_304), **more)


def predicted(one: Stock, grid: tuple[int, ...] = GRID) -> Prediction:
    return predict_stock(product().subject, one, H200, grid, SIZES)


def test_two_groups_of_warps_take_turns_at_the_tensor_core() -> None:
    """Each multiplies 64 × 128 × 64 in 256 cycles; a block of eight warps has two such groups."""
    (loop,) = predicted(stock(listing(4)), (8, 8)).loops
    assert loop.coded
    assert 512 <= loop.cycles < 580


def test_a_second_block_on_an_sm_fills_the_pauses_of_the_first() -> None:
    slow = stock(listing(4, pause=40))
    alone = predicted(replace(slow, smem=180_000))
    both = predicted(slow)
    assert (alone.resident, both.resident) == (1, 2)
    assert both.loops[0].cycles < 2 * alone.loops[0].cycles
    assert both.seconds < alone.seconds


def test_few_stages_wait_for_their_copies() -> None:
    paces = [predicted(stock(listing(4), stages=n), (8, 8)).loops[0].cycles for n in (1, 2, 3, 4)]
    assert paces == sorted(paces, reverse=True)
    assert paces[0] > paces[3]


@pytest.mark.parametrize(
    ("more", "blocks"),
    [({}, 2), ({"registers": 129}, 1), ({"smem": 120_000}, 1), ({"warps": 4, "smem": 40_000}, 4)],
)
def test_an_sm_has_as_many_blocks_as_registers_and_memory_allow(
    more: dict[str, int], blocks: int
) -> None:
    one = stock(listing(4), **more)
    assert one.residents(timings_of(H200), Budget("smem", 232_448)) == blocks


def test_other_loops_than_those_of_the_source_are_not_recognized() -> None:
    for text in ("", listing(4, loops=2)):
        with pytest.raises(StrettoError, match="Triton makes of `matmul_descriptors` are not"):
            predicted(stock(text))


# The gate ---------------------------------------------------------------------------------


def test_what_is_predicted_to_be_slower_by_far_is_not_tried() -> None:
    ours = predict_kernel(product().subject, H200, GRID, SIZES).seconds
    half = stock(listing(2))  # as if Triton had to multiply half as much
    assert ours > MARGIN * predicted(half).seconds
    why = why_slower(product(), half, H200, GRID, {**SIZES, "a_ptr": object()})
    assert "µs, Triton's own kernel" in why


def test_what_may_be_faster_or_cannot_be_predicted_is_tried() -> None:
    alike = stock(listing(4))
    assert why_slower(product(), alike, H200, GRID, SIZES) == ""
    assert why_slower(product(), stock(listing(4, pause=60)), H200, GRID, SIZES) == ""
    assert why_slower(product(), stock(""), H200, GRID, SIZES) == ""
    assert why_slower(product(), stock(listing(2), spilled=8), H200, GRID, SIZES) == ""
    assert why_slower(product(), stock(listing(2)), H200, GRID, {}) == ""


# What is told -----------------------------------------------------------------------------


def test_a_prediction_tells_of_the_kernel_as_triton_compiles_it() -> None:
    text = EXAMPLES / "matmul_descriptors.ttir"
    found = predict(text, "h200", grid=GRID, arguments=SIZES, consumers=2)
    beside = beside_stock(found, stock(listing(4), spilled=8), arguments=SIZES)
    assert beside.stock is not None
    told = "\n".join(beside.to_text())
    assert "as Triton compiles it: " in told
    assert "2 blocks at a time on an SM" in told
    assert "it spills 8 bytes of each thread" in told
    document = beside.to_json()
    (one,) = document["predictions"]
    assert one["stock"]["seconds"] == beside.stock.seconds
    schema = Path(stretto.__file__).parent / "report/schemas/prediction.schema.json"
    jsonschema.validate(document, json.loads(schema.read_text("utf-8")))
    assert beside_stock(found, stock(""), arguments=SIZES) is found


def test_the_command_compiles_what_triton_would(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []

    def compiled(text: str, warps: int, stages: int) -> Stock:
        assert "tt.func" in text
        asked.append((warps, stages))
        return stock(listing(4))

    where = "stretto.launching.compiling"

    def clean(emitted: Emitted) -> Compiled:
        assert emitted.source
        return Compiled(0, (), 0, 168)

    monkeypatch.setattr(f"{where}.can_compile", lambda: True)
    monkeypatch.setattr(f"{where}.compile_emitted", clean)
    monkeypatch.setattr(f"{where}.compile_stock", compiled)
    words = ["predict", str(EXAMPLES / "matmul_descriptors.ttir"), "--grid", "32,32", "--assembled"]
    assert main([*words, "--consumers=2", *(f"--argument={n}={v}" for n, v in SIZES.items())]) == 0
    assert "as Triton compiles it" in capsys.readouterr().out
    assert asked == [(4, 3)]
