"""The notebooks of docs/notebooks run from a clone: each cell, in order, with its own checks."""

from __future__ import annotations

import contextlib
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
RUN: Callable[[dict[str, Any]], dict[str, Any]] = runpy.run_path(
    str(ROOT / "docs" / "run_notebooks.py")
)["run"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_committed(path: Path) -> None:
    committed = json.loads(path.read_text(encoding="utf-8"))
    with contextlib.chdir(ROOT):
        now = RUN(json.loads(path.read_text(encoding="utf-8")))
    for cell, before in zip(now["cells"], committed["cells"], strict=True):
        if cell["cell_type"] == "code":
            kinds = [output["output_type"] for output in cell["outputs"]]
            shown = [output["output_type"] for output in before["outputs"]]
            assert kinds == shown, "run docs/run_notebooks.py to commit new outputs"


def test_every_notebook_is_listed() -> None:
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 3
    assert all(f"(notebooks/{path.name})" in page for path in NOTEBOOKS)
