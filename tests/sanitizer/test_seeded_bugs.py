"""Ten sound kernels pass; each of the bugs put into them is found, but those that change nothing.

Sound as well is what we emit: the golden files are run through the same sanitizer.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from bug_classes import CLASSES, bugs

import gluon_cases
from stretto.sanitizer.checking import check
from stretto.sanitizer.finding import Report
from stretto.sanitizer.launches import Settings

KERNELS = sorted((Path(__file__).parent / "kernels").glob("*.py"))
GOLDEN = Path(__file__).parents[1] / "gpu/golden"
EMITTED = (
    "b200-matmul_descriptors",
    "cutile-attention_forward_d64",
    "cutile-layer_norm",
    "cutile-matmul",
    "cutile-matmul_persistent",
    "cutile-softmax",
    "triton-attention_forward_d64",
    "triton-attention_forward_d64_causal",
    "triton-layer_norm",
    "triton-matmul_descriptors",
    "triton-matmul_fused",
    "triton-softmax",
)
"""Golden files that are quickly run; the tests of emission run the others."""

HARMLESS = {
    ("gemm_specialized", "too much is left in flight", "the loop has waited for all already"),
}
"""Changes that are no bugs, and why: kernel, class, reason; one each."""


def checked(file: Path, first: bool = False) -> Report:
    settings = Settings(seeds=(0, 1), programs=1, first=first)
    return check(file, settings=settings, capability=(10, 0))


@pytest.mark.parametrize("kernel", KERNELS, ids=[file.stem for file in KERNELS])
def test_a_sound_kernel_has_no_findings_and_no_notes(kernel: Path) -> None:
    report = checked(kernel)
    assert report.findings == []
    assert len(report.coverage.launches) >= 4


@cache
def survivors_and_counts(kernel: Path, folder: Path) -> tuple[list[tuple[str, str]], Counter[str]]:
    """What is not found in a kernel, and how many bugs of each class there were."""
    survivors: list[tuple[str, str]] = []
    counts: Counter[str] = Counter()
    for name, where, text in bugs(kernel.read_text()):
        file = folder / "bug.py"
        file.write_text(text)
        counts[name] += 1
        if not checked(file, first=True).findings:
            survivors.append((name, where))
    return survivors, counts


@pytest.mark.parametrize("kernel", KERNELS, ids=[file.stem for file in KERNELS])
def test_every_bug_put_into_a_kernel_is_found(kernel: Path, tmp_path: Path) -> None:
    survivors, counts = survivors_and_counts(kernel, tmp_path)
    harmless = Counter(name for stem, name, _ in HARMLESS if stem == kernel.stem)
    assert Counter(name for name, _ in survivors) == harmless, survivors
    assert sum(counts.values()) >= 2


def test_there_are_bugs_of_twelve_classes_in_ten_kernels() -> None:
    found = Counter(name for file in KERNELS for name, _, _ in bugs(file.read_text()))
    assert set(found) == set(CLASSES)
    assert len(CLASSES) == 12
    assert len(KERNELS) == 10
    assert sum(found.values()) >= 60
    assert min(found.values()) >= 5


@pytest.mark.parametrize("name", EMITTED)
def test_what_we_emit_is_sound(name: str) -> None:
    kind, _, kernel = name.partition("-")
    case = f"{'triton' if kind == 'b200' else kind}/{kernel}"
    gluon_cases.holds(case, (GOLDEN / f"{name}.gluon").read_text(encoding="utf-8"))
