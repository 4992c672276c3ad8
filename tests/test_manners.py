"""Misspelt words, quietness, long work, completion, and the package as a program."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

import stretto
from stretto.cli import commands
from stretto.cli.colour import coloured
from stretto.cli.help import GROUPS, OTHERS, SUMMARIES, USUAL, group_of, name_of
from stretto.cli.main import main
from stretto.cli.parser import COMMANDS, make_parser, parse_arguments
from stretto.cli.progress import ProgressLine
from stretto.exact import II, Event
from stretto.solution import Refusal

EXAMPLES = Path(__file__).parent.parent / "examples"
GEMM = str(EXAMPLES / "gemm.mlir")


@pytest.mark.parametrize(
    ("words", "code", "meant"),
    [
        (["schedul", GEMM], 2, "schedule"),
        (["schedule", GEMM, "--mahcine", "h200"], 2, "--machine"),
        (["schedule", GEMM, "--generator", "costbased"], 2, "cost-based"),
        (["schedule", GEMM, "--machine", "h20"], 1, "h200"),
        (["schedule", GEMM, "--loop", "gem"], 1, "gemm"),
        (["schedule", GEMM, "--without", "rua"], 2, "rau"),
    ],
)
def test_what_was_meant_is_suggested(
    words: list[str], code: int, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    assert f"did you mean `{meant}`?" in capsys.readouterr().err


def test_an_option_before_the_command_is_told_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["-q", "schedule", GEMM]) == 2
    assert "`-q` is no option of stretto itself: give it after" in capsys.readouterr().err


def test_nothing_is_suggested_where_nothing_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xyzzy"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_the_package_is_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stretto", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"stretto {stretto.__version__} (")


@pytest.mark.parametrize(
    ("compiled", "said"), [(True, "(compiled core)"), (False, "no compiled core")]
)
def test_the_version_tells_whether_the_core_is_compiled(
    compiled: bool,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stretto.generate.kernel.COMPILED", compiled)
    with pytest.raises(SystemExit):
        main(["--version"])
    assert said in capsys.readouterr().out


# Help -------------------------------------------------------------------------------------


def shown(*words: str) -> str:
    """What is printed on a terminal of 80 columns."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main(list(words))
    return out.getvalue()


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_screen_and_points_to_the_rest(command: str) -> None:
    text = shown(*command.split(), "--help")
    assert len(text.splitlines()) <= 24
    assert "--help-all" in text or all(f" {o}" in text for o in options_of(command))


def options_of(command: str) -> list[str]:
    told = [a for a in make_parser().commands[command].arguments if a.help != argparse.SUPPRESS]
    return [name_of(a) for a in told if a.option_strings and "help" not in name_of(a)]


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("command", COMMANDS)
def test_all_help_has_every_option_under_a_heading(command: str) -> None:
    text = shown(command, "--help-all")
    for option in options_of(command):
        assert re.search(rf"^  .*{option}\b", text, re.MULTILINE), option
        assert group_of(option) != OTHERS, f"{option} needs a place in cli/help.py"
    heads = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert heads == sorted(heads, key=["arguments", *GROUPS].index)


def test_tables_of_help_name_what_there_is() -> None:
    listed = [name for names in SUMMARIES.values() for name in names]
    assert set(COMMANDS) <= set(listed)
    for command in COMMANDS:
        assert set(USUAL[command].split()) <= set(options_of(command))


def test_an_option_of_another_command_is_told_to_be_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["bounds", GEMM, "--prove"]) == 2
    assert "it is an option of schedule, batch" in capsys.readouterr().err


def test_an_option_of_stretto_itself_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--verison", "schedule", GEMM]) == 2
    assert "did you mean `--version`?" in capsys.readouterr().err


# Quiet ------------------------------------------------------------------------------------


def test_quiet_tells_no_notes_but_every_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = commands.Reply(dict, lambda: ["the answer"], ["x.mlir:1:1: warning: a note"])
    monkeypatch.setitem(commands.COMMANDS, "bounds", lambda _: told)
    assert main(["bounds", GEMM, "-q"]) == 0
    assert capsys.readouterr() == ("the answer\n", "")
    assert main(["bounds", GEMM]) == 0
    assert "a note" in capsys.readouterr().err
    told.success = False
    assert main(["bounds", GEMM, "-q"]) == 1
    assert "a note" in capsys.readouterr().err


def test_quiet_and_verbose_contradict_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", GEMM, "-q", "-v"]) == 2
    assert "contradict" in capsys.readouterr().err


# Long work --------------------------------------------------------------------------------


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = monotonic()
        monkeypatch.setattr("stretto.cli.progress.monotonic", lambda: self.now)
        monkeypatch.setattr("stretto.cli.commands.monotonic", lambda: self.now)


def test_in_a_pipe_a_line_comes_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    arguments = parse_arguments(["explain", GEMM])
    with commands._watched("gemm", arguments) as tell:  # pyright: ignore[reportPrivateUsage]
        assert tell is not None
        began = clock.now
        for second in range(26):
            clock.now = began + second + 0.3
            tell(Refusal(7, "no"))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "stretto: gemm: trying II 7; 10 s of 60 s at most",
        "stretto: gemm: trying II 7; 20 s of 60 s at most",
    ]


def test_quiet_work_says_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)
    arguments = parse_arguments(["schedule", GEMM, "-q"])
    with commands._watched("gemm", arguments) as tell:  # pyright: ignore[reportPrivateUsage]
        assert tell is None
    assert not capsys.readouterr().err


def test_the_moving_line_has_an_estimate_and_goes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    monkeypatch.setenv("COLUMNS", "60")
    with ProgressLine("gemm", False, 30.0) as line:
        line(9)
        clock.now += 4.3
        line(Event(II, 8, 7, 9))
    out = capsys.readouterr().err
    first, second, last = out.split("\r")[1:4]
    assert first.rstrip() == "gemm: trying II 9, best so far 9"
    assert second.rstrip() == "gemm: solving II 8, bound 7, best so far 9; 4 s of 30 s at"
    assert not last.strip()
    assert max(map(len, (first, second, last))) <= 59


def test_the_line_never_tells_more_time_than_its_limit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    with ProgressLine("gemm", False, 5.0) as line:
        clock.now += 6.0
        line(9)
    assert "; the limit of 5 s is over, finishing" in capsys.readouterr().err


def test_time_is_counted_from_where_its_limit_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    arguments = parse_arguments(["schedule", GEMM, "--time-limit", "30"])
    clock.now += 20
    with commands._watched("second", arguments) as tell:  # pyright: ignore[reportPrivateUsage]
        assert isinstance(tell, commands._Patient)  # pyright: ignore[reportPrivateUsage]
        assert tell.began == arguments.began
    unlimited = parse_arguments(["schedule", GEMM, "--prove"])
    with commands._watched("gemm", unlimited) as tell:  # pyright: ignore[reportPrivateUsage]
        assert isinstance(tell, commands._Patient)  # pyright: ignore[reportPrivateUsage]
        assert tell.most is None


def test_an_explanation_has_a_limit_unless_another_is_given() -> None:
    assert parse_arguments(["explain", GEMM]).time_limit == 60
    assert parse_arguments(["explain", GEMM, "--time-limit", "5"]).time_limit == 5
    assert parse_arguments(["schedule", GEMM]).time_limit is None


# Terminals --------------------------------------------------------------------------------


def test_colours_change_nothing_but_colours() -> None:
    lines = ["gemm: II 4: optimal", "  TC *  100%  ███·", "  note: it is", "  a * b", ""]
    shown = coloured(lines)
    plain = [_without_colours(line) for line in shown]
    assert plain == lines
    assert shown[0].startswith("\x1b[1m")
    assert "\x1b[34m███\x1b[0m·" in shown[1]
    assert shown[4] == ""


def _without_colours(line: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", line)


# Completion -------------------------------------------------------------------------------


def completed(script: str, *words: str) -> list[str]:
    """What bash offers for the last word."""
    quoted = " ".join(f"'{word}'" for word in ("stretto", *words))
    asks = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _stretto"
    asks += "; printf '%s\\n' \"${COMPREPLY[@]}\""
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{asks}"], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_bash_completes_commands_options_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert shutil.which("bash")
    assert completed(script, "sched") == ["schedule"]
    assert completed(script, "schedule", "x", "--mach") == ["--machine"]
    assert completed(script, "schedule", "x", "--machine", "h") == ["h200"]
    assert completed(script, "schedule", "x", "--format", "") == [
        "text",
        "json",
        "csv",
        "html",
        "trace",
        "svg",
    ]
    assert set(COMMANDS) < set(completed(script, ""))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_knows_every_command_and_option(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for name in COMMANDS:
        assert name in script
    assert ("-l max-stages" if shell == "fish" else "--max-stages") in script
