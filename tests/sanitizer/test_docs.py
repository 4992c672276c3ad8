"""The page of failures is true: each kernel there has the finding that stands under it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stretto.sanitizer.checking import check
from stretto.sanitizer.formats import shown, to_lines
from stretto.sanitizer.launches import Settings

PAGE = (Path(__file__).parents[2] / "docs/check.md").read_text(encoding="utf-8")
COMMON = re.search(r"```python\n# common\.py\n(.*?)```", PAGE, re.DOTALL)
SECTION = re.compile(r"^### (.*?)\n.*?```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL | re.M)
SECTIONS = SECTION.findall(PAGE)


def test_the_page_has_every_kind_of_failure() -> None:
    assert len(SECTIONS) >= 13
    assert len({told.rpartition("[")[2] for _, _, told in SECTIONS}) == len(SECTIONS)


@pytest.mark.parametrize(("title", "kernel", "told"), SECTIONS, ids=[s[0] for s in SECTIONS])
def test_a_kernel_of_the_page_has_the_finding_under_it(
    title: str, kernel: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del title
    assert COMMON is not None
    (tmp_path / "common.py").write_text("# common.py\n" + COMMON[1])
    (tmp_path / "kernel.py").write_text(kernel)
    monkeypatch.chdir(tmp_path)
    report = check("kernel.py", settings=Settings(seeds=(0, 1, 2)))
    assert report.findings
    assert report.failed()
    lines = to_lines(report)
    assert told.strip() in [line.replace(f"{tmp_path}/", "") for line in lines]
    assert len(shown(report, strict=False)) >= 1
