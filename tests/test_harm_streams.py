"""Standard streams that are full, closed or left; disks that are full; Ctrl-C at every moment."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
FOUR_OP = str(ROOT / "examples" / "four_op.json")
KERNEL = str(ROOT / "examples" / "four_op.mlir")

COMMANDS = {
    "text": [str(BIN / "stretto"), "bounds", FOUR_OP],
    "json": [str(BIN / "stretto"), "bounds", FOUR_OP, "--json"],
    "help": [str(BIN / "stretto"), "--help"],
    "opt": [str(BIN / "stretto-opt"), KERNEL],
    "opt help": [str(BIN / "stretto-opt"), "--help"],
}


def sh(redirection: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command with streams as a shell has them; what it says on stderr."""
    line = ["sh", "-c", f'"$@" {redirection}', "sh", *command]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_standard_output_is_full(name: str) -> None:
    done = sh("> /dev/full", *COMMANDS[name])
    program = Path(COMMANDS[name][0]).name
    told = f"{program}: error: cannot write on standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


@pytest.mark.parametrize("name", COMMANDS)
def test_standard_output_is_closed(name: str) -> None:
    done = sh(">&-", *COMMANDS[name])
    program = Path(COMMANDS[name][0]).name
    told = f"{program}: error: cannot write on standard output: it is closed\n"
    assert (done.returncode, done.stderr) == (1, told)


@pytest.mark.parametrize("name", ["json", "opt"])
def test_all_streams_are_gone(name: str) -> None:
    assert sh("> /dev/full 2> /dev/full", *COMMANDS[name]).returncode == 1
    assert sh(">&- 2>&- <&-", *COMMANDS[name]).returncode == 1


def test_standard_error_is_gone() -> None:
    done = sh("2>&-", str(BIN / "stretto"), "bounds", "none.json", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["success"] is False
    assert sh("2> /dev/full", str(BIN / "stretto"), "bounds", "none.json").returncode == 1
    assert sh("2> /dev/full", str(BIN / "stretto-opt"), "none.mlir").returncode == 1
    assert sh("2> /dev/full", str(BIN / "stretto"), "schedule", FOUR_OP, "-v").returncode == 0


def test_a_file_needs_no_standard_output(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = sh(">&-", *COMMANDS["json"], "-o", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(out.read_text())["success"] is True


@pytest.mark.parametrize("name", ["stretto", "stretto-opt"])
def test_standard_input_is_closed(name: str) -> None:
    arguments = ["bounds", "-"] if name == "stretto" else ["-"]
    done = sh("<&-", str(BIN / name), *arguments)
    told = "<stdin>: error: cannot be read: standard input is closed\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)


def test_an_endless_standard_input() -> None:
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        done = subprocess.run(
            [str(BIN / "stretto"), "bounds", "-"],
            stdin=endless.stdout,
            capture_output=True,
            text=True,
            check=False,
        )
        endless.kill()
    told = "<stdin>: error: is too large; at most 16,777,216 bytes are read\n"
    assert (done.returncode, done.stderr) == (1, told)


@pytest.mark.parametrize("name", ["json", "opt"])
def test_a_full_disk_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("as it was")
    done = subprocess.run(
        [*COMMANDS[name], "-o", str(out)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert done.returncode == 1
    assert f"cannot write {out}: File too large" in done.stderr + done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert out.read_text() == "as it was"


# Ctrl-C -----------------------------------------------------------------------------------

START = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = {argv!r}
loaded = 0
class Finder:
    def find_spec(self, name, *_):
        global loaded
        loaded += 1
        if loaded == {moment}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from {module} import run
run()
"""


@pytest.mark.parametrize("moment", [9, 25, 60])
@pytest.mark.parametrize(
    ("module", "argv"),
    [
        ("stretto.cli", ["stretto", "bounds", FOUR_OP]),
        ("stretto.ir.opt.__main__", ["stretto-opt", KERNEL]),
    ],
)
def test_ctrl_c_while_the_nth_module_loads(module: str, argv: list[str], moment: int) -> None:
    """The entry point itself takes a few modules; from there on, Ctrl-C is expected."""
    code = START.format(argv=argv, module=module, moment=moment)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == f"{argv[0]}: interrupted\n"


def test_ctrl_c_that_is_ignored_stays_so() -> None:
    code = START.replace("signal.default_int_handler", "signal.SIG_IGN")
    code = code.format(argv=["stretto", "bounds", FOUR_OP], module="stretto.cli", moment=9)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_later_is_answered_too() -> None:
    argv = ["stretto", "bounds", "-"]
    code = START.format(argv=argv, module="stretto.cli", moment=0)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        for _ in range(600):  # until it waits for its input
            if _sleeps(waiting.pid):
                break
            time.sleep(0.05)
        os.kill(waiting.pid, signal.SIGINT)
        assert waiting.stderr is not None
        told = waiting.stderr.read()
    assert (waiting.returncode, told) == (130, "stretto: interrupted\n")


def _sleeps(pid: int) -> bool:
    try:
        return "pipe" in Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        time.sleep(2)
        return True
