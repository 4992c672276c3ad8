"""Batches: a row for every loop, whatever happens to it, and none lost or made twice."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from test_ddg import nested

import stretto
from outside import environment, install
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.loop.json import dump_loop, loop_to_json
from stretto.machine import load_machine
from stretto.many import batch
from stretto.many.batch import BatchRun
from stretto.many.inputs import Inputs, Unit
from stretto.many.work import Several, Work, Worked
from stretto.report import on_machine
from stretto.report.batch import COLUMNS, BatchSummary, scheduled, time_left
from stretto.solution import Schedule
from stretto.solution.views import analyse
from stretto.verification import verify

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMAND = [sys.executable, "-c", "from stretto.cli import run; run()", "batch"]


def schema(name: str) -> Any:
    folder = resources.files("stretto.report").joinpath("schemas")
    return json.loads(folder.joinpath(f"{name}.schema.json").read_text("utf-8"))


VALID: Any = jsonschema.Draft202012Validator(schema("batch-row"))

LOOPS = list(stretto.generate_loops(60, seed=3, ops=(2, 6)))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """Sixty loops, one a line."""
    file = tmp_path / "loops.jsonl"
    file.write_text("".join(json.dumps(loop_to_json(loop)) + "\n" for loop in LOOPS))
    return file


def dump(kernel: str) -> dict[str, Any]:
    """A document of two loops."""
    return {**nested(), "kernel": {"name": kernel, "args": []}}


def rows_of(file: Path) -> list[dict[str, Any]]:
    text = file.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        VALID.validate(row)
    return rows


def legal(loop: stretto.Loop, row: dict[str, Any]) -> bool:
    """What the verifier says of the schedule of a row, which it is given as any other."""
    ready = stretto.prepare(loop)
    groups = tuple(tuple(group) for group in row["fused"])
    found = Schedule(row["ii"], row["starts"], groups)
    return verify(ready.loop, ready.machine, analyse(ready.loop, ready.machine, found)) == ()


def complete(rows: Iterable[dict[str, Any]]) -> bool:
    """Whether all sixty are there, once each, with legal schedules of the right loops."""
    by_line = {int(row["source"].rpartition(":")[2]): row for row in rows}
    assert sorted(by_line) == list(range(1, 61))
    return all(
        row["loop"] == loop.name and legal(loop, row)
        for loop, (_, row) in zip(LOOPS, sorted(by_line.items()), strict=True)
    )


# Inputs -----------------------------------------------------------------------------------


def test_every_loop_of_every_format_in_a_folder_is_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    for name in ("four_op.json", "gemm.mlir", "four_op.schedule.json", "gemm.py"):
        (folder / name).write_bytes((EXAMPLES / name).read_bytes())
    for name in ("triton/softmax.ttir", "cutile/layer_norm.tileirbc"):
        (folder / "deep" / Path(name).name).write_bytes((EXAMPLES / name).read_bytes())
    out = tmp_path / "rows.jsonl"
    assert main(["batch", str(folder), "-o", str(out), "-j", "2", "--json"]) == 0
    found = [(row["source"], row["index"], row["of"], row["loop"]) for row in rows_of(out)]
    assert sorted(found) == [
        (f"{folder}/deep/layer_norm.tileirbc", 0, 3, "layer_norm.0"),
        (f"{folder}/deep/layer_norm.tileirbc", 1, 3, "layer_norm.1"),
        (f"{folder}/deep/layer_norm.tileirbc", 2, 3, "layer_norm.2"),
        (f"{folder}/deep/softmax.ttir", 0, 1, "softmax"),
        (f"{folder}/four_op.json", 0, 1, "four_op"),
        (f"{folder}/gemm.mlir", 0, 1, "gemm"),
    ]
    summary = json.loads(capsys.readouterr().out)
    jsonschema.validate(summary, schema("batch"))
    assert (summary["loops"], summary["failed"]) == (6, 0)
    assert summary["notes"] == ["2 files of other kinds were left alone"]


def test_a_row_says_what_schedule_says(tmp_path: Path) -> None:
    (loop,) = stretto.read(EXAMPLES / "attention_forward.json")
    (row,) = stretto.batch([EXAMPLES / "attention_forward.json"], jobs=1)
    VALID.validate(row)
    found = stretto.schedule(loop)
    assert (row["ii"], row["starts"], row["stages"]) == (found.ii, found.starts, found.stage_count)
    assert (row["mii"], row["limiter"], row["optimal"]) == (1325, "recurrence", True)
    assert row["memory"] == {space.space: space.used for space in found.memory}
    assert tmp_path.joinpath("cache", "answers-2.sqlite").exists()


def test_a_document_a_line_a_pattern_and_a_name_twice(tmp_path: Path, lines: Path) -> None:
    (tmp_path / "one.json").write_text(dump_loop(LOOPS[0]))
    (tmp_path / "line.json").write_text(json.dumps(loop_to_json(LOOPS[1])) + "\n\n")
    given = [str(tmp_path / "*.json*"), str(tmp_path / "one.json"), str(lines)]
    units = list(Inputs(given))
    assert [unit.number for unit in units] == list(range(1, 63))
    sources = [Path(unit.file).name for unit in units if unit.line is None]
    assert sources == ["line.json", "one.json"]
    assert [unit.line for unit in units if unit.line] == list(range(1, 61))
    assert stretto.read(tmp_path / "line.json").loops == (LOOPS[1],)


def test_lines_come_from_standard_input_too(lines: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    with lines.open("rb") as text:
        subprocess.run([*COMMAND, "-", "-o", str(out), "-j", "1"], stdin=text, check=True)
    assert complete(rows_of(out))
    assert {row["source"].rpartition(":")[0] for row in rows_of(out)} == {"<stdin>"}


def test_blank_lines_are_passed_over_and_a_bad_line_is_a_row(tmp_path: Path) -> None:
    file = tmp_path / "loops.jsonl"
    good = json.dumps(loop_to_json(LOOPS[0]))
    file.write_text(f'{good}\n\n  \n{{"schema": "stretto.loop/1", "na\n{good}\nnull\n')
    rows = {row["source"]: row for row in stretto.batch([file], jobs=1)}
    assert [Path(place).name for place, row in rows.items() if row["success"]] == [
        "loops.jsonl:1",
        "loops.jsonl:5",
    ]
    assert rows[f"{file}:4"]["errors"] == [
        f"{file}:4:30: error: not JSON: Unterminated string starting at"
    ]
    assert rows[f"{file}:6"]["errors"][0].startswith(f"{file}:6: $: error: is no loop")


def test_what_is_written_among_the_inputs_is_not_read(lines: Path, tmp_path: Path) -> None:
    out = lines.parent / "rows.jsonl"
    (tmp_path / "older.jsonl").write_text('{"schema": "stretto.batch-row/1"}\n' * 2)
    assert len(list(stretto.batch([tmp_path], out, jobs=2))) == 60
    assert complete(rows_of(out))
    assert list(stretto.batch([tmp_path], out, jobs=2)) == []


def test_what_a_shell_hands_over_is_read_line_by_line(lines: Path) -> None:
    program = " ".join(map(shlex.quote, COMMAND))
    command = f"{program} <(head -3 {shlex.quote(str(lines))}) -j 1 --no-cache"
    shell = ["bash", "-c", command]
    found = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert [json.loads(line)["loop"] for line in found.stdout.splitlines()] == [
        loop.name for loop in LOOPS[:3]
    ]


def test_a_file_whose_name_is_no_text_is_a_file(tmp_path: Path) -> None:
    name = os.fsdecode(b"l\xff.json")
    (tmp_path / name).write_text(dump_loop(LOOPS[0]))
    out = tmp_path / "rows"
    for fresh in (1, 0):
        assert len(list(stretto.batch([tmp_path], out, jobs=1))) == fresh
        (row,) = rows_of(out)
        assert row["success"]
        assert row["source"].endswith(name)


def test_loops_at_hand_are_inputs() -> None:
    rows: list[dict[str, Any]] = list(stretto.batch(iter(LOOPS[:5]), jobs=1, cache=False))
    assert sorted(row["loop"] for row in rows) == sorted(loop.name for loop in LOOPS[:5])
    assert all(legal(LOOPS[int(row["number"]) - 1], row) for row in rows)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("none.json", "none.json: error: cannot be read: No such file or directory"),
        ("*.none", "*.none: error: has no file with loops"),
        ("empty", "empty: error: has no file with loops; a folder is searched for .json, "),
    ],
)
def test_an_input_that_is_not_there_is_said_before_anything_is_done(
    given: str,
    error: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert main(["batch", str(EXAMPLES / "gemm.json"), given, "-o", "rows.jsonl"]) == 1
    assert capsys.readouterr().err.startswith(error)
    assert not (tmp_path / "rows.jsonl").exists()


def test_options_reach_the_schedules(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    arguments = ["batch", str(EXAMPLES / "gemm.json"), "-o", str(out), "-j", "1"]
    assert main([*arguments, "--machine", "blackwell", "--generator", "serial"]) == 0
    (row,) = rows_of(out)
    assert (row["machine"], row["generator"], row["stages"]) == ("blackwell", "serial", 1)
    assert next(stretto.batch([EXAMPLES / "gemm.json"], jobs=1, max_stages=2))["stages"] == 2


def test_an_option_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(StrettoError, match="no option `speed`"):
        stretto.batch([], speed=3)


# What goes wrong --------------------------------------------------------------------------


def test_a_loop_that_fails_is_a_row_and_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text("")
    (tmp_path / "c.mlir").write_text("func.func @f() {")
    out = tmp_path / "rows.jsonl"
    given = [str(tmp_path / name) for name in ("a.json", "b.json", "c.mlir")]
    assert main(["batch", *given, str(EXAMPLES / "four_op.json"), "-o", str(out), "-j", "1"]) == 1
    rows = {Path(row["source"]).name: row for row in rows_of(out)}
    assert {name: row["success"] for name, row in rows.items()} == {
        "a.json": False,
        "b.json": False,
        "c.mlir": False,
        "four_op.json": True,
    }
    assert re.match(r".*c\.mlir:1:\d+: error: ", rows["c.mlir"]["errors"][0])
    told = capsys.readouterr().out
    assert "scheduled  1  every schedule verified" in told
    assert "failed     3" in told


def test_a_loop_without_a_schedule_says_why() -> None:
    (row,) = stretto.batch([EXAMPLES / "four_op.json"], jobs=1, max_ii=14, cache=False)
    VALID.validate(row)
    assert row["errors"] == [
        "error: four_op: no schedule was found: below the MII 15 (resource bound: slot tp_smem_wr)"
    ]


@dataclass(frozen=True, slots=True)
class Misbehaving(Work):
    """Work during which things happen, by the name of the loop."""

    def __call__(self, unit: Unit) -> Worked | Several:
        if b'"dies"' in unit.data:
            os._exit(3)
        if b"its first dies" in unit.data and unit.index == 0:
            os._exit(4)
        if b'"hangs"' in unit.data:
            time.sleep(600)
        if b'"breaks"' in unit.data:
            raise ZeroDivisionError("by zero")
        # Named, since a dataclass with slots is another class than the one `super` would mean.
        return Work.__call__(self, unit)


def test_a_loop_that_takes_its_process_with_it_or_never_ends_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "MARGIN", 1.0)
    documents = [loop_to_json(loop) for loop in LOOPS[:8]]
    for place, name in ((1, "dies"), (3, "hangs"), (5, "breaks")):
        documents[place]["name"] = name
    file = tmp_path / "loops.jsonl"
    file.write_text("".join(json.dumps(document) + "\n" for document in documents))
    work = Misbehaving(time_limit=0.5)
    run = BatchRun(Inputs([file]), work, jobs=2)
    rows = {row["number"]: row for row in run.rows()}
    for row in rows.values():
        VALID.validate(row)
    assert sorted(rows) == list(range(1, 9))
    assert {number: row["errors"][0] for number, row in rows.items() if not row["success"]} == {
        2: "error: its process ended, exit code 3",
        4: "error: no answer after 1.5 s: its process was ended",
        6: "error: ZeroDivisionError: by zero",
    }
    assert (run.summary.loops, run.summary.failed) == (8, 3)


def test_one_bad_loop_of_a_document_costs_none_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(json.dumps(dump("its first dies")))
    run = BatchRun(Inputs([tmp_path / "dump.json"]), Misbehaving(), jobs=1)
    rows = {row["index"]: row for row in run.rows()}
    assert {index: (row["success"], row["of"]) for index, row in rows.items()} == {
        0: (False, 2),
        1: (True, 2),
    }
    assert rows[0]["errors"] == ["error: its process ended, exit code 4"]


def test_a_generator_of_others_is_asked_in_every_process(lines: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    command = [*COMMAND, str(lines), "-o", str(out), "-j", "2", "--generator", "one-by-one"]
    (tmp_path / "packages").mkdir()
    around = environment(install(tmp_path / "packages"))
    subprocess.run(command, check=True, env=around, stdout=subprocess.DEVNULL)
    assert complete(rows_of(out))
    assert {row["generator"] for row in rows_of(out)} == {"one-by-one"}


# Ended and gone on with -------------------------------------------------------------------


def test_a_run_that_is_killed_at_any_moment_goes_on_where_it_was(
    lines: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    command = [*COMMAND, str(lines), "-o", str(out), "-j", "2", "--no-cache"]
    rng = random.Random(11)
    seen: list[bytes] = [b""]
    kills = 0
    while kills < 4:
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        began = out.stat().st_size if out.exists() else 0
        wanted = began + rng.randint(1, 9_000)
        while run.poll() is None and (not out.exists() or out.stat().st_size < wanted):
            time.sleep(0.001)
        time.sleep(rng.random() * 0.02)
        run.send_signal(signal.SIGKILL)
        run.wait()
        kills += 1
        text = out.read_bytes()
        assert text.startswith(seen[-1][: seen[-1].rfind(b"\n") + 1])
        seen.append(text)
    assert len(seen[-1]) > len(seen[1])
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    rows = rows_of(out)
    assert len(rows) == 60
    assert len({row["id"] for row in rows}) == 60
    assert complete(rows)


def test_a_torn_line_is_made_again_wherever_it_is_torn(lines: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    list(stretto.batch([lines], out, jobs=2))
    whole = out.read_bytes()
    rng = random.Random(5)
    for cut in (0, 1, 30, len(whole) - 1, *(rng.randrange(len(whole)) for _ in range(6))):
        out.write_bytes(whole[:cut])
        left = 60 - whole[:cut].count(b"\n")
        assert len(list(stretto.batch([lines], out, jobs=1))) == left
        rows = rows_of(out)
        assert len(rows) == 60
        assert complete(rows)


def test_a_complete_run_has_nothing_left_to_do(
    lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.jsonl"
    arguments = ["batch", str(lines), "-o", str(out), "-j", "2"]
    assert main(arguments) == 0
    before = out.read_bytes()
    assert main(arguments) == 0
    assert out.read_bytes() == before
    assert "0 loops in" in (told := capsys.readouterr().out)
    assert "; 60 were there already" in told


def test_a_document_of_several_loops_goes_on_in_its_midst(tmp_path: Path) -> None:
    file, out = tmp_path / "dump.json", tmp_path / "rows.jsonl"
    file.write_text(json.dumps(dump("k")))
    list(stretto.batch([file], out, jobs=1))
    first, second = out.read_text().splitlines(keepends=True)
    for there in (first, second, ""):
        out.write_text(there)
        list(stretto.batch([file], out, jobs=1))
        assert sorted((row["index"], row["of"]) for row in rows_of(out)) == [(0, 2), (1, 2)]


def test_loops_that_are_equal_are_a_row_each_whatever_ended_the_run(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    running = stretto.batch(LOOPS[:1] * 3, out, jobs=1)
    next(running)
    running.close()
    assert len(rows_of(out)) == 1
    list(stretto.batch(LOOPS[:1] * 3, out, jobs=1))
    assert sorted(row["number"] for row in rows_of(out)) == [1, 2, 3]


def test_a_file_that_changed_is_another_loop(tmp_path: Path) -> None:
    file, out = tmp_path / "loop.json", tmp_path / "rows.jsonl"
    for loop in LOOPS[:2]:
        file.write_text(dump_loop(loop))
        assert [row["loop"] for row in stretto.batch([file], out, jobs=1)] == [loop.name]
    assert len(rows_of(out)) == 2


def test_rows_of_other_settings_are_not_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.jsonl"
    arguments = ["batch", str(EXAMPLES / "four_op.json"), "-o", str(out), "-j", "1"]
    assert main(arguments) == 0
    before = out.read_bytes()
    for more in (["--prove"], ["--machine", "blackwell"], ["--time-limit", "5"]):
        assert main([*arguments, *more]) == 1
        assert "rows.jsonl:1: error: has rows of other options" in capsys.readouterr().err
        assert out.read_bytes() == before
    assert main([*arguments, "-j", "2", "--no-cache"]) == 0


@pytest.mark.parametrize("text", ["my thesis\n", "my thesis", "{}\n", "[1]\n{}", "\n"])
def test_a_file_that_is_something_else_is_not_touched(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "thesis.txt"
    out.write_text(text)
    assert main(["batch", str(EXAMPLES / "four_op.json"), "-o", str(out)]) == 1
    assert (
        "thesis.txt:1: error: is there already, and is no file of rows" in capsys.readouterr().err
    )
    assert out.read_text() == text


def test_rows_that_lie_in_the_folder_that_is_searched_are_no_input(tmp_path: Path) -> None:
    folder = tmp_path / "loops"
    folder.mkdir()
    (folder / "a.json").write_text(dump_loop(LOOPS[0]))
    (folder / "z.json").write_text(dump_loop(LOOPS[1]))
    for name in ("rows.jsonl", "rows.jsonl", "others.jsonl"):
        list(stretto.batch([folder], folder / name, jobs=1))
        rows = rows_of(folder / name)
        assert sorted(Path(row["source"]).name for row in rows) == ["a.json", "z.json"]


def test_the_rows_replace_no_input_and_the_table_no_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop, out = tmp_path / "a.json", tmp_path / "rows.jsonl"
    loop.write_text(dump_loop(LOOPS[0]))
    assert main(["batch", str(loop), "-o", str(loop)]) == 1
    assert "a.json is an input, and cannot take the rows" in capsys.readouterr().err
    assert main(["batch", str(loop), "-o", str(out), "--csv", f"{tmp_path}/./rows.jsonl"]) == 2
    assert "-o and --csv are the same file" in capsys.readouterr().err
    assert not out.exists()


def test_what_else_lies_in_a_folder_is_a_row_and_not_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "loops"
    folder.mkdir()
    (folder / "lost.json").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.json")
    name = os.fsdecode(b"not utf-8 \xff.json")
    (folder / name).write_text(dump_loop(LOOPS[0]))
    out, table = tmp_path / "rows.jsonl", tmp_path / "rows.csv"
    assert main(["batch", str(folder), "-o", str(out), "--csv", str(table), "-j", "1"]) == 1
    rows = {Path(row["source"]).name: row for row in rows_of(out)}
    assert {name: row["success"] for name, row in rows.items()} == {
        "lost.json": False,
        "pipe.json": False,
        name: True,
    }
    assert "No such file" in rows["lost.json"]["errors"][0]
    assert "named pipe" in rows["pipe.json"]["errors"][0]
    assert list(stretto.batch([folder], out, jobs=1, time_limit=60.0)) == []


@pytest.mark.parametrize(
    "change",
    [{"id": "f" * 20}, {"id": "-1"}, {"number": None}, {"errors": 1}, {"success": 1}, {"ii": None}],
)
def test_a_line_that_only_begins_as_a_row_does_is_none(
    change: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, table = tmp_path / "rows.jsonl", tmp_path / "rows.csv"
    command = ["batch", str(EXAMPLES / "four_op.json"), "-o", str(out), "--csv", str(table)]
    assert main([*command, "-j", "1"]) == 0
    out.write_text(out.read_text() + json.dumps({**rows_of(out)[0], **change}) + "\n")
    assert main(command) == 1
    assert "rows.jsonl:2: error: is there already" in capsys.readouterr().err


def test_room_that_a_power_cut_left_unwritten_is_cut_off(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    list(stretto.batch([EXAMPLES / "four_op.json"], out, jobs=1))
    whole = out.read_bytes()
    for torn in (bytes(512), whole[:40] + bytes(512)):
        out.write_bytes(whole + torn)
        assert list(stretto.batch([EXAMPLES / "four_op.json"], out, jobs=1)) == []
        assert out.read_bytes() == whole


def test_processes_that_may_take_next_to_nothing_end_without_a_traceback() -> None:
    command = [*COMMAND, str(EXAMPLES / "gemm.json"), "--memory-limit", "1", "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert "error: " in done.stderr


def test_two_runs_do_not_write_into_one_file(lines: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    running = stretto.batch([lines], out, jobs=1)
    next(running)
    with pytest.raises(StrettoError, match="another batch writes there"):
        next(stretto.batch([lines], out, jobs=1))
    assert len(list(running)) == 59
    assert complete(rows_of(out))


def test_ctrl_c_while_workers_start_prints_no_traceback(lines: Path, tmp_path: Path) -> None:
    """They were interrupted before they could leave that to the parent: one run in five."""
    for moment in (0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.8):
        command = [*COMMAND, str(lines), "-o", str(tmp_path / f"{moment}.jsonl"), "-j", "2"]
        run = subprocess.Popen(
            [*command, "--no-cache"], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        time.sleep(moment)
        os.killpg(run.pid, signal.SIGINT)
        told = run.communicate(timeout=20)[1]
        assert all(line.startswith("stretto: ") for line in told.splitlines()), told


def test_ctrl_c_leaves_whole_rows_and_says_how_to_go_on(lines: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    command = [*COMMAND, str(lines), "-o", str(out), "-j", "2", "--no-cache"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not out.exists() or not out.read_bytes():
        time.sleep(0.005)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: all of them
    told = run.communicate(timeout=20)[1]
    assert run.returncode == 130
    assert re.fullmatch(
        r"stretto: \d+ rows are in .*rows\.jsonl; the same command goes on from there\n"
        r"stretto: interrupted\n",
        told,
    )
    assert rows_of(out)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert complete(rows_of(out))


# Out --------------------------------------------------------------------------------------


def test_rows_go_to_standard_output_and_the_summary_to_the_other(lines: Path) -> None:
    command = [*COMMAND, str(lines), "-j", "2"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert complete(json.loads(line) for line in found.stdout.splitlines())
    assert found.stderr.startswith("60 loops in ")


def test_a_reader_that_leaves_ends_it_quietly(lines: Path) -> None:
    run = f"{' '.join(map(repr, COMMAND))} {lines} -j 2 | head -1"
    found = subprocess.run(run, shell=True, capture_output=True, text=True, check=True)
    assert (found.stdout.count("\n"), found.stderr) == (1, "")


def test_the_table_is_in_the_order_of_the_inputs(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"schema": "stretto.loop/1"}')
    out, table = tmp_path / "rows.jsonl", tmp_path / "rows.csv"
    (tmp_path / "dump.json").write_text(json.dumps(dump("k")))
    names = [EXAMPLES / "gemm.json", tmp_path / "dump.json", EXAMPLES / "four_op.json"]
    given = [str(bad), *(str(name) for name in names)]
    assert main(["batch", *given, "-o", str(out), "--csv", str(table), "-j", "2"]) == 1
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    found = [(row["loop"], row["ii"], row["success"], row["optimal"], row["ops"]) for row in rows]
    assert found[0] == ("", "", "false", "", "")
    assert rows[0]["error"].startswith(f"{bad}: ")
    assert found[1] == ("gemm", "256", "true", "true", "4")
    assert [row["loop"] for row in rows[2:]] == ["k.0", "k.1", "four_op"]


def test_rows_and_table_are_two_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "examples", "-o", "x", "--csv", "x"]) == 2
    assert "-o and --csv are the same file" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--json"], ["--csv", "rows.csv"]])
def test_what_is_made_of_the_rows_needs_them_in_a_file(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["batch", "examples", *option]) == 2
    told = capsys.readouterr()
    assert "needs a file for the rows: -o FILE.jsonl" in told.err + told.out


def test_what_cannot_be_written_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["batch", str(EXAMPLES / "gemm.json"), "-o", "/nowhere/rows.jsonl"]
    assert main(arguments) == 1
    told = "error: cannot write /nowhere/rows.jsonl: No such file or directory\n"
    assert capsys.readouterr().err == told
    assert main([*arguments[:-1], "/dev/full", "-j", "1"]) == 1
    assert "cannot write /dev/full: No space left on device" in capsys.readouterr().err


def test_a_store_that_is_of_no_use_is_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cache").write_text("in the way")
    out = tmp_path / "rows.jsonl"
    assert main(["batch", str(EXAMPLES / "gemm.json"), "-o", str(out), "-j", "1"]) == 0
    assert "note: the store of answers," in capsys.readouterr().out


# Many -------------------------------------------------------------------------------------


class AtOnce(Executor):
    """Runs a task when it is handed over."""

    def submit(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, function: Callable[..., Any], /, *given: Any
    ) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*given))
        return future


@dataclass(frozen=True, slots=True)
class Nothing(Work):
    """Work that is done at once, with the same row for all."""

    def __call__(self, unit: Unit) -> Worked | Several:
        assert unit.data
        return Worked(
            scheduled(KNOWN, on_machine(load_machine("blackwell"), "as asked"), False, [])
        )


KNOWN = stretto.schedule(LOOPS[0])


def test_memory_does_not_grow_with_the_number_of_loops(tmp_path: Path) -> None:
    line = json.dumps(loop_to_json(LOOPS[0])) + "\n"

    def peak(count: int) -> int:
        file = tmp_path / f"{count}.jsonl"
        file.write_text(line * count)
        tracemalloc.start()
        run = BatchRun(Inputs([file]), Nothing(), AtOnce())
        assert sum(1 for _ in run.rows(str(tmp_path / f"{count}.rows"))) == count
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(10)
    assert peak(1500) - peak(300) < 30_000


def test_an_executor_of_python_will_do(lines: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    with ThreadPoolExecutor(2) as executor:
        assert len(list(stretto.batch([lines], out, executor=executor))) == 60
    assert complete(rows_of(out))


def test_a_line_of_progress_has_rate_share_failures_and_estimate() -> None:
    assert time_left(0.25, 10) == "30 s left"
    assert time_left(0.01, 60) == "99 min left"
    assert time_left(0.001, 60) == "16.6 h left"
    assert time_left(0.0, 60) == time_left(0.5, 0.1) == ""
    summary = BatchSummary(loops=1500, scheduled=1500, found_before=500, seconds=2.0)
    assert summary.rate == 500
    assert summary.to_text()[0] == "1,000 loops in 2.0 s (500 a second); 500 were there already"


def test_progress_is_told_where_it_is_asked_for(lines: Path, tmp_path: Path) -> None:
    text = "from stretto.cli import batch, run; batch.LINES = 0.0; run()"
    command = [sys.executable, "-c", text, "batch", str(lines), "-o", str(tmp_path / "r"), "-v"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    told = found.stderr.splitlines()
    assert len(told) == 60
    assert re.fullmatch(r"60 loops, 100% of the input, [\d,]+ a second(, \d+ s left)?", told[-1])


class Terminal(io.StringIO):
    """Standard error that somebody looks at."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_moves_and_is_gone_at_the_end(
    lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("stretto.cli.batch.MOVES", 0.0)
    assert main(["batch", str(lines), "-o", str(tmp_path / "rows.jsonl"), "-j", "2"]) == 0
    told = terminal.getvalue().split("\r")
    assert told[1].startswith("1 loop, ")
    assert re.match(r"60 loops, 100% of the input, [\d,]+ a second", told[-3])
    assert (told[-2].strip(), told[-1]) == ("", "")
    assert "\n" not in terminal.getvalue()
