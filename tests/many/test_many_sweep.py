"""`stretto sweep`: every configuration, the ones that none beats, the one that is fastest."""

from __future__ import annotations

import csv
import json
import random
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import stretto
from stretto import Loop, StrettoError
from stretto.cli.main import main
from stretto.many.grids import axes_of, parse_axis, parse_values
from stretto.many.sweep import measured
from stretto.report.sweep import SweepReport, SweepRow, front_of

EXAMPLES = Path(__file__).parents[2] / "examples"
ATTENTION = f"{EXAMPLES / 'attention_forward.py'}:make"
GEMM = str(EXAMPLES / "gemm.json")


# Grids ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("64", (64,)),
        ("1,2,4,2", (1, 2, 4)),
        ("2..5", (2, 3, 4, 5)),
        ("64..256..64", (64, 128, 192, 256)),
        ("16..128*2", (16, 32, 64, 128)),
        ("1, 8..10", (1, 8, 9, 10)),
        ("true,false", (True, False)),
        ("fp16,0.5", ("fp16", 0.5)),
        ("nan,inf", ("nan", "inf")),
    ],
)
def test_values_are_lists_and_ranges(text: str, values: tuple[object, ...]) -> None:
    found = parse_values(text)
    assert found == values
    assert [type(one) for one in found] == [type(one) for one in values]


@pytest.mark.parametrize(
    "text", ["", "1,,2", "5..2", "2..9*1", "0..9*2", "1..9..0", "0..9999999", "1..10000000000"]
)
def test_values_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(StrettoError):
        parse_values(text)


@pytest.mark.parametrize("text", ["keys", "=1", "keys=", ""])
def test_an_axis_has_a_name_and_values(text: str) -> None:
    with pytest.raises(StrettoError, match="is no axis"):
        parse_axis(text)


def test_a_grid_is_every_combination_once() -> None:
    grid = axes_of({"a": (1, 2)}, {"slots.x.capacity": (1,)}, {"*": (2, 3)}, (4,), (1, 2))
    found = [one.values for one in grid]
    assert len(grid) == len(found) == 8
    assert len({tuple(one.items()) for one in found}) == 8
    assert found[0] == {
        "a": 1,
        "slots.x.capacity": 1,
        "depth(*)": 2,
        "max_stages": 4,
        "consumers": 1,
    }


def test_a_grid_is_no_larger_than_can_be_kept() -> None:
    with pytest.raises(StrettoError, match=r"has 10,000,000 configurations; at most 1,000,000"):
        axes_of({name: tuple(range(10)) for name in "abcdefg"}, {}, {}, (), ())


# The front --------------------------------------------------------------------------------


def _row(number: int, *figures: int, spills: bool = False) -> SweepRow:
    ii, stages, smem, registers = figures
    return SweepRow(
        number,
        {"n": number},
        True,
        ii=ii,
        stages=stages,
        smem=smem,
        registers=registers,
        cycles=ii,
        spills=spills,
    )


def test_the_front_is_what_none_beats() -> None:
    rng = random.Random(7)
    rows = [_row(i, *(rng.randint(1, 6) for _ in range(4))) for i in range(300)]
    names = ("ii", "stages", "smem", "registers")

    def beaten(row: SweepRow) -> bool:
        mine = [row.figure(name) for name in names]
        others = [[other.figure(name) for name in names] for other in rows]
        return any(
            other != mine and all(a <= b for a, b in zip(other, mine, strict=True))
            for other in others
        )

    front = front_of(rows, names)
    kept = {tuple(row.figure(name) for name in names) for row in front}
    assert kept == {tuple(r.figure(n) for n in names) for r in rows if not beaten(r)}
    assert len(kept) == len(front)


def test_what_spills_is_of_no_front_unless_all_do() -> None:
    fast, fits = _row(0, 1, 1, 1, 1, spills=True), _row(1, 2, 2, 2, 2)
    report = SweepReport("s", (fast, fits))
    assert report.front == [fits]
    assert report.best == fits
    assert SweepReport("s", (fast,)).best == fast


# Sweeps -----------------------------------------------------------------------------------


def _valid(text: str) -> Any:
    document = json.loads(text)
    folder = resources.files("stretto.report").joinpath("schemas")
    schema = json.loads(folder.joinpath("sweep.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema)
    return document


def test_a_function_is_swept_over_tiles_machine_rings_and_stages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {end: tmp_path / f"out.{end}" for end in ("html", "svg", "csv")}
    arguments = ["sweep", "--function", ATTENTION, "--axis", "keys=32,64", "--axis", "rows=128"]
    arguments += ["--set", "slots.CUDA.capacity=1,2", "--ring", "k_tile=1,2"]
    arguments += ["--max-stages", "3..4", "--trips", "ceil(8192 / keys)", "--no-cache", "--json"]
    arguments += [part for end, file in files.items() for part in (f"--{end}", str(file))]
    assert main(arguments) == 0
    document = _valid(capsys.readouterr().out)
    rows = document["configurations"]
    assert len(rows) == 16
    for row in rows:
        assert row["success"], row["error"]
        assert row["stages"] <= row["values"]["max_stages"]
        assert row["trips"] == 8192 // row["values"]["keys"]
        assert row["block_cycles"] > (row["trips"] - 1) * row["ii"]
    # More of a slot, of a ring or of stages never costs cycles at the bound.
    by = {tuple(row["values"].values()): row for row in rows}
    for (keys, tall, cuda, ring, most), row in by.items():
        if cuda == 1:
            assert by[keys, tall, 2, ring, most]["mii"] <= row["mii"]
    cycles = [row["cycles"] for row in rows if not row["spills"]]
    assert rows[document["best"]]["cycles"] == min(cycles)
    assert document["figures"] == ["cycles", "stages", "smem", "registers"]
    page, picture = (files[end].read_text(encoding="utf-8") for end in ("html", "svg"))
    assert picture.count("<circle") >= 16
    assert page.count("<svg") == 4
    assert "http" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    with files["csv"].open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [int(row["ii"]) for row in table] == [row["ii"] for row in rows]
    assert {int(r["number"]) for r in table if r["front"] == "True"} == set(document["front"])


def test_the_figures_are_those_of_the_schedule_alone() -> None:
    found = stretto.sweep(ATTENTION, {"keys": (64,)}, cache=False, trips=100, grid=264, sms=132)
    (row,) = found.rows
    loop = stretto.read(EXAMPLES / "attention_forward.json")[0]
    alone = stretto.schedule(loop)
    assert (row.ii, row.stages) == (alone.ii, alone.stage_count)
    assert alone.pressure is not None
    assert row.registers == alone.pressure.peak
    run = stretto.simulate(loop, alone, iterations=100)
    assert alone.ii is not None
    assert row.block_cycles == 100 * alone.ii + run.epilogue_cycles
    assert row.cycles == 2 * row.figure("block_cycles")  # 264 blocks, 132 at once


def test_text_shows_the_fastest_the_front_and_a_plot(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", GEMM, "--set", "slots.TC.capacity=1,2", "--no-cache"]) == 0
    told = capsys.readouterr().out
    assert "gemm.json: 2 configurations in" in told
    assert "predicted fastest: slots.TC.capacity=2" in told
    assert "II against bytes of shared memory: II up, smem across" in told
    assert all(len(line) <= 100 for line in told.splitlines())


def test_a_configuration_that_cannot_be_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sweep", GEMM, "--set", "budgets.smem.bytes=1000,100000", "--no-cache"]
    assert main(arguments) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "2 configurations in" in told
    assert "1 scheduled" in told
    assert "1 × " in told
    assert "smem holds 1,000 bytes" in told


def test_nothing_scheduled_is_exit_code_1() -> None:
    assert main(["sweep", GEMM, "--set", "budgets.smem.bytes=1000", "--no-cache"]) == 1


def test_loops_and_functions_of_python_are_swept_here() -> None:
    loop = stretto.read(GEMM)[0]
    found = stretto.sweep(loop, settings={"slots.TC.capacity": (1, 2)}, cache=False)
    assert [row.ii for row in found.rows] == [256, 192]

    def make(depth: int) -> Loop:
        assert depth != 2, "two is refused"
        return loop

    found = stretto.sweep(make, {"depth": (1, 2)}, cache=False)
    assert [row.success for row in found.rows] == [True, False]
    assert "failed: AssertionError: two is refused" in found.rows[1].error


def test_a_kernel_is_swept_over_consumers() -> None:
    kernel = EXAMPLES / "triton" / "matmul_descriptors.ttir"
    found = stretto.sweep(kernel, machine="h200", consumers=(1, 2), cache=False)
    assert [row.success for row in found.rows] == [True, True]
    assert [row.values for row in found.rows] == [{"consumers": 1}, {"consumers": 2}]
    assert found.rows[0].smem != found.rows[1].smem  # halves of a tile have rings of their own


def test_a_kernel_whose_launch_is_known_is_predicted_as_it_is_emitted() -> None:
    kernel = EXAMPLES / "triton" / "matmul_descriptors.ttir"
    launched = {"M": 1024, "N": 1024, "K": 4096}
    found = stretto.sweep(kernel, consumers=(1, 2), grid=(8, 8), launched=launched, cache=False)
    assert [row.error for row in found.rows] == ["", ""]
    for row in found.rows:
        count = row.values["consumers"]
        assert isinstance(count, int)
        asked = stretto.predict(kernel, grid=(8, 8), arguments=launched, consumers=count)
        assert row.cycles == round(asked.prediction.cycles)
    loop = EXAMPLES / "gemm.json"
    (row,) = stretto.sweep(loop, cache=False, launched={"length": 4096}).rows
    assert row.error.endswith("what is launched is a kernel; this is a loop")


def test_sweep_and_predict_say_one_number_of_one_grid(capsys: pytest.CaptureFixture[str]) -> None:
    """A grid is the same in both: 32 x 64 blocks are not 2,048 in a row, by what they share."""
    kernel = str(EXAMPLES / "triton" / "matmul_descriptors.ttir")
    sizes = [f"--argument={name}=4096" for name in "MNK"]
    cycles: dict[str, float] = {}
    for grid in ("32,32", "1024"):
        words = [kernel, "--grid", grid, *sizes, "--json"]
        assert main(["sweep", *words, "--consumers", "2", "--ring", "*=3", "--no-cache"]) == 0
        (row,) = _valid(capsys.readouterr().out)["configurations"]
        assert main(["predict", *words, "--consumers", "2", "--depth", "3"]) == 0
        (one,) = json.loads(capsys.readouterr().out)["predictions"]
        assert row["cycles"] == round(one["cycles"])
        assert row["block_cycles"] == round(one["block_cycles"])
        (loop,) = one["loops"]
        assert (row["ii"], row["stages"], row["trips"]) == (
            loop["ii"],
            loop["stages"],
            loop["trips"],
        )
        assert row["blocks"] == 1024
        assert row["grid"] == [int(part) for part in grid.split(",")]
        cycles[grid] = row["cycles"]
    assert cycles["32,32"] != cycles["1024"]


LAUNCHED = ["--grid", "8,8", *(f"--argument={name}=1024" for name in "MNK")]
REFUSED = [
    (["--trips", "16"], 1, "how often loops of a kernel go round, the kernel says"),
    (["--ring", "a_0_tile=2"], 1, "emitted with rings of one depth, not `a_0_tile`"),
    (["--generator", "serial"], 1, "`generator` is no option of kernels that are predicted"),
    (["--grid", "1,1,1,1"], 1, "grid has 4 axes; one to three are possible"),
    (["--grid", "keys=32,64"], 2, "values of an argument are given with --axis keys=32,64"),
    (["--blocks", "2048"], 2, "is now --grid: --grid '2048'"),
]


@pytest.mark.parametrize(("given", "code", "said"), REFUSED)
def test_what_cannot_be_of_a_launch_is_said(
    given: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = str(EXAMPLES / "triton" / "matmul_descriptors.ttir")
    assert main(["sweep", kernel, *LAUNCHED, *given]) == code
    assert said in capsys.readouterr().err


def test_a_grid_is_of_formulas_too() -> None:
    found = stretto.sweep(
        ATTENTION, {"keys": (32, 64)}, cache=False, grid="min(keys, 64), 8192 // keys"
    )
    assert [row.grid for row in found.rows] == [(32, 256), (64, 128)]
    assert [row.blocks for row in found.rows] == [8192, 8192]
    with pytest.raises(StrettoError, match="values of arguments and constexprs are `axes`"):
        stretto.sweep(ATTENTION, grid={"keys": (32, 64)})  # pyright: ignore[reportArgumentType]


@pytest.mark.skipif(find_spec("triton") is not None, reason="Triton is installed")
def test_without_triton_a_kernel_says_what_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    file = EXAMPLES / "triton" / "matmul_descriptors.py"
    assert main(["sweep", "--function", f"{file}:matmul_descriptors", "--axis", "BLOCK_M=64"]) == 1
    told = capsys.readouterr().err
    assert "No module named 'triton" in told
    assert "pip install stretto[gpu]" in told


class _Jit:
    """As @triton.jit leaves a function."""

    arg_names = ("a_ptr", "M", "BLOCK")
    params = ()


def test_parameters_of_a_kernel_need_types_or_values() -> None:
    kernel: Any = _Jit()
    for grid, told in (
        ({}, "has a parameter `a_ptr`; give its type"),
        ({"WARPS": (1,)}, "has no parameter `WARPS`; it has a_ptr, M, BLOCK"),
    ):
        (row,) = stretto.sweep(kernel, grid, cache=False).rows
        assert told in row.error


FAULTS = [
    (["--axis", "keys=64"], "leaves no `keys` open; give a function"),
    (["--ring", "nobody=2"], "`nobody` is no ring of gemm; it has a_tile, b_tile"),
    (["--consumers", "2"], "consumers share the rows of a kernel; this is a loop"),
    (["--set", "slots.nobody.capacity=2"], "there is no `nobody`"),
    (["--trips", "8192 // keys"], "trips: "),
    (["--grid", "0"], "grid is 0; at least 1 is needed"),
]


@pytest.mark.parametrize(("given", "told"), FAULTS)
def test_what_cannot_be_settled_is_said(
    given: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", GEMM, "--no-cache", *given]) == 1
    assert told in " ".join(capsys.readouterr().out.split())


AT_ONCE: list[tuple[list[str], int, str]] = [
    (["--function", "nowhere.py:make"], 1, "nowhere.py: error: cannot be read"),
    (["--function", f"{EXAMPLES / 'gemm.py'}:nobody"], 1, "error: no `nobody`; it has"),
    (["nowhere.json"], 1, "nowhere.json: error: cannot be read: No such file"),
    (["-"], 1, "it cannot be standard input"),
    ([GEMM, "--machine", "nobody"], 1, "no machine `nobody`"),
    ([GEMM, "--front", "speed"], 1, "no figure `speed`"),
    ([GEMM, "--trips", "keys +"], 1, "trips: "),
    ([GEMM, "--axis", "keys"], 2, "is no axis"),
    ([GEMM, "--ring", "a_tile=0"], 1, "whole numbers from 1 are needed"),
    ([GEMM, "--set", "slots.TC.capacity=1", "--set", "slots.TC.capacity=2"], 1, "is given twice"),
    ([GEMM, "--measure", "clock"], 1, "error: cannot be read as a file of Python"),
    ([GEMM, "--measure", f"{EXAMPLES / 'gemm.py'}:__doc__"], 1, "is str; expected a function"),
    ([GEMM, "--signature", "x"], 2, "is no NAME=TYPE"),
    ([], 2, "give either an INPUT or --function"),
    ([GEMM, "--function", ATTENTION], 2, "give either an INPUT or --function"),
]


@pytest.mark.parametrize(("given", "code", "told"), AT_ONCE)
def test_what_makes_no_sense_is_said_at_once(
    given: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", *given]) == code
    assert told in capsys.readouterr().err


def test_a_function_that_returns_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text("def make(x):\n    return x\n\nTHREE = 3\n")
    (row,) = stretto.sweep(f"{file}:make", {"x": (1,)}, cache=False).rows
    assert row.error.endswith("odd.py:make returned int; expected a Loop or a Kernel")
    (row,) = stretto.sweep(f"{file}:make", {"y": (1,)}, cache=False).rows
    assert "cannot be called so: missing a required argument: 'x'" in row.error
    (row,) = stretto.sweep(f"{file}:THREE", {"y": (1,)}, cache=False).rows
    assert "is int; expected a function" in row.error
    file.with_name("broken.py").write_text("raise ValueError('no\\nnever')\n")
    with pytest.raises(StrettoError, match=r"broken\.py: error: ValueError: no$"):
        stretto.sweep(f"{file.with_name('broken.py')}:make")


def test_what_a_function_prints_is_no_part_of_the_answer(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "loud.py"
    file.write_text(
        f"import stretto\nprint('loading')\n\ndef make(x):\n    print('making')\n"
        f"    return stretto.read({GEMM!r})[0]\n\ndef clock(x):\n    print('tick')\n    return x\n"
    )
    arguments = ["sweep", "--function", f"{file}:make", "--axis", "x=1,2", "--no-cache", "--json"]
    assert main([*arguments, "--measure", f"{file}:clock"]) == 0
    _valid(capfd.readouterr().out)


# Measured ---------------------------------------------------------------------------------


def test_the_fastest_are_measured_beside_what_was_predicted() -> None:
    rows = tuple(_row(i, 10 + i, 1, 1, 1) for i in range(6))
    asked: list[int] = []

    def clock(n: int) -> float:
        asked.append(n)
        if n == 3:
            raise RuntimeError("out of\nmemory")
        return {0: 2.0, 1: 1.0, 2: 3.0}[n]

    found = measured(SweepReport("s", rows), clock, top=4)
    assert asked == [0, 1, 2, 3]
    assert [row.number for row in found.measured] == [1, 0, 2]
    assert found.agreement == 0.5
    assert found.notes == ("n=3 was not measured: RuntimeError: out of",)
    assert "order of predicted and measured agree by 0.5 (of 1)" in "\n".join(found.to_text())


@pytest.mark.parametrize("time", [float("nan"), float("inf")])
def test_what_is_no_time_is_not_measured(time: float) -> None:
    def clock(n: int) -> float:
        return time + n

    found = measured(SweepReport("s", (_row(0, 10, 1, 1, 1),)), clock)
    assert found.notes == (f"n=0 was not measured: {time:g} is no time",)
    assert found.rows[0].measured is None


def test_whole_agreement_is_1_and_reversal_is_minus_1() -> None:
    rows = tuple(_row(i, 10 + i, 1, 1, 1) for i in range(5))
    report = SweepReport("s", rows)

    def up(n: int) -> float:
        return n / 2

    def down(n: int) -> float:
        return -n / 2

    assert measured(report, up).agreement == 1
    assert measured(report, down).agreement == -1


def test_a_measure_is_found_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "clock.py"
    file.write_text("def clock(n):\n    return n / 2\n")
    rows = tuple(_row(i, 10 + i, 1, 1, 1) for i in range(3))
    found = measured(SweepReport("s", rows), f"{file}:clock", top=2)
    assert [row.measured for row in found.rows] == [0.0, 0.5, None]
