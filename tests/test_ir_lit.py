"""Runs the lit tests under `tests/lit`; what lit says is what a failure shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LIT = Path(__file__).resolve().parent / "lit"


def run_lit(exec_root: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).parent / "lit"
    command = [str(tool), "-v", "-j", "2", "-D", f"exec_root={exec_root}", *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_lit_suite(tmp_path: Path):
    before = sorted(LIT.rglob("*"))
    done = run_lit(tmp_path, LIT)
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
