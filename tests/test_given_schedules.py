"""`stretto simulate` runs the schedule that is there, and says which one it ran."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stretto.cli.main import main
from stretto.ir.opt.__main__ import main as opt

EXAMPLES = Path(__file__).parent.parent / "examples"
FOUR = str(EXAMPLES / "four_op.json")
SERIAL = "tileas-generate-schedule{generator=serial}"


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["simulate", *arguments, "--iterations", "5", "--json"]) == code
    (entry,) = json.loads(capsys.readouterr().out)["loops"]
    return entry


def scheduled(folder: Path, passes: str = SERIAL) -> str:
    file = folder / "four_op.mlir"
    assert opt(["-p", passes, str(EXAMPLES / "four_op.mlir"), "-o", str(file)]) == 0
    return str(file)


def test_the_schedule_of_a_module_is_the_one_that_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Serial, so that nobody would make it anew: II 24 instead of 15."""
    entry = run(capsys, scheduled(tmp_path))
    assert (entry["ii"], entry["cycles_per_iteration"]) == (24, 24)
    assert entry["schedule"] == "the one in the module"
    assert entry["success"]


def test_a_new_one_where_there_is_none_or_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh = run(capsys, str(EXAMPLES / "four_op.mlir"))
    assert (fresh["ii"], fresh["schedule"]) == (15, "a new one by the cost-based generator")
    again = run(capsys, scheduled(tmp_path), "--generator", "cost-based")
    assert (again["ii"], again["schedule"]) == (15, "a new one by the cost-based generator")


def test_the_text_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", scheduled(tmp_path)]) == 0
    assert "\n  schedule: the one in the module\n" in capsys.readouterr().out


def test_a_schedule_from_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "slow.json"
    asked = ["schedule", FOUR, "--generator", "serial", "--json", "-o", str(file)]
    assert main(asked) == 0
    entry = run(capsys, FOUR, str(file))
    assert (entry["ii"], entry["schedule"]) == (24, f"the one of {file}")


def test_a_document_stands_above_the_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = run(capsys, scheduled(tmp_path), str(EXAMPLES / "four_op.schedule.json"))
    assert entry["ii"] == 15


@pytest.mark.parametrize("json_too", [True, False])
def test_one_that_is_not_legal_is_not_run(
    json_too: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = str(EXAMPLES / "four_op.too_fast.json")
    if json_too:
        told = "\n".join(run(capsys, FOUR, bad, code=1)["errors"])
    else:
        assert main(["simulate", FOUR, bad]) == 1
        told = capsys.readouterr().err
    assert "four_op.too_fast.json, is not legal, 2 violations" in told
    assert "dependence: `read` starts at 6; `load` is ready at 8" in told
    assert "slot: of slot `tp_smem_wr`" in told


def test_a_module_whose_schedule_is_not_legal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(scheduled(tmp_path))
    text = file.read_text()
    assert "nv_tile.aws.ii = 24" in text
    file.write_text(text.replace("nv_tile.aws.ii = 24", "nv_tile.aws.ii = 9"))
    assert main(["simulate", str(file)]) == 1
    assert "error" in capsys.readouterr().err


def test_an_entry_of_no_schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "none.json"
    row = {"name": "four_op", "success": False}
    top = {"schema": "stretto.schedule/1", "success": False, "loops": [row]}
    file.write_text(json.dumps(top))
    told = run(capsys, FOUR, str(file), code=1)["errors"][0]
    assert "says that no schedule was found" in told


def test_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = str(EXAMPLES / "four_op.schedule.json")
    assert main(["simulate", FOUR, given, "--generator", "serial"]) == 2
    assert "SCHEDULE is given, so --generator has none to make" in capsys.readouterr().err
    assert main(["simulate", "-", "-"]) == 2
    program = scheduled(tmp_path, f"{SERIAL},tileas-materialize-schedule")
    assert main(["simulate", program, given]) == 1
    assert "has programs, not loops to schedule" in capsys.readouterr().err
    assert run(capsys, program)["schedule"] == "that of the program in the module"


# Machines beside the file -------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a loop and its machine; the working directory is another one."""
    folder, here = tmp_path / "loops", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    ours = EXAMPLES.parent / "src" / "stretto" / "machine" / "targets" / "blackwell.toml"
    text = ours.read_text().replace('name = "blackwell"', 'name = "mine"', 1)
    (folder / "m.toml").write_text(text)
    document = json.loads(Path(FOUR).read_text())
    document["machine"] = "m.toml"
    (folder / "loop.json").write_text(json.dumps(document))
    module = (EXAMPLES / "four_op.mlir").read_text()
    assert 'machine = "blackwell"' in module
    (folder / "loop.mlir").write_text(module.replace('machine = "blackwell"', 'machine = "m.toml"'))
    return folder


@pytest.mark.parametrize("command", ["bounds", "schedule", "explain", "simulate"])
@pytest.mark.parametrize("file", ["loop.json", "loop.mlir"])
def test_a_machine_is_sought_beside_the_file_that_names_it(
    command: str, file: str, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(elsewhere / file)]) == 0, capsys.readouterr().err
    assert "four_op on mine" in capsys.readouterr().out
    assert main([command, f"../loops/{file}"]) == 0, capsys.readouterr().err


def test_verify_seeks_it_there_too(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", str(elsewhere / "loop.json"), "--json", "-o", "s.json"]) == 0
    assert main(["verify", str(elsewhere / "loop.json"), "s.json"]) == 0
    assert "four_op on mine" in capsys.readouterr().out
    module = str(elsewhere / "s.mlir")
    assert opt(["-p", "tileas-generate-schedule", str(elsewhere / "loop.mlir"), "-o", module]) == 0
    assert main(["verify", module]) == 0
    assert "four_op on mine" in capsys.readouterr().out


def test_stdin_has_no_folder(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (elsewhere / "loop.json").read_text()

    def stdin(_name: str) -> tuple[str, str]:
        return "<stdin>", text

    monkeypatch.setattr("stretto.api.read_write.read_input", stdin)
    assert main(["bounds", "-"]) == 1
    assert "m.toml" in capsys.readouterr().err
    monkeypatch.chdir(elsewhere)
    assert main(["bounds", "-"]) == 0


def test_a_file_that_is_not_there(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (elsewhere / "m.toml").rename(elsewhere.parent / "here" / "m.toml")  # where it was sought once
    assert main(["bounds", str(elsewhere / "loop.json")]) == 1
    assert f"{elsewhere / 'm.toml'}: error: cannot be read" in capsys.readouterr().err
