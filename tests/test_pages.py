"""README and docs tell the truth: what they show runs, what they name exists."""

from __future__ import annotations

import json
import re
import runpy
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pages import PAGES, ROOT, PageError, blocks, run_page
from stretto.cli.parser import make_parser

CHECK_SITE = ROOT / "docs" / "check_site.py"


ELSEWHERE = {"check.md"}
"""Pages whose blocks are Gluon kernels, run by tests/sanitizer/test_docs.py."""
RUN = [path for path in PAGES if path.name not in ELSEWHERE]


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.name)
def test_every_block_of_a_page_does_what_the_page_says(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert run_page(path.name, text, tmp_path) == list(blocks(text))


WRONG = {
    "another output": ("```console\n$ stretto --version\nstretto 0.0\n```", "prints"),
    "a line too few": ("```console\n$ stretto machines\nmachine  slots\n```", "prints"),
    "no such command": ("```console\n$ stretto dance\n```", "prints"),
    "another program": ("```console\n$ ls\n```", "only stretto"),
    "a failing command": ("```sh\nstretto bounds nowhere.json\n```", "ends with 1"),
    "no such target": ("```sh\nmake tea\n```", "make tea"),
    "no such extra": ("```sh\npip install stretto[tea]\n```", "no such extra"),
    "no such option": ("```sh\npython tests/soundness.py --tea\n```", "no option"),
    "Python that raises": ("```python\nassert 1 == 2\n```", "wrong.md:1"),
    "names of another page": ("```python\nfound\n```", "found"),
    "another value": ("```pycon\n>>> 1 + 1\n3\n```", "Got"),
    "a name that is not there": ("```python gpu\nstretto.triton.tea()\n```", "tea"),
    "a keyword that is not there": ("```python gpu\nstretto.schedule(x, tea=1)\n```", "tea"),
    "syntax on a GPU": ("```python gpu\nf(\n```", "never closed"),
    "another schema": ('```json\n{"schema": "stretto.loop/1"}\n```', "name"),
    "a machine without slots": ('```toml\n[machine]\nname = "x"\n```', "slots"),
    "MLIR that does not parse": ("```mlir\nfunc.func @f( {}\n```", "error"),
    "not an excerpt": ("```mlir examples/gemm.mlir\nfunc.func @dance()\n```", "does not occur"),
    "an unknown language": ("```cobol\nSTOP RUN.\n```", "expected one of"),
    "no fence": ("text\n\n    stretto schedule gemm.json\n", "indented"),
    "output as a picture": ("```\nx.json: error: no\n```", "console"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_page_that_is_wrong_is_told(name: str, tmp_path: Path) -> None:
    text, said = WRONG[name]
    with pytest.raises(PageError, match=re.escape(said)):
        run_page("wrong.md", text, tmp_path)


def test_dots_leave_out_lines_or_part_of_one(tmp_path: Path) -> None:
    text = "```console\n$ stretto bounds examples/gemm.json\ngemm on … 256, …\n…\n  fine …\n…\n```"
    assert len(run_page("right.md", text, tmp_path)) == 1


def test_a_site_that_loads_something_from_elsewhere_is_told(tmp_path: Path) -> None:
    fetched: Callable[[Path], Iterator[str]] = runpy.run_path(str(CHECK_SITE))["fetched"]
    (tmp_path / "style.css").write_text("@import url(https://a/x.css); .y { src: url('z.woff') }")
    (tmp_path / "page.html").write_text(
        '<link rel="stylesheet" href="//b/x.css"><script src="here.js"></script>'
        '<a href="https://elsewhere">a link is followed by hand</a><img src="https://c/x.png">'
        "<style>p { background: url(http://d/x.png) }</style>"
    )
    assert sorted(fetched(tmp_path)) == [
        "page.html: loads //b/x.css",
        "page.html: loads http://d/x.png",
        "page.html: loads https://c/x.png",
        "style.css: loads https://a/x.css",
    ]


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", prose):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_files_named_in_the_pages_exist() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"`((?:src|tests|examples|benchmarks)/[\w./-]+\.\w+)`", text):
            assert (ROOT / target).exists(), f"{page.name}: {target}"


DRAW: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "draw_attention.py"))


@pytest.mark.parametrize("theme", DRAW["PICTURES"])
def test_the_chart_of_the_readme_is_drawn_from_committed_rows(theme: str) -> None:
    path: Path = DRAW["PICTURES"][theme]
    assert path.read_text(encoding="utf-8") == DRAW["picture"](theme)


def test_figures_of_the_readme_are_those_of_committed_rows() -> None:
    page = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for said in DRAW["facts"]().values():
        assert said in page
    rows = json.loads(DRAW["STOCK"].read_text(encoding="utf-8"))["times"]

    def best(problem: str, begins: tuple[str, ...]) -> float:
        rows_of = [r for r in rows if r["problem"] == problem and r["name"].startswith(begins)]
        return min(statistics.median(row["ms"]) for row in rows_of)

    def rate(problem: str, *begins: str) -> str:
        (flops,) = {row["flops"] for row in rows if row["problem"] == problem}
        return f"{flops / best(problem, begins) / 1e9:.0f}"

    forward, product = "attention D128 N16384", "GEMM 8192"
    backward = "whole backward D128 N16384 causal"
    assert f"| {rate(forward, 'decorator')} TFLOPS | {rate(forward, 'stock')} Triton" in page
    peers = DRAW["PEERS"].with_name("attention-h200-2026-11-17.jsonl").read_text().splitlines()[1:]
    (third,) = (
        row["tflops"]["FlashAttention 3"]
        for row in map(json.loads, peers)
        if (row["d"], row["causal"], row["length"]) == (128, False, 16384)
    )
    shown = f"{rate(forward, 'cuDNN')} cuDNN, **{third:.0f} FlashAttention 3**"
    assert f"Triton, {shown}" in page
    assert f"| {rate(product, 'gemm')} TFLOPS | {rate(product, 'cuBLAS')} cuBLAS" in page
    assert f"| {rate(backward, 'backward')} TFLOPS | {rate(backward, 'stock')} Triton" in page
    assert f"**{rate(backward, 'cuDNN')} cuDNN**" in page
    norm = [best("layer norm 16384x8192", begins) for begins in (("layer_norm",), ("stock",))]
    assert "| {:.3f} ms | {:.3f} ms Triton |".format(*norm) in page


def test_the_table_of_peers_is_that_of_committed_rows() -> None:
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    names = ("Stretto", "FlashAttention 3", "cuDNN")
    for d, causal in ((128, False), (128, True), (64, False), (64, True)):
        shown = [cell.tflops for cell in DRAW["cells"]() if (cell.d, cell.causal) == (d, causal)]
        rates = [" / ".join(f"{of[name]:.0f}" for name in names) for of in shown]
        assert f"| D {d}{' causal' if causal else ''} | {' | '.join(rates)} |" in page


def test_options_of_commands_that_the_pages_name_exist() -> None:
    """In prose as well, where no block is run."""
    known = {
        name: {word for action in parser.arguments for word in action.option_strings}
        for name, parser in make_parser().commands.items()
    }
    named = re.compile(rf"(?:stretto |`)({'|'.join(known)})\b((?: [^`|;#\s]+)*)")
    option = re.compile(r"(?<= )--?[a-z][a-z-]*")
    found = [
        (path.name, match[1], one)
        for path in PAGES
        for match in named.finditer(path.read_text(encoding="utf-8"))
        for one in option.findall(match[2].partition(" '")[0])
    ]
    assert len(found) > 100
    assert not [each for each in found if each[2] not in known[each[1]] | {"--help"}]
