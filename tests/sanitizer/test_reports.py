"""What people reported to trackers is found, and what mends it passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from reports import REPORTS, Reported

from stretto.sanitizer.checking import check
from stretto.sanitizer.finding import Report
from stretto.sanitizer.launches import Settings


def checked(tmp_path: Path, text: str) -> Report:
    file = tmp_path / "reported.py"
    file.write_text(text)
    return check(file, settings=Settings(seeds=(0, 1, 2)))


@pytest.mark.parametrize("report", REPORTS, ids=[report.where for report in REPORTS])
def test_a_reported_fault_is_found_and_its_remedy_passes(report: Reported, tmp_path: Path) -> None:
    found = checked(tmp_path, report.text)
    assert {finding.rule for finding in found.findings} & report.rules
    wrong, right = report.mended
    assert wrong in report.text
    mended = checked(tmp_path, report.text.replace(wrong, right))
    assert [finding for finding in mended.findings if not finding.note] == []
