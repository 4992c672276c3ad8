"""What checks the prose finds what is wrong, at its line, and nothing in code."""

from __future__ import annotations

import runpy
import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from pages import ROOT

CHECK: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "check_prose.py"))
STYLE = tomllib.loads((ROOT / "docs" / "style.toml").read_text(encoding="utf-8"))


def found(text: str) -> list[str]:
    own: Callable[..., Any] = CHECK["own"]
    return [str(each) for each in own("page.md", text, STYLE)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("One.\n\nTwo groups\nof warps.\n", 'page.md:3: say warpgroup for "groups of warps"'),
        ("They wait for ever.\n", 'page.md:1: say forever for "for ever"'),
        (f"Short. {'Word ' + 'word ' * 60}.\n", "page.md:1: a sentence of 61 words"),
    ],
)
def test_what_breaks_the_style_is_told(text: str, said: str) -> None:
    (told,) = found(text)
    assert told.startswith(said)


@pytest.mark.parametrize(
    "text",
    [
        "```sh\na group of warps\n```\n",
        "`a group of warps`\n",
        "# A group of warps\n",
        f"| {' | '.join(['three short words'] * 30)} |\n",
        "- one two three.\n" * 30,
    ],
)
def test_code_headings_cells_and_items_are_let_alone(text: str) -> None:
    assert not found(text)


def test_the_pages_keep_to_the_style() -> None:
    told = [
        str(each)
        for path in CHECK["pages"]()
        for each in CHECK["own"](path.name, path.read_text(encoding="utf-8"), STYLE)
    ]
    assert not told


def test_every_page_says_who_it_is_for() -> None:
    """In the lines below its title; the first page has a table, the Python API its docstring."""
    for path in sorted((ROOT / "docs").glob("*.md")):
        if path.name not in ("index.md", "api.md"):
            below = path.read_text(encoding="utf-8").split("\n", 6)[1:6]
            assert any(line.startswith("*For ") for line in below), path.name
