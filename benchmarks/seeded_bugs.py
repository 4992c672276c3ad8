"""Bugs seeded by rule into the kernels of Triton's own tutorials: is each of them found?

python benchmarks/seeded_bugs.py TRITON/python/tutorials/gluon [PART OF A FILE'S NAME]

One line is changed at a time; a bug is found where the check has a finding that the file as it is
does not have. A change that changes nothing (slot 0 instead of a slot that is 0) is listed too.
"""

from __future__ import annotations

import ast
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from stretto.sanitizer.checking import check
from stretto.sanitizer.finding import Report
from stretto.sanitizer.launches import Settings

SECONDS = 60
"""For one check."""
FUNCTIONS = {
    "03-async-copy.py": "elementwise_add_cpasync_kernel issue_loads perform_add",
    "04-tma.py": "memcpy_1d_tma_kernel elementwise_add_tma_kernel issue_loads perform_add",
    "05-wgmma.py": "small_mma_kernel blocked_matmul_pipelined_kernel blocked_matmul_kernel",
    "06-tcgen05.py": "small_mma_kernel blocked_matmul_kernel blocked_matmul_pipelined_kernel",
    "08-warp-specialization.py": "load_partition store_partition compute_partition "
    "elementwise_add_warp_specialized_kernel",
    "14-multicta.py": "two_cta_tcgen05_kernel tma_tcgen05_kernel tma_multicast_copy_kernel "
    "matmul_load_partition matmul_mma_partition matmul_epilogue_partition matmul_multicta_kernel "
    "matmul_clc_partition ClcTileSchedulerConsumer",
}
"""What is changed: functions and classes of each file."""
CLUSTERS = "14-multicta.py"
"""It leaves fences to the compiler."""
_BARRIER = r"[^,]*(?:\([^)]*\))?[^,]*, "
CLASSES: dict[str, tuple[str, Callable[[re.Match[str]], str]]] = {
    "a wait is missing": (r"(\s*)mbarrier\.wait\(.*\)", lambda m: f"{m[1]}pass"),
    "a wait has the wrong phase": (
        rf"(\s*mbarrier\.wait\({_BARRIER})(phase=)?([^,()]+)(.*)",
        lambda m: f"{m[1]}{m[2] or ''}({m[3]}) ^ 1{m[4]}",
    ),
    "an arrival is missing": (r"(\s*)mbarrier\.arrive\(.*\)", lambda m: f"{m[1]}pass"),
    "an arrival too many": (r"(\s*)(mbarrier\.arrive\(.*\))", lambda m: f"{m[0]}; {m[2]}"),
    "a count is too large": (
        r"(\s*mbarrier\.init\(.*count=)([^)]*(?:\(.*\))?)\)",
        lambda m: f"{m[1]}({m[2]}) + 1)",
    ),
    "too many bytes are expected": (
        rf"(\s*mbarrier\.expect\({_BARRIER})(.+?)((?:, (?:pred|from_cta)=.*)?\))",
        lambda m: f"{m[1]}({m[2]}) + 16{m[3]}",
    ),
    "a fence is missing": (r"(\s*)fence_async_shared\(\)", lambda m: f"{m[1]}pass"),
    "a store is not waited for": (r"(\s*)tma\.store_wait\(.*\)", lambda m: f"{m[1]}pass"),
    "a product is not waited for": (
        r"(.*warpgroup_mma_wait\(num_outstanding=)(\d+)(.*)",
        lambda m: f"{m[1]}{int(m[2]) + 2}{m[3]}",
    ),
    "a commit is missing": (r"(\s*)tcgen05_commit\(.*\)", lambda m: f"{m[1]}pass"),
    "a copy is missing": (r"(\s*)(?:tma|cp)\.async_load\(.*\)", lambda m: f"{m[1]}pass"),
    "copies are not waited for": (
        r"(\s*)cp\.wait_group\((?:num_outstanding=)?(.*)\)",
        lambda m: f"{m[1]}cp.wait_group(({m[2]}) + 1)",
    ),
    "the wrong slot": (
        r"(\s*tma\.async_load\(.*)\.index\(([^()]*)\)(, (?:pred|multicast)=[^)]*|, pred)?\)",
        lambda m: f"{m[1]}.index(0){m[3] or ''})",
    ),
}
"""Of each class of bugs: the lines that it concerns, and what becomes of one."""


def changed(text: str, functions: str) -> Iterator[tuple[str, int, str]]:
    """Class, line and text of every file with one bug."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in functions.split():
            for at in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                for kind, (pattern, change) in CLASSES.items():
                    found = re.fullmatch(pattern, lines[at - 1])
                    if found and change(found) != lines[at - 1]:
                        yield kind, at, "\n".join([*lines[: at - 1], change(found), *lines[at:]])


def found_in(file: Path, known: frozenset[tuple[str, int]]) -> tuple[Report, list[str]]:
    """The rules of findings that are not known."""
    settings = Settings(
        seeds=(0, 1, 2), until=time.monotonic() + SECONDS, fenced=CLUSTERS in file.name,
        first=CLUSTERS not in file.name,
    )  # fmt: skip
    report = check(file, settings=settings)
    wrong = {f.rule for f in report.findings if not f.note and (f.rule, f.site.line) not in known}
    return report, sorted(wrong)


def main(folder: str, part: str = "") -> None:
    """Every bug of every file."""
    total: Counter[tuple[str, str]] = Counter()
    for name, functions in FUNCTIONS.items():
        if part not in name:
            continue
        file = Path(folder) / name
        base, _ = found_in(file, frozenset())
        known = frozenset((f.rule, f.site.line) for f in base.findings)
        for kind, line, text in changed(file.read_text(), functions):
            bug = file.with_name(f"with_a_bug_{name}")
            bug.write_text(text + "\n")
            try:
                report, rules = found_in(bug, known)
            finally:
                bug.unlink()
            verdict = "found" if rules else "no time" if report.stopped else "not found"
            total[kind, verdict] += 1
            print(verdict, f"{name}:{line}", kind, *rules, sep=" | ", flush=True)
    for (kind, verdict), count in sorted(total.items()):
        print(f"{count:4} {verdict}: {kind}")


if __name__ == "__main__":
    main(*sys.argv[1:])
