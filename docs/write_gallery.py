"""Writes a viewer for every kernel that ships, and a table of them, for the site.

examples/**  ──►  build/gallery/viewers/NAME.html   one page each, that any browser opens
             └─►  build/appended/gallery.md         conf.py puts it behind docs/gallery.md
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from stretto.cli.main import main
from stretto.report.formats import rendered

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
GROUPS = {
    "Hand-written loops": (None, sorted(EXAMPLES.glob("*.mlir"))),
    "Triton kernels": ("h200", sorted((EXAMPLES / "triton").glob("*.ttir"))),
    "cuTile kernels": ("h200", sorted((EXAMPLES / "cutile").glob("*.tileirbc"))),
}
"""A heading, the machine (none: the one that a loop names) and the files."""
COLUMNS = ["kernel", "loop", "machine", "II, cycles", "limited by", "stages", "proof"]


def write(built: Path) -> int:
    """All pages and the table; how many pages."""
    viewers = built / "gallery" / "viewers"
    viewers.mkdir(parents=True, exist_ok=True)
    parts: list[str] = []
    pages = 0
    for heading, (machine, paths) in GROUPS.items():
        rows: list[str] = []
        for path in paths:
            document = _scheduled(path, machine)
            name = f"{path.parent.name}-{path.stem}.html".removeprefix("examples-")
            text = "" if path.suffix == ".tileirbc" else path.read_text(encoding="utf-8")
            page = rendered(document, "html", text)
            assert isinstance(page, str)
            (viewers / name).write_text(page, encoding="utf-8")
            rows += [_row(path.stem, name, loop) for loop in document["loops"]]
            pages += 1
        parts.append("\n".join([f"## {heading}", "", _cells(COLUMNS), _cells(["---"] * 7), *rows]))
    (built / "appended").mkdir(parents=True, exist_ok=True)
    (built / "appended" / "gallery.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return pages


def _scheduled(path: Path, machine: str | None) -> dict[str, Any]:
    told = io.StringIO()
    asked = ["--machine", machine] if machine else []
    with contextlib.redirect_stdout(told):
        code = main(["schedule", str(path.relative_to(ROOT)), *asked, "--json"])
    if code:
        sys.exit(f"{path}: error: no schedule\n{told.getvalue()}")
    return json.loads(told.getvalue())


def _row(kernel: str, page: str, loop: dict[str, Any]) -> str:
    proof = "optimal" if loop["proof"]["optimal"] else f"at least {loop['proof']['lower_bound']:,}"
    limits = [slot["name"] for slot in loop["slots"] if slot["limiting"]]
    cells = [
        f'<a href="viewers/{page}">{kernel}</a>',
        loop["name"],
        loop["machine"],
        f"{loop['ii']:,}",
        ", ".join(limits) or loop["bounds"]["limiter"],
        str(loop["stage_count"]),
        proof,
    ]
    return _cells(cells)


def _cells(row: list[str]) -> str:
    return f"| {' | '.join(row)} |"


if __name__ == "__main__":
    with contextlib.chdir(ROOT):
        print(write(Path(sys.argv[1])), "viewers")
