"""Runs the lit tests under `tests/lit`; what lit says is what a failure shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

HERE = Path(__file__).resolve().parents[1]
LIT = HERE / "lit"


def run_lit(exec_root: Path, suite: Path, *options: str) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).parent / "lit"
    command = [str(tool), "-v", "-j", "2", "-D", f"exec_root={exec_root}", *options, str(suite)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def warm() -> Iterator[Path]:
    """A folder of commands that start at once."""
    with TemporaryDirectory() as folder:  # the address of a socket is a short one
        command = [sys.executable, str(HERE / "warm_tools.py"), folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield Path(folder)
            server.terminate()


def test_lit_suite(tmp_path: Path, warm: Path):
    before = sorted(LIT.rglob("*"))
    done = run_lit(tmp_path, LIT, "-D", f"tools={warm}")
    assert done.returncode == 0, done.stdout + done.stderr
    files = len(list(LIT.rglob("*.mlir"))) - len(list(LIT.rglob("Inputs/*.mlir")))
    assert f"Passed: {files} " in done.stdout, done.stdout  # none skipped, none unsupported
    assert sorted(LIT.rglob("*")) == before


def test_lit_fails_where_a_check_does(tmp_path: Path):
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "lit.cfg.py").write_text((LIT / "lit.cfg.py").read_text(encoding="utf-8"))
    wrong = "// RUN: stretto-opt %s | filecheck %s\n// CHECK: there is no such line\n"
    (suite / "wrong.mlir").write_text(wrong)
    done = run_lit(tmp_path / "out", suite)
    assert done.returncode == 1
    assert "FAIL: Stretto :: wrong.mlir" in done.stdout
