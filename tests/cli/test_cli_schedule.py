"""`stretto schedule` as a user meets it: output, files, exit codes, limits and Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from test_ddg import nested

from stretto.cli.main import main
from stretto.solution import Refusal
from test_api import AT_15, finds, finds_nothing, stopped, stub

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LOOPS = sorted(p for p in EXAMPLES.glob("*.json") if len(p.suffixes) == 1)
FOUR_OP = str(EXAMPLES / "four_op.json")
STRETTO = str(Path(sys.executable).parent / "stretto")
SCHEMA = json.loads(
    (resources.files("stretto.solution") / "schedule.schema.json").read_text("utf-8")
)


class Run:
    """One run of `stretto schedule`."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.code = main(["schedule", *arguments])
        captured = capsys.readouterr()
        self.out, self.err = captured.out, captured.err

    def json(self) -> Any:
        """The one document on stdout, checked against its schema."""
        document = json.loads(self.out)
        jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
        return document


# What it prints ---------------------------------------------------------------------------


def test_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, finds(15, AT_15))
    run = Run(capsys, FOUR_OP)
    assert (run.code, run.err) == (0, "")
    first, unit, second, *rest = run.out.splitlines()
    assert first == "four_op on blackwell: II 15 is the MII, limited by slot tp_smem_wr: optimal"
    assert unit == "  figures of blackwell are weights, not cycles of a clock"
    assert second.startswith("  1 stage, pipeline depth 2; cost-based (worth pipelining: it holds")
    load = "  load       0      0      0  tma 8, tp_smem_wr 8"
    memory = "  smem 40,960 of 232,448 bytes; tmem 32,768 of 262,144 bytes;"
    for begins in (load, memory):
        assert any(line.startswith(begins) for line in rest)


@pytest.mark.parametrize("file", LOOPS, ids=lambda path: path.stem)
def test_serial_schedules_of_the_examples(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The text fits; the JSON is valid, and `stretto verify` takes it."""
    run = Run(capsys, str(file), "--generator", "serial", "-v")
    assert run.code == 0
    assert max(map(len, run.out.splitlines())) <= 100
    target = tmp_path / "schedule.json"
    run = Run(capsys, str(file), "--generator", "serial", "--json", "-o", str(target))
    assert (run.code, run.out, run.err) == (0, "", "")
    jsonschema.validate(json.loads(target.read_text()), SCHEMA, jsonschema.Draft202012Validator)
    assert main(["verify", str(file), str(target), "--max-stages", "1"]) == 0
    assert capsys.readouterr().out.rstrip().endswith(": legal")


def test_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, finds(15, AT_15, Refusal(15, "a bad guess", rung="rau")))
    run = Run(capsys, FOUR_OP, "--json")
    assert (run.code, run.err) == (0, "")
    document = run.json()
    (entry,) = document["loops"]
    assert document["success"] is True
    assert (entry["name"], entry["machine"], entry["ii"]) == ("four_op", "blackwell", 15)
    assert entry["proof"] == {
        "optimal": True,
        "lower_bound": 15,
        "method": "bound",
        "objectives": [],
    }
    assert entry["refused"] == [{"ii": 15, "reason": "a bad guess", "rung": "rau"}]
    assert entry["ops"][1]["rung"] == "rau"


def test_verbose_tells_every_ii_tried(capsys: pytest.CaptureFixture[str]) -> None:
    over_smem = str(EXAMPLES / "over_smem.json")
    run = Run(capsys, over_smem, "-v")
    first, second = run.err.splitlines()
    assert first.startswith(
        "over_smem: II 2048 to 2891: proved impossible: any schedule at II 2048"
    )
    assert second == "over_smem: II 2892: a schedule"
    assert "rung  arm" in run.out
    as_json = Run(capsys, over_smem, "-v", "--json")
    assert as_json.err == run.err
    as_json.json()


def test_notes_of_the_front_end(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "k.json"
    file.write_text(json.dumps(nested()))
    run = Run(capsys, str(file), "--json", "--generator", "serial")
    entries = run.json()["loops"]
    assert [entry["name"] for entry in entries] == ["k.0", "k.1"]
    assert any("treated as deleted" in w for w in entries[1]["warnings"])
    one = Run(capsys, str(file), "--loop", "k.1", "--generator", "serial", "--json")
    assert [entry["name"] for entry in one.json()["loops"]] == ["k.1"]
    assert Run(capsys, str(file), "--loop", "k.9").code == 1


def test_options(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, finds(15, AT_15))
    run = Run(capsys, FOUR_OP, "--serial-threshold", "8", "--json")
    (entry,) = run.json()["loops"]
    assert (entry["ii"], entry["generator"]) == (24, "serial")
    assert entry["rule"] == "4 operations, fewer than the threshold of 8"
    parts = ["--without", "rau", "--without", "arm:fuse"]
    run = Run(capsys, FOUR_OP, *parts, "--no-fuse", "--max-stages", "2", "--strict", "--json")
    assert (run.code, run.json()["loops"][0]["ii"]) == (0, 15)
    run = Run(capsys, FOUR_OP, "--machine", "b200-pipes", "--generator", "serial", "--json")
    assert (run.code, run.json()["loops"][0]["machine"]) == (0, "b200-pipes")


# What goes wrong --------------------------------------------------------------------------


def test_no_schedule(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, finds_nothing(Refusal(15, "`write` finds no seat", through=20, op="write")))
    run = Run(capsys, FOUR_OP, "--max-ii", "20")
    assert run.code == 1
    assert run.out.startswith("four_op on blackwell: no schedule found up to II 20; the MII is 15")
    assert "  II 15 to 20  `write` finds no seat\n" in run.out
    as_json = Run(capsys, FOUR_OP, "--max-ii", "20", "--json")
    assert (as_json.code, as_json.err) == (1, "")
    document = as_json.json()
    assert document["success"] is False
    (entry,) = document["loops"]
    assert entry["errors"] == [
        "four_op: no schedule found up to II 20; the MII is 15, limited by slot tp_smem_wr"
    ]
    assert entry["refused"][0]["op"] == "write"


def test_a_document_of_a_failure_can_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "s.json"
    assert Run(capsys, FOUR_OP, "--max-ii", "3", "--json", "-o", str(target)).code == 1
    assert main(["verify", FOUR_OP, str(target)]) == 1
    assert "there is nothing to verify" in capsys.readouterr().out


def test_a_loop_that_fails_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    document = nested()
    document["loops"][0]["ddg"]["edges"].append(
        {"src": 3, "dst": 0, "latency": 1, "distance": 0, "kind": "data"}
    )
    file = tmp_path / "k.json"
    file.write_text(json.dumps(document))
    run = Run(capsys, str(file), "--generator", "serial", "--json")
    assert run.code == 1
    broken, whole = run.json()["loops"]
    assert not broken["success"]
    assert "a cycle of dependences at distance 0" in broken["errors"][0]
    assert whole["success"]
    target = tmp_path / "s.json"
    target.write_text(run.out)
    assert main(["verify", str(file), str(target), "--loop", "k.1"]) == 0


def test_strict(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = json.loads(Path(FOUR_OP).read_text())
    document["ops"][0]["constraint"] = {"pending": True}
    file = tmp_path / "l.json"
    file.write_text(json.dumps(document))
    run = Run(capsys, str(file), "--generator", "serial")
    assert run.code == 0
    assert "  note: `pending` of `load` is not honoured" in run.out
    run = Run(capsys, str(file), "--generator", "serial", "--strict")
    assert run.code == 1
    assert "`pending` of `load` is not honoured" in run.out


def test_a_bug_is_an_error_of_the_loop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stub(monkeypatch, finds(15, AT_15 | {"read": 0}))
    run = Run(capsys, FOUR_OP, "--json")
    assert run.code == 1
    (told,) = run.json()["loops"][0]["errors"]
    assert "this is a bug of Stretto" in told


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["x", "--max-ii", "0"],
        ["x", "--max-ii", "many"],
        ["x", "--generator", "fast"],
        ["x", "--prove", "--objective", "speed"],
        ["x", "--without", "fuse"],
        ["x", "--serial-threshold", "-1"],
    ],
)
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, *arguments)
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("usage: stretto ")
    as_json = Run(capsys, *arguments, "--json")
    assert (as_json.code, as_json.err) == (2, "")
    assert json.loads(as_json.out)["success"] is False


def test_unknown_parts_name_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, FOUR_OP, "--without", "fuse")
    assert "no part 'fuse'; did you mean `arm:fuse`?" in run.err
    run = Run(capsys, FOUR_OP, "--without", "gravity")
    assert "no part 'gravity'; known: rau, deepest-depth, initial, cost-based, arm:" in run.err
    assert "arm:fuse, arm:retry, arm:cost-based" in run.err


def test_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert Run(capsys, str(tmp_path / "gone.json")).code == 1
    empty = tmp_path / "empty.json"
    empty.write_text('{"schema": "stretto.loop/1", "name": "l", "ops": []}')
    run = Run(capsys, str(empty))
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith(f"{empty}: $.ops: error: loop `l` has no operations")
    as_json = Run(capsys, str(empty), "--json")
    assert as_json.json()["loops"][0]["success"] is False


# Ctrl-C -----------------------------------------------------------------------------------


def test_ctrl_c_with_a_schedule_at_hand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub(monkeypatch, stopped)
    run = Run(capsys, FOUR_OP)
    assert (run.code, run.err) == (3, "")
    assert run.out.startswith("four_op on blackwell: II 24, 9 above the MII 15")
    assert "  note: stopped while a better schedule was sought" in run.out
    as_json = Run(capsys, FOUR_OP, "--json")
    assert as_json.code == 3
    (entry,) = as_json.json()["loops"]
    assert (entry["success"], entry["proof"]["optimal"]) == (True, False)
    target = tmp_path / "s.json"
    target.write_text(as_json.out)
    assert main(["verify", FOUR_OP, str(target)]) == 0


def test_ctrl_c_with_a_schedule_that_is_proved(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub(monkeypatch, stopped)
    ops = [{"name": name, "kind": "async.tiled_tma_load"} for name in ("a", "b")]
    file = tmp_path / "l.json"
    file.write_text(json.dumps({"schema": "stretto.loop/1", "name": "l", "ops": ops}))
    run = Run(capsys, str(file))
    assert run.code == 0
    assert run.out.startswith("l on blackwell: II 16 is the MII")


def test_ctrl_c_leaves_the_other_loops(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub(monkeypatch, stopped)
    file = tmp_path / "k.json"
    file.write_text(json.dumps(nested()))
    run = Run(capsys, str(file), "--generator", "cost-based", "--json")
    first, second = run.json()["loops"]
    assert first["success"]
    assert second["errors"] == ["error: k.1: not scheduled, stopped before it"]
    assert run.code == 1


def test_ctrl_c_with_nothing_at_hand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stub(monkeypatch, stopped)
    run = Run(capsys, FOUR_OP, "--max-ii", "20")
    assert (run.code, run.out, run.err) == (130, "", "stretto: interrupted\n")


# The installed command --------------------------------------------------------------------


def test_same_input_same_bytes() -> None:
    outputs: set[str] = set()
    file = str(EXAMPLES / "attention_backward.json")
    for seed in ("0", "1", "2"):
        run = subprocess.run(
            [STRETTO, "schedule", file, "--json", "--generator", "serial"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
        document = json.loads(run.stdout)
        for entry in document["loops"]:
            assert entry.pop("seconds") > 0
        outputs.add(json.dumps(document))
    assert len(outputs) == 1


def test_serial_needs_no_numpy() -> None:
    code = (
        "import sys\n"
        "from stretto.cli.main import main\n"
        f"main(['schedule', {FOUR_OP!r}, '--generator', 'serial'])\n"
        "sys.exit('numpy' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_progress_on_a_terminal_and_none_in_a_pipe() -> None:
    """A pseudo-terminal sees a line that moves and is wiped; a pipe sees nothing."""
    command = [STRETTO, "schedule", str(EXAMPLES / "layernorm.json")]
    piped = subprocess.run(command, capture_output=True, text=True, check=True)
    assert piped.stderr == ""
    ours, theirs = pty.openpty()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, check=True)
    os.close(theirs)
    seen = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.stdout == piped.stdout
    assert "layernorm: trying II 1217" in seen
    assert seen.endswith("\r")
    assert seen.rsplit("\r", 2)[1].strip() == ""
