"""`stretto simulate`: good and bad input, both modes, JSON that keeps its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from stretto.cli.main import main
from stretto.ir.opt.__main__ import main as opt

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCHEMA = json.loads(
    (ROOT / "src/stretto/report/schemas/simulation.schema.json").read_text(encoding="utf-8")
)


def simulated(capsys: pytest.CaptureFixture[str], name: str, *options: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["simulate", str(EXAMPLES / name), *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(document)  # pyright: ignore[reportUnknownMemberType]
    (entry,) = document["loops"]
    return entry


@pytest.mark.parametrize("mode", ["unspecialized", "specialized"])
@pytest.mark.parametrize("name", ["four_op", "gemm", "attention_forward", "attention_backward"])
@pytest.mark.parametrize("trips", [0, 1, 2, 9])
def test_kernels_from_mlir_run_as_the_sequential_loop(
    name: str, mode: str, trips: int, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = simulated(capsys, f"{name}.mlir", "--mode", mode, "--iterations", str(trips))
    assert entry["equal"]
    assert not entry["deadlock"]
    assert entry["violations"] == []
    assert entry["cycles_per_iteration"] == entry["ii"]
    assert entry["prologue_cycles"] == (entry["stage_count"] - 1) * entry["ii"]


@pytest.mark.parametrize("mode", ["unspecialized", "specialized"])
def test_materialized_programs_run_from_their_text(
    mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And say so when the text is edited: here a wait of the product is gone."""
    passes = f"tileas-generate-schedule,tileas-materialize-schedule{{mode={mode}}}"
    file = tmp_path / "gemm.mlir"
    assert opt(["-p", passes, str(EXAMPLES / "gemm.mlir"), "-o", str(file)]) == 0
    entry = simulated(capsys, str(file), "--iterations", "9")
    assert (entry["mode"], entry["equal"], entry["violations"]) == (mode, True, [])
    assert entry["cycles_per_iteration"] == 256
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if "consumer_wait" not in line]
    assert len(kept) < len(lines)
    file.write_text("".join(kept), encoding="utf-8")
    assert main(["simulate", str(file)]) == 1


def test_exact_schedules_run_too(capsys: pytest.CaptureFixture[str]) -> None:
    entry = simulated(capsys, "attention_backward.json", "--generator", "exact")
    assert (entry["ii"], entry["stage_count"], entry["equal"]) == (946, 5, True)


def test_text_has_a_timeline(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--mode", "specialized", "--iterations", "9"]
    assert main(["simulate", str(EXAMPLES / "gemm.json"), *options]) == 0
    out = capsys.readouterr().out
    assert out.startswith("gemm on b200-pipes, specialized, 9 iterations: equal to sequential")
    assert "II 256: 256 cycles an iteration; prologue 512 cycles" in out
    assert "\n  mma     mma    \u00b7" in out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--iterations", "-1"], "'-1' is not a whole number of at least 0"),
        (["--iterations", "x"], "'x' is not a whole number of at least 0"),
        (["--mode", "sideways"], "invalid choice: 'sideways'"),
    ],
)
def test_usage(options: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(EXAMPLES / "gemm.json"), *options]) == 2
    assert told in capsys.readouterr().err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(EXAMPLES / "missing.json")
    assert main(["simulate", file]) == 1
    assert "missing.json: error: cannot be read" in capsys.readouterr().err


def test_too_many_iterations_are_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(EXAMPLES / "gemm.json"), "--iterations", "1" + "0" * 15]) == 1
    told = "1,000,000,000,000,000 iterations of 4 operations are"
    assert told in " ".join(capsys.readouterr().err.split())
