"""Two schedules side by side; a machine that is set otherwise; machines printed as files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import stretto
from stretto.cli.main import main
from stretto.machine import load_machine, machine_names

EXAMPLES = Path(__file__).parents[2] / "examples"
GEMM = str(EXAMPLES / "gemm.mlir")
ATTENTION = str(EXAMPLES / "attention_forward.mlir")
SCHEMA = json.loads(
    resources.files("stretto.report")
    .joinpath("schemas", "comparison.schema.json")
    .read_text("utf-8")
)


class Run:
    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str) -> None:
        capsys.readouterr()
        self.code = main(list(words))
        told = capsys.readouterr()
        self.out, self.err = told.out, told.err


def rows(entry: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {row["what"]: (row["a"], row["b"]) for row in entry["rows"]}


def test_options_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--set budgets.smem.bytes=65536"
    run = Run(capsys, "compare", ATTENTION, "--b", options, "--json")
    assert run.code == 0
    document = json.loads(run.out)
    jsonschema.validate(document, SCHEMA)
    (entry,) = document["loops"]
    plain = stretto.schedule(stretto.read(ATTENTION)[0])
    assert rows(entry)["II"] == (plain.ii, 1456)
    assert rows(entry)["smem"][1] <= 65536
    assert {row["op"] for row in entry["moved"]} <= plain.starts.keys()
    assert entry["b"]["machine"] == "b200-pipes with budgets.smem.bytes=65536"


def test_one_option_is_a_side_too(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "compare", GEMM, "--b", "--prove")
    assert run.code == 0
    assert run.out.startswith("gemm: A on b200-pipes, B on b200-pipes\n")
    assert "--b: stretto schedule: error: unrecognized arguments: --prov" in (
        Run(capsys, "compare", GEMM, "--b", "--prov-e").err
    )


def test_machines_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "compare", GEMM, "--a", "--machine blackwell", "--b", "--machine b200-pipes")
    assert run.code == 0
    assert run.out.startswith("gemm: A on blackwell, B on b200-pipes\n")
    assert re.search(r"  II, weights and cycles +16 +256 +\+240 +\+1500%\n", run.out)


def test_documents_are_compared(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    one, other = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    loop = stretto.read(GEMM)[0]
    found = stretto.schedule(loop)
    stretto.write(found, one)
    serial = stretto.schedule(loop, generator="serial")
    stretto.write(serial, other)
    run = Run(capsys, "compare", one, other, "--json")
    assert run.code == 0
    (entry,) = json.loads(run.out)["loops"]
    assert rows(entry)["II"] == (found.ii, serial.ii)
    assert entry == json.loads(json.dumps(stretto.compare(found, serial).to_json()))
    assert "every operation stands in the same place" in Run(capsys, "compare", GEMM, one).out
    assert "II 256 and" in repr(stretto.compare(found, serial))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([GEMM], "A and B are the same"),
        ([GEMM, "-"], "not from stdin"),
        ([GEMM, "--b=--foo"], "--b: stretto schedule: error: unrecognized arguments: --foo"),
        ([GEMM, "--b='"], "--b: No closing quotation"),
        ([GEMM, ATTENTION + "x"], "No such file"),
    ],
)
def test_what_cannot_be_compared_is_told(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(capsys, "compare", *words)
    assert run.code == 1
    assert told in run.err


def test_a_side_without_a_schedule_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "compare", GEMM, "--b=--max-ii 3")
    assert run.code == 1
    assert "B: gemm: no schedule" in run.out


# Machines ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", machine_names())
def test_a_machine_prints_as_a_file_that_loads_back_equal(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "copy.toml"
    assert Run(capsys, "machines", name, "--toml", "-o", str(file)).code == 0
    assert load_machine(str(file)) == load_machine(name)


def test_a_setting_changes_the_machine_in_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--set", "slots.TC.capacity=2"]
    for command in ("schedule", "bounds", "explain", "simulate"):
        out = Run(capsys, command, GEMM, *words).out
        assert out.startswith("gemm on b200-pipes with slots.TC.capacity=2"), command
    shown = Run(capsys, "machines", "b200-pipes", *words, "--json")
    (tc,) = [slot for slot in json.loads(shown.out)["slots"] if slot["name"] == "TC"]
    assert tc["capacity"] == 2


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["schedule", GEMM, "--set", "slots.TC.capacity"], 2, "it should be PATH=VALUE"),
        (["schedule", GEMM, "--set", "slots.TX.capacity=1"], 1, "there are TMA, TC, CUDA, SFU"),
        (["schedule", GEMM, "--set", "slots.TC.capacity=0"], 1, "slots.TC.capacity: error: is 0"),
        (["schedule", "-", "--set", "slots.TC.capacity=2"], 1, "name it with --machine"),
        (["machines", "--toml"], 2, "need the NAME"),
        (["machines", "h200", "--toml", "--json"], 2, "not JSON"),
    ],
)
def test_a_setting_that_cannot_be_is_told(
    words: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(capsys, *words)
    assert run.code == code
    assert told in run.err + run.out


# Notebooks and files ----------------------------------------------------------------------


def html_of(result: object) -> str:
    """As a notebook asks for it."""
    return getattr(result, "_repr_html_")()  # noqa: B009 - no name for anybody else


def test_a_notebook_shows_a_picture_or_the_reasons() -> None:
    loop = stretto.read(GEMM)[0]
    shown = html_of(stretto.schedule(loop))
    assert shown.startswith("<svg")
    assert "II 256 cycles" in shown
    failed = stretto.schedule(loop, max_ii=3)
    assert html_of(failed).startswith("<pre>gemm on b200-pipes: no schedule")
    assert "&gt;" in html_of(stretto.bounds(loop))
    assert "\x1b" not in repr(stretto.schedule(replace(loop, name="evil\x1b[2J")))
    assert "\n" not in repr(stretto.schedule(loop))


def test_a_schedule_is_written_by_the_name_of_its_file(tmp_path: Path) -> None:
    found = stretto.schedule(stretto.read(GEMM)[0])
    for name, form in (("x.svg", "svg"), ("x.csv", "csv"), ("x.pftrace", "trace")):
        stretto.write(found, tmp_path / name)
        wanted = found.render(form)
        data = wanted.encode() if isinstance(wanted, str) else wanted
        assert (tmp_path / name).read_bytes() == data
    with pytest.raises(stretto.StrettoError, match="only a schedule is written as svg"):
        stretto.write(found.problem.loop, tmp_path / "y.svg")
    with pytest.raises(stretto.StrettoError, match="no format 'png'"):
        found.render("png")
