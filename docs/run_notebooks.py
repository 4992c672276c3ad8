"""Runs the notebooks of `notebooks/` and writes what their cells print and show into them.

notebooks/*.ipynb  ──►  the same, with outputs        (no Jupyter is needed)
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NOTEBOOKS = HERE / "notebooks"


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook with the outputs of this run; raises what a cell raises."""
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell["execution_count"] = number
            cell["outputs"] = _outputs("".join(cell["source"]), number, names)
    return notebook


def _outputs(code: str, number: int, names: dict[str, Any]) -> list[dict[str, Any]]:
    """What a cell prints, and the value of its last expression."""
    tree = ast.parse(code, f"cell {number}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        found.append({"output_type": "stream", "name": "stdout", "text": text})
    if value is not None:
        found.append(
            {
                "output_type": "execute_result",
                "execution_count": number,
                "metadata": {},
                "data": _shown(value),
            }
        )
    return found


def _shown(value: Any) -> dict[str, list[str]]:
    """A value as a notebook shows it: text, and a picture or a table where it has one."""
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    for kind, method in (("image/svg+xml", "_repr_svg_"), ("text/html", "_repr_html_")):
        if hasattr(value, method):
            data[kind] = getattr(value, method)().splitlines(keepends=True)
    return data


def main() -> None:
    """Run all and write them back."""
    with contextlib.chdir(HERE.parent):
        for path in sorted(NOTEBOOKS.glob("*.ipynb")):
            notebook = run(json.loads(path.read_text(encoding="utf-8")))
            text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "98"
    main()
