"""The changelog is short, its fragments are well formed, and a release is made of both."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import stretto
from pages import ROOT

ASSEMBLE: dict[str, Any] = runpy.run_path(str(ROOT / "changelog.d" / "assemble.py"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_fragment_is_a_short_list() -> None:
    for path in ASSEMBLE["fragments"](ROOT / "changelog.d"):
        assert not ASSEMBLE["faults"](path)


def test_what_is_unreleased_is_read_in_a_minute() -> None:
    unreleased = CHANGELOG.partition("## Unreleased\n")[2].partition("\n## ")[0]
    assert len(unreleased.splitlines()) < 60


def test_every_version_has_a_date_and_the_newest_is_below_the_one_at_work() -> None:
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert headings[0] == "Unreleased"
    for heading in headings[1:]:
        assert re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", heading)
    newest = tuple(map(int, headings[1].split(" ")[0].split(".")))
    assert newest <= tuple(map(int, stretto.__version__.split(".")[:3]))


def test_a_release_takes_the_fragments_in(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# not a fragment\n")
    (tmp_path / "b.md").write_text("- second\n")
    (tmp_path / "a.md").write_text("first,\non two lines\n\n")
    added = ASSEMBLE["section"](tmp_path)
    assert added == "- first,\n  on two lines\n- second\n"
    before = "# Changelog\n\n## Unreleased\n\n- old\n\n## 0.1.0 - 2026-01-01\n\n- begun\n"
    after = ASSEMBLE["released"](before, added, "0.2.0", "2026-02-02")
    assert after == (
        "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-02-02\n\n- old\n- first,\n"
        "  on two lines\n- second\n\n## 0.1.0 - 2026-01-01\n\n- begun\n"
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- one\n" * 9, "9 lines"),
        ("# Changes\n\n- one\n", "no headings"),
        ("", "is empty"),
    ],
)
def test_a_fragment_that_is_wrong_is_told(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "x.md").write_text(text)
    assert fault in ASSEMBLE["faults"](tmp_path / "x.md")[0]


def test_a_release_needs_a_version_and_a_date() -> None:
    with pytest.raises(ValueError, match="expected a version"):
        ASSEMBLE["released"](CHANGELOG, "", "next", "soon")
