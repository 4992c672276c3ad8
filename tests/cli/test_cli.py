"""The command line as a user meets it: output, --json with its schema, exit codes, bad input."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from test_ddg import nested

import stretto
from stretto.cli.commands import COMMANDS
from stretto.cli.main import main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FOUR_OP = str(EXAMPLES / "four_op.json")
SCHEDULE = str(EXAMPLES / "four_op.schedule.json")
STRETTO = str(Path(sys.executable).parent / "stretto")


def schema(name: str) -> Any:
    folder = resources.files("stretto.report").joinpath("schemas")
    return json.loads(folder.joinpath(f"{name}.schema.json").read_text(encoding="utf-8"))


class Run:
    """One run of the command line."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.code = main(arguments)
        captured = capsys.readouterr()
        self.out, self.err = captured.out, captured.err

    def json(self, name: str) -> Any:
        """The one document on stdout, checked against its schema."""
        assert self.err == ""
        document = json.loads(self.out)
        jsonschema.validate(document, schema(name), jsonschema.Draft202012Validator)
        return document


# bounds -----------------------------------------------------------------------------------


def test_bounds_json(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "bounds", FOUR_OP, "--json")
    assert run.code == 0
    document = run.json("bounds")
    (loop,) = document["loops"]
    bounds = loop["bounds"]
    assert {k: bounds[k] for k in ("resource", "recurrence", "fine", "dependence", "mii")} == {
        "resource": 15,
        "recurrence": 1,
        "fine": 1,
        "dependence": 1,
        "mii": 15,
    }
    assert bounds["limiter"] == "resource"
    assert (bounds["witness"]["limit"], bounds["witness"]["slot_id"]) == ("tp_smem_wr", 16)
    assert loop["remedies"][0]["mii"] < 15


def test_bounds_text_fits_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for example in sorted(EXAMPLES.glob("*.json")):
        if len(example.suffixes) == 1:
            run = Run(capsys, "bounds", str(example))
            assert run.code == 0
            assert max(map(len, run.out.splitlines())) <= 100


def test_bounds_of_another_machine_and_depth(capsys: pytest.CaptureFixture[str]) -> None:
    gemm = str(EXAMPLES / "gemm.json")
    run = Run(capsys, "bounds", gemm, "--machine", "blackwell", "--max-stages", "1", "--json")
    (loop,) = run.json("bounds")["loops"]
    assert loop["machine"] == "blackwell"
    assert loop["bounds"]["limiter"] in ("resource", "dependence")
    assert loop["bounds"]["dependence"] > 1


def test_no_fuse_raises_the_bound(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    read = {"kind": "async.smem_read", "facts": {"bank": 0}}
    ops = [{"name": f"r{i}", **read} for i in range(5)]
    file = tmp_path / "reads.json"
    file.write_text(json.dumps({"schema": "stretto.loop/1", "name": "reads", "ops": ops}))
    fused = Run(capsys, "bounds", str(file), "--json").json("bounds")["loops"][0]["bounds"]
    alone = Run(capsys, "bounds", str(file), "--no-fuse", "--json").json("bounds")
    assert (fused["mii"], alone["loops"][0]["bounds"]["mii"]) == (7, 35)


def test_several_loops_and_one_of_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "k.json"
    file.write_text(json.dumps(nested()))
    both = Run(capsys, "bounds", str(file), "--json").json("bounds")
    assert [loop["name"] for loop in both["loops"]] == ["k.0", "k.1"]
    assert any("treated as deleted" in w for w in both["loops"][1]["warnings"])
    one = Run(capsys, "bounds", str(file), "--loop", "k.1", "--json").json("bounds")
    assert [loop["name"] for loop in one["loops"]] == ["k.1"]
    none = Run(capsys, "bounds", str(file), "--loop", "k.7")
    assert (none.code, none.out) == (1, "")
    assert none.err == f"{file}: error: no loop `k.7`; did you mean `k.1`? its loops: k.0, k.1\n"


def test_a_loop_that_fails_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    document = nested()
    document["loops"][0]["ddg"]["edges"].append(
        {"src": 3, "dst": 0, "latency": 1, "distance": 0, "kind": "data"}
    )
    file = tmp_path / "k.json"
    file.write_text(json.dumps(document))
    run = Run(capsys, "bounds", str(file), "--json")
    assert run.code == 1
    broken, whole = run.json("bounds")["loops"]
    assert not broken["success"]
    assert "a cycle of dependences at distance 0" in broken["errors"][0]
    assert whole["success"]
    text = Run(capsys, "bounds", str(file))
    assert text.code == 1
    assert text.out.startswith("k.1 on b200-pipes")
    assert text.err.startswith(f"{file}: $.ops: error: a cycle of dependences")


def test_lifted_budget_is_said_everywhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILE_AS_DEBUG_UNLIMITED_SMEM", "1")
    for arguments in (
        ["bounds", FOUR_OP],
        ["verify", FOUR_OP, SCHEDULE],
        ["machines", "blackwell"],
        ["machines"],
    ):
        run = Run(capsys, *arguments)
        assert "TILE_AS_DEBUG_UNLIMITED_SMEM=1 lifts the smem budget" in run.out
        document = json.loads(Run(capsys, *arguments, "--json").out)
        (entry, *_) = document.get("loops") or document.get("machines") or [document]
        assert "TILE_AS_DEBUG_UNLIMITED_SMEM=1" in entry["warnings"][0]


# verify -----------------------------------------------------------------------------------


def test_verify_accepts_the_shipped_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "verify", FOUR_OP, SCHEDULE, "--json")
    assert run.code == 0
    (loop,) = run.json("verification")["loops"]
    assert (loop["legal"], loop["violations"], loop["ii"]) == (True, [], 15)


def test_verify_refuses_with_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    too_fast = str(EXAMPLES / "four_op.too_fast.json")
    run = Run(capsys, "verify", FOUR_OP, too_fast, "--json")
    assert run.code == 1
    document = run.json("verification")
    assert not document["success"]
    assert {v["rule"] for v in document["loops"][0]["violations"]} == {"dependence", "slot"}


def test_verify_an_edited_schedule(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = json.loads(Path(SCHEDULE).read_text())
    moved = next(op for op in document["loops"][0]["ops"] if op["name"] == "write")
    moved["start"] = 7
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(document))
    run = Run(capsys, "verify", FOUR_OP, str(edited), "--json")
    assert run.code == 1
    rules = {v["rule"] for v in run.json("verification")["loops"][0]["violations"]}
    assert "slot" in rules


def test_verify_max_stages(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    starts = {"load": 0, "write": 8, "wgmma": 15, "read": 8}
    ops = [{"name": name, "start": start} for name, start in starts.items()]
    file = tmp_path / "s.json"
    loop = {"name": "four_op", "ii": 15, "ops": ops}
    file.write_text(json.dumps({"schema": "stretto.schedule/1", "loops": [loop]}))
    assert Run(capsys, "verify", FOUR_OP, str(file)).code == 0
    run = Run(capsys, "verify", FOUR_OP, str(file), "--max-stages", "1", "--json")
    assert [v["rule"] for v in run.json("verification")["loops"][0]["violations"]] == ["depth"]


def test_verify_without_a_schedule_of_the_loop(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "s.json"
    file.write_text('{"schema": "stretto.schedule/1", "loops": []}')
    run = Run(capsys, "verify", FOUR_OP, str(file))
    assert run.code == 1
    assert "no schedule of `four_op`" in run.err


def entry(name: str, **fields: object) -> dict[str, object]:
    starts = {"load": 0, "write": 8, "wgmma": 0, "read": 8}
    ops = [{"name": op, "start": start} for op, start in starts.items()]
    return {"name": name, "ii": 15, "ops": ops, **fields}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            [entry("four_op"), entry("five_op")],
            "$.loops[1]: error: is of `five_op`, which is no loop of the input; the loops of",
        ),
        (
            [entry("four_op"), entry("four_op")],
            "$.loops[1]: error: is a second schedule of `four_op`; $.loops[0] is one",
        ),
        ([entry("four_op", ii=0)], "$.loops[0].ii: error: is 0; expected"),
        ([entry("")], "$.loops[0].name: error: is "),
        ([7], "$.loops[0]: error: is 7; expected a table"),
    ],
)
def test_every_schedule_is_of_one_loop(
    entries: list[object], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"schema": "stretto.schedule/1", "loops": entries}))
    run = Run(capsys, "verify", FOUR_OP, str(file))
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith(f"{file}: {message}")
    as_json = Run(capsys, "verify", FOUR_OP, str(file), "--json")
    assert as_json.code == 1
    assert not json.loads(as_json.out)["success"]


def test_verify_several_loops_by_hand(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each is read for itself: neither needs what the other one leaves out."""
    file, schedule = tmp_path / "k.json", tmp_path / "s.json"
    file.write_text(json.dumps(nested()))
    made = Run(capsys, "schedule", str(file), "--generator", "serial", "--json")
    loops = [
        {
            "name": loop["name"],
            "ii": loop["ii"],
            "ops": [{"name": op["name"], "start": op["start"]} for op in loop["ops"]],
        }
        for loop in json.loads(made.out)["loops"]
    ]
    schedule.write_text(json.dumps({"schema": "stretto.schedule/1", "loops": loops}))
    run = Run(capsys, "verify", str(file), str(schedule), "--json")
    assert [loop["legal"] for loop in run.json("verification")["loops"]] == [True, True]
    one = Run(capsys, "verify", str(file), str(schedule), "--loop", "k.1", "--json")
    assert [loop["name"] for loop in one.json("verification")["loops"]] == ["k.1"]
    loops[1]["ii"] = 0
    schedule.write_text(json.dumps({"schema": "stretto.schedule/1", "loops": loops}))
    run = Run(capsys, "verify", str(file), str(schedule))
    assert run.err.startswith(f"{schedule}: $.loops[1].ii: error")
    assert run.out.startswith("k.0 on b200-pipes, II")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "error: is empty; expected schedules"),
        ("[]", "$: error: is no schedule; expected schedules"),
        ('{"schema": "stretto.schedule/1"}', "$.loops: error: is missing"),
        (
            '{"schema": "x", "loops": [{"name": "y"}]}',
            "$.schema: error: is that of no document known here",
        ),
        ('{"schema": "stretto.schedule/1", "loops": 3}', "$.loops: error: is 3"),
    ],
)
def test_what_is_no_schedule(
    text: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "s.json"
    file.write_text(text)
    run = Run(capsys, "verify", FOUR_OP, str(file))
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith(f"{file}: {message}")


def test_verify_on_another_machine(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "verify", FOUR_OP, SCHEDULE, "--machine", "b200-pipes")
    assert run.code == 1


def test_verify_far_starts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    far = entry("four_op")
    far["ops"] = [{"name": op, "start": 10**30} for op in ("load", "write", "wgmma", "read")]
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"schema": "stretto.schedule/1", "loops": [far]}))
    run = Run(capsys, "verify", FOUR_OP, str(file), "--json")
    rules = {v["rule"] for v in run.json("verification")["loops"][0]["violations"]}
    assert rules == {"dependence", "slot", "order"}


# machines ---------------------------------------------------------------------------------


def test_machines_json(capsys: pytest.CaptureFixture[str]) -> None:
    document = Run(capsys, "machines", "blackwell", "--json").json("machine")
    assert len(document["slots"]) == 24
    assert {"slots", "pools", "budgets", "encodings"} <= set(document)
    listed = Run(capsys, "machines", "--json").json("machines")
    assert [m["name"] for m in listed["machines"]] == ["b200", "b200-pipes", "blackwell", "h200"]
    Run(capsys, "machines", "b200-pipes", "--json").json("machine")


def test_machines_text_shows_everything_the_file_states(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Families, tags, cells, tier-2 capacities, fences, products: as JSON has them."""
    document = Run(capsys, "machines", "blackwell", "--json").json("machine")
    out = Run(capsys, "machines", "blackwell").out
    lines = [" ".join(line.split()) for line in out.split("\n")]
    for family in document["families"]:
        latency = family["latency"] or "anchor"
        assert any(line.startswith(f"{family['name']} {latency} ") for line in lines)
    for tag in document["tags"]:
        told = f"0x{tag['tag']:02X} {tag['latency']} {tag['family']} {', '.join(tag['slots'])}"
        assert told in lines
    for cell in document["cells"]:
        told = f"{cell['index']} {cell['value']} {cell['meaning']}"
        assert any(line.startswith(told) for line in lines)
    for section in ("tier2", "fences", "ceilings", "costs", "limits"):
        for figure in document[section]:
            told = f"{figure['name']} {figure['values'][0]:,} "
            assert any(line.startswith(told) for line in lines), figure
    assert "tcgen05 async.tcgen05_mma any tmem tmem or smem smem -" in lines
    assert any("tma_load:" in line and "tag 0x1C, 0x1D" in line for line in lines)


def test_machines_tell_who_issues_what(capsys: pytest.CaptureFixture[str]) -> None:
    document = Run(capsys, "machines", "h200", "--json").json("machine")
    assert [(a["name"], a["issues"], a["replicas"]) for a in document["agents"]] == [
        ("copy", ["tma"], 1),
        ("compute", ["mma", "simt"], 2),
    ]
    lines = [" ".join(line.split()) for line in Run(capsys, "machines", "h200").out.split("\n")]
    assert (
        "wgmma async.wgmma 64 × n register smem or register smem async.wgmma_wait, in its step"
        in lines
    )
    assert "wgmma holds left factors that no step changes, up to 160 registers" in lines
    assert "compute mma, simt 4 240 2" in lines


@pytest.mark.parametrize("name", ["blackwell", "b200-pipes", "h200"])
def test_machines_text_fits_100_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "machines", name)
    assert max(map(len, run.out.splitlines())) <= 100


def test_a_users_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('[machine]\nname = "mine"\n[slots.a]\ncapacity = 1\n')
    assert Run(capsys, "machines", str(file)).out.startswith("mine")
    file.write_text('[machine]\nname = "mine"\n[slots.a]\ncapacity = 0\n')
    run = Run(capsys, "machines", str(file))
    assert run.code == 1
    assert run.err.startswith(f"{file}: slots.a.capacity: error: is 0; expected")


# Bad input --------------------------------------------------------------------------------

BAD_INPUTS: list[tuple[bytes, str]] = [
    (b"", ": error: is empty"),
    (b"{", ":1:2: error: not JSON"),
    (b"\xff\xfe\x00", ": error: is not UTF-8 text"),
    (b"module {\n}", ": error: has no loop that can be read; it has no scf.for"),
    (b'{"schema": "stretto.loop/1", "name": "l", "ops": []}', ": $.ops: error: loop `l` has no"),
    (b"[" * 200_000, ": error: not JSON: nested too deeply"),
    (
        b'{"schema":"stretto.loop/1","name":"l","ops":[{"name":"a","kind":"k","latency":'
        + b"9" * 5000
        + b"}]}",
        ": error: not JSON: a number is too long",
    ),
    (
        b'{"schema": "stretto.loop/1", "name": "\\ud800", "ops": []}',
        ': $.name: error: "\\ud800" is not',
    ),
    (b"\xef\xbb\xbf", ": error: is empty"),
    (b"\xef\xbb\xbfmodule {\n}", ": error: has no loop that can be read"),
    (
        b'{"schema":"stretto.loop/1","name":"l","machine":"turing","ops":[{"name":"a","kind":"k"}]}',
        ": $.machine: error: no machine `turing`; known: b200, b200-pipes, blackwell, h200",
    ),
]


@pytest.mark.parametrize(("content", "message"), BAD_INPUTS)
def test_bad_input(
    content: bytes, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    run = Run(capsys, "bounds", str(file))
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith(f"{file}{message}")
    as_json = Run(capsys, "bounds", str(file), "--json")
    assert as_json.code == 1
    document = json.loads(as_json.out)
    assert document["success"] is False
    assert as_json.err == ""


def test_missing_file_and_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    gone = Run(capsys, "bounds", str(tmp_path / "gone.json"))
    assert gone.err == f"{tmp_path}/gone.json: error: cannot be read: No such file or directory\n"
    folder = Run(capsys, "bounds", str(tmp_path))
    assert "Is a directory" in folder.err
    machine = Run(capsys, "bounds", FOUR_OP, "--machine", "turing", "--json")
    assert machine.code == 1
    known = "known: b200, b200-pipes, blackwell, h200; or the path of a .toml file"
    assert machine.json("error")["errors"] == [f"error: no machine `turing`; {known}"]


def test_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(Path(FOUR_OP).read_text()))
    assert Run(capsys, "bounds", "-").out.startswith("four_op on blackwell: II >= 15")
    monkeypatch.setattr("sys.stdin", io.StringIO("{"))
    assert Run(capsys, "bounds", "-").err.startswith("<stdin>:1:2: error: not JSON")
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeff" + Path(FOUR_OP).read_text()))
    assert Run(capsys, "bounds", "-").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["bounds"],
        ["bounds", "x", "--max-stages", "0"],
        ["bounds", "x", "--wrong"],
        ["bounds", "--wrong", "x"],
        ["bounds", ""],
        ["bounds", "x", "--machine", ""],
        ["bounds", "x", "-o", ""],
        ["verify", "x", ""],
        ["verify", "-", "-"],
        ["machines", ""],
        ["bounds", "x", "--max-stages", "9" * 5000],
    ],
)
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, *arguments)
    assert (run.code, run.out) == (2, "")
    command = arguments[0] if len(arguments) > 1 else ""
    assert run.err.startswith(f"usage: stretto {command}")
    as_json = Run(capsys, *arguments, "--json")
    assert as_json.code == 2
    as_json.json("error")


def test_output_file_is_whole_or_absent(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    run = Run(capsys, "bounds", FOUR_OP, "--json", "-o", str(target))
    assert (run.code, run.out) == (0, "")
    assert json.loads(target.read_text())["success"]
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]
    nowhere = Run(capsys, "bounds", FOUR_OP, "-o", str(tmp_path / "no" / "out.txt"))
    assert nowhere.code == 1
    assert "cannot write" in nowhere.err
    onto_folder = Run(capsys, "bounds", FOUR_OP, "-o", str(tmp_path))
    assert onto_folder.code == 1
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]


def test_output_follows_links(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "real.txt", tmp_path / "link.txt"
    link.symlink_to(real)
    for before in (None, "old"):
        if before is not None:
            real.write_text(before)
            real.chmod(0o640)
        assert Run(capsys, "bounds", FOUR_OP, "-o", str(link)).code == 0
        assert link.is_symlink()
        assert real.read_text().startswith("four_op on blackwell")
    assert real.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in (tmp_path / "there").iterdir()] == ["real.txt"]
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "cannot write" in Run(capsys, "bounds", FOUR_OP, "-o", str(loop)).err
    assert loop.is_symlink()


def test_output_into_a_pipe(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for target in (pipe, link):
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        assert Run(capsys, "bounds", FOUR_OP, "-o", str(target)).code == 0
        assert os.read(reader, 10_000).startswith(b"four_op on blackwell")
        os.close(reader)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert link.is_symlink()


def test_output_dash_is_stdout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Run(capsys, "bounds", FOUR_OP, "-o", "-").out.startswith("four_op on blackwell")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_writing_leaves_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(_: object, __: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    run = Run(capsys, "bounds", FOUR_OP, "-o", str(tmp_path / "out.txt"))
    assert (run.code, run.err) == (130, "stretto: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_control_characters_in_errors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "l.json"
    loop = {"schema": "stretto.loop/1", "name": "l", "machine": "\x1b[2J"}
    file.write_text(json.dumps({**loop, "ops": [{"name": "a", "kind": "k"}]}))
    assert r"no machine `\x1b[2J`" in Run(capsys, "bounds", str(file)).err


def test_ctrl_c_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(COMMANDS, "bounds", interrupted)
    run = Run(capsys, "bounds", FOUR_OP)
    assert (run.code, run.err) == (130, "stretto: interrupted\n")


def test_an_error_that_nobody_foresaw_is_a_line_and_in_tests_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprised(_: object) -> None:
        raise KeyError("%7 is\nnowhere")

    monkeypatch.setitem(COMMANDS, "bounds", surprised)
    with pytest.raises(KeyError):
        main(["bounds", FOUR_OP])
    monkeypatch.delenv("STRETTO_TRACEBACK")
    run = Run(capsys, "bounds", FOUR_OP)
    assert (run.code, run.out, run.err.count("\n")) == (1, "", 1)
    assert run.err.startswith(f"{FOUR_OP}: error: KeyError: '%7 is\\nnowhere' (test_cli.py:")
    assert "this is a bug of Stretto, please report it with the input" in run.err
    run = Run(capsys, "bounds", FOUR_OP, "--json")
    assert (run.code, run.err) == (1, "")
    jsonschema.validate(json.loads(run.out), schema("error"))


# The installed command --------------------------------------------------------------------


def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from stretto.cli.main import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit:\n"
        "    pass\n"
        "heavy = {m.split('.')[0] for m in sys.modules} & {'numpy', 'ortools', 'xdsl', 'rich'}\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    run = shell(sys.executable, "-c", code)
    assert run.returncode == 0, run.stderr
    assert "usage: stretto" in run.stdout


def test_bounds_needs_no_numpy() -> None:
    code = (
        "import sys\n"
        "from stretto.cli.main import main\n"
        f"main(['bounds', {FOUR_OP!r}])\n"
        "sys.exit('numpy' in sys.modules)\n"
    )
    assert shell(sys.executable, "-c", code).returncode == 0


def test_installed_command() -> None:
    assert shell(STRETTO, "--version").stdout.startswith("stretto 0.")
    assert shell(STRETTO, "bounds", FOUR_OP).returncode == 0
    assert shell(STRETTO, "bounds", "gone.json").returncode == 1
    assert shell(STRETTO).returncode == 2


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_while_loading(as_json: bool) -> None:
    code = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'stretto.cli.commands':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from stretto.cli import run\n"
        "run()\n"
    )
    run = shell(sys.executable, "-c", code, *(["--json"] if as_json else []))
    assert run.returncode == 130
    if as_json:
        assert run.stderr == ""
        jsonschema.validate(json.loads(run.stdout), schema("error"))
    else:
        assert (run.stdout, run.stderr) == ("", "stretto: interrupted\n")


def test_the_entry_point_loads_nothing_before_it_can_answer() -> None:
    """Ctrl-C meanwhile would be a traceback: nothing of ours, nothing of Python's from a file."""
    source = Path(stretto.__file__).parent.parent
    code = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(source)!r})\n"
        "before = {*sys.modules}\n"
        "import stretto.cli\n"
        "loaded = {*sys.modules} - before - {'_signal'}\n"
        "sys.exit(str(loaded - {'stretto', 'stretto.cli', 'stretto.starting'} or '') or 0)\n"
    )
    run = shell(sys.executable, "-I", "-S", "-c", code)
    assert run.returncode == 0, run.stderr


def test_ctrl_c_before_anything_is_loaded_is_quiet() -> None:
    code = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'stretto.starting':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "import stretto.cli\n"
    )
    run = shell(sys.executable, "-c", code)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


def test_a_file_name_that_is_no_text() -> None:
    run = subprocess.run(
        [STRETTO.encode(), b"bounds", b"\xff.json", b"--json"], capture_output=True, check=False
    )
    assert (run.returncode, run.stderr) == (1, b"")
    assert "\udcff.json: error: cannot be read" in json.loads(run.stdout)["errors"][0]


def test_a_closed_pipe_is_quiet() -> None:
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(
        [STRETTO, "machines", "blackwell", "--json"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert run.stderr == ""


def test_same_input_same_bytes() -> None:
    outputs = {
        subprocess.run(
            [STRETTO, "bounds", str(EXAMPLES / "attention_backward.json"), "--json"],
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1
