"""TTGIR as Triton dumps it after its pipeliner: what it made is sound, and bugs in it are found.

The dumps are of our examples, compiled by Triton 3.6 for sm_90.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.errors import DocumentError
from stretto.sanitizer.checking import check
from stretto.sanitizer.finding import Report
from stretto.sanitizer.launches import Settings

DUMPS = sorted((Path(__file__).parent / "dumps").glob("*.ttgir"))
TMA = Path(__file__).parent / "dumps/matmul_descriptors.ttgir"
COPIES = Path(__file__).parent / "dumps/matmul_pointers.ttgir"

BUGS = {
    "a barrier is not waited for": (TMA, "ttng.wait_barrier", None, "read-too-early"),
    "a product more is left in flight": (
        TMA,
        "pendings = 1 : i32}",
        "pendings = 2 : i32}",
        "overwritten-too-early",
    ),
    "the last product is not waited for": (
        TMA,
        "%total_18#0 {pendings = 0 : i32}",
        "%total_18#0 {pendings = 1 : i32}",
        "accumulator-in-flight",
    ),
    "a barrier expects half of the bytes": (TMA, ", 32768, %total_24", ", 16384, %total_24", ""),
    "a store is not fenced": (TMA, "ttng.fence_async_shared", None, "missing-fence"),
    "a store is not waited for": (TMA, "ttng.async_tma_store_wait", None, "in-flight-at-exit"),
    "a slot less": (TMA, "arith.constant 3 : i32", "arith.constant 2 : i32", ""),
    "a group of copies more is left in flight": (COPIES, "num = 2", "num = 4", "read-too-early"),
}


def checked(file: Path) -> Report:
    return check(file, settings=Settings(seeds=(0, 1)))


@pytest.mark.parametrize("dump", DUMPS, ids=[dump.stem for dump in DUMPS])
def test_what_triton_pipelined_is_sound(dump: Path) -> None:
    report = checked(dump)
    assert [finding for finding in report.findings if not finding.note] == []
    assert any({0, 1, 2, 3} <= loop.counts for loop in report.coverage.loops.values())


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_a_dump_is_found_at_its_line(bug: str, tmp_path: Path) -> None:
    source, old, new, rule = BUGS[bug]
    lines = source.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if old in line)
    lines[at] = "" if new is None else lines[at].replace(old, new)
    file = tmp_path / "dump.ttgir"
    file.write_text("\n".join(lines) + "\n")
    report = checked(file)
    found = [finding for finding in report.findings if not finding.note]
    assert found
    assert not rule or rule in {finding.rule for finding in found}
    assert all(0 < finding.site.line <= len(lines) for finding in found)


def test_what_is_not_read_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dump.ttgir"
    text = TMA.read_text()
    file.write_text(text.replace("ttng.fence_async_shared", "ttng.tc_gen5_mma"))
    assert main(["check", str(file)]) == 1
    assert "`ttng.tc_gen5_mma` is not read" in capsys.readouterr().err
    file.write_text(text.replace("cuda:90", "cuda:100"))
    with pytest.raises(DocumentError, match="a dump for sm_90 is wanted"):
        checked(file)
