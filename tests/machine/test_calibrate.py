"""Machines from measurements: what a card measured is what its machine says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli import Run

from stretto.machine import load_machine
from stretto.machine.calibrating import Results, measured_on, timings_from

RESULTS = Path(__file__).parents[2] / "benchmarks/gpu/results/micro-h200-2026-11-16.jsonl"
TURN = {"kind": "turn", "arrives": 2, "waits": 1, "product": 1, "n": 128, "k": 64, "warps": 4}
Capture = pytest.CaptureFixture[str]


def test_the_shipped_machine_is_what_its_raw_results_say() -> None:
    results = Results("micro", RESULTS.read_text(encoding="utf-8"))
    h200 = load_machine("h200")
    assert h200.measured == measured_on(results)
    for name, (values, meaning, source) in timings_from(results).items():
        assert h200.timing(name) == values, name
        figure = next(f for f in h200.timings if f.name == name)
        assert (figure.meaning, figure.source) == (meaning, f"micro {source}")


def test_a_calibrated_machine_can_be_read_and_predicted_with(
    capsys: Capture, tmp_path: Path
) -> None:
    mine = tmp_path / "my-gpu.toml"
    done = Run(capsys, "machines", "--calibrate", str(RESULTS), "-o", str(mine))
    assert (done.code, done.err) == (0, "")
    machine = load_machine(str(mine))
    assert machine.timing("wait") == load_machine("h200").timing("wait")
    assert "measured on 2026-11-16 on an NVIDIA H200" in Run(capsys, "machines", str(mine)).out


def test_another_measurement_makes_another_machine(capsys: Capture, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        if row["kind"] == "turn" and row["waits"]:
            row["cycles"] += 100
    slower = tmp_path / "slower.jsonl"
    slower.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    document = Run(capsys, "machines", "--calibrate", str(slower), "--json").json("calibration")
    assert "[timings.wait]\nvalues = [152, 3]" in document["toml"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense", "line 1: error: is not JSON"),
        ("[1]", "line 1: error: is no row of micro.py"),
        ('{"kind": "info"}', "has no row of kind turn arrives 2 waits 1 product 1"),
        (
            json.dumps(TURN | {"error": "it hangs"}),
            "kind turn arrives 2 waits 1 product 1 n 128 k 64 warps 4 failed: it hangs",
        ),
    ],
)
def test_results_that_do_not_tell_enough_say_what_is_missing(
    capsys: Capture, tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(text, encoding="utf-8")
    found = Run(capsys, "machines", "--calibrate", str(file))
    assert found.code == 1
    assert told in found.err


def changed(tmp_path: Path, kind: str, **fields: object) -> str:
    """The shipped results, with other fields in all rows of a kind."""
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    rows = [row | fields if row["kind"] == kind else row for row in rows]
    file = tmp_path / "results.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("kind", "fields", "told"),
    [
        ("turn", {"cycles": None}, "turn has null as its `cycles`; expected a number"),
        ("turn", {"cycles": "fast"}, 'turn has "fast" as its `cycles`; expected a number'),
        ("turn", {"cycles": float("nan")}, "turn has nan as its `cycles`; expected a number below"),
        ("copies", {"cycles": 0}, "copies has 0 as its `cycles`; expected a number above 0"),
        ("copies", {"mhz": None}, "copies has null as its `mhz`; expected a number"),
        ("copy", {"cycles": 100}, "copy tells nothing beside those that it is compared with"),
        ("copies", {"cycles": 1e14}, "make `copy_rate_l2` 0, which has to be above"),
        ("heated", {"mhz": 1500}, "heated ran at 1500 MHz and at 1500 without products"),
        ("heated", {"mhz": None}, "heated has null as its `mhz`; expected a number"),
        (
            "walked",
            {"cycles": 400},
            "walked of 400 cycles is the largest, and the smallest has 400",
        ),
        ("walked", {"bytes": "all"}, 'walked has "all" as its `bytes`; expected a number'),
        ("info", {"sms": 0}, "info has 0 as its `sms`; expected a number above 0"),
        ("info", {"gpu": 'a "card"'}, "as its `gpu`; expected letters, digits and dots"),
    ],
)
def test_results_that_make_no_sense_are_refused_with_their_line(
    capsys: Capture, tmp_path: Path, kind: str, fields: dict[str, object], told: str
) -> None:
    found = Run(capsys, "machines", "--calibrate", changed(tmp_path, kind, **fields))
    assert found.code == 1
    assert "results.jsonl" in found.err
    assert told in found.err
