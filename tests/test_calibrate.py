"""Machines from measurements: what a card measured is what its machine says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stretto.machine import load_machine
from stretto.machine.calibrating import Results, measured_on, timings_from
from test_cli import Run

RESULTS = Path(__file__).parents[1] / "benchmarks/gpu/results/micro-h200-2026-11-16.jsonl"
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
